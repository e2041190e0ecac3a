"""A score is that of the answer that ships; feedback says what came of each role's reply, and what was right."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import CandidateRow, Row
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.metrics import examples_of, role_of_predictor, selection_feedback, selection_score
from eldgr_dspy.rule.voting import majority
from tests.selecting import CONTESTED, DERIVATION, PENS, SETTLED, SILENT, example_of, repair, selector_of, verdict

POOLS = Path(__file__).resolve().parents[2] / "artifacts"
DOHA = example_of(CONTESTED, gold=["Doha"])
UNPARSED = {"abstained": "unparsable: The reply is not exactly one JSON object"}


def feedback(pred: Any, predictor: str | None, gold: dspy.Example = DOHA) -> str:
    text: str = selection_feedback(gold, pred, None, predictor, None).feedback
    return text


def selected(judge: Any = UNPARSED, repairer: Any = SILENT, **inputs: Any) -> Any:
    return selector_of(judge, repairer, consult="always")(**{**CONTESTED, **inputs})


@pytest.mark.parametrize(
    ("judge", "repairer", "predictor", "message"),
    [
        (verdict(2), SILENT, "judge.predict", "The judge preferred candidate 2, which is right."),
        (verdict(0), SILENT, "judge.predict", "candidate 0, which is wrong; candidate 2 is right."),
        (verdict(0), SILENT, "judge.predict", "It did not override: it is consensus's own."),
        (UNPARSED, SILENT, "judge.predict",
         "The judge's reply did not count: unparsable: The reply is not exactly"),
        (verdict(7), SILENT, "judge.predict", "did not count: preferred=7 is not a whole number from 0 to 2"),
        (verdict(0), repair("Doha"), "repairer.predict", "The repairer gave 'Doha', which is right."),
        (verdict(0), repair("Persian Gulf", 1), "repairer.predict", "gave 'Persian Gulf', which is wrong."),
        (verdict(2), repair("Doha"), "repairer.predict",
         "It did not override: a certified preference comes before it."),
        (verdict(0), repair("Lusail"), "repairer.predict", "It did not override: it carries no certificate."),
        (verdict(2), SILENT, "repairer.predict", "The repairer's reply did not count: no span."),
        (verdict(2), SILENT, "deriver.predict", "The deriver was not asked"),
    ],
)  # fmt: skip
def test_feedback_is_about_the_role_that_it_is_for(judge: Any, repairer: Any, predictor: str, message: str) -> None:
    text = feedback(selected(judge, repairer), predictor)
    assert message in text
    others = {"judge", "repairer", "deriver"} - {role_of_predictor(predictor)}
    assert not any(f"The {role} " in text or f"The {role}'s" in text for role in others)


AS_IT_IS = CONTESTED["candidates"]
OPENINGS: list[tuple[Any, list[Any], Any, str]] = [
    (verdict(2), AS_IT_IS, "Doha", "The answer 'Doha' shipped (branch judge, certified), and it is right."),
    (
        verdict(0),
        AS_IT_IS,
        "Doha",
        "The answer 'Dubai' shipped (branch consensus, uncertified), and it is wrong; the right answer is 'Doha'.",
    ),
    (UNPARSED, [None, ""], "Doha", "No answer shipped (branch consensus, uncertified)"),
    (
        UNPARSED,
        ["no", "no", "yes"],
        ["yes", "true"],
        "The answer 'no' shipped (branch consensus, to which no certificate applies), and it is wrong; the right "
        "answer is 'yes' or 'true'.",
    ),
]


@pytest.mark.parametrize(("judge", "candidates", "gold", "message"), OPENINGS)
def test_feedback_opens_with_what_shipped(judge: Any, candidates: list[Any], gold: Any, message: str) -> None:
    for predictor in (None, "judge.predict", "another.predict"):
        pred = selected(judge, candidates=candidates)
        assert feedback(pred, predictor, example_of(CONTESTED, gold=gold)).startswith(message)


@pytest.mark.parametrize(
    ("candidates", "preferred", "why"),
    [
        (["Doha", "Doha", "Qatar"], 2, "consensus is certified"),
        (["yes", "yes", "Doha"], 2, "consensus is a yes or no or a refusal, and final"),
        (["Dubai", "Dubai", "Manama"], 2, "it carries no certificate"),
    ],
)
def test_feedback_says_why_a_preference_did_not_override(candidates: list[str], preferred: int, why: str) -> None:
    gold = example_of({**CONTESTED, "candidates": candidates}, gold="Lusail")
    text = feedback(selected(verdict(preferred), candidates=candidates), "judge.predict", gold)
    assert f"It did not override: {why}." in text
    assert "which is wrong; no candidate is right." in text


def test_feedback_for_the_program_speaks_of_every_role() -> None:
    text = feedback(selected(verdict(2), repair("Doha")), None)
    assert all(f"The {role}" in text for role in ("judge", "repairer", "deriver"))


def test_a_derivation_that_was_not_accepted_comes_with_its_reason() -> None:
    gold = example_of(PENS, gold=["36"])
    right = selector_of(deriver=DERIVATION)(**PENS)
    assert "The deriver gave '36', which is right." in feedback(right, "deriver.predict", gold)
    wrong = selector_of(deriver={**DERIVATION, "consistency_check": "36 = 36"})(**PENS)
    assert "It did not override: the derivation is not accepted: " in feedback(wrong, "deriver.predict", gold)
    assert selection_score(gold, right) is True
    assert selection_score(gold, wrong) is False


@given(st.sampled_from([None, "judge.predict", "select.repairer.predict", "x"]), st.sampled_from(["Doha", "Dubai"]))
def test_the_score_is_the_same_for_every_predictor(predictor: str | None, gold: str) -> None:
    """Otherwise GEPA warns and takes the program's."""
    example, pred = example_of(CONTESTED, gold=gold), selected(verdict(2))
    result = selection_feedback(example, pred, None, predictor, None)
    assert result.score == float(selection_score(example, pred)) == float(gold == "Doha")


