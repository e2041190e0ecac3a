"""Figures as a person wants them: as tables of text, Markdown or LaTeX, or as JSON, printed or in a file."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal

if TYPE_CHECKING:
    from eldgr_dspy.tables.table import Table

Form = Literal["text", "markdown", "latex", "json"]


def form_option(command: str) -> Callable[[Any], Any]:
    """Return the option `--format` of a command."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(get_args(Form)),
        default="text",
        envvar=f"ELDGR_{command.upper()}_FORMAT",
        allow_from_autoenv=False,
        help="How the tables are written.",
    )


def out_option() -> Callable[[Any], Any]:
    """Return the option `--out` of a command."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--out", type=kind, help="File to write.  [default: standard output]")


def write(value: Mapping[str, object], tables: Iterable["Table"], form: Form, out: Path | None) -> None:
    """Print figures, or write them to a file.

    Raises:
        click.ClickException: they could not be written.
    """
    from eldgr_dspy.files import replacing
    from eldgr_dspy.programs.commands.console import print_tables, write_out

    try:
        if out is not None:
            with replacing(out) as file:
                file.write(_text(value, tables, form).encode("utf-8", "replace"))
            say(f"Written to {out}.")
        elif form in ("text", "json"):
            unprinted = print_tables(value, tables, as_json=form == "json")
            if unprinted:
                raise unprinted
        else:
            write_out(_text(value, tables, form))
    except BrokenPipeError:
        return
    except OSError as error:
        raise click.ClickException(f"The tables could not be written: {refusal(error)}") from error


def _text(value: Mapping[str, object], tables: Iterable["Table"], form: Form) -> str:
    from eldgr_dspy.programs.commands.console import undecorated
    from eldgr_dspy.tables.formats import as_latex, as_markdown

    if form == "json":
        return json.dumps(value, indent=2, default=asdict) + "\n"
    return {"text": undecorated, "markdown": as_markdown, "latex": as_latex}[form](tables)
