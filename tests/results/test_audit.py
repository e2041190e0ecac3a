"""The decision audit says what became of every question, by what decided and what vouched for it; and adds up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import open_pool
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation, Verdict
from eldgr_dspy.testing import consultations
from eldgr_dspy.words import CONSULT, Role, Task
from tests.results import audited
from tests.results.audited import ARITHMETIC, RETRIEVAL, UNSCORED, Asked, arithmetic, figures, outcome, retrieval


def shipped(result: dict[str, Any]) -> set[tuple[str, str, str, int]]:
    keys = ("branch", "level", "outcome", "questions")
    rows = [tuple(one[key] for key in keys) for one in result["decided"]["outcomes"]]
    assert rows == sorted(rows) and len(rows) == len({row[:3] for row in rows})
    return set(rows)


def test_questions_are_split_by_what_decided_what_vouches_and_what_became_of_the_answer() -> None:
    assert shipped(figures("retrieval", RETRIEVAL)) == {
        ("consensus", "exact", "right", 1),
        ("consensus", "exact", "wrong", 1),
        ("consensus", "folded", "right", 1),
        ("consensus", "inapplicable", "wrong", 1),
        ("consensus", "uncertified", "right", 1),
        ("consensus", "uncertified", "wrong", 2),
        ("judge", "exact", "lost", 1),
        ("judge", "exact", "won", 1),
        ("judge", "exact", "wrong", 1),
        ("repair", "exact", "lost", 1),
        ("repair", "exact", "won", 2),
    }


def test_the_audit_counts_what_was_kept_changed_and_silent() -> None:
    assert figures("retrieval", RETRIEVAL)["audit"] == {
        "preserved": 7,
        "judge_overrides": 3,
        "repair_overrides": 3,
        "correct_to_incorrect": 2,
        "incorrect_to_correct": 3,
        "abstentions": 3,
        "homogeneous": 1,
        "certified_consensus": 3,
    }
    assert figures("arithmetic", ARITHMETIC)["audit"] == {
        "preserved": 4,
        "judge_overrides": 0,
        "repair_overrides": 2,
        "correct_to_incorrect": 1,
        "incorrect_to_correct": 1,
        "abstentions": 1,
        "homogeneous": 1,
        "certified_consensus": 1,
    }


def test_in_arithmetic_the_level_is_that_of_the_derivation() -> None:
    assert shipped(figures("arithmetic", ARITHMETIC)) == {
        ("consensus", "bounded", "right", 1),
        ("consensus", "unchecked", "right", 1),
        ("consensus", "unchecked", "wrong", 2),
        ("repair", "bounded", "lost", 1),
        ("repair", "bounded", "won", 1),
    }
    stated: list[Asked] = [(arithmetic(["8", "8", "7"], derivation="stated"), ["7"], {"deriver": audited.SOUND}, ())]
    assert shipped(figures("arithmetic", stated)) == {("repair", "stated", "won", 1)}


def test_flips_are_counted_against_each_rule_that_has_a_result() -> None:
    flips = figures("retrieval", RETRIEVAL)["decided"]["flips"]
    assert flips == {
        "first": {"correct_to_incorrect": 2, "incorrect_to_correct": 3},
        "judge": {"correct_to_incorrect": 1, "incorrect_to_correct": 2},
    }
    assert figures("retrieval", RETRIEVAL, ("eldgr", "first"))["decided"]["flips"] == {"first": flips["first"]}


def test_tokens_are_unknown_where_a_server_did_not_report_them_and_none_where_no_call_was_made() -> None:
    case, rows = retrieval(audited.OPEN), DecidedRows("retrieval", ("eldgr",))
    replies: list[Any] = [
        audited.EACH | {"completion_tokens": None},
        audited.EACH | {"calls": 0, "prompt_tokens": None},
    ]
    roles: tuple[Role, ...] = ("judge", "repairer")
    made = [Consultation("p", "q", role, "ok", content={}, **one) for role, one in zip(roles, replies, strict=True)]
    rows.add(case, ["Doha"], {"eldgr": replace(outcome(case, "eldgr", {}), consultations=made)}, ())
    assert pool_figures(rows)["rules"]["eldgr"]["tokens"] == {"judge": None, "deriver": 0, "repairer": 0}


def test_without_gold_answers_nothing_is_scored() -> None:
    result = figures("retrieval", UNSCORED)
    assert {row[2] for row in shipped(result)} == {"unscored"}
    assert result["decided"]["flips"]["judge"] == {"correct_to_incorrect": None, "incorrect_to_correct": None}
    assert result["audit"]["incorrect_to_correct"] is None


def test_without_a_result_of_eldgr_there_is_no_audit_in_full() -> None:
    assert figures("retrieval", RETRIEVAL, ("majority",))["decided"] is None
    rows = DecidedRows("retrieval", ("eldgr",))
    rows.add(retrieval(audited.OPEN), ["Doha"], {"eldgr": Outcome(None, missing="judge")}, ())
    assert (pool_figures(rows)["audit"], pool_figures(rows)["decided"]) == (None, None)


@st.composite
def pools(draw: st.DrawFn) -> tuple[Task, list[Asked]]:
    task: Task = draw(st.sampled_from(("retrieval", "arithmetic")))
    asked: list[Asked] = []
    for one in draw(st.lists(consultations(task), max_size=6)):
        failed: list[Role] = ["judge"] if draw(st.booleans()) else []
        asked.append((Case(one.question, one.settings), [one.gold] if one.gold else [], one.replies, failed))
    return task, asked


@settings(max_examples=30)
@given(pools())
@example(("retrieval", RETRIEVAL))
@example(("arithmetic", ARITHMETIC))
def test_the_audit_adds_up(pool: tuple[Task, list[Asked]]) -> None:
    task, asked = pool
    result = figures(task, asked)
    audit = result["audit"]
    by: dict[str, int] = dict.fromkeys(("consensus", "judge", "repair"), 0)
    for branch, _, _, n in shipped(result):
        by[branch] += n
    assert sum(by.values()) == result["n"] == len(asked)
    assert tuple(by.values()) == (audit["preserved"], audit["judge_overrides"], audit["repair_overrides"])
    flips = {word: sum(n for _, _, one, n in shipped(result) if one == word) for word in ("lost", "won")}
    if result["n_scored"] == result["n"] > 0:
        assert (flips["lost"], flips["won"]) == (audit["correct_to_incorrect"], audit["incorrect_to_correct"])
    assert sum(n for _, _, became, n in shipped(result) if became != "unscored") == result["n_scored"]


@settings(max_examples=30)
@given(pools())
def test_asking_always_ships_the_same(pool: tuple[Task, list[Asked]]) -> None:
    task, asked = pool
    one, other = (
        figures(
            task,
            [
                (Case(case.question, replace(case.settings, consult=consult)), gold, replies, failed)
                for case, gold, replies, failed in asked
            ],
        )["decided"]
        for consult in CONSULT
    )
    assert (one["outcomes"], one["flips"]) == (other["outcomes"], other["flips"])


def test_on_a_real_pool_the_audit_is_that_of_a_count_question_by_question(pools_dir: Path) -> None:
    asked: list[Asked] = []
    for row in open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz").rows():
        case = Case(row.to_question())
        last = max((index for index, key in enumerate(case.vote.classes) if key is not None), default=None)
        asked.append((case, row.gold, {} if last is None else {"judge": Verdict(last)}, ()))
    result = figures("retrieval", asked)
    contested = sum(case.certified(case.consensus) is False and case.rival() for case, *_ in asked)
    assert result["rules"]["eldgr"]["asked"]["judge"] == contested == 20
