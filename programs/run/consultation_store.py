"""Consultations by pool, question and role or judge, looked up in a temporary file instead of in memory."""

import json
import tempfile
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

from eldgr_dspy.base.system import naming
from eldgr_dspy.formats.journal_lines import record_of
from eldgr_dspy.journal import Places
from eldgr_dspy.rule.consultations import Consultation, Key


class ConsultationStore:
    """Consultations in a temporary file, which ends with the process. From any thread.

    In memory one takes sixteen bytes, so fifty judges and a hundred thousand questions fit.
    """

    def __init__(self, consultations: Iterable[Consultation]) -> None:
        """Take consultations. Of several with one key, the last one counts."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
        weakref.finalize(self, self._file.close)
        self._lock, self._places, end = threading.Lock(), Places(), 0
        for entry in consultations:
            line = json.dumps(record_of(entry)).encode("ascii") + b"\n"
            with naming(Path(tempfile.gettempdir())):
                self._file.write(line)
            self._places.add(entry.key, end)
            end += len(line)
        self._places.end()

    def __contains__(self, key: Key) -> bool:
        return self._places.find(key) is not None

    def find(self, key: Key) -> Consultation | None:
        """Return a consultation, or None if there is none."""
        place = self._places.find(key)
        if place is None:
            return None
        with self._lock, naming(Path(tempfile.gettempdir())):
            self._file.seek(place)
            line = self._file.readline()
        entry = Consultation(**json.loads(line))
        return entry if entry.key == key else None  # two keys of one hash
