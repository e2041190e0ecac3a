"""Where sentences start: by punctuation, with abbreviations, initials, decimals and list numbers left alone.

A rule of thumb for Western and East Asian punctuation, with English abbreviations. Where it is in doubt it does not
split: two sentences taken as one are still read whole. Linear in the length of the text.
"""

import re

from eldgr_dspy.sentence_ends import ABBREVIATIONS, BEFORE_NUMBERS, OPENERS

# A stop, the signs that close behind it, and white space; behind East Asian stops there need not be any.
_STOP = re.compile(
    r"""(?: (?P<mark> [.!?…]++ ) ["'”’»)\]*_]*+ \s++ | [。！？｡]++ [」』”’）"']*+ \s*+ ) (?=\S)""", re.VERBOSE
)
_WORD_BEFORE = re.compile(r"(?:[^\W\d_]\.)*[^\W_]+\Z")
_WORD_AFTER = re.compile(r"[\"'“‘«(\[*_]*+([^\W\d_]+)")
_LETTERED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
# What may stand before the number of a list.
_MARKS = " \t\r\n*_#>-("
# No abbreviation is longer.
_REACH = 24


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return where each sentence but the first starts in `text[start:end]`, as offsets of `text`."""
    limit = len(text) if end is None else end
    starts: list[int] = []
    for stop in _STOP.finditer(text, start, limit):
        before = starts[-1] if starts else start
        if stop["mark"] is None or _ends(text, before, stop, limit):
            starts.append(stop.end())
    return starts


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without white space around them."""
    starts = sentence_starts(text)
    pieces = (text[start:end].strip() for start, end in zip([0, *starts], [*starts, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def _ends(text: str, before: int, stop: re.Match[str], limit: int) -> bool:
    """Whether a stop ends the sentence that starts at `before`."""
    following = _WORD_AFTER.match(text, stop.end(), limit)
    if following and following[1][0].islower():
        return False
    if stop["mark"] != ".":
        return True
    word = _WORD_BEFORE.search(text[max(before, stop.start() - _REACH) : stop.start()])
    if word is None:
        return True
    label = word[0].isdecimal() or len(word[0]) == 1
    if label and stop.start() - before <= _REACH and not text[before : stop.start() - len(word[0])].strip(_MARKS):
        return False  # the number of a list
    name = word[0].lower()
    if name in BEFORE_NUMBERS:
        return not text[stop.end()].isdecimal()
    if name in ABBREVIATIONS or _LETTERED.fullmatch(word[0]):
        return following is not None and following[1].lower() in OPENERS
    return True
