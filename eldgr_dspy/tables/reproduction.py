"""The paper's tables as text cells: its rows and columns, and next to each column one with the run's results.

The input is the result of `eldgr_dspy.comparisons.reproduction.reproduce`. The paper's numbers have their printed
digits; the run's are rounded as in all tables of this package.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal, get_args

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.comparisons.comparability import Here
from eldgr_dspy.comparisons.published import (
    AUDIT,
    AUTHORITY,
    CORRECTED,
    LABELS,
    LEGACY,
    PUBLISHED,
    Lead,
    PublishedScore,
    Seconds,
)
from eldgr_dspy.comparisons.reproduction import Beside, Recomputed, Reproduction
from eldgr_dspy.figures.results.summary import Delta, RuleContrast, Scores
from eldgr_dspy.formatting import UNDEFINED, figure, interval, probability, questions, signed
from eldgr_dspy.tables.table import Table, difference, record

Cells = tuple[str, str]
"""Two cells: the paper's result, and the run's."""

_NOTHING: Cells = ("", "")
_SIGN = "Δ is EL-DGR minus the row, in percentage points."
_TURNED = "Δ is the row minus EL-DGR here, as the paper prints it in this table, in percentage points."

_Counted = Literal["preserved", "judge_overrides", "repair_overrides", "correct_to_incorrect", "incorrect_to_correct"]
_Timed = Literal["judge", "verifier", "both"]
_TIMED: tuple[_Timed, ...] = get_args(_Timed)
_AUDIT: Mapping[_Counted, str] = {
    "preserved": "majority answer returned",
    "judge_overrides": "certified judge choice returned",
    "repair_overrides": "certified repair returned",
    "correct_to_incorrect": "right majority made wrong",
    "incorrect_to_correct": "wrong majority made right",
}


def reproduction_tables(reproduction: Reproduction) -> Iterator[Table]:
    """Yield the tables in the paper's order, then its contrasts computed again and what it prints of ablations."""
    for name, data in reproduction["data"].items():
        yield selection_table(name, data, beside=_any_run(reproduction))
    yield authority_table(reproduction)
    yield audit_table(reproduction)
    yield cost_table(reproduction)
    yield contrasts_table(reproduction)
    yield corrected_table()
    yield legacy_table()


def _any_run(reproduction: Reproduction) -> bool:
    return any(data["here"] for data in reproduction["data"].values())


def _table(
    title: str, headers: Sequence[str], rows: Iterable[tuple[str, Sequence[Cells]]], notes: Iterable[str], beside: bool
) -> Table:
    """A table of pairs of cells; without a run, of only the paper's cells."""
    first, *others = headers
    heads = [f"{header}, {where}" for header in others for where in ("paper", "here")] if beside else others
    cells = [(row, *(cell for pair in pairs for cell in pair[: 1 + beside])) for row, pairs in rows]
    return Table(title, (first, *heads), tuple(cells), tuple(notes))


# -- scores and leads -------------------------------------------------------------------------------------------------


def selection_table(name: str, data: Beside, *, beside: bool) -> Table:
    """Return the four selectors on one of the paper's data: score, lead of EL-DGR with its interval, exact p."""
    published, here = PUBLISHED[name], data["here"]
    turned = name == "confirmation"
    kind = shown_type(published.task)
    scores, delta = f"{' / '.join(kind.scores)} %", f"Δ {kind.scores[0]}" if kind.has_f1 else "Δ"
    rows = []
    for rule, label in LABELS.items():
        pairs = [(_printed_score(published.scores[rule]), _score(here and here["rules"].get(rule)))]
        lead, contrast = published.leads.get(rule), here and here["leads"].get(rule)
        pairs += [_NOTHING] * 2 if lead is None else [_leads(lead, contrast, turned), _probabilities(lead, contrast)]
        rows.append((label, pairs))
    notes = [_TURNED if turned else _SIGN, *data["comparable"], *data["not_comparable"]]
    if beside and not data["here"]:
        notes.append(f"{UNDEFINED}: no run was given for it; give {name}=RUN.")
    title = f"{published.title} ({published.table}): {questions(published.n)} in the paper"
    title += f", {here['n_scored']:,} of {here['pool']} here" if here else ""
    return _table(title, ("selector", scores, f"{delta} [95% CI]", "exact p"), rows, notes, beside)


