"""Measure how much two texts have in common, by words only: the inputs of `info`, `triang` and `min` without a model.

It has novelty, progress, near-duplicates and new claims. The formulas are ours; the paper leaves them open. Meaning is
ignored: a paraphrase counts as new, and a negation as almost the same. Texts in scripts without spaces are compared by
pairs of characters. Steps and claims are compared only if they share words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.grounding import ENTAILS
from eldgr_dspy.channels.undefined import Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.occurrences import STOP_WORDS
from eldgr_dspy.rule.lexical import WORD
from eldgr_dspy.text.folding import fold

NEAR = 0.8
"""From this similarity on, two texts are near-duplicates, and a claim repeats an earlier one."""

SHINGLE = 3
"""Words in a row that near-duplicates are compared by."""

# Runs of scripts that are written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han.
_RUN = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def units(text: str) -> list[str]:
    """Return the units of a comparison: the folded words in order, or pairs of characters in scripts without spaces."""
    words = WORD.findall(fold(text).text)
    return words if text.isascii() else [unit for word in words for unit in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    for at, part in enumerate(_RUN.split(word)):  # every second part is a run
        if at % 2:
            yield from map("".join, pairwise(part)) if len(part) > 1 else part
        elif part:
            yield part


def _content(text: str) -> frozenset[str]:
    return frozenset(units(text)) - STOP_WORDS


def _jaccard(first: frozenset[object], second: frozenset[object]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def _shingles(text: str) -> frozenset[object]:
    """Each run of three words, or all words if there are fewer."""
    words = units(text)
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1)) if words)


def novelty(steps: Sequence[str]) -> Scores:
    """nov_t = 1 - the greatest similarity to any earlier step, in [0, 1]; the first step is new.

    Similarity is the number of common words over the number of all words of the two, without stop words. A step with
    only stop words is undefined.
    """
    bags = [_content(step) for step in steps]
    holding: dict[str, list[int]] = {}
    scores: list[float | Undefined] = []
    for at, words in enumerate(bags):
        overlaps = Counter(earlier for word in words for earlier in holding.get(word, ()))
        closest = max((n / (len(words) + len(bags[earlier]) - n) for earlier, n in overlaps.items()), default=0.0)
        scores.append(1 - closest if words else Undefined("the step has only stop words"))
        for word in words:
            holding.setdefault(word, []).append(at)
    return Scores.of(scores, "novelty", 0, 1)


def progress(steps: Sequence[str], question: str, answer: str = "") -> Scores:
    """prog_t: the share of the words of question and answer that a step is the first to use, in [0, 1].

    Stop words do not count; over all steps it sums to at most 1. Undefined if question and answer have only stop words.
    """
    if not (target := _content(question) | _content(answer)):
        return Scores.of([Undefined("question and answer have only stop words")] * len(steps))
    rest, shares = set(target), list[float]()
    for step in steps:
        hits = rest & _content(step)
        rest -= hits
        shares.append(len(hits) / len(target))
    return Scores.of(shares, "progress", 0, 1)


def independent_sources(documents: Sequence[Passage]) -> int:
    """n_indep: how many of the documents that entail a step are independent of one another.

    Two documents count as one if they have the same title or are near-duplicates, and so do all documents that such
    pairs connect. Two empty titles are not the same title. Order and further copies do not change the number.
    """
    shingles = [_shingles(document.text) for document in documents]
    names = [fold(document.title).text.strip() for document in documents]
    group = list(range(len(documents)))
    for index in range(len(documents)):
        for other in range(index):
            if (names[index] and names[index] == names[other]) or _jaccard(shingles[index], shingles[other]) >= NEAR:
                old, into = group[index], group[other]
                group = [into if member == old else member for member in group]
    return len(set(group))


def new_unsupported(claims: Sequence[Sequence[str] | Undefined], best: Sequence[Scores]) -> Scores:
    """n_new: how many claims of each step are made for the first time, and entailed by no document.

    Args:
        claims: The claims of each step, in order.
        best: For each step, max_d f_NLI of each of its claims; below `ENTAILS` no document entails the claim.

    Returns:
        A whole number a step; undefined for a step without claims, or if their support is undefined.

    Raises:
        ArgumentError: The two differ in length, or a step's scores from its claims.
    """
    if len(claims) != len(best):
        raise ArgumentError(
            f"Claims of {len(claims)} steps were given with {len(best)} columns of scores; give one a step."
        )
    earlier_claims = defaultdict[object, set[frozenset[object]]](set)
    counts = [_count_new(own, support, earlier_claims) for own, support in zip(claims, best, strict=True)]
    return Scores.of(counts, "unsupported", 0)


def _count_new(
    own: Sequence[str] | Undefined, support: Scores, index: defaultdict[object, set[frozenset[object]]]
) -> float | Undefined:
    """Count one step's claims, and add them to an index of claims by each run of words in them."""
    if isinstance(own, Undefined):
        return own
    if len(own) != len(support):
        raise ArgumentError(f"{len(own)} claims of a step were given with {len(support)} scores; give one a claim.")
    if not own:
        return Undefined("the step makes no claim")
    new = []
    for claim in map(_shingles, own):
        alike = {earlier for run in claim for earlier in index[run]}
        new.append(not any(_jaccard(claim, earlier) >= NEAR for earlier in alike))
        for run in claim:
            index[run].add(claim)
    if support.reasons:
        return Undefined(support.reasons[min(support.reasons)])
    return float(sum(is_new and f < ENTAILS for is_new, f in zip(new, support.numbers, strict=True)))
