"""`eldgr calibrate`: choose the threshold of free text on judged pairs."""

import json
from pathlib import Path

import click

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.system import refusal

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(context_settings={"show_default": True})
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option("--nli", required=True, metavar="MODEL", help="NLI model: a name on the Hugging Face Hub, or a folder.")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File to write.")
@click.option("--precision", type=_SHARE, metavar="P", default=0.9, help="Wanted precision of 'certified'.")
@click.option("--level", type=_SHARE, metavar="P", default=0.95, help="Confidence of its lower bound.")
@click.option("--goal", metavar="TEXT", help="What an answer entails if it answers the question {}.  [default: ours]")
@click.pass_context
def calibrate(
    context: click.Context, /, pairs: Path, nli: str, out: Path, precision: float, level: float, goal: str | None
) -> None:
    """Choose the threshold of free text on judged pairs.

    PAIRS is a file of JSON lines, each an object with question, answer, passages (objects with title and text) and
    supported: whether the passages support all of the answer, and it answers the question. Use data apart from your
    pools, one pair per question. The threshold is chosen on half of the questions and measured on the other half.
    FreeText(load_nli(MODEL), OUT) takes it.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.answer_types.entailment.about import GOAL
    from eldgr_dspy.files import replacing
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.scoring.calibrating import calibrate, read_pairs
    from eldgr_dspy.programs.scoring.nli import load_nli

    context.ensure_object(Session).unbegun = ""
    judged, digest = read_pairs(pairs)
    made = calibrate(load_nli(nli), judged, digest, precision=precision, level=level, goal=goal or GOAL)
    try:
        with replacing(out) as file:
            file.write((json.dumps(made.to_json(), indent=2) + "\n").encode())
    except OSError as error:
        raise click.ClickException(f"The calibration could not be written: {refusal(error)}") from error
    short = "" if made.lower >= made.wanted else f" That is below the wanted {made.wanted:g}; give more pairs."
    try:
        write_out(
            f"Threshold {made.threshold:.3f}, chosen on {made.chosen_on} pairs.\n"
            f"On {made.measured_on} others: {made.certified} certified, precision {made.precision:.3f}, at least "
            f"{made.lower:.3f} ({made.level:g}), recall {made.recall:.3f}.{short}\nWritten to {out}.\n"
        )
    except BrokenPipeError:
        return
    except OSError as error:
        raise click.ClickException(f"OUT is written, but this could not be printed: {refusal(error)}") from error
