"""The claims of an answer, and the windows of passages that are to entail them.

A claim is a sentence, or a line of a list, of an answer. All are kept: plans, questions and asides too, so that leaving
something out never helps. The first claim is read with the question, since it may be a fragment ("In Doha."). A later
one that leans on what is before it ("It has ...", "The city ...", "- Doha", the rest of a broken line) is read with the
sentences that it leans on. Windows are
whole sentences of one passage, and neighbouring windows overlap, so that two sentences that fit are together in one.
Linear in the length of the texts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eldgr_dspy.answer_types.entailment.hard_keys import LINE, HardKeys, hard_keys
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.sentence_ends import sentence_starts

Span = tuple[int, int]

# About what a tokenizer makes of a text, rather more than less: four letters, or any other sign.
_TOKEN = re.compile(r"[A-Za-z]{1,4}|[^\sA-Za-z]")
# A word; in scripts without spaces, two characters.
_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_WIDE}]{{1,2}}|[^\W_{_WIDE}]+")
_INSIDE = re.compile(rf"[^\s{_WIDE}]{{2}}")  # around a place where no word may be cut
_FEW = 3
_ITEM = re.compile(r"\s*(?:[-*•–+]|\(?\w{1,2}[.)])\s")
_PRONOUNS = frozenset("he she it they him his her hers its them their theirs".split())
_LEANING = frozenset(
    "the this that these those there here such both either neither former latter and but or so then also too yes no"
    "".split()
)
_ENDED = re.compile(r"[.!?…。！？｡][^\w.!?…。！？｡]*\Z")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an answer.

    Attributes:
        text: The claim alone.
        hypothesis: What a window must entail: the claim, with what it leans on.
        keys: The hard keys of the claim alone.
    """

    text: str
    hypothesis: str
    keys: HardKeys


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a passage: `start:end` of its text, or of its title if there is no text."""

    passage: int
    start: int
    end: int
    premise: str
    keys: HardKeys


def token_count(text: str) -> int:
    """Return about how many tokens a text has, rather more than less."""
    return sum(1 for _ in _TOKEN.finditer(text))


def claims_of(answer: str, question: str) -> list[Claim]:
    """Return the claims of an answer, in order; none if it has no letter and no digit."""
    claims, anchor = list[Claim](), 0
    for start, end in sentence_spans(answer):
        claim = answer[start:end]
        if claims and _ENDED.search(claims[-1].text) and not _leans(claim):
            anchor = start
        context = answer[anchor:end] if anchor else f"{question} {answer[:end]}"
        claims.append(Claim(claim.strip(), context.strip(), hard_keys(claim)))
    return claims


def windows_of(passages: Sequence[Passage], tokens: int) -> Iterator[Window]:
    """Yield the windows of passages, in order, each of at most so many tokens; a repeated one once.

    The title of a passage is before each of its windows, unless it is longer than a quarter of them.
    """
    seen = set[str]()
    for index, passage in enumerate(passages):
        title, text = (passage.title, passage.text) if passage.text.strip() else ("", passage.title)
        length = token_count(title)
        title, room = (title, tokens - length) if 4 * length <= tokens else ("", tokens)
        for start, end in _grouped(text, room):
            premise = show_passage(title, text[start:end])
            if premise not in seen:
                seen.add(premise)
                yield Window(index, start, end, premise, hard_keys(premise))


def sentence_spans(text: str) -> list[Span]:
    """Return the sentences of a text, line by line; a piece without a letter or a digit belongs to the one before."""
    spans: list[Span] = []
    for line in LINE.finditer(text):
        edges = [line.start(), *sentence_starts(text, *line.span()), line.end()]
        for start, after in pairwise(edges):
            end = start + len(text[start:after].rstrip())
            if any(map(str.isalnum, text[start:end])):
                spans.append((start, end))
            elif spans:
                spans[-1] = spans[-1][0], end
    return spans


def _leans(claim: str) -> bool:
    """Whether a claim needs what is before it: it is short, an item of a list, or has a word such as "it"."""
    words = _WORD.findall(claim.casefold())
    leaning = words[0] in _LEANING or not _PRONOUNS.isdisjoint(words)
    return len(words) < _FEW or leaning or _ITEM.match(claim) is not None


def _grouped(text: str, room: int) -> Iterator[Span]:
    """The spans of the windows: as many sentences as fit; the next window starts with the last half, or the last."""
    pieces = [piece for span in sentence_spans(text) for piece in _cut(text, span, room)]

    def size(first: int, last: int) -> int:
        """The tokens from one piece to another, with what is left out between."""
        return token_count(text[pieces[first][0] : pieces[last][1]])

    at = 0
    while at < len(pieces):
        end = at + 1
        while end < len(pieces) and size(at, end) <= room:
            end += 1
        yield pieces[at][0], pieces[end - 1][1]
        if end == len(pieces):
            return
        again = end
        while again - 1 > at and (again == end or size(again - 1, end - 1) <= room // 2):
            again -= 1
        at = again


def _cut(text: str, span: Span, room: int) -> list[Span]:
    """A sentence; one that is too long for a window is cut into parts of which each starts in the middle of another.

    A part is left out if it lacks a word such as "not" or "may" that the sentence has, since it may say the opposite.
    """
    tokens = [found.span() for found in _TOKEN.finditer(text, *span)]
    if len(tokens) <= room:
        return [span]
    step = max(1, room // 2)
    starts = range(0, max(1, len(tokens) - room + step), step)
    parts = [(tokens[at][0], tokens[min(at + room, len(tokens)) - 1][1]) for at in starts]
    moods = hard_keys(text[slice(*span)]).moods
    whole = [_of_whole_words(text, part, span) for part in parts]
    return [(start, end) for start, end in whole if hard_keys(text[start:end]).moods == moods]


def _of_whole_words(text: str, part: Span, span: Span) -> Span:
    """A part of a sentence without the words that its edges cut, unless it has no others."""

    def cuts(at: int) -> bool:
        return span[0] < at < span[1] and _INSIDE.match(text, at - 1) is not None

    start = next((at for at in range(*part) if not cuts(at) and not text[at].isspace()), part[0])
    end = next((at for at in range(part[1], start, -1) if not cuts(at) and not text[at - 1].isspace()), part[1])
    return start, end
