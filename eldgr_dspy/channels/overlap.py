"""How much two texts share, by words alone: the numbers behind `info`, `triang` and `min` that need no model.

Novelty, progress, near-duplicates and what is new among claims. The formulas are ours; the paper leaves them open. No
meaning is read: a paraphrase counts as new, and a negation as nearly the same. Texts in scripts without spaces are
compared by pairs of characters. Of steps and claims only those that share words are compared with one another.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from eldgr_dspy.channels.undefined import Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.folding import fold
from eldgr_dspy.lexical import WORD
from eldgr_dspy.occurrences import STOP_WORDS

NEAR = 0.8
"""From this similarity on, two texts are near-duplicates."""

SHINGLE = 3
"""Words in a row that near-duplicates are compared by."""

# Runs of scripts that are written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han.
_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def units(text: str) -> list[str]:
    """Return what a text is compared by: its folded words in order, pairs of characters where words have no gaps."""
    return [unit for word in WORD.findall(fold(text).text) for unit in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    end = 0
    for run in _RUN.finditer(word):
        if run.start() > end:
            yield word[end : run.start()]
        characters = run.group()
        yield from map("".join, pairwise(characters)) if len(characters) > 1 else characters
        end = run.end()
    if end < len(word):
        yield word[end:]


def _content(text: str) -> frozenset[str]:
    return frozenset(units(text)) - STOP_WORDS


def _jaccard(one: frozenset[object], other: frozenset[object]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def _shingles(text: str) -> frozenset[object]:
    """Each run of three words, or the whole where there are fewer."""
    words = units(text)
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1)) if words)


def novelty(steps: Sequence[str]) -> Scores:
    """nov_t = 1 - the greatest similarity to any earlier step, in [0, 1]; the first step is new.

    Similarity is the share of the words of both that are in both, stop words aside. A step without such a word is
    undefined.
    """
    kept = [_content(step) for step in steps]
    holding: dict[str, list[int]] = {}
    scores: list[float | Undefined] = []
    for at, words in enumerate(kept):
        shared = Counter(earlier for word in words for earlier in holding.get(word, ()))
        closest = max((n / (len(words) + len(kept[earlier]) - n) for earlier, n in shared.items()), default=0.0)
        scores.append(1 - closest if words else Undefined("the step has no word that says something"))
        for word in words:
            holding.setdefault(word, []).append(at)
    return Scores.of(scores, "novelty", 0, 1)


def progress(steps: Sequence[str], question: str, answer: str = "") -> Scores:
    """prog_t: the share of the words of question and answer that a step is the first to use, in [0, 1].

    Stop words aside; over all steps it sums to at most 1. Undefined where question and answer have no such word.
    """
    target = _content(question) | _content(answer)
    if not target:
        return Scores.of([Undefined("question and answer have no word that says something")] * len(steps))
    left, shares = set(target), list[float]()
    for step in steps:
        covered = left & _content(step)
        left -= covered
        shares.append(len(covered) / len(target))
    return Scores.of(shares, "progress", 0, 1)


def similarity(one: str, other: str) -> float:
    """Return how far two texts are the same, in [0, 1]: the share of their runs of three words that both have."""
    return _jaccard(_shingles(one), _shingles(other))


def independent_sources(texts: Sequence[str], sources: Sequence[str], near: float = NEAR) -> int:
    """n_indep: how many of the documents that entail a step are independent of one another.

    Two documents are one where they have the same source or are near-duplicates, and so are all that such pairs
    connect. Neither their order nor a further copy changes the number.

    Args:
        texts: The documents.
        sources: The title or address of each; empty where it is unknown.
        near: From this similarity on, two texts are near-duplicates; in (0, 1].

    Raises:
        ArgumentError: The two differ in length, or `near` is out of range.
    """
    if len(texts) != len(sources):
        raise ArgumentError(
            f"{len(texts)} texts were given with {len(sources)} sources; give one source a text, or ''."
        )
    if not 0 < near <= 1:
        raise ArgumentError(f"near={near} is not a similarity; give a number above 0, at most 1.")
    shingles, names = [_shingles(text) for text in texts], [fold(source).text.strip() for source in sources]
    group = list(range(len(texts)))
    for one in range(len(texts)):
        for other in range(one):
            if (names[one] and names[one] == names[other]) or _jaccard(shingles[one], shingles[other]) >= near:
                joined, into = group[one], group[other]
                group = [into if member == joined else member for member in group]
    return len(set(group))


def new_unsupported(
    claims: Sequence[Sequence[str] | Undefined], best: Sequence[Scores], threshold: float = 0.5, near: float = NEAR
) -> Scores:
    """n_new: how many claims of each step no earlier step made and no document entails.

    Args:
        claims: The claims of each step, in order.
        best: For each step, max_d f_NLI of each of its claims.
        threshold: From this f_NLI on, a document entails a claim.
        near: From this similarity on, a claim is one that was made before.

    Returns:
        A whole number a step; undefined for a step that makes no claim, and where no support could be read.

    Raises:
        ArgumentError: The two differ in length, or a step's scores from its claims.
    """
    if len(claims) != len(best):
        raise ArgumentError(
            f"Claims of {len(claims)} steps were given with {len(best)} columns of scores; give one a step."
        )
    made: _Made = defaultdict(set)
    counts: list[float | Undefined] = []
    for own, support in zip(claims, best, strict=True):
        counts.append(_count_new(own, support, made, threshold, near))
    return Scores.of(counts, "unsupported", 0)


_Made = defaultdict[object, set[frozenset[object]]]
"""The claims that were made, by each run of words that is in them."""


def _count_new(
    own: Sequence[str] | Undefined, support: Scores, made: _Made, threshold: float, near: float
) -> float | Undefined:
    """Count one step's claims, and note them as made."""
    if isinstance(own, Undefined):
        return own
    if len(own) != len(support):
        raise ArgumentError(f"{len(own)} claims of a step were given with {len(support)} scores; give one a claim.")
    if not own:
        return Undefined("the step makes no claim")
    new = []
    for claim in map(_shingles, own):
        alike = {earlier for run in claim for earlier in made[run]}
        new.append(not any(_jaccard(claim, earlier) >= near for earlier in alike))
        for run in claim:
            made[run].add(claim)
    if support.reasons:
        return Undefined(support.reasons[min(support.reasons)])
    return float(sum(is_new and f < threshold for is_new, f in zip(new, support.numbers, strict=True)))
