"""Optimizers rewrite and teach judges of every kind by the shipped metrics, and what comes out keeps the laws."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.heuristics import SilentDeriver
from eldgr_dspy.programs.judges import PairwiseJudge, PointwiseJudge, SliceJudge, SwapConsistent
from eldgr_dspy.programs.metrics import selection_feedback, selection_score
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Question, Settings
from tests.public_strategies import questions
from tests.selecting import CONTESTED, DERIVATION, PENS, Program, example_of, in_style, inputs_of, shipped_lawfully

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
    wanted = "Doha" if has_knack else "Dubai"
    shown = re.split("<(?:candidate|slice) ", request.messages[-1].text or "")[1:]
    index = next((index for index, one in enumerate(shown) if wanted in one), 0)
    return in_style(request, index, float(bool(shown) and wanted in shown[0]))


def rewritten(
    select: Any, reply: Callable[[Any], Any] = teachable, inputs: Any = CONTESTED, gold: str = "Doha", **options: Any
) -> tuple[Any, ScriptedLM]:
    """The program compiled by GEPA, and the LM that wrote its instructions."""
    reflection = scripted_lm(lambda _: {"new_instruction": KNACK})
    chosen = {"max_metric_calls": 30, "num_threads": 1, "seed": 0, "reflection_minibatch_size": 2, **options}
    optimizer: Any = dspy.GEPA(metric=selection_feedback, reflection_lm=reflection, **chosen)
    with dspy.context(lm=scripted_lm(reply)):
        compiled = optimizer.compile(select, trainset=examples(4, inputs, gold), valset=examples(2, inputs, gold))
    return compiled, reflection


def predictors_of(module: dspy.Module) -> list[Any]:
    return [predictor for _, predictor in module.named_predictors()]


def instructions_of(module: dspy.Module) -> list[str]:
    return [predictor.signature.instructions for predictor in predictors_of(module)]


@each_judge
def test_gepa_rewrites_a_judge_by_the_feedback_and_it_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    compiled, reflection = rewritten(selector_with(kind))
    assert instructions_of(compiled.judge) == [KNACK]
    compiled.save(tmp_path / "compiled.json")
    loaded = selector_with(kind)
    loaded.load(tmp_path / "compiled.json")
    for select in (compiled, loaded):
        with dspy.context(lm=scripted_lm(teachable)):
            pred = select(**CONTESTED)
        assert (pred.answer, pred.branch, select.settings) == ("Doha", "judge", Settings(consult="always"))
    told = "".join(map(text_of, reflection.requests))
    assert "is wrong; candidate 2 is right. It did not override: it is consensus's own." in told


def test_gepa_rewrites_the_deriver_of_a_nested_selector() -> None:
    """It fails on a predictor that is never asked, as the judge's is here: there is no trace to reflect upon."""
    program = Program()
    program.select = Selector(answer="number", derivation="stated", timeout=60)
    compiled, _ = rewritten(program, inputs=PENS, gold="36")
    assert instructions_of(compiled) == [KNACK]
    with dspy.context(lm=scripted_lm(teachable)):
        assert compiled(**PENS).answer == "36"


# A knockout continues without the comparison.
@pytest.mark.parametrize("kind", ["plain", "swapped", "pointwise", "slices"])
def test_gepa_learns_from_replies_that_cannot_be_parsed_if_they_are_raised(kind: str) -> None:
    """One that the selector takes for silence leaves DSPy no trace of the call, hence nothing to reflect upon."""

    def reply(request: Any) -> Any:
        asked = request.config.response_format["schema"]["properties"]
        return teachable(request) if KNACK in text_of(request) or "repaired_answer" in asked else "It is Dubai."

    options: dict[str, Any] = {"add_format_failure_as_feedback": True}
    compiled, reflection = rewritten(selector_with(kind, on_error="raise"), reply, **options)
    assert instructions_of(compiled.judge) == [KNACK]
    assert "It is Dubai." in text_of(reflection.requests[0])


@each_judge
def test_bootstrapping_teaches_from_right_answers_alone(kind: str) -> None:
    wrong = examples(2, {**CONTESTED, "question": "Which town?"}, "Lusail")
    select = selector_with(kind)
    for predictor in predictors_of(select.judge):
        predictor.signature = predictor.signature.with_instructions(KNACK)
    optimizer = dspy.BootstrapFewShot(metric=selection_score, max_bootstrapped_demos=4, max_labeled_demos=0)
    with dspy.context(lm=scripted_lm(teachable)):
        compiled: Any = optimizer.compile(select, trainset=[*wrong, *examples(2)])
    demos = [demo for predictor in predictors_of(compiled.judge) for demo in predictor.demos]
    assert len(demos) == 2
    assert not any("Which town?" in demo["question"] for demo in demos)


@functools.cache
def compiled(kind: str) -> Selector:
    select: Selector = rewritten(selector_with(kind))[0]
    return select


@each_judge
@settings(max_examples=20, deadline=None)
@given(question=questions("retrieval"), whim=st.integers(0, 3), span=st.sampled_from(("", "Paris", "1976")))
def test_no_optimizer_breaks_a_law(kind: str, question: Question, whim: int, span: str) -> None:
    with dspy.context(lm=scripted_lm(lambda request: in_style(request, whim, whim / 3, span=span))):
        pred = compiled(kind)(**inputs_of(question))
    shipped_lawfully(pred, question, Settings(consult="always"))
