"""Commit a shard: one file, written once, says that the shard is done, and what decided it."""

import json
from typing import Any

from eldgr_dspy.errors import RunChangedError
from eldgr_dspy.figures.finished_run import installed_version
from eldgr_dspy.programs.shards.claims import Claim, create_once
from eldgr_dspy.programs.shards.manifest import Sharded, ShardFile, hash_of


def commit(sharded: Sharded, shard: ShardFile, claim: Claim) -> None:
    """State that a shard's run is finished.

    Raises:
        RunChangedError: another process has committed it with another journal.
    """
    marker = sharded.marker(shard)
    marker.parent.mkdir(exist_ok=True)
    stated = {
        "shard": shard.name,
        "sha256": shard.sha256,
        "rows": shard.rows,
        "version": installed_version(),
        "run": claim.sha256,
        "lock": claim.content["lock"],
        "journal": hash_of(sharded.run(shard) / "journal.jsonl"),
    }
    content = (json.dumps(stated, indent=2) + "\n").encode("ascii")
    if create_once(marker, content) != content:
        raise RunChangedError(
            f"{marker}: another process has committed this shard with another journal. Move {sharded.run(shard)} and "
            f"{marker} away, and run the shard again."
        )


def is_committed(sharded: Sharded, shard: ShardFile, claim: Claim) -> bool:
    """Return whether a shard is committed.

    Raises:
        RunChangedError: it is, but it is another shard, or was decided by another version or with something else.
    """
    marker = sharded.marker(shard)
    try:
        stated: Any = json.loads(marker.read_bytes())
        named, content = (stated["shard"], stated["sha256"]), stated["journal"]
        version, run = stated["version"], stated["run"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunChangedError(f"{marker}: not what eldgr evaluate writes ({error}). {again(shard)}") from error
    if named != (shard.name, shard.sha256):
        raise RunChangedError(
            f"{marker}: must commit shard {shard.name} of {sharded.path}; got another. {again(shard)}"
        )
    if version != claim.version:
        raise RunChangedError(f"{marker}: must be decided by eldgr_dspy {claim.version}; got {version}. {again(shard)}")
    if run != claim.sha256 or not isinstance(content, str):
        raise RunChangedError(f"{marker}: decided with something else than run.json states. {again(shard)}")
    return True


def require_as_committed(sharded: Sharded, shard: ShardFile) -> None:
    """Refuse a committed shard whose journal is missing or was changed afterwards."""
    journal = sharded.run(shard) / "journal.jsonl"
    if not journal.is_file():
        raise RunChangedError(f"{journal}: no such file, and its shard is committed. Restore it. {again(shard)}")
    if hash_of(journal) != json.loads(sharded.marker(shard).read_bytes())["journal"]:
        raise RunChangedError(f"{journal}: changed since its shard was committed. Restore it. {again(shard)}")


def again(shard: ShardFile) -> str:
    """Return the sentence that says how to run a committed shard again."""
    return f"To run the shard again, move done/{shard.name}.json and runs/{shard.name} away."
