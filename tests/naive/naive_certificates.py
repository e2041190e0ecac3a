"""Whether an answer occurs in the evidence, the obvious way: every place is tried, and looked at from both sides."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from eldgr_dspy.certificates import Passage
from eldgr_dspy.matching.occurrences import FUNCTION_WORDS
from tests.naive.naive_amounts import is_part, quantity
from tests.naive.naive_answers import is_polar, read, short_key, text_key
from tests.naive.naive_reading import (
    BIDI,
    EAST_ASIAN,
    ENTITY,
    Piece,
    fold,
    invisible,
    join,
    resolve,
    respell,
    sentence_ends,
    strip,
)
from tests.naive.naive_wholes import in_word, whole

LONGEST = 2_000
LINE = r"(?:\r\n|\n|\r(?!\n)|[\x85\u2028])"
BLANK_LINE = re.compile(
    rf"{LINE}\s*{LINE}|[\u2029\x0b\x0c]|</(?:p|li|td|th|tr|dd|dt|div|h[1-6]|blockquote)\s*>|<br\s*/?>\s*<br", re.I
)
PAIRS = dict(zip("([{「『《【〈", ")]}」』》】〉", strict=True))

Place = tuple[int, str, int, int]
"""Passage, field, start and end."""
Span = tuple[int, int]


def occurs(answer: str | None, passages: Sequence[Passage], policy: str) -> bool | None:
    """The certificate of an answer: True, False, or None where it does not apply."""
    values = (answer or "").strip()
    if policy != "substring" and not is_refused(values) and is_polar(values):
        return None
    return occurrence(values, passages, policy) is not None


def is_verbatim(answer: str | None, passages: Sequence[Passage], policy: str) -> bool:
    """Whether an answer is certified, and by a witness that is the stripped answer, character for character."""
    values = (answer or "").strip()
    place = occurrence(values, passages, policy) if occurs(answer, passages, policy) else None
    if place is None:
        return False
    number, field, start, end = place
    source = passages[number].text if field == "text" else passages[number].title
    return source[start:end] == (values if policy == "substring" else strip(values))


def is_refused(value: str) -> bool:
    return len(text_key(read(value))) > LONGEST or any(character in BIDI for character in strip(value))


def occurrence(value: str, passages: Sequence[Passage], policy: str) -> Place | None:
    """The first occurrence that is the answer as given, else the first; a text before its title."""
    if not value or (policy != "substring" and (is_refused(value) or not any(map(str.isalnum, text_key(read(value)))))):
        return None
    inner = value if policy == "substring" else strip(value)
    results: list[Place] = []
    for number, passage in enumerate(passages):
        for field, source in (("text", passage.text), ("title", passage.title)):
            spans = plainly(value, source) if policy == "substring" else in_class(value, source, policy, field)
            results += [(number, field, start, end) for start, end in spans]
    wide = [wider for place in results if (wider := widen(inner, passages[place[0]], place)) is not None]
    return next(iter(wide + results), None)


def widen(value: str, passage: Passage, place: Place) -> Place | None:
    """An occurrence with as much around it as was given, where the same stands in the source."""
    number, field, start, end = place
    source = passage.text if field == "text" else passage.title
    for offset in range(len(value)):
        begin = start - offset
        same = begin >= 0 and value == source[begin : begin + len(value)] and begin + len(value) >= end
        if same and is_balanced(value) and not hidden_edges(value):
            return number, field, begin, begin + len(value)
    return None


def hidden_edges(value: str) -> bool:
    """Whether a text begins or ends with what shows nothing, which no occurrence does."""
    characters = resolve(value)
    if not characters:
        return True
    first, last = characters[0], characters[-1]
    return (
        first[1] > 0
        or any(invisible(character) or character.isspace() for character, _ in (first, last))
        or (last[1] + 1 < len(value) and not value.endswith(";"))
    )


def plainly(value: str, source: str) -> list[Span]:
    return [(at, at + len(value)) for at in range(len(source)) if source.startswith(value, at)]


@cache  # a pool asks for the same passages many times
def pieces_of(source: str, keep_case: bool) -> tuple[Piece, ...]:
    return tuple(fold(source, keep_case=keep_case))


@cache
def key_of(text: str) -> str:
    return short_key(text_key(respell(strip(text))))


def in_class(value: str, source: str, policy: str, field: str) -> list[Span]:
    """Every span of a source that is of the answer's class, and so is the whole around it."""
    keep_case = policy == "token"
    key = short_key(text_key(read(value, keep_case=keep_case)))
    pieces = pieces_of(source, keep_case)
    text = join(list(pieces))
    out: list[Span] = []
    for start, end in spans_of_amounts(key, text) if quantity(key) else spans_of_letters(key, text):
        if in_word(text, start) or in_word(text, end):
            continue
        first, last = whole(text, start, end)
        if key_of(text[first:last]) != key or crosses(text[start:end], text[first:last], field):
            continue
        if is_part(key, text, first, last):
            continue
        least = least_span(text, key, (start, end), (first, last))
        place = least and in_source(pieces, source, *least)
        if place and not hides(source, *place) and (key.casefold() not in FUNCTION_WORDS or is_name(source, *place)):
            out.append(place)
    return out


