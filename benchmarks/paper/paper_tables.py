"""The paper's tables: its rows and columns, and next to each column one with a run's results.

The paper's numbers have their printed digits; the run's are rounded as in all tables of this package.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from benchmarks.paper import published as paper
from benchmarks.paper.comparability import Here, comparable, not_comparable
from benchmarks.paper.published import AUDIT, AUTHORITY, LABELS, SELECTIONS, Lead, PublishedScore
from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, probability, questions, with_sign
from eldgr_dspy.statistics import Contrast, contrast_of_units
from eldgr_dspy.tables.table import Table, difference, record

Cells = tuple[str, str]
"""Two cells: the paper's result, and the run's."""

_SIGN = "Δ is EL-DGR minus the row, in percentage points."
_OTHER_SIGN = "Δ is the row minus EL-DGR here, as the paper prints it in this table, in percentage points."
_DECISIONS = {
    "preserved": "majority answer returned",
    "judge_overrides": "certified judge choice returned",
    "repair_overrides": "certified repair returned",
    "correct_to_incorrect": "right majority made wrong",
    "incorrect_to_correct": "wrong majority made right",
}


def paper_tables(runs: Mapping[str, Here]) -> Iterator[Table]:
    """Yield the tables in the paper's order, then its contrasts computed again and what it prints of ablations."""
    for name in SELECTIONS:
        yield selection_table(name, runs.get(name))
    yield authority_table(runs)
    yield audit_table(runs)
    yield cost_table(runs)
    yield contrasts_table()
    yield corrected_table()
    yield legacy_table()


def _table(
    title: str, headers: Sequence[str], rows: Iterable[tuple[str, Sequence[Cells]]], notes: Iterable[str]
) -> Table:
    heads = [f"{header}, {where}" for header in headers[1:] for where in ("paper", "here")]
    cells = [(row, *(cell for pair in pairs for cell in pair)) for row, pairs in rows]
    return Table(title, (headers[0], *heads), tuple(cells), tuple(notes))


# -- scores and leads -------------------------------------------------------------------------------------------------


def selection_table(name: str, here: Here | None) -> Table:
    """Return the four selectors on one of the paper's data: score, lead of EL-DGR with its interval, exact p."""
    selection, flip = SELECTIONS[name], name == "confirmation"
    kind = shown_type(selection.task)
    scores, delta = f"{' / '.join(kind.scores)} %", f"Δ {kind.scores[0]}" if kind.has_f1 else "Δ"
    rows = []
    for rule, label in LABELS.items():
        pairs = [(_printed_score(selection.scores[rule]), _score(here and here["rules"].get(rule)))]
        lead, contrast = selection.leads.get(rule), here and here["leads"].get(rule)
        if lead is None:
            pairs += [("", "")] * 2
        else:
            p = UNDEFINED if contrast is None else probability(contrast["p"])
            pairs += [_leads(lead, contrast, flip), (_printed_probability(lead.p), p)]
        rows.append((label, pairs))
    title = f"{selection.title} ({selection.table}): {questions(selection.n)} in the paper"
    notes = [_OTHER_SIGN if flip else _SIGN]
    if here is None:
        notes.append(f"{UNDEFINED}: no run was given for it; give {name}=RUN.")
    else:
        title += f", {here['n_scored']:,} of {here['pool']} here"
        notes += [*comparable(here, selection), *not_comparable(here, selection)]
    return _table(title, ("selector", scores, f"{delta} [95% CI]", "exact p"), rows, notes)


def _printed_score(score: PublishedScore) -> str:
    return f"{score.em}" if score.f1 is None else f"{score.em} / {score.f1}"


def _score(rule: Mapping[str, Any] | None) -> str:
    if rule is None:
        return UNDEFINED
    return figure(rule["em"]) if rule["f1"] is None else f"{figure(rule['em'])} / {figure(rule['f1'])}"


