"""A freeze: a rule frozen in a file, with everything that could change its decisions; any change is refused.

It is plain JSON, and the same rule always makes the same file: rules, settings, roles with their prompts and models,
versions, hashes of the code of this package and of the user's rules and roles.
"""

import inspect
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.decision import RULES
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError, PoolError, RunChangedError
from eldgr_dspy.file_limits import document, parsed_json
from eldgr_dspy.files import replacing
from eldgr_dspy.named_judges import asked_by, for_judges, judge_in, require_judges
from eldgr_dspy.named_objects import unhashed
from eldgr_dspy.programs.lms import sub_modules
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.role_calls import metered_settings, modules_of
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.run.trial_decisions import SOURCELESS, certificate_decisions, digits, rule_decisions
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.questions import Settings, own_names, require_hashes
from eldgr_dspy.rules import is_own, rule_named
from eldgr_dspy.system import refusal
from eldgr_dspy.words import ROLES

SCHEMA = 1
_PARTS = ("rules", "settings", "sources", "roles", "versions")
_NOT_OWN = frozenset({"eldgr_dspy", "dspy", "__main__", *sys.stdlib_module_names})


@dataclass(frozen=True)
class Freeze:
    """A freeze as it was read: its file, the hash of its content, and the content without the hash."""

    path: Path
    sha256: str
    content: Mapping[str, Any]

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that are frozen, in their order."""
        return tuple(self.content["rules"])

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the frozen settings by name, as the selector takes them, with those that a caller gives.

        What is given is not compared here: `require_frozen` does that.

        Raises:
            ArgumentError: A setting is of the user's own and not given.
        """
        stated: Mapping[str, Any] = self.content["settings"]
        if lacking := [name for name in own_names(stated) if name not in given]:
            named = " and ".join(f"{name}={stated[name].get('name')!r:.80}" for name in lacking)
            options = " ".join(f"--{name} MODULE:NAME" for name in lacking)
            raise ArgumentError(
                f"{self.path}: names in a file import nothing, and it was frozen with {named}. Give it: {options}, or "
                f"{', '.join(f'{name}=' for name in lacking)} in Python."
            )
        plain = {name: value for name, value in stated.items() if name not in given}
        return Settings.from_json(plain).arguments() | dict(given)

    def require_given(self, rules: Iterable[str]) -> None:
        """Refuse rules of the user's own that only the freeze names.

        Raises:
            ArgumentError: naming the first.
        """
        for rule in filter(is_own, rules):
            raise ArgumentError(
                f"{self.path}: names in a file import nothing, and it was frozen with the rule {rule!r:.80}. Give it: "
                "--rules with all rules of the freeze, or rule= in Python."
            )


def write_freeze(
    selector: Selector, rules: Sequence[str], path: Path, judges: Mapping[str, dspy.Module] | None = None
) -> Freeze:
    """Write a selector's roles and settings, and judges with names, under the rules of these names, to a freeze.

    If `path` already holds the same, nothing is written.

    Raises:
        ArgumentError: there is no rule, one that is not known, or one that does not decide the same twice; `path` has
            another freeze, or cannot be written.
    """
    if not rules:
        raise ArgumentError(f"rules must have at least one of {', '.join(RULES)}; got {rules!r}.")
    for rule in rules:
        rule_named(rule, "rules")
    judges = judges or {}
    require_judges(judges)
    content = _frozen(selector, for_judges(rules, judges), selector.settings, judges)
    _require_hashed(content, "freeze")
    freeze = Freeze(path, _hash(content), content)
    if path.exists():
        if read_freeze(path).sha256 != freeze.sha256:
            raise ArgumentError(
                f"out={str(path)!r} holds another freeze, which is never overwritten; give another --out."
            )
        return freeze
    try:
        with replacing(path) as out:
            text = json.dumps({**content, "sha256": freeze.sha256}, indent=2, ensure_ascii=False) + "\n"
            out.write(text.encode("utf-8", "backslashreplace"))  # half a surrogate pair becomes the escape of JSON
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    return freeze


