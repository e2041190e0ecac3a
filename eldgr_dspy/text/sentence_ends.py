"""Find where sentences end: which full stops end one, and which belong to a word, an initial or a number.

A rule of thumb for Western and East Asian punctuation, with English abbreviations. Where it is in doubt it does not
split. A text as it was written is split by case and the words that follow too. A folded one has lost its case.
"""

import re
from itertools import pairwise

# English words that are written with a full stop of their own, in lower case and without it.
_ABBREVIATIONS = frozenset(
    "adm approx apt assn ave bldg blvd brig bros ca capt cf chap cmdr co col corp cpl dept dist dr ed eds eq est etc"
    " ex feat fig figs ft gen gov hon inc inst jr lt ltd maj messrs mlle mme mr mrs ms msgr mt mts op orig ph pl pp"
    " pres prof pt pvt rd ref rep resp rev sen sgt sq sr st ste supt univ viz vol vols vs wm jan feb mar apr jun jul"
    " aug sep sept oct nov dec".split()
)
# Abbreviations where a number follows, words of their own elsewhere.
_BEFORE_NUMBERS = frozenset("no nos art ch sec".split())
# After an abbreviation one of these starts a sentence after all.
_OPENERS = frozenset(
    "after although and as because but finally first for hence he her his how however if in it its let next now she"
    " since so that the their then there therefore these they this thus to we what when which while with".split()
)
_OPENING = re.compile(rf"\.(?=\s(?:{'|'.join(word.title() for word in _OPENERS)})\b)")
_INITIALS = re.compile(r"(?<!\w)[^\W\d_]\.[ ]?[^\W\d_]\.\Z")
# East Asian stops need no white space after them.
_FOLDED_STOP = re.compile(
    r"""(?=[.!?。｡]) (?: (?<![.!?])[.!?]++ (?:(?![.!?])[^\w\s]){0,4} [ ] (?=\S) | [。｡](?=.)
    | (?<![!?])[!?]++(?=[\u3040-\u9fff\uac00-\ud7af]) )""",
    re.VERBOSE,
)
# A stop, the closing signs after it, and white space, which is optional after East Asian stops. A run of stops is one.
_STOP = re.compile(
    r"""(?: (?<![.!?…])[.!?…]++ ["'”’»)\]*_]*+ \s++ | (?<![。！？｡])[。！？｡]++ [」』”’）"']*+ \s*+ ) (?=\S)""",
    re.VERBOSE,
)
_WORD_AFTER = re.compile(r"[\"'“‘«(\[*_]*+([^\W\d_]+)")
_MARKS = " \t\r\n*_#>-("  # what may be before the number of a list
_WORD_BEFORE = re.compile(r"(?:[^\W\d_]\.)*[^\W_]+\Z")
_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
REACH = 24  # no abbreviation is longer


def has_own_stop(text: str) -> bool:
    """Return whether the full stop that ends a text belongs to its last word: "Inc.", "U.S.", not "Vitamin A."."""
    if _INITIALS.search(text):
        return True
    word = _WORD_BEFORE.search(text[-REACH:-1])
    return word is not None and word[0].lower() in _ABBREVIATIONS


def without_stop(text: str) -> str:
    """Return a text without a sentence's full stop at its end; "!" and "?" may belong to a name and stay."""
    if text.endswith(".") and not text.endswith("..") and has_own_stop(text):
        return text
    return text.rstrip(".。｡…").rstrip() or text


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, with its stop.

    After an abbreviation it ends only if a word follows that mostly starts a sentence, as in "the U.S. It was".
    """
    ends = [end for _, end in sentence_ends(text)[:1]]
    opening = _OPENING.search(text)
    return text[: min([*ends, opening.start() + 1] if opening else ends, default=len(text))].rstrip()


def sentence_ends(text: str, start: int = 0, end: int | None = None, raw: bool = False) -> list[tuple[int, int]]:
    """Return where sentences end in `text[start:end]`, each as the start and the end of its stop and what closes it.

    The dots of "St.", of "J. R. R." and of "U.S." end nothing; "no." and its like end nothing before a number. In a
    text that keeps its case and white space (`raw`), a word in lower case continues a sentence, "in the U.S. It was"
    ends one, and the number of a list item ends none. The places are offsets of the whole text.
    """
    ends: list[tuple[int, int]] = []
    for stop in (_STOP if raw else _FOLDED_STOP).finditer(text, start, len(text) if end is None else end):
        if _ends(text, ends[-1][1] if ends else start, stop, raw):
            ends.append(stop.span())
    return ends


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return where each sentence but the first starts in `text[start:end]`, as offsets of `text`."""
    return [after for _, after in sentence_ends(text, start, end, raw=True)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without white space around them."""
    edges = [0, *sentence_starts(text), len(text)]
    return [*filter(None, (text[start:end].strip() for start, end in pairwise(edges)))]


def _ends(text: str, before: int, stop: re.Match[str], raw: bool) -> bool:
    mark, following = stop[0], _WORD_AFTER.match(text, stop.end(), stop.endpos) if raw else None
    if mark[0] not in ".!?…":
        return True
    if following and following[1][0].islower():
        return False
    word = _WORD_BEFORE.search(text[max(before, stop.start() - REACH) : stop.start()])
    if word is None or mark[0] != "." or mark.startswith(".."):
        return True
    is_label = raw and (word[0].isdecimal() or len(word[0]) == 1) and stop.start() - before <= REACH
    if is_label and not text[before : stop.start() - len(word[0])].strip(_MARKS):
        return False  # the number of a list
    if (name := word[0].lower()) in _BEFORE_NUMBERS:
        return not text[stop.end()].isdecimal()
    if name not in _ABBREVIATIONS and not _LETTERS.fullmatch(name):
        return True
    return following is not None and following[1].lower() in _OPENERS
