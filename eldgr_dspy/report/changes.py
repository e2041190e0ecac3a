"""The decisions of a run that changed something, as the report lists them: losses first, `SHOWN` a pool."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.audit import became
from eldgr_dspy.figures.results.audit_results import Became
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.figures.results.summary import Summary
from eldgr_dspy.formatting import UNDEFINED
from eldgr_dspy.named_judges import first_of, unlabelled
from eldgr_dspy.report.templates import clip
from eldgr_dspy.tables.table import Table

SHOWN = 50
"""How many decisions of a pool are listed; the page says how many more there are."""

_LONGEST = 300  # characters of one text

OUTCOMES: dict[Became, str] = {
    "lost": "correct to incorrect",
    "won": "incorrect to correct",
    "wrong": "incorrect before and after",
    "right": "correct before and after",
    "unscored": "not scored against majority",
}
"""The outcomes of an answer in words, in the order in which they are shown."""


class Changed(NamedTuple):
    """How many decisions of a pool changed something, and the table of those that are shown."""

    n: int
    table: Table


class Changes:
    """What the report shows of decisions, which are taken one by one: `SHOWN` an outcome are kept, and a count.

    Only those of `eldgr` are shown, of the first of several judges.
    """

    def __init__(self) -> None:
        self._rows = defaultdict[tuple[str, str, Became], list[tuple[str, ...]]](list)
        self._n = Counter[tuple[str, str]]()

    def add(self, row: Decided) -> None:
        """Take a decision of any rule."""
        if unlabelled(row["rule"]) == "eldgr" and changed(row):
            outcome = outcome_of(row)
            kept = self._rows[row["pool"], row["rule"], outcome]
            self._n[row["pool"], row["rule"]] += 1
            if len(kept) < SHOWN:
                kept.append(_row(row, outcome))

    def of(self, summary: Summary) -> dict[str, Changed]:
        """Return what is shown of each pool of a summary.

        Raises:
            ArgumentError: A decision belongs to a pool that the summary does not name.
        """
        pools = summary["pools"]
        for pool, _ in self._n:
            if pool not in pools:
                raise ArgumentError(
                    f"pool={pool!r} of a decision is not in the summary, which names "
                    f"{', '.join(map(repr, pools)) or 'none'}; give the decisions and the summary of the same run."
                )
        return {name: self._changed(name, first_of("eldgr", of["rules"])) for name, of in pools.items()}

    def _changed(self, pool: str, rule: str) -> Changed:
        rows = [row for outcome in OUTCOMES for row in self._rows.get((pool, rule, outcome), [])][:SHOWN]
        n = self._n[pool, rule]
        more = [f"{n - len(rows):,} more are not shown here; the decisions hold them all."] if n > len(rows) else []
        headers = ("question", "outcome", "asks", "consensus", "chosen", "gold", "decided by", "certificate")
        return Changed(n, Table("decisions that changed something", headers, tuple(rows), tuple(more)))


def changes_in(decisions: Iterable[Decided]) -> Changes:
    """Return what the report shows of decisions."""
    changes = Changes()
    for decided in decisions:
        changes.add(decided)
    return changes


def _row(row: Decided, outcome: Became) -> tuple[str, ...]:
    texts = (row["question"], row["consensus"], row["answer"], " · ".join(row["gold"][:5]) or None)
    asks, consensus, chosen, gold = (UNDEFINED if text is None else clip(text, _LONGEST) for text in texts)
    return (row["id"], OUTCOMES[outcome], asks, consensus, chosen, gold, row["branch"], certificate(row))


def outcome_of(row: Decided) -> Became:
    """Return the outcome of majority's answer in a decision."""
    before, after = row["majority_em"], row["em"]
    return "unscored" if before is None or after is None else became(before, after)


def changed(row: Decided) -> bool:
    """Return whether a decision changed something: another branch than consensus decided, or the score differs."""
    return row["branch"] in ("certified", "judge", "repair") or outcome_of(row) in ("lost", "won")


def certificate(row: Decided) -> str:
    """Return in words what supports the answer of a decision."""
    if row["certified"] is None:
        return "inapplicable"
    if not row["certified"]:
        return "uncertified"
    return f"certified, {row['witness']['level']}" if row["witness"] else "certified by a checked derivation"