def spans_of_letters(key: str, text: str) -> Iterator[Span]:
    """Where the letters and digits of a key stand, whatever stands between them; .5 may be written 0.5."""
    places = letters_in(text)
    letters = [key[at] for at in letters_in(key)]
    for n in range(len(places) - len(letters) + 1 if letters else 0):
        result = places[n : n + len(letters)]
        if all(text[at] == letter for at, letter in zip(result, letters, strict=True)):
            yield result[0], result[-1] + 1


def spans_of_amounts(key: str, text: str) -> Iterator[Span]:
    """Where a spelling of a quantity may stand: from a letter to a letter at most 240 further."""
    places = letters_in(text)
    ends = [at + 1 for at in places if not in_word(text, at + 1)]
    for start in places:
        if not in_word(text, start):
            yield from ((start, end) for end in ends if start < end <= start + 240)


@cache
def letters_in(text: str) -> list[int]:
    zeros = {match.start() for match in re.finditer(r"(?<!\d)0(?=\.\d)", text)}
    return [at for at, character in enumerate(text) if is_letter(character) and at not in zeros]


def is_letter(character: str) -> bool:
    """Whether a search goes by a character: a letter, a digit, or a mark beyond ASCII, which no key leaves out."""
    return character.isalnum() or not character.isascii()


def crosses(inner: str, around: str, field: str) -> bool:
    """Whether a sentence or a clause ends within a span, or a bracket has no other half."""
    if re.search(rf";\s|\s;|;(?={EAST_ASIAN})", inner) or (not is_balanced(inner) and not is_balanced(around)):
        return True
    return field == "text" and bool(sentence_ends(inner))


def is_balanced(text: str) -> bool:
    stack = ""
    for character in text:
        if character in PAIRS:
            stack += PAIRS[character]
        elif character in PAIRS.values():
            if not stack.endswith(character):
                return False
            stack = stack[:-1]
    return not stack


def least_span(text: str, key: str, inner: Span, around: Span) -> Span | None:
    """The least part of the whole that is of the class and in which each bracket has its other half."""
    spans = [(s, e) for s in range(around[0], inner[0] + 1) for e in range(inner[1], around[1] + 1)]
    for start, end in sorted(spans, key=lambda span: (span[1] - span[0], span)):
        if is_balanced(text[start:end]) and key_of(text[start:end]) == key:
            return start, end
    return None


def in_source(pieces: Sequence[Piece], source: str, start: int, end: int) -> Span | None:
    """The slice of the source for a slice of the folded text, if it is one; without what shows nothing at its end."""
    edges: dict[int, int] = {}
    length = 0
    for piece, at in pieces:
        edges[length] = at
        length += len(piece)
    edges[length] = len(source)
    if start not in edges or end not in edges:
        return None
    visible = [at for character, at in resolve(source) if at < edges[end] and not invisible(character)]
    entity = ENTITY.match(source, visible[-1])
    return edges[start], entity.end() if entity else visible[-1] + 1


def hides(source: str, start: int, end: int) -> bool:
    """Whether the source holds what folding does not show."""
    inner, before = source[start:end], source[:start]
    if any(character in BIDI for character in inner) or BLANK_LINE.search(inner):
        return True
    number = r"[\d\u00bc-\u00be]"
    return re.search(rf"(?<!{number})(?<!{number}\s)−\s\W{{0,2}}\Z", before) is not None


def is_name(source: str, start: int, end: int) -> bool:
    """Whether a function word is written as a name: "US", "U.S." and "The Who" are, "us" and "It" are not."""
    word, before = (join(fold(part, keep_case=True)) for part in (source[start:end], source[:start]))
    behind = source[end:]
    if re.search(r"[^\W\d_]\.\s?[^\W\d_]", word):
        return True
    if len(word) == 1:
        return word == "A" and source[start - 1 : start] != "\n" and re.search(r"[^\W_][ -]\Z", before) is not None
    if word.isupper():
        line = source[:start][-80:].rpartition("\n")[2] + behind[:80].partition("\n")[0]
        return not (line.upper() == line != line.lower())  # in a line of capitals, capitals do not make a name
    return word[:1].isupper() and re.search(r"\b(?:[Tt]he|THE)\s\Z", before) is not None
