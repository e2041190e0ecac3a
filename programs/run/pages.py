"""The pages of a finished run, made again: the report from its directory, and the page of questions from its pools too.

A question is written as it is read, and a consultation is looked up where it stands in the journal, so that memory does
not grow with the texts of a run.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation, Key
from eldgr_dspy.errors import ArgumentError, PoolError, RunChangedError
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.figures.results.summary import Summary
from eldgr_dspy.files import replacing
from eldgr_dspy.journal_lines import read_consultation
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.run.reopened_pools import reopened
from eldgr_dspy.report.page import render_report
from eldgr_dspy.report.questions_page import QuestionsPage
from eldgr_dspy.system import opened
from eldgr_dspy.words import ROLES, Role


def write_pages(run: RunRead, summary: Summary, report: Path, files: Sequence[Path] = ()) -> str | None:
    """Write the report, and beside it the page of questions where the run's pools are there.

    Args:
        run: The run. summary: its figures. report: the file of the report; the page of questions has `questions.html`
            in its folder, or `NAME-questions.html` beside a report NAME.html.
        files: Where pools are that are not where they were.

    Returns:
        Why there is no page of questions, in a sentence; None where it is written.

    Raises:
        ArgumentError, PoolError, RunChangedError: The run, or one of `files`, cannot be used.
        OSError: A file cannot be written.
    """
    beside, why = questions_beside(report), None
    try:
        pools = reopened(run, [*summary["pools"]], files, "eldgr report RUN FILE --format html")
        _write(beside, _questions(run, summary, pools, report.name))
    except (ArgumentError, PoolError, RunChangedError) as error:
        if files:
            raise
        why = str(error)
    found = beside.name if beside.is_file() else None
    _write(report, render_report(summary, run.decisions(summary), run.record(), found))
    return why


def questions_beside(report: Path) -> Path:
    """Return where the page of questions lies that belongs to a report."""
    return report.with_name("questions.html" if report.name == "report.html" else f"{report.stem}-questions.html")


def _write(path: Path, chunks: Iterable[str]) -> None:
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk.encode("utf-8", "replace"))


def _questions(run: RunRead, summary: Summary, pools: Sequence[Pool], report: str) -> Iterator[str]:
    """The page of questions, piece by piece; decisions stand in the order of the pools and of their rows."""
    page = QuestionsPage(report)
    decided = groupby(run.decisions(summary), key=lambda one: (one["pool"], one["id"]))
    (name, id), lines = next(decided, ((None, None), iter(())))
    yield page.head()
    with opened(run.path / "journal.jsonl", buffer=io.DEFAULT_BUFFER_SIZE) as journal:
        places = _places(journal)
        for pool in pools:
            for row in pool.rows(summary["pools"][pool.name]["n"]):
                case, found = Case(row.to_question(), run.settings), list[Decided]()
                if (name, id) == (pool.name, row.id):
                    found = [*lines]
                    (name, id), lines = next(decided, ((None, None), iter(())))
                yield page.question(pool.name, row, case, found, _asked(run, journal, places, pool.name, row.id))
    if id is not None:
        raise ArgumentError(f"{run.path}: decisions.jsonl decides {id!r} of {name!r} out of the order of its pools.")
    yield page.foot(summary["pools"])


def _places(journal: IO[bytes]) -> dict[Key, int]:
    """Where in a journal the last line of each consultation begins."""
    places: dict[Key, int] = {}
    begins = 0
    for line in journal:
        if line.strip():
            record = json.loads(line.decode("utf-8-sig"))
            if record["kind"] == "consultation":
                places[record.get("pool", ""), record["id"], record["role"]] = begins
        begins += len(line)
    return places


def _asked(run: RunRead, journal: IO[bytes], places: Mapping[Key, int], pool: str, id: str) -> dict[Role, Consultation]:
    found: dict[Role, Consultation] = {}
    for role in ROLES:
        place = places.get((pool, id, role))
        if place is not None:
            journal.seek(place)
            found[role] = read_consultation(journal.readline(), run.path / "journal.jsonl", f"byte {place}")
    return found
