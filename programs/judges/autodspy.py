"""A selector in the style of AutoDSPy (EMNLP 2025): a policy that chooses the pipeline for a question.

`docs/reference/selectors.md` has what is lost. It is supervised: its training questions may be in no figure.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import dspy
import numpy as np

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.judges.frames import CountingJudge, abstain
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.lexical import WORD
from eldgr_dspy.splitting import folded_question

_BINS, _ROUNDS, _RATE = 512, 200, 0.5


class PipelineSelector(CountingJudge):
    """Ships the candidate of the pipeline that a trained policy prefers for the question; a judge without an LM.

    A candidate's pipeline is its tags, or else its source. The policy is softmax-linear in the words of the question.
    It is trained on a pool with right answers: each question's pipelines are a group, and the advantage of one is its
    reward, the share of its candidates that are right, minus the group's mean. Every pipeline's reward is given, so the
    gradient is exact, and training is the same every time. If no candidate has a pipeline that was trained, it
    abstains; it also abstains on a question it was trained on. Of several candidates of one pipeline, the earliest with
    an answer is preferred.

    Attributes:
        formula: `autodspy:FILE`. trained_on: The content hash of the training pool.
        trained_questions: Their folded texts; a run on a pool that has any of them is refused. pipelines: sorted.
    """

    facts: Mapping[str, bool] = {"gold_in_training": True, "logprobs": False, "positioned": True}

    def __init__(self, path: str | Path) -> None:
        """Train on a pool; raise a PoolError or an ArgumentError unless it has right answers and two pipelines."""
        super().__init__()
        pool = open_pool(path)
        self.formula, self.trained_on = f"autodspy:{path}", pool.sha256
        rows = [*pool.rows()]
        self.trained_questions = {folded_question(row.question) for row in rows}
        groups = [(row.question, rewards) for row in rows if row.gold and (rewards := _rewards(row))]
        self.pipelines = sorted({name for _, rewards in groups for name in rewards})
        if not any(row.gold for row in rows):
            raise ArgumentError(f"{pool.path} must have right answers to train on; give a pool with gold.")
        if (n := len(self.pipelines)) < 2:
            least = "must have candidates of at least two pipelines, in tags or source"
            raise ArgumentError(f"{pool.path} {least}; got {n}. State what made each.")
        self._weights = _train(groups, self.pipelines)

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Choose a pipeline."""
        if folded_question(ballot.question) in self.trained_questions:
            return abstain("the selector was trained on this question")
        names = [of.pipeline for of in ballot.stated]
        if not any(names):
            return abstain(Abstention.of("not applicable", "the pool states no tags or sources"))
        if lacking := [index for index in ballot.voters if not names[index]]:
            return abstain(f"no tags or source are stated of candidate {lacking[0]}")
        scores = dict(zip(self.pipelines, _features(ballot.question) @ self._weights, strict=True))
        if not (trained := [index for index in ballot.voters if names[index] in scores]):
            return abstain(Abstention.of("not applicable", "no pipeline of the pool was trained"))
        preferred = max(trained, key=lambda index: (scores[names[index]], -index))
        return dspy.Prediction(preferred=preferred, judge_rationale=f"the policy prefers {names[preferred]}", orders=[])


def _rewards(row: Row) -> dict[str, float]:
    """Return how often each pipeline's candidates are right."""
    kind = answer_type(row.task).of(row.to_question())
    rights = defaultdict[str, list[bool]](list)
    for candidate in row.candidates:
        if name := candidate.to_statement(candidate.source).pipeline:
            rights[name].append(kind.right(candidate.answer, row.gold))
    return {name: sum(of) / len(of) for name, of in rights.items()}


def _features(question: str) -> np.ndarray:
    """Return the words of a question, hashed into bins, and a constant; the vector has length 1 without it."""
    digests = (sha256(word.encode("utf-8", "surrogatepass")) for word in WORD.findall(folded_question(question)))
    bins = [int.from_bytes(digest.digest()[:4]) % _BINS for digest in digests]
    counts = np.bincount(np.array(bins, dtype=int), minlength=_BINS + 1).astype(float)
    counts /= float(np.linalg.norm(counts)) or 1.0
    counts[_BINS] = 1.0
    return counts


def _train(groups: Sequence[tuple[str, dict[str, float]]], pipelines: Sequence[str]) -> np.ndarray:
    """Return the weights, (features, pipelines), after gradient ascent on the expected reward."""
    from scipy.special import softmax

    features = np.array([_features(question) for question, _ in groups])
    present = np.array([[name in rewards for name in pipelines] for _, rewards in groups])
    rewards = np.array([[rewards.get(name, 0.0) for name in pipelines] for _, rewards in groups])
    weights = np.zeros((features.shape[1], len(pipelines)))
    for _ in range(_ROUNDS):
        policy = softmax(np.where(present, features @ weights, -np.inf), axis=1)
        advantages = rewards - (policy * rewards).sum(axis=1, keepdims=True)
        weights += _RATE * features.T @ (policy * advantages) / len(groups) * len(pipelines)
    return weights