def _leads(lead: Lead, here: Any, flip: bool) -> Cells:
    delta, ends = lead.delta, lead.interval
    if flip:
        delta, ends = -delta, (-ends[1], -ends[0])
        here = here and {"delta": -here["delta"], "ci": [-end for end in reversed(here["ci"])]}
    return f"{delta:+} {_printed_interval(ends)}", UNDEFINED if here is None else difference(here)


def _printed_interval(ends: tuple[Decimal, Decimal]) -> str:
    return f"[{ends[0]}, {ends[1]}]"


def _printed_probability(p: Decimal) -> str:
    return f"{p:f}".removeprefix("0")


# -- the judge's value, the decisions, the cost -----------------------------------------------------------------------


def authority_table(runs: Mapping[str, Here]) -> Table:
    """Return the value of full authority for the judge: scalar judge minus majority vote."""
    rows = []
    for name, selection in SELECTIONS.items():
        contrast, cells = runs.get(name, {}).get("full_authority"), (UNDEFINED,) * 3
        if contrast:
            cells = (difference(contrast), probability(contrast["p"]), record(contrast))
        rows.append((selection.title, f"{selection.full_authority:+}", *cells))
    headers = ("scalar judge minus majority", "Δ, paper", "Δ [95% CI], here", "exact p, here", "wins–losses, here")
    note = "The paper states the difference in its text, in percentage points, without interval or p."
    return Table(f"the judge with full authority ({AUTHORITY})", headers, tuple(rows), (note,))


def audit_table(runs: Mapping[str, Here]) -> Table:
    """Return the decision audit: counts of questions, and their share in percent."""
    selection = SELECTIONS["confirmation"]
    here = [(name, runs[name]) for name in SELECTIONS if name in runs]
    audits = [(selection.audit or {}, selection.n), *((run["audit"], run["n"]) for _, run in here)]
    rows = [
        (label, *(_of(audit[key], n) if audit is not None else UNDEFINED for audit, n in audits))
        for key, label in _DECISIONS.items()
    ]
    headers = ("decision of EL-DGR", f"paper, {questions(selection.n)}", *(f"{name}, here" for name, _ in here))
    notes = ["Counts of questions, and percent of them. The paper has an audit of its confirmation alone."]
    if any(run["audit"] is None for _, run in here):
        notes.append(f"{UNDEFINED}: EL-DGR has no result there.")
    return Table(f"decision audit ({AUDIT})", headers, tuple(rows), tuple(notes))


def _of(count: int, n: int) -> str:
    return f"{count:,} ({figure(100 * count / n, 1)})"


def cost_table(runs: Mapping[str, Here]) -> Table:
    """Return seconds a question of judge, verifier and both, and on how many questions all candidates agree."""
    rows, notes = [], [f"{UNDEFINED}: the paper does not print it, no run was given, or it was recorded."]
    for name, selection in SELECTIONS.items():
        here = runs.get(name)
        ours = [None] * 3 if here is None else here["seconds"].values()
        pairs = zip(selection.seconds, ours, strict=True)
        seconds = [(UNDEFINED if theirs is None else str(theirs), figure(own)) for theirs, own in pairs]
        one_class = UNDEFINED if selection.homogeneous is None else f"{selection.homogeneous} of {selection.n}"
        same = UNDEFINED if here is None or here["homogeneous"] is None else f"{here['homogeneous']:,} of {here['n']:,}"
        rows.append((selection.title, [*seconds, (one_class, same)]))
        if here is not None:
            calls = sum(role["calls"] for role in here["roles"].values())
            remark = f"{calls:,} LM calls, of another machine and server than the paper's."
            none = "no LM call was counted, so that its seconds say nothing of the cost of one."
            notes.append(f"{name}: {remark if calls else none}")
    return _table(
        f"cost ({AUDIT})", ("seconds a question", "judge", "verifier", "both", "one class of answers"), rows, notes
    )


# -- computed again ---------------------------------------------------------------------------------------------------


