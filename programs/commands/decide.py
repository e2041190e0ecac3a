"""`eldgr decide`: apply rules, also new ones, to the replies that a run has recorded."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import names_in, own_options, pools_argument, rules_option, run_argument
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, run_of, write
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.rule.named_judges import judge_in
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.words import CONSULTED, ROLES, Consulted, JudgeStyle, is_role

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.programs.run.settling import Redecisions

_NO_COMMAND = "no command can ask for it: a program or another version started the run."
_FREEZE_ONLY = (
    "the run is under a freeze, which admits only its own rules; for one of these, repeat the command that started the "
    "run, with its --freeze."
)

_STYLES: Mapping[str, JudgeStyle] = {"PairwiseJudge": "pairwise", "PointwiseJudge": "pointwise"}  # else listwise
_OPTIONS = ("lm", "api_base", "answer", "certificate", "consult", "derivation")  # the others are given by `--set`


@click.command()
@run_argument
@pools_argument
@rules_option(required=True)
@own_options
@form_options()
@out_option()
def decide(run: Path, pools: tuple[Path, ...], rules: str, own: dict[str, Any], form: Form, out: Path | None) -> None:
    """Apply other rules to the replies of a run.

    RUN is a run directory. No LM is asked, and the run does not change. If a rule needs a reply that the run does not
    have, its results are withheld, and a note gives the command that asks for it. Give POOLS if the run's pools have
    moved. MODULE:FUNCTION imports the module, which runs its code. A run is data, and no name in it is imported: if it
    was made with a certificate, refusals or an answer type of your own, name it again.
    """
    from eldgr_dspy.programs.run.settling import decide_again
    from eldgr_dspy.tables.run import pool_tables

    results = run_of(run, **own)
    if results.is_torn:
        say(f"Note: {results.path}: the last line of the journal is incomplete and is skipped.")
    if not results.is_finished():
        say(f"Note: {results.path}: the run is not finished, so all questions of its pools are decided.")
    redecisions = decide_again(results, [*names_in(rules)] or [""], pools)
    lacks: set[Consulted] = {
        role for pool in redecisions.figures.values() for lacking in pool["withheld"].values() for role in lacking
    }
    asks = command_that_asks(results, redecisions, lacks) if lacks else None
    remedy = _FREEZE_ONLY if is_frozen(results) else _NO_COMMAND
    if asks:
        remedy = f"to ask for it{_of_whom(results, lacks, asks)}: {asks}"
    tables = (table for name, pool in redecisions.figures.items() for table in pool_tables(name, pool, remedy=remedy))
    write({"pools": redecisions.figures, "asks": asks}, tables, form, out, "The decisions", [results])


def _of_whom(run: "RunRead", lacks: Collection[Consulted], command: str) -> str:
    """Say which roles are heuristic in the command because the run was replayed; a recording names no model."""
    if not any(sums["recorded"] for sums in run.totals.roles.values()):
        return ""
    words = shlex.split(command)
    heuristic = [role for role in sorted(lacks) if is_role(role) and f"--{role}" not in words]
    if not heuristic:
        return ""
    models = " ".join(f"--{role} MODEL" for role in heuristic)
    return (
        f", here of the heuristic {' and '.join(heuristic)}, because a recording names no model (add {models} to ask "
        "a model)"
    )


def command_that_asks(run: "RunRead", redecisions: "Redecisions", roles: Collection[Consulted]) -> str | None:
    """Return the command that resumes a run and asks the roles that its rules lack, or None if there is none."""
    if is_frozen(run) or any(map(judge_in, redecisions.rules)):
        return None
    heads = run.heads_of("role")
    details: dict[Consulted, Mapping[str, Any]] = {role: heads[role]["details"] for role in CONSULTED if role in heads}
    try:
        settings, models = run.settings, _models(details)
        # The options of a command do not make the roles of a run of a program.
        _require_same_roles(run, settings, models)
    except (EldgrError, LookupError, TypeError, ValueError, AttributeError):
        return None
    paths = (str(pool.path) for pool in redecisions.pools)
    files = (f"./{path}" if path.startswith("-") else path for path in paths)  # no options
    words = ["eldgr", "evaluate", *files, "--out", str(run.path)]
    words += ["--rules", ",".join(redecisions.rules)]
    others = {model for role, model in models.by_role.items() if role in details and model}
    new = (others.pop() if len(others) == 1 else "MODEL") if others else None
    for role in ROLES:  # a role that was never asked is given the model of the others, where they have one
        model = models.by_role[role] if role in details else new if role in roles else None
        words += [f"--{role}", model] if model else []
    words += [*_changes(models, passing=(*ROLES, "judges")), *_changes(settings)]
    words += ["--limit", str(redecisions.limit)] if redecisions.limit else []
    return shlex.join(words)


def is_frozen(run: "RunRead") -> bool:
    """Return whether a run is under a freeze; the journal knows its hash and not its file."""
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
    from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings
    from eldgr_dspy.programs.run.run_directory import require_same

    selector = models.selector(settings.arguments())
    roles = run.heads_of("role")
    with models.asking(selector), metered_settings(), selector.reading():
        now = [("role", role, call.details) for role, call in calls_of_roles(selector, {}).items() if role in roles]
    require_same(run.path, run.heads, now)


def _changes(settings: Settings | Models, passing: Collection[str] = ()) -> Iterator[str]:
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == field.default or field.name in passing:
            continue
        if isinstance(value, tuple):  # phrases, without the commas that they ignore
            value = ",".join(one.replace(",", "") for one in value)
        option = f"--{field.name.replace('_', '-')}"
        yield from (option, str(value)) if field.name in _OPTIONS else ("--set", f"{field.name}={value}")
