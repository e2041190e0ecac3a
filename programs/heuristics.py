"""The heuristic roles: judge, repairer and deriver without an LM. They compare words and execute equations.

Each is an ordinary module with the inputs and outputs of the LM-backed role of its name, and can replace it. They are
a floor: an LM that cannot beat them is not worth its calls. They understand nothing, call no LM, hold no state, and
never see a gold answer. `python -m benchmarks.heuristic_roles` prints their results on the real pools.
"""

from collections.abc import Sequence
from typing import Any, cast

import dspy

from eldgr_dspy.answer_types.choice import OPTIONS_BELOW
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.lexical import Support, support
from eldgr_dspy.rule.spans import best_span, kind_of_answer


class _WithoutLM(dspy.Module):
    """A role that waits for nothing."""

    asks_lm = False

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Do the same as `forward`."""
        kind: Any = type(self)  # DSPy warns of `self.forward`
        return cast(dspy.Prediction, kind.forward(self, **inputs))

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 0: it has no LM."""
        return 0


class LexicalJudge(_WithoutLM):
    """Prefers the candidate that the words of the evidence support best, or, without evidence, its own equations."""

    def forward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Return `assessments`, `preferred` and `judge_rationale`; abstain if there is nothing to measure by.

        Aspects that words cannot measure are None. The highest scalar is preferred; ties go to the earliest.
        """
        if not candidates:
            return dspy.Prediction(abstained="there is no candidate to judge")
        scores = support(_without_options(question), evidence, candidates)
        if scores is None:
            return dspy.Prediction(abstained="there is no evidence, and no candidate states an equation")
        scalars = [score.scalar for score in scores]
        preferred = scalars.index(max(scalars))
        return dspy.Prediction(
            assessments=[_assessment(score) for score in scores],
            preferred=preferred,
            judge_rationale=f"highest support by words and equations alone, {scalars[preferred]:.3f}; no LM was asked",
        )


def _without_options(question: str) -> str:
    """A question without the options below it: words of wrong options say nothing of the right one."""
    return question.partition(OPTIONS_BELOW)[0]


def _assessment(score: Support) -> dict[str, float | None]:
    rest = dict.fromkeys(("epist", "info", "adv", "min"))
    return {"logic": score.logic, "fact": score.fact, "triang": score.triang, **rest, "scalar": score.scalar}


class ExtractiveRepairer(_WithoutLM):
    """Copies from the evidence the span whose shape and neighbouring words suit the question best. No title."""

    def forward(self, *, question: str, evidence: Sequence[str]) -> dspy.Prediction:
        """Return `repaired_answer`, a slice of the text of one passage, and `repair_passage`; or abstain."""
        question = _without_options(question)
        span = best_span(question, evidence)
        if span is not None:
            return dspy.Prediction(repaired_answer=span.text, repair_passage=span.passage)
        if kind_of_answer(question) == "choice":
            return dspy.Prediction(abstained="no span answers a question for yes, no or one of its own words")
        return dspy.Prediction(abstained="no span of the shape asked for stands near words of the question")


class SilentDeriver(_WithoutLM):
    """Derives nothing: words alone give no derivation, and an invented one would be worse."""

    def forward(self, *, question: str) -> dspy.Prediction:
        """Abstain on every question."""
        return dspy.Prediction(abstained="the heuristic deriver derives nothing")


def heuristic_selector(**settings: Any) -> Selector:
    """Return a selector with the three heuristic roles; `settings` are those of `Selector`."""
    selector = Selector(**settings)
    selector.judge, selector.deriver, selector.repairer = LexicalJudge(), SilentDeriver(), ExtractiveRepairer()
    return selector
