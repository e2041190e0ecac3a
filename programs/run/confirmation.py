"""A run under a lock: checked against what was frozen, and known by the lock in its journal."""

from pathlib import Path
from typing import TYPE_CHECKING

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.run.locks import Lock, read_lock, require_frozen
from eldgr_dspy.programs.run.recordings import recordings_in
from eldgr_dspy.programs.run.run_directory import RunDirectory, require_same
from eldgr_dspy.programs.selector import Selector

if TYPE_CHECKING:
    from eldgr_dspy.programs.run.plan import Plan


def lock_of(plan: "Plan", selector: Selector) -> Lock | None:
    """Return the lock of a plan, None without one; before anything is opened or written.

    Raises:
        ArgumentError: the lock is not valid, or `replay` conflicts with it.
        RunChangedError: selector or rules are not what was frozen.
    """
    if plan.lock is None:
        return None
    for path in recordings_in(plan.replay).values():
        raise ArgumentError(
            f"replay={str(path)!r} would replace the roles that are frozen; give no --replay with --lock."
        )
    lock = read_lock(Path(plan.lock))
    require_frozen(lock, selector, plan.rules, plan.judges)
    return lock


def state_lock(directory: RunDirectory, lock: Lock | None) -> None:
    """State a run's lock in the journal, before anything else is stated there.

    Raises:
        RunChangedError: the run was started under a lock and is resumed without, or the reverse, or under another.
    """
    heads = directory.journal.heads
    stated = [head for head in heads if (head["kind"], head["name"]) == ("settings", "lock")]
    if lock is None and stated:
        raise RunChangedError(f"{directory.path}: this run was started under a lock; give it with --lock.")
    if lock is None:
        return
    if heads and not stated:
        raise RunChangedError(f"{directory.path}: this run was started without a lock; give another --out.")
    statement = "settings", "lock", {"sha256": lock.sha256}
    require_same(directory.path, stated, [statement])
    if not stated:
        directory.claim(statement)
