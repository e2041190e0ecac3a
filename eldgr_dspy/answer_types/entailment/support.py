"""The certificate of free text: each claim is entailed by some window of a passage, and the claims answer the question.

The support of an answer is the least probability among its claims, each with its best window, and of the answer with
the question. A fact that takes two passages is not certified. A passage that only repeats the answer, or another of its
class, does not count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eldgr_dspy.answer_types.entailment.about import LIKELY, About, holding, letters, read_with, wording
from eldgr_dspy.answer_types.entailment.claims import Claim, Window
from eldgr_dspy.answer_types.entailment.readings import Reading
from eldgr_dspy.certificates import Certificate, Passage, witness_of_entailment
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.structured import Structured
from eldgr_dspy.text_keys import POLAR

_EMPTY = Certificate(False, "empty answer")
_POLAR = Certificate(None, "the answer is a bare yes or no, which makes no claim that a passage could entail")
_STRUCTURED = Certificate(False, "a list or an object is not free text")
_SLACK = 200  # characters of titles, spaces and marks


@dataclass(frozen=True, slots=True)
class Support:
    """How far passages support an answer.

    Attributes:
        value: The support, from 0 to 1.
        window: The window of the weakest claim.
        lacking: What gives the support, in words.
        contradicting: The passages that contradict a claim.
    """

    value: float
    window: Window | None
    lacking: str
    contradicting: frozenset[int] = frozenset()


class FreeTextEvidence:
    """The passages of one question, as they certify free text."""

    def __init__(
        self, about: About, passages: Sequence[Passage], threshold: float, *, veto: bool, calibrated: bool
    ) -> None:
        """Take what is read of the question, its passages, and from which support on an answer is certified."""
        self.passages = tuple(passages)
        self._about, self._threshold, self._veto = about, threshold, veto
        self._remark = "" if calibrated else "; the threshold is not calibrated"

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        """Return the certificate of an answer, with the window of its weakest claim as witness."""
        if answer is None or (class_ := wording(answer)) is None:
            return _EMPTY
        if isinstance(answer, Structured):
            return _STRUCTURED
        if class_.key in POLAR:
            return _POLAR
        support = self.support(answer)
        count, window = len(support.contradicting), support.window
        said = f"; {count} {'passage contradicts' if count == 1 else 'passages contradict'} a claim" if count else ""
        if window is None or support.value < self._threshold:
            return Certificate(False, support.lacking + said)
        if self._veto and count:
            return Certificate(False, f"passages entail every claim{said}, which is a veto here")
        witness = witness_of_entailment(self.passages, window.passage, (window.start, window.end), bool(count))
        return Certificate(True, f"passages entail every claim{said}{self._remark}", witness)

    def support(self, answer: str) -> Support:
        """Return how far the passages support an answer."""
        claims = self._about.claims(answer)
        if isinstance(claims, str):
            return Support(0.0, None, claims)
        self._about.prepare(answer)
        windows = self._apart_from(answer)
        if not windows:
            return Support(0.0, None, "no evidence")
        weakest = min((self._of_claim(at, claims, windows) for at in range(len(claims))), key=lambda one: one.value)
        contradicting = frozenset(index for claim in claims for index in self._contradicting(claim, windows))
        answers = self._about.answers_question(answer)
        if answers < weakest.value:
            weakest = replace(weakest, value=answers, lacking="the claims do not answer the question")
        return replace(weakest, contradicting=contradicting)

    def _of_claim(self, at: int, claims: Sequence[Claim], windows: Sequence[Window]) -> Support:
        """How far the best window supports a claim, the earliest of these."""
        entailed = [(self._read(window, claims[at]).entailment, window) for window in holding(claims[at], windows)]
        value, window = max(entailed, key=lambda one: one[0], default=(0.0, None))
        return Support(value, window, f"no passage entails claim {at + 1} of {len(claims)}")

    def _contradicting(self, claim: Claim, windows: Sequence[Window]) -> Iterator[int]:
        """The passages that contradict a claim."""
        for window in read_with(claim, windows):
            if self._read(window, claim).contradiction >= LIKELY:
                yield window.passage

    def _read(self, window: Window, claim: Claim) -> Reading:
        return self._about.readings.of(window.premise, claim.hypothesis)

    def _apart_from(self, answer: str) -> list[Window]:
        """The windows of the passages that do not only repeat an answer of the class."""
        members = frozenset(map(letters, self._about.like(answer)))
        longest = 2 * max(map(len, members))
        repeats = [_repeats(passage, members, longest) for passage in self.passages]
        return [window for window in self._about.windows(self.passages) if not repeats[window.passage]]


def _repeats(passage: Passage, members: frozenset[str], longest: int) -> bool:
    """Whether a passage has the letters and digits of an answer and no others; a far longer one is not looked at."""
    forms = (passage.text, show_passage(passage.title, passage.text))
    return any(len(form) <= longest + _SLACK and letters(form) in members for form in forms)
