"""Scoring by words alone: how far passages, or executed equations, support each candidate.

The lexical judge uses only this. It is a baseline that any LM must beat: it does not read meaning, see the gold answer,
learn or sample. It is not a certificate: a score of 1 says that words coincide.

Every function is pure and takes any text. The formulas are ours. The stop words are English; other text scores less.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from eldgr_dspy.answer_types.answers import is_polar, numeric_equal
from eldgr_dspy.matching.occurrences import STOP_WORDS
from eldgr_dspy.rule.consultations import split_candidate
from eldgr_dspy.rule.derivations import true_equations
from eldgr_dspy.text.sentence_ends import sentences
from eldgr_dspy.text.stripping import strip_answer

SOURCES = 3  # passages that must contain an answer for `triang` to be 1: M in the paper's channel


@dataclass(frozen=True, slots=True)
class Support:
    """How far one candidate is supported.

    Attributes:
        scalar: The mean of the measured signals, in [0, 1]; 0 without any.
        logic: The share of the stated equations that are true, or None if none is stated, or with evidence.
        fact: The share, weighted by rarity, of the candidate's words in the evidence, or None without evidence.
        triang: How many different passages contain the answer, over `SOURCES`, at most 1, or None without evidence.
    """

    scalar: float
    logic: float | None = None
    fact: float | None = None
    triang: float | None = None


def support(question: str, evidence: Sequence[str], candidates: Sequence[str]) -> list[Support] | None:
    """Return the support of each candidate, or None without evidence or equations; all texts are as roles see them."""
    library = Library(evidence)
    score = partial(_by_evidence, question, library) if library.sentences else partial(_by_arithmetic, question)
    parts = [(text, answer, strip_answer(answer)) for text, answer in map(split_candidate, candidates)]
    pairs = [(alone if text == answer else text, alone) for text, answer, alone in parts]
    supports = {pair: score(*pair) for pair in dict.fromkeys(pairs)}
    results = [supports[pair] for pair in pairs]
    return results if library.sentences or any(one.logic is not None for one in results) else None


def _mean(signals: Iterable[float | None]) -> float:
    values = [signal for signal in signals if signal is not None]
    return min(1.0, sum(values) / len(values)) if values else 0.0


# --- words and their weights ------------------------------------------------------------------------------------------

WORD = re.compile(r"\w+")
_YES_NO = re.compile(r"\W*(?:are|is|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    return [*map(str.casefold, WORD.findall(text))]


def content(words: Iterable[str]) -> set[str]:
    """Return the words that are not stop words, or all words if there are only stop words."""
    distinct = set(words)
    return (distinct - STOP_WORDS) or distinct


def sentences_of(passage: str) -> Iterator[str]:
    """Yield the sentences of a passage in order; none crosses a line, so a title is never joined to its text."""
    for line in passage.split("\n"):
        yield from sentences(line)


def is_yes_no(question: str) -> bool:
    return _YES_NO.match(question) is not None


def offers_a_choice(question: str) -> bool:
    """Say whether the question names its own answers, as in 'Which band is older, Muse or The Raconteurs?'."""
    _, conjunction, last = question.rpartition(" or ")
    return bool(conjunction) and last.lstrip("\"'“ ")[:1].isupper()


class Library:
    """The words of some passages: sentence by sentence, passage by passage, and how rare each of them is."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.sentences: list[str] = []  # words joined and framed by one space, so that only whole words match
        self.source: list[int] = []  # the passage of each sentence
        self.in_passage: list[set[str]] = []
        for number, text in enumerate(dict.fromkeys(passages)):
            self.in_passage.append(set())
            for words in filter(None, map(words_of, sentences_of(text))):
                self.sentences.append(f" {' '.join(words)} ")
                self.source.append(number)
                self.in_passage[number].update(words)
        self.passages_with = Counter(word for words in self.in_passage for word in words)

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency that BM25 uses; positive for every word."""
        n, holding = len(self.in_passage), self.passages_with[word]
        return math.log1p((n - holding + 0.5) / (holding + 0.5))

    def weight(self, words: Iterable[str]) -> float:
        return math.fsum(map(self.rarity, words))

    def share(self, part: Iterable[str], whole: Iterable[str]) -> float:
        """Return the weight of a part over that of its whole, which is not empty, in [0, 1]."""
        return min(1.0, self.weight(part) / self.weight(whole))


# --- the judge: support by evidence, or by arithmetic -----------------------------------------------------------------


def _by_evidence(question: str, library: Library, text: str, answer: str) -> Support:
    """Score by four equal signals: coverage, occurrence and context of the answer, and coverage of the reasoning."""
    topic = content(words_of(question))
    own = content(words_of(text)) - topic
    grounding = library.share((word for word in own if word in library.passages_with), own) if own else None
    if is_polar(answer):
        return Support(_mean([grounding] if is_yes_no(question) else [0.0, 0.0, 0.0, grounding]), fact=grounding)
    if not (words := words_of(answer)):
        return Support(0.0)
    terms, phrase = content(words), f" {' '.join(words)} "
    sentences = [number for number, sentence in enumerate(library.sentences) if phrase in sentence]
    coverage = max(library.share(terms & passage, terms) for passage in library.in_passage)
    company = _company(library, topic, terms, sentences, repeats=not offers_a_choice(question))
    return Support(
        scalar=_mean([coverage, float(bool(sentences)), company, grounding]),
        fact=_mean([coverage, grounding]),
        triang=min(1.0, len({library.source[number] for number in sentences}) / SOURCES),
    )


def _company(library: Library, topic: set[str], words: set[str], sentences: list[int], repeats: bool) -> float:
    """The share of the question that is near the answer; 0 for an answer that only repeats its words."""
    rest = topic - words
    if not rest or not sentences or (repeats and words <= topic):  # a choice that the question offers may repeat it
        return 0.0
    wide = {source: rest & library.in_passage[source] for source in {library.source[number] for number in sentences}}
    shares = {source: library.share(words, rest) for source, words in wide.items()}
    near = ((number, rest.intersection(library.sentences[number].split())) for number in sentences)
    return max((library.share(words, rest) + shares[library.source[number]]) / 2 for number, words in near)


_FIGURE = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
_RESULT = re.compile(r"=[ \t]?[$£€]?(-?[0-9][0-9,]*(?:\.[0-9]+)?)")


def _by_arithmetic(question: str, text: str, answer: str) -> Support:
    """Score by three equal signals: true equations, numbers of the question used, the last result as the answer."""
    true, total = true_equations(text)
    if not total:
        return Support(0.0)
    numbers, results = _figures(question), _RESULT.findall(text)
    share = len(numbers & _figures(text)) / len(numbers) if numbers else None
    ends = float(bool(results) and numeric_equal(answer, [results[-1]]))
    return Support(_mean([true / total, share, ends]), logic=true / total)


def _figures(text: str) -> set[float]:
    return {float(figure.replace(",", "")) for figure in _FIGURE.findall(text)}
