"""Every selector, alone and locked: the matrices of docs/evidence.md, with what each asks and what it costs.

Run: python -m benchmarks.selectors [POOL...]

Without a pool, the demo pool that has every column, with a scripted LM for the selectors that ask one: it prefers what
the words of the evidence support, so these rows show what is asked and not how well an LM selects. With pools, which
are looked for where ELDGR_POOLS says, no LM is asked, and a selector that needs one is N/A. Half of the questions train
the selector in the style of AutoDSPy and are in no figure.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import dspy
from dspy.lm15 import Request

from benchmarks._timing import cpu, pools_dir
from eldgr_dspy.base.formatting import figure, interval, with_sign
from eldgr_dspy.figures.results.summary_fields import JudgeFigures, PoolFigures
from eldgr_dspy.pools import Pool, open_pool
from eldgr_dspy.programs.heuristics import LexicalJudge, heuristic_selector
from eldgr_dspy.programs.judges import (
    BestOf,
    DimensionalSelector,
    PairwiseJudge,
    Panel,
    PipelineSelector,
    PlanThenCheck,
    PointwiseJudge,
    SliceJudge,
    SwapConsistent,
    WeightedVote,
)
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.testing import scripted_lm, text_of
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import ballot_of
from eldgr_dspy.rule.lexical import support
from eldgr_dspy.splitting import split_pool
from eldgr_dspy.tables.judges import NAMES
from eldgr_dspy.words import CHANNELS

DEMO = Path(__file__).resolve().parent.parent / "artifacts" / "demo-selectors.jsonl"
_BLOCK = re.compile(r"<(question|passage|candidate|slice|step)(?: \d+)? [b-z]{8,}>\n?(.*?)\n?</", re.DOTALL)
JUDGES = ("gpt4", "chatgpt", "davinci003", "bing")
FORMULAS = (
    *("best_of_n:orm", "weighted_best_of_n:orm", "best_of_n:prm:min", "best_of_n:prm:last", "best_of_n:prm:product"),
    *("borda:self_certainty", "cisc", "soft_sc", "soft_sc:min", "bcrl_max", "bcrl_vote", "bcrl_abstaining"),
)
ASKING: Mapping[str, Callable[[], dspy.Module]] = {
    "listwise": Judge,
    "swap-averaged": lambda: SwapConsistent(Judge()),
    "pairwise": PairwiseJudge,
    "pointwise": PointwiseJudge,
    "panel by majority": lambda: Panel([Judge(), LexicalJudge(), PointwiseJudge()]),
    "slices (GAR)": SliceJudge,
    "checks (SWIRL)": PlanThenCheck,
}
"""The selectors that ask an LM, by the name of their row."""


def in_evidence(example: dspy.Example, candidate: dspy.Prediction) -> bool:
    """Return whether a candidate's answer occurs in the evidence: a reward in one line."""
    return any(str(candidate.answer) in passage for passage in example.evidence)


def counting(training: Path) -> dict[str, dspy.Module]:
    """Return the selectors that ask no LM, by the name of their row."""
    formulas: dict[str, dspy.Module] = {formula: WeightedVote(formula) for formula in FORMULAS}
    others = {"drm": DimensionalSelector(), "words": LexicalJudge(), "best_of_n by a metric": BestOf(in_evidence)}
    try:
        return {**others, **formulas, "autodspy": PipelineSelector(training)}
    except ValueError:  # the pool has one pipeline
        return {**others, **formulas}


def reply(request: Request) -> str:
    """Answer any of our signatures by the words of the prompt, without looking at a right answer."""
    prompt, schema = text_of(request), cast(Any, request.config.response_format)
    properties = schema["schema"]["properties"]
    blocks = dict[str, list[str]]()
    for kind, text in _BLOCK.findall(prompt):
        blocks.setdefault(kind, []).append(text)
    passages, texts = blocks.get("passage", []), blocks.get("candidate") or blocks.get("slice", [""])
    scores = support("", passages, texts) if passages else None
    scalars = [score.scalar for score in scores] if scores else [1 / (1 + len(text)) for text in texts]
    best = scalars.index(max(scalars))
    values: dict[str, Any] = {
        "preferred": best,
        "better": best,
        "assessments": [],
        "assessment": [5] * 7 + [round(10 * scalars[0])],
        "sound": scalars[0] > 0.6,
        "checks": ["It answers what is asked.", "The evidence supports it."],
        "passed": [True, scalars[0] > 0.6],
        "consistent": True,
        "step_scores": [{"step": n, **_channels(text, passages)} for n, text in enumerate(blocks.get("step", []))],
    }
    return json.dumps({name: values.get(name, "by words") for name in properties})


def _channels(step: str, passages: Sequence[str]) -> dict[str, float]:
    scores = support("", passages, [step])
    return dict.fromkeys(CHANNELS, scores[0].scalar if scores else 0.5)


