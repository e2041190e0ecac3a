"""The seven channels by an LM, one call a text, and the same tables as from an NLI model.

The LM states the scores itself, with no formula, except where it is not needed: `epist` is computed if token
confidences are given, and without passages nothing is compared with passages. What an LM says of a step is an opinion:
it is not a certificate, and its scale is not that of an NLI model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.formulas import adv, epist, fact, triang
from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable, score_steps
from eldgr_dspy.channels.steps import LONGEST, split_steps, unmeasurable
from eldgr_dspy.channels.undefined import Score, Undefined, Values
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.lms.consulting import RoleOutput
from eldgr_dspy.programs.lms.one_call import OneCall, Request, aask_each, ask_each
from eldgr_dspy.rule.consultations import Abstention, show_passage
from eldgr_dspy.rule.replies import read_scores
from eldgr_dspy.signatures import ScoreSteps
from eldgr_dspy.words import CHANNELS, Channel

MOST = 64
"""Steps of a text; one with more is not asked about, because few LMs would complete the reply."""

CORPUS_CHANNELS: tuple[Channel, ...] = ("fact", "epist", "triang", "adv", "min")
"""The channels that compare a step with passages."""

NO_SCORE = Undefined("the LM gave no score")
LEFT_OUT = Undefined("the LM left the step out")


class StepRole(OneCall):
    """Scores the steps of a reasoning with one LM call; the fields are plain JSON values."""

    signature = ScoreSteps


class ChannelScorer(dspy.Module):
    """Scores the steps of reasoning texts on the seven channels by an LM.

        scorer = ChannelScorer()
        pred = scorer(question=..., reasoning=..., evidence=passages)
        pred.steps[0]["channels"]["fact"], pred.reward

    It is a `Scorer`, sync and async. The steps are those of `split_steps`, their numbers included in the reply, so that
    no score is assigned to another step. A reply that cannot be read is an abstention, undefined for every step it was
    asked about; see `eldgr_dspy.rule.replies.read_scores`. A step that can't be measured is undefined whatever the
    LM says, and a text with only such steps is not asked about. The passages are shown unchanged: too many for the LM's
    context are an abstention as well. The final answer of a reasoning is not shown.

    Attributes:
        steps: (question, evidence, steps) -> `step_scores`, a list of entries with `step`, counted from 0, and the
            seven channels, each from 0 to 1 or null.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: dspy.Module = StepRole()

    def forward(
        self, *, reasoning: str, question: str = "", evidence: Any = None, confidences: Sequence[Score] | None = None
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
            dspy.LMError: A call did not come through; also what else `eldgr_dspy.programs.lms.consulting.ask` raises.
        """
        [table] = self.score([_reasoning(reasoning, question, evidence, confidences)])
        return dspy.Prediction(**table.to_json())

    async def aforward(self, **arguments: Any) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        [table] = await self.ascore([_reasoning(**arguments)])
        return dspy.Prediction(**table.to_json())

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Return the table of each text, in order, asking one after the other; texts that are shown alike, once.

        Raises:
            ArgumentError, dspy.LMError: As `forward`.
        """
        plans = list(map(_Plan, reasonings))
        return _tables(plans, ask_each(self._requests(plans)))

    async def ascore(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Do the same as `score`, with a bounded number of calls at once."""
        plans = list(map(_Plan, reasonings))
        return _tables(plans, await aask_each(self._requests(plans)))

    def _requests(self, plans: "Sequence[_Plan]") -> list[Request]:
        return [Request(self.steps, one._asdict()) for one in _distinct(plans)]


def _reasoning(
    reasoning: Any, question: Any = "", evidence: Any = None, confidences: Sequence[Score] | None = None
) -> Reasoning:
    for name, value in (("reasoning", reasoning), ("question", question)):
        if not isinstance(value, str | dspy.Reasoning):
            raise ArgumentError(f"{name} must be text; got {value!r:.80} ({type(value).__name__}). Give a string.")
    passages = None if evidence is None else to_passages(evidence)
    return Reasoning(str(reasoning), str(question), passages, confidences=confidences)


class _Inputs(NamedTuple):
    question: str
    evidence: tuple[str, ...]
    steps: tuple[str, ...]


class _Plan:
    """A text, why each of its steps can't be scored (or None), and what is asked; None if no step can be scored."""

    def __init__(self, reasoning: Reasoning) -> None:
        self.reasoning, self.steps = reasoning, split_steps(reasoning.text)
        own, n = self.steps.steps, len(self.steps.steps)
        self.confidences = reasoning.confidences_of(n)
        many = [Undefined(f"the text has {n} steps, more than {MOST} to ask an LM about")] * n
        self.unmeasurable = many if n > MOST else [unmeasurable(step.content) for step in own]
        self.request: _Inputs | None = None
        if any(why is None for why in self.unmeasurable):
            evidence = tuple(show_passage(passage.title, passage.text) for passage in reasoning.passages or ())
            # Of a step that is too long to be scored, the beginning is shown, as context.
            self.request = _Inputs(reasoning.question, evidence, tuple(step.content[:LONGEST] for step in own))

    def table(self, content: Mapping[str, Any] | None) -> StepTable:
        n = len(self.unmeasurable)
        columns = _columns(content, n) | _without_lm(self.reasoning.passages, n)
        if self.confidences is not None:
            columns["epist"] = epist(self.confidences, columns["fact"])
        values: dict[Channel, Values] = {
            name: [score if why is None else why for score, why in zip(column, self.unmeasurable, strict=True)]
            for name, column in columns.items()
        }
        grounding = Grounding.of([Undefined("an LM does not say what each document makes of a step")] * n)
        return StepTable(self.reasoning.text, self.steps.spans, score_steps(values, grounding))


def _columns(content: Mapping[str, Any] | None, n: int) -> dict[Channel, Values]:
    """Return what a reply says of n steps; a step that is left out, and a null, are undefined for that step alone."""
    scores = Abstention("") if content is None else read_scores(content, "step_scores", n, CHANNELS)
    if isinstance(scores, Abstention):
        why = "nothing was asked" if content is None else f"the LM abstained: {scores.reason}"
        return {name: [Undefined(why)] * n for name in CHANNELS}
    rows = [scores.get(at, [LEFT_OUT] * len(CHANNELS)) for at in range(n)]
    return {name: [NO_SCORE if row[at] is None else row[at] for row in rows] for at, name in enumerate(CHANNELS)}


def _without_lm(passages: Sequence[Passage] | None, n: int) -> dict[Channel, Values]:
    """Return the columns that need no LM: those that compare with passages, if there are none."""
    if passages:
        return {}
    if passages is None:
        return {name: [Undefined("there is no corpus")] * n for name in CORPUS_CHANNELS}
    neutral, silent = fact([0.0] * n), [Undefined("the corpus has no passage")] * n
    return {"fact": neutral, "epist": silent, "triang": triang([0.0] * n), "adv": adv(neutral, neutral), "min": silent}


def _distinct(plans: Sequence[_Plan]) -> list[_Inputs]:
    return list(dict.fromkeys(plan.request for plan in plans if plan.request is not None))


def _tables(plans: Sequence[_Plan], replies: Sequence[RoleOutput]) -> list[StepTable]:
    answers = {request: reply.content for request, reply in zip(_distinct(plans), replies, strict=True)}
    return [plan.table(None if plan.request is None else answers[plan.request]) for plan in plans]
