"""`eldgr evaluate`: which answer ships under each rule on frozen pools, and what each rule is worth."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import Models, model_options, names_in, rule_options
from eldgr_dspy.system import refusal

if TYPE_CHECKING:
    from eldgr_dspy.figures.results.summary import Summary

_EMBEDDED_WORKERS, _LM_WORKERS = 1, 8


class Grouped(click.Command):
    """A command whose options are listed in groups; those that are in none stand in the last."""

    groups: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("Models", ("lm", "judge", "deriver", "repairer", "api_base", "num_ctx", "judge_style", "orders")),
        ("The rule", ("rules", "certificate", "derivation", "consult", "homogeneous", "preference")),
        ("The run", ("out", "limit", "workers", "replay", "fresh", "lock", "once")),
        ("Limits", ("timeout", "max_failures", "max_calls", "max_cost")),
    )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group under its heading."""
        options = (one for one in self.get_params(ctx) if isinstance(one, click.Option))
        records = {one.name: record for one in options if (record := one.get_help_record(ctx))}
        groups = [(heading, [records.pop(name) for name in names]) for heading, names in self.groups]
        for heading, listed in [*groups, ("Output", [*records.values()])]:
            with formatter.section(heading):
                formatter.write_dl(listed)


@click.command(cls=Grouped, context_settings={"show_default": True})
@click.argument("pools", nargs=-1, required=True, type=click.Path(path_type=Path))
@model_options
@rule_options
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run directory.  [default: runs/NAME]")
@click.option("--limit", type=click.IntRange(min=1), help="Questions to take from each pool.  [default: all]")
@click.option("--workers", type=click.IntRange(1, 1024), help="Questions at once.  [default: 8 with a model, else 1]")
@click.option(
    "--replay", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Recorded consultations to use."
)
@click.option("--fresh", is_flag=True, help="Start anew; the old journal is kept beside the new one.")
@click.option(
    "--lock", type=click.Path(path_type=Path), metavar="FILE", help="Rule from eldgr freeze; all else is refused."
)
@click.option("--once", is_flag=True, help="Refuse a pool that the lock has seen.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    metavar="SECONDS",
    help="What a role may take for one question, retries included.",
)
@click.option("--max-failures", default="0", metavar="N|P%", help="Questions that may fail before the run stops.")
@click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Requests that the run may send.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Dollars that the run may spend; requests under way can pass it.",
)
@click.option("--dry-run", is_flag=True, help="Say what the run would ask at most; ask nobody, write nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_EVALUATE_JSON",
    allow_from_autoenv=False,
    help="Print the summary as JSON instead of tables.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def evaluate(
    context: click.Context,
    /,
    pools: tuple[Path, ...],
    out: Path | None,
    models: Models,
    rules: str,
    limit: int | None,
    workers: int | None,
    replay: Path | None,
    fresh: bool,
    lock: Path | None,
    once: bool,
    timeout: float,
    max_failures: str,
    max_calls: int | None,
    max_cost: float | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Decide the questions of POOLS (.jsonl, .jsonl.gz, .parquet) by every rule, and compare.

    All rules see the same consultations. Without a model the embedded roles answer: a floor, no LM needed. Results go
    to the run directory: journal.jsonl, decisions.jsonl, summary.json, record.json, report.html, questions.html. A run
    that was stopped goes on when the same command is given again, without --fresh.

    Ctrl-C, or SIGTERM, begins no further call and waits for those under way, so that what they cost is kept; a second
    one abandons them.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage, 3 stopped unfinished, 130 ctrl-C, 143 SIGTERM.
    """
    from eldgr_dspy.programs.commands.console import print_forecast, progress_bar
    from eldgr_dspy.programs.run.evaluation import evaluate as run_over
    from eldgr_dspy.programs.run.plan import Plan, out_of

    session = context.ensure_object(Session)
    if fresh:
        session.goes_on = _without_fresh(context)
    if quiet:
        warnings.simplefilter("ignore")  # until `main` returns
    if lock is not None:
        rules, settings = _as_frozen(context, lock, rules, settings)
    plan = Plan(
        pools=pools,
        out=out,
        rules=names_in(rules),
        limit=limit,
        workers=workers or (_LM_WORKERS if any(models.named.values()) else _EMBEDDED_WORKERS),
        replay=replay,
        max_failures=max_failures,
        timeout=timeout,
        max_calls=max_calls,
        max_cost=max_cost,
        fresh=fresh,
        lock=lock,
        once=once,
    )
    selector = models.selector(settings)
    if dry_run:
        from eldgr_dspy.programs.run.forecast import forecast

        unprinted = print_forecast(forecast(selector, plan), as_json=as_json)
        if unprinted:
            raise unprinted
        return
    with progress_bar(session.begin, quiet=quiet or as_json) as watcher:
        summary = run_over(selector, plan, watcher)
    if as_json or not quiet:
        _print(context, summary, out_of(plan), as_json=as_json)
    if not (as_json or quiet):
        _say_where(summary, out_of(plan), lock)


def _print(context: click.Context, summary: "Summary", out: Path, *, as_json: bool) -> None:
    from eldgr_dspy.programs.commands.console import print_results

    unprinted = print_results(summary, as_json=as_json)
    if unprinted:
        say(f"The results are in {out}; they could not be printed: {refusal(unprinted)}")
        context.exit(1)


def _say_where(summary: "Summary", out: Path, lock: Path | None) -> None:
    """Say where the results are, and of each pool whether its lock has seen it before."""
    say(f"Written to {out}: open report.html for the decisions.")
    for name, seen in (summary["confirmation"] or {"seen_before": {}})["seen_before"].items():
        again = f"seen {seen} time{'s' * (seen > 1)} before, so this run confirms nothing"
        say(f"{name}, under {lock}: {again if seen else 'seen for the first time'}.")


def _as_frozen(context: click.Context, lock: Path, rules: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The rules and settings of a lock in the place of those that were not given; the run compares the others."""
    from eldgr_dspy.programs.run.locks import read_lock

    frozen = read_lock(lock)
    given = {name for name in ("rules", *settings) if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    kept = {name: value for name, value in settings.items() if name in given}
    return rules if "rules" in given else ",".join(frozen.rules), frozen.settings | kept


def _without_fresh(context: click.Context) -> str:
    """Which command goes on with a run that was begun anew: not the same, which would begin it anew once more."""
    from_variable = context.get_parameter_source("fresh") is ParameterSource.ENVIRONMENT
    return f"the same command without --fresh goes on{' (unset ELDGR_EVALUATE_FRESH)' if from_variable else ''}"
