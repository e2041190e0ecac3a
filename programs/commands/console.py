"""What a person at a terminal sees of a run: a bar while it goes on, tables when it is done."""

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from eldgr_dspy.journal import Consultation
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.tables import Table, audit_table, bounds_table, cost_table, paper_table, usage_table

_WIDTH = 100  # a table is not squeezed below this, also where the output is a file


class _Spent:
    """What the consultations of the run came to so far, in this session and in earlier ones, as one short line."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: Counter[str] = Counter()
        self._tokens = self._failed = 0
        self._cost: float | None = 0.0

    def take(self, one: Consultation) -> None:
        """Take one consultation."""
        with self._lock:
            self._asked[one.role] += 1
            self._failed += one.outcome == "failed"
            if one.calls and not one.recorded:
                self._tokens += (one.prompt_tokens or 0) + (one.completion_tokens or 0)
                self._cost = None if self._cost is None or one.cost is None else self._cost + one.cost

    def __str__(self) -> str:
        parts = [f"{role} {n}" for role, n in sorted(self._asked.items())]
        parts += [f"failed {self._failed}"] if self._failed else []
        parts += [f"{self._tokens:,} tokens"] if self._tokens else []
        parts += [f"${self._cost:.4f}"] if self._cost else []
        return f"run so far: {', '.join(parts)}" if parts else ""


@contextmanager
def progress_bar(on_open: Callable[[], None], *, quiet: bool) -> Iterator[Watcher]:
    """Show a bar on standard error: questions done, time left; consultations a role, tokens and money of the run.

    The latter include what earlier sessions asked and the journal now answers; a finished run shows them all. Nothing
    is shown when `quiet`, or where standard error is no terminal, but what ctrl-C does. `on_open` is called once the
    run directory is open.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Watcher(on_start=lambda total: on_open(), on_interrupt=_say_interrupted)
        return
    spent = _Spent()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[spent]}"), console=console, transient=True) as progress:
        task = progress.add_task("questions", total=None, spent="")

        def start(total: int) -> None:
            on_open()
            progress.update(task, total=total)

        yield Watcher(
            on_start=start,
            on_row=lambda: progress.update(task, advance=1, spent=str(spent)),
            on_consultation=spent.take,
            on_interrupt=_say_interrupted,
        )


def _say_interrupted() -> None:
    print("Stopping: what is under way is waited for and kept; ctrl-C again abandons it.", file=sys.stderr)


def print_results(summary: Mapping[str, Any], *, as_json: bool) -> OSError | None:
    """Print a summary to standard output, as JSON or as tables. Returns why it could not be; a closed pipe is no fault.

    The JSON is ASCII; in the tables, what the output's encoding lacks becomes a question mark.
    """
    return _print(summary, None if as_json else _tables(summary))


def print_forecast(forecast: Mapping[str, Any], *, as_json: bool) -> OSError | None:
    """Print what a run would ask, as `print_results` does."""
    return _print(forecast, None if as_json else [_forecast(forecast)])


def _print(value: Mapping[str, Any], tables: Iterable[Table] | None) -> OSError | None:
    """Print tables, or a value as JSON where there are none."""
    try:
        _write(json.dumps(value, indent=2) + "\n" if tables is None else _drawn(tables))
    except OSError as error:
        _discard_output()
        return None if isinstance(error, BrokenPipeError) else error
    return None


def _tables(summary: Mapping[str, Any]) -> Iterator[Table]:
    tables = paper_table(summary), bounds_table(summary), audit_table(summary), cost_table(summary)
    for group in zip(*tables, strict=True):
        yield from group
    usage = usage_table(summary)
    if usage is not None:
        yield usage


def _forecast(forecast: Mapping[str, Any]) -> Table:
    headers = ("pool", "role", "asked of", "at most", "journaled", "recorded", "to ask", "calls")
    counts = ("at_most", "journaled", "recorded", "to_ask")
    asked = [(name, role, found) for name, pool in forecast["pools"].items() for role, found in pool["roles"].items()]
    rows = [
        (name, role, forecast["models"][role] or "embedded", *(f"{found[count]:,}" for count in counts), _calls(found))
        for name, role, found in asked
    ]
    unsaid = any(found["calls"] is None for _, _, found in asked)
    notes = ("Nobody was asked.", "+: at least one call a question; the role does not say how many it makes.")
    return Table("what this run would ask, in questions", headers, tuple(rows), notes[: 1 + unsaid])


def _calls(found: Mapping[str, Any]) -> str:
    return f"{found['to_ask']:,}+" if found["calls"] is None else f"{found['calls']:,}"


def _drawn(tables: Iterable[Table]) -> str:
    console = Console()
    console.width = max(console.width, _WIDTH)
    with console.capture() as captured:
        for table in tables:
            console.print(Text(table.title, style="bold"), soft_wrap=True)
            console.print(_rich(table))
            for note in table.notes:
                console.print(Text(note, style="dim"), soft_wrap=True)
            console.print()
    return captured.get()


def _write(text: str) -> None:
    """Write to standard output, if there is one, and replace what its encoding lacks."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    if isinstance(stream, io.TextIOWrapper):
        before = stream.errors
        stream.reconfigure(errors="replace")
        try:
            stream.write(text)
        finally:
            stream.reconfigure(errors=before)
    else:
        stream.write(text)
    stream.flush()


def _discard_output() -> None:
    """Point standard output to nowhere: the end of the process would fail on what is still to be written there."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _rich(table: Table) -> RichTable:
    shown = RichTable()
    for index, header in enumerate(table.headers):
        shown.add_column(Text(header), justify="left" if index == 0 else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown
