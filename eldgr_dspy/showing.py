"""Show text from outside: without credentials, and without characters that a terminal obeys.

Error texts, model names, file names and texts of a pool pass through `display_text` before they are printed, logged or
raised. Pages and tables show texts that were redacted when they were journaled, and need only `printable`.
"""

import re

from eldgr_dspy.redaction import redact_message

# Controls except tab and line end (a carriage return is kept only before a line end), marks and overrides of direction,
# separators that some programs read as line ends, halves of surrogate pairs, and code points that are not characters.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
    "(?!(?<=\r)\n)"
)


def printable(text: str) -> str:
    """Return a text with each control or bidirectional character as its code point, such as `[U+001B]`."""
    return _CONTROL.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def is_printable(text: str) -> bool:
    """Return whether `printable` leaves a text as it is."""
    return _CONTROL.search(text) is None


def display_text(text: str) -> str:
    """Return a text from outside as it may be printed: without credentials, and as `printable` returns it."""
    return printable(redact_message(text))


def encodable(text: str) -> str:
    """Return a text that every file can hold: halves of a surrogate pair become their character, or else U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def on_one_line(text: str) -> str:
    """Return a text as `display_text` does, with every run of white space as one space."""
    return display_text(" ".join(text.split()))
