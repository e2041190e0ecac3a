"""The results of a run, made from settled rows as they come: decisions first, then figures, record and report.

They are written into files that become the results when the run ends in order, the summary last. Each is the whole new
file or the old one. A kill or a full disk between two of them leaves new ones next to old ones, and the same plan makes
all of them again. The pages of a finished run can also be made from its directory and its pools.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, Any, cast

from eldgr_dspy.answer_types.answers import Score
from eldgr_dspy.base.files import flush_to_disk, replacing
from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError, PoolError, RunChangedError
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import JournalTotals, judge_facts, judges_record
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.summary_fields import Confirmed, Summary
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import Pool, Row, pool_name
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.programs.run.recordings import ConsultationStore
from eldgr_dspy.programs.run.settling import Settlement, reopen
from eldgr_dspy.report.page import render_report
from eldgr_dspy.report.question_tables import RunQuestion
from eldgr_dspy.report.questions_page import MOST_QUESTIONS, QuestionsPage
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certify_again, naming_question
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.showing import encodable

FILES = ("decisions.jsonl", "record.json", "questions.html", "report.html", "summary.json")
"""What a run may write, by name, in the order in which the files are put in place."""

_AROUND = 80  # characters on either side of a witness
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@contextmanager
def replacing_all(directory: Path, n: int) -> Iterator[dict[str, IO[bytes]]]:
    """Open files that become the results of a run of `n` questions in order: the summary last."""
    *names, last = [name for name in FILES if not (name == "questions.html" and left_out(directory, n))]
    with replacing(directory / last) as summary:
        with ExitStack() as files:
            handles = {name: files.enter_context(replacing(directory / name)) for name in reversed(names)}
            yield {last: summary, **handles}
        if "questions.html" not in names:
            (directory / "questions.html").unlink(missing_ok=True)  # that of an earlier session


class Results:
    def __init__(
        self,
        directory: Path,
        pools: Sequence[Pool],
        rules: Sequence[str],
        files: Mapping[str, IO[bytes]],
        look: Callable[[], None],
        confirmation: Confirmed | None,
    ) -> None:
        """Begin the files that `replacing_all` has opened; `look` is called before something is written."""
        self._directory, self._files, self._look, self._confirmation = directory, files, look, confirmation
        self._rows = {pool.name: DecidedRows(pool.task, rules) for pool in pools}
        self._questions = QuestionsPage() if "questions.html" in files else None
        if self._questions is not None:
            self._write("questions.html", self._questions.head)

    def add(self, pool: Pool, settlement: Settlement) -> None:
        """Score a row and write its decisions."""
        with naming_question(pool.name, settlement.row.id):
            outcomes, scores = settlement.score(self._rows[pool.name])
            lines = [
                _decision_line(pool.name, settlement.row, rule, outcome.decision, scores[rule], scores.get("majority"))
                for rule, outcome in outcomes.items()
                if outcome.decision is not None
            ]
            for line in lines:
                self._write("decisions.jsonl", _ENCODER.encode(line) + "\n")
            if self._questions is not None:
                question = RunQuestion(pool.name, settlement.row, settlement.case, lines, settlement.consultations)
                self._write("questions.html", self._questions.question(question))

    def finish(self, heads: Sequence[Mapping[str, Any]], totals: JournalTotals) -> Summary:
        """Write everything that is made from the consultations, and return the summary."""
        facts = judge_facts(heads)
        summary: Summary = {
            "pools": {name: pool_figures(rows, facts) for name, rows in self._rows.items()},
            "consultations": totals.roles,
            "remarks": totals.remarks,
            "confirmation": self._confirmation,
        }
        record = judges_record(summary, heads, totals)
        self._write("record.json", _pretty(record))
        beside = None if self._questions is None else "questions.html"
        if self._questions is not None:
            self._write("questions.html", self._questions.foot())
        for chunk in render_report(summary, record, beside):
            self._write("report.html", chunk)
        self._write("summary.json", _pretty(summary))
        for name, file in self._files.items():  # all on the disk before one is renamed: a full disk changes nothing
            flush_to_disk(self._directory / name, file)
        return summary

    def _write(self, name: str, text: str) -> None:
        self._look()
        self._files[name].write(encodable(text).encode("utf-8"))


def _decision_line(
    pool: str, row: Row, rule: str, decision: Decision, score: Score | None, majority: Score | None
) -> Decided:
    """Return a decision with its question and its scores; its witness with what is around it, to be read on its own."""
    fields = plain(decision)
    if witness := decision.witness:
        passage = row.evidence[witness.passage]
        source = passage.title if witness.field == "title" else passage.text
        fields["witness"] |= {
            "title": passage.title,
            "before": source[max(0, witness.start - _AROUND) : witness.start],
            "after": source[witness.end : witness.end + _AROUND],
        }
    question = {"pool": pool, "id": row.id, "question": row.question, "gold": row.gold}
    scores = {"em": score and score.em, "f1": score and score.f1, "majority_em": majority and majority.em}
    return cast(Decided, {**question, "rule": rule, **fields, **scores})


def _pretty(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_pages(
    run: RunRead, summary: Summary, report: Path, files: Sequence[Path] = (), *, pages: bool = False
) -> str | None:
    """Write the report of a finished run and its page of questions; return why there is no such page, or None."""
    beside = questions_beside(report)
    why = None if pages else left_out(run.path, sum(pool["n"] for pool in summary["pools"].values()))
    try:
        if why is None:
            pools = reopen(run, [*summary["pools"]], files, "eldgr report RUN FILE --format html")
            _write(beside, _questions(run, summary, pools, report.name))
    except (ArgumentError, PoolError, RunChangedError) as error:
        if files:  # a file that was given must be usable
            raise
        why = str(error)
    is_own = why is None or (beside.is_file() and beside.resolve() == (run.path / "questions.html").resolve())
    _write(report, render_report(summary, run.record(), beside.name if is_own else None))
    return why


def left_out(run: Path, n: int) -> str | None:
    """Return why a run of `n` questions has no page of them, and how to write it, or None if it has one."""
    if n <= MOST_QUESTIONS:
        return None
    command = shlex.join(["eldgr", "report", str(run), "--format", "html", "--pages"])
    return f"there are more than {MOST_QUESTIONS:,} questions. To write it: {command}"


def question_of(run: RunRead, name: str, files: Sequence[Path] = (), rules: Sequence[str] = ()) -> RunQuestion:
    """Return the question that ID or POOL:ID names, with all that its run knows, and decisions of `rules` or all."""
    summary = run.summary()
    pool, id, decisions = _decisions_on(run, summary, name)
    names_of_rules = [line["rule"] for line in decisions]
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
    selection = [line for line in decisions if not rules or line["rule"] in rules]
    store = ConsultationStore(one for one in run.consultations() if (one.pool, one.id) == (pool, id))
    with naming_question(pool, id):
        return _question(run, None if run.ungiven else run.settings, store, pool, row, selection)


def _decisions_on(run: RunRead, summary: Summary, name: str) -> tuple[str, str, list[Decided]]:
    """Return the pool and the id that a name means, and the decisions; POOL:ID goes before an id with a colon."""
    matches: dict[bool, dict[tuple[str, str], list[Decided]]] = {True: {}, False: {}}  # by POOL:ID, by the id alone
    ids = dict[str, None]()
    for line in run.decisions(summary):
        pool, id = line["pool"], line["id"]
        if len(ids) < 3:
            ids[id] = None
        if name in (id, f"{pool}:{id}"):
            matches[name != id].setdefault((pool, id), []).append(line)
    hits = matches[True] or matches[False]
    if not hits:
        some = ", ".join(map(repr, ids))
        raise ArgumentError(f"{run.path}: no question has the id {name!r:.80}; the first ids are {some}. Correct it.")
    if len(hits) > 1:
        whole = " or ".join(f"{pool}:{id}" for pool, id in hits)
        raise ArgumentError(f"{run.path}: {len(hits)} pools have a question {name!r:.80}; give {whole}.")
    (((pool, id), decisions),) = hits.items()
    return pool, id, decisions


def questions_beside(report: Path) -> Path:
    return report.with_name("questions.html" if report.name == "report.html" else f"{report.stem}-questions.html")


def _write(path: Path, chunks: Iterable[str]) -> None:
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk.encode("utf-8", "replace"))


def _questions(run: RunRead, summary: Summary, pools: Sequence[Pool], report: str) -> Iterator[str]:
    """Yield the page of questions, piece by piece; decisions are in the order of the pools and of their rows."""
    page, settings = QuestionsPage(report), None if run.ungiven else run.settings
    groups = groupby(run.decisions(summary), key=lambda line: (line["pool"], line["id"]))
    (name, id), lines = next(groups, ((None, None), iter(())))
    yield page.head
    store = ConsultationStore(run.consultations())
    for pool in pools:
        for row in pool.rows(summary["pools"][pool.name]["n"]):
            decisions = list[Decided]()
            if (name, id) == (pool.name, row.id):
                decisions = [*lines]
                (name, id), lines = next(groups, ((None, None), iter(())))
            with naming_question(pool.name, row.id):
                yield page.question(_question(run, settings, store, pool.name, row, decisions))
    if id is not None:
        raise ArgumentError(f"{run.path}: decisions.jsonl decides {id!r} of {name!r} out of the order of its pools.")
    yield page.foot()


def _question(
    run: RunRead, settings: Settings | None, store: ConsultationStore, pool: str, row: Row, decisions: list[Decided]
) -> RunQuestion:
    """Return a question with the certificates that its run got; `settings` are None if they need the user's code."""
    entries = {label: store.find((pool, row.id, label)) for label in run.totals.roles}
    consultations = {label: entry for label, entry in entries.items() if entry is not None}
    case = None
    if settings is not None:
        case = Case(run.question(pool, row), settings)
        certify_again(case, {name: journaled_reply(case.question, entry) for name, entry in consultations.items()})
    return RunQuestion(pool, row, case, decisions, consultations, run.ungiven)