def read_freeze(path: Path) -> Freeze:
    """Read a freeze.

    Raises:
        ArgumentError: it cannot be read, is not a freeze, has another schema, or has been changed since it was frozen.
    """
    content = _content(path)
    if "sha256" not in content or "schema" not in content:
        raise ArgumentError(f"{path}: not a freeze; give a file that eldgr freeze has written.")
    if content["schema"] != SCHEMA:
        made_by = content.get("versions")
        by = f": eldgr_dspy {made_by.get('eldgr_dspy')}" if isinstance(made_by, Mapping) else ""
        raise ArgumentError(
            f"{path}: schema must be {SCHEMA}, which this version reads; got {content['schema']!r:.80}. Use the "
            f"version that froze it{by}."
        )
    stated = content.pop("sha256")
    if _hash(content) != stated:
        raise ArgumentError(
            f"{path}: changed since it was frozen (its content has another hash than the {stated!r:.80} that it "
            "states); restore it from a copy."
        )
    _require_whole(path, content)
    return Freeze(path, stated, content)


def require_frozen(
    freeze: Freeze,
    selector: Selector,
    rules: Sequence[str],
    judges: Mapping[str, dspy.Module] | None = None,
    *,
    ships: str | None = None,
) -> None:
    """Refuse a selector, judges and rules that are not what was frozen. The addresses of LMs are not compared.

    Rules are tried under the settings of the freeze, so that another setting counts as one difference and not several.
    With `ships`, the name of a rule, only what that rule needs is compared.

    Raises:
        RunChangedError: saying what differs.
    """
    own = {name: getattr(selector.settings, name) for name in own_names(freeze.content["settings"])}
    now = _frozen(selector, rules, Settings(**freeze.arguments(own)), judges or {})
    frozen = freeze.content if ships is None else _shipping(freeze.content, now, ships)
    if ships is not None and any(map(judge_in, freeze.content["roles"])):
        now["roles"].pop("judge", None)  # it stands for judges with names, and the rule asks none
    if changed := differences(_unplaced(frozen), _unplaced(now)):
        listed = "\n".join(f"  {line}" for line in changed)
        raise RunChangedError(
            f"{freeze.path}: this is not what was frozen:\n{listed}\n"
            "Undo the change, or freeze the current state in another file."
        )


