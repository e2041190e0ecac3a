"""The authority bound of a pool: every judge and every span of the evidence, tried one by one, are the witnesses."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import exact_match
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import RULES, drive
from eldgr_dspy.figures import bounds
from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.figures.bounds import answers_over_any, ends_of, extreme_spans, sways
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import POLICIES, Homogeneous, Policy
from tests.results.demo_pools import ARTIFACTS

SILENT = Abstention("silent")

words = "Oslo the no Yes Paris, 7 - 1,000 art U.S. a A, <b> n\u200bo -7 /Paris 's C++ T.H.E A- “Day” ½ 東京 İ".split()
gaps = st.sampled_from((" ", " ", ""))
texts = st.lists(st.tuples(st.sampled_from(words), gaps).map("".join), max_size=4).map("".join)
given_answers = "Oslo no Paris 7 Rome US 1000 - C A -7 “Day” 東京 İ".split()
cases = st.builds(
    lambda answers, passages, policy: Case(
        Question("Q", "retrieval", tuple(answers), (), tuple(Passage(*one) for one in passages)),
        Settings(certificate=policy),
    ),
    st.lists(st.none() | st.sampled_from(given_answers), min_size=1, max_size=4),
    st.lists(st.tuples(texts, texts), max_size=2),
    st.sampled_from(POLICIES),
)
golds = st.lists(st.sampled_from([*given_answers[:6], *given_answers[8:], "Oslo Paris", "The"]), min_size=1, max_size=2)


def case(answers: list[str | None], text: str, policy: Policy = "folded") -> Case:
    return Case(Question("Q", "retrieval", tuple(answers), (), (Passage("", text),)), Settings(certificate=policy))


def judges(one: Case) -> list[Reply]:
    return [SILENT, *(Verdict(index) for index, key in enumerate(one.vote.classes) if key is not None)]


def repairs(one: Case) -> list[Reply]:
    return [SILENT, *map(Repair, dict.fromkeys(spans(one)))]


def spans(one: Case) -> Iterator[str]:
    """Every run of characters of the evidence."""
    for passage in one.question.passages:
        for source in (passage.title, passage.text):
            for first in range(len(source)):
                yield from (source[first:end] for end in range(first + 1, len(source) + 1))


def shipped(one: Case, rule: str, judge: Reply, repair: Reply) -> str | None:
    replies: dict[Any, Reply] = {"judge": judge, "repairer": repair, "deriver": SILENT}
    answer: str | None = drive(one.rule(rule)(one), replies.__getitem__).answer
    return answer


@given(cases, golds)
@example(case(["US", "US", "Rome"], "Yes U.S. -"), ["US"])  # no single word is wrong, but "Yes U.S." is
@example(case([None], "Paris,", "substring"), ["The"])  # the comma alone is as right as nothing
@example(case(["Rome"], "a b"), ["The"])  # the normalisation leaves nothing of this gold answer, nor of "a"
@example(case([None], "the the <b> n\u200bo", "token"), ["no"])
@example(case([None], "no the", "token"), ["no"])  # no certificate applies to "no"
@example(case(["Rome"], "a, the no"), ["no"])  # "the no" is in the class of "no"
@example(case(["Rome"], "A, no"), ["no"])
@example(case(["Rome"], "he told us the truth"), ["US"])  # "us" is not a name, "us the" counts as one
@example(case([None], "(a) the"), ["an"])
@example(case(["Rome"], "Oslo the, a Paris"), ["Oslo Paris"])
@example(case(["Rome"], "Oslo"), [r"\boxed{Oslo}"])
@example(case(["Rome"], "Os\u200blo"), ["Oslo"])
@example(case(["Rome"], "AT&amp;T, <i>AT</i>"), ["AT&T"])
@example(case([None, "x", "Rome"], "<b> \\%-no <b>", "substring"), ["x"])  # "<b>" shows nothing and does not ship
@example(case(["Rome"], "A Paris-based firm"), ["Paris"])
@example(case(["Oslo"], "1967\u20131970", "token"), ["1970"])
@example(case([None], "T.H.E", "token"), ["A"])
@example(case(["7"], "a - 7"), ["-7"])
@example(case(["US"], "Oslo", "substring"), ["US", "Oslo"])  # the word is right, and a character of it is not
def test_the_bound_is_what_every_judge_and_every_span_give(one: Case, gold: list[str]) -> None:
    def correct(answer: str | None) -> bool:
        return exact_match(answer, gold)

    pairs = product(judges(one), repairs(one))
    results = {correct(shipped(one, "eldgr", *pair)) for pair in pairs}
    answers = answers_over_any(one.rule("eldgr"), one, spans=extreme_spans(one, gold, correct))
    assert ends_of(answers, correct) == (min(results), max(results))
    for rule in RULES:
        judged = {correct(shipped(one, rule, judge, SILENT)) for judge in judges(one)}
        assert ends_of(answers_over_any(one.rule(rule), one), correct) == (min(judged), max(judged))


@given(cases)
@example(case(["Rome", "Rome", "Oslo"], "Oslo, Paris"))
@example(case([None], "yes no"))
@example(case(["Rome", "Rome", "Oslo"], "Oslo"))  # a repair that the certified majority ships anyway
def test_a_role_can_change_what_ships_where_two_of_its_replies_lead_to_two_answers(one: Case) -> None:
    for rule in (*RULES, "near(0)", "near(1)"):
        by_judge = {shipped(one, rule, judge, SILENT) for judge in judges(one)}
        by_repairer = {shipped(one, rule, SILENT, repair) for repair in repairs(one)}
        assert bounds.differ(one, answers_over_any(one.rule(rule), one)) == differ(one, by_judge)
        assert sways(one.rule(rule), one, "repairer") == differ(one, by_repairer)


def differ(one: Case, answers: set[str | None]) -> bool:
    return any(a is None or not one.same(a, b) for a, b in product(answers, answers) if a != b)


def rows(*golds: list[str], task: str = "retrieval") -> Iterator[Row]:
    for number, gold in enumerate(golds):
        candidates = [{"answer": answer} for answer in (("Nice", "Nice", "Paris") if task == "retrieval" else "112")]
        evidence = [{"text": "Lyon lies on the Rhone, Paris on the Seine."}]
        yield Row.model_validate(
            {"id": f"q{number}", "question": "?", "task": task, "candidates": candidates, "evidence": evidence}
            | {"gold": gold}
        )


def test_without_gold_answers_it_says_what_roles_can_change_and_nothing_of_accuracy() -> None:
    result = pool_authority(rows([], []), "retrieval")
    assert (result["n"], result["n_scored"]) == (2, 0)
    assert set(result["bounds"].values()) == set(result["bounds_any_span"].values()) == {None}
    assert result["can_change"] == {
        "first": {"judge": 0.0, "repairer": 0.0},
        "majority": {"judge": 0.0, "repairer": 0.0},
        "certified": {"judge": 0.0, "repairer": 0.0},
        "judge": {"judge": 100.0, "repairer": 0.0},
        "eldgr": {"judge": 100.0, "repairer": 100.0},
    }


def test_bounds_are_over_the_questions_with_gold_answers_and_changes_over_all() -> None:
    result = pool_authority(rows(["Paris"], ["Lyon"], [], []), "retrieval")
    assert (result["n"], result["n_scored"]) == (4, 2)
    assert (result["bounds"]["eldgr"], result["bounds_any_span"]["eldgr"]) == ([0.0, 50.0], [0.0, 100.0])
    assert result["can_change"]["judge"]["judge"] == 100.0


def test_no_question_has_no_percentage() -> None:
    result = pool_authority(iter([]), "retrieval")
    assert (result["n"], result["can_change"]["eldgr"]["judge"]) == (0, None)


def test_in_arithmetic_judges_leave_a_point_and_derivers_do_not() -> None:
    settings = Settings(derivation="executed")
    result: Any = pool_authority(rows(["1"], ["2"], task="arithmetic"), "arithmetic", settings)
    assert result["bounds"]["eldgr"] == result["bounds"]["majority"] == [50.0, 50.0]
    assert result["bounds"]["judge"] == result["bounds_any_deriver"]["eldgr"] == [0.0, 100.0]
    assert result["bounds_any_deriver"]["majority"] == [50.0, 50.0]
    assert set(result["bounds_any_span"].values()) == {None}
    assert result["can_change"]["eldgr"] == {"judge": 0.0, "deriver": 100.0}
    assert result["can_change"]["judge"] == {"judge": 100.0, "deriver": 0.0}
    assert result["price"]["eldgr"] == result["price"]["judge"]


def test_where_no_number_is_within_reach_no_deriver_changes_anything() -> None:
    """The questions of these rows state no quantity."""
    result: Any = pool_authority(rows(["1"], ["2"], task="arithmetic"), "arithmetic")
    assert result["bounds_any_deriver"]["eldgr"] == [50.0, 50.0]
    assert result["can_change"]["eldgr"]["deriver"] == 0.0


def test_settings_of_the_rule_matter() -> None:
    one_class = [{"answer": "Nice"}, {"answer": "nice"}]
    row = next(rows(["Paris"])).model_dump() | {"candidates": one_class}
    expected: dict[Homogeneous, float] = {"skip": 0.0, "repair": 100.0}
    for homogeneous, percentage in expected.items():
        result = pool_authority([Row.model_validate(row)], "retrieval", Settings(homogeneous=homogeneous))
        assert result["can_change"]["eldgr"]["repairer"] == percentage


def of_pool(path: Path, **settings: Any) -> Any:
    pool = open_pool(path)
    return pool_authority(pool.rows(), pool.task, Settings(**settings))


@pytest.mark.parametrize("name", ["demo-retrieval", "demo-arithmetic"])
@pytest.mark.parametrize("certificate", POLICIES)
def test_an_interval_is_no_wider_than_the_share_of_questions_that_a_judge_can_change(
    name: str, certificate: str
) -> None:
    result = of_pool(ARTIFACTS / f"{name}.jsonl", certificate=certificate)
    for rule, (worst, best) in result["bounds"].items():
        assert best - worst <= result["can_change"][rule]["judge"] + 1e-9


def test_the_reference_values(pools_dir: Path) -> None:
    pool = open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz")
    result = pool_authority(pool.rows(), pool.task, rules=tuple(RULES))
    assert result["bounds"] == {
        "first": [32.0, 32.0],
        "majority": [58.0, 58.0],
        "certified": [62.0, 62.0],
        "judge": [14.0, 78.0],
        "eldgr": [58.0, 69.0],
        "eldgr_certified": [58.0, 69.0],
        "support": [58.0, 69.0],
    }
    assert (result["bounds_any_span"]["eldgr"], result["bounds_any_span"]["majority"]) == ([58.0, 81.0], [58.0, 58.0])
    assert result["can_change"]["eldgr"] == {"judge": 20.0, "repairer": 23.0}
    assert result["can_change"]["judge"] == {"judge": 86.0, "repairer": 0.0}
