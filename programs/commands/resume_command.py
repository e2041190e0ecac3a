"""The `eldgr evaluate` that continues a run and asks what a rule lacks, word for word."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.rule.named_judges import judge_in
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.words import CONSULTED, ROLES, Consulted, JudgeStyle, Replies, Role, SchemaUse, is_role

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.programs.run.redecisions import Redecided

_STYLES: Mapping[str, JudgeStyle] = {"PairwiseJudge": "pairwise", "PointwiseJudge": "pointwise"}
"""The styles by the class of judge that has them; any other is listwise."""


def command_that_asks(run: "RunRead", decided: "Redecided", roles: Collection[Consulted]) -> str | None:
    """Return the command that continues a run and asks roles where its rules lack them.

    The models of the roles that were asked are read from the journal. It is tried whether the command makes these
    roles again as they were; a run that a program began, or another version, has none: None then. Nor has one under a
    freeze, which admits no further rule, and of which the journal knows the hash and not the file.
    """
    if is_frozen(run) or any(map(judge_in, decided.rules)):
        return None
    heads = run.stated("role")
    details: dict[Consulted, Mapping[str, Any]] = {role: heads[role]["details"] for role in CONSULTED if role in heads}
    try:
        settings, options = run.settings, _Options(details)
        _require_same_roles(run, settings, options)
    except (EldgrError, LookupError, TypeError, ValueError, AttributeError):
        return None
    words = ["eldgr", "evaluate", *(_file(pool.path) for pool in decided.pools), "--out", str(run.path)]
    words += ["--rules", ",".join(decided.rules), *options.words(roles), *_of_rule(settings)]
    words += ["--limit", str(decided.limit)] if decided.limit else []
    return shlex.join(words)


def is_frozen(run: "RunRead") -> bool:
    """Whether a run was begun under a freeze."""
    return "lock" in run.stated("settings")


class _Options:
    """The options of `eldgr evaluate` that make the roles that a journal states."""

    def __init__(self, roles: Mapping[Consulted, Mapping[str, Any]]) -> None:
        lms_by_role = {role: details["lm"] for role, details in roles.items()}
        lms: dict[Role, Any] = {role: lm for role, lm in lms_by_role.items() if is_role(role)}
        self.models: dict[Role, str | None] = {role: lm and lm["model"] for role, lm in lms.items()}
        # An LM that the roles have too was given by --lm to all; any other is one that the certificate's code sets.
        models, own = {*self.models.values()}, (lms_by_role.get("certificate") or {}).get("model")
        self.lm: str | None = own if own in models and None not in models else None
        self.api_base, self.num_ctx = self._server([lm["settings"] for lm in lms.values() if lm])
        self.structured: SchemaUse = next(
            (lm["structured"] for lm in lms.values() if lm and "structured" in lm), "auto"
        )
        judge = roles.get("judge", {})
        self.style: JudgeStyle = _STYLES.get(str(judge.get("module")).rpartition(".")[2], "listwise")
        parts = judge.get("attributes", {}).values()
        self.orders: int = next((part["orders"] for part in parts if "orders" in part), 1)
        lenient = any(str(details["adapter"]).endswith(".LenientJSONAdapter") for details in roles.values())
        self.replies: Replies = "lenient" if lenient else "strict"

    @staticmethod
    def _server(settings: Sequence[Mapping[str, Any]]) -> tuple[str | None, int | None]:
        """Return the address and the context that the user set. None where the model has its own.

        Ollama's engine has its own form of an address, so another LM's address is taken first.
        """
        from eldgr_dspy.programs.engines.ollama import ADDRESS, CONTEXT

        owns = [options.get("metadata") or {} for options in settings]
        addresses = [options.get("api_base") for options in settings]
        hosts = [host for own in owns if (host := own.get("host", ADDRESS)) != ADDRESS]
        sizes = [size for own in owns if (size := own.get("num_ctx", CONTEXT)) != CONTEXT]
        return next(filter(None, [*addresses, *hosts]), None), next(iter(sizes), None)

    def words(self, roles: Collection[Consulted]) -> Iterator[str]:
        """Yield the options. A role that was never asked is given the model of the others where they have one."""
        others = {model for model in self.models.values() if model}
        new = (others.pop() if len(others) == 1 else "MODEL") if others else None
        for role in ROLES:
            model = self.models.get(role, new if role in roles else None)
            yield from (f"--{role}", model) if model else ()
        yield from ("--lm", self.lm) if self.lm else ()
        yield from ("--api-base", self.api_base) if self.api_base else ()
        yield from ("--set", f"num_ctx={self.num_ctx}") if self.num_ctx else ()
        yield from ("--set", f"structured={self.structured}") if self.structured != "auto" else ()
        yield from ("--set", f"judge_style={self.style}") if self.style != "listwise" else ()
        yield from ("--set", f"orders={self.orders}") if self.orders != 1 else ()
        yield from ("--set", f"replies={self.replies}") if self.replies != "strict" else ()


def _require_same_roles(run: "RunRead", settings: Settings, options: _Options) -> None:
    """Raise where the options do not make the roles that the run states."""
    from eldgr_dspy.programs.commands.options import certificate_lm, lms_of, selector_of
    from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings
    from eldgr_dspy.programs.run.run_directory import require_same

    models: dict[Role, str | None] = {role: options.models.get(role) for role in ROLES}
    lms = lms_of(models, options.api_base, options.num_ctx, options.structured)
    arguments = {**settings.arguments(), "replies": options.replies}
    selector = selector_of(lms, arguments, (options.style, options.orders))
    roles = run.stated("role")
    asking = certificate_lm(selector, options.lm, options.api_base, options.num_ctx, options.structured)
    with asking, metered_settings(), selector.reading():
        now = [("role", role, call.details) for role, call in calls_of_roles(selector, {}).items() if role in roles]
    require_same(run.path, run.heads, now)


def _file(path: Path) -> str:
    """A file as an argument, which must not look like an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _of_rule(settings: Settings) -> Iterator[str]:
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if value != field.default:
            is_option = field.name in ("answer", "certificate", "consult", "derivation")
            yield from (f"--{field.name}", _word(value)) if is_option else ("--set", f"{field.name}={_word(value)}")


def _word(value: Any) -> str:
    """A setting as an option states it: a user's function by its name, phrases without the commas that they ignore."""
    return ",".join(one.replace(",", "") for one in value) if isinstance(value, tuple) else str(value)