def _shipping(frozen: Mapping[str, Any], now: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Return of a freeze what one rule needs: neither other rules, nor other judges, nor their modules."""
    labels = {"certificate", *(asked_by(rule, role) for role in ROLES)}
    roles = {label: details for label, details in frozen["roles"].items() if label in labels}
    modules = {*now["sources"], *(name.rpartition(".")[0] for role in roles.values() for name in role.get("code", ()))}
    return {
        **frozen,
        "rules": {rule: frozen["rules"][rule]},
        "sources": {name: digits for name, digits in frozen["sources"].items() if name in modules},
        "roles": roles,
    }


def _unplaced(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a freeze without the addresses of LMs: those come from whoever uses it."""
    return {**content, "roles": {label: without_address(details) for label, details in content["roles"].items()}}


def _frozen(
    selector: Selector, rules: Sequence[str], tried_under: Settings, judges: Mapping[str, dspy.Module]
) -> dict[str, Any]:
    """Return the content of a freeze, without its hash, as it reads back from JSON."""
    with metered_settings(), selector.reading():
        roles = {label: describe(module) for label, module in modules_of(selector, judges).items()}
        roles |= {} if selector.certifier is None else {"certificate": describe(selector.certifier)}
    for details in roles.values():
        del details["versions"]  # stated once, for all roles
    content = {
        "schema": SCHEMA,
        "rules": {name: rule_decisions(name, tried_under) if is_own(name) else {} for name in rules},
        "settings": selector.settings.to_json(),
        **certificate_decisions(selector.settings.own),
        "sources": _sources(selector, rules, judges),
        "roles": roles,
        "versions": {**{name: version(name) for name in ("eldgr_dspy", "dspy")}, "python": _python()},
    }
    read_back: dict[str, Any] = json.loads(json.dumps(content))
    return read_back


def _sources(selector: Selector, rules: Sequence[str], judges: Mapping[str, dspy.Module]) -> dict[str, str]:
    """Return a hash of this package, and one of each module of the user's that has a rule or a role."""
    sources = {"eldgr_dspy": _code()}
    for rule in rules:
        module, own, _ = rule.partition(":")
        try:
            sources |= {module: source_of_module(module)} if own else {}
        except (OSError, KeyError) as error:
            raise ArgumentError(
                f"rules={rule!r} cannot be frozen, because its module has no file; write one."
            ) from error
    certificate = selector.settings.own
    try:
        sources |= {} if certificate is None else {certificate.module: source_of_module(certificate.module)}
    except (OSError, TypeError, KeyError) as error:
        raise ArgumentError(SOURCELESS.format(certificate)) from error
    for module in _own_modules(selector, judges):
        with suppress(OSError, TypeError, KeyError):  # made by a call, without a file
            sources[module] = source_of_module(module)
    return sources


def _own_modules(selector: Selector, judges: Mapping[str, dspy.Module]) -> set[str]:
    """Return the modules with the classes of a user's roles and answer type; a script has no name to find it by."""
    asked = [*modules_of(selector, judges).values(), *([selector.certifier] if selector.certifier else [])]
    parts = [part for module in asked for _, part in sub_modules(module, dspy.Module)]
    names = {kind.__module__ for part in [*parts, selector.type] for kind in type(part).__mro__}
    return {name for name in names if name.partition(".")[0] not in _NOT_OWN}


def source_of_module(module: str) -> str:
    """Return a hash of the source of a module that is loaded; raises an OSError or a TypeError if it has no file."""
    return digits(inspect.getsource(sys.modules[module]).encode())


@cache
def _code() -> str:
    """A hash of every Python file of this package: between two releases code changes and the version does not."""
    folders = os.walk(Path(inspect.getfile(ArgumentError)).parent, followlinks=True)
    files = sorted(Path(folder, name) for folder, _, names in folders for name in names if name.endswith(".py"))
    return digits(b"".join(file.read_bytes().replace(b"\r\n", b"\n") for file in files))


def _python() -> str:
    """Return the version of Python, to two places: the third only fixes bugs and changes no table of characters."""
    return ".".join(platform.python_version_tuple()[:2])


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _content(path: Path) -> dict[str, Any]:
    if path.is_fifo() or path.is_char_device():
        raise ArgumentError(f"{path}: is a pipe or a device; give a file.")
    try:
        content = parsed_json(document(path), str(path))
    except PoolError as error:
        raise ArgumentError(error.args[0]) from error
    except FileNotFoundError as error:
        raise ArgumentError(f"{path}: no such file; check the name, or make it with eldgr freeze.") from error
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    except ValueError as error:
        raise ArgumentError(f"{path}: not a freeze ({error}); restore it from a copy.") from error
    if not isinstance(content, dict):
        raise ArgumentError(f"{path}: not a freeze; give a file that eldgr freeze has written.")
    return content


def _require_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a freeze that has the right hash but lacks a part: it was written by hand."""
    lacking = [name for name in _PARTS if not isinstance(content.get(name), dict)]
    lacking = lacking or [name for name, details in content["roles"].items() if not isinstance(details, dict)]
    if lacking:
        raise ArgumentError(f"{path}: not a freeze (it lacks {', '.join(lacking)}); restore it from a copy.")
    settings: Mapping[str, Any] = content["settings"]
    try:
        Settings.from_json({name: value for name, value in settings.items() if name not in own_names(settings)})
    except (TypeError, ArgumentError) as error:
        raise ArgumentError(f"{path}: not a freeze (settings: {error}); restore it from a copy.") from error
    _require_hashed(content, str(path))


def _require_hashed(content: Mapping[str, Any], where: str) -> None:
    """Refuse code without a hash of its source: a change of it would not be noticed."""
    try:
        require_hashes(content["settings"])
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from error
    roles = [(str(role.get("module")), role.get("code", {})) for role in content["roles"].values()]
    hashless = [module for module, code in roles if module not in code and not module.startswith("dspy.")]
    for name in (*hashless, *unhashed(content["roles"])):
        raise ArgumentError(
            f"{where}: {name!r:.80} is stated without a hash of its source, so a change of it would not be noticed. "
            "Write it in a module, and freeze it anew."
        )
