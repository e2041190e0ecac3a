"""Commit a shard: one file, written once, says that the shard is done, and what decided it."""

import json
from typing import Any

from eldgr_dspy.errors import RunChangedError
from eldgr_dspy.figures.finished_run import installed_version
from eldgr_dspy.programs.shards.claims import Claim, state_once
from eldgr_dspy.programs.shards.manifest import Sharded, ShardFile, hash_if_there, hash_of

_JOURNAL = "journal.jsonl"
_UPLOADED = ("summary.json", _JOURNAL)  # to a bucket, and from it; a merge makes the other files again


def commit(sharded: Sharded, shard: ShardFile, claim: Claim) -> None:
    """State that a shard's run is finished. In a bucket, what is merged of the run is uploaded before.

    Raises:
        RunChangedError: another process has committed it with another journal.
        OSError: the bucket cannot be reached.
    """
    marker, journal = sharded.marker(shard), hash_of(sharded.run(shard) / _JOURNAL)
    marker.parent.mkdir(exist_ok=True)
    stated = {
        "shard": shard.name,
        "sha256": shard.sha256,
        "rows": shard.rows,
        "version": installed_version(),
        "run": claim.sha256,
        "lock": claim.content["lock"],
        "journal": journal,
    }
    content = (json.dumps(stated, indent=2) + "\n").encode("ascii")
    if sharded.bucket is not None:
        for name in _UPLOADED:
            sharded.bucket.write(f"{_uploaded(shard, journal)}/{name}", sharded.run(shard) / name)
    if state_once(sharded, marker, content) != content:
        where = sharded.named(marker)
        raise RunChangedError(
            f"{where}: another process has committed this shard with another journal. "
            + (
                f"Move {sharded.run(shard)} and {where} away, and run the shard again."
                if sharded.bucket is None
                else f"That one counts; the replies of this one are in {sharded.run(shard)}."
            )
        )


def is_committed(sharded: Sharded, shard: ShardFile, claim: Claim) -> bool:
    """Return whether a shard is committed.

    Raises:
        RunChangedError: it is, but it is another shard, or was decided by another version or with something else.
    """
    marker = sharded.marker(shard)
    where = sharded.named(marker)
    try:
        stated: Any = json.loads(marker.read_bytes())
        named, content = (stated["shard"], stated["sha256"]), stated["journal"]
        version, run = stated["version"], stated["run"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunChangedError(f"{where}: not what eldgr evaluate writes ({error}). {again(shard)}") from error
    if named != (shard.name, shard.sha256):
        raise RunChangedError(
            f"{where}: must commit shard {shard.name} of {sharded.place}; got another. {again(shard)}"
        )
    if version != claim.version:
        raise RunChangedError(f"{where}: must be decided by eldgr_dspy {claim.version}; got {version}. {again(shard)}")
    if run != claim.sha256 or not isinstance(content, str):
        raise RunChangedError(f"{where}: decided with something else than run.json states. {again(shard)}")
    return True


def require_as_committed(sharded: Sharded, shard: ShardFile) -> None:
    """Refuse a committed shard whose journal is missing or was changed afterwards; download it from a bucket before."""
    run, stated = sharded.run(shard), json.loads(sharded.marker(shard).read_bytes())["journal"]
    where, journal = str(run), run / _JOURNAL
    found = hash_if_there(journal)
    if sharded.bucket is not None:
        where = f"{sharded.place}/{_uploaded(shard, stated)}"
        if found != stated:
            for name in _UPLOADED:
                if not sharded.bucket.fetch(f"{_uploaded(shard, stated)}/{name}", run / name):
                    raise RunChangedError(
                        f"{where}/{name}: no such file, and its shard is committed. Restore it. {again(shard)}"
                    )
            found = hash_if_there(journal)
    if found is None:
        raise RunChangedError(f"{journal}: no such file, and its shard is committed. Restore it. {again(shard)}")
    if found != stated:
        raise RunChangedError(f"{where}/{_JOURNAL}: changed since its shard was committed. Restore it. {again(shard)}")


def _uploaded(shard: ShardFile, journal: str) -> str:
    """Return the folder of a run in a bucket; it names the journal's hash, so that no other run is overwritten."""
    return f"runs/{shard.name}/{journal}"


def again(shard: ShardFile) -> str:
    """Return the sentence that says how to run a committed shard again."""
    return f"To run the shard again, move done/{shard.name}.json and runs/{shard.name} away."