def _printed_score(score: PublishedScore) -> str:
    return f"{score.em}" if score.f1 is None else f"{score.em} / {score.f1}"


def _score(rule: Scores | None) -> str:
    if rule is None:
        return UNDEFINED
    return figure(rule["em"]) if rule["f1"] is None else f"{figure(rule['em'])} / {figure(rule['f1'])}"


def _leads(lead: Lead, here: Delta | None, turned: bool) -> Cells:
    delta, ends = lead.delta, lead.interval
    if turned:
        delta, ends = -delta, (-ends[1], -ends[0])
        here = here and {"delta": -here["delta"], "ci": [-end for end in reversed(here["ci"])]}
    return f"{delta:+} {_printed_interval(ends)}", UNDEFINED if here is None else difference(here)


def _printed_interval(ends: tuple[Decimal, Decimal]) -> str:
    return f"[{ends[0]}, {ends[1]}]"


def _probabilities(lead: Lead, contrast: RuleContrast | None) -> Cells:
    return _printed_probability(lead.p), UNDEFINED if contrast is None else probability(contrast["p"])


def _printed_probability(p: Decimal) -> str:
    return f"{p:f}".removeprefix("0")


# -- the judge's value, the decisions, the cost -----------------------------------------------------------------------


def authority_table(reproduction: Reproduction) -> Table:
    """Return the value of full authority for the judge: scalar judge minus majority vote."""
    rows = []
    for name, data in reproduction["data"].items():
        contrast = data["here"] and data["here"]["full_authority"]
        cells = (UNDEFINED,) * 3
        if contrast:
            cells = (difference(contrast), probability(contrast["p"]), record(contrast))
        rows.append((PUBLISHED[name].title, f"{PUBLISHED[name].full_authority:+}", *cells))
    headers = ("scalar judge minus majority", "Δ, paper", "Δ [95% CI], here", "exact p, here", "wins–losses, here")
    beside = _any_run(reproduction)
    shown = [row if beside else row[:2] for row in rows]
    notes = ("The paper states the difference in its text, in percentage points, without interval or p.",)
    return Table(
        f"the judge with full authority ({AUTHORITY})", headers if beside else headers[:2], tuple(shown), notes
    )


def audit_table(reproduction: Reproduction) -> Table:
    """Return the decision audit: counts of questions, and their share in percent."""
    published = PUBLISHED["confirmation"]
    here = {name: data["here"] for name, data in reproduction["data"].items() if data["here"]}
    rows = []
    for key, label in _AUDIT.items():
        printed = _of((published.audit or {})[key], published.n)
        rows.append((label, printed, *(_audited(run, key) for run in here.values())))
    headers = ("decision of EL-DGR", f"paper, {questions(published.n)}", *(f"{name}, here" for name in here))
    notes = [
        "Counts of questions, and percent of them. The paper has an audit of its confirmation alone.",
        f"By its counts against majority EL-DGR made {_wins('gsm8k')} on GSM8K, and {_wins('hotpotqa')} on HotpotQA.",
    ]
    if any(run["audit"] is None for run in here.values()):
        notes.append(f"{UNDEFINED}: EL-DGR has no result there.")
    return Table(f"decision audit ({AUDIT})", headers, tuple(rows), tuple(notes))


def _wins(name: str) -> str:
    lead = PUBLISHED[name].leads["majority"]
    return f"{lead.wins} wrong answers right and {lead.losses} right ones wrong"


def _audited(here: Here, key: _Counted) -> str:
    count = here["audit"] and here["audit"][key]
    return UNDEFINED if count is None else _of(count, here["n"])


def _of(count: int, n: int) -> str:
    return f"{count:,} ({figure(100 * count / n, 1)})"


def cost_table(reproduction: Reproduction) -> Table:
    """Return seconds a question of judge, verifier and both, and on how many questions all candidates agree."""
    beside, rows = _any_run(reproduction), []
    for name, data in reproduction["data"].items():
        published, here = PUBLISHED[name], data["here"]
        seconds = [(_printed_seconds(published.seconds, key), _seconds(here, key)) for key in _TIMED]
        one_class = UNDEFINED if published.homogeneous is None else f"{published.homogeneous} of {published.n}"
        same = UNDEFINED if here is None or here["homogeneous"] is None else f"{here['homogeneous']:,} of {here['n']:,}"
        rows.append((published.title, [*seconds, (one_class, same)]))
    headers = ("seconds a question", "judge", "verifier", "both", "one class of answers")
    return _table(f"cost ({AUDIT})", headers, rows, _cost_notes(reproduction), beside)


