"""The figures of a pool are the statistics of its decisions, audited question by question, or over several seeds."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.comparisons.compared_runs import over_seeds
from eldgr_dspy.comparisons.named_runs import named_runs
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation, Verdict
from eldgr_dspy.statistics import Contrast, contrast, holm, seed_variance
from eldgr_dspy.testing import consultations
from eldgr_dspy.words import CONSULT, Role, Task
from tests.capitals import row, write_pool
from tests.case_tables import each_case, tables_of
from tests.finished_runs import finished_run
from tests.listed_contrasts import by_cluster
from tests.refusing import refuses
from tests.results import audited
from tests.results.audited import ARITHMETIC, RETRIEVAL, Entry, arithmetic, figures, outcome, retrieval
from tests.results.demo_pools import ARTIFACTS, demo_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_run(tmp_path_factory.mktemp("run") / "demo")


def pool_of(run: Path, pool: str) -> Any:
    return json.loads((run / "summary.json").read_text("utf-8"))["pools"][pool]


def contrast_in(run: Path, pool: str, one: dict[str, Any], score: str) -> Contrast:
    """The contrast of a score as the lines of decisions.jsonl have it, in percentage points."""
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text("utf-8").splitlines()]
    arms = (
        [100.0 * line[score] for line in lines if (line["pool"], line["rule"]) == (pool, rule)] for rule in pair(one)
    )
    return contrast(*arms)


def pair(one: dict[str, Any]) -> tuple[str, str]:
    return one["rule"], one["against"]


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_a_contrast_has_both_intervals_and_the_family_of_holm_is_the_matched_selectors(run: Path, pool: str) -> None:
    of_pool = pool_of(run, pool)["contrasts"]
    for one in of_pool:
        result = contrast_in(run, pool, one, "em")
        assert (one["delta"], tuple(one["ci"]), one["p"]) == (result.delta, result.interval, result.p)
        assert (one["wins"], one["losses"]) == (result.wins, result.losses)
        f1 = contrast_in(run, pool, one, "f1") if pool == "demo-retrieval" else None
        assert one["f1"] == (f1 and {"delta": f1.delta, "ci": list(f1.interval)})
    family = [one for one in of_pool if one["p_holm"] is not None]
    pairs = [("eldgr", "first"), ("eldgr", "majority"), ("eldgr", "judge"), ("judge", "majority")]
    assert [pair(one) for one in family] == pairs
    assert [pair(one) for one in of_pool if one["p_holm"] is None] == [("eldgr", "certified")]
    assert [one["p_holm"] for one in family] == list(holm([one["p"] for one in family]))


def test_a_text_that_stands_five_times_counts_once_in_a_contrast_and_one_alone_says_so(
    run: Path, tmp_path: Path
) -> None:
    """Five copies under other ids: the same wins, losses and p, and a count of the texts."""
    rows = [json.loads(line) for line in (ARTIFACTS / "demo-retrieval.jsonl").read_text("utf-8").splitlines()]
    copies = [row | {"id": f"{row['id']}.{number}"} for number in range(5) for row in rows]
    pools = [write_pool(tmp_path / "copies.jsonl", copies), write_pool(tmp_path / "one.jsonl", rows[:1])]
    assert main(["evaluate", *map(str, pools), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    pool = pool_of(tmp_path / "run", "copies")
    assert (pool["n"], pool["n_scored"], pool["n_distinct"]) == (5 * len(rows), 5 * len(rows), len(rows))
    for one, other in zip(pool["contrasts"], pool_of(run, "demo-retrieval")["contrasts"], strict=True):
        assert [one[key] for key in ("p", "wins", "losses", "p_holm")] == [
            other[key] for key in ("p", "wins", "losses", "p_holm")
        ]
        assert one["delta"] == pytest.approx(other["delta"])
    for one in pool_of(tmp_path / "run", "one")["contrasts"]:
        expected = "There is only one question: the interval is a point and says nothing about other questions."
        assert one["notes"][0] == expected


def decisions(result: dict[str, Any]) -> set[tuple[str, str, str, int]]:
    keys = ("branch", "level", "outcome", "questions")
    rows = [tuple(one[key] for key in keys) for one in result["decided"]["outcomes"]]
    assert rows == sorted(rows) and len(rows) == len({row[:3] for row in rows})
    return set(rows)


@each_case("results", "figures of questions", **audited.POOLS)
def test_a_figure_of_known_questions_is_counted_by_hand(pool: Any, path: str, expected: Any) -> None:
    result = reduce(getitem, path.split("/"), pool)
    assert result == (pytest.approx(expected) if path.startswith("shipping") else expected)


def test_a_stated_derivation_vouches_and_without_tokens_or_a_decision_what_is_unknown_is_none() -> None:
    entries: list[Entry] = [(arithmetic(["8", "8", "7"], derivation="stated"), ["7"], {"deriver": audited.SOUND}, ())]
    assert decisions(figures("arithmetic", entries)) == {("repair", "stated", "won", 1)}
    case, rows = retrieval(audited.OPEN), DecidedRows("retrieval", ("eldgr",))
    replies: list[Any] = [("judge", {"completion_tokens": None}), ("repairer", {"calls": 0, "prompt_tokens": None})]
    lines = [Consultation("p", "q", role, "ok", content={}, **(audited.EACH | one)) for role, one in replies]
    rows.add(case, ["Doha"], {"eldgr": replace(outcome(case, "eldgr", {}), consultations=lines)}, ())
    assert pool_figures(rows)["rules"]["eldgr"]["tokens"] == {"judge": None, "deriver": 0, "repairer": 0}
    rows = DecidedRows("retrieval", ("eldgr",))
    rows.add(retrieval(audited.OPEN), ["Doha"], {"eldgr": Outcome(None, missing="judge")}, ())
    assert (pool_figures(rows)["audit"], pool_figures(rows)["decided"]) == (None, None)


@st.composite
def pools(draw: st.DrawFn) -> tuple[Task, list[Entry]]:
    task: Task = draw(st.sampled_from(("retrieval", "arithmetic")))
    entries: list[Entry] = []
    for one in draw(st.lists(consultations(task), max_size=6)):
        failures: list[Role] = ["judge"] if draw(st.booleans()) else []
        entries.append((Case(one.question, one.settings), [one.gold] if one.gold else [], one.replies, failures))
    return task, entries


@settings(max_examples=30)
@given(pools())
@example(("retrieval", RETRIEVAL))
@example(("arithmetic", ARITHMETIC))
def test_the_audit_adds_up(pool: tuple[Task, list[Entry]]) -> None:
    task, entries = pool
    result = figures(task, entries)
    audit = result["audit"]
    by: dict[str, int] = dict.fromkeys(("consensus", "judge", "repair"), 0)
    for branch, _, _, n in decisions(result):
        by[branch] += n
    assert sum(by.values()) == result["n"] == len(entries)
    assert tuple(by.values()) == (audit["preserved"], audit["judge_overrides"], audit["repair_overrides"])
    flips = {word: sum(n for _, _, one, n in decisions(result) if one == word) for word in ("lost", "won")}
    if result["n_scored"] == result["n"] > 0:
        assert (flips["lost"], flips["won"]) == (audit["correct_to_incorrect"], audit["incorrect_to_correct"])
    assert sum(n for _, _, became, n in decisions(result) if became != "unscored") == result["n_scored"]


@settings(max_examples=30)
@given(pools())
def test_asking_always_ships_the_same(pool: tuple[Task, Any]) -> None:
    task, entries = pool
    one, other = (
        figures(task, [(Case(of.question, replace(of.settings, consult=consult)), *rest) for of, *rest in entries])
        for consult in CONSULT
    )
    for part in ("outcomes", "flips"):
        assert one["decided"][part] == other["decided"][part]


def test_on_a_real_pool_the_audit_is_that_of_a_count_question_by_question(pools_dir: Path) -> None:
    entries: list[Entry] = []
    for one in open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz").rows():
        case = Case(one.to_question())
        last = max((index for index, key in enumerate(case.vote.classes) if key is not None), default=None)
        entries.append((case, one.gold, {} if last is None else {"judge": Verdict(last)}, ()))
    result = figures("retrieval", entries)
    count = sum(case.certified(case.consensus) is False and case.rival() for case, *_ in entries)
    assert result["rules"]["eldgr"]["asked"]["judge"] == count == 20


FIRST_RIGHT: Sequence[Sequence[int]] = (range(8), range(6), range(4, 9))
"""On which of twelve questions the first candidate of each seed is right; the other two are right on the even ones."""


def seed(folder: Path, right: Sequence[int], n: int = 12, **changes: Any) -> str:
    """A run on the pool of one seed of sampling."""
    folder.mkdir()
    rows = [
        row(at, answers=("Paris" if at in right else "Nice", *["Lyon" if at % 2 else "Paris"] * 2), **changes)
        for at in range(n)
    ]
    run, _ = finished_run(folder, rows=rows, rules=("first", "majority"))
    return str(run)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("seeds")
    return [seed(folder / f"{number}", right) for number, right in enumerate(FIRST_RIGHT)]


def over(runs: Sequence[str]) -> Any:
    return over_seeds(named_runs(runs), rule="first", against="majority")


def test_a_seed_is_a_row_and_a_question_with_all_its_seeds_a_unit(seeds: list[str]) -> None:
    result = over(seeds)
    assert (result["rule"], result["against"], result["n"], result["n_scored"]) == ("first", "majority", 12, 12)
    expected = [pytest.approx([800 / 12, 50]), pytest.approx([50, 50]), pytest.approx([500 / 12, 50])]
    assert [one["em"] for one in result["runs"]] == expected
    assert [(one["wins"], one["losses"]) for one in result["runs"]] == [(4, 2), (3, 3), (2, 3)]
    assert len({one["sha256"] for one in result["runs"]}) == 3
    first = np.array([[100.0 * (number in right) for number in range(12)] for right in FIRST_RIGHT])
    majority = np.array([[100.0 * (number % 2 == 0) for number in range(12)]] * 3)
    for name, table in (("rule", first), ("against", majority), ("difference", first - majority)):
        parts = asdict(seed_variance(table))
        spread = {part: pytest.approx(value) if isinstance(value, float) else value for part, value in parts.items()}
        assert asdict(result["variance"]["em"][name]) == spread
    result, contrast = result["contrast"], by_cluster(first.ravel(), majority.ravel(), [*range(12)] * 3)
    assert (result["wins"], result["losses"], result["p"]) == (contrast.wins, contrast.losses, contrast.p)
    assert result["wins"] + result["losses"] <= 12
    assert result["delta"] == pytest.approx(contrast.delta)
    assert result["ci"] == pytest.approx(list(contrast.interval))
    assert result["f1"]["delta"] == pytest.approx(contrast.delta)  # an answer here is right or shares no word


def test_runs_on_one_pool_and_rows_of_one_text_count_once(seeds: list[str], tmp_path: Path) -> None:
    again = seed(tmp_path / "again", FIRST_RIGHT[0])
    few = "2 seeds say little about other seeds, so the interval over seeds is wide."
    one_pool = "All runs are on one pool: the seeds are those of the roles; the results are only for these candidates."
    assert [over(of)["remarks"] for of in ([seeds[0], again], seeds[:2])] == [[one_pool, few], [few]]
    some = "Some of the runs are on the same pool: its candidates count as several seeds."
    assert over([*seeds, again])["remarks"][0] == some
    right, runs = ((0, 1, 2), (1, 4)), list[str]()
    for name, first in zip("ab", right, strict=True):
        answers = [["Paris" if at in first else "Nice", *["Lyon" if at % 2 else "Paris"] * 2] for at in range(6)]
        rows = [row(at, answers=answers[at], question=f"Which {at // 2}?") for at in range(6)]
        runs.append(str(finished_run(tmp_path, rows=rows, rules=("first", "majority"), out=tmp_path / name)[0]))
    result = over(runs)
    assert result["contrast"]["wins"] + result["contrast"]["losses"] <= 3
    assert [(one["delta"], one["wins"], one["losses"]) for one in result["runs"]] == [(0, 1, 1), (-50 / 3, 0, 1)]
    assert result["remarks"][0] == "6 questions have 3 different texts: a repeated text counts once in Δ and p."
    assert result["variance"]["em"]["rule"] == seed_variance([[100, 50, 0], [50, 0, 50]])


def test_what_are_no_seeds_of_the_same_questions_or_have_no_spread_is_refused(seeds: list[str], tmp_path: Path) -> None:
    shorter, other_gold = seed(tmp_path / "short", (), n=9), seed(tmp_path / "gold", (), gold=["Rome"])
    other_text = seed(tmp_path / "text", (), question="Which?")
    texts = r"Question 'q0' is 'what is .* 0\?' in .* and 'which\?' in .*; give pools with the same"
    copies = {n: [seed(tmp_path / f"{name}{n}", (0,), n=n, question="Which?") for name in "ab"] for n in (1, 6)}
    one = "1 question with a gold answer, copies aside; give runs on two or more"
    for runs, message in (
        (seeds[:1], r"A comparison of seeds needs two or more runs; got 1\. Give one run a seed\."),
        ([seeds[0], f"b={seeds[0]}"], r"b=.* is the same run as .*; a run is one seed: give each once\."),
        ([seeds[0], shorter], r"3 questions of .* are not in .*: 'q9', 'q10', 'q11'; give runs on the same"),
        ([seeds[0], other_text], texts),
        ([seeds[0], other_gold], r"Question 'q0' has gold answers \['Paris'\] in .* and \['Rome'\] in "),
        *((of, one) for of in copies.values()),
    ):
        refuses(ArgumentError, message, over, runs)
    with pytest.raises(ArgumentError, match="rule='first' and against='first' are the same; give two rules"):
        over_seeds(named_runs(seeds), rule="first", against="first")
    with pytest.raises(ArgumentError, match="has no result of rule 'eldgr' on pool 'capitals': it was not among"):
        over_seeds(named_runs(seeds))


def test_the_command_prints_three_tables_or_the_figures(seeds: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--rule", "first", "--seeds", "majority"]
    assert main(["compare", f"seed-1={seeds[0]}", *seeds[1:], *rules]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [text for text in tables_of("results")["seeds, printed"] if text not in out] == []
    assert main(["compare", *seeds, *rules, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(over(seeds), default=asdict))
