"""`eldgr bound` and `eldgr plan`, before a run: each rule's bounds over all judges, the questions that a gain needs."""

import math
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from eldgr_dspy.decision import RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands.options import (
    FILE,
    SHARE,
    answer_option,
    certificate_option,
    derivation_option,
    names_in,
    rules_option,
    set_option,
)
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write

_TEST_RULES = "majority,certified,eldgr,near(0),near(1),near(2),judge"
_MORE_TEST_RULES = ("support(0)", "support(1)", "support")  # where the evidence certifies, they are eldgr
_PERCENT = click.FloatRange(0, 100, min_open=True)


@click.command()
@click.argument("pools", nargs=-1, required=True, type=FILE)
@rules_option()
@click.option(
    "--worst",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Name the widest rules that lose at most this many percentage points on new questions.",
)
@answer_option
@certificate_option
@derivation_option
@set_option("homogeneous", "refusal", "refusals")
@form_options()
@out_option()
@click.pass_context
def bound(
    context: click.Context,
    /,
    pools: tuple[Path, ...],
    rules: str,
    worst: float | None,
    form: Form,
    out: Path | None,
    **settings: Any,
) -> None:
    """Bound each rule's accuracy and loss over all judges.

    Tries every judge, and every span of the evidence as a repair; where a derivation certifies, every number that
    --derivation cannot exclude. No LM is asked. Without gold answers, it still counts the questions on which a role can
    change the answer. MODULE:FUNCTION imports the module, which runs its code.

    With --worst it also tests rules from narrow to wide, by default majority, certified, eldgr, near(0), near(1),
    near(2) and judge, in arithmetic also support(0), support(1) and support, and names the widest that pass.
    """
    from eldgr_dspy.answer_types import answer_type
    from eldgr_dspy.figures.authority import allowance, pool_authority
    from eldgr_dspy.pools import open_pools
    from eldgr_dspy.rule.questions import Settings
    from eldgr_dspy.rule.rules import require_no_judge, rule_named
    from eldgr_dspy.tables.plan_tables import authority_table

    tests_default = worst is not None and context.get_parameter_source("rules") is ParameterSource.DEFAULT
    names = names_in(_TEST_RULES if tests_default else rules)
    if not names:
        raise click.UsageError(
            f"--rules must name at least one rule; got {rules!r}. Give one or more of {', '.join(RULES)}."
        )
    for name in names:
        require_no_judge(name, "rules")
        rule_named(name, "rules")
    if worst is not None:
        allowance(dict.fromkeys(names), worst)  # refuses before the pools are read
    rule_settings = Settings(**settings)
    bounds, passing = {}, {}
    for pool in open_pools(pools, rule_settings.type):
        task = answer_type(pool.task).task
        test_rules = [*names, *_MORE_TEST_RULES] if tests_default and task == "arithmetic" else names
        authority = pool_authority(pool.rows(), pool.task, rule_settings, test_rules, pool.name)
        bounds[pool.name] = authority
        passing[pool.name] = None if worst is None else allowance(authority["price"], worst, task)
    tables = (authority_table(name, pool, passing[name]) for name, pool in bounds.items())
    value = {name: pool if worst is None else {**pool, "allowed": passing[name]} for name, pool in bounds.items()}
    write({"pools": value}, tables, form, out, "The bounds")


@click.command()
@click.option(
    "--gain", type=_PERCENT, required=True, metavar="%", help="Wins minus losses, in percent of the questions."
)
@click.option(
    "--discordant", type=_PERCENT, required=True, metavar="%", help="Wins plus losses, in percent of the questions."
)
@click.option("--power", type=SHARE, metavar="P", default=0.8, help="Probability of detecting the gain.")
@click.option("--alpha", type=SHARE, metavar="P", default=0.05, help="Level of the two-sided exact McNemar test.")
@form_options()
@out_option()
def plan(gain: float, discordant: float, power: float, alpha: float, form: Form, out: Path | None) -> None:
    """Compute how many questions a gain needs.

    A pilot run counts its discordant questions: they are the wins plus losses of its contrasts.
    """
    from eldgr_dspy.statistics import mcnemar_power, questions_needed
    from eldgr_dspy.tables.plan_tables import needed_table

    for name, percent in (("gain", gain), ("discordant", discordant)):
        if math.isnan(percent):  # no range refuses it
            raise ArgumentError(f"{name}=nan must be above 0 and at most 100, in percent of the questions.")
    if gain > discordant:
        raise ArgumentError(
            f"gain={gain:g} is more than discordant={discordant:g}: wins minus losses can't be more than wins and "
            "losses together. Give both in percent of all questions."
        )
    shares = gain / 100.0, discordant / 100.0
    n = questions_needed(*shares, power=power, alpha=alpha)
    questions = {
        "gain": gain,
        "discordant": discordant,
        "alpha": alpha,
        "power": power,
        "questions": n,
        "power_there": mcnemar_power(n, *shares, alpha=alpha),
        "wins": n * (shares[1] + shares[0]) / 2.0,
        "losses": n * (shares[1] - shares[0]) / 2.0,
    }
    write(questions, iter([needed_table(questions)]), form, out, "The plan")