def recompute(lead: Lead, n: int) -> Contrast:
    """Return a published contrast by the package's statistics, from its counts."""
    alike = n - lead.wins - lead.losses
    return contrast_of_units({((100, 0),): lead.wins, ((0, 100),): lead.losses, ((0, 0),): alike})


def agrees(value: float, theirs: Decimal) -> bool:
    """Whether a value, rounded half up to the printed digits, equals the printed one."""
    return figure(value, -int(theirs.as_tuple().exponent)) == f"{theirs:f}"


def ends_apart(again: Contrast, lead: Lead, n: int) -> list[int]:
    """Return by how many questions, steps of 1/n, either end of the interval differs from the printed one."""
    pairs = zip(again.interval, lead.interval, strict=True)
    return [abs(round(end * n / 100) - round(float(theirs) * n / 100)) for end, theirs in pairs]


def contrasts_table() -> Table:
    """Return the nine contrasts as printed and as computed again from their counts."""
    rows, apart = [], []
    for name, selection in SELECTIONS.items():
        for against, lead in selection.leads.items():
            again = recompute(lead, selection.n)
            if not (agrees(again.delta, lead.delta) and agrees(again.p, lead.p)):
                apart.append(f"{name} {against}")
            ends = ends_apart(again, lead, selection.n)
            rows.append(
                (
                    f"{selection.title}: {against}",
                    f"{selection.n:,}",
                    f"{lead.wins}–{lead.losses}{'*' if lead.counts == 'printed' else ''}",
                    f"{lead.delta:+}",
                    with_sign(again.delta),
                    _printed_interval(lead.interval),
                    interval(again.interval),
                    _printed_probability(lead.p),
                    probability(again.p),
                    " and ".join(f"{end}/{selection.n}" if end else "0" for end in ends),
                )
            )
    headers = ("EL-DGR against", "n", "wins–losses", "Δ, paper", "Δ, again", "95% CI, paper", "95% CI, again")
    notes = (
        f"Δ or p is not what is printed: {', '.join(apart)}."
        if apart
        else "Every Δ and every p is what is printed, to its last digit.",
        "The paper prints the counts marked *; of the others its Δ and p leave no choice.",
        "An end of an interval may be one question (1/n) off the paper's, since bootstrap draws differ; the last "
        "column says where it does.",
    )
    title = "the published contrasts, computed again from their counts"
    return Table(title, (*headers, "p, paper", "p, again", "ends apart"), tuple(rows), notes)


# -- ablations, as published ------------------------------------------------------------------------------------------


def corrected_table() -> Table:
    """Return the corrected channel drops as printed."""
    rows = [
        (name, f"{row.em} / {row.f1}", _points(row.over_full), _points(row.over_grpo))
        for name, row in paper.CORRECTION.items()
    ]
    note = (
        f"Published figures alone: one seed, the same {paper.ABLATION_N} questions, every exact p against full "
        f"{paper.ABLATION_P}. eldgr compare full=RUN grpo=RUN shows runs so."
    )
    headers = ("config", "EM / F1 %", "Δ full", "Δ GRPO")
    return Table(f"channel drops, corrected, HotpotQA ({paper.ABLATION})", headers, tuple(rows), (note,))


def _points(delta: int | None) -> str:
    return UNDEFINED if delta is None else f"{delta:+}" if delta else "0"


def legacy_table() -> Table:
    """Return the results in the paper's text for the channel drops that collapsed."""
    rows = (("Full gated RA-MSD", f"{paper.LEGACY_FULL}"), ("channel drops", " to ".join(map(str, paper.LEGACY_DROPS))))
    note = (
        "Published figures alone. The paper keeps this as a diagnostic failure: "
        f"{' to '.join(map(str, paper.LEGACY_BELOW))} points below GRPO, which uses no channel (p < "
        f"{paper.LEGACY_P:f} on every row)."
    )
    return Table(f"channel drops, legacy, GSM8K ({paper.LEGACY})", ("config", "accuracy %"), rows, (note,))
