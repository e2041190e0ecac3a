"""The reward of the steps: mean_t R_step over the seven channels, for all completions of a batch in one call.

`ra_msd` is all seven and `prm` is `logic` alone; they differ in the weights of the scorer. An undefined channel is
dropped and the others renormalised, inside a step. A step without a reward counts as 0 in the mean, and so does a
line of padding. A completion without a measurable step is undefined, earns 0 and is logged as such. So a policy gains
nothing by not being measurable.
"""

import json
import warnings
from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Any, ClassVar

from eldgr_dspy.channels.protocols import Reasoning, Scorer
from eldgr_dspy.channels.step_table import StepTable, checked_tables
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError, ScoringError, brief
from eldgr_dspy.training.confidence import TokenConfidence
from eldgr_dspy.training.model_outputs import Output
from eldgr_dspy.training.padding import without_padding
from eldgr_dspy.training.policy import policy_confidence
from eldgr_dspy.training.reward_base import Reward, RewardResults, reasons
from eldgr_dspy.training.reward_calls import Call, is_marked
from eldgr_dspy.words import CHANNELS

TOKEN_CONFIDENCE = "token_confidence"
"""The column of a `TokenConfidence` a completion, for a caller that has them; otherwise the policy is asked."""

Confidences = Sequence[Score] | None
Lines = Sequence[tuple[str, int]]


class StepReward(Reward):
    """mean_t R_step of each completion, in [0, 1].

    The divisor is the number of all steps, as in the paper, and of lines of padding (see `without_padding`). So a step
    that cannot be measured counts as 0, and lines of at most one word never raise the reward.

    Also logged: the mean of each channel, over the completions where it is defined; `steps`, how many a completion has;
    `padding`, how many lines of padding; `conflated`, the share of the steps that is conflated in the paper's form.
    Shown: `steps`, the table of the completion as JSON, and `note`, why it is undefined.

    Source: mean_t R_step of the paper's completion reward, where it counts 1. Ours: what the paper leaves undefined
    counts as 0.
    """

    weight: ClassVar[float] = 1.0

    def __init__(self, scorer: Scorer, *, name: str = "ra_msd", evidence: bool = True, confidence: bool = True) -> None:
        """Make the reward.

        Args:
            scorer: Who scores the channels, and by which weights: `NLIScorer`, or any other. It is pickled with the
                reward, if a trainer does that.
            name: Under which it is logged; two such rewards in one run need two.
            evidence: Whether each row brings its passages in the column `evidence`; False if the scorer has its own
                corpus, or needs no passage.
            confidence: Whether token probabilities of the policy are computed, on which `epist` depends.

        Raises:
            ArgumentError: `scorer` cannot score.
        """
        if not callable(getattr(scorer, "score", None)):
            raise ArgumentError(
                f"scorer must be an object with score(reasonings), such as NLIScorer; got {scorer!r:.80}."
            )
        super().__init__(name, ["question", *(["evidence"] if evidence else []), "task"], confidence=confidence)
        self.scorer, self.evidence = scorer, evidence

    def prepare(self) -> None:
        """Load the NLI model of a scorer that has one; see `Reward.prepare`."""
        super().prepare()
        getattr(getattr(self.scorer, "nli", None), "name", None)  # a `NamedNLI` loads its model to know it

    def measure(self, call: Call) -> RewardResults:
        """Return the steps' rewards and channels of each completion; see `Reward.measure`."""
        lines, padding = zip(*map(without_padding, call.texts), strict=True) if call.texts else ((), ())
        tables = self._tables(self._reasonings(call, lines))
        parts: dict[str, Scores] = {
            name: Scores.of([table.mean(name) for table in tables], name, 0, 1) for name in CHANNELS
        }
        parts["padding"] = Scores.of([float(lines) for lines in padding])
        parts["steps"] = Scores.of([float(len(table.scores)) for table in tables])
        parts["conflated"] = Scores.of(map(_conflated_share, tables))
        scores = Scores.of(map(_mean_reward, tables, padding), "reward", 0, 1)
        steps = list(map(_as_line, tables, scores, padding))
        return RewardResults(scores, parts, {"steps": steps, "note": reasons(scores)})

    def check(self, call: Call) -> None:
        """Raise if it reads passages and no row has any; see `Reward.check`."""
        if self.evidence:
            call.require_passages()

    def _reasonings(self, call: Call, lines: Sequence[Lines]) -> list[Reasoning]:
        questions = call.strings("question")
        answers = [answer.answer if answer and is_marked(answer) else "" for answer in call.answers()]
        passages = call.passages() if self.evidence else [None] * len(call.texts)
        confidences = self._confidences(call, lines) if self.confidence else [None] * len(call.texts)
        texts = ["".join(line for line, _ in own) for own in lines]
        return list(map(Reasoning, texts, questions, passages, answers, confidences))

    def _confidences(self, call: Call, lines: Sequence[Lines]) -> list[Confidences]:
        """Return c_t of the steps of each completion; None for all if token probabilities are not known."""
        confidences = _token_confidence(call)
        if confidences is None:
            warnings.warn(
                f"The reward {self.__name__!r} gets no token probabilities, so epist is undefined and left out; "
                "train with TRL's GRPOTrainer or RLOOTrainer on text, or make the reward with confidence=False.",
                stacklevel=4,
            )
            return [None] * len(call.texts)
        rows = zip(call.outputs, lines, confidences, strict=True)
        return [_of_steps(tokens, output, own) for output, own, tokens in rows]

    def _tables(self, reasonings: list[Reasoning]) -> list[StepTable]:
        try:
            tables = self.scorer.score(reasonings)
            for table in (valid := checked_tables(tables, len(reasonings), f"{type(self.scorer).__name__}.score")):
                Scores.of([table.reward], "reward", 0, 1)
                for name in CHANNELS:
                    Scores.of([table.mean(name)], name, 0, 1)
            return valid
        except Exception as error:
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise ScoringError(
                f"The scorer of the reward {self.__name__!r} failed on {len(reasonings)} completions ({brief(text)}); "
                "fix it, and resume the run from its last checkpoint."
            ) from error


