"""Options that several subcommands share: the models of the roles, and the settings of the rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, get_args

import click

from eldgr_dspy.decision import DEFAULT_RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.rule.named_judges import is_name
from eldgr_dspy.rule.questions import OWN, Settings
from eldgr_dspy.words import (
    POLICIES,
    Consult,
    Homogeneous,
    JudgeStyle,
    Preference,
    Refusal,
    Replies,
    SchemaUse,
    Strictness,
)

Command: TypeAlias = Callable[..., Any]

FILE: "click.ParamType[Any]" = click.Path(path_type=Path)  # whether it is there is seen when it is opened
OUT: "click.ParamType[Any]" = click.Path(path_type=Path, dir_okay=False)
ABOVE_0 = click.FloatRange(0, min_open=True)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
FROM_1 = click.IntRange(min=1)

run_argument = click.argument("run", type=FILE)
pools_argument = click.argument("pools", nargs=-1, type=FILE)

_NAME_AND_FILE = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)


def with_options(
    options: Sequence[Callable[[Command], Command]], gather: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command several options; `gather` makes its arguments of all values."""

    def decorator(command: Command) -> Command:
        @wraps(command)
        def call(*arguments: Any, **values: Any) -> Any:
            return command(*arguments, **gather(values))

        result: Command = call
        for option in reversed(options):
            result = option(result)
        return result

    return decorator


def choice(words: Any) -> click.Choice[str]:
    """Return the type of an option that takes one word of a closed vocabulary."""
    return click.Choice(get_args(words))


def _judges(context: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str | None]:
    """Return what the option gives for each judge, by name; None for a name alone."""
    judges: dict[str, str | None] = {}
    for entry in filter(None, map(str.strip, ",".join(texts).split(","))):
        name, equals, value = entry.partition("=")
        if not is_name(name):
            raise click.BadParameter(
                f"A judge's name must consist of letters, digits, '-', '_' and '.'; got {name!r:.80}."
            )
        if name in judges:
            raise click.BadParameter(f"{name!r} names two judges. Give each its own name.")
        if equals and not value:
            raise click.BadParameter(f"{name}= lacks a model or a style. Give NAME=MODEL or NAME=STYLE.")
        judges[name] = value if equals else None
    return judges


def _replays(context: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, Path]:
    """Return the recordings by judge, "" for the unnamed one; an existing file that is called NAME=FILE is unnamed."""
    recordings: dict[str, Path] = {}
    for text in texts:
        match = None if Path(text).exists() else _NAME_AND_FILE.fullmatch(text)
        name, file = match.groups() if match else ("", text)
        path: Any = _RECORDING.convert(file, param, context)
        if name in recordings:
            whose = f"judge {name!r}" if name else "the run"
            raise click.BadParameter(f"{whose} must have one recording; got another, {path}.")
        recordings[name] = path
    return recordings


_RECORDING = click.Path(path_type=Path, exists=True, dir_okay=False)
replay_option = click.option(
    "--replay",
    type=click.Path(),
    metavar="[NAME=]FILE",
    multiple=True,
    callback=_replays,
    help="Recorded replies to use; NAME=FILE for those of a named judge.",
)


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


def _certificate(context: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """Return a policy, or a name with a colon, which is looked for where the settings are made."""
    if name is None or ":" in name or name in POLICIES:
        return name
    listing = ", ".join(map(repr, POLICIES))
    raise click.BadParameter(f"{name!r} is not one of {listing}; MODULE:FUNCTION names your own.")


certificate_option = click.option(
    "--certificate",
    metavar="NAME",
    callback=_certificate,
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
    phrases = tuple(one.strip() for one in text.split(",") if one.strip())
    return phrases[0] if len(phrases) == 1 and ":" in phrases[0] else phrases


# The settings of `--set` by name, each with the type of its value.
_OF_RULE: Mapping[str, "click.ParamType[Any]"] = {
    "homogeneous": choice(Homogeneous),
    "preference": choice(Preference),
    "refusal": choice(Refusal),
    "refusals": click.types.FuncParamType(_phrases),
}
_OF_MODELS: Mapping[str, "click.ParamType[Any]"] = {
    "judge_style": choice(JudgeStyle),
    "num_ctx": FROM_1,
    "orders": click.IntRange(1, 100),
    "replies": choice(Replies),
    "structured": choice(SchemaUse),
}


class _Setting(click.types.StringParamType):
    name = "name=value"
    envvar_list_splitter = "\n"  # in a variable of the environment, since phrases have spaces


def set_option(*names: str) -> Callable[[Command], Command]:
    """Return the option `--set NAME=VALUE`, which may be repeated: each setting becomes an argument of the command."""
    kinds = {name: kind for name, kind in {**_OF_RULE, **_OF_MODELS}.items() if name in names}
    listing = ", ".join(kinds)

    def parse(context: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for setting in texts:
            name, equals, text = setting.partition("=")
            if name not in kinds or not equals:
                raise click.BadParameter(f"It must be NAME=VALUE, NAME one of {listing}; got {setting!r:.80}.")
            if name in values:
                raise click.BadParameter(f"{name} is set twice. Set it once.")
            try:
                values[name] = kinds[name].convert(text, param, context)
            except click.BadParameter as error:
                raise click.BadParameter(f"{name}: {error.message}") from None
        return values

    option = click.option("--set", type=_Setting(), multiple=True, callback=parse, help=f"Settings: {listing}.")
    return with_options((option,), lambda values: {**values.pop("set"), **values})


def own_options(command: Command) -> Command:
    """Give a command that reads runs the names of code of the user's own; it gets those that are there as `own`."""

    def gather(values: dict[str, Any]) -> dict[str, Any]:
        own = {name: one for name in OWN if (one := values.pop(name, None)) is not None}
        return {**values, "own": own}

    says, metavar = "of your own that the run was made with; it is imported.", "MODULE:NAME"
    certificate = click.option("--certificate", callback=_certificate, metavar=metavar, help=f"Certificate {says}")
    answer = click.option("--answer", metavar=metavar, help=f"Answer type {says}")
    return with_options((certificate, answer, set_option("refusals")), gather)(command)


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
    click.option(
        "--judges",
        metavar="NAME=MODEL,...",
        multiple=True,
        callback=_judges,
        help="Judges to compare, each a model, a style, STYLE:MODEL, heuristic, MODULE:NAME or a selector such as "
        "cisc; a recorded one by its NAME alone.",
    ),
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

    def gather(values: dict[str, Any]) -> dict[str, Any]:
        models = Models(**{one.name: values.pop(one.name) for one in fields(Models) if one.name in values})
        settings = {one.name: values.pop(one.name) for one in fields(Settings) if one.name in values}
        return {**values, "models": models, "settings": settings}

    return with_options(_OF_ROLES, gather)(command)


def names_in(rules: str) -> tuple[str, ...]:
    """Return the names of rules that are separated by commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in rules.split(",") if name.strip()))
