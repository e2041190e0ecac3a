"""A freeze: a rule in a file, with everything that decides. A change of it is refused.

It is plain JSON, and the same rule always makes the same file: rules, settings, roles with their prompts and models,
the identity of the code that decides. Where only the code of this package has changed, the run that was frozen is
decided again by its recorded replies. Versions are stated, and not compared.
"""

import json
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.file_limits import document, parsed_json
from eldgr_dspy.base.files import replacing
from eldgr_dspy.base.named_objects import names_without_hash
from eldgr_dspy.base.system import refusal
from eldgr_dspy.errors import ArgumentError, EldgrError, PoolError, RunChangedError
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.frozen_runs import require_same_decisions, stated_of_run
from eldgr_dspy.programs.run.identity import PACKAGE, certificate_decisions, classes_outside, identities, rule_decisions
from eldgr_dspy.programs.run.plan import rules_for
from eldgr_dspy.programs.run.role_calls import metered_settings, modules_of
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.named_judges import asked_by, judge_in
from eldgr_dspy.rule.questions import Settings, option_of, own_names, require_hashes
from eldgr_dspy.rule.rules import is_own
from eldgr_dspy.showing import display_text
from eldgr_dspy.words import ROLES

SCHEMA = 2
_PARTS = ("rules", "settings", "code", "roles", "versions")
_EXEMPT = ("schema", "code", "versions", "program", "recordings")


