"""The tables of an ablation: the paper's results next to those of the runs, and a table of each comparison."""

from collections.abc import Iterator, Mapping

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.comparisons.ablation import Ablation, PolicyContrast, PolicyRow, PublishedRow
from eldgr_dspy.comparisons.published import CORRECTED, LEGACY
from eldgr_dspy.formatting import UNDEFINED, figure, probability, questions, signed
from eldgr_dspy.statistics import least_significant
from eldgr_dspy.tables.table import Table, difference, record
from eldgr_dspy.words import CHANNELS


def ablation_tables(ablation: Ablation) -> Iterator[Table]:
    """Yield the tables of what `comparisons.ablation.ablate` returns: the paper's, then one for each reference."""
    yield scores_table(ablation)
    for reference, contrasts in ablation["contrasts"].items():
        yield contrasts_table(reference, contrasts, ablation)


def scores_table(ablation: Ablation) -> Table:
    """Return the paper's table: a row a policy, with its scores and its differences from the references."""
    beside = any(row["published"] for row in ablation["runs"].values())
    scores = f"{' / '.join(shown_type(ablation['task']).scores)} %"
    headers = ["policy", scores, *([f"{scores}, paper"] if beside else [])]
    for reference in ablation["contrasts"]:
        headers += [f"Δ {reference}", *([f"Δ {reference}, paper"] if beside else [])]
    rows = tuple((name, *_cells(name, row, ablation, beside)) for name, row in ablation["runs"].items())
    title = f"{ablation['rule']} on the pools of {len(rows)} policies: {ablation['task']}, {questions(ablation['n'])}"
    return Table(title, tuple(headers), rows, tuple(_notes(ablation, beside)))


def _cells(name: str, row: PolicyRow, ablation: Ablation, beside: bool) -> Iterator[str]:
    yield _score(row)
    if beside:
        yield _printed(name, row["published"])
    for contrasts in ablation["contrasts"].values():
        contrast = contrasts.get(name)
        yield UNDEFINED if contrast is None else signed(contrast["delta"])
        if beside:
            delta = contrast and contrast["published"]
            yield UNDEFINED if delta is None else f"{delta:+}" if delta else "0"


def _score(row: PolicyRow) -> str:
    return figure(row["em"]) if row["f1"] is None else f"{figure(row['em'])} / {figure(row['f1'])}"


def _printed(name: str, published: PublishedRow | None) -> str:
    if published is None:
        return UNDEFINED
    if "f1" in published:
        return f"{CORRECTED.rows[name].em} / {CORRECTED.rows[name].f1}"
    return f"{LEGACY.full}" if "em" in published else " to ".join(map(str, LEGACY.drops))


def _notes(ablation: Ablation, beside: bool) -> Iterator[str]:
    yield "Δ is the row minus the run named, in percentage points."
    if any(name in CHANNELS for name in ablation["runs"]):
        yield "A channel's name is the policy trained without it."
    if beside and ablation["task"] == "retrieval":
        yield (
            f"paper ({CORRECTED.table}): {CORRECTED.n} HotpotQA questions, one seed, Qwen2.5-3B-Instruct, four "
            "completions a step, 30 steps. That these are the same questions and policies a run cannot say."
        )
    elif beside:
        yield f"paper ({LEGACY.place}): GSM8K, one seed; of the drops a range alone, kept as a diagnostic failure."
    if beside and ablation["rule"] != "first":
        yield f"The paper's figures are of what a policy itself answers, and not of rule {ablation['rule']!r}."
    yield "Intervals and p below are over these questions; what another training seed would change they do not say."
    yield from ablation["remarks"]


def contrasts_table(reference: str, contrasts: Mapping[str, PolicyContrast], ablation: Ablation) -> Table:
    """Return every row against one reference: differences with intervals, wins and losses, exact p, and Holm's."""
    graded = any(contrast["f1"] for contrast in contrasts.values())
    headers = ("policy", "Δ [95% CI]", *(["Δ F1 [95% CI]"] if graded else []), "wins–losses", "exact p", "p (Holm)")
    rows = []
    for name, contrast in contrasts.items():
        f1 = [difference(contrast["f1"]) if contrast["f1"] else UNDEFINED] if graded else []
        rows.append(
            (
                name,
                difference(contrast),
                *f1,
                record(contrast),
                probability(contrast["p"]),
                probability(contrast["p_holm"]),
            )
        )
    title = f"against {reference}: {questions(ablation['n_scored'])}"
    return Table(title, headers, tuple(rows), tuple(_contrast_notes(reference, contrasts, ablation)))


def _contrast_notes(reference: str, contrasts: Mapping[str, PolicyContrast], ablation: Ablation) -> Iterator[str]:
    yield "Wins and losses are the row's. Holm's p is over the rows of this table."
    few = [
        f"{name} ({discordant})"
        for name, contrast in contrasts.items()
        if least_significant(discordant := contrast["wins"] + contrast["losses"]) is None
    ]
    if few:
        yield f"With so few discordant questions no split is significant at 0.05: {', '.join(few)}."
    if (
        ablation["task"] == "retrieval"
        and reference == "full"
        and any(contrast["published"] is not None for contrast in contrasts.values())
    ):
        yield f"paper: every exact p against full is {CORRECTED.p_against_full}."
