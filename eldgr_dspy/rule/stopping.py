"""When sampling may stop before all samples are drawn: rules on the votes so far, and on whether consensus is final.

`Settled` stops only when no remaining sample can change the class that ships. `Posterior` is the Beta rule of adaptive
consistency. It can stop too early. Votes are counts of the classes, in the order of their earliest voters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Protocol

from eldgr_dspy.answer_types.answers import class_key
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import show_passage

SETTLED_BY = ("eldgr", "majority", "first")
"""The rules for which `Settled` is proved."""
_MOST_TO_READ = 1_000_000  # characters times lines; a larger passage counts as a possible candidate


class Stop(Protocol):
    """A rule for stopping."""

    def is_decided(self, votes: Sequence[int], remaining: int) -> bool:
        """Return whether these votes are enough, if so many samples remain."""
        ...

    def final(self, case: Case) -> bool:
        """Return whether consensus ships once the votes are enough."""
        ...


@dataclass(frozen=True, slots=True)
class Settled:
    """Stop when no remaining sample can change the class that ships.

    The remaining samples cannot outvote the leading class, nor tie with it and be earlier. In retrieval, the leading
    class is also certified, or a certificate does not apply to it; further samples and passages cannot change that. In
    arithmetic, the deriver is asked whatever else is sampled, and its reply is a function of the question.

    Attributes:
        rule: The rule that decides, one of `SETTLED_BY`. Under `majority` the votes are enough, and under `first` the
            first answer is, unless `withheld`.
        withheld: Whether an uncertified answer is withheld.
        fixed: Whether further samples leave the evidence as it is. A certificate of the user's own relies on that.
    """

    rule: str = "eldgr"
    withheld: bool = False
    fixed: bool = True

    def is_decided(self, votes: Sequence[int], remaining: int) -> bool:
        """Return whether the leading class has the most votes, however the remaining ones are cast."""
        if not votes or self.rule == "first":
            return bool(votes)
        leader = votes.index(max(votes))
        ahead = votes[leader] - remaining  # of a class that nobody has voted for yet
        earlier, later = votes[:leader], votes[leader + 1 :]
        return ahead >= 0 and all(n < ahead for n in earlier) and all(n <= ahead for n in later)

    def final(self, case: Case) -> bool:
        """Return whether the rule decides alike on every pool that begins with this one and has this consensus."""
        if self.rule != "eldgr" and not self.withheld:
            return True
        if case.type.way == "derivation":
            return case.repairable
        answer, own = case.first if self.rule == "first" else case.consensus, case.settings.own
        certificate = case.certificate(answer)
        if certificate.certified is False or (own and not self.fixed):
            return False
        if certificate.certified is None and not own and not isinstance(answer, Structure):
            return True
        passages = case.question.passages
        behind = passages if certificate.witness is None or own else (passages[certificate.witness.passage],)
        return not any(_may_be_a_candidate(passage, answer, case.type) for passage in behind)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Stop when the leading class is probably ahead of the second: the Beta rule of adaptive consistency.

    With a and b votes, that probability is P(p > 1/2) for p ~ Beta(a + 1, b + 1): a posterior under a flat prior on two
    classes. It is computed after each batch, and repeated looks make an early lead count more than it should: the
    threshold is not a bound on how often all samples would have shipped another answer. It ignores certificates.

    Attributes:
        threshold: Above 1/2 and below 1. At 0.95 it stops at four votes to none.

    Source: Aggarwal et al. 2023, "Let's Sample Step by Step" (AdaptiveConsistency, `BetaStoppingCriteria`).
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not 0.5 < self.threshold < 1:
            raise ArgumentError(f"threshold must be above 0.5 and below 1; got {self.threshold!r:.80}.")

    def is_decided(self, votes: Sequence[int], remaining: int) -> bool:
        """Return whether the posterior probability reaches the threshold."""
        first, second, *_ = sorted([*votes, 0, 0], reverse=True)
        return float(lead(first, second)) >= self.threshold

    def final(self, case: Case) -> bool:
        """Return True: the rule looks at votes alone."""
        return True


def lead(first: int, second: int) -> Fraction:
    """Return P(p > 1/2) for p ~ Beta(first + 1, second + 1), exactly: a tail of a binomial with fair coins."""
    coins = first + second + 1
    return Fraction(sum(comb(coins, heads) for heads in range(first + 1)), 2**coins)


def votes_of(case: Case) -> list[int]:
    """Return how many candidates vote for each class, in the order of their earliest voters."""
    return list(case.vote.counts.values())


def next_batch(stop: Stop, case: Case, n: int) -> int:
    """Return how many samples to draw at once: the fewest after which the rule may stop; 0 once it does.

    They are all that remain if the votes are enough and consensus is not final: then the rule is not expected to stop,
    and every sample may count.
    """
    votes, remaining = votes_of(case), n - len(case.question.answers)
    if remaining == 0:
        return 0
    if stop.is_decided(votes, remaining):
        return 0 if stop.final(case) else remaining
    leader = votes.index(max(votes)) if votes else 0
    for more in range(1, remaining):
        later = [*votes] or [0]
        later[leader] += more
        if stop.is_decided(later, remaining - more):
            return more
    return remaining


def _may_be_a_candidate(passage: Passage, answer: str | None, kind: AnswerType) -> bool:
    """Whether a passage could be the text of a candidate of the answer's class: then it no longer certifies."""

    def answers_in(text: str) -> Iterator[str | None]:
        lines = text.split("\n")
        for start in range(len(lines)):
            extraction = extract_answer("\n".join(lines[start:]), kind)
            yield class_key(extraction.answer, kind) if extraction else None

    key = class_key(answer, kind)
    forms = {passage.text.strip(), show_passage(passage.title, passage.text).strip()}
    if isinstance(answer, Structure):
        return any(form.endswith(("]", "}")) for form in forms)
    if any(len(form) * form.count("\n") > _MOST_TO_READ for form in forms):
        return True  # the safe side, in time
    return any(class_key(form, kind) != key and key in answers_in(form) for form in forms)
