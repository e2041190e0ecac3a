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

# East Asian stops need no white space behind them.
_STOP = re.compile(r"""[.!?]++ ["')\]]*+ [ ] (?=\S) | [。｡](?=.)""", re.VERBOSE)
_WORD_BEFORE = re.compile(r"(?:[^\W\d_]\.)*[^\W_]+\Z")
_LETTERED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_MAY_END = re.compile(r"[.!?][\"')\]]* |[。｡]").search
_REACH = 24  # no abbreviation is longer


def is_abbreviation(text: str) -> bool:
    """Return whether a text ends in a word that is written with a full stop of its own."""
    word = _WORD_BEFORE.search(text[-_REACH:])
    return word is not None and word[0].lower() in ABBREVIATIONS


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