def _printed_seconds(seconds: Seconds, key: _Timed) -> str:
    value = getattr(seconds, key)
    return UNDEFINED if value is None else str(value)


def _seconds(here: Here | None, key: _Timed) -> str:
    return UNDEFINED if here is None else figure(here["seconds"][key])


def _cost_notes(reproduction: Reproduction) -> Iterator[str]:
    yield f"{UNDEFINED}: the paper does not print it, no run was given, or it was recorded."
    for name, data in reproduction["data"].items():
        if not data["here"]:
            continue
        calls = sum(asked["calls"] for asked in data["here"]["roles"].values())
        if calls:
            yield f"{name}: {calls:,} LM calls, of another machine and server than the paper's."
        else:
            yield f"{name}: no LM call was counted, so that its seconds say nothing of the cost of one."


# -- computed again ---------------------------------------------------------------------------------------------------


def contrasts_table(reproduction: Reproduction) -> Table:
    """Return the nine contrasts as printed and as computed again from their counts."""
    rows = tuple(map(_again, reproduction["contrasts"]))
    headers = ("EL-DGR against", "n", "wins–losses", "Δ, paper", "Δ, again", "95% CI, paper", "95% CI, again")
    notes = (
        _verdict(reproduction["contrasts"]),
        "The paper prints the counts marked *; of the others its Δ and p leave no choice.",
        "An end of an interval may be one question (1/n) off the paper's, since bootstrap draws differ; the last "
        "column says where it does.",
    )
    return Table(
        "the published contrasts, computed again from their counts",
        (*headers, "p, paper", "p, again", "ends apart"),
        rows,
        notes,
    )


def _again(contrast: Recomputed) -> tuple[str, ...]:
    published, again = PUBLISHED[contrast["data"]], contrast["recomputed"]
    lead = published.leads[contrast["against"]]
    return (
        f"{published.title}: {contrast['against']}",
        f"{contrast['n']:,}",
        f"{record(contrast)}{'*' if contrast['counts'] == 'printed' else ''}",
        f"{lead.delta:+}",
        signed(again["delta"]),
        _printed_interval(lead.interval),
        interval(again["ci"]),
        _printed_probability(lead.p),
        probability(again["p"]),
        " and ".join(f"{apart}/{contrast['n']}" if apart else "0" for apart in contrast["ends_apart"]),
    )


def _verdict(contrasts: Sequence[Recomputed]) -> str:
    apart = [f"{row['data']} {row['against']}" for row in contrasts if not all(row["agree"].values())]
    if apart:
        return f"Δ or p is not what is printed: {', '.join(apart)}."
    return "Every Δ and every p is what is printed, to its last digit."


# -- ablations, as published ------------------------------------------------------------------------------------------


def corrected_table() -> Table:
    """Return the corrected channel drops as printed."""
    rows = [
        (
            CORRECTED.labels.get(name, f"without {name}"),
            f"{row.em} / {row.f1}",
            *(_points(row.over.get(over)) for over in ("full", "grpo")),
        )
        for name, row in CORRECTED.rows.items()
    ]
    note = (
        f"Published figures alone: one seed, the same {CORRECTED.n} questions, every exact p against full "
        f"{CORRECTED.p_against_full}. eldgr ablation shows runs next to them."
    )
    headers = ("config", "EM / F1 %", "Δ full", "Δ GRPO")
    return Table(f"channel drops, corrected, HotpotQA ({CORRECTED.table})", headers, tuple(rows), (note,))


def _points(delta: int | None) -> str:
    return UNDEFINED if delta is None else f"{delta:+}" if delta else "0"


def legacy_table() -> Table:
    """Return the results in the paper's text for the channel drops that collapsed."""
    low, high = LEGACY.drops
    rows = (("Full gated RA-MSD", f"{LEGACY.full}"), ("channel drops", f"{low} to {high}"))
    below = " to ".join(map(str, LEGACY.below_grpo))
    note = (
        f"Published figures alone. The paper keeps this as a diagnostic failure: {below} points below GRPO, which uses "
        f"no channel (p < {LEGACY.p:f} on every row)."
    )
    return Table(f"channel drops, legacy, GSM8K ({LEGACY.place})", ("config", "accuracy %"), rows, (note,))
