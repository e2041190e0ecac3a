"""A run under a lock: checked against what was frozen, and entered in the lock's ledger before it asks any role.

A run is known by an id in its journal. So the same run directory may be resumed with the same lock, wherever it has
been moved. Started anew with `fresh`, it is another run, and counts as another look.
"""

import secrets
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.results.summary import Confirmed
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.run.ledger import Ledger, Look, questions_of, seen_before
from eldgr_dspy.programs.run.locks import Lock, read_lock, require_frozen
from eldgr_dspy.programs.run.recordings import recordings_in
from eldgr_dspy.programs.run.run_directory import RunDirectory, require_same
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.showing import shown

if TYPE_CHECKING:
    from eldgr_dspy.programs.run.plan import Plan


class SeenBeforeWarning(UserWarning):
    """A pool is evaluated under a lock that has already seen it, so the run confirms nothing."""


class _Shown(NamedTuple):
    """A pool that a run shows to its lock."""

    name: str
    sha256: str
    questions: int
    asked: str


class Confirmation:
    """What a run must do under its lock."""

    def __init__(
        self,
        lock: Lock,
        pools: Sequence[Pool],
        out: Path,
        *,
        limit: int | None,
        once: bool,
    ) -> None:
        self.lock = lock
        self._once, self._ledger = once, Ledger(lock.ledger, lock.sha256)
        self._out, self._run = out, secrets.token_hex(8)
        self._pools = [
            _Shown(pool.name, pool.sha256, min(pool.n, limit or pool.n), questions_of(pool)) for pool in pools
        ]

    def require_first(self) -> None:
        """Refuse, if asked to, a run that is not opened yet and has a pool that was seen before.

        Raises:
            ArgumentError: a pool was seen before. JournalError: the ledger cannot be read.
        """
        self._refuse(self._earlier(self._ledger.looks()))

    def state(self, directory: RunDirectory, stated: Mapping[str, Any] | None) -> None:
        """State the lock and the run's id in the journal, or use the id that is `stated` there.

        Raises:
            RunChangedError: the run was started without a lock, or under another one.
        """
        details = {"sha256": self.lock.sha256}
        if stated is not None:
            require_same(directory.path, [stated], [("settings", "lock", details)])
            self._run = str(stated.get("run"))
        elif directory.journal.heads:
            raise RunChangedError(f"{directory.path}: this run was started without a lock; give another --out.")
        else:
            head = {"kind": "settings", "name": "lock", "details": details, "run": self._run}
            directory.journal.append_head(head)

    def begin(self) -> Confirmed:
        """Enter the run in the ledger; to be called when everything else is ready, before any role is asked.

        Returns:
            The entry for `summary.json` and `record.json`: the lock's hash, how many other runs have seen each pool
            before, and the ledger's lines for them.

        Raises:
            ArgumentError: a pool was seen before, and `once` forbids that.
            JournalError, RunLockedError: the ledger cannot be read or written.
        """
        with self._ledger.alone():
            looks = self._ledger.looks()
            earlier = self._earlier(looks)
            self._refuse(earlier)
            new = [look for look in self._looks() if not any(map(look.is_within, looks))]
            if new:
                self._ledger.append(new)
        if any(earlier.values()):
            warnings.warn(
                shown(f"{self.lock.path}: {self._told(earlier)}. This run does not confirm the rule again."),
                SeenBeforeWarning,
                stacklevel=2,
            )
        return _record(self.lock, earlier)

    def _earlier(self, looks: Sequence[Look]) -> dict[str, list[Look]]:
        """Return the looks of other runs, by the names that the pools have now."""
        return {pool.name: seen_before(looks, pool.sha256, self._run, pool.asked) for pool in self._pools}

    def _refuse(self, earlier: Mapping[str, Sequence[Look]]) -> None:
        if self._once and any(earlier.values()):
            raise ArgumentError(
                f"{self.lock.path}: {self._told(earlier)}; leave --once out to evaluate anyway, which confirms nothing."
            )

    def _looks(self) -> list[Look]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return [
            Look(
                lock=self.lock.sha256,
                pool=pool.sha256,
                name=pool.name,
                questions=pool.questions,
                time=now,
                run=self._run,
                out=str(self._out),
                asked=pool.asked,
            )
            for pool in self._pools
        ]

    def _told(self, earlier: Mapping[str, Sequence[Look]]) -> str:
        """Return a sentence on which pools were seen before."""
        contents = {pool.name: pool.sha256 for pool in self._pools}
        return "; ".join(_seen(name, contents[name], looks) for name, looks in earlier.items() if looks)


def confirmation_of(plan: "Plan", out: Path, pools: Sequence[Pool], selector: Selector) -> Confirmation | None:
    """Return a run's duties under its lock, None without one; before anything is opened or written.

    Raises:
        ArgumentError: the lock is not valid; `replay` or `once` conflicts with it; a pool was seen before, and `once`
            forbids that.
        RunChangedError: selector or rules are not what was frozen. JournalError: the ledger cannot be read.
    """
    if plan.lock is None:
        if plan.once:
            raise ArgumentError("once=True needs the ledger of a lock; give --lock too.")
        return None
    for path in recordings_in(plan.replay).values():
        raise ArgumentError(
            f"replay={str(path)!r} would replace the roles that are frozen; give no --replay with --lock."
        )
    lock = read_lock(Path(plan.lock))
    require_frozen(lock, selector, plan.rules, plan.judges)
    confirmation = Confirmation(lock, pools, out, limit=plan.limit, once=plan.once)
    if plan.fresh or not (out / "journal.jsonl").exists():
        confirmation.require_first()
    return confirmation


def state_lock(directory: RunDirectory, confirmation: Confirmation | None) -> None:
    """State the run's lock in the journal, before anything else is stated there.

    Raises:
        RunChangedError: the run was started under a lock and is resumed without, or the reverse, or under another.
    """
    heads = directory.journal.heads
    stated = next((head for head in heads if (head["kind"], head["name"]) == ("settings", "lock")), None)
    if confirmation is not None:
        confirmation.state(directory, stated)
    elif stated is not None:
        raise RunChangedError(f"{directory.path}: this run was started under a lock; give it with --lock.")


def _seen(name: str, content: str, looks: Sequence[Look]) -> str:
    times, last = f"{len(looks)} time{'s' * (len(looks) > 1)} before under this lock", looks[-1]
    when = f"last on {last.time[:10]} by {last.out}"
    if any(look.pool == content for look in looks):
        return f"{name} was seen {times}, {when}"
    return f"the same questions as in {name} were seen {times}, in another order or with other candidates, {when}"


def _record(lock: Lock, earlier: Mapping[str, Sequence[Look]]) -> Confirmed:
    return {
        "lock": lock.sha256,
        "seen_before": {name: len(looks) for name, looks in earlier.items()},
        "earlier": [
            {"pool": name, "questions": look.questions, "time": look.time, "out": look.out}
            for name, looks in earlier.items()
            for look in looks
        ],
    }
