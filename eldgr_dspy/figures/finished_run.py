"""Read a run directory: its journal, its results and its decisions, with clear errors if it is not complete.

Nothing is opened for writing or locked. A run is finished if its `summary.json` has the counts of its journal; both are
read for this, since a copy does not keep the times of files.
"""

import importlib.metadata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from eldgr_dspy.answer_types import remember_type
from eldgr_dspy.answer_types.comparing import Comparisons, recorded_in
from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES, MAX_VALUES, document, require_few_in
from eldgr_dspy.base.system import open_file, refusal
from eldgr_dspy.errors import ArgumentError, JournalError, PoolError
from eldgr_dspy.figures.record import JournalTotals, journal_totals
from eldgr_dspy.figures.results import DECIDED, RECORD, SUMMARY
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.record_fields import Record
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.journal import read_journal
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.questions import Question, Settings, option_of, own_names

_Content = TypeVar("_Content")

_AGAIN = "give the same eldgr evaluate command again, without --fresh"
_MEND = f"restore it from a copy, or {_AGAIN}, which makes it anew and asks nothing twice"


@dataclass(frozen=True)
class RunRead:
    """A run directory, read.

    Attributes:
        path: The directory.
        heads: The run's settings, pools and roles, in order, see `eldgr_dspy.journal`.
        totals: The totals of its consultations.
        torn: Whether the last line of its journal is torn; such a line is skipped.
        own: What the reader gives of the user's own that the run was made with, see `Settings.from_json`.
    """

    path: Path
    heads: list[dict[str, Any]]
    totals: JournalTotals
    torn: bool = False
    own: Mapping[str, object] = field(default_factory=dict)

    def heads_of(self, kind: Literal["settings", "pool", "role"]) -> dict[str, dict[str, Any]]:
        """Return the journal's lines of a kind by name, each with its `details`; the last one for each name."""
        return {head["name"]: head for head in self.heads if head["kind"] == kind}

    @property
    def settings(self) -> Settings:
        """The settings of the rule.

        Raises:
            ArgumentError: this version does not know them, or what the run states of the user's own is not in `own`.
        """
        return self._settings(self.heads_of("settings")["rule"]["details"], self.own)

    @property
    def stated_settings(self) -> dict[str, Any]:
        """The settings as files state them; what is of the user's own is as the run states it, and not looked up."""
        details = self.heads_of("settings")["rule"]["details"]
        own = {name: details[name] for name in own_names(details)}
        return self._settings({name: value for name, value in details.items() if name not in own}).to_json() | own

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
        settings = self.heads_of("settings")["rule"]["details"]
        lacking = [name for name in own_names(settings) if self.own.get(name) is None]
        if not lacking:
            return None
        names = " and ".join(f"{name}={settings[name].get('name')!r:.80}" for name in lacking)
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
        return recorded_in(self.heads)

    def consultations(self) -> Iterator[Consultation]:
        """Yield the journal's consultations, in order."""
        return _whole_lines(self.path / "journal.jsonl", [])

    def finished(self) -> bool:
        """Whether the run is finished: its results exist and have the counts of the journal."""
        return (self.path / "summary.json").exists() and self._counts_all(self._summary())

    def summary(self) -> Summary:
        """Return the figures of a finished run: the content of `summary.json`.

        Raises:
            ArgumentError: the run is not finished, or the file is torn, or is not one that this version writes.
        """
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
        heads = self.heads_of("pool")
        pools = all(pool["n"] <= heads.get(name, _NONE)["details"]["rows"] for name, pool in summary["pools"].items())
        return not self.torn and pools and summary["consultations"] == self.totals.roles

    def record(self) -> Record:
        """Return the judge's record: the content of `record.json`.

        Raises:
            ArgumentError: as `summary` does.
        """
        return self._result("record.json", RECORD)

    def decisions(self, summary: Summary) -> Iterator[Decided]:
        """Yield the decisions of `decisions.jsonl`, one at a time.

        Raises:
            ArgumentError: one cannot be read, or their number differs from that of the summary.
        """
        path, counts = self.path / "decisions.jsonl", Counter[tuple[str, str]]()
        try:
            with open_file(path) as file:
                for number, line in enumerate(file, start=1):
                    decided = self._parse(line, f"{path}, line {number},", DECIDED, MAX_VALUES)
                    counts[decided["pool"], decided["rule"]] += 1
                    yield decided
        except OSError as error:
            raise self._missing(path.name, error) from error
        for name, pool in summary["pools"].items():
            for rule in pool["rules"]:
                if counts[name, rule] != pool["n"]:
                    raise ArgumentError(
                        f"{path} has {counts[name, rule]:,} decisions of rule {rule!r} on pool {name!r}, and "
                        f"summary.json counts {pool['n']:,}: a part is missing; {_MEND}."
                    )

    def _result(self, name: str, content: TypeAdapter[_Content]) -> _Content:
        path = self.path / name
        try:
            return self._parse(document(path), str(path), content, MAX_DOCUMENT_VALUES)
        except PoolError as error:
            raise ArgumentError(error.args[0]) from error
        except OSError as error:
            raise self._missing(name, error) from error

    def _parse(self, data: bytes, where: str, content: TypeAdapter[_Content], most: int) -> _Content:
        try:
            require_few_in(data, where, most)
            return content.validate_json(data, strict=True)
        except PoolError as error:
            raise ArgumentError(error.args[0]) from error
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                raise ArgumentError(f"{where} is torn or no JSON ({first['msg']}); {_MEND}.") from error
            at = ".".join(map(str, first["loc"])) or "it"
            raise ArgumentError(
                f"{where} is not what eldgr_dspy {installed_version()} writes{self._made_by()}: {at}: {first['msg']}; "
                f"{_MEND}."
            ) from error

    def _missing(self, name: str, error: OSError) -> ArgumentError:
        if isinstance(error, FileNotFoundError) and name == "summary.json":
            return ArgumentError(
                f"{self.path} has no summary.json: the run is not finished; to finish it {_AGAIN}. What its journal "
                "holds, eldgr decide evaluates."
            )
        return ArgumentError(f"{self.path / name} cannot be read ({error.strerror}); {_MEND}.")

    def _made_by(self) -> str:
        return f" (the run is by eldgr_dspy {' and '.join(self.versions)})" if self.versions else ""


