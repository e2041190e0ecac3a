"""Text as a page shows it: cut where it is long, with a count; and the templates of pages."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


def clip(text: object, longest: int) -> str:
    """Return a text, of a long one the first `longest` characters and how many more there are."""
    whole = str(text)
    more = len(whole) - longest
    return whole if more <= 0 else f"{whole[:longest]}… ({more:,} more characters)"


def template(name: str, script: str = "") -> "Template":
    """Return a template of the package, which escapes all that it is given; its policy allows one style and script."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(_source)
    )
    # The name of a style or script in the policy of its page.
    environment.filters["digest"] = lambda text: f"sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}"
    parts = {"style": _source("style.css.jinja"), "script": script and _source(script)}
    return environment.get_template(name, globals=parts)


def _source(name: str) -> str:
    return files("eldgr_dspy.report").joinpath(name).read_text(encoding="utf-8")
