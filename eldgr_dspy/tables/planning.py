"""The tables of a plan: how many questions a gain needs, and what a finished run could have seen."""

from collections.abc import Iterator

from eldgr_dspy.figures.planning import ContrastSeen, QuestionsNeeded, RunSeen
from eldgr_dspy.formatting import UNDEFINED, figure, questions, signed
from eldgr_dspy.tables.table import Table, record


def needed_table(found: QuestionsNeeded) -> Table:
    """Return the table of `figures.planning.plan_ahead`."""
    title = f"questions to see {signed(found['gain'])} with power {found['power']:g} at alpha {found['alpha']:g}"
    headers = ("discordant %", "questions", "power there", "wins–losses to expect")
    row = (
        figure(found["discordant"]),
        f"{found['questions']:,}",
        figure(found["power_there"], 4),
        f"{found['wins']:,.0f}–{found['losses']:,.0f}",
    )
    return Table(title, headers, (row,))


def seen_tables(found: RunSeen) -> Iterator[Table]:
    """Yield the tables of `figures.planning.what_it_saw`, one a pool."""
    level = f"with power {found['power']:g} at alpha {found['alpha']:g}"
    wanted = () if found["gain"] is None else (f"n for +{found['gain']:g}",)
    headers = ("rule", "against", "wins–losses", "discordant %", "significant from", "sees gains from", *wanted)
    for name, pool in found["pools"].items():
        rows = tuple(_row(one)[: len(headers)] for one in pool["contrasts"])
        notes = ["There is no contrast: no question has a gold answer, or eldgr has no result."] if not rows else []
        if any(UNDEFINED in row for row in rows):
            notes.append(f"{UNDEFINED}: too few questions are discordant for it.")
        if wanted and found["gain"] is not None and any(_beyond(one, found["gain"]) for one in pool["contrasts"]):
            notes.append(f"{UNDEFINED} under {wanted[0]}: more than 10,000,000 questions would be needed.")
        yield Table(f"{name}: what {questions(pool['n'])} could show {level}", headers, rows, tuple(notes))


def _beyond(one: ContrastSeen, gain: float) -> bool:
    return one["questions"] is None and one["discordant"] >= gain


def _row(one: ContrastSeen) -> tuple[str, ...]:
    split, needed = one["least_significant"], one["questions"]
    return (
        one["rule"],
        one["against"],
        record(one),
        figure(one["discordant"]),
        f"{split[0]:,}–{split[1]:,}" if split else UNDEFINED,
        signed(one["detectable_gain"]),
        f"{needed:,}" if needed else UNDEFINED,
    )