_NONE = {"details": {"rows": -1}}


def read_run(path: Path, **own: object) -> RunRead:
    """Read a run directory: its journal once through.

    Args:
        path: The directory.
        own: `certificate`, `refusals` and `answer` of the user's own that the run was made with, each as a value or
            by its name. Nothing that the run names is imported.

    Raises:
        ArgumentError: the directory does not exist, is not that of a run, or its journal cannot be read.
        JournalError: a line of the journal other than a torn last one cannot be read.
    """
    journal = path / "journal.jsonl"
    if not path.is_dir():
        fault = "not a directory" if path.exists() else "no such directory"
        raise ArgumentError(f"{path}: {fault}; give the directory of a run, such as runs/NAME.")
    if not journal.is_file():
        raise ArgumentError(f"{path} holds no journal.jsonl; give the directory of a run, such as runs/NAME.")
    heads = list[dict[str, Any]]()
    try:
        torn = _is_torn(journal)
        run = RunRead(path, heads, journal_totals(_whole_lines(journal, heads)), torn, own)
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


def _is_torn(journal: Path) -> bool:
    with journal.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 1))
        return size > 0 and file.read(1) != b"\n"


def _whole_lines(journal: Path, heads: list[dict[str, Any]]) -> Iterator[Consultation]:
    """Yield the consultations of a journal; a torn last line, which its own run would drop, is skipped."""
    return read_journal(journal, heads, on_torn=lambda error: None)


def installed_version() -> str:
    """Return the version of the package that is installed."""
    return importlib.metadata.version("eldgr_dspy")
