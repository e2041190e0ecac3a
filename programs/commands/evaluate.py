"""`eldgr evaluate` and `eldgr freeze`: evaluate rules on pools, and write what a later evaluation must follow."""

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from eldgr_dspy.base.system import refusal
from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import (
    ABOVE_0,
    FILE,
    FROM_1,
    OUT,
    Command,
    names_in,
    replay_option,
    role_options,
    with_options,
)
from eldgr_dspy.programs.commands.output import Form, form_options, write
from eldgr_dspy.programs.commands.role_models import Models, named_judges
from eldgr_dspy.showing import display_text

if TYPE_CHECKING:
    from eldgr_dspy.figures.results.summary_fields import Summary
    from eldgr_dspy.programs.run.plan import Plan
    from eldgr_dspy.programs.selector import Selector

# The groups of the options for models and the rule, as `GroupedCommand` has them.
OF_ROLES = {
    "Models": "lm judge judges deriver repairer api_base",
    "The rule": "rules answer certificate derivation consult set",
}
_LIMITS = (
    click.option("--fresh", is_flag=True, help="Start again; the old journal is kept."),
    click.option("--max-failures", default="0", metavar="N|P%", help="Questions that may fail before the run stops."),
    click.option("--max-calls", type=FROM_1, metavar="N", help="Most requests that the run may send."),
    click.option(
        "--max-cost", type=ABOVE_0, metavar="USD", help="Most dollars to spend; requests under way may exceed it."
    ),
)


class GroupedCommand(click.Command):
    """A command whose options are listed in groups, by the heading of each; the last one, Output, has the rest."""

    def __init__(self, *arguments: Any, groups: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group under its heading."""
        options = (option for option in self.get_params(ctx) if isinstance(option, click.Option))
        records = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        groups = {heading: [records.pop(name) for name in names.split()] for heading, names in self.groups.items()}
        for heading, rows in {**groups, "Output": [*records.values()]}.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def limit_options(call: str) -> Callable[[Command], Command]:
    """Return `--fresh` and the options of a run's limits; `call` says what the timeout limits."""
    text = f"Limit for one {call}, with retries."
    timeout = click.option("--timeout", type=ABOVE_0, default=600.0, metavar="SECONDS", help=text)
    return with_options((*_LIMITS, timeout))


@click.command(
    cls=GroupedCommand,
    groups={
        **OF_ROLES,
        "The run": "out limit workers replay fresh freeze engine",
        "Limits": "timeout max_failures max_abstentions max_calls max_cost",
    },
)
@click.argument("pools", nargs=-1, required=True, type=FILE)
@role_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help="Run directory.  [default: runs/NAME]",
)
@click.option("--limit", type=FROM_1, help="Questions to take from each pool.  [default: all]")
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Questions in parallel.  [default: 8 with a model, else 1]"
)
@replay_option
@click.option("--freeze", type=FILE, metavar="FILE", help="File of eldgr freeze; refuse anything else.")
@click.option("--engine", type=click.Choice(["ray"]), help="Ask in the processes of a Ray cluster.")
@limit_options("role on one question")
@click.option(
    "--max-abstentions", metavar="N|P%", help="Questions with an unusable reply before the run stops.  [default: all]"
)
@click.option("--dry-run", is_flag=True, help="Print the most that the run would ask, and stop.")
@form_options()
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.pass_context
def evaluate(
    context: click.Context,
    /,
    pools: tuple[str | Path, ...],
    out: str | Path | None,
    models: Models,
    rules: str,
    settings: dict[str, Any],
    replay: dict[str, Path],
    fresh: bool,
    freeze: Path | None,
    engine: str | None,
    dry_run: bool,
    form: Form,
    quiet: bool,
    **options: Any,
) -> None:
    """Evaluate rules on pools.

    POOLS are .jsonl, .jsonl.gz or .parquet files. All rules see the same replies of the judge and the other roles.
    Without a model the heuristic roles are used: a floor that needs no LM. Results are in the run directory:
    journal.jsonl, decisions.jsonl, summary.json, record.json, report.html and questions.html. Beyond 20,000 questions
    the last one is left to eldgr report --pages. To resume a stopped run, give the same command again, without --fresh.

    Ctrl-C or SIGTERM waits for the calls under way and keeps their replies. A second one abandons them.
    """
    from eldgr_dspy.programs.commands.console import progress_bar
    from eldgr_dspy.programs.run.evaluation import evaluate as run_over
    from eldgr_dspy.programs.run.plan import Plan, out_of

    session = context.ensure_object(Session)
    if fresh:
        session.resume = without_fresh(context)
    if quiet:
        warnings.simplefilter("ignore")  # until `main` returns
    if freeze is not None:
        rules, settings = _from_freeze(context, freeze, rules, settings)
    if not models.judges:  # with --judges, a recording of another judge may have its name wrong
        models = replace(models, judges=dict.fromkeys(filter(None, replay)))
    plan = {"pools": pools, "out": out, "rules": names_in(rules), "fresh": fresh, "freeze": freeze, **options}
    prepare = partial(prepare_run, models, settings, replay, plan)
    bar = progress_bar(session.begin, quiet=quiet or form == "json")
    if engine is not None and not dry_run:
        from eldgr_dspy.programs.run.ray_engine import evaluate_on_ray

        with bar as watcher:
            summary = evaluate_on_ray(prepare, watcher)
    else:
        with prepare() as (selector, full_plan):
            if dry_run:
                from eldgr_dspy.programs.run.forecast import forecast
                from eldgr_dspy.tables.plan_tables import forecast_table

                most = forecast(selector, full_plan)
                write(most, [forecast_table(most)], form, None, "The forecast")
                return
            with bar as watcher:
                summary = run_over(selector, full_plan, watcher)
    _print(context, summary, out_of(Plan(pools, out, freeze=freeze)), form, quiet=quiet)


