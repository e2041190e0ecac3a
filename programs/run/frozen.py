"""From a lock to the selector that was frozen in it, for a program in service.

Roles are made from the lock alone: their classes by name, prompts and demonstrations from their states, LMs by their
models' names. What was made is then compared with the lock as a run under a lock is. So a role that cannot be made from
a lock is refused with the difference, and never replaced by another one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import dspy

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.named_judges import asked_by, judge_in, unlabelled
from eldgr_dspy.named_objects import object_named
from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.judges.named import judge_named
from eldgr_dspy.programs.judges.own import EXAMPLE
from eldgr_dspy.programs.judges.styles import JudgeStyle, judge_in_style
from eldgr_dspy.programs.models import is_of_ollama, lm_named
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.fingerprints import UNWRITTEN, describe, describe_lm, predictors, without_servers
from eldgr_dspy.programs.run.locks import Lock, read_lock, require_frozen
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.redaction import MASK
from eldgr_dspy.words import ROLES, Role

_STYLES: tuple[JudgeStyle, ...] = get_args(JudgeStyle)


def frozen_selector(
    make: Callable[..., Selector],
    path: str | Path,
    *,
    rule: str | None = None,
    lm: dspy.BaseLM | None = None,
    **given: Any,
) -> Selector:
    """Return the selector of a lock; `Selector.from_frozen` is this function.

    Args:
        make: The class of the selector. path: The lock.
        rule: Which of its rules decides; by default the only one, else `eldgr`. Of several named judges, the one that
            it names becomes the selector's judge: `eldgr[NAME]`.
        lm: The LM of the roles that have one. By default it is that of DSPy's settings if the lock names that one; else
            it is made by the name in the lock, with credentials from the environment.
        given: A role that cannot be made from a lock, such as `judge`; and arguments of the selector that no lock
            holds: `task`, `answer_field`, `on_failure`, `timeout` and others.

    Raises:
        ArgumentError: The lock cannot be read or was edited, or holds an argument that is given, or a rule does not
            exist.
        RunChangedError: Code, versions, prompts or models differ from the lock; the message lists each difference.
    """
    lock = read_lock(Path(path))
    if twice := sorted(lock.settings.keys() & given.keys()):
        raise ArgumentError(f"{path}: {', '.join(twice)} must be as frozen; leave it out.")
    chosen, roles = _chosen(lock, rule), lock.content["roles"]
    lms, others = _LMs(lm), _LMs(lm, required=False)
    lenient = any(str(role.get("adapter")).endswith(f".{type(LENIENT).__name__}") for role in roles.values())
    options = {name: value for name, value in given.items() if name not in ROLES}
    select = make(
        rule=unlabelled(chosen), **lock.settings, **{"replies": "lenient" if lenient else "strict", **options}
    )
    for role in ROLES:
        details = roles.get(asked_by(chosen, role))
        setattr(select, role, given.get(role) or (details and _made(role, details, lms)) or getattr(select, role))
    judges: dict[str, dspy.Module] = {
        name: select.judge if name == judge_in(chosen) else _made("judge", details, others) or Judge()
        for label, details in roles.items()
        if (name := judge_in(label)) is not None
    }
    try:
        require_frozen(lock, select, lock.rules, judges)
    except RunChangedError as error:
        raise RunChangedError(
            f"{error}\nA role that cannot be made from a lock can be given: from_frozen(..., judge=...). So can an LM "
            "with credentials, which no lock holds: from_frozen(..., lm=...)."
        ) from None
    return select


def _chosen(lock: Lock, rule: str | None) -> str:
    """Return the rule that decides: the given one, else the only one, else eldgr; the judge's name may be left out."""
    chosen = rule or (lock.rules[0] if len(lock.rules) == 1 else "eldgr")
    alike = [name for name in lock.rules if chosen in (name, unlabelled(name))]
    if len(alike) != 1:
        raise ArgumentError(
            f"{lock.path}: rule must be one of {', '.join(lock.rules)}; got {chosen!r:.80}. Give one: "
            "from_frozen(..., rule=...)."
        )
    return alike[0]


def _made(role: Role, details: Mapping[str, Any], lms: "_LMs") -> dspy.Module | None:
    """Return a role as a lock describes it, as far as it can be made; None if its class cannot."""
    candidates = [*_candidates(role, details)]
    module = next((one for one in candidates if _is_like(one, details)), next(iter(candidates), None))
    for name, predictor in predictors(module) if module is not None else ():
        prompt = details["prompts"].get(name)
        if prompt is not None:
            predictor.signature = predictor.signature.load_state(prompt["signature"])
            predictor.demos = [dspy.Example(**_written(role, demo)) for demo in prompt["demos"]]
            predictor.config = dict(prompt["config"])
        predictor.lm = lms.of(details["lm"], name)
    return module


def _candidates(role: Role, details: Mapping[str, Any]) -> Iterator[dspy.Module]:
    """Yield modules of the described class: made without arguments, or a judge in a style."""
    home, _, name = str(details.get("module")).rpartition(".")
    with suppress(Exception):  # no such module or class, or it needs arguments: the lock's check says what differs
        yield object_named(f"{home}:{name}", "judges", EXAMPLE)()
    for part in details.get("attributes", {}).values() if role == "judge" else ():
        with suppress(Exception):  # as above
            yield judge_named(part.get("formula") or part["source"]["name"]) or Judge()
    numbers = {part.get("orders", 1) for part in details.get("attributes", {}).values()}
    for style in _STYLES if role == "judge" else ():
        for orders in sorted({1, *(number for number in numbers if type(number) is int)}):
            with suppress(ArgumentError):
                yield judge_in_style(Judge(), style, orders)


def _is_like(module: dspy.Module, details: Mapping[str, Any]) -> bool:
    found = describe(module)
    alike = all(found[name] == details.get(name) for name in ("module", "attributes"))
    return alike and found["prompts"].keys() == details.get("prompts", {}).keys()


def _written(role: Role, demo: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a demonstration, if a lock can hold it."""
    for name, value in demo.items():
        if isinstance(value, Mapping) and UNWRITTEN in value:
            raise ArgumentError(
                f"A demonstration of the {role} has {name}={value[UNWRITTEN]!r:.80}, which a lock cannot hold. Give "
                f"the role: from_frozen(..., {role}=...)."
            )
    return demo


class _LMs:
    """The LMs of a role: one that was given, or that of the settings if it is as described, else made by its name.

    If it is not required, the given one is used only if it is as described: judges that do not ship have other models.
    """

    def __init__(self, given: dspy.BaseLM | None, *, required: bool = True) -> None:
        self._given, self._required = given, required

    def of(self, stated: Mapping[str, Any] | None, name: str) -> Any:
        """Return the LM of a predictor; `stated` describes one for all, or one for each by name."""
        details = stated.get(name) if stated and "settings" not in stated else stated
        if details is None:
            return None
        known = (lm for lm in (self._given, dspy.settings.lm) if lm is not None and _is_same(lm, details))
        return next(known, self._given if self._required else None) or _named(details["model"], details["settings"])


def _is_same(lm: dspy.BaseLM, details: Mapping[str, Any]) -> bool:
    """Return whether an LM is the one that is described; of several servers it may have others."""
    stated, now = without_servers({"lm": details}, {"lm": describe_lm(lm)})
    return stated == now


def _named(model: str, settings: Mapping[str, Any]) -> dspy.LM:
    options = {name: value for name, value in settings.items() if value != MASK}
    if not is_of_ollama(model):
        return lm_named(model, **options)
    own = dict(options.pop("metadata", {}))
    return lm_named(model, own.pop("host", None), **options, **own)
