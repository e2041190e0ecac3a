"""Feedback says what came of each role's reply; by it optimizers teach judges of every kind, and the laws hold."""

import functools
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy import signatures
from eldgr_dspy.formats.rows import CandidateRow, Row
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.heuristics import SilentDeriver, heuristic_selector
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.judges import PairwiseJudge, PointwiseJudge, SliceJudge, SwapConsistent
from eldgr_dspy.programs.metrics import examples_of, role_of_predictor, selection_feedback, selection_score
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.samples import with_completions
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.voting import majority
from tests.case_tables import each_case
from tests.public_strategies import questions
from tests.scenes import CONTESTED, DERIVATION, PENS, SILENT, WORDS, in_style, repair, verdict
from tests.selecting import Program, example_of, inputs_of, selector_of, shipped_lawfully

KNACK = "Follow the passages."
JUDGES: dict[str, Callable[[], Any]] = {
    "plain": Judge,
    "swapped": lambda: SwapConsistent(Judge()),
    "pairwise": PairwiseJudge,
    "pointwise": PointwiseJudge,
    "slices": SliceJudge,
}
each_judge = pytest.mark.parametrize("kind", JUDGES)


def selector_with(kind: str, **options: Any) -> Selector:
    select = Selector(consult="always", **options)
    select.judge, select.deriver = JUDGES[kind](), SilentDeriver()
    return select


def examples(n: int, inputs: dict[str, Any] = CONTESTED, gold: str = "Doha") -> list[dspy.Example]:
    return [example_of({**inputs, "question": f"{number}. {inputs['question']}"}, gold=[gold]) for number in range(n)]


def teachable(request: Any) -> Any:
    """Prefers Doha, in whatever way it is asked, once its instructions have the knack; before that, Dubai."""
    has_knack = KNACK in text_of(request)
    if role_of(request) == "deriver":
        return {**DERIVATION, "derived_answer": "36" if has_knack else "1", "derivation_steps": []}
    goal = "Doha" if has_knack else "Dubai"
    texts = re.split("<(?:candidate|slice) ", request.messages[-1].text or "")[1:]
    index = next((index for index, one in enumerate(texts) if goal in one), 0)
    return in_style(request, index, float(bool(texts) and goal in texts[0]))


def rewrite(
    select: Any, reply: Callable[[Any], Any] = teachable, inputs: Any = CONTESTED, gold: str = "Doha", **options: Any
) -> tuple[Any, ScriptedLM]:
    """The program compiled by GEPA, and the LM that wrote its instructions."""
    reflection = scripted_lm(lambda _: {"new_instruction": KNACK})
    arguments = {"max_metric_calls": 30, "num_threads": 1, "seed": 0, "reflection_minibatch_size": 2, **options}
    optimizer: Any = dspy.GEPA(metric=selection_feedback, reflection_lm=reflection, **arguments)
    with dspy.context(lm=scripted_lm(reply)):
        program = optimizer.compile(select, trainset=examples(4, inputs, gold), valset=examples(2, inputs, gold))
    return program, reflection


def instructions_of(module: Any) -> list[str]:
    return [predictor.signature.instructions for predictor in module.predictors()]


@functools.cache
def compiled_of(kind: str) -> tuple[Selector, str]:
    """The selector with such a judge that GEPA has compiled, and all that its LM was shown."""
    select, reflection = rewrite(selector_with(kind))
    return select, "".join(map(text_of, reflection.requests))


@each_judge
def test_gepa_rewrites_a_judge_by_the_feedback_and_it_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    program, prompt = compiled_of(kind)
    assert instructions_of(program.judge) == [KNACK]
    program.save(tmp_path / "compiled.json")
    twin = selector_with(kind)
    twin.load(tmp_path / "compiled.json")
    for select in (program, twin):
        with dspy.context(lm=scripted_lm(teachable)):
            pred = select(**CONTESTED)
        assert (pred.answer, pred.branch, select.settings) == ("Doha", "judge", Settings(consult="always"))
    assert "is wrong; candidate 2 is right. It did not override: it is consensus's own." in prompt


def test_gepa_rewrites_the_deriver_of_a_nested_selector() -> None:
    """It fails on a predictor that is never asked, as the judge's is here: there is no trace to reflect upon."""
    program = Program()
    program.select = Selector(answer="number", derivation="stated", timeout=60)
    result, _ = rewrite(program, inputs=PENS, gold="36")
    assert instructions_of(result) == [KNACK]
    with dspy.context(lm=scripted_lm(teachable)):
        assert result(**PENS).answer == "36"


