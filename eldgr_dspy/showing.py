"""Show text from outside: nothing in it is obeyed by a terminal, and no credential is in it.

Error texts, model names, file names and texts of a pool pass through `shown` before they are printed, logged or raised.
A page and a table show texts that were redacted when they were journaled, and need `printable` alone.
"""

import re

from eldgr_dspy.redaction import redacted_message

# Controls but tab and line end (a carriage return only where a line end follows it), marks and overrides of direction,
# separators that some programs take for line ends, halves of surrogate pairs, and what is not a character.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
    "(?!(?<=\r)\n)"
)


def printable(text: str) -> str:
    """Return a text with each control or bidirectional character as its code point, such as `[U+001B]`."""
    return _OBEYED.sub(_code_point, text)


def is_printable(text: str) -> bool:
    """Return whether `printable` leaves a text as it is."""
    return _OBEYED.search(text) is None


def shown(text: str) -> str:
    """Return a text from outside as it may be printed: without credentials, and as `printable` returns it."""
    return printable(redacted_message(text))


def encodable(text: str) -> str:
    """Return a text that every file can hold: halves of surrogate pairs become their character, or else U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def on_one_line(text: str) -> str:
    """Return a text as `shown` does, with every run of white space as one space."""
    return shown(" ".join(text.split()))


def _code_point(found: re.Match[str]) -> str:
    return f"[U+{ord(found[0]):04X}]"