class FreezeWarning(UserWarning):
    """The code that decides is not the code that was frozen, and decides the frozen run as before."""


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

    def arguments(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the frozen settings as the selector takes them, with a caller's `overrides`, which may differ."""
        settings: Mapping[str, Any] = self.content["settings"]
        if lacking := [name for name in own_names(settings) if name not in overrides]:
            names = " and ".join(f"{name}={settings[name].get('name')!r:.80}" for name in lacking)
            options = " ".join(map(option_of, lacking))
            raise ArgumentError(
                f"{self.path}: names in a file import nothing, and it was frozen with {names}. Give it: {options}, or "
                f"{', '.join(f'{name}=' for name in lacking)} in Python."
            )
        plain = {name: value for name, value in settings.items() if name not in overrides}
        return {**Settings.from_json(plain).arguments(), "answer": self.content.get("answer"), **overrides}

    def refuse_own_rules(self, rules: Iterable[str]) -> None:
        """Refuse rules of the user's own that only the freeze names."""
        for rule in filter(is_own, rules):
            raise ArgumentError(
                f"{self.path}: names in a file import nothing, and it was frozen with the rule {rule!r:.80}. Give it: "
                "--rules with all rules of the freeze, or rule= in Python."
            )


def write_freeze(
    selector: Selector,
    rules: Sequence[str],
    path: Path,
    judges: Mapping[str, dspy.Module] | None = None,
    run: Path | None = None,
) -> Freeze:
    """Write a selector's roles and settings, and judges with names, under the rules of these names, to a freeze.

    If `path` already holds the same, nothing is written. With `run`, the freeze states what that run decided, and the
    program that its pools were collected from.

    Raises:
        ArgumentError: there is no rule, one that is not known, or one that does not decide the same twice; `path` has
            another freeze, or cannot be written; or the run is not one of this choice.
    """
    judges = judges or {}
    rules = rules_for(rules, judges)
    content = _current(selector, rules, selector.settings, judges)
    if run is not None:
        content |= stated_of_run(run, path.parent, selector.settings, rules, content["roles"])
    _require_source_hashes(content, "freeze")
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
        ArgumentError: It cannot be read, is not a freeze, has another schema, or has been changed since it was frozen.
    """
    content = _content(path)
    if not isinstance(content, dict) or "sha256" not in content or "schema" not in content:
        raise ArgumentError(f"{path}: not a freeze; give a file that eldgr freeze has written.")
    if content["schema"] not in (1, SCHEMA):
        made_by = content.get("versions")
        by = f": eldgr_dspy {made_by.get('eldgr_dspy')}" if isinstance(made_by, Mapping) else ""
        raise ArgumentError(
            f"{path}: schema must be at most {SCHEMA}, which this version reads; got {content['schema']!r:.80}. Use "
            f"the version that froze it{by}."
        )
    digest = content.pop("sha256")
    if _hash(content) != digest:
        raise ArgumentError(
            f"{path}: changed since it was frozen (its content has another hash than the {digest!r:.80} that it "
            "states); restore it from a copy."
        )
    if content["schema"] == 1:
        content["code"] = content.pop("sources", None)  # of texts, so that none is the identity of a tree
    _require_whole(path, content)
    for details in content["roles"].values():
        details["code"] = classes_outside(details.get("code", {}), content["code"])
    return Freeze(path, digest, content)


def require_match(
    freeze: Freeze,
    selector: Selector,
    rules: Sequence[str],
    judges: Mapping[str, dspy.Module],
    *,
    ships: str | None = None,
    recordings: Sequence[Path] = (),
) -> None:
    """Refuse a selector, judges and rules that are not what was frozen. Addresses and versions are not compared.

    Rules are tried under the settings of the freeze, so that another setting counts as one difference and not several.
    With `ships`, the name of a rule, only what that rule needs is compared. If only the code of this package differs,
    the frozen run is decided again, and equal decisions are a `FreezeWarning`. `recordings` says where the run is now,
    then where its pools are. The `RunChangedError` says what differs.
    """
    own = {name: getattr(selector.settings, name) for name in own_names(freeze.content["settings"])}
    now = _current(selector, rules, Settings(**freeze.arguments(own)), judges)
    then = freeze.content if ships is None else _shipping(freeze.content, now, ships)
    if ships is not None and any(map(judge_in, freeze.content["roles"])):
        now["roles"].pop("judge", None)  # it stands for judges with names, and the rule asks none
    if "answer" not in then:
        now.pop("answer", None)  # whoever uses it chooses the answer type
    same_code = then["code"].get(PACKAGE) == now["code"][PACKAGE]
    note = _note(then["versions"], now["versions"], same_code)
    if changes := differences(_compared_part(then), _compared_part(now)):
        listing = "\n".join(f"  {line}" for line in changes)
        remedy = _remedy(changes, then["roles"], now["roles"])
        raise RunChangedError(f"{freeze.path}: this is not what was frozen:\n{listing}\n{note}{remedy}")
    if same_code:
        return
    recording = freeze.content.get("recordings")
    if recording is None:
        raise RunChangedError(
            f"{freeze.path}: {note}It states no run that could be decided again. Install what it was frozen with, or "
            "freeze the current state in another file, with --run."
        )
    try:
        finding = require_same_decisions(recording, freeze.path.parent, selector.settings, rules, recordings)
    except EldgrError as error:
        raise RunChangedError(f"{freeze.path}: {note}The frozen run is decided again: {error}") from error
    remedy = "What a role is asked is in no recording. To end this note, freeze the current state in another file."
    warnings.warn(display_text(f"{freeze.path}: {note}{finding}. {remedy}"), FreezeWarning, stacklevel=3)


def _remedy(changes: Iterable[str], then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what to do about changes of roles: to give the models again, if those alone differ that lack theirs."""
    models = {
        role: f"{lm['model']}"
        for role in ROLES
        if isinstance(lm := then.get(role, {}).get("lm"), Mapping) and "model" in lm and not now.get(role, {}).get("lm")
    }
    places = tuple(f"roles.{role}." for role in models)
    if not all(line.startswith(places) for line in changes):
        return "Undo the change, or freeze the current state in another file."
    options = [f"--{role} {model}" for role, model in models.items()]
    if len(models) == len(ROLES) and len({*models.values()}) == 1:
        options = [f"--lm {models['judge']}"]
    return f"The freeze states models. Give them again: {' '.join(options)}."


def _note(then: Mapping[str, Any], now: Mapping[str, Any], same_code: bool) -> str:
    """Return a sentence and a space on the code and the versions that are other ones. Nothing if none is."""
    other = [name for name in now if then.get(name) != now[name]]
    before, after = (", ".join(f"{name} {of.get(name)}" for name in other) for of in (then, now))
    versions = f" with {before}; this is {after}" if other else ""
    if not same_code:
        return f"The code that decides has changed since it was frozen{versions}. "
    return f"It was frozen{versions}. " if other else ""


def require_program(freeze: Freeze, program: Mapping[str, Any] | None, of: str) -> None:
    """Refuse a program, as `sampling` states it, that is not the one whose samples were frozen, if there was one.

    None, for a pool that states no program, is a `FreezeWarning`. `of` says what it samples.
    """
    then = freeze.content.get("program")
    if then is None:
        return
    if program is None:
        message = f"{freeze.path}: nothing next to {of} states the program that sampled it, so it is not compared."
        return warnings.warn(display_text(message), FreezeWarning, stacklevel=4)
    if changes := differences(without_address(then), without_address(json.loads(json.dumps(program)))):
        listing = "\n".join(f"  program.{line}" for line in changes)
        raise RunChangedError(
            f"{freeze.path}: {of} is not sampled as what was frozen:\n{listing}\n"
            "Undo the change, or freeze a run on samples of this program."
        )


def _shipping(then: Mapping[str, Any], now: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Return of a freeze what one rule needs: neither other rules, nor other judges, nor modules that it lacks."""
    labels = {"certificate", *(asked_by(rule, role) for role in ROLES)}
    roles = {label: details for label, details in then["roles"].items() if label in labels}
    modules = {*now["code"], *(str(details["module"]).rpartition(".")[0] for details in roles.values())}
    code = {name: digits for name, digits in then["code"].items() if name in modules}
    return {**then, "rules": {rule: then["rules"][rule]}, "code": code, "roles": roles}


def _compared_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared of a freeze: no version, no address of an LM, and of code only the user's."""
    fields = {name: value for name, value in content.items() if name not in _EXEMPT}
    roles = {label: without_address(details) for label, details in content["roles"].items()}
    return {**fields, "code": {name: of for name, of in content["code"].items() if name != PACKAGE}, "roles": roles}


def _current(
    selector: Selector, rules: Sequence[str], tried_under: Settings, judges: Mapping[str, dspy.Module]
) -> dict[str, Any]:
    """Return the content of a freeze, without its hash, as it reads back from JSON."""
    with metered_settings(), selector.reading():
        roles = {label: describe(module) for label, module in modules_of(selector, judges).items()}
        roles |= {} if selector.certifier is None else {"certificate": describe(selector.certifier)}
    code = identities(selector, rules, judges)
    for details in roles.values():
        del details["versions"]  # stated once, for all roles
        details["code"] = classes_outside(details["code"], code)
    kind = selector.settings.type
    versions = {name: version(name) for name in (PACKAGE, "dspy", "pydantic")}
    content = {
        "schema": SCHEMA,
        "rules": {name: rule_decisions(name, tried_under) if is_own(name) else {} for name in rules},
        "settings": selector.settings.to_json(),
        **({} if kind is None or kind.is_own else {"answer": kind.name}),
        **certificate_decisions(selector.settings.own),
        "code": code,
        "roles": roles,
        "versions": versions | {"python": platform.python_version()},
    }
    read_back: dict[str, Any] = json.loads(json.dumps(content))
    return read_back


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _content(path: Path) -> Any:
    if path.is_fifo() or path.is_char_device():
        raise ArgumentError(f"{path}: is a pipe or a device; give a file.")
    try:
        return parsed_json(document(path), str(path))
    except PoolError as error:
        raise ArgumentError(error.args[0]) from error
    except FileNotFoundError as error:
        raise ArgumentError(f"{path}: no such file; check the name, or make it with eldgr freeze.") from error
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    except ValueError as error:
        raise ArgumentError(f"{path}: not a freeze ({error}); restore it from a copy.") from error


def _require_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a freeze that has the right hash but lacks a part: it was written by hand."""
    lacking = [name for name in _PARTS if not isinstance(content.get(name), dict)]
    roles = {} if lacking else content["roles"]
    lacking += [name for name, of in roles.items() if type(of) is not dict or type(of.get("code", {})) is not dict]
    of_run = content.get("recordings", {"run": "", "decisions": {}})
    if type(of_run) is not dict or [type(of_run.get(name)) for name in ("run", "decisions")] != [str, dict]:
        lacking.append("the run and the decisions in its recordings")
    if lacking:
        raise ArgumentError(f"{path}: not a freeze (it lacks {', '.join(lacking)}); restore it from a copy.")
    settings: Mapping[str, Any] = content["settings"]
    try:
        Settings.from_json({name: value for name, value in settings.items() if name not in own_names(settings)})
    except (TypeError, ArgumentError) as error:
        raise ArgumentError(f"{path}: not a freeze (settings: {error}); restore it from a copy.") from error
    _require_source_hashes(content, str(path))


def _require_source_hashes(content: Mapping[str, Any], where: str) -> None:
    """Refuse code without a hash of its source: a change of it would not be noticed."""
    try:
        require_hashes(content["settings"])
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from error
    codes = {str(role.get("module")): role.get("code", {}) for role in content["roles"].values()}
    lacking = {name: "" for name, classes in codes.items() if name not in classes and not name.startswith("dspy.")}
    hashless = classes_outside(lacking, content["code"])
    for name in (*hashless, *names_without_hash(content["roles"])):
        raise ArgumentError(
            f"{where}: {name!r:.80} is stated without a hash of its source, so a change of it would not be noticed. "
            "Write it in a module, and freeze it anew."
        )
