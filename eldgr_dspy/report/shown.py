"""Text as a page shows it: cut where it is long, with a count, and with its control characters made visible."""

import re
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template

# Bidirectional overrides and isolates, which could make a text read as another; then what no page may contain.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def printable(text: str) -> str:
    """Show bidirectional controls by their code points, and replace what UTF-8 or HTML cannot carry by U+FFFD."""
    named = _BIDI.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
    return _FORBIDDEN.sub("\ufffd", named)


def is_printable(text: str) -> bool:
    """Return whether `printable` leaves a text as it is."""
    return _BIDI.search(text) is None and _FORBIDDEN.search(text) is None


def clip(text: object, longest: int) -> str:
    """Return a text, of a long one the first `longest` characters and how many more there are."""
    whole = str(text)
    more = len(whole) - longest
    return whole if more <= 0 else f"{whole[:longest]}… ({more:,} more characters)"


def template(name: str) -> "Template":
    """Return a template of the package, which escapes all that it is given."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(source)
    )
    return environment.get_template(name)


def source(name: str) -> str:
    """Return the text of a template."""
    return files("eldgr_dspy.report").joinpath(name).read_text(encoding="utf-8")
