"""The file of sampled completions next to a pool: one line each, only ever appended, so that sampling can be resumed.

The settings and the checkpoints come first. A completion that is in the file is not sampled again. Input that
contradicts the file is refused; anything new is added: further questions, checkpoints or samples.
"""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eldgr_dspy.differences import differences
from eldgr_dspy.errors import JournalError, PoolError, RunChangedError, brief
from eldgr_dspy.file_limits import parsed_json
from eldgr_dspy.files import append_whole, flush_to_disk, sync_folder, whole_lines
from eldgr_dspy.journal import TornLineWarning
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.showing import shown
from eldgr_dspy.system import appending

Key = tuple[str, str, int]
"""Which completion: the question's id, the checkpoint's name, the number of the sample from 1."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A completion as it is stored.

    Attributes:
        id: The question's.
        checkpoint: The name of the checkpoint.
        number: Of the sample, from 1.
        prompt: A hash of the tokens of its prompt.
        text: The completion.
        ended: Whether the model ended it; otherwise it was cut off.
        ends: Where in the text each of its tokens ends.
        logps: log p of each token under the model itself, rounded to four places.
    """

    id: str
    checkpoint: str
    number: int
    prompt: str
    text: str
    ended: bool
    ends: list[int]
    logps: list[float]

    @property
    def key(self) -> Key:
        """The completion's key."""
        return self.id, self.checkpoint, self.number


class SamplesFile:
    """The file, open for appending and locked while it is; its content is in memory."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, and drop a torn last line with a `TornLineWarning`; `opened` also locks it.

        Raises:
            JournalError: A line other than the last cannot be read.
            PoolError: A line is longer than the limit on lines.
        """
        self.path = path
        self.samples: dict[Key, Sample] = {}
        self._heads: dict[tuple[str, str], Mapping[str, Any]] = {}
        if not path.exists():
            path.touch()
            sync_folder(path.parent)
        for number, line in whole_lines(path, "it should hold sampled completions"):
            if not line.endswith(b"\n"):
                self._drop(number, len(line))
                break
            self._take(number, line)

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator["SamplesFile"]:
        """Open the file and keep other processes from it. Raises `RunLockedError` if one is writing to it."""
        busy = f"{path}: another process is sampling into it; wait for it, or give another path."
        with locked(path.with_name(f".{path.name}.lock"), busy):
            yield cls(path)

    def state(self, kind: str, name: str, details: Mapping[str, Any]) -> None:
        """State the settings of samples; an earlier statement must be the same.

        Args:
            kind: `settings` or `checkpoint`.
            name: Of the checkpoint.
            details: Plain values.

        Raises:
            RunChangedError: It was something else, saying what.
        """
        stated = self._heads.get((kind, name))
        if stated is None:
            self._heads[kind, name] = details
            self._append([{"kind": kind, "name": name, "details": details}])
        elif changed := differences(stated, details):
            listed = "\n".join(f"  {line}" for line in changed)
            raise RunChangedError(
                f"{self.path}: it was started with another {kind} {name!r}:\n{listed}\n"
                "Undo the change, or give another path for the pool."
            )

    def require_prompt(self, key: Key, prompt: str) -> None:
        """Raise a `RunChangedError` if the file has that completion for another prompt."""
        sample = self.samples.get(key)
        if sample is not None and sample.prompt != prompt:
            raise RunChangedError(
                f"{self.path}: the question {key[0]!r:.80} was sampled from {key[1]!r} with another prompt or another "
                "chat template; undo the change, give the question another id, or give another path for the pool."
            )

    def add(self, samples: Sequence[Sample]) -> None:
        """Append completions; they are on the disk on return."""
        self._append([{"kind": "sample", **asdict(sample)} for sample in samples])
        self.samples.update((sample.key, sample) for sample in samples)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> None:
        lines = b"".join(json.dumps(record, allow_nan=False).encode("ascii") + b"\n" for record in records)
        with appending(self.path) as file:
            append_whole(file.fileno(), lines)
            flush_to_disk(self.path, file)

    def _drop(self, number: int, size: int) -> None:
        with appending(self.path) as file:
            file.truncate(self.path.stat().st_size - size)
        message = f"{self.path}, line {number}: torn after {size} bytes and dropped; it will be sampled again."
        warnings.warn(shown(message), TornLineWarning, stacklevel=4)

    def _take(self, number: int, line: bytes) -> None:
        try:
            record = parsed_json(line, f"{self.path}, line {number}")
            kind = record.pop("kind")
            if kind == "sample":
                sample = Sample(**record)
                self.samples[sample.key] = sample
            else:
                self._heads[kind, record["name"]] = record["details"]
        except PoolError as error:
            raise JournalError(error.args[0]) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise JournalError(
                f"{self.path}, line {number}: not a sample ({brief(error, 100)}); restore the file from a copy, or "
                "delete it to sample anew."
            ) from error
