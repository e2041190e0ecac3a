"""`eldgr plan`: how many questions a gain needs."""

import math
from pathlib import Path

import click

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write

_PERCENT = click.FloatRange(0, 100, min_open=True)
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(context_settings={"show_default": True})
@click.option(
    "--gain", type=_PERCENT, required=True, metavar="%", help="Wins minus losses, in percent of the questions."
)
@click.option(
    "--discordant", type=_PERCENT, required=True, metavar="%", help="Wins plus losses, in percent of the questions."
)
@click.option("--power", type=_SHARE, metavar="P", default=0.8, help="Probability of detecting the gain.")
@click.option("--alpha", type=_SHARE, metavar="P", default=0.05, help="Level of the two-sided exact McNemar test.")
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
