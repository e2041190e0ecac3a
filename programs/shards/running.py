"""Run one shard and commit it. Workers of any engine call `run_shard`; it can be pickled by its name."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary import Summary
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.evaluation import Watcher, evaluate
from eldgr_dspy.programs.run.hooks import Hooks
from eldgr_dspy.programs.run.plan import Part, Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.claims import CLAIM, Claim, claimed, read_claim
from eldgr_dspy.programs.shards.commits import commit, is_committed
from eldgr_dspy.programs.shards.manifest import Sharded, ShardFile, read_sharded
from eldgr_dspy.programs.shards.requests import REQUESTS, SharedReserved, count_sent

_FOR_ALL: Mapping[str, tuple[Any, str]] = {
    "out": (None, "Each shard has its own directory; eldgr merge takes --out."),
    "limit": (None, "Shard a smaller pool."),
    "fresh": (False, "Shard the pool again into another directory."),
}


def run_shard(
    directory: str | Path,
    number: int,
    selector: Selector,
    plan: Plan,
    watcher: Watcher | None = None,
    hooks: Hooks | None = None,
) -> Summary | None:
    """Run one shard as `evaluate` runs a pool, commit it, and return its summary; None if it was committed before.

    A shard that was interrupted is resumed from its journal. All shards of a directory must have the same rules,
    settings and roles. `max_calls` limits the requests of all shards together.

    Args:
        directory: What `shard_pools` has written: a path, or the address of a bucket. number: which shard, from 0.
        selector: Its roles are asked. plan: what to do; its pools are not read. watcher: callbacks.
        hooks: What an engine of several processes replaces.

    Raises:
        ArgumentError: there is no such shard, or the plan has an `out`, a `limit` or `fresh`, or `max_calls` for a
            bucket, or the bucket cannot be reached at the start.
        RunChangedError: the shard was edited, or the directory was started with something else.
        RunLockedError: another process is running this shard. The rest as `evaluate` does.
    """
    sharded = read_sharded(directory)
    shard = sharded.shard(number)
    for name, (value, remedy) in _FOR_ALL.items():
        if getattr(plan, name) != value:
            raise ArgumentError(f"{name} must be left out for a shard; got {getattr(plan, name)!r:.80}. {remedy}")
    if sharded.bucket is not None and plan.max_calls is not None:
        raise ArgumentError(
            f"max_calls must be left out for shards in a bucket; got {plan.max_calls}. It would not hold over several "
            "machines. Limit each shard by max_cost."
        )
    sharded.pull(sharded.path / CLAIM, sharded.marker(shard))
    claim = claimed(sharded, selector, plan)
    run = sharded.run(shard)
    run.parent.mkdir(exist_ok=True)
    busy = f"{run}: another process is running shard {shard.name}. Wait for it, or run another shard."
    with locked(run.with_name(f".{shard.name}.lock"), busy):  # held until the marker is there
        if is_committed(sharded, shard, claim):
            return None
        sharded.require_whole(shard)
        part = _part(sharded, shard, claim, plan.max_calls)
        summary = evaluate(selector, replace(plan, pools=[sharded.file(shard)], out=run, part=part), watcher, hooks)
        sent = sum(role["calls"] for role in summary["consultations"].values())
        count_sent(sharded.path / REQUESTS, shard.name, sent)
        commit(sharded, shard, claim)
    return summary


def uncommitted(directory: str | Path) -> list[int]:
    """Return the numbers of the shards of a directory that are still to be run.

    Raises:
        ArgumentError: it is not a directory of shards. RunChangedError: a shard was decided with something else.
    """
    sharded = read_sharded(directory)
    sharded.pull(sharded.path / CLAIM, *map(sharded.marker, sharded.manifest.shards))
    if not (sharded.path / "done").exists():
        return [*range(len(sharded.manifest.shards))]
    claim = read_claim(sharded)
    return [number for number, shard in enumerate(sharded.manifest.shards) if not is_committed(sharded, shard, claim)]


def _part(sharded: Sharded, shard: ShardFile, claim: Claim, max_calls: int | None) -> Part:
    whole, ledger = sharded.whole(shard), sharded.path / REQUESTS
    reserved = partial(SharedReserved, ledger=ledger, shard=shard.name, most=max_calls)
    return Part(whole.name, whole.sha256, whole.rows, whole.asked, claim.run, sharded.path, reserved)
