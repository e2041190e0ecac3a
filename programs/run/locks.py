"""A lock: a rule frozen in a file, with all that could change what it decides, and the refusal of anything else.

It is plain JSON, and the same rule always makes the same file: rules, settings, roles with their prompts and models,
versions, hashes of the code of this package, of rules and roles of the user's. Which pools it has been shown is in the
ledger beside it, see `eldgr_dspy.programs.run.ledger`.
"""

import importlib
import inspect
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.decision import RULES
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError, EldgrError, RunChangedError
from eldgr_dspy.files import replacing
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.role_calls import metered_settings
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.questions import Settings
from eldgr_dspy.rules import rule_named
from eldgr_dspy.system import refusal
from eldgr_dspy.words import ROLES

SCHEMA = 1
_PARTS = ("rules", "settings", "sources", "roles", "versions")
_NOT_OWN = frozenset({"eldgr_dspy", "dspy", "__main__", *sys.stdlib_module_names})


@dataclass(frozen=True)
class Lock:
    """A lock as it was read: its file, the hash of its content, and the content, hash apart."""

    path: Path
    sha256: str
    content: Mapping[str, Any]

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that are frozen, in their order."""
        return tuple(self.content["rules"])

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are frozen, by name."""
        return dict(self.content["settings"])

    @property
    def ledger(self) -> Path:
        """The file that says which pools it has been shown."""
        return ledger_of(self.path)


def ledger_of(lock: Path) -> Path:
    """Return where the ledger of a lock is: `rule.lock.ledger.jsonl` beside `rule.lock.json`, and not beside a link."""
    return (lock.resolve() if lock.is_symlink() else lock).with_suffix(".ledger.jsonl")


def freeze(selector: Selector, rules: Sequence[str], path: Path) -> Lock:
    """Write a selector's roles and settings, under the rules of these names, to a lock.

    Where `path` holds the same already, nothing is done: its ledger stays its own.

    Raises:
        ArgumentError: there is no rule, one that is not known, or one that does not decide the same twice; there is
            another lock in its place, or a ledger without one; or it cannot be written.
    """
    if not rules:
        raise ArgumentError(f"rules={rules!r} holds no rule; give one or more of {', '.join(RULES)}.")
    for rule in rules:
        rule_named(rule, "rules")
    content = _frozen(selector, rules, selector.settings)
    lock = Lock(path, _hash(content), content)
    if path.exists():
        if read_lock(path).sha256 != lock.sha256:
            raise ArgumentError(
                f"out={str(path)!r} holds another lock, which is never overwritten; give another --out."
            )
        return lock
    if lock.ledger.exists():
        raise ArgumentError(f"{lock.ledger} is the ledger of a lock that is gone; restore it, or give another --out.")
    try:
        with replacing(path) as out:
            text = json.dumps({**content, "sha256": lock.sha256}, indent=2, ensure_ascii=False) + "\n"
            out.write(text.encode("utf-8", "backslashreplace"))  # half a surrogate pair becomes the escape of JSON
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    return lock


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        ArgumentError: it cannot be read, is no lock, is of another schema, or has been changed since it was frozen.
    """
    content = _read(path)
    if "sha256" not in content or "schema" not in content:
        raise ArgumentError(f"{path}: not a lock; give a file that eldgr freeze has written.")
    if content["schema"] != SCHEMA:
        made_by = content.get("versions")
        by = f", by eldgr_dspy {made_by.get('eldgr_dspy')}" if isinstance(made_by, Mapping) else ""
        raise ArgumentError(
            f"{path}: schema={content['schema']!r:.80} is not {SCHEMA}, the one that this version reads; use the "
            f"version that has frozen it{by}."
        )
    stated = content.pop("sha256")
    if _hash(content) != stated:
        raise ArgumentError(
            f"{path}: changed since it was frozen (its content has another hash than the {stated!r:.80} that it "
            "states); restore it from a copy."
        )
    _require_whole(path, content)
    return Lock(path, stated, content)


def require_frozen(lock: Lock, selector: Selector, rules: Sequence[str]) -> None:
    """Refuse a selector and rules that are not what was frozen.

    What rules do is tried under the settings of the lock, so that another setting is one difference and not several.

    Raises:
        RunChangedError: saying what differs.
    """
    changed = differences(lock.content, _frozen(selector, rules, Settings(**lock.settings)))
    if changed:
        listed = "\n".join(f"  {line}" for line in changed)
        raise RunChangedError(
            f"{lock.path}: this is not what was frozen:\n{listed}\n"
            "Undo the change, or freeze what there is now as another lock."
        )


def _frozen(selector: Selector, rules: Sequence[str], tried_under: Settings) -> dict[str, Any]:
    """What a lock holds, hash apart, as it reads back from JSON."""
    with metered_settings():
        roles = {role: describe(getattr(selector, role)) for role in ROLES}
    for details in roles.values():
        del details["versions"]  # stated once, for all of them
    content = {
        "schema": SCHEMA,
        "rules": {name: _decisions(name, tried_under) if ":" in name else {} for name in rules},
        "settings": asdict(selector.settings),
        "sources": _sources(selector, rules),
        "roles": roles,
        "versions": {**{name: version(name) for name in ("eldgr_dspy", "dspy")}, "python": _python()},
    }
    read_back: dict[str, Any] = json.loads(json.dumps(content))
    return read_back


def _sources(selector: Selector, rules: Sequence[str]) -> dict[str, str]:
    """A hash of this package, and one of the text of each module of the user's that has a rule or a role."""
    found = {"eldgr_dspy": _code()}
    for rule in rules:
        module, own, _ = rule.partition(":")
        try:
            found |= {module: _text(module)} if own else {}
        except OSError as error:
            raise ArgumentError(
                f"rules={rule!r} cannot be frozen, for there is no file of its module; write one."
            ) from error
    for module in _own_modules(selector):
        with suppress(OSError, TypeError):  # made by a call, without a file
            found[module] = _text(module)
    return found


