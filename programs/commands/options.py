"""Options that several subcommands share: the models of the roles (`Models`), and the settings of the rules."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

import click

from eldgr_dspy.decision import DEFAULT_RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands.judge_options import judges_option
from eldgr_dspy.redaction import remember_settings
from eldgr_dspy.rule.questions import OWN, Settings
from eldgr_dspy.words import (
    Consult,
    Homogeneous,
    JudgeStyle,
    Policy,
    Preference,
    Refusal,
    Replies,
    Role,
    SchemaUse,
    Strictness,
)

Command: TypeAlias = Callable[..., Any]
_Who = TypeVar("_Who", bound=str)

FILE: "click.ParamType[Any]" = click.Path(path_type=Path)
"""A file or folder as a path; whether it is there is seen when it is opened."""

ABOVE_0 = click.FloatRange(0, min_open=True)

run_argument = click.argument("run", type=FILE)
pools_argument = click.argument("pools", nargs=-1, type=FILE)

_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Models:
    """The models of the roles, their server, and how they are asked and read; each as its option was given.

    Attributes:
        lm: For all roles. judge, deriver, repairer: for one of them.
        api_base: Address of the server.
        judges: Judges by name, each as it was given; None where it is a recording alone.
        judge_style, orders: How many candidates the judge sees in a call, and in how many orders.
        num_ctx: Context of Ollama's models.
        structured, replies: Whether requests carry a JSON schema, and how replies are read.
    """

    lm: str | None = None
    judge: str | None = None
    deriver: str | None = None
    repairer: str | None = None
    api_base: str | None = None
    judges: Mapping[str, str | None] = field(default_factory=dict)
    judge_style: JudgeStyle = "listwise"
    orders: int = 1
    num_ctx: int | None = None
    structured: SchemaUse = "auto"
    replies: Replies = "strict"

    @property
    def named(self) -> dict[Role, str | None]:
        """The model of each role; None for a heuristic role."""
        models: dict[Role, str | None] = {"judge": self.judge, "deriver": self.deriver, "repairer": self.repairer}
        return {role: self.lm if model is None else model for role, model in models.items()}

    @property
    def styles(self) -> dict[str, tuple[JudgeStyle, str | None]]:
        """The style of each judge with a name, and its model; None for the heuristic one and for a recording."""
        from eldgr_dspy.programs.judges.named import styled

        return {name: styled(text, self.judge_style, self.judge or self.lm) for name, text in self.judges.items()}

    def lms(self, models: Mapping[_Who, str | None], others: Iterable[str | None] = ()) -> dict[_Who, Any]:
        """Return the LM of each role or judge that has a model. The journal is the run's cache, so DSPy's own is off.

        `others` are further models, for which an address or a context may be.
        """
        from eldgr_dspy.programs.lms.models import is_of_ollama, lm_named, require_ollama

        named: dict[_Who, str] = {role: model for role, model in models.items() if model is not None}
        every = [*dict.fromkeys(model for model in (*named.values(), *others) if model is not None)]
        require_ollama(self.num_ctx, every)
        require_address(self.api_base, every)
        sizes = {model: self.num_ctx if is_of_ollama(model) else None for model in named.values()}
        options: dict[str, Any] = {"structured": self.structured, "temperature": 0.0, "cache": False}
        return {role: lm_named(model, self.api_base, num_ctx=sizes[model], **options) for role, model in named.items()}

    def selector(self, settings: Mapping[str, Any]) -> Any:
        """Return a selector under these settings, with these roles."""
        lms = self.lms(self.named, [model for _, model in self.styles.values()])
        return self.selector_of(lms, settings, self.judge_style, self.orders)

    def selector_of(self, lms: Mapping[Role, Any], settings: Mapping[str, Any], style: JudgeStyle, orders: int) -> Any:
        """Return a selector with heuristic roles, except those that have an LM, and the judge in a style."""
        from eldgr_dspy.programs.heuristics import heuristic_selector
        from eldgr_dspy.programs.judges.named import judge_in_style
        from eldgr_dspy.programs.selector import Selector

        settings = {**settings, "replies": self.replies}
        selector, backed = heuristic_selector(**settings), Selector(**settings)
        judged = backed if "judge" in lms else selector
        judged.judge = judge_in_style(judged.judge, style, orders)
        for role, lm in lms.items():
            module = getattr(backed, role)
            module.set_lm(lm)
            setattr(selector, role, module)
        return selector

    def asking(self, selector: Any) -> AbstractContextManager[Any]:
        """Return the context in which a selector's certificate asks the model for all roles, if it asks any."""
        import dspy

        if self.lm is None or selector.certifier is None:
            return nullcontext()
        context: AbstractContextManager[Any] = dspy.context(lm=self.lms({"judge": self.lm})["judge"])
        return context


