"""Make the pages of a finished run again: the report from its directory, the page of questions also from its pools.

A question is written as it is read, and a consultation is looked up in the journal, so that memory does not grow
with the texts of a run.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, PoolError, RunChangedError
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, pool_name
from eldgr_dspy.programs.run.recordings import ConsultationStore
from eldgr_dspy.programs.run.redecisions import reopen
from eldgr_dspy.report.page import render_report
from eldgr_dspy.report.question_tables import RunQuestion
from eldgr_dspy.report.questions_page import MOST_QUESTIONS, QuestionsPage
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certify_again, naming_question
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import journaled_reply


def write_pages(
    run: RunRead, summary: Summary, report: Path, files: Sequence[Path] = (), *, pages: bool = False
) -> str | None:
    """Write the report and, if the run's pools are there, the page of questions next to it.

    Args:
        run: The run. summary: its figures. report: the file of the report. The page of questions is `questions.html`
            in its folder, or `NAME-questions.html` next to a report NAME.html.
        files: Where pools are now that have been moved.
        pages: Whether the page of questions is also written beyond `MOST_QUESTIONS`.

    Returns:
        Why there is no page of questions, in a sentence, or None if it is written.

    Raises:
        ArgumentError, PoolError, RunChangedError: The run, or one of `files`, cannot be used.
        OSError: A file cannot be written.
    """
    beside = questions_beside(report)
    why = None if pages else left_out(run.path, sum(pool["n"] for pool in summary["pools"].values()))
    try:
        if why is None:
            pools = reopen(run, [*summary["pools"]], files, "eldgr report RUN FILE --format html")
            _write(beside, _questions(run, summary, pools, report.name))
    except (ArgumentError, PoolError, RunChangedError) as error:
        if files:
            raise
        why = str(error)
    is_own = why is None or (beside.is_file() and beside.resolve() == (run.path / "questions.html").resolve())
    _write(report, render_report(summary, run.record(), beside.name if is_own else None))
    return why


def left_out(run: Path, n: int) -> str | None:
    """Return why a run has no page of questions, and how to write it, or None if it has one.

    Args:
        run: Its directory. n: how many questions it has.
    """
    if n <= MOST_QUESTIONS:
        return None
    command = shlex.join(["eldgr", "report", str(run), "--format", "html", "--pages"])
    return f"there are more than {MOST_QUESTIONS:,} questions. To write it: {command}"


def question_of(run: RunRead, name: str, files: Sequence[Path] = (), rules: Sequence[str] = ()) -> RunQuestion:
    """Return one question of a run, with all that the run knows of it.

    Args:
        run: The run. name: the question's id, or POOL:ID. files: where pools are now that have been moved.
        rules: The rules whose decisions are shown; empty: all.

    Raises:
        ArgumentError: The run is not finished, or has no such question or rule, or several questions of that name.
        ArgumentError, PoolError, RunChangedError: The question's pool, or one of `files`, cannot be used.
    """
    summary = run.summary()
    pool, id, decisions = _decided_on(run, summary, name)
    names_of_rules = [decided["rule"] for decided in decisions]
    for rule in rules:
        if rule not in names_of_rules:
            raise ArgumentError(
                f"{run.path}: rule {rule!r} has no decision on {id!r}; use one of {', '.join(names_of_rules)}."
            )
    names = [name for name in map(pool_name, files) if name in summary["pools"]]
    pools = reopen(run, [*dict.fromkeys([pool, *names])], files, "eldgr show RUN ID FILE")
    row = next((row for row in pools[0].rows(summary["pools"][pool]["n"]) if row.id == id), None)
    if row is None:
        raise ArgumentError(f"{run.path}: decisions.jsonl decides {id!r}, which its pool {pool!r} does not have.")
    selection = [decided for decided in decisions if not rules or decided["rule"] in rules]
    store = ConsultationStore(one for one in run.consultations() if (one.pool, one.id) == (pool, id))
    with naming_question(pool, id):
        return _question(run, None if run.ungiven else run.settings, store, pool, row, selection)


def _decided_on(run: RunRead, summary: Summary, name: str) -> tuple[str, str, list[Decided]]:
    """Return the pool and the id that a name means, and the decisions; POOL:ID goes before an id with a colon."""
    matches: dict[bool, dict[tuple[str, str], list[Decided]]] = {True: {}, False: {}}  # by POOL:ID, by the id alone
    ids = dict[str, None]()
    for decided in run.decisions(summary):
        pool, id = decided["pool"], decided["id"]
        if len(ids) < 3:
            ids[id] = None
        if name in (id, f"{pool}:{id}"):
            matches[name != id].setdefault((pool, id), []).append(decided)
    meant = matches[True] or matches[False]
    if not meant:
        some = ", ".join(map(repr, ids))
        raise ArgumentError(f"{run.path}: no question has the id {name!r:.80}; the first ids are {some}. Correct it.")
    if len(meant) > 1:
        whole = " or ".join(f"{pool}:{id}" for pool, id in meant)
        raise ArgumentError(f"{run.path}: {len(meant)} pools have a question {name!r:.80}; give {whole}.")
    (((pool, id), decisions),) = meant.items()
    return pool, id, decisions


def questions_beside(report: Path) -> Path:
    """Return where the page of questions of a report is."""
    return report.with_name("questions.html" if report.name == "report.html" else f"{report.stem}-questions.html")


def _write(path: Path, chunks: Iterable[str]) -> None:
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk.encode("utf-8", "replace"))


def _questions(run: RunRead, summary: Summary, pools: Sequence[Pool], report: str) -> Iterator[str]:
    """Yield the page of questions, piece by piece; decisions are in the order of the pools and of their rows."""
    page, settings = QuestionsPage(report), None if run.ungiven else run.settings
    decided = groupby(run.decisions(summary), key=lambda line: (line["pool"], line["id"]))
    (name, id), lines = next(decided, ((None, None), iter(())))
    yield page.head
    store = ConsultationStore(run.consultations())
    for pool in pools:
        for row in pool.rows(summary["pools"][pool.name]["n"]):
            decisions = list[Decided]()
            if (name, id) == (pool.name, row.id):
                decisions = [*lines]
                (name, id), lines = next(decided, ((None, None), iter(())))
            with naming_question(pool.name, row.id):
                yield page.question(_question(run, settings, store, pool.name, row, decisions))
    if id is not None:
        raise ArgumentError(f"{run.path}: decisions.jsonl decides {id!r} of {name!r} out of the order of its pools.")
    yield page.foot()


def _question(
    run: RunRead, settings: Settings | None, store: ConsultationStore, pool: str, row: Row, decisions: list[Decided]
) -> RunQuestion:
    """Return a question with the certificates that its run got; `settings` are None if they need the user's code."""
    found = {label: store.find((pool, row.id, label)) for label in run.totals.roles}
    consultations = {label: entry for label, entry in found.items() if entry is not None}
    case = None
    if settings is not None:
        case = Case(run.question(pool, row), settings)
        certify_again(case, {name: journaled_reply(case.question, entry) for name, entry in consultations.items()})
    return RunQuestion(pool, row, case, decisions, consultations, run.ungiven)
