"""Options that several subcommands have: who plays the roles, and what the rule goes by.

`Models` is one argument of a command in the place of eight.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce, wraps
from typing import Any, Literal, TypeAlias, get_args

import click

from eldgr_dspy.decision import RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.redaction import remember_settings
from eldgr_dspy.words import Consult, Homogeneous, Policy, Preference, Role, Strictness

Style: TypeAlias = Literal["listwise", "pairwise", "pointwise"]
Command: TypeAlias = Callable[..., Any]

_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Models:
    """Which models play the roles, where they are, and how the judge asks; each as its option was given.

    Attributes:
        lm: For all roles. judge, deriver, repairer: for one of them.
        api_base, num_ctx: Address of the server, and context of Ollama's models.
        judge_style, orders: How many candidates the judge sees in a call, and in how many orders.
    """

    lm: str | None
    judge: str | None
    deriver: str | None
    repairer: str | None
    api_base: str | None
    num_ctx: int | None
    judge_style: Style
    orders: int

    @property
    def named(self) -> dict[Role, str | None]:
        """The model of each role; None for one that is embedded."""
        given: dict[Role, str | None] = {"judge": self.judge, "deriver": self.deriver, "repairer": self.repairer}
        return {role: self.lm if model is None else model for role, model in given.items()}

    def selector(self, settings: Mapping[str, Any]) -> Any:
        """Return a selector under these settings, with these roles."""
        lms = lms_of(self.named, self.api_base, self.num_ctx)
        return selector_of(lms, settings, (self.judge_style, self.orders))


def choice(words: Any) -> click.Choice[str]:
    """Return the type of an option that takes one word of a closed vocabulary."""
    return click.Choice(get_args(words))


_MODELS = (
    click.option("--lm", metavar="MODEL", help="Model for all roles; without any model the embedded roles are used."),
    click.option("--judge", metavar="MODEL", help="Model for the judge."),
    click.option("--deriver", metavar="MODEL", help="Model for the deriver."),
    click.option("--repairer", metavar="MODEL", help="Model for the repairer."),
    click.option("--api-base", metavar="URL", help="Address of the server for the models."),
    click.option(
        "--num-ctx",
        type=click.IntRange(min=1),
        metavar="N",
        help="Context of Ollama's models, in tokens.  [default: 8192]",
    ),
    click.option("--judge-style", type=choice(Style), default="listwise", help="Candidates a call: all, two, one."),
    click.option("--orders", type=click.IntRange(1, 100), default=1, help="Orders in which candidates are shown it."),
)
_RULE = (
    click.option(
        "--rules",
        "--rule",
        "rules",
        multiple=True,
        default=(",".join(RULES),),
        callback=lambda _, __, given: ",".join(given),
        help="Rules to compare, separated by commas; MODULE:FUNCTION is one of your own.",
    ),
    click.option("--certificate", type=choice(Policy), default="folded", help="Certificate of retrieval answers."),
    click.option("--derivation", type=choice(Strictness), default="bounded", help="Check of derivations."),
    click.option("--consult", type=choice(Consult), default="lazy", help="Ask what matters, or every role."),
    click.option("--homogeneous", type=choice(Homogeneous), help="Repair pools of one class.  [default: by task]"),
    click.option("--preference", type=choice(Preference), default="global", help="Reading of the judge's preference."),
)


def model_options(command: Command) -> Command:
    """Give a command the options of `Models`; it gets them as its argument `models`."""

    @wraps(command)
    def gathered(*arguments: Any, **given: Any) -> Any:
        models = Models(**{one.name: given.pop(one.name) for one in fields(Models)})
        return command(*arguments, models=models, **given)

    return _with(_MODELS, gathered)


def rule_options(command: Command) -> Command:
    """Give a command `rules`, separated by commas, and an argument for each setting of the rule."""
    return _with(_RULE, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    return reduce(lambda made, option: option(made), reversed(options), command)


def names_in(rules: str) -> tuple[str, ...]:
    """Return the names of rules that are separated by commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in rules.split(",") if name.strip()))


def lms_of(models: dict[Role, str | None], api_base: str | None, num_ctx: int | None) -> dict[Role, Any]:
    """The LM of each role that a model was given for. The journal is the run's cache, so DSPy's own is off."""
    from eldgr_dspy.programs.models import is_of_ollama, lm_named, require_ollama

    named: dict[Role, str] = {role: model for role, model in models.items() if model is not None}
    require_ollama(num_ctx, [*dict.fromkeys(named.values())])
    require_address(api_base, [*named.values()])
    sizes = {model: num_ctx if is_of_ollama(model) else None for model in named.values()}
    return {
        role: lm_named(model, api_base, num_ctx=sizes[model], temperature=0.0, cache=False)
        for role, model in named.items()
    }


def require_address(api_base: str | None, names: Sequence[str]) -> None:
    """Refuse the address of a server where no model is there to be asked, and one without http:// or https://.

    Ollama's own engine takes an address without, as Ollama does, and refuses what is none.

    Raises:
        ArgumentError: naming the address, without what may be a password in it, and the remedy.
    """
    from eldgr_dspy.programs.models import is_of_ollama

    if api_base is None:
        return
    remember_settings({"api_base": api_base})
    shown = f"--api-base={api_base.rpartition('@')[2]!r:.200}"
    if not names:
        raise ArgumentError(
            f"{shown} is the address of a model's server, and no model is given; name one by --lm or for a role, or "
            "leave the address out."
        )
    if not _ADDRESS.match(api_base) and not all(map(is_of_ollama, names)):
        raise ArgumentError(f"{shown} is no address; expected one such as http://localhost:8000/v1.")


def selector_of(lms: dict[Role, Any], settings: Mapping[str, Any], style: tuple[Style, int]) -> Any:
    """A selector whose roles are embedded, except those that have an LM, with its judge in a style."""
    from eldgr_dspy.programs.heuristics import heuristic_selector
    from eldgr_dspy.programs.judges.styles import judge_in_style
    from eldgr_dspy.programs.selector import Selector

    selector, backed = heuristic_selector(**settings), Selector(**settings)
    judged = backed if "judge" in lms else selector
    judged.judge = judge_in_style(judged.judge, *style)
    for role, lm in lms.items():
        module = getattr(backed, role)
        module.set_lm(lm)
        setattr(selector, role, module)
    return selector
