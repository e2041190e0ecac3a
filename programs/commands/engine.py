"""`eldgr evaluate --engine ray`: its options, and what each worker makes for itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.judges import named_judges
from eldgr_dspy.programs.commands.options import Command, Models, with_options

if TYPE_CHECKING:
    from eldgr_dspy.figures.results.summary import Summary
    from eldgr_dspy.programs.run.plan import Plan
    from eldgr_dspy.programs.selector import Selector

_HEURISTIC_WORKERS, _LM_WORKERS = 1, 8


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs shards: this process, or the processes of a cluster.

    Attributes:
        engine: Its name; None for this process. address: of a cluster. processes: how many.
    """

    engine: str | None
    address: str | None
    processes: int | None

    def require(self, pools: Sequence[str | Path], shard: int | None, *, limited: bool, fresh: bool) -> None:
        """Refuse options that need the engine, and those that it does not take.

        Raises:
            click.UsageError: naming the option.
        """
        if self.engine is None:
            for name, value in (("--address", self.address), ("--processes", self.processes)):
                if value is not None:
                    raise click.UsageError(f"{name} needs --engine ray.")
            return
        refused = (
            ("a bucket", any(isinstance(pool, str) for pool in pools), "Its processes share a directory."),
            ("--shard", shard is not None, "It runs all shards."),
            ("--limit", limited, "It runs whole pools."),
            ("--fresh", fresh, "Give another --out to start again."),
        )
        for name, given, why in refused:
            if given:
                raise click.UsageError(f"--engine ray cannot be used with {name}. {why}")


def engine_options(command: Command) -> Command:
    """Give a command the options of `Engine`; it gets them as its argument `engine`."""

    @wraps(command)
    def gathered(*arguments: Any, **given: Any) -> Any:
        engine = Engine(**{field.name: given.pop(field.name) for field in fields(Engine)})
        return command(*arguments, engine=engine, **given)

    return with_options(
        (
            click.option("--engine", type=click.Choice(["ray"]), help="Run shards in the processes of a cluster."),
            click.option("--address", metavar="ADDRESS", help="Address of the cluster.  [default: as Ray finds it]"),
            click.option(
                "--processes", type=click.IntRange(min=1), metavar="N", help="Most processes.  [default: one a CPU]"
            ),
        )
    )(gathered)


@contextmanager
def prepared(
    models: Models, settings: Mapping[str, Any], replay: Mapping[str, Path], plan: Mapping[str, Any]
) -> "Iterator[tuple[Selector, Plan]]":
    """Make the selector and the plan of a run from what was typed; workers do so too, with connections of their own.

    Args:
        models, settings: The options for models and the rule. replay: recordings by judge. plan: the rest of a `Plan`.
    """
    from eldgr_dspy.programs.run.plan import Plan

    selector = models.selector(settings)
    asks = any((*models.named.values(), *models.judges.values())) or selector.certifier is not None
    made = Plan(
        **{**plan, "workers": plan["workers"] or (_LM_WORKERS if asks else _HEURISTIC_WORKERS)},
        judges=named_judges(models, settings, replay),
        replay=replay,
    )
    with models.asking(selector):
        yield selector, made


def run_shards(
    session: Session,
    engine: Engine,
    prepare: Callable[..., Any],
    replay: Mapping[str, Path],
    plan: Mapping[str, Any],
    *,
    quiet: bool,
) -> None:
    """Run every shard of a plan's directory that is not done, on Ray; workers get paths in full.

    Args:
        session: The command's. engine: its options. prepare: makes selector and plan from `replay` and `plan`.
        replay: Recordings by judge. plan: the rest of a `Plan`. quiet: print only errors.
    """
    from eldgr_dspy.programs.commands.console import progress_bar
    from eldgr_dspy.programs.shards.ray_engine import run_on_ray

    directory = plan["pools"][0]
    whole = {**plan, "pools": [directory.resolve()], "lock": plan["lock"] and plan["lock"].resolve()}
    recordings = {name: path.resolve() for name, path in replay.items()}
    with progress_bar(session.begin, quiet=quiet) as watcher:
        run_on_ray(directory, partial(prepare, recordings, whole), engine.processes, engine.address, watcher)


def run_pools(
    run: Callable[[Mapping[str, Any]], None], plan: Mapping[str, Any], settings: Mapping[str, Any]
) -> "tuple[Summary, Plan]":
    """Cut a plan's pools into shards inside its run directory, run these, and merge them.

    Args:
        run: Runs the shards of a plan's directory. plan: the arguments of a `Plan`. settings: those of the rule.

    Returns:
        The summary, and a plan that says where the run is.
    """
    from eldgr_dspy.programs.run.plan import Plan, out_of
    from eldgr_dspy.programs.shards.merging import merge
    from eldgr_dspy.programs.shards.within_runs import shards_within
    from eldgr_dspy.questions import OWN

    out = out_of(Plan(plan["pools"], plan["out"]))
    directory = shards_within(out, plan["pools"])
    run({**plan, "pools": [directory], "out": None})
    own = {name: value for name, value in settings.items() if name in OWN and ":" in str(value)}
    summary = merge(directory, out, decisions=plan["decisions"], pages=plan["pages"], rules=plan["rules"], **own)
    return summary, Plan(plan["pools"], out, lock=plan["lock"], pages=plan["pages"])
