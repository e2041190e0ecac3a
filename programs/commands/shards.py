"""Shards on the command line: `eldgr pool shard`, `eldgr evaluate` on their directory, and `eldgr merge`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import answer_option, names_in, own_options, rules_option
from eldgr_dspy.programs.commands.output import decisions_option, pages_option
from eldgr_dspy.system import refusal

if TYPE_CHECKING:
    from eldgr_dspy.programs.run.plan import Plan

_FILE = click.Path(path_type=Path)


class Place(click.Path):
    """A path, or the address of a bucket, which stays a text."""

    def __init__(self, *, file_okay: bool = True) -> None:
        """Make paths of what is not an address; `file_okay` says whether it may be a file."""
        super().__init__(path_type=Path, file_okay=file_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path, or an address as it is."""
        from eldgr_dspy.system import is_url

        return value if is_url(value) else super().convert(value, param, ctx)


@click.command(context_settings={"show_default": True})
@click.argument("pools", nargs=-1, required=True, type=_FILE)
@click.option("--rows", type=click.IntRange(min=1), default=50_000, help="Most questions in a shard.")
@answer_option
@click.option("--out", required=True, type=Place(), metavar="DIR", help="Directory to write; new or empty.")
def shard(pools: tuple[Path, ...], rows: int, answer: str | None, out: str | Path) -> None:
    """Cut pools into shards, to be run one by one.

    eldgr evaluate DIR runs the shards, --shard N a single one. eldgr merge DIR makes one run of them. Equal questions
    are in one shard, which has more than --rows only if one question occurs more often. DIR may be in a bucket, such as
    s3://BUCKET/PREFIX.
    """
    from eldgr_dspy.answer_types import answer_type
    from eldgr_dspy.programs.shards.sharding import shard_pools

    try:
        sharded = shard_pools(pools, out, rows, None if answer is None else answer_type(answer))
    except OSError as error:
        failed = "" if error.errno is None else "The shards could not be written: "  # a bucket says itself what failed
        raise click.ClickException(f"{failed}{refusal(error)}") from error
    n = len(sharded.manifest.shards)
    said = f"{n:,} shard{'s' * (n != 1)} of {', '.join(pool.name for pool in sharded.manifest.pools)}"
    say(f"{said} written to {out}. To run {'them' if n != 1 else 'it'}: eldgr evaluate {out}")


@click.command(context_settings={"show_default": True})
@click.argument("directory", metavar="DIR", type=Place())
@click.option("--out", type=Place(file_okay=False), metavar="DIRECTORY", help="Run directory.  [default: runs/NAME]")
@click.option("--processes", type=click.IntRange(min=1), metavar="N", default=1, help="Processes that decide shards.")
@rules_option(default="")
@own_options
@decisions_option
@pages_option
@click.pass_context
def merge(
    context: click.Context,
    /,
    directory: str | Path,
    out: str | Path | None,
    processes: int,
    rules: str,
    given: dict[str, Any],
    decisions: Any,
    pages: bool,
) -> None:
    """Merge the shards of a pool into one run.

    Every shard of DIR must be done. The run directory is that of the whole pool, run in one piece: eldgr report prints
    its tables. No LM is asked. Rules and other code of your own that decided the shards must be named again.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage, 3 a process has ended.
    """
    from eldgr_dspy.programs.shards.merging import merge as merge_shards
    from eldgr_dspy.programs.shards.merging import merged_into

    context.ensure_object(Session).unbegun = ""
    folder = merged_into(directory, out)
    try:
        merge_shards(directory, folder, processes, decisions=decisions, pages=pages, rules=names_in(rules), **given)
    except OSError as error:
        failed = "" if error.errno is None else "The run could not be written: "  # a bucket says itself what failed
        raise click.ClickException(f"{failed}{refusal(error)}") from error
    say(f"Written to {folder}. To print all tables: eldgr report {folder}")


def are_shards(pools: Sequence[str | Path], shard: int | None, *, dry_run: bool) -> bool:
    """Return whether the arguments of `eldgr evaluate` are one directory of shards.

    Raises:
        click.UsageError: there is another pool or `--dry-run`, or `--shard` without such a directory.
    """
    from eldgr_dspy.programs.shards.manifest import is_sharded

    sharded = [pool for pool in pools if is_sharded(pool)]
    if sharded and len(pools) > 1:
        raise click.UsageError(f"{sharded[0]} is a directory of shards. Give it alone.")
    if shard is not None and not sharded:
        raise click.UsageError(f"--shard needs a directory of eldgr pool shard; got {pools[0]}.")
    if sharded and dry_run:
        raise click.UsageError("--dry-run takes no shards. Give the pool that they were made of.")
    return bool(sharded)


def evaluate_shards(session: Session, number: int | None, selector: Any, plan: "Plan", *, quiet: bool) -> None:
    """Run one shard of a plan's directory, or every one that is not done, but for those of other processes.

    Raises:
        click.UsageError: a limit on dollars is given for all shards, and it would hold for each.
        RunLockedError: other processes are running some of them. The rest as `evaluate` does.
    """
    from eldgr_dspy.errors import RunLockedError
    from eldgr_dspy.programs.commands.console import progress_bar
    from eldgr_dspy.programs.shards.running import run_shard, uncommitted

    if number is None and plan.max_cost is not None:
        raise click.UsageError("--max-cost limits one shard. Give --shard too, or limit all by --max-calls.")
    directory, busy = plan.pools[0], list[RunLockedError]()
    for one in uncommitted(directory) if number is None else [number]:
        try:
            with progress_bar(session.begin, quiet=quiet) as watcher:
                run_shard(directory, one, selector, plan, watcher)
        except RunLockedError as error:
            busy.append(error)
    if busy:
        raise busy[0]
    if not quiet:
        say_done(directory, number)


def say_done(directory: str | Path, number: int | None = None) -> None:
    """Say that a shard is done, or all of them without a number, and how to merge them."""
    done = "All shards are done." if number is None else f"Shard {number} is done. When all are,"
    say(f"{done} {'M' if number is None else 'm'}ake one run of them: eldgr merge {directory}")
