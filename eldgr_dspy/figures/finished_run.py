"""Read a run directory: its journal, its results and its decisions, with clear errors if it is not complete.

Nothing is written or locked. A run is finished if its `summary.json` has the counts of its journal.
"""

import importlib.metadata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from eldgr_dspy.answer_types import remember_type
from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES, MAX_VALUES, document, require_few_in, size_of_file
from eldgr_dspy.base.system import open_file, refusal
from eldgr_dspy.errors import ArgumentError, JournalError, PoolError
from eldgr_dspy.figures.record import JournalTotals, journal_totals
from eldgr_dspy.figures.results import DECISION, RECORD, SUMMARY
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.record_fields import Record
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.formats.journal_lines import comparison_records
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.journal import read_journal, short_lines
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.questions import Question, Settings, option_of, own_names

_Content = TypeVar("_Content")

_AGAIN = "give the same eldgr evaluate command again, without --fresh"
_MEND = f"restore it from a copy, or {_AGAIN}, which makes it anew and asks nothing twice"


@dataclass(frozen=True)
class RunRead:
    """A run directory, read."""

    path: Path
    heads: list[dict[str, Any]]  # settings, pools and roles, in order, see `eldgr_dspy.journal`
    totals: JournalTotals
    is_torn: bool = False  # whether the last line of its journal is torn; such a line is skipped
    own: Mapping[str, object] = field(default_factory=dict)  # what the reader gives, see `Settings.from_json`

    def heads_of(self, kind: Literal["settings", "pool", "role"]) -> dict[str, dict[str, Any]]:
        """Return the journal's lines of a kind by name, each with its `details`; the last one for each name."""
        return {head["name"]: head for head in self.heads if head["kind"] == kind}

    @property
    def settings(self) -> Settings:
        """The settings of the rule; an ArgumentError if they are unknown, or if `own` lacks code of the user's own."""
        return self._settings(self._details, self.own)

    @property
    def stated_settings(self) -> dict[str, Any]:
        """The settings as files state them; names of the user's own code are not looked up."""
        own = {name: self._details[name] for name in own_names(self._details)}
        return self._settings({name: of for name, of in self._details.items() if name not in own}).to_json() | own

    @cached_property
    def _details(self) -> dict[str, Any]:
        return {**self.heads_of("settings")["rule"]["details"]}

    def _settings(self, details: Mapping[str, Any], own: Mapping[str, object] | None = None) -> Settings:
        try:
            return Settings.from_json(details, own)
        except (TypeError, ArgumentError) as error:
            if isinstance(error, ArgumentError) and (own or own_names(details)):
                raise ArgumentError(f"{self.path}: {error}") from error
            raise ArgumentError(
                f"{self.path}: {details!r:.200} are not settings that eldgr_dspy {installed_version()} knows"
                f"{self._made_by()}; read the run with the version that made it."
            ) from error

    @property
    def ungiven(self) -> str | None:
        """A sentence if the run was made with code of the user's own that is not in `own`, so that it is only shown."""
        if not (lacking := [name for name in own_names(self._details) if self.own.get(name) is None]):
            return None
        names = " and ".join(f"{name}={self._details[name].get('name')!r:.80}" for name in lacking)
        return (
            f"Votes and certificates are not shown: they need {names}, and a file imports nothing. Give it by "
            f"{' and '.join(option_of(name) for name in lacking)} to see them."
        )

    @property
    def versions(self) -> list[str]:
        """The versions of the package that asked its roles; empty if none was asked."""
        versions = (role["details"].get("versions") for role in self.heads_of("role").values())
        own = [one.get("eldgr_dspy") for one in versions if isinstance(one, Mapping)]
        return sorted({str(version) for version in own if version is not None})

    @property
    def made_by_others(self) -> str | None:
        """A sentence if another version of the package made the run, as far as the run states one."""
        others = [version for version in self.versions if version != installed_version()]
        note = f"{self.path} was made by eldgr_dspy {' and '.join(others)}; this is {installed_version()}"
        return f"{note}, which may decide otherwise." if others else None

    def question(self, pool: str, row: Row) -> Question:
        """Return a row as the run's rules saw it: what it could not compare in time is not compared again."""
        records = self._comparisons.get((pool, row.id))
        return row.to_question(Comparisons(records) if records else None)

    @cached_property
    def _comparisons(self) -> Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]:
        return comparison_records(self.heads)

    def consultations(self) -> Iterator[Consultation]:
        return read_journal(self.path / "journal.jsonl", [], on_tear=lambda error: None)

    def is_finished(self) -> bool:
        """Whether the run is finished: its results exist and have the counts of the journal."""
        return (self.path / "summary.json").exists() and self._counts_all(self._summary())

    def summary(self) -> Summary:
        """Return the content of `summary.json`; an ArgumentError if the run is not finished, or the file unreadable."""
        summary = self._summary()
        if not self._counts_all(summary):
            raise ArgumentError(
                f"{self.path}: the run is not finished: its journal is not what summary.json counts; to finish it "
                f"{_AGAIN}. What the journal holds, eldgr decide evaluates."
            )
        return summary

    def _summary(self) -> Summary:
        summary: Summary = self._result("summary.json", SUMMARY)
        for pool in summary["pools"].values():
            if "answer_type" in pool:
                remember_type(pool["task"], **pool["answer_type"])
        return summary

    def _counts_all(self, summary: Summary) -> bool:
        """Whether a summary belongs to this journal: the same pools, and the same totals of the consultations."""
        rows = {name: head["details"]["rows"] for name, head in self.heads_of("pool").items()}
        pools = all(pool["n"] <= rows.get(name, -1) for name, pool in summary["pools"].items())
        return not self.is_torn and pools and summary["consultations"] == self.totals.roles

    def record(self) -> Record:
        return self._result("record.json", RECORD)

    def decisions(self, summary: Summary) -> Iterator[Decided]:
        """Yield the decisions of `decisions.jsonl`; an ArgumentError if one is unreadable or their number is wrong."""
        path, counts = self.path / "decisions.jsonl", Counter[tuple[str, str]]()
        totals = {(name, rule): pool["n"] for name, pool in summary["pools"].items() for rule in pool["rules"]}
        with self._reading(path):
            size_of_file(path)
        with self._reading(path), open_file(path) as file:
            for number, line in short_lines(path, file):
                row = self._parse(line, f"{path}, line {number},", DECISION, MAX_VALUES)
                pool, rule = row["pool"], row["rule"]
                if pool not in summary["pools"] or (row["em"] is None) is bool(row["gold"]):
                    wrong = "a pool that summary.json lacks, or a score without gold answers or the reverse"
                    raise ArgumentError(f"{path}, line {number}, has {wrong}; {_MEND}.")
                counts[pool, rule] += 1
                yield row
        for (pool, rule), n in totals.items():
            if counts[pool, rule] != n:
                raise ArgumentError(
                    f"{path} has {counts[pool, rule]:,} decisions of rule {rule!r} on pool {pool!r}, and "
                    f"summary.json counts {n:,}: a part is missing; {_MEND}."
                )

    def _result(self, name: str, content: TypeAdapter[_Content]) -> _Content:
        path = self.path / name
        with self._reading(path):
            return self._parse(document(path), str(path), content, MAX_DOCUMENT_VALUES)

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        try:
            yield
        except PoolError as error:
            raise ArgumentError(error.args[0]) from error
        except OSError as error:
            if path.name == "summary.json" and isinstance(error, FileNotFoundError):
                raise ArgumentError(
                    f"{self.path} has no summary.json: the run is not finished; to finish it {_AGAIN}. What its "
                    "journal holds, eldgr decide evaluates."
                ) from error
            raise ArgumentError(f"{path} cannot be read ({error.strerror}); {_MEND}.") from error

    def _parse(self, data: bytes, where: str, content: TypeAdapter[_Content], most: int) -> _Content:
        try:
            require_few_in(data, where, most)
            return content.validate_json(data, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                raise ArgumentError(f"{where} is torn or no JSON ({first['msg']}); {_MEND}.") from error
            at = ".".join(map(str, first["loc"])) or "it"
            raise ArgumentError(
                f"{where} is not what eldgr_dspy {installed_version()} writes{self._made_by()}: {at}: {first['msg']}; "
                f"{_MEND}."
            ) from error

    def _made_by(self) -> str:
        return f" (the run is by eldgr_dspy {' and '.join(self.versions)})" if self.versions else ""


def read_run(path: Path, **own: object) -> RunRead:
    """Read a run directory, its journal once through, and import nothing that it names; `own` is as in `RunRead`."""
    journal = path / "journal.jsonl"
    if not path.is_dir():
        fault = "not a directory" if path.exists() else "no such directory"
        raise ArgumentError(f"{path}: {fault}; give the directory of a run, such as runs/NAME.")
    if not journal.is_file():
        raise ArgumentError(f"{path} holds no journal.jsonl; give the directory of a run, such as runs/NAME.")
    heads = list[dict[str, Any]]()
    try:
        with journal.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 1))
            is_torn = file.read(1) not in (b"", b"\n")
        lines = read_journal(journal, heads, on_tear=lambda error: None)
        run = RunRead(path, heads, journal_totals(lines), is_torn, own)
    except OSError as error:
        raise ArgumentError(refusal(error, journal)) from error
    if "rule" not in run.heads_of("settings"):
        raise ArgumentError(
            f"{journal} does not state the settings of a run: it is a recording, or its run never started."
        )
    for name, head in run.heads_of("pool").items():
        if {"sha256": str, "rows": int} != {key: type(head["details"].get(key)) for key in ("sha256", "rows")}:
            raise JournalError(f"{journal}: pool {name!r} is stated without sha256 and rows, as by another version.")
    return run


def installed_version() -> str:
    return importlib.metadata.version("eldgr_dspy")
