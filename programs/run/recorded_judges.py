"""Recorded judges for `eldgr bound`: their replies by a question's place in its pool, in little memory.

Equal replies of all judges are kept once, so that memory holds fifty judges: a question takes four bytes for each judge
and role. Rationales are not kept, because no rule reads them.
"""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.consultations import Abstention, Key, Reply
from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.figures.authority import Replies
from eldgr_dspy.named_judges import Asked, labelled
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.questions import Question
from eldgr_dspy.replies import reply_to
from eldgr_dspy.words import ROLES, Role

_LACKING = -1


def recorded_judges(
    replays: Mapping[str, Path], pools: Sequence[Pool], recorded_for: str | None = None
) -> dict[str, dict[str, Replies]]:
    """Return for each pool, by name, the judges that were recorded for it.

    Args:
        replays: The recordings by the judge's name; each is read once, and only one is in memory as a whole.
        pools: The pools, each read through once for the ids of its questions.
        recorded_for: A pool whose recordings are used for any pool.

    Raises:
        ArgumentError: a recording was made for none of the pools, or for other questions; the message names it.
    """
    ids = {pool.name: [row.id for row in pool.rows()] for pool in pools} if replays else {}
    judges: dict[str, dict[str, Replies]] = {pool.name: {} for pool in pools}
    kept = _Kept()
    for name, path in replays.items():
        recordings = Recordings({name: path}, recorded_for)
        recordings.require_made_for(pools)
        for pool, judge in _read(recordings, name, path, ids, kept):
            judges[pool][name] = judge.reply
    return judges


def _read(
    recordings: Recordings, name: str, path: Path, ids: Mapping[str, Sequence[str]], kept: "_Kept"
) -> Iterator[tuple[str, "_Judge"]]:
    for pool, of in ids.items():
        recorded: dict[Role, Asked] = {
            role: label
            for role in ROLES
            if recordings.governs(pool, label := labelled(role, (name or None) if role == "judge" else None))
        }
        if recorded:
            yield pool, _Judge(recordings, path, [(pool, id_) for id_ in of], recorded, kept)


class _Kept:
    """The contents of replies, each kept once and found by its place; None stands for an abstention."""

    def __init__(self) -> None:
        self.contents: list[Mapping[str, Any] | None] = []
        self._places: dict[str, int] = {}

    def place(self, content: Mapping[str, Any] | None) -> int:
        """Return the place of a content, which is added if it is new."""
        if content and isinstance(content.get("judge_rationale"), str):
            content = {**content, "judge_rationale": ""}
        place = self._places.setdefault(json.dumps(content, sort_keys=True), len(self.contents))
        if place == len(self.contents):
            self.contents.append(content)
        return place


class _Judge:
    """One recording's replies to the questions of one pool; a role that was never recorded for it abstains."""

    def __init__(
        self,
        recordings: Recordings,
        path: Path,
        questions: Sequence[tuple[str, str]],
        recorded: Mapping[Role, Asked],
        kept: "_Kept",
    ) -> None:
        self._path, self._kept = path, kept
        self._places = {
            role: array("i", (self._place(recordings, (*question, label)) for question in questions))
            for role, label in recorded.items()
        }

    def _place(self, recordings: Recordings, key: Key) -> int:
        try:
            entry = recordings.find(key)
            return self._kept.place(entry.content if entry.outcome == "ok" else None)
        except NotAskedError:
            return _LACKING

    def reply(self, place: int, question: Question, role: Role) -> Reply:
        """Return the recorded reply of a role to the question at a place. Raises `NotAskedError` without one."""
        places = self._places.get(role)
        if places is not None and places[place] == _LACKING:
            raise NotAskedError(f"{self._path}: holds no reply of the {role} to question {place + 1}.")
        content = None if places is None else self._kept.contents[places[place]]
        return Abstention("recorded") if content is None else reply_to(question, role, content)
