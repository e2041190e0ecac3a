"""Output of the commands that print results: `--format`, `--json` and `--out`, and what they write."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from click.core import ParameterSource

from eldgr_dspy.base.system import refusal
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import OUT, with_options

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.tables.table import Table

Form = Literal["text", "markdown", "latex", "csv", "json"]


def form_options(*forms: str) -> Callable[[Any], Any]:
    """Give a command `--format` (these or all of `Form`, the default first) and `--json`, as its argument `form`."""
    kinds = forms or get_args(Form)
    form = click.option("--format", type=click.Choice(kinds), default=kinds[0], help="Output format.")
    as_json = click.option("--json", is_flag=True, help="Short for --format json.")

    def gather(values: dict[str, Any]) -> dict[str, Any]:
        kind, short = values.pop("format"), values.pop("json")
        return {**values, "form": _one_of(kind) if short else kind}

    return with_options((form, as_json), gather)


def _one_of(form: str) -> str:
    """Return the format if `--json` is set, also by a variable; the command line wins over a variable."""
    source = click.get_current_context().get_parameter_source
    flags = {name for name in ("format", "json") if source(name) is ParameterSource.COMMANDLINE}
    if form != "json" and flags == {"format", "json"}:
        raise click.UsageError(f"--json and --format {form} contradict each other. Give one of them.")
    return form if flags == {"format"} else "json"


def out_option(default: str = "standard output") -> Callable[[Any], Any]:
    """Return the option `--out` of a command."""
    return click.option("--out", type=OUT, help=f"File to write.  [default: {default}]")


def write(
    value: Mapping[str, object],
    tables: Iterable["Table"],
    form: str,
    out: Path | None,
    what: str = "The tables",
    runs: Iterable["RunRead"] = (),
) -> None:
    """Print results, or write them to a file; `runs` are those that the command reads."""
    from eldgr_dspy.base.files import replacing
    from eldgr_dspy.programs.commands.console import print_tables, text_of

    with writing(what):
        if out is None:
            return print_tables(value, tables, form)
        require_no_input(out, runs)
        with replacing(out) as file:
            file.write(text_of(value, tables, form, terminal=False).encode("utf-8", "replace"))
        say(f"Written to {out}.")


def require_no_input(out: Path, runs: Iterable["RunRead"], page: str = "") -> None:
    """Refuse to write over a file that the command reads, or over a part of a run, except the `page` that it writes."""
    if not out.is_file():
        return
    from eldgr_dspy.programs.run.results import FILES

    values = [value for name, value in click.get_current_context().params.items() if name != "out"]
    inputs = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    inputs += [head.get("path") for run in runs for head in run.heads_of("pool").values()]
    is_input = any(isinstance(one, str | Path) and _is_same_file(out, one) for one in inputs)
    is_of_run = out.name.startswith("journal.jsonl") or (out.name in FILES and out.name != page)
    if is_input or (is_of_run and (out.parent / "journal.jsonl").exists()):
        raise click.UsageError(f"--out {out} is a file that the command reads, or a part of a run. Give another.")


def _is_same_file(out: Path, value: str | Path) -> bool:
    try:
        return out.samefile(value)
    except (OSError, ValueError):  # the value of an option that names no file
        return False


@contextmanager
def writing(what: object) -> Iterator[None]:
    """Raise a ClickException that names what could not be written."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{what} could not be written: {refusal(error)}") from error


def run_of(directory: Path, **own: Any) -> "RunRead":
    """Return a finished run, and say if others made it."""
    from eldgr_dspy.figures.finished_run import read_run

    run = read_run(directory, **own)
    if run.made_by_others:
        say(f"Note: {run.made_by_others}")
    return run
