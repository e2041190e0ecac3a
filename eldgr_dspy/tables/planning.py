"""The tables of a plan: how many questions a gain needs, and what a finished run could have seen."""

from collections.abc import Iterator

from eldgr_dspy.figures.planning import ContrastSeen, QuestionsNeeded, RunSeen
from eldgr_dspy.formatting import UNDEFINED, figure, questions, signed
from eldgr_dspy.tables.table import Table, record


def needed_table(needed: QuestionsNeeded) -> Table:
    """Return the table of `figures.planning.plan_ahead`."""
    title = f"questions to see {signed(needed['gain'])} with power {needed['power']:g} at alpha {needed['alpha']:g}"
    headers = ("discordant %", "questions", "power there", "wins–losses to expect")
    row = (
        figure(needed["discordant"]),
        f"{needed['questions']:,}",
        figure(needed["power_there"], 4),
        f"{needed['wins']:,.0f}–{needed['losses']:,.0f}",
    )
    return Table(title, headers, (row,))


def seen_tables(run: RunSeen) -> Iterator[Table]:
    """Yield the tables of `figures.planning.what_it_saw`, one a pool."""
    level = f"with power {run['power']:g} at alpha {run['alpha']:g}"
    wanted = () if run["gain"] is None else (f"n for +{run['gain']:g}",)
    headers = ("rule", "against", "wins–losses", "discordant %", "significant from", "sees gains from", *wanted)
    for name, pool in run["pools"].items():
        rows = tuple(_row(contrast)[: len(headers)] for contrast in pool["contrasts"])
        notes = ["There is no contrast: no question has a gold answer, or eldgr has no result."] if not rows else []
        if any(UNDEFINED in row for row in rows):
            notes.append(f"{UNDEFINED}: too few questions are discordant for it.")
        if wanted and run["gain"] is not None and any(_beyond(contrast, run["gain"]) for contrast in pool["contrasts"]):
            notes.append(f"{UNDEFINED} under {wanted[0]}: more than 10,000,000 questions would be needed.")
        yield Table(f"{name}: what {questions(pool['n'])} could show {level}", headers, rows, tuple(notes))


def _beyond(contrast: ContrastSeen, gain: float) -> bool:
    return contrast["questions"] is None and contrast["discordant"] >= gain


def _row(contrast: ContrastSeen) -> tuple[str, ...]:
    split, needed = contrast["least_significant"], contrast["questions"]
    return (
        contrast["rule"],
        contrast["against"],
        record(contrast),
        figure(contrast["discordant"]),
        f"{split[0]:,}–{split[1]:,}" if split else UNDEFINED,
        signed(contrast["detectable_gain"]),
        f"{needed:,}" if needed else UNDEFINED,
    )
