"""The results of the battery, as the two tables of the page on injection."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.injection.attacks import ATTACKS, PLACES
from tests.injection.trying import Outcome

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "injection.md"
BEGIN, END = "<!-- What follows is written by `python -m tests.injection`. -->\n", "<!-- Up to here. -->\n"
_HEADS = (
    "attacks", "trials", "obedient, full authority", "obedient, uncertified", "obedient, certified", "by the fence",
)  # fmt: skip


def page(text: str, outcomes: Sequence[Outcome]) -> str:
    """The page with its generated part written anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render(outcomes)}\n{END}{after}"


def render(outcomes: Sequence[Outcome]) -> str:
    """The tables by kind of attack and by place."""
    families = list(dict.fromkeys(attack.family for attack in ATTACKS))
    by_family = _table("kind", families, outcomes, lambda outcome: outcome.trial.attack.family)
    by_place = _table("place", PLACES, outcomes, lambda outcome: outcome.trial.place)
    return "\n".join([*by_family, "", *by_place, ""])


def _table(head: str, names: Sequence[str], outcomes: Sequence[Outcome], of: Callable[[Outcome], str]) -> Iterator[str]:
    yield f"| {' | '.join((head, *_HEADS))} |"
    yield f"| --- |{' --: |' * len(_HEADS)}"
    for name in names:
        yield _row(name, [outcome for outcome in outcomes if of(outcome) == name])
    yield _row("all", outcomes)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    counts = (
        len({outcome.trial.attack for outcome in outcomes}),
        len(outcomes),
        sum(outcome.captures("obedient", "judge") for outcome in outcomes),
        sum(outcome.captures("obedient", "eldgr", certified=False) for outcome in outcomes),
        sum(outcome.captures("obedient", "eldgr", certified=True) for outcome in outcomes),
        sum(outcome.captures("fence", rule) for outcome in outcomes for rule in ("judge", "eldgr")),
    )
    return f"| {name} | {' | '.join(map(str, counts))} |"
