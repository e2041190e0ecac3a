"""The decisions of a run that changed something, as the report shows them: losses first, `SHOWN` a pool."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.abstention_kinds import FAILED
from eldgr_dspy.figures.audit import became
from eldgr_dspy.figures.results.audit_results import Became
from eldgr_dspy.figures.results.decision import Decided, Witnessed
from eldgr_dspy.figures.results.summary import Summary
from eldgr_dspy.named_judges import first_of, unlabelled
from eldgr_dspy.report.templates import clip
from eldgr_dspy.tables.table import Table

SHOWN = 50
"""How many decisions of a pool are shown in full; the page says how many more there are."""

_REASONS = 50  # distinct reasons of abstention that are listed; some reasons quote the reply, so they need a bound
_LONGEST = 600  # characters of one text that are shown
_GOLDS = 5  # gold answers of a question that are shown

_clip = partial(clip, longest=_LONGEST)

OUTCOMES: dict[Became, str] = {
    "lost": "correct to incorrect",
    "won": "incorrect to correct",
    "wrong": "incorrect before and after",
    "right": "correct before and after",
    "unscored": "not scored against majority",
}
"""The outcomes of an answer in words, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Change:
    """One decision that changed something, as it is shown; None is a missing answer."""

    pool: str
    id: str
    question: str
    consensus: str | None
    answer: str | None
    gold: tuple[str, ...]
    outcome: Became
    verdict: str
    branch: str
    certificate: str
    witness: Mapping[str, Any] | None
    remarks: tuple[str, ...]


@dataclass(slots=True)
class _Reasons:
    """Why roles abstained or failed, counted by role and reason; beyond a bound, reasons are counted together."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: int = 0

    def add(self, role: str, reason: str) -> None:
        if (role, reason) in self.counts or len(self.counts) < _REASONS:
            self.counts[role, reason] += 1
        else:
            self.others += 1

    def table(self, title: str) -> Table:
        """Return the reasons, the most frequent first."""
        rows = [(role, reason, f"{count:,}") for (role, reason), count in self.counts.most_common()]
        if self.others:
            rows.append(("any", "other reasons", f"{self.others:,}"))
        return Table(title, ("role", "reason", "questions"), tuple(rows))


@dataclass(slots=True)
class Kept:
    """What is kept of a pool's decisions: at most `SHOWN` an outcome, and counts of reasons; memory stays flat."""

    changes: dict[Became, list[Change]] = field(default_factory=lambda: {outcome: [] for outcome in OUTCOMES})
    n_changed: int = 0
    abstentions: _Reasons = field(default_factory=_Reasons)
    failures: _Reasons = field(default_factory=_Reasons)

    def add(self, row: Decided) -> None:
        """Take a decision of `eldgr`."""
        for role, reason in row["abstentions"].items():
            failed = reason.startswith(FAILED)
            (self.failures if failed else self.abstentions).add(role, _clip(reason.removeprefix(FAILED)))
        outcome = outcome_of(row)
        if changed(row):
            self.n_changed += 1
            if len(self.changes[outcome]) < SHOWN:
                self.changes[outcome].append(_change(row, outcome))

    def shown(self) -> list[Change]:
        """Return the changes in the order in which they are shown."""
        return [change for changes in self.changes.values() for change in changes][:SHOWN]


class Changes:
    """What the report shows of decisions, which are taken one by one and not kept.

    Only those of `eldgr` are shown, of the first of several judges.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Kept] = {}

    def add(self, row: Decided) -> None:
        """Take a decision of any rule."""
        if unlabelled(row["rule"]) == "eldgr":
            self._kept.setdefault((row["pool"], row["rule"]), Kept()).add(row)

    def of(self, summary: Summary) -> dict[str, Kept]:
        """Return what is shown of each pool of a summary.

        Raises:
            ArgumentError: A decision belongs to a pool that the summary does not name.
        """
        pools = summary["pools"]
        for pool, _ in self._kept:
            if pool not in pools:
                raise ArgumentError(
                    f"pool={pool!r} of a decision is not in the summary, which names "
                    f"{', '.join(map(repr, pools)) or 'none'}; give the decisions and the summary of the same run."
                )
        return {name: self._kept.get((name, first_of("eldgr", of["rules"])), Kept()) for name, of in pools.items()}


def changes_in(decisions: Iterable[Decided]) -> Changes:
    """Return what the report shows of decisions."""
    changes = Changes()
    for decided in decisions:
        changes.add(decided)
    return changes


def _change(row: Decided, outcome: Became) -> Change:
    gold = [_clip(answer) for answer in row["gold"]]
    more = len(gold) - _GOLDS
    return Change(
        pool=row["pool"],
        id=row["id"],
        question=_clip(row["question"]),
        consensus=_answer(row["consensus"]),
        answer=_answer(row["answer"]),
        gold=(*gold[:_GOLDS], *([f"and {more} more"] if more > 0 else [])),
        outcome=outcome,
        verdict=OUTCOMES[outcome],
        branch=row["branch"],
        certificate=certificate(row),
        witness=_witness(row["witness"]),
        remarks=tuple(_remarks(row)),
    )


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
    if row["certified"] and row["witness"] is None:
        return "certified by a checked derivation"
    return "certified" if row["certified"] else "uncertified"


def _witness(witness: Witnessed | None) -> Mapping[str, Any] | None:
    if witness is None:
        return None
    where = "title of passage" if witness["field"] == "title" else "passage"
    return {
        "title": _answer(witness["title"]),
        "place": f"{where} [{witness['passage']}], characters {witness['start']} to {witness['end']}",
        "before": witness["before"][-_LONGEST:],
        "text": _clip(witness["text"]),
        "after": witness["after"][:_LONGEST],
        "level": witness["level"],
        "flags": ", ".join(flag.replace("_", " ") for flag in witness["flags"]),
    }


def _remarks(row: Decided) -> Iterator[str]:
    if row["preference"] is not None:
        yield f"the judge prefers candidate [{row['preference']}]"
    if row["repair"] is not None and row["branch"] != "repair":
        yield f"proposed as repair: {_clip(row['repair'])}"
    for role, reason in row["abstentions"].items():
        said = f"the {role}'s call failed" if reason.startswith(FAILED) else f"the {role} abstained"
        yield f"{said}: {_clip(reason.removeprefix(FAILED))}"
    if row["tie"]:
        yield "consensus is the earliest of a tie"


def _answer(text: object) -> str | None:
    return None if text is None else _clip(text)
