"""From a freeze to the selector that was frozen in it, for a program in service.

A freeze is data. It names no class that is imported, no function that is called and no address that is connected to:
roles are those of this package, or what the caller gives; LMs are made by the models' names and their plain settings,
at an address that the caller gives or at the provider's own. What was made is then compared with the freeze as a run
under a freeze is. So a role that cannot be made is refused with the difference, and never replaced by another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import dspy

from eldgr_dspy.decision import Rule
from eldgr_dspy.errors import ArgumentError, EldgrError, RunChangedError
from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.engines.ollama import OWN as OF_OLLAMA
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.judges.named import judge_in_style, make_judge, own_judge
from eldgr_dspy.programs.lms.models import is_of_a_file, is_of_ollama, make_lm
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.fingerprints import UNWRITTEN, describe, describe_lm, predictors
from eldgr_dspy.programs.run.freezes import Freeze, read_freeze, require_match, require_program
from eldgr_dspy.programs.run.frozen_runs import sampling
from eldgr_dspy.programs.run.role_calls import metered_settings
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.redaction import MASK
from eldgr_dspy.rule.named_judges import asked_by, judge_in, name_in
from eldgr_dspy.rule.rules import is_own, rule_given
from eldgr_dspy.words import ROLES, JudgeStyle, Role

_PLAIN = frozenset(
    "temperature max_tokens max_completion_tokens top_p top_k n seed stop presence_penalty frequency_penalty "
    "reasoning_effort rollout_id timeout".split()
)
"""The settings of an LM that a freeze may give: what is sampled, and neither where nor with which key."""
_MOST_ORDERS = 100


def frozen_selector(
    path: str | Path,
    *,
    rule: str | Rule | None = None,
    lm: dspy.BaseLM | None = None,
    api_base: str | None = None,
    program: dspy.Module | None = None,
    recordings: Sequence[str | Path] = (),
    **extra: Any,
) -> Selector:
    """Return the selector that `eldgr freeze` wrote to a freeze: its rule, settings, roles and models.

    Args:
        path: The freeze.
        rule: Which of its rules decides. By default the only one, else `eldgr`. Of several named judges, the one that
            it names becomes the selector's judge: `eldgr[NAME]`. A rule of your own must be given: the function, or its
            name.
        lm: The LM of the roles that have one. By default it is that of DSPy's settings if the freeze names that one;
            else it is made by the name in the freeze, with credentials from the environment.
        api_base: The address of the server of LMs that are made. A freeze never states where to send a key.
        program: The program that samples, if the freeze states one: its prompts and LMs are compared.
        recordings: Where the run that was frozen is now, then files of its pools that were moved. It is decided again
            if the code that decides has changed.
        extra: `certificate`, `refusals` or `answer` of your own, where the freeze has one; a role of your own, such as
            `judge`; and arguments of the selector that no freeze holds: `answer_field`, `on_failure`, `timeout`
            and others. A role is a module, which is used as it is; or a class, which is made and gets its prompts from
            the freeze. Certificate, refusals, answer type and roles may be names, `MODULE:NAME`.

    Raises:
        ArgumentError: The freeze cannot be read or was edited, or holds an argument that is given, or a rule does not
            exist; or it was frozen with something of your own, or an address, that is not given.
        RunChangedError: Prompts, models or code of yours differ from the freeze, and the message lists each difference;
            or the code that decides has changed, and the frozen run is decided otherwise or is not stated.
    """
    freeze = read_freeze(Path(path))
    _require_program(freeze, program)
    settings = freeze.content["settings"]
    if twice := sorted(name for name in settings.keys() & extra.keys() if not isinstance(settings[name], Mapping)):
        raise ArgumentError(f"{path}: {', '.join(twice)} must be as frozen; leave it out.")
    choice, roles = _rule_in(freeze, rule_given(rule)[0] if callable(rule) else rule), freeze.content["roles"]
    if rule is None:
        freeze.refuse_own_rules([choice])
    lms = _LMs(freeze.path, lm, api_base)
    lenient = any(str(role.get("adapter")).endswith(f".{type(LENIENT).__name__}") for role in roles.values())
    arguments = freeze.arguments({name: value for name, value in extra.items() if name not in ROLES})
    arguments.setdefault("replies", "lenient" if lenient else "strict")
    select = Selector(rule=rule if rule is not None and is_own(choice) else name_in(choice), **arguments)
    for role in ROLES:
        if (details := roles.get(asked_by(choice, role))) is not None:
            try:
                setattr(select, role, _make_role(role, details, extra.get(role), lms) or getattr(select, role))
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                if isinstance(error, EldgrError):
                    raise
                raise ArgumentError(f"{path}: not a freeze (roles: {error!r:.200}); restore it from a copy.") from error
    name, places = judge_in(choice), [*map(Path, recordings)]
    judges = {} if name is None else {name: select.judge}
    try:
        require_match(freeze, select, [choice], judges, ships=choice, recordings=places)
    except RunChangedError as error:
        if "\n  roles." not in str(error):
            raise
        raise RunChangedError(
            f"{error}\nA role that cannot be made from a freeze can be given: frozen_selector(..., judge=...). So can "
            "an LM with credentials, which no freeze holds: frozen_selector(..., lm=...)."
        ) from None
    return select


def _require_program(freeze: Freeze, program: dspy.Module | None) -> None:
    """Refuse a program that is not the frozen one, and one too many or too few."""
    if (program is None) == ("program" in freeze.content):
        which = "with a program that samples; give it" if program is None else "without a program; leave it out"
        raise ArgumentError(f"{freeze.path}: was frozen {which}: frozen_selector(..., program=...).")
    if program is not None:
        with metered_settings():
            require_program(freeze, sampling(describe(program)), "the program")


def _rule_in(freeze: Freeze, rule: str | None) -> str:
    """Return the rule that decides: the given one, else the only one, else eldgr. The judge's name may be left out."""
    choice = rule or (freeze.rules[0] if len(freeze.rules) == 1 else "eldgr")
    alike = [name for name in freeze.rules if choice in (name, name_in(name))]
    if len(alike) != 1:
        raise ArgumentError(
            f"{freeze.path}: rule must be one of {', '.join(freeze.rules)}; got {choice!r:.80}. Give one: "
            "frozen_selector(..., rule=...)."
        )
    return alike[0]