def run(pool: Path, judges: Mapping[str, dspy.Module], replay: Mapping[str, Path]) -> PoolFigures:
    """Return the figures of a pool with judges, whose rows may have names that no judge can have."""
    names = {name: f"j{number}" for number, name in enumerate([*judges, *replay])}
    modules = {names[name]: judge for name, judge in judges.items()}
    modules |= {names[name]: LexicalJudge() for name in replay}
    with tempfile.TemporaryDirectory() as folder, dspy.context(lm=scripted_lm(reply)):
        recordings = {names[name]: path for name, path in replay.items()} or None
        plan = Plan([pool], Path(folder) / "run", judges=modules, replay=recordings, recorded_for=None)
        figures = evaluate(heuristic_selector(), plan)["pools"][pool.name.partition(".")[0]]
    figures["judges"] = {name: figures.get("judges", {})[short] for name, short in names.items()}
    return figures


HEADERS = (
    *("selector", "alone %", "locked %", "Δ [95 % CI]", "alone: fixes–breaks", "lock: fixes–breaks"),
    *("worst alone %", "worst locked %", "calls", "tokens", "CPU ms", "gold in training", "logprobs"),
)


def matrix(figures: PoolFigures, missing: Mapping[str, str], costs: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of a matrix in Markdown: baselines, selectors, and those that do not apply, by their reason."""
    yield _row(HEADERS)
    yield _row(["---"] * len(HEADERS))
    for rule in ("first", "majority", "certified"):
        yield _row([rule, figure(figures["rules"][rule]["em"]), *[""] * (len(HEADERS) - 2)])
    for baseline, score in figures["baselines"]["scores"].items():
        if baseline not in ("first", "majority", "certified") and score["em"] is not None:
            yield _row([NAMES[baseline], figure(score["em"]), *[""] * (len(HEADERS) - 2)])
    judges = figures.get("judges", {})
    lacking = {name: why for name, of in judges.items() if (why := of.get("lacks"))} | dict(missing)
    for name, of in judges.items():
        if name not in lacking:
            yield _row([name, *cells(of, costs.get(name))])
    reasons = {reason: [name for name in lacking if lacking[name] == reason] for reason in lacking.values()}
    for names in reasons.values():
        yield _row([", ".join(names), *["N/A"] * (len(HEADERS) - 1)])
    yield ""
    yield from (f"* {', '.join(names)}: {reason}." for reason, names in reasons.items())


def _row(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def cells(of: JudgeFigures, cost: float | None) -> list[str]:
    facts = ["N/A" if fact is None else str(fact).lower() for fact in (of["gold_in_training"], of["logprobs"])]
    flips = [
        f"{flip['incorrect_to_correct']}–{flip['correct_to_incorrect']}" if flip else "N/A"
        for flip in (of["alone_against_majority"], of["locked_against_alone"])
    ]
    costs = [f"{(total or 0) / max(1, of['asked']):.1f}" for total in (of["calls"], of["tokens"])]
    delta = f"{with_sign(of['delta']['delta'])} {interval(of['delta']['ci'])}" if of["delta"] else "N/A"
    worst = [figure(of["worst_alone"]), figure(of["worst_locked"])]
    values = [figure(of["alone"]), figure(of["locked"]), delta, *flips, *worst, *costs]
    return [*values, "" if cost is None else f"{1000 * cost:.3f}", *facts]


def cpu_of(judges: Mapping[str, dspy.Module], pool: Pool) -> dict[str, float]:
    """Return the processor seconds a question of each selector that counts ballots."""
    ballots = [ballot_of(Case(row.to_question())) for row in pool.rows(200)]
    counters = {name: judge for name, judge in judges.items() if getattr(judge, "takes_ballot", False)}
    return {name: cpu(partial(_count, judge, ballots), rounds=3) / len(ballots) for name, judge in counters.items()}


def _count(judge: Any, ballots: Sequence[Ballot]) -> None:
    for ballot in ballots:
        judge.count(ballot)


def show(path: Path, *, lm: bool, timing: bool = True) -> None:
    """Print the matrix of one pool, with processor times if they are wanted."""
    with tempfile.TemporaryDirectory() as folder:
        name = path.name.partition(".")[0]
        training, held_out = Path(folder) / "training.jsonl", Path(folder) / f"{name}.jsonl"
        split_pool(open_pool(path), training, held_out, share=0.5, seed=0)
        pool, judges = open_pool(held_out), counting(training)
        costs = cpu_of(judges, pool) if timing else {}
        recordings = {judge: path.parent / "judges" / f"{name}.{judge}.jsonl.gz" for judge in JUDGES}
        replay = {f"{judge}, recorded": file for judge, file in recordings.items() if file.is_file()}
        asking = {row: make() for row, make in ASKING.items()} if lm else {}
        figures = run(held_out, {**judges, **asking}, replay)
    missing = {} if lm else dict.fromkeys(ASKING, "no LM is asked here")
    if "autodspy" not in judges:
        missing["autodspy"] = "all candidates are of one pipeline"
    print(f"\n### {name}: {pool.n:,} questions\n")
    print(*matrix(figures, missing, costs), sep="\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", nargs="*", help="Names of pools; the demo pool by default.")
    parser.add_argument("--untimed", action="store_true", help="Measure no processor time, which takes half of it.")
    options = parser.parse_args(arguments)
    for name in options.pools:
        show(pools_dir() / f"{name}.jsonl.gz", lm=False, timing=not options.untimed)
    if not options.pools:
        show(DEMO, lm=True, timing=not options.untimed)


if __name__ == "__main__":
    main()