# A knockout continues without the comparison.
@pytest.mark.parametrize("kind", ["plain", "swapped", "pointwise", "slices"])
def test_gepa_learns_from_replies_that_cannot_be_parsed_if_they_are_raised(kind: str) -> None:
    """One that the selector takes for silence leaves DSPy no trace of the call, hence nothing to reflect upon."""

    def reply(request: Any) -> Any:
        fields = request.config.response_format["schema"]["properties"]
        return teachable(request) if KNACK in text_of(request) or "repaired_answer" in fields else "It is Dubai."

    options: dict[str, Any] = {"add_format_failure_as_feedback": True}
    program, reflection = rewrite(selector_with(kind, on_error="raise"), reply, **options)
    assert instructions_of(program.judge) == [KNACK]
    assert "It is Dubai." in text_of(reflection.requests[0])


@each_judge
def test_bootstrapping_teaches_from_right_answers_alone(kind: str) -> None:
    wrong = examples(2, {**CONTESTED, "question": "Which town?"}, "Lusail")
    select: Any = selector_with(kind)
    for predictor in select.judge.predictors():
        predictor.signature = predictor.signature.with_instructions(KNACK)
    optimizer = dspy.BootstrapFewShot(metric=selection_score, max_bootstrapped_demos=4, max_labeled_demos=0)
    with dspy.context(lm=scripted_lm(teachable)):
        program: Any = optimizer.compile(select, trainset=[*wrong, *examples(2)])
    demos = [demo for predictor in program.judge.predictors() for demo in predictor.demos]
    assert len(demos) == 2
    assert not any("Which town?" in demo["question"] for demo in demos)


@each_judge
@settings(max_examples=20, deadline=None)
@given(question=questions("retrieval"), whim=st.integers(0, 3), span=st.sampled_from(("", "Paris", "1976")))
def test_no_optimizer_breaks_a_law(kind: str, question: Question, whim: int, span: str) -> None:
    with dspy.context(lm=scripted_lm(lambda request: in_style(request, whim, whim / 3, span=span))):
        pred = compiled_of(kind)[0](**inputs_of(question))
    shipped_lawfully(pred, question, Settings(consult="always"))


POOLS = Path(__file__).resolve().parents[2] / "artifacts"
DOHA = example_of(CONTESTED, gold=["Doha"])
UNREADABLE = {"abstained": "unparsable: The reply is not exactly one JSON object"}
NAMES: dict[str, Any] = {"UNREADABLE": UNREADABLE, "SILENT": SILENT}


def feedback(pred: Any, predictor: str | None, gold: dspy.Example = DOHA) -> str:
    text: str = selection_feedback(gold, pred, None, predictor, None).feedback
    return text


def prediction(judge: Any = UNREADABLE, repairer: Any = SILENT, **inputs: Any) -> Any:
    return selector_of(judge, repairer, consult="always")(**{**CONTESTED, **inputs})


@each_case("selector", "feedback about a role", **WORDS, name=NAMES.get)
def test_feedback_is_about_the_role_that_it_is_for(judge: Any, repairer: Any, role: str, message: str) -> None:
    text = feedback(prediction(judge, repairer), f"{role}.predict")
    assert message in text
    others = {"judge", "repairer", "deriver"} - {role}
    assert not any(f"The {role} " in text or f"The {role}'s" in text for role in others)


@each_case("selector", "openings of feedback", **WORDS, name=NAMES.get)
def test_feedback_opens_with_what_shipped(judge: Any, candidates: list[Any], gold: Any, message: str) -> None:
    for predictor in (None, "judge.predict", "another.predict"):
        pred = prediction(judge, candidates=candidates)
        assert feedback(pred, predictor, example_of(CONTESTED, gold=gold)).startswith(message)


@each_case("selector", "why a preference did not override")
def test_feedback_says_why_a_preference_did_not_override(candidates: list[str], preferred: int, why: str) -> None:
    gold = example_of({**CONTESTED, "candidates": candidates}, gold="Lusail")
    text = feedback(prediction(verdict(preferred), candidates=candidates), "judge.predict", gold)
    assert f"It did not override: {why}." in text
    assert "which is wrong; no candidate is right." in text