def _make_role(role: Role, details: Mapping[str, Any], choice: Any, lms: "_LMs") -> dspy.Module | None:
    """Return a role as it is given, or as a freeze describes it, or None if it is neither given nor one of ours."""
    if isinstance(choice, dspy.Module):
        return choice
    if choice is not None:
        judge = make_judge(choice) if role == "judge" and isinstance(choice, str) else None
        module = judge or own_judge(choice)  # a judge may be a word, or a function of a ballot
    else:
        module = next((one for one in _ours(role, details) if _is_like(one, details)), None)
    for name, predictor in predictors(module) if module is not None else ():
        prompt = details["prompts"].get(name)
        if prompt is not None:
            if not isinstance(text := prompt["signature"].get("instructions"), str):
                raise ArgumentError(f"The instructions of the {role} must be text; got {text!r:.80}. Freeze it anew.")
            predictor.signature = predictor.signature.load_state(prompt["signature"])
            predictor.demos = [_demo(role, demo) for demo in prompt["demos"]]
            predictor.config = lms.plain(prompt["config"])
        predictor.lm = lms.of(details["lm"], name)
    return module


def _ours(role: Role, details: Mapping[str, Any]) -> Iterator[dspy.Module]:
    """Yield the modules of this package that may be the described one. A freeze is compared with them."""
    yield from (getattr(select, role) for select in (Selector(), heuristic_selector()))
    parts = details["attributes"].values() if role == "judge" else ()
    for formula in [str(part.get("formula")) for part in parts]:
        if formula.partition(":")[0] in WEIGHINGS:
            with suppress(ArgumentError):
                yield WeightedVote(formula)
        elif formula == DimensionalSelector.formula:
            yield DimensionalSelector()
    counts = {part.get("orders", 1) for part in parts if isinstance(part.get("orders", 1), int)}
    for style in get_args(JudgeStyle) if role == "judge" else ():
        for orders in sorted({1, *counts} & {*range(1, _MOST_ORDERS + 1)}):
            with suppress(ArgumentError):
                yield judge_in_style(Judge(), style, orders)


def _is_like(module: dspy.Module, details: Mapping[str, Any]) -> bool:
    current = describe(module)
    alike = all(current[name] == details.get(name) for name in ("module", "attributes"))
    return alike and current["prompts"].keys() == details.get("prompts", {}).keys()


def _demo(role: Role, demo: Mapping[str, Any]) -> dspy.Example:
    for name, value in demo.items():
        if isinstance(value, Mapping) and UNWRITTEN in value:
            raise ArgumentError(
                f"A demonstration of the {role} has {name}={value[UNWRITTEN]!r:.80}, which a freeze cannot hold. Give "
                f"the role: frozen_selector(..., {role}=...)."
            )
    return dspy.Example(**demo)


class _LMs:
    """The LMs of a role: the given one, or that of the settings if it is as described, else made by its name."""

    def __init__(self, path: Path, lm: dspy.BaseLM | None, api_base: str | None) -> None:
        self._path, self._lm, self._api_base = path, lm, api_base

    def of(self, lms: Mapping[str, Any] | None, name: str) -> Any:
        """Return the LM of a predictor; `lms` describes one for all, or one for each by name."""
        details = lms.get(name) if lms and "settings" not in lms else lms
        if details is None:
            return None
        for lm in (self._lm, dspy.settings.lm):
            # At any address it is the same.
            if lm is not None and without_address({"lm": details}) == without_address({"lm": describe_lm(lm)}):
                return lm
        return self._lm_of(details) if self._lm is None else self._lm

    def plain(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of a call; refuse any that does not say how it is sampled, such as an address."""
        if other := sorted(name for name in options if name not in _PLAIN):
            raise ArgumentError(
                f"{self._path}: an LM was frozen with {', '.join(other)}, and a freeze says only how it samples. Give "
                "the LM: frozen_selector(..., lm=...); or the role, if its calls have options of their own."
            )
        return dict(options)

    def _lm_of(self, details: Mapping[str, Any]) -> dspy.LM:
        """Return an LM by its name, at the address that the caller gives or at the provider's own."""
        model, settings = str(details["model"]), {**details["settings"]}
        addresses = [settings.pop(name) for name in ("api_base", "base_url") if settings.get(name) is not None]
        own = settings.pop("metadata", {}) if is_of_ollama(model) else {}
        own = {name: value for name, value in own.items() if name in OF_OLLAMA and name != "host"}
        if is_of_a_file(model):
            raise ArgumentError(
                f"{self._path}: names in a file load nothing, and an LM is stated as {model!r:.80}. Give the LM: "
                "frozen_selector(..., lm=...)."
            )
        if "://" in model or (addresses and self._api_base is None):
            raise ArgumentError(
                f"{self._path}: a freeze does not say where to send a key. {model!r:.80} was frozen at an address of "
                "its own; give it: frozen_selector(..., api_base=...), or lm=."
            )
        options = {name: value for name, value in settings.items() if value != MASK}
        structured = details.get("structured", "auto")
        return make_lm(model, self._api_base, structured=structured, **self.plain(options), **own)
