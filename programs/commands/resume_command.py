"""The `eldgr evaluate` that continues a run and asks what a rule lacks, word for word."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.rule.named_judges import judge_in
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.words import CONSULTED, ROLES, Consulted, JudgeStyle, is_role

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.programs.run.redecisions import Redecisions

_STYLES: Mapping[str, JudgeStyle] = {"PairwiseJudge": "pairwise", "PointwiseJudge": "pointwise"}
"""The styles by the class of judge that has them; any other is listwise."""

_OPTIONS = ("lm", "api_base", "answer", "certificate", "consult", "derivation")
"""What has an option of its own; other settings are given by `--set`."""


def command_that_asks(run: "RunRead", decided: "Redecisions", roles: Collection[Consulted]) -> str | None:
    """Return the command that continues a run and asks roles where its rules lack them.

    The models of the roles that were asked are read from the journal. It is tried whether the command makes these
    roles again as they were; a run that a program began, or another version, has none: None then. Nor has one under a
    freeze, which admits no further rule, and of which the journal knows the hash and not the file.
    """
    if is_frozen(run) or any(map(judge_in, decided.rules)):
        return None
    heads = run.heads_of("role")
    details: dict[Consulted, Mapping[str, Any]] = {role: heads[role]["details"] for role in CONSULTED if role in heads}
    try:
        settings, models = run.settings, _models(details)
        _require_same_roles(run, settings, models)
    except (EldgrError, LookupError, TypeError, ValueError, AttributeError):
        return None
    words = ["eldgr", "evaluate", *(_file(pool.path) for pool in decided.pools), "--out", str(run.path)]
    words += ["--rules", ",".join(decided.rules)]
    others = {model for role, model in models.named.items() if role in details and model}
    new = (others.pop() if len(others) == 1 else "MODEL") if others else None
    for role in ROLES:  # a role that was never asked is given the model of the others, where they have one
        model = models.named[role] if role in details else new if role in roles else None
        words += [f"--{role}", model] if model else []
    words += [*_changes(models, passing=(*ROLES, "judges")), *_changes(settings)]
    words += ["--limit", str(decided.limit)] if decided.limit else []
    return shlex.join(words)


def is_frozen(run: "RunRead") -> bool:
    """Whether a run was begun under a freeze."""
    return "lock" in run.heads_of("settings")


def _models(roles: Mapping[Consulted, Mapping[str, Any]]) -> Models:
    """Return the options that make the roles that a journal states."""
    from eldgr_dspy.programs.engines.ollama import ADDRESS, CONTEXT

    lms = {role: details["lm"] for role, details in roles.items() if is_role(role)}
    models = {role: lm and lm["model"] for role, lm in lms.items()}
    # An LM that the roles have too was given by --lm to all; any other is one that the certificate's code sets.
    own = (roles.get("certificate", {}).get("lm") or {}).get("model")
    # Ollama's engine has its own form of an address, so another LM's address is taken first.
    servers = [lm["settings"] for lm in lms.values() if lm]
    of_ollama = [settings.get("metadata") or {} for settings in servers]
    addresses = [settings.get("api_base") for settings in servers]
    addresses += [host for of in of_ollama if (host := of.get("host", ADDRESS)) != ADDRESS]
    sizes = (size for of in of_ollama if (size := of.get("num_ctx", CONTEXT)) != CONTEXT)
    judge = roles.get("judge", {})
    orders = (part["orders"] for part in judge.get("attributes", {}).values() if "orders" in part)
    lenient = any(str(details["adapter"]).endswith(".LenientJSONAdapter") for details in roles.values())
    return Models(
        own if own in models.values() and None not in models.values() else None,
        **models,
        api_base=next(filter(None, addresses), None),
        judge_style=_STYLES.get(str(judge.get("module")).rpartition(".")[2], "listwise"),
        orders=next(orders, 1),
        num_ctx=next(sizes, None),
        structured=next((lm["structured"] for lm in lms.values() if lm and "structured" in lm), "auto"),
        replies="lenient" if lenient else "strict",
    )


def _require_same_roles(run: "RunRead", settings: Settings, models: Models) -> None:
    """Raise where the options do not make the roles that the run states."""
    from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings
    from eldgr_dspy.programs.run.run_directory import require_same

    selector = models.selector(settings.arguments())
    roles = run.heads_of("role")
    with models.asking(selector), metered_settings(), selector.reading():
        now = [("role", role, call.details) for role, call in calls_of_roles(selector, {}).items() if role in roles]
    require_same(run.path, run.heads, now)


def _file(path: Path) -> str:
    """A file as an argument, which must not look like an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _changes(settings: Settings | Models, passing: Collection[str] = ()) -> Iterator[str]:
    """Yield the options for what differs from its default."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == field.default or field.name in passing:
            continue
        if isinstance(value, tuple):  # phrases, without the commas that they ignore
            value = ",".join(one.replace(",", "") for one in value)
        option = f"--{field.name.replace('_', '-')}"
        yield from (option, str(value)) if field.name in _OPTIONS else ("--set", f"{field.name}={value}")
