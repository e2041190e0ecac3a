"""The results of a run, made from settled rows as they come: decisions first, then figures, record and report.

They are written into files that become the results when the run ends in order, the summary last. Each is the whole new
file or the old one. A kill or a full disk between two of them leaves new ones next to old ones, and the same plan makes
all of them again.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from eldgr_dspy.answer_types.answers import Score
from eldgr_dspy.base.files import flush_to_disk, replacing
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.record import JournalTotals, judge_facts, judges_record
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.summary_fields import Confirmed, Summary
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.programs.run.pages import left_out
from eldgr_dspy.programs.run.settling import Settled
from eldgr_dspy.report.page import render_report
from eldgr_dspy.report.question_tables import RunQuestion
from eldgr_dspy.report.questions_page import QuestionsPage
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.showing import encodable

FILES = ("decisions.jsonl", "record.json", "questions.html", "report.html", "summary.json")
"""What a run may write, by name, in the order in which the files are put in place."""

_AROUND = 80  # characters on either side of a witness
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@contextmanager
def replacing_all(directory: Path, n: int) -> Iterator[dict[str, IO[bytes]]]:
    """Open files that become the results of a run of `n` questions in order: the summary last.

    Before it, a page of questions of an earlier session is removed if this one does not write it.
    """
    *names, last = [name for name in FILES if not (name == "questions.html" and left_out(directory, n))]
    with replacing(directory / last) as summary:
        with ExitStack() as files:
            handles = {name: files.enter_context(replacing(directory / name)) for name in reversed(names)}
            yield {last: summary, **handles}
        if "questions.html" not in names:
            (directory / "questions.html").unlink(missing_ok=True)


class Results:
    def __init__(
        self,
        directory: Path,
        rules: Sequence[str],
        files: Mapping[str, IO[bytes]],
        look: Callable[[], None],
        confirmation: Confirmed | None,
    ) -> None:
        """Begin the files that `replacing_all` has opened; `look` is called before something is written."""
        self._directory, self._rules, self._files, self._look = directory, rules, files, look
        self._confirmation = confirmation
        self._rows: dict[str, DecidedRows] = {}
        self._questions = QuestionsPage() if "questions.html" in files else None
        if self._questions is not None:
            self._write("questions.html", self._questions.head)

    def begin(self, pool: Pool) -> None:
        """Begin a pool, even one without rows."""
        self._rows.setdefault(pool.name, DecidedRows(pool.task, self._rules))

    def add(self, pool: Pool, settled: Settled) -> None:
        """Score a row and write its decisions."""
        with naming_question(pool.name, settled.row.id):
            outcomes, scores = settled.score(self._rows[pool.name])
            decided = [
                _decision_line(pool.name, settled.row, rule, outcome.decision, scores[rule], scores.get("majority"))
                for rule, outcome in outcomes.items()
                if outcome.decision is not None
            ]
            for line in decided:
                self._write("decisions.jsonl", _ENCODER.encode(line) + "\n")
            if self._questions is not None:
                question = RunQuestion(pool.name, settled.row, settled.case, decided, settled.consultations)
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
        beside = None
        if self._questions is not None:
            beside = "questions.html"
            self._write(beside, self._questions.foot())
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
