"""Recorded consultations in a temporary file, so that fifty judges and a hundred thousand questions fit into memory.

A reply takes eight bytes of memory. In the file each distinct one of a recording is kept once. The file has no name and
goes with the process.
"""

import json
import tempfile
import threading
import weakref
from array import array
from hashlib import sha256
from pathlib import Path

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.journal_lines import FIELDS
from eldgr_dspy.named_judges import Asked
from eldgr_dspy.system import naming

_ABSENT = -1


class SpooledReplies:
    """Consultations by pool, whom they asked, and question; of several for one question, the last."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
        weakref.finalize(self, self._file.close)
        self._lock, self._end = threading.Lock(), 0
        self._written: dict[bytes, int] = {}
        self._numbers: dict[str, int] = {}
        self._places: dict[tuple[str, Asked], array[int]] = {}

    def keep(self, entry: Consultation) -> None:
        """Keep a consultation."""
        said = {name: value for name in FIELDS if (value := getattr(entry, name)) is not None and name != "id"}
        line = json.dumps(said).encode("ascii") + b"\n"
        place = self._written.setdefault(sha256(line).digest(), self._end)
        if place == self._end:
            with naming(Path(tempfile.gettempdir())):
                self._file.write(line)
            self._end += len(line)
        number = self._numbers.setdefault(entry.id, len(self._numbers))
        places = self._places.setdefault((entry.pool, entry.label), array("q"))
        places.extend([_ABSENT] * (number + 1 - len(places)))
        places[number] = place

    def end_recording(self) -> None:
        """Forget what the next recording would have alike, which takes memory."""
        self._written.clear()

    def place(self, pool: str, asked: Asked, question: str) -> int | None:
        """Return where a consultation is in the file; None if there is none."""
        number, places = self._numbers.get(question), self._places.get((pool, asked), ())
        return None if number is None or number >= len(places) or places[number] == _ABSENT else places[number]

    def find(self, pool: str, asked: Asked, question: str) -> Consultation | None:
        """Return a consultation, with its pool as recorded; None if there is none."""
        place = self.place(pool, asked, question)
        if place is None:
            return None
        with self._lock, naming(Path(tempfile.gettempdir())):
            self._file.seek(place)
            line = self._file.readline()
        return Consultation(id=question, **json.loads(line))
