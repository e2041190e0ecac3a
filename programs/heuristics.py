"""The three roles without an LM, so that the main job runs anywhere: it compares words and executes equations.

Each is an ordinary module with the inputs and outputs of the LM-backed role of its name, and can stand in its place.
They are a floor, and an LM that cannot beat them is not worth its calls. They understand nothing, call no LM, hold no
state, and never see a gold answer. What they do on the real pools is printed by `python -m benchmarks.heuristics`.
"""

from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.lexical import Support, support
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.spans import best_span, kind_asked

_SILENCE = "the embedded deriver has nothing to say"


class LexicalJudge(dspy.Module):
    """Prefers the candidate that the words of the evidence support best, or, without evidence, its own equations."""

    def forward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Return `assessments`, `preferred` and `judge_rationale`; abstain where there is nothing to measure by.

        Aspects that words cannot measure are None. The highest scalar is preferred; ties go to the earliest.
        """
        return _judged(question, evidence, candidates)

    async def aforward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Do what `forward` does; it waits for nothing."""
        return _judged(question, evidence, candidates)

    def most_calls(self, candidates: Sequence[str]) -> int:
        """No call: it has no LM."""
        return 0


def _judged(question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
    if not candidates:
        return dspy.Prediction(abstained="there is no candidate to judge")
    found = support(question, evidence, candidates)
    if found is None:
        return dspy.Prediction(abstained="there is no evidence, and no candidate states an equation")
    scalars = [one.scalar for one in found]
    preferred = scalars.index(max(scalars))
    return dspy.Prediction(
        assessments=[_assessment(one) for one in found],
        preferred=preferred,
        judge_rationale=f"highest support by words and equations alone, {scalars[preferred]:.3f}; no LM was asked",
    )


def _assessment(found: Support) -> dict[str, float | None]:
    unmeasured = dict.fromkeys(("epist", "info", "adv", "min"))
    return {"logic": found.logic, "fact": found.fact, "triang": found.triang, **unmeasured, "scalar": found.scalar}


class ExtractiveRepairer(dspy.Module):
    """Copies from the evidence the span whose shape and neighbouring words suit the question best."""

    def forward(self, *, question: str, evidence: Sequence[str]) -> dspy.Prediction:
        """Return `repaired_answer`, a slice of one passage's title or text, and `repair_passage`; or abstain."""
        return _repaired(question, evidence)

    async def aforward(self, *, question: str, evidence: Sequence[str]) -> dspy.Prediction:
        """Do what `forward` does; it waits for nothing."""
        return _repaired(question, evidence)

    def most_calls(self, candidates: Sequence[str]) -> int:
        """No call: it has no LM."""
        return 0


def _repaired(question: str, evidence: Sequence[str]) -> dspy.Prediction:
    span = best_span(question, evidence)
    if span is not None:
        return dspy.Prediction(repaired_answer=span.text, repair_passage=span.passage)
    if kind_asked(question) == "choice":
        return dspy.Prediction(abstained="no span answers a question for yes, no or one of its own words")
    return dspy.Prediction(abstained="no span of the shape asked for stands near words of the question")


class SilentDeriver(dspy.Module):
    """Derives nothing: words alone give no derivation, and a made-up one would be worse than none."""

    def forward(self, *, question: str) -> dspy.Prediction:
        """Abstain, whatever the question."""
        return dspy.Prediction(abstained=_SILENCE)

    async def aforward(self, *, question: str) -> dspy.Prediction:
        """Abstain, whatever the question."""
        return dspy.Prediction(abstained=_SILENCE)

    def most_calls(self, candidates: Sequence[str]) -> int:
        """No call: it has no LM."""
        return 0


def heuristic_selector(**settings: Any) -> Selector:
    """Return a selector whose three roles are the embedded ones; `settings` are those of `Selector`."""
    selector = Selector(**settings)
    selector.judge, selector.deriver, selector.repairer = LexicalJudge(), SilentDeriver(), ExtractiveRepairer()
    return selector
