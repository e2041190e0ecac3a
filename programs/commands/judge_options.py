"""The options that name judges and their recordings."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.rule.named_judges import is_name

_NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)


class Replay(click.Path):
    """A recording, or NAME=FILE for that of a named judge. An existing file that is called NAME=FILE is a recording."""

    name = "FILE"

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the judge's name, empty for the unnamed recording, and the path."""
        named = None if Path(value).exists() else _NAMED.fullmatch(value)
        return (named[1], super().convert(named[2], param, ctx)) if named else ("", super().convert(value, param, ctx))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what the help shows."""
        return "[NAME=]FILE"


def _replays(context: click.Context, param: click.Parameter, pairs: Sequence[tuple[str, Path]]) -> dict[str, Path]:
    """Return the recordings by judge, "" for the unnamed one; a judge has one recording."""
    for index, (name, path) in enumerate(pairs):
        if name in dict(pairs[:index]):
            whose = f"judge {name!r}" if name else "the run"
            raise click.BadParameter(f"{whose} must have one recording; got another, {path}.", context, param)
    return dict(pairs)


replay_option = click.option(
    "--replay",
    type=Replay(),
    multiple=True,
    callback=_replays,
    help="Recorded replies to use; NAME=FILE for those of a named judge.",
)


def _judges_in(text: str, context: click.Context, param: click.Parameter) -> dict[str, str | None]:
    """Return what the option gives for each judge, by name; None for a name alone."""
    judges: dict[str, str | None] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, equals, value = entry.partition("=")
        if not is_name(name):
            raise click.BadParameter(
                f"A judge's name must consist of letters, digits, '-', '_' and '.'; got {name!r:.80}.", context, param
            )
        if name in judges:
            raise click.BadParameter(f"{name!r} names two judges. Give each its own name.", context, param)
        if equals and not value:
            raise click.BadParameter(
                f"{name}= lacks a model or a style. Give NAME=MODEL or NAME=STYLE.", context, param
            )
        judges[name] = value if equals else None
    return judges


judges_option = click.option(
    "--judges",
    metavar="NAME=MODEL,...",
    multiple=True,
    callback=lambda context, param, text: _judges_in(",".join(text), context, param),
    help="Judges to compare, each a model, a style, STYLE:MODEL, heuristic, MODULE:NAME or a selector such as "
    "cisc; a recorded one by its NAME alone.",
)