def test_a_derivation_that_was_not_accepted_comes_with_its_reason_and_options_are_scored_by_letter_or_text() -> None:
    gold = example_of(PENS, gold=["36"])
    right = selector_of(deriver=DERIVATION)(**PENS)
    assert "The deriver gave '36', which is right." in feedback(right, "deriver.predict", gold)
    wrong = selector_of(deriver={**DERIVATION, "consistency_check": "36 = 36"})(**PENS)
    assert "It did not override: the derivation is not accepted: " in feedback(wrong, "deriver.predict", gold)
    assert selection_score(gold, right) is True
    assert selection_score(gold, wrong) is False
    judges = ("judge.predict", "select.judge.judge.predict")
    names = [*judges, "select.repairer.predict", "judges.predict", "respond.predict"]
    assert [*map(role_of_predictor, names)] == ["judge", "judge", "repairer", None, None]
    select = heuristic_selector(answer="choice")
    examples = {gold.id: gold for gold in examples_of(open_pool(POOLS / "demo-choice.jsonl").rows())}
    preds = {id_: select(**gold.inputs()) for id_, gold in examples.items()}
    right = [id_ for id_, gold in examples.items() if selection_score(gold, preds[id_])]
    assert (len(right), preds["c10"].answer, examples["c10"].gold) == (10, "D", ["Group O"])
    reply = selection_feedback(examples["c11"], preds["c11"], None, "judge.predict").feedback
    assert "The judge preferred candidate 3, which is right." in reply


def test_the_score_is_the_same_for_every_predictor_and_without_a_decision_that_of_the_answer() -> None:
    """Otherwise GEPA warns and takes the program's. Feedback for the program speaks of every role."""
    for predictor, gold in product((None, "judge.predict", "select.repairer.predict", "x"), ("Doha", "Dubai")):
        example, pred = example_of(CONTESTED, gold=gold), prediction(verdict(2), repair("Doha"))
        result = selection_feedback(example, pred, None, predictor, None)
        assert result.score == float(selection_score(example, pred)) == float(gold == "Doha")
        assert predictor or all(f"The {role}" in result.feedback for role in ("judge", "repairer", "deriver"))
    assert feedback(dspy.Prediction(answer="Doha"), None).startswith("The answer 'Doha' shipped, and it is right.")
    assert feedback(dspy.Prediction(answer="Doha"), "judge.predict").endswith("and it is right.")  # asked or not?
    assert not any(selection_score(DOHA, dspy.Prediction(**of)) for of in ({}, {"answer": object()}))
    for answer, golds in ((52, (52, "52", [51, 52.0], {52})), (True, (True,)), (["Ann"], ([["Ann"]],)), (0, (0,))):
        assert all(selection_score(dspy.Example(gold=gold), dspy.Prediction(answer=answer)) for gold in golds)
    cities = [dspy.Prediction(draft=city[:1], city=city) for city in ("Dubai", "Doha")]
    samples = with_completions({**prediction(verdict(2)).toDict(), "preference": 1}, cities, 1)
    assert "which is right" in feedback(samples, "judge.predict", dspy.Example(question="?", gold="Doha"))
    # Pinned, for it is why there are two metrics: a prediction with the score 0.0 is true.
    assert bool(selection_feedback(DOHA, prediction())) is True
    assert selection_score(DOHA, prediction()) is False


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_examples_are_the_questions_of_the_pool(pool: str) -> None:
    """No label has the name of an output: optimizers would show it as a demonstration of the role."""
    rows = list(open_pool(POOLS / f"{pool}.jsonl").rows())
    examples = examples_of(rows)
    assert [one.id for one in examples] == [row.id for row in rows]
    for row, one in zip(rows, examples, strict=True):
        result, expected = to_question(**one.inputs(), answer=row.task, answer_field="answer"), row.to_question()
        assert majority(result.answers, row.task) == majority(expected.answers, row.task)
        assert (result.text, result.passages, one.gold) == (expected.text, expected.passages, row.gold)
    bare = Row(id="a", question="q", task="retrieval", candidates=[CandidateRow(text="", answer="x", source=None)])
    assert examples_of([bare]) == []  # it has no gold answer
    kinds = [getattr(signatures, name) for name in signatures.__all__]
    outputs = {name for kind in kinds for name in getattr(kind, "output_fields", ())}
    assert not outputs & set(examples[0].labels().keys())