def _token_confidence(call: Call) -> Sequence[TokenConfidence] | None:
    """Return what the trainer passed, or else the probabilities from the caller's policy; None without either."""
    column = call.columns.get(TOKEN_CONFIDENCE)
    if column is not None:
        confidences = list(column) if isinstance(column, Sequence) else []
        if len(confidences) != len(call.texts) or not all(isinstance(one, TokenConfidence) for one in confidences):
            raise ArgumentError(
                f"The column {TOKEN_CONFIDENCE!r} for the reward {call.reward!r} must have one TokenConfidence for each"
                f" of {len(call.texts)} completions; got {column!r:.80}. Give one for each, or leave the column out."
            )
        return confidences
    ids: Any = call.columns.get("completion_ids")
    return None if call.trainer is None or ids is None else policy_confidence(call.trainer, call.prompts, ids)


def _of_steps(tokens: TokenConfidence, output: Output, lines: Lines) -> list[Score]:
    """Return c_t of each step of these lines; a token of a tag around the thinking is part of none."""
    whole, reasoning, at = output.whole, output.reasoning, max(0, tokens.text.find(output.whole))
    spans = [(max(0, start - at), max(0, end - at)) for start, end in pairwise((0, *tokens.ends))]
    same = [whole[start:end] == reasoning[start:end] for start, end in spans]
    own = TokenConfidence(tokens.text, tuple(compress(tokens.ends, same)), tuple(compress(tokens.logps, same)))
    places = [place for line, start in lines for place in range(start, start + len(line))]
    steps = split_steps("".join(line for line, _ in lines)).spans
    return own.of_steps(
        whole, [(places[start], places[end - 1] + 1) if start < end else (0, 0) for start, end in steps]
    )


def _mean_reward(table: StepTable, padding: int) -> Score:
    """Return the sum of the rewards by the number of steps and lines of padding; undefined if none is measured."""
    mean = table.reward
    if isinstance(mean, Undefined):
        return mean
    n = sum(not isinstance(step.reward, Undefined) for step in table.scores)
    return mean * (n / (len(table.scores) + padding))


def _as_line(table: StepTable, reward: Score, padding: int) -> str:
    own = {} if isinstance(reward, Undefined) else {"reward": reward}
    return json.dumps({**table.to_json(), "padding": padding, **own}, ensure_ascii=False, allow_nan=False)


def _conflated_share(table: StepTable) -> Score:
    """Return the share of a completion's steps that is conflated, of those for which it is known."""
    flags = [step.conflated for step in table.scores]
    return Scores.of([flag if isinstance(flag, Undefined) else float(flag) for flag in flags], "conflated").mean()
