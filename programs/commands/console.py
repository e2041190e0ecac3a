"""Show a run at a terminal: a progress bar while it works, tables when it is done."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from eldgr_dspy.base.system import naming
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.showing import display_text
from eldgr_dspy.tables.table import Table

if TYPE_CHECKING:
    from eldgr_dspy.programs.run.evaluation import Watcher

_WIDTH = 100  # a table is not squeezed below this, also where the output is a file
_OUTPUT = "Standard output"
_WIDEST = 10_000  # characters of a table whose names are very long


class _Spending:
    """The sums of the run so far in one short line, earlier sessions included, whose replies the journal holds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._tokens = self._failures = 0
        self._cost: float | None = 0.0

    def add(self, consultation: Consultation) -> None:
        with self._lock:
            self._counts[consultation.label] += 1
            self._failures += consultation.outcome == "failed"
            if consultation.calls and not consultation.recorded:
                self._tokens += (consultation.prompt_tokens or 0) + (consultation.completion_tokens or 0)
                self._cost = None if self._cost is None or consultation.cost is None else self._cost + consultation.cost

    def __str__(self) -> str:
        parts = [f"{role} {n}" for role, n in sorted(self._counts.items())]
        parts += [f"failed {self._failures}"] if self._failures else []
        parts += [f"{self._tokens:,} tokens"] if self._tokens else []
        parts += [f"${self._cost:.4f}"] if self._cost else []
        return f"run so far: {', '.join(parts)}" if parts else ""


@contextmanager
def progress_bar(on_open: Callable[[], None], *, quiet: bool) -> "Iterator[Watcher]":
    """Show a progress bar on a terminal; with `quiet`, print only the effect of ctrl-C."""
    from eldgr_dspy.programs.run.evaluation import Watcher

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Watcher(on_start=lambda total: on_open(), on_interrupt=_say_interruption)
        return
    spending = _Spending()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, TextColumn("{task.fields[spent]}", markup=False), console=console, transient=True
    ) as progress:
        task = progress.add_task("questions", total=None, spent="")

        def start(total: int) -> None:
            on_open()
            progress.update(task, total=total)

        yield Watcher(
            on_start=start,
            on_row=lambda: progress.update(task, advance=1, spent=str(spending)),
            on_consultation=spending.add,
            on_interrupt=_say_interruption,
        )


def _say_interruption() -> None:
    say("Stopping after the calls under way; their replies are kept. Press ctrl-C again to abandon them.")


def print_tables(value: Mapping[str, object], tables: Iterable[Table], form: str) -> None:
    """Print results to standard output in a format. A closed pipe is fine."""
    with suppress(BrokenPipeError):
        write_out(text_of(value, tables, form))


def text_of(value: Mapping[str, object], tables: Iterable[Table], form: str, *, terminal: bool | None = None) -> str:
    """Return results in a format: `value` as JSON, or `tables` in another. Text has colours for a terminal."""
    if form == "json":
        return json.dumps(value, indent=2, default=asdict) + "\n"
    if form == "text":
        return "".join(_as_text(table, terminal) for table in tables)
    from eldgr_dspy.tables.formats import as_csv, as_latex, as_markdown

    return {"latex": as_latex, "markdown": as_markdown, "csv": as_csv}[form](tables)


def render(
    title: str,
    table: RichTable,
    notes: Iterable[str],
    *,
    lead: str = "",
    terminal: bool | None = None,
    whole: bool = False,
) -> str:
    """Return a table with its title and `lead` above and notes below; if `whole`, in its own width."""
    console = Console(force_terminal=terminal)
    console.width = max(console.width, _WIDTH)
    if whole:
        natural = Measurement.get(console, console.options.update(max_width=_WIDEST), table)
        console.width = max(console.width, natural.maximum)
    with naming(_OUTPUT), console.capture() as capture:  # rich writes nothing there all the same, which may fail
        console.print(Text(display_text(title), style="bold"), soft_wrap=True)
        if lead:
            console.print(Text(display_text(lead)), soft_wrap=True)
        console.print(table)
        for note in notes:
            console.print(Text(display_text(note), style="dim"), soft_wrap=True)
        console.print()
    return capture.get()


def write_out(text: str) -> None:
    """Write to standard output, if there is one, and replace what its encoding lacks. After an error, discard it."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = text.replace("\x7f", r"\u007f")  # the one control character that JSON leaves as it is
    try:
        with naming(_OUTPUT):
            stream.write(text.encode(encoding, "replace").decode(encoding))
            stream.flush()
    except OSError:  # the end of the process would fail on what is still to be written there
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        raise


def _as_text(table: Table, terminal: bool | None) -> str:
    def cell(text: str) -> Text:
        return Text(display_text(text.replace("\n", " ")))

    grid = RichTable()
    for index, header in enumerate(table.headers):
        grid.add_column(cell(header), justify="left" if index == 0 else "right", no_wrap=True)
    for row in table.rows:
        grid.add_row(*map(cell, row))
    return render(table.title, grid, table.notes, lead=table.lead, terminal=terminal, whole=True)
