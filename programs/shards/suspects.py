"""Find the question that ends every process in which it is asked or decided, and let it fail.

A shard whose workers died is run one question at a time, and a file says which one is under way. A question at which
several processes ended is a suspect. Its roles are then not asked: each counts as a call that failed.
"""

import json
import os
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.pools import Row
from eldgr_dspy.programs.run.hooks import Settle
from eldgr_dspy.programs.run.role_queries import RoleQuery
from eldgr_dspy.programs.run.runner import Runner, Settled

DEATHS = 4
"""How many processes must have ended at a question; fewer may be accidents, such as machines that were taken away."""


class UnderWay:
    """The file that says which question of a shard is under way, in lines that are only ever appended.

    A line is the id of a question that was started, or `null`: the one before has ended. So an id that is not followed
    by `null` is that of a question at which the process ended.
    """

    def __init__(self, path: Path) -> None:
        """Read at which questions earlier processes ended, and open the file."""
        self._ended = ended_at(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(self._file, b"\n")  # the last line may be torn

    def end(self) -> None:
        """State that no question is under way."""
        self._note(None)

    def close(self) -> None:
        """State that no question is under way, and close the file."""
        self.end()
        os.close(self._file)

    def settle(self, runner: Runner) -> Settle:
        """Return what settles a row as the runner does, but states it first, and lets a suspect fail."""
        failing = replace(
            runner, roles={asked: replace(call, module=_Failing()) for asked, call in runner.roles.items()}
        )

        def settled(pool: str, row: Row) -> Generator[RoleQuery, Consultation, Settled]:
            if self._ended[row.id] >= 2 * DEATHS:
                raise RunStoppedError(
                    f"Question {row.id!r} of pool {pool!r} ends each process that decides it, also if no role is "
                    "asked. Take it out of the pool, and shard the pool again."
                )
            self._note(row.id)
            return (yield from (failing if self._ended[row.id] >= DEATHS else runner).settle(pool, row))

        return settled

    def _note(self, id: str | None) -> None:
        os.write(self._file, json.dumps(id).encode("ascii") + b"\n")


def ended_at(path: Path) -> Counter[str]:
    """Return how many processes ended at each question, by the file that says which one is under way."""
    ended, last = Counter[str](), None
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
        with suppress(ValueError):  # a line that is torn, or the empty one after it
            last, before = json.loads(line), last
            ended.update([before] if before is not None and last is not None else ())
    ended.update([last] if last is not None else ())
    return ended


def suspects_of(path: Path) -> list[str]:
    """Return the questions at which too many processes ended, by the file that says which one is under way."""
    return [id for id, n in ended_at(path).items() if n >= DEATHS]


class _Failing(dspy.Module):  # its calls do not come through
    def forward(self, **_: Any) -> Any:
        raise dspy.LMError("every process in which this question was asked has ended")