def choice(words: Any) -> click.Choice[str]:
    """Return the type of an option that takes one word of a closed vocabulary."""
    return click.Choice(get_args(words))


def rules_option(*, required: bool = False, default: str = ",".join(DEFAULT_RULES)) -> Callable[[Command], Command]:
    """Return the option `--rules`: names separated by commas, or the option repeated. `DEFAULT_RULES` by default."""
    return click.option(
        "--rules",
        "--rule",
        "rules",
        multiple=True,
        required=required,
        default=None if required else (default,),
        metavar="NAMES",
        callback=lambda _, __, names: ",".join(names),
        help="Rules, separated by commas; MODULE:FUNCTION names your own.",
    )


class Certificate(click.Choice):  # type: ignore[type-arg]
    """A policy, or a certificate of the user's own as `MODULE:FUNCTION`."""

    def __init__(self) -> None:
        super().__init__(get_args(Policy))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a name with a colon as it is; it is looked for where the settings are made."""
        if ":" in value or value in self.choices:
            return value
        listed = ", ".join(map(repr, self.choices))
        self.fail(f"{value!r} is not one of {listed}; MODULE:FUNCTION names your own.", param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what the help shows."""
        return "NAME"


certificate_option = click.option(
    "--certificate",
    type=Certificate(),
    default="folded",
    help="Certificate for retrieval answers: substring, token or folded; MODULE:FUNCTION names your own.",
)


class AnswerName(click.ParamType):  # type: ignore[type-arg]
    """The name of an answer type; one of the user's own, `MODULE:NAME`, is imported, and pools may then state it."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name by which any process finds the type: a worker of Ray has not loaded it."""
        from eldgr_dspy.answer_types import load_type

        try:
            kind = load_type(value)
            return kind.loaded_as or kind.name
        except ArgumentError as error:
            self.fail(str(error), param, ctx)


answer_option = click.option(
    "--answer",
    metavar="NAME",
    type=AnswerName(),
    help="Answer type of the pools, such as short or choice; MODULE:NAME names your own.  [default: as pools say]",
)


def _phrases(text: str) -> tuple[str, ...] | str:
    """Return the phrases that a setting states, or the name of a function."""
    phrases = tuple(one.strip() for one in text.split(",") if one.strip())
    return phrases[0] if len(phrases) == 1 and ":" in phrases[0] else phrases


_OF_RULE: Mapping[str, "click.ParamType[Any]"] = {
    "homogeneous": choice(Homogeneous),
    "preference": choice(Preference),
    "refusal": choice(Refusal),
    "refusals": click.types.FuncParamType(_phrases),
}
_OF_MODELS: Mapping[str, "click.ParamType[Any]"] = {
    "judge_style": choice(JudgeStyle),
    "num_ctx": click.IntRange(min=1),
    "orders": click.IntRange(1, 100),
    "replies": choice(Replies),
    "structured": choice(SchemaUse),
}
"""The settings of `--set` by name, each with the type of its value."""


class _Setting(click.types.StringParamType):
    name = "name=value"
    envvar_list_splitter = "\n"  # in a variable of the environment, since phrases have spaces