def test_a_yes_is_not_a_prediction_to_an_optimizer_that_asks_yes_or_no() -> None:
    """Pinned, for it is why there are two metrics: a prediction with the score 0.0 is true."""
    assert bool(selection_feedback(DOHA, selected())) is True
    assert selection_score(DOHA, selected()) is False


def test_a_prediction_without_a_decision_is_scored_by_its_answer() -> None:
    assert feedback(dspy.Prediction(answer="Doha"), None).startswith("The answer 'Doha' shipped, and it is right.")
    assert feedback(dspy.Prediction(answer="Doha"), "judge.predict").endswith("and it is right.")  # asked or not?
    assert selection_score(DOHA, dspy.Prediction()) is False


@pytest.mark.parametrize("gold", [None, [], ""])
def test_an_example_without_a_gold_answer_is_refused(gold: Any) -> None:
    with pytest.raises(ArgumentError, match=r"gold of an example must be an answer or a list of answers, .*; got "):
        selection_score(example_of(SETTLED, gold=gold), dspy.Prediction(answer="x"))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("judge.predict", "judge"),
        ("select.judge.judge.predict", "judge"),
        ("select.repairer.predict", "repairer"),
        ("judges.predict", None),
        ("respond.predict", None),
    ],
)
def test_a_predictor_plays_the_role_that_its_path_names(name: str, role: str | None) -> None:
    assert role_of_predictor(name) == role


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_examples_are_the_questions_of_the_pool(pool: str) -> None:
    rows = list(open_pool(POOLS / f"{pool}.jsonl").rows())
    examples = examples_of(rows)
    assert [one.id for one in examples] == [row.id for row in rows]
    for row, one in zip(rows, examples, strict=True):
        result, expected = to_question(**one.inputs(), answer=row.task, answer_field="answer"), row.to_question()
        assert majority(result.answers, row.task) == majority(expected.answers, row.task)
        assert (result.text, result.passages, one.gold) == (expected.text, expected.passages, row.gold)
    bare = Row(id="a", question="q", task="retrieval", candidates=[CandidateRow(text="", answer="x", source=None)])
    assert examples_of([bare]) == []  # it has no gold answer


def test_no_label_has_the_name_of_an_output() -> None:
    """Optimizers would show it as a demonstration of the role."""
    from eldgr_dspy import signatures

    (first, *_) = examples_of(open_pool(POOLS / "demo-retrieval.jsonl").rows(1))
    kinds = [getattr(signatures, name) for name in signatures.__all__]
    outputs = {name for kind in kinds for name in getattr(kind, "output_fields", ())}
    assert not outputs & set(first.labels().keys())


def test_letters_and_texts_of_an_option_are_scored_alike() -> None:
    select = heuristic_selector(answer="choice")
    examples = {gold.id: gold for gold in examples_of(open_pool(POOLS / "demo-choice.jsonl").rows())}
    preds = {id_: select(**gold.inputs()) for id_, gold in examples.items()}
    right = [id_ for id_, gold in examples.items() if selection_score(gold, preds[id_])]
    assert (len(right), preds["c10"].answer, examples["c10"].gold) == (10, "D", ["Group O"])
    reply = selection_feedback(examples["c11"], preds["c11"], None, "judge.predict").feedback
    assert "The judge preferred candidate 3, which is right." in reply
