"""A run directory: one process at a time, one journal, and only content that agrees with the run's settings."""

import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.files import remove_leftovers
from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError
from eldgr_dspy.journal import Journal
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.programs.service.file_locks import hold
from eldgr_dspy.rule.named_judges import Label

Statement = tuple[str, str, Mapping[str, Any]]
"""A setting of a run: kind, name, details."""

_ADDRESSES = frozenset({"api_base", "base_url", "host"})
"""Settings of an LM that hold its address: LiteLLM's two names, and that of the engine for Ollama."""


class RunDirectory:
    """A run directory, locked while it is open. The system releases the lock when the process ends."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open or create a run directory; with `fresh` its journal is kept as `journal.jsonl.1`, `.2`, ...

        Its summary is removed then: it would pass for that of the new journal if the new run stopped.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"out={str(path)!r} cannot be a directory ({error.strerror}); give another.") from error
        self.path = path
        self._lock, self._roles = threading.Lock(), set[Label]()
        busy = f"{path}: another process is writing to this run; wait for it, or give another --out."
        with ExitStack() as resources:
            resources.enter_context(hold(path / ".lock", busy))
            remove_leftovers(path)
            if fresh:
                self._set_aside()
            self.journal = resources.enter_context(Journal(path / "journal.jsonl"))
            self._require_stated_roles()
            self._resources = resources.pop_all()

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _set_aside(self) -> None:
        journal = self.path / "journal.jsonl"
        if journal.exists():
            others = (self.path / f"journal.jsonl.{number}" for number in count(1))
            (self.path / "summary.json").unlink(missing_ok=True)
            journal.rename(next(path for path in others if not os.path.lexists(path)))

    def _require_stated_roles(self) -> None:
        """Refuse calls of a role that the journal does not state: lines were edited, or come from another run."""
        heads = (head for head in self.journal.heads if head["kind"] == "role")
        roles = {(head["name"], fingerprint(head["details"])) for head in heads}
        for (role, made_by), where in self.journal.calls.items():
            if (role, made_by) not in roles:
                raise JournalError(
                    f"{self.journal.path}, {where}: this journal states no {role} with fingerprint={made_by!r}; "
                    "restore the journal from a copy, give another --out, or start anew with --fresh."
                )

    def states(self, kind: str, name: str, details: Mapping[str, Any] | None = None) -> bool:
        """Return whether the run states a `kind` of that name, and with these details if given."""
        statements = (head["details"] for head in self.journal.heads if (head["kind"], head["name"]) == (kind, name))
        return any(details is None or not differences(statement, details) for statement in statements)

    def claim_freeze(self, sha256: str | None) -> None:
        """State the run's freeze, None without one, before anything else is stated; a resumed run must keep it."""
        is_under_freeze = self.states("settings", "lock")
        if sha256 is None and is_under_freeze:
            raise RunChangedError(f"{self.path}: this run was started under a freeze; give it with --freeze.")
        if sha256 is not None and self.journal.heads and not is_under_freeze:
            raise RunChangedError(f"{self.path}: this run was started without a freeze; give another --out.")
        if sha256 is not None:
            self.claim(("settings", "lock", {"sha256": sha256}))

    def claim(self, *statements: Statement, paths: Mapping[str, str] | None = None) -> None:
        """State the run's settings, unless they are already stated.

        If the run was started with something else, a `RunChangedError` says what differs, and nothing is stated.
        `paths` says where the pools are, by name. It is kept with the statement, is not compared, and may change.
        """
        require_same(self.path, self.journal.heads, statements)
        for kind, name, details in statements:
            if not self.states(kind, name, details):
                where = {"path": paths[name]} if paths and kind == "pool" else {}
                self.journal.append_head({"kind": kind, "name": name, "details": details, **where})

    def claim_role(self, role: Label, details: Mapping[str, Any]) -> None:
        """State a role before it is asked. One that was asked before must be the same; at another address it is."""
        if role not in self._roles:
            with self._lock:
                self.claim(("role", role, details))
                self._roles.add(role)


def require_same(path: Path, heads: Iterable[Mapping[str, Any]], statements: Iterable[Statement]) -> None:
    """Refuse statements that differ from those that a run in `path` was started with. A role may change its address."""
    stated_details = {(head["kind"], head["name"]): head["details"] for head in heads}
    for kind, name, details in statements:
        before = stated_details.get((kind, name), details)
        if changes := differences(without_address(before), without_address(details)):
            listing = "\n".join(f"  {line}" for line in changes)
            other = f"another {kind} {name!r}"
            if kind == "settings":
                other = "another freeze" if name == "lock" else f"other settings of the {name}"
            raise RunChangedError(
                f"{path}: this run was started with {other}:\n{listing}\n"
                "Undo the change, give another --out, or start anew with --fresh (the old journal is kept)."
            )


def without_address(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a role without the addresses of its LMs. Any other details as they are."""
    return {**details, "lm": _without_addresses(details["lm"])} if "lm" in details else dict(details)


def _without_addresses(value: Any) -> Any:
    """Return LMs, or settings, without the keys that name an address, unless such a key names an LM."""
    if not isinstance(value, Mapping):
        return value
    items = {name: item for name, item in value.items() if name not in _ADDRESSES or isinstance(item, Mapping)}
    return {name: _without_addresses(item) for name, item in items.items()}