def set_option(*names: str) -> Callable[[Command], Command]:
    """Return the option `--set NAME=VALUE`, which may be repeated: each setting becomes an argument of the command."""
    kinds = {name: kind for name, kind in {**_OF_RULE, **_OF_MODELS}.items() if name in names}
    listed = ", ".join(kinds)

    def parse(context: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for setting in texts:
            name, equals, text = setting.partition("=")
            if name not in kinds or not equals:
                raise click.BadParameter(f"It must be NAME=VALUE, NAME one of {listed}; got {setting!r:.80}.")
            if name in values:
                raise click.BadParameter(f"{name} is set twice. Set it once.")
            try:
                values[name] = kinds[name].convert(text, param, context)
            except click.BadParameter as error:
                raise click.BadParameter(f"{name}: {error.message}") from None
        return values

    option = click.option("--set", type=_Setting(), multiple=True, callback=parse, help=f"Settings: {listed}.")

    def decorator(command: Command) -> Command:
        @wraps(command)
        def gathered(*arguments: Any, **options: Any) -> Any:
            return command(*arguments, **options.pop("set"), **options)

        return option(gathered)

    return decorator


def own_options(command: Command) -> Command:
    """Give a command that reads runs the names of code of the user's own; it gets those that are there as `own`."""

    @wraps(command)
    def gathered(*arguments: Any, **options: Any) -> Any:
        own = {name: one for name in OWN if (one := options.pop(name, None)) is not None}
        return command(*arguments, own=own, **options)

    says, metavar = "of your own that the run was made with; it is imported.", "MODULE:NAME"
    certificate = click.option("--certificate", type=Certificate(), metavar=metavar, help=f"Certificate {says}")
    answer = click.option("--answer", metavar=metavar, help=f"Answer type {says}")
    return with_options((certificate, answer, set_option("refusals")))(gathered)


api_base_option = click.option("--api-base", metavar="URL", help="Address of the models' server.")
structured_option = click.option(
    "--structured", type=choice(SchemaUse), default="auto", help="Send a JSON schema: always, never, or until refused."
)
derivation_option = click.option(
    "--derivation", type=choice(Strictness), default="bounded", help="How strictly derivations are checked."
)
_OF_ROLES = (
    click.option("--lm", metavar="MODEL", help="Model for all roles. Without a model the heuristic roles are used."),
    click.option("--judge", metavar="MODEL", help="Model for the judge."),
    judges_option,
    click.option("--deriver", metavar="MODEL", help="Model for the deriver."),
    click.option("--repairer", metavar="MODEL", help="Model for the repairer."),
    api_base_option,
    rules_option(),
    answer_option,
    certificate_option,
    derivation_option,
    click.option("--consult", type=choice(Consult), default="lazy", help="Ask only the roles that matter, or all."),
    set_option(*_OF_RULE, *_OF_MODELS),
)


def role_options(command: Command) -> Command:
    """Give a command options for models and the rule; it gets `models`, `rules` (with commas), and `settings`."""

    @wraps(command)
    def gathered(*arguments: Any, **options: Any) -> Any:
        models = Models(**{one.name: options.pop(one.name) for one in fields(Models) if one.name in options})
        settings = {one.name: options.pop(one.name) for one in fields(Settings) if one.name in options}
        return command(*arguments, models=models, settings=settings, **options)

    return with_options(_OF_ROLES)(gathered)


def with_options(options: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command several options."""
    return lambda command: reduce(lambda result, option: option(result), reversed(options), command)


def names_in(rules: str) -> tuple[str, ...]:
    """Return the names of rules that are separated by commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in rules.split(",") if name.strip()))


def require_address(api_base: str | None, names: Sequence[str]) -> None:
    """Refuse a server address if no model is given, and one without http:// or https://.

    Ollama's own engine accepts an address without a scheme, as Ollama does, and checks it itself.

    Raises:
        ArgumentError: naming the address, without what may be a password in it, and the remedy.
    """
    from eldgr_dspy.programs.lms.models import is_of_ollama

    if api_base is None:
        return
    remember_settings({"api_base": api_base})
    address = f"--api-base={api_base.rpartition('@')[2]!r:.200}"
    if not names:
        raise ArgumentError(
            f"{address} needs a model to ask, but none is given. Add --lm MODEL or a model for a role, or leave the "
            "address out."
        )
    if not _ADDRESS.match(api_base) and not all(map(is_of_ollama, names)):
        raise ArgumentError(
            f"{address} must be an address with http:// or https://, for example http://localhost:8000/v1."
        )
