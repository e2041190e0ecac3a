"""Recorded consultations, used instead of calls: a recording for all roles, and one for each judge with a name."""

import json
import tempfile
import threading
import warnings
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, starmap
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeAlias

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.system import naming
from eldgr_dspy.errors import ArgumentError, JournalError, NotAskedError, RunChangedError, brief
from eldgr_dspy.formats.journal_lines import comparison_records, record_of
from eldgr_dspy.journal import Places, TornLineWarning, read_journal
from eldgr_dspy.pools import Pool
from eldgr_dspy.redaction import redact_value
from eldgr_dspy.rule.consultations import Consultation, Key
from eldgr_dspy.rule.named_judges import Label, label_of, role_of
from eldgr_dspy.showing import display_text

Replays: TypeAlias = str | Path | Mapping[str, str | Path] | None
"""A recording, or several by the judge's name. The recording for all roles has the empty name."""


_reply = attrgetter("outcome", "content", "reason")


def recordings_in(replay: Replays) -> dict[str, Path]:
    """Return recordings by the judge's name, the one for all roles first."""
    paths = replay if isinstance(replay, Mapping) else {} if replay is None else {"": replay}
    return {name: Path(paths[name]) for name in sorted(paths, key=bool)}


class ConsultationStore:
    """Consultations in a temporary file, sixteen bytes each in memory; the last of each key. From any thread."""

    def __init__(self, consultations: Iterable[Consultation]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
        weakref.finalize(self, _close, self._file)
        self._lock, self._places, end = threading.Lock(), Places(), 0
        for entry in consultations:
            line = json.dumps(record_of(entry)).encode("ascii") + b"\n"
            with naming(Path(tempfile.gettempdir())):
                self._file.write(line)
            self._places.add(entry.key, end)
            end += len(line)
        self._earlier = self._places.end()

    def find(self, key: Key) -> Consultation | None:
        entry = None if (place := self._places.find(key)) is None else self._at(place)
        return entry if entry and entry.key == key else None  # two keys of one hash

    def contradictions(self) -> Iterator[Consultation]:
        """Yield the consultations whose key has another reply later."""
        for entry in map(self._at, self._earlier):
            if (later := self.find(entry.key)) and _reply(later) != _reply(entry):
                yield entry

    def _at(self, place: int) -> Consultation:
        with self._lock, naming(Path(tempfile.gettempdir())):
            self._file.seek(place)
            line = self._file.readline()
        return Consultation(**json.loads(line))


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # it writes the rest, and fails where the first write did
        file.close()


class Recordings:
    """Recorded consultations, used instead of calls. A role recorded for a pool is never asked of that pool."""

    def __init__(self, replay: Replays = None, recorded_for: str | None = None, judges: Collection[str] = ()) -> None:
        """Read journals, or none; `judges` are the names of the run's judges."""
        self._paths = recordings_in(replay)
        self._for, self._judges = recorded_for, judges
        self._sources: dict[tuple[str, Label], Path] = {}
        self._pools: dict[Path, set[str]] = {path: set() for path in self._paths.values()}
        self._heads: list[tuple[Path, dict[str, Any]]] = []
        self._replies = ConsultationStore(chain.from_iterable(starmap(self._read, self._paths.items())))
        self._comparisons = comparison_records(head for _, head in self._heads)
        journals = {path for path, _ in self._heads}  # in which a run may have asked again: its last reply counts
        for pool, question, label in (entry.key for entry in self._replies.contradictions()):
            if (path := self._sources[pool, label]) not in journals:
                raise JournalError(
                    f"{path}: holds different replies of the {label} to question {question!r}"
                    f"{f' of pool {pool!r}' if pool else ''}; keep one."
                )

    def _read(self, judge: str, path: Path) -> Iterator[Consultation]:
        faults, heads, others, any_reply = list[JournalError](), list[dict[str, Any]](), set[str](), False
        for entry in read_journal(path, heads, faults.append):
            if judge and entry.role == "judge" and entry.judge is None:
                entry = replace(entry, judge=judge)
            if entry.judge is not None and (entry.judge != judge if judge else entry.judge not in self._judges):
                others.add(entry.judge)
                continue
            self._pools[path].add(entry.pool)
            entry = replace(entry, pool="") if entry.pool == self._for else entry  # one without a pool matches any
            any_reply |= entry.settled
            # The first journal that has a role answers for it, but a named judge's own answers for that judge.
            own = judge == entry.judge or entry.judge not in self._paths
            if own and self._sources.setdefault((entry.pool, entry.label), path) == path and entry.settled:
                clean = {field: redact_value(getattr(entry, field)) for field in ("content", "reason", "served")}
                yield replace(entry, **clean)
        self._heads += [(path, head) for head in heads]
        _require_usable(path, faults, any_reply, bool(self._pools[path] or others))
        labels = {label for (_, label), of in self._sources.items() if of == path}
        listing = brief(", ".join(map(repr, sorted(others))), 200)
        if judge and label_of("judge", judge) not in labels:
            contents = f"those of {listing}" if others else "no judge's replies"
            raise ArgumentError(f"{path}: must hold replies of judge {judge!r}; got {contents}. Give its recording.")
        if not judge and others and not any(role_of(label) == "judge" for label in labels):
            raise ArgumentError(f"{path}: holds replies of {listing}, judges that this run lacks. Name them in judges.")

    def require_made_for(self, pools: Sequence[Pool], kind: AnswerType | None = None) -> None:
        """Refuse pools for which nothing is recorded, as every role would be asked, and a changed pool or type."""
        self._require_type(kind)
        if self._for is not None and not any(self._for in own_pools for own_pools in self._pools.values()):
            raise ArgumentError(
                f"recorded_for={self._for!r} must be the name of a pool that a recording was made for; none was."
            )
        pool_names = {pool.name for pool in pools}
        for path, own_pools in self._pools.items():
            if own_pools.isdisjoint({"", self._for, *pool_names}):
                names, others = (", ".join(map(repr, sorted(some))) for some in (own_pools, pool_names))
                raise ArgumentError(
                    f"{path}: recorded for {brief(names, 200)}, not for {brief(others, 200)}, so it would answer "
                    "nothing; give a pool that it was recorded for, or no --replay. If the questions are the same, "
                    "name the pool as it was named then, or give recorded_for= in Python."
                )
            for pool in pools:
                own = [key for key, of in self._sources.items() if of == path and key[0] in ("", pool.name)]
                if own and all(
                    self._replies.find((of, row.id, label)) is None for row in pool.rows() for of, label in own
                ):
                    raise ArgumentError(
                        f"{path}: must hold replies to questions of {pool.name!r}; none of their ids is in it. Give a "
                        "recording of these questions."
                    )
        contents = {pool.name: pool.sha256 for pool in pools}
        for path, head in self._heads:
            name, content = head["name"], contents.get(head["name"]) if head["kind"] == "pool" else None
            made_on = head["details"].get("sha256", content)
            if content is not None and made_on != content:
                raise RunChangedError(
                    f"{path}: recorded on another pool {name!r} (sha256 {made_on!r:.80}) than the one "
                    f"given ({content!r}); give that pool, or a recording of this one."
                )

    def _require_type(self, kind: AnswerType | None) -> None:
        for path, head in self._heads:
            made_with = head["details"].get("answer", {}) if head["kind"] == "settings" else {}
            if kind and made_with.get("name") == kind.name and (changes := differences(made_with, kind.to_json())):
                raise RunChangedError(
                    f"{path}: recorded with another answer type {kind.name!r}: {'; '.join(changes)}. Undo the change, "
                    "or give a recording of this one."
                )

    def refuse_changes(
        self, entries: Iterable[Consultation], pools: Collection[Pool], models: Mapping[Label, str | None]
    ) -> None:
        """Refuse to resume if a recording now has another consultation of these pools, or a judge another source."""
        names = {pool.name for pool in pools}
        # A consultation that a recording lacks is kept, except a named judge's: its replies have one source.
        for entry in entries if self._paths or self._judges else ():
            if entry.pool in names:
                if entry.judge in self._judges:
                    self._require_same_source(entry, models)
                now = self._get(entry.key) if entry.recorded else None
                if now and _reply(now) != _reply(entry):
                    raise RunChangedError(
                        f"{self._sources[now.pool, entry.label]}: the {entry.label} of question {entry.id!r} of pool "
                        f"{entry.pool!r} is not the one this run used; undo the change, give another --out, or start "
                        "anew with --fresh (the old journal is kept)."
                    )

    def _require_same_source(self, entry: Consultation, models: Mapping[Label, str | None]) -> None:
        path = self._path_of(entry.pool, entry.label)
        lacks = path is not None and entry.recorded and self._get(entry.key) is None
        if entry.recorded == (path is not None) and not lacks:
            return
        had = "a recording" if entry.recorded else _model(entry.asked)
        now = _model(models.get(entry.label)) if path is None else f"the recording {path}"
        lacking = f", which lacks its reply to question {entry.id!r} of pool {entry.pool!r}" if lacks else ""
        raise RunChangedError(
            f"Judge {entry.judge!r} must keep the source that this run was started with, {had}; got {now}{lacking}. "
            "Give its former source, name the new judge differently, give another --out, or start anew with --fresh "
            "(the old journal is kept)."
        )

    def _get(self, key: Key) -> Consultation | None:
        """Return what is recorded, with its pool as recorded."""
        return self._replies.find(key) or self._replies.find(("", *key[1:]))

    def comparisons(self, pool: str, question: str) -> Sequence[Mapping[str, Any]]:
        return [one for of in {pool, self._for or pool} for one in self._comparisons.get((of, question), ())]

    def find(self, key: Key) -> Consultation | NotAskedError | None:
        """Return the recorded consultation, an error in a gap, which is not an abstention, or None to ask the role."""
        pool, question, label = key
        if self._path_of(pool, label) is None:
            return None
        if (entry := self._get(key)) is None:
            return NotAskedError(f"The recording holds no {label} for question {question!r} of pool {pool!r}.")
        return replace(entry, pool=pool, recorded=True, calls=0)

    def _path_of(self, pool: str, label: Label) -> Path | None:
        return self._sources.get((pool, label)) or self._sources.get(("", label))


def _model(name: str | None) -> str:
    return "a judge without a model" if name is None else f"the model {name}"


def _require_usable(path: Path, faults: Sequence[JournalError], any_reply: bool, any_entry: bool) -> None:
    if faults and any_reply:
        message = f"{path}: the last line is torn and skipped; its record is missing."
        warnings.warn(display_text(message), TornLineWarning, stacklevel=5)
    elif faults:
        raise faults[0]
    elif not any_reply:
        what = "no consultation that came through" if any_entry else "no consultation"
        raise JournalError(f"{path}: holds {what}; a recording is a journal, one consultation a line.")
