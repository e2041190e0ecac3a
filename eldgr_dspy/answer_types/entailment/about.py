"""What an NLI model reads of the answers to one question: pairs of answers, and claims with windows.

All that the pool needs is read in one call, and all that a later answer needs in a second.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, product

from eldgr_dspy.answer_types.entailment.claims import Claim, Window, claims_of, sentence_spans, token_count, windows_of
from eldgr_dspy.answer_types.entailment.hard_keys import hard_keys
from eldgr_dspy.answer_types.entailment.readings import NLI, Pair, Reading, Readings, tokens_of_pair
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.stripping import strip_answer
from eldgr_dspy.structured import Structured
from eldgr_dspy.text_keys import AnswerClass, short_class

GOAL = 'This answers the question "{}"'
"""The hypothesis that an answer to the question entails; a zero-shot label, as in Yin et al. (2019)."""

LIKELY = 0.5
"""From this probability on, answers entail or contradict each other, and a passage contradicts a claim."""

LONGEST = 8_000
"""Characters of an answer; a longer one is never read, so it is a class of its own and uncertified."""

MOST_CLAIMS = 32
"""Claims of an answer; with more it is uncertified."""

MOST_WINDOWS = 64
"""Windows a claim is read with: the first that hold its hard keys, and as many others, which can only contradict.

