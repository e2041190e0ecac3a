"""Text as a page shows it: cut where it is long, with a count; and the templates of pages."""

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


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


def drawing_css() -> str:
    """Return the styles of a drawing that is a file of its own."""
    return source("colours.css.jinja") + "svg { background: var(--page); font-family: system-ui, sans-serif; }"
