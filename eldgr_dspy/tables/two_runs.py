"""The tables of two runs next to each other."""

from collections.abc import Iterator, Mapping

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.comparisons.two_runs import PairContrast, PairedPool, TwoRuns
from eldgr_dspy.formatting import UNDEFINED, count_of, figure, interval, probability, questions, signed
from eldgr_dspy.statistics import Equivalence
from eldgr_dspy.tables.table import Table, difference, per_question, record


def two_run_tables(compared: TwoRuns) -> Iterator[Table]:
    """Yield the tables of `comparisons.two_runs.compare_runs`."""
    for name, pool in compared["pools"].items():
        yield _pool(compared, name, pool)
    contrasts = {name: pool["contrast"] for name, pool in compared["pools"].items() if pool["contrast"]}
    if contrasts:
        yield _intervals(contrasts)
        tested = {name: contrast["equivalence"] for name, contrast in contrasts.items() if contrast["equivalence"]}
        if tested:
            yield _equivalence(tested)
    yield _cost(compared)
    yield _made_with(compared)


def _pool(compared: TwoRuns, name: str, pool: PairedPool) -> Table:
    kind, contrast = shown_type(pool["task"]), pool["contrast"]
    cells = (UNDEFINED,) * 3
    if contrast:
        cells = (difference(contrast), probability(contrast["p"]), record(contrast))
    rows = [
        (
            run,
            figure(figures["em"]),
            *([figure(figures["f1"])] if kind.has_f1 else []),
            *(cells if number == 0 else ("", "", "")),
            per_question(figures["calls"], pool["n"]),
        )
        for number, (run, figures) in enumerate(zip(compared["runs"], pool["figures"], strict=True))
    ]
    scores = [f"{score} %" for score in kind.scores]
    headers = ("run", *scores, "Δ [95% CI]", "exact p", "wins–losses", "LM calls / question")
    title = f"{name}: {compared['rule']}, {questions(pool['n'])}"
    return Table(title, headers, tuple(rows), tuple(_notes(pool)))


def _notes(pool: PairedPool) -> Iterator[str]:
    if not pool["n_scored"]:
        yield f"{UNDEFINED}: no question has a gold answer, so nothing is scored."
    elif pool["n_scored"] < pool["n"]:
        yield f"Scores are over the {questions(pool['n_scored'])} with a gold answer, of {pool['n']:,}."
    yield f"Another answer ships on {questions(pool['differ'])}."
    contrast = pool["contrast"]
    if contrast is None:
        return
    if contrast["n_distinct"] < pool["n_scored"]:
        yield (
            f"{questions(pool['n_scored'])} have {contrast['n_distinct']:,} different texts: one that stands "
            "several times counts once in Δ and p, with the mean of its outcomes, and is not tested for equivalence."
        )
    yield from contrast["notes"]


def _intervals(contrasts: Mapping[str, PairContrast]) -> Table:
    """Both intervals of each score, and p among the pools."""
    rows = []
    for name, contrast in contrasts.items():
        score = "EM" if contrast["f1"] else "accuracy"
        adjusted = probability(contrast["p"]), probability(contrast["p_holm"])
        rows.append((name, score, difference(contrast), interval(contrast["bca"]), *adjusted))
        if contrast["f1"]:
            rows.append((name, "F1", difference(contrast["f1"]), interval(contrast["f1"]["bca"]), "", ""))
    headers = ("pool", "score", "Δ [95% CI]", "BCa 95% CI", "exact p", "Holm p")
    note = (
        f"Holm p is over {'this pool' if len(contrasts) == 1 else f'these {len(contrasts)} pools'}. F1 is not tested."
    )
    return Table("RUN_A − RUN_B, percentage points", headers, tuple(rows), (note,))


def _equivalence(tested: Mapping[str, Equivalence]) -> Table:
    rows = [
        (
            name,
            signed(test.delta),
            interval(test.interval),
            probability(test.p),
            "yes" if test.equivalent else "not shown",
            probability(test.p_below),
        )
        for name, test in tested.items()
    ]
    margin = figure(next(iter(tested.values())).margin)
    headers = ("pool", "Δ", "90% CI", "TOST p", "equivalent at .05", "p, A not worse")
    note = (
        f"Equivalent: the 90% interval lies within ±{margin}. p, A not worse: of RUN_A being worse by {margin} or more."
    )
    return Table(f"equivalence of right and wrong within ±{margin} points", headers, tuple(rows), (note,))


def _cost(compared: TwoRuns) -> Table:
    rows = tuple(
        (
            run,
            count_of(asked["ok"]),
            count_of(asked["abstained"]),
            count_of(asked["failed"]),
            count_of(asked["recorded"]),
            count_of(asked["calls"]),
            count_of(asked["prompt_tokens"]),
            count_of(asked["completion_tokens"]),
            figure(asked["cost"], 4),
        )
        for run, asked in zip(compared["runs"], compared["consultations"], strict=True)
    )
    headers = ("run", "answered", "abstained", "failed", "recorded", "LM calls", "tokens in", "tokens out", "$")
    unknown = any(UNDEFINED in row for row in rows)
    note = f"{UNDEFINED}: a server did not report it, or the price of a model is not known."
    return Table("what each run asked, in all", headers, rows, (note,) if unknown else ())


def _made_with(compared: TwoRuns) -> Table:
    rows = tuple((role, *(model or "not asked" for model in models)) for role, models in compared["models"].items())
    notes = tuple(compared["differences"]) or ("The same settings and the same roles.",)
    if any(asked["recorded"] for asked in compared["consultations"]):
        notes += ("Recorded replies are not compared: a recording does not say what made it.",)
    return Table("the model of each role, and what differs (RUN_A -> RUN_B)", ("role", *compared["runs"]), rows, notes)
