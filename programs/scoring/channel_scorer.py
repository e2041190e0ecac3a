"""The seven channels by an LM: one call a text, or one call a channel, and the same tables as from an NLI model.

The LM states the scores itself, with no formula, except where it is not needed: `epist` is computed if token
confidences are given, and without passages nothing is compared with passages. What an LM says of a step is an opinion:
it is not a certificate, and its scale is not that of an NLI model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.formulas import adv, epist, fact, triang
from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.steps import LONGEST, Steps, split_steps, unmeasurable
from eldgr_dspy.channels.table import StepTable, score_steps
from eldgr_dspy.channels.undefined import Score, Scores, Undefined, Values
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.one_call import OneCall, Request, aask_each, ask_each
from eldgr_dspy.programs.scoring.step_fence import fence_steps
from eldgr_dspy.programs.scoring.step_replies import read_numbered
from eldgr_dspy.signatures import (
    ScoreAdv,
    ScoreEpist,
    ScoreFact,
    ScoreInfo,
    ScoreLogic,
    ScoreMin,
    ScoreSteps,
    ScoreTriang,
)
from eldgr_dspy.words import CHANNELS, Channel

MOST = 64
"""Steps of a text; one with more is not asked about, because few LMs would complete the reply."""

GROUNDED: tuple[Channel, ...] = ("fact", "epist", "triang", "adv", "min")
"""The channels that compare a step with passages."""

_Role = Channel | Literal["all_at_once"]
_OWN_NAMES: Mapping[Channel, str] = {name: name for name in CHANNELS}


class StepRole(OneCall):
    """Scores the steps of a reasoning with one LM call, as its signature asks; the fields are plain JSON values."""

    def show(self, *, question: str, evidence: Sequence[str], steps: Sequence[str]) -> dict[str, Any]:
        """Return the inputs that the signature has."""
        wanted = self.signature.input_fields
        fenced = fence_steps(question, evidence if "evidence" in wanted else (), steps)
        material = {"question": fenced.question, "evidence": fenced.evidence, "steps": fenced.steps}
        return {name: texts for name, texts in material.items() if name in wanted}


class ChannelScorer(dspy.Module):
    """Scores the steps of reasoning texts on the seven channels by an LM.

        scorer = ChannelScorer()
        pred = scorer(question=..., reasoning=..., evidence=passages)
        pred.steps[0]["channels"]["fact"], pred.reward

    It is a `Scorer`, sync and async. The steps are those of `split_steps`, their numbers included in the reply, so that
    no score is assigned to another step. A reply that cannot be read is an abstention, undefined for every step it was
    asked about; see `eldgr_dspy.programs.scoring.step_replies`. A step that can't be measured is undefined whatever the
    LM says, and a text with only such steps is not asked about. The passages are shown unchanged: too many for the LM's
    context are an abstention as well. The final answer of a reasoning is not shown.

    Attributes:
        together: Whether one call scores all channels. Otherwise each has a call, except those without any passage,
            and `epist` if token confidences are given.
        logic, fact, epist, info, triang, adv, min: (question, evidence, steps) -> `logic_scores` and so on, a list of
            entries with `step`, counted from 0, and `score`, from 0 to 1 or null.
        all_at_once: (question, evidence, steps) -> `step_scores`, a list of entries with `step` and the seven channels.
    """

    def __init__(self, *, together: bool = True) -> None:
        super().__init__()
        self.together = together
        self.logic: dspy.Module = StepRole(ScoreLogic)
        self.fact: dspy.Module = StepRole(ScoreFact)
        self.epist: dspy.Module = StepRole(ScoreEpist)
        self.info: dspy.Module = StepRole(ScoreInfo)
        self.triang: dspy.Module = StepRole(ScoreTriang)
        self.adv: dspy.Module = StepRole(ScoreAdv)
        self.min: dspy.Module = StepRole(ScoreMin)
        self.all_at_once: dspy.Module = StepRole(ScoreSteps)

    def forward(
        self,
        *,
        reasoning: str,
        question: str = "",
        evidence: Any = None,
        confidences: Sequence[Score] | None = None,
    ) -> dspy.Prediction:
        """Score one text.

        Args:
            reasoning: The text, without the question.
            question: What it answers.
            evidence: The passages, as `Selector` takes them. None means no corpus, and leaves the channels undefined
                that compare a step with passages; an empty list is a corpus in which nothing was found.
            confidences: c_t in [0, 1], one for each step of `split_steps`; `epist` is then computed from them and from
                the LM's `fact`.

        Returns:
            A prediction with `reward`, `undefined` and `steps`, plain JSON values; see `StepTable.to_json`.

        Raises:
            ArgumentError: An argument does not fit this description.
            dspy.LMError: A call did not come through; also what else `eldgr_dspy.programs.consulting.ask` raises.
        """
        [table] = self.score([_reasoning(reasoning, question, evidence, confidences)])
        return dspy.Prediction(**table.to_json())

    async def aforward(
        self,
        *,
        reasoning: str,
        question: str = "",
        evidence: Any = None,
        confidences: Sequence[Score] | None = None,
    ) -> dspy.Prediction:
        """Do the same as `forward`, with the calls of its channels at once."""
        [table] = await self.ascore([_reasoning(reasoning, question, evidence, confidences)])
        return dspy.Prediction(**table.to_json())

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Return the table of each text, in order, asking one after the other; texts that are shown alike, once.

        Raises:
            ArgumentError, dspy.LMError: As `forward`.
        """
        plans = [_plan(reasoning, self.together) for reasoning in reasonings]
        return _tables(plans, ask_each(self._requests(plans)))

    async def ascore(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Do the same as `score`, with a bounded number of calls, of all texts and channels, at once."""
        plans = [_plan(reasoning, self.together) for reasoning in reasonings]
        return _tables(plans, await aask_each(self._requests(plans)))

    def _requests(self, plans: "Sequence[_Plan]") -> list[Request]:
        return [Request(getattr(self, one.role), one.inputs) for one in _distinct(plans)]


def _reasoning(text: Any, question: Any, evidence: Any, confidences: Sequence[Score] | None) -> Reasoning:
    for name, value in (("reasoning", text), ("question", question)):
        if not isinstance(value, str | dspy.Reasoning):
            raise ArgumentError(f"{name} must be text; got {value!r:.80} ({type(value).__name__}). Give a string.")
    passages = None if evidence is None else to_passages(evidence)
    return Reasoning(str(text), str(question), passages, confidences=confidences)


# --- what is asked, and what the replies give -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    """What one role is asked."""

    role: _Role
    question: str
    evidence: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def inputs(self) -> dict[str, object]:
        """The inputs of the role."""
        return {"question": self.question, "evidence": list(self.evidence), "steps": list(self.steps)}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is asked about one text.

    Attributes:
        reasoning: The text.
        steps: Its steps.
        unmeasurable: For each step why it can't be scored, or None.
        known: The columns that need no LM.
        roles: Who is asked; empty if no step can be scored.
    """

    reasoning: Reasoning
    steps: Steps
    unmeasurable: list[Undefined | None]
    known: Mapping[Channel, Values]
    roles: tuple[_Role, ...]

    @property
    def requests(self) -> list[_Request]:
        """Return one question a role; of a step that is too long to be scored, the beginning is shown, as context."""
        evidence = tuple(show_passage(passage.title, passage.text) for passage in self.reasoning.passages or ())
        steps = tuple(step.content[:LONGEST] for step in self.steps.steps)
        return [_Request(role, self.reasoning.question, evidence, steps) for role in self.roles]

    def table(self, said: Sequence[Said]) -> StepTable:
        """Return the table, from the reply of each role."""
        n = len(self.unmeasurable)
        columns: dict[Channel, Values] = {name: [Undefined("nothing was asked")] * n for name in CHANNELS}
        for role, reply in zip(self.roles, said, strict=True):
            columns |= _columns(role, reply.content, n)
        columns |= self.known
        if self.reasoning.confidences is not None:
            columns["epist"] = epist(self.reasoning.confidences, columns["fact"])
        kept: dict[Channel, Values] = {
            name: [score if why is None else why for score, why in zip(column, self.unmeasurable, strict=True)]
            for name, column in columns.items()
        }
        grounding = Grounding.of([Undefined("an LM does not say what each document makes of a step")] * n)
        return StepTable(self.reasoning.text, self.steps.spans, score_steps(kept, grounding))


def _plan(reasoning: Reasoning, together: bool) -> _Plan:
    steps = split_steps(reasoning.text)
    computed = () if reasoning.confidences is None else ("epist",)
    _check_confidences(reasoning.confidences, len(steps.steps))
    unmeasurable, known = _unmeasurable(steps), _known(reasoning.passages, len(steps.steps))
    asked: list[Channel] = [name for name in CHANNELS if name not in known and name not in computed]
    roles: tuple[_Role, ...] = ("all_at_once",) if together else tuple(asked)
    measurable = any(why is None for why in unmeasurable)
    return _Plan(reasoning, steps, unmeasurable, known, roles if measurable else ())


def _check_confidences(confidences: Sequence[Score] | None, n: int) -> None:
    if confidences is not None and len(Scores.of(confidences, "confidences", 0, 1)) != n:
        raise ArgumentError(
            f"confidences has {len(confidences)} entries, but the text has {n} steps; give one for each step of "
            "split_steps(text), Undefined(reason) for a step without token probabilities."
        )


def _unmeasurable(steps: Steps) -> list[Undefined | None]:
    n = len(steps.steps)
    if n > MOST:
        return [Undefined(f"the text has {n} steps, more than {MOST} to ask an LM about")] * n
    return [unmeasurable(step.content) for step in steps.steps]


def _known(passages: Sequence[Passage] | None, n: int) -> dict[Channel, Values]:
    """Return the columns that need no LM: those that compare with passages, if there are none.

    From a corpus without passages nothing is retrieved, and the formulas give the values for that.
    """
    if passages:
        return {}
    if passages is None:
        return {name: [Undefined("there is no corpus")] * n for name in GROUNDED}
    neutral, silent = fact([0.0] * n), [Undefined("the corpus has no passage")] * n
    return {"fact": neutral, "epist": silent, "triang": triang([0.0] * n), "adv": adv(neutral, neutral), "min": silent}


def _columns(role: _Role, content: Mapping[str, Any], n: int) -> Mapping[Channel, Values]:
    if role == "all_at_once":
        return read_numbered(content, "step_scores", n, _OWN_NAMES)
    return read_numbered(content, f"{role}_scores", n, {role: "score"})


def _distinct(plans: Sequence[_Plan]) -> list[_Request]:
    return list(dict.fromkeys(request for plan in plans for request in plan.requests))


def _tables(plans: Sequence[_Plan], said: Sequence[Said]) -> list[StepTable]:
    answered = dict(zip(_distinct(plans), said, strict=True))
    return [plan.table([answered[request] for request in plan.requests]) for plan in plans]
