"""Which full stops end a sentence and which belong to a word: abbreviations, initials, letters with dots.

A rule of thumb with English abbreviations that does not look at case. `eldgr_dspy.channels.sentences` cuts a text into
sentences by it, with case and the words that follow; here a text is only asked whether a sentence ends within it.
"""

import re

ABBREVIATIONS = frozenset(
    "adm approx apt assn ave bldg blvd brig ca capt cf chap cmdr co col corp cpl dept dist dr ed eds eq est etc ex feat"
    " fig figs ft gen gov hon inc inst jr lt ltd maj messrs mr mrs ms mt mts op orig ph pl pp prof pt rd ref rep resp"
    " rev sen sgt sq sr st ste supt univ viz vol vols vs jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
"""English words that are written with a full stop of their own, in lower case and without it."""

BEFORE_NUMBERS = frozenset("no nos art ch p sec".split())
"""Abbreviations where a number follows, words of their own elsewhere."""

# Behind an abbreviation one of these starts a sentence after all.
OPENERS = frozenset(
    "after although and as because but finally first for hence he her his how however if in it its let next now she"
    " since so that the their then there therefore these they this thus to we what when which while with".split()
)
_OPENED = re.compile(rf"\.(?=\s(?:{'|'.join(word.title() for word in OPENERS)})\b)")
_INITIALS = re.compile(r"(?<!\w)[^\W\d_]\.[ ]?[^\W\d_]\.\Z")
# East Asian stops need no white space behind them.
_STOP = re.compile(
    r"""[.!?]++ (?:(?![.!?])[^\w\s]){0,4} [ ] (?=\S) | [。｡](?=.) | [!?]++(?=[\u3040-\u9fff\uac00-\ud7af])""",
    re.VERBOSE,
)
_WORD_BEFORE = re.compile(r"(?:[^\W\d_]\.)*[^\W_]+\Z")
_LETTERED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_MAY_END = re.compile(r"[.!?][^\w\s]{0,4} |[。｡]|[!?][\u3040-\ud7af]").search
_REACH = 24  # no abbreviation is longer


def has_own_stop(text: str) -> bool:
    """Return whether the full stop that ends a text belongs to its last word: "Inc.", "U.S.", not "Vitamin A."."""
    if _INITIALS.search(text):
        return True
    word = _WORD_BEFORE.search(text[-_REACH:-1])
    return word is not None and word[0].lower() in ABBREVIATIONS


def without_stop(text: str) -> str:
    """Return a text without the full stop of the sentence that it is; "!" and "?" may be a name's and stay."""
    if text.endswith(".") and not text.endswith("..") and has_own_stop(text):
        return text
    return text.rstrip(".。｡…").rstrip() or text


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, with its stop.

    After a lone letter or an abbreviation one ends where a word follows that mostly starts one: "in the U.S. It was".
    """
    ends = [end for _, end in sentence_ends(text)[:1]]
    opened = _OPENED.search(text)
    return text[: min([*ends, opened.start() + 1] if opened else ends, default=len(text))].rstrip()


def sentence_ends(text: str) -> list[tuple[int, int]]:
    """Return where sentences end within a folded text, each as the start and the end of its stop and what closes it.

    The dots of "St.", of "J. R. R." and of "U.S." end nothing; "no." and its like end nothing before a number.
    """
    if not _MAY_END(text):
        return []
    return [found.span() for found in _STOP.finditer(text) if _ends(text, found)]


def _ends(text: str, found: re.Match[str]) -> bool:
    if found[0][0] != "." or found[0].startswith(".."):
        return True
    word = _WORD_BEFORE.search(text[max(0, found.start() - _REACH) : found.start()])
    if word is None:
        return True
    name = word[0].lower()
    if name in BEFORE_NUMBERS:
        return not text[found.end()].isdecimal()
    return name not in ABBREVIATIONS and _LETTERED.fullmatch(name) is None