def _own_modules(selector: Selector) -> set[str]:
    """The modules in which the classes of a user's roles are; a script has no name by which it is found again."""
    parts = [one for role in ROLES for _, one in getattr(selector, role).named_sub_modules(dspy.Module)]
    names = {kind.__module__ for one in parts for kind in type(one).__mro__}
    return {name for name in names if name.partition(".")[0] not in _NOT_OWN}


def _text(module: str) -> str:
    return _digits(inspect.getsource(importlib.import_module(module)).encode())


def _decisions(rule: str, settings: Settings) -> dict[str, str]:
    """A hash of what a rule of the user's decides, for which it may import other modules."""
    subject, trials = Subject(rule_named(rule)), [replace(trial, settings=settings) for trial in situations()]
    decided = [_decided(subject, trial) for trial in trials]
    if decided != [_decided(subject, trial) for trial in reversed(trials)][::-1]:
        raise ArgumentError(
            f"rules={rule!r} must decide the same each time; it decided differently about the same question and "
            "replies. Remove what is random, and what it remembers from one question to the next."
        )
    return {"decisions": _digits(repr(decided).encode())}


def _decided(subject: Subject, trial: Trial) -> object:
    """What a rule asks and ships; where it fails, as it would on such a question, the error's name."""
    try:
        outcome = subject.settle(trial)
    except EldgrError as error:
        return type(error).__name__
    return outcome.asked, outcome.branch, outcome.answer


@cache
def _code() -> str:
    """A hash of every Python file of this package: between two releases code changes and the version does not."""
    folders = os.walk(Path(inspect.getfile(ArgumentError)).parent, followlinks=True)
    files = sorted(Path(folder, name) for folder, _, names in folders for name in names if name.endswith(".py"))
    return _digits(b"".join(file.read_bytes().replace(b"\r\n", b"\n") for file in files))


def _digits(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def _python() -> str:
    """The version of Python, to two places: what comes third mends and changes no table of characters."""
    return ".".join(platform.python_version_tuple()[:2])


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    if path.is_fifo() or path.is_char_device():
        raise ArgumentError(f"{path}: is a pipe or a device; give a file.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArgumentError(f"{path}: no such file; check the name, or make it with eldgr freeze.") from error
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path}: not a lock ({error}); restore it from a copy.") from error
    if not isinstance(found, dict):
        raise ArgumentError(f"{path}: not a lock; give a file that eldgr freeze has written.")
    return found


def _require_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a lock that states the right hash and lacks a part all the same: it was written by hand."""
    lacking = [name for name in _PARTS if not isinstance(content.get(name), dict)]
    if lacking:
        raise ArgumentError(f"{path}: not a lock (it lacks {', '.join(lacking)}); restore it from a copy.")
    try:
        Settings(**content["settings"])
    except TypeError as error:
        raise ArgumentError(f"{path}: not a lock (settings: {error}); restore it from a copy.") from error
