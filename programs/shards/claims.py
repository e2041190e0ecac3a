"""What decides the shards of a directory: stated once, by the first shard that is run, and the same for all others.

It is in `run.json`: the manifest, the version of the package, rules, settings, roles, lock and recordings. A shard that
would be decided otherwise is refused before it is run.
"""

import errno
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import installed_version
from eldgr_dspy.files import flush_to_disk, sync_folder
from eldgr_dspy.programs.run.locks import read_lock
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.run.recordings import recordings_in
from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.manifest import Sharded, hash_of
from eldgr_dspy.system import created, refusal

CLAIM = "run.json"
_PARTS = ("run", "version", "manifest", "rules", "settings", "roles", "lock", "recordings", "recorded_for")
_LINKLESS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Claim:
    """What decides the shards of a directory.

    Attributes:
        content: The content of `run.json`. sha256: the hash of that file, which each committed shard states.
    """

    content: Mapping[str, Any]
    sha256: str

    @property
    def run(self) -> str:
        """The id of the run, which is that of every shard in the ledger of a lock."""
        return str(self.content["run"])

    @property
    def version(self) -> str:
        """The version of the package that decides."""
        return str(self.content["version"])

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that decide."""
        return tuple(self.content["rules"])


def claimed(sharded: Sharded, selector: Selector, plan: Plan) -> Claim:
    """State what decides the shards of a directory, or check that it is what was stated before.

    Raises:
        RunChangedError: the directory was started with something else; the message says what differs.
        ArgumentError: the file system has no hard links.
    """
    now = _content(sharded, selector, plan)
    if not (sharded.path / CLAIM).exists():
        text = json.dumps({"run": secrets.token_hex(8), **now}, indent=2, ensure_ascii=False) + "\n"
        state_once(sharded, sharded.path / CLAIM, text.encode("utf-8", "backslashreplace"))
    claim = read_claim(sharded)
    require_same_version(sharded, claim, "Install {} here, or shard the pool again.")
    stated = {name: value for name, value in claim.content.items() if name != "run"}
    if changed := differences(stated, now):
        listed = "\n".join(f"  {line}" for line in changed)
        raise RunChangedError(
            f"{sharded.place}: its shards are decided with something else:\n{listed}\n"
            "Undo the change, or shard the pool again into another directory."
        )
    return claim


def require_same_version(sharded: Sharded, claim: Claim, remedy: str) -> None:
    """Refuse another version of the package than the one that decides the shards; the remedy names that one by `{}`.

    Raises:
        RunChangedError: it is another version.
    """
    if claim.version != installed_version():
        raise RunChangedError(
            f"{sharded.place}: its shards are decided by eldgr_dspy {claim.version}; got eldgr_dspy "
            f"{installed_version()}. {remedy.format(claim.version)}"
        )


def read_claim(sharded: Sharded) -> Claim:
    """Read what decides the shards of a directory.

    Raises:
        ArgumentError: no shard was run, or the file cannot be read.
        RunChangedError: it was stated for another manifest.
    """
    path = sharded.path / CLAIM
    try:
        text = path.read_bytes()
        content = json.loads(text)
        claim = Claim({name: content[name] for name in _PARTS}, sha256(text).hexdigest())
    except FileNotFoundError as error:
        raise ArgumentError(f"{sharded.place}: no shard was run. Run eldgr evaluate {sharded.place} first.") from error
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArgumentError(
            f"{sharded.named(path)}: not what eldgr evaluate writes ({error}). Restore it from a copy."
        ) from error
    if claim.content["manifest"] != sharded.sha256:
        raise RunChangedError(
            f"{sharded.place}: manifest.json is not the one whose shards were run (sha256 "
            f"{claim.content['manifest']!r:.18}...). Restore it from a copy."
        )
    return claim


def _content(sharded: Sharded, selector: Selector, plan: Plan) -> dict[str, Any]:
    """Return what decides, without the run's id, as it reads back from JSON."""
    with metered_settings(), selector.reading():
        roles = {label: details for label, (_, details) in calls_of_roles(selector, plan.judges).items()}
    content = {
        "version": installed_version(),
        "manifest": sharded.sha256,
        "rules": list(plan.rules),
        "settings": selector.settings.to_json(),
        "roles": {label: without_address(details) for label, details in roles.items()},
        "lock": None if plan.lock is None else read_lock(Path(plan.lock)).sha256,
        "recordings": {name: hash_of(path) for name, path in recordings_in(plan.replay).items()},
        "recorded_for": plan.recorded_for,
    }
    read_back: dict[str, Any] = json.loads(json.dumps(content))
    return read_back


def state_once(sharded: Sharded, path: Path, content: bytes) -> bytes:
    """Write a file of a directory of shards if it does not exist, as `create_once` does, also in a bucket."""
    if sharded.bucket is None:
        return create_once(path, content)
    sharded.bucket.create(sharded.key(path), content)
    sharded.pull(path)
    return path.read_bytes()


def create_once(path: Path, content: bytes) -> bytes:
    """Write a file if it does not exist, whole or not at all, and return what it holds: of two writers one wins.

    Raises:
        ArgumentError: the file system has no hard links, so that nobody can tell who was first.
        OSError: it cannot be written.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with created(temporary, becomes=path) as out:
            out.write(content)
            flush_to_disk(path, out)
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _LINKLESS:
            raise
        raise ArgumentError(
            f"{path}: its file system must have hard links, by which the first of two writers is known; got "
            f"{error.strerror}. Keep the shards on another file system, or give the address of a bucket."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return path.read_bytes()
