"""The entries of several files, indexed on disk, so that files in any order are joined in little memory."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from pydantic import TypeAdapter

from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.entries import By, Entry
from eldgr_dspy.splitting import folded_question

QUESTIONS = 0  # the number of the file of questions; sources are 1 and so on
_ENTRY = TypeAdapter(Entry)
_COLUMNS: dict[By, str] = {"id": "id", "question": "folded"}
_TABLE = """
    CREATE TABLE entries (place INTEGER PRIMARY KEY, source INTEGER, id TEXT, folded TEXT, content TEXT);
    CREATE INDEX by_id ON entries (id, source);
    CREATE INDEX by_question ON entries (folded, source);
"""


class EntryStore(AbstractContextManager["EntryStore"]):
    """Entries by source, in the order of their arrival, found by id or by the folded text of the question."""

    def __init__(self) -> None:
        self._entries = sqlite3.connect("", isolation_level=None)  # moves to disk as it grows; deleted when closed
        self._entries.executescript(f"PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; {_TABLE}")

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def add(self, source: int, entry: Entry) -> None:
        """Append an entry. One that may repeat and does is not added."""
        other = self.find(source, "id", entry) if entry.may_repeat else None
        if other is not None and (other.question, other.samples) == (entry.question, entry.samples):
            return
        text = None if entry.question is None else folded_question(entry.question)
        self._ask(
            "INSERT INTO entries (source, id, folded, content) VALUES (?, ?, ?, ?)",
            *(source, entry.id, text, json.dumps(_ENTRY.dump_python(entry, mode="json"))),
        )

    def entries(self, source: int) -> Iterator[Entry]:
        return self._select("WHERE source = ? ORDER BY place", source)

    def find(self, source: int, by: By, entry: Entry) -> Entry | None:
        """Return the entry of a source on the same question."""
        key = entry.id if by == "id" else folded_question(entry.question or "")
        return next(self._select(f"WHERE source = ? AND {_COLUMNS[by]} = ?", source, key), None)

    def lacks(self, by: By) -> Entry | None:
        """Return the first entry of all that cannot be found by id, or by question."""
        return next(self._select(f"WHERE {_COLUMNS[by]} IS NULL ORDER BY place LIMIT 1"), None)

    def refuse_twins(self, source: int, by: By) -> None:
        """Raise `PoolError` for the first question that a source has twice."""
        column = _COLUMNS[by]
        row = self._ask(
            f"SELECT {column}, min(place), max(place) FROM entries WHERE source = ? AND {column} IS NOT NULL "
            f"GROUP BY {column} HAVING count(*) > 1 ORDER BY min(place) LIMIT 1",
            source,
        ).fetchone()
        if row:
            first, second = self._select("WHERE place IN (?, ?) ORDER BY place", *row[1:])
            key = f"id {first.id!r:.80}" if by == "id" else f"question {first.question!r:.80}"
            raise PoolError(
                f"{second.where}: {key} is also in {first.where}; keep one of them. "
                "Several samples of a question must be a list in one row, or separate files."
            )

    def strangers(self, source: int, questions: int, by: By) -> tuple[int, list[Entry]]:
        """Return how many entries a source has that are not among those under `questions`, and the first of them."""
        column = _COLUMNS[by]
        return self._misfits(
            f"WHERE source = ? AND NOT EXISTS (SELECT 1 FROM entries q WHERE q.source = ? AND q.{column} = e.{column})",
            *(source, questions),
        )

    def gaps(self, source: int, questions: int, by: By) -> tuple[int, list[Entry]]:
        """Return on how many questions a source has no entry although another source has one, and the first of them."""
        column = _COLUMNS[by]
        return self._misfits(
            f"WHERE source = ? "
            f"AND EXISTS (SELECT 1 FROM entries o WHERE o.{column} = e.{column} AND o.source <> {QUESTIONS}) "
            f"AND NOT EXISTS (SELECT 1 FROM entries o WHERE o.source = ? AND o.{column} = e.{column})",
            *(questions, source),
        )

    def _misfits(self, condition: str, *arguments: int) -> tuple[int, list[Entry]]:
        (n,) = self._ask(f"SELECT count(*) FROM entries e {condition}", *arguments).fetchone()
        return n, [*self._select(f"{condition} ORDER BY place LIMIT 3", *arguments)]

    def _select(self, condition: str, *arguments: Any) -> Iterator[Entry]:
        for (content,) in self._ask(f"SELECT content FROM entries e {condition}", *arguments):
            yield _ENTRY.validate_python(json.loads(content))

    def _ask(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        try:
            return self._entries.execute(statement, arguments)
        except sqlite3.OperationalError as error:
            folder = os.environ.get("SQLITE_TMPDIR") or os.environ.get("TMPDIR") or tempfile.gettempdir()
            raise PoolError(
                f"{folder}: the temporary index of the files could not be written ({error}). Free space on its disk, "
                "or set SQLITE_TMPDIR to another folder."
            ) from error