@contextmanager
def prepare_run(
    models: Models, settings: Mapping[str, Any], replay: Mapping[str, Path], plan: Mapping[str, Any]
) -> "Iterator[tuple[Selector, Plan]]":
    """Make the selector and the plan of a run from what was typed; workers do so too, with connections of their own."""
    from eldgr_dspy.programs.run.plan import Plan

    selector = models.selector(settings)
    asks = any((*models.by_role.values(), *models.judges.values())) or selector.certifier is not None
    full_plan = Plan(
        **{**plan, "workers": plan["workers"] or (8 if asks else 1)},
        judges=named_judges(models, settings, replay),
        replay=replay,
    )
    with models.asking(selector):
        yield selector, full_plan


def _print(context: click.Context, summary: "Summary", out: Path, form: Form, *, quiet: bool) -> None:
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.run.results import left_out
    from eldgr_dspy.tables.run import main_tables

    if form != "json" and quiet:
        return
    try:
        print_tables(summary, main_tables(summary), form)
    except OSError as error:
        say(f"The results are in {out}; they could not be printed: {refusal(error)}")
        context.exit(1)
    if form == "json":
        return
    say(f"Written to {out}: open report.html for the decisions.")
    if why := left_out(out, sum(pool["n"] for pool in summary["pools"].values())):
        say(f"Note: the page of questions was not written: {why}")
    say(f"To print all tables: {shlex.join(['eldgr', 'report', str(out)])}")


def _from_freeze(
    context: click.Context, freeze: Path, rules: str, settings: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the given rules and settings, with those of the freeze for the rest; the run checks the given ones."""
    from eldgr_dspy.programs.run.freezes import read_freeze

    state = read_freeze(freeze)
    source = context.get_parameter_source  # None for what --set gives
    explicit = {name for name in ("rules", *settings) if source(name) is not ParameterSource.DEFAULT}
    choices = {name: value for name, value in settings.items() if name in explicit}
    if "rules" not in explicit:
        state.refuse_own_rules(state.rules)
        rules = ",".join(state.rules)
    return rules, state.arguments(choices)


@click.command(cls=GroupedCommand, groups={**OF_ROLES, "Models": f"{OF_ROLES['Models']} heuristic"})
@click.option("--heuristic", is_flag=True, help="Freeze the heuristic role where no model is given.")
@role_options
@click.option("--out", type=OUT, default=Path("rule.freeze.json"), help="File to write.")
@click.option("--run", type=FILE, metavar="RUN", help="Run to decide again after an upgrade.")
def freeze(out: Path, run: Path | None, models: Models, rules: str, heuristic: bool, settings: dict[str, Any]) -> None:
    """Write rules, settings and roles to a freeze.

    eldgr evaluate --freeze takes rules and settings from it and refuses anything else. Give the models there again. No
    LM is asked here. Heuristic roles only compare words, so they are frozen only if --heuristic says so.
    """
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.rule_roles import roles_of
    from eldgr_dspy.programs.run import freezes

    selector = models.selector(settings)
    roles = {role for rule in names_in(rules) for role in roles_of(rule, selector.type)}
    roles -= {"judge"} if models.judges else set()
    lacking = [role for role, model in models.by_role.items() if role in roles and model is None]
    if lacking and not heuristic:
        raise click.UsageError(
            f"No model is given for the {' and the '.join(lacking)}, whom the rules may ask. Give --lm MODEL, or "
            "--heuristic to freeze heuristic roles, which only compare words."
        )
    with models.asking(selector):
        freeze = freezes.write_freeze(selector, names_in(rules), out, named_judges(models, settings), run)
    try:
        with suppress(BrokenPipeError):
            write_out(display_text(f"{out}: {', '.join(freeze.rules)} frozen as {freeze.sha256[:16]}.\n"))
    except OSError as error:
        raise click.ClickException(
            f"The freeze is in {out}, but this could not be printed: {refusal(error)}"
        ) from error


def without_fresh(context: click.Context) -> str:
    """Return how to resume a run that was started with --fresh, which would start it again."""
    from_variable = context.get_parameter_source("fresh") is ParameterSource.ENVIRONMENT
    unset = f" (unset ELDGR_{str(context.info_name).upper()}_FRESH)" if from_variable else ""
    return f"run the same command without --fresh to resume{unset}"