Evidence is bounded in its order: a passage at the end never takes the place of an earlier one.
"""

_SEPARATORS = 8  # tokens around a pair


class About:
    """The answers and passages of one question, as an NLI model reads them; each pair at most once.

    Attributes:
        readings: What was read, with counts.
        question: The question as asked.
    """

    def __init__(
        self,
        nli: NLI,
        goal: str,
        question: str = "",
        answers: Sequence[str | None] = (),
        passages: Sequence[Passage] = (),
        texts: Sequence[str] = (),
    ) -> None:
        """Take a question; `texts` are those of its candidates, compared with answers where a passage repeats them."""
        self.readings, self.question, self.passages = Readings(nli), question, tuple(passages)
        self._goal = goal.replace("{}", question)
        self._tokens = tokens_of_pair(nli) - _SEPARATORS
        repeated = {letters(form) for p in passages for form in (p.text, show_passage(p.title, p.text))}
        echoes = [text for text in texts if letters(text) in repeated]
        self._first = [a for a in (*answers, *echoes) if a and not isinstance(a, Structured) and wording(a)]
        keys = {answer: _key(answer) for answer in sorted(set(self._first), reverse=True)}
        self._shown = {key: answer for answer, key in keys.items()}
        self._plains = {answer: plain(self._shown[key]) for answer, key in keys.items()}
        self._asked: dict[str, None] = {}
        self._windows: dict[tuple[Passage, ...], list[Window]] = {}

    # -- answers ------------------------------------------------------------------------------------------------------

    def alike(self, one: str, other: str) -> bool:
        """Return whether two answers entail each other, given the question, and have the same hard keys."""
        self.prepare(one, other)
        return self._entail_each_other(self._plain(one), self._plain(other))

    def like(self, answer: str) -> list[str]:
        """Return an answer with the answers of the pool that are like it."""
        return [answer, *(other for other in self._first if self.alike(answer, other))]

    def any_contradicted(self, answers: Sequence[str]) -> bool:
        """Return whether one of these answers contradicts another, or has other hard keys."""
        return any(self._contradicted(*pair) for pair in combinations(map(self._plain, answers), 2))

    def like_any(self, answer: str, others: Sequence[str]) -> bool:
        """Return whether an answer is like one of others; the model is asked once at most."""
        pairs = [pair for other in others for pair in self._both_ways(self._plain(answer), self._plain(other))]
        self.readings.ask(pairs, self._probe([answer]))
        return any(self._entail_each_other(self._plain(answer), self._plain(other)) for other in others)

    # -- claims -------------------------------------------------------------------------------------------------------

    def claims(self, answer: str) -> list[Claim] | str:
        """Return the claims of an answer; or why they are not read."""
        if len(answer) > LONGEST:
            return f"the answer is longer than {LONGEST:,} characters"
        claims = claims_of(plain(answer), self.question)
        if not claims:
            return "the answer makes no claim"
        if "asked" in hard_keys(answer).moods:
            return "the answer asks a question"
        if len(claims) > MOST_CLAIMS:
            return f"the answer has more than {MOST_CLAIMS} claims"
        if any(token_count(claim.hypothesis) > self._tokens // 2 for claim in claims):
            return "a claim, with what it leans on, is longer than the model reads beside a passage"
        return claims

    def windows(self, passages: tuple[Passage, ...]) -> list[Window]:
        """Return the windows of passages."""
        if passages not in self._windows:
            self._windows[passages] = [*windows_of(passages, self._tokens // 2)]
        return self._windows[passages]

    def answers_question(self, answer: str) -> float:
        """Return how probably an answer answers the question; 1 if there is none."""
        return self.readings.of(plain(answer), self._goal).entailment if self.question.strip() else 1.0

    def prepare(self, *answers: str) -> None:
        """Read all that was not read of the pool and of these answers, in one call."""
        texts = dict.fromkeys(answers if self._asked else (*self._first, *answers))
        new = [answer for answer in texts if answer not in self._asked]
        if not new:
            return
        plain_new = sorted(set(map(self._plain, new)))
        known = sorted(set(map(self._plain, self._asked)) - set(plain_new))
        compared = [*combinations(plain_new, 2), *product(plain_new, known)]
        pairs = [pair for one, other in compared for pair in self._both_ways(one, other)]
        for answer in new:
            pairs.extend(self._of_claims(answer))
        self._asked |= dict.fromkeys(new)
        self.readings.ask(pairs, self._probe(new))

    # -- what is asked ------------------------------------------------------------------------------------------------

    def _plain(self, answer: str) -> str:
        """An answer as it is compared: the first of its spellings in the pool, in the order of characters."""
        if answer not in self._plains:
            self._plains[answer] = plain(self._shown.get(_key(answer), answer))
        return self._plains[answer]

    def _given(self, answer: str) -> str:
        return f"{self.question} {answer}".strip()

    def _both_ways(self, one: str, other: str) -> list[Pair]:
        """The pairs of two answers; none if hard keys settle it, or if they are too long."""
        premise, hypothesis = self._given(one), self._given(other)
        if one == other or not self._comparable(one, other):
            return []
        too_long = token_count(premise) + token_count(hypothesis) > self._tokens
        return [] if too_long else [(premise, hypothesis), (hypothesis, premise)]

    def _of_claims(self, answer: str) -> Iterator[Pair]:
        claims, windows = self.claims(answer), self.windows(self.passages)
        if isinstance(claims, str) or not windows:
            return
        if self.question.strip():
            yield plain(answer), self._goal
        for claim in claims:
            yield from ((window.premise, claim.hypothesis) for window in read_with(claim, windows))

    def _probe(self, answers: Iterable[str]) -> str | None:
        """The shortest claim, which must entail itself if the model's labels are in order."""
        claims = [self.claims(answer) for answer in answers]
        alone = [claim.text for found in claims if not isinstance(found, str) for claim in found]
        return min(alone, key=lambda text: (len(text), text), default=None)

    def _comparable(self, one: str, other: str) -> bool:
        if one == other or max(len(one), len(other)) > LONGEST:
            return one == other
        return hard_keys(one).agree(hard_keys(other), hard_keys(self.question))

    def _reading(self, one: str, other: str) -> Reading:
        return self.readings.of(self._given(one), self._given(other))

    def _entail_each_other(self, one: str, other: str) -> bool:
        both = (self._reading(one, other), self._reading(other, one))
        return one == other or (self._comparable(one, other) and all(said.entailment >= LIKELY for said in both))

    def _contradicted(self, one: str, other: str) -> bool:
        both = (self._reading(one, other), self._reading(other, one))
        return not self._comparable(one, other) or any(reading.contradiction >= LIKELY for reading in both)


def read_with(claim: Claim, windows: Sequence[Window]) -> list[Window]:
    """Return the windows that a claim is read with, those that hold its hard keys first."""
    return [*holding(claim, windows), *islice((w for w in windows if not claim.keys.in_(w.keys)), MOST_WINDOWS)]


def holding(claim: Claim, windows: Sequence[Window]) -> list[Window]:
    """Return the windows that may entail a claim: the first that hold its hard keys."""
    return [*islice((window for window in windows if claim.keys.in_(window.keys)), MOST_WINDOWS)]


def plain(answer: str) -> str:
    """Return an answer as the model reads it: a single sentence without what is around it, else as it is."""
    return answer.strip() if len(answer) > LONGEST or len(sentence_spans(answer)) > 1 else strip_answer(answer)


def letters(text: str) -> str:
    """Return the letters and digits of a text, by which a passage repeats it."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def wording(answer: str) -> AnswerClass | None:
    """Return the class of an answer by its wording alone: as short text, or as it is if it is too long to be read."""
    return short_class(answer) if len(answer) <= LONGEST else AnswerClass(" ".join(answer.split()))


def _key(answer: str) -> str:
    class_ = wording(answer)
    return class_.key if class_ else ""
