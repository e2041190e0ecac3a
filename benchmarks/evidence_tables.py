"""What authority costs on real pools: the tables of docs/evidence.md.

Run: python -m benchmarks.evidence_tables POOL...

Prints a table of the baselines, of every rule with every recorded judge (or the heuristic one), and of prices; several
pools are side by side. A cell has the accuracy, and for a rule that may ask a judge the lowest over all judges.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks._timing import pools_dir
from eldgr_dspy.base.formatting import UNDEFINED, figure
from eldgr_dspy.figures.results.summary_fields import PoolFigures
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.rule.named_judges import judge_in, name_in
from eldgr_dspy.tables.judges import NAMES, usefulness
from eldgr_dspy.words import ASKING_NOBODY

RULES = ("first", "majority", "certified", "eldgr", "eldgr_certified", "near(0)", "near(1)", "judge")
JUDGES = ("gpt4", "chatgpt", "davinci003", "bing")


def run(name: str) -> PoolFigures:
    """Return the figures of a pool with the judges that were recorded for it, or else with the heuristic judge."""
    files = {judge: pools_dir() / "judges" / f"{name}.{judge}.jsonl.gz" for judge in JUDGES}
    replay = {judge: file for judge, file in files.items() if file.is_file()}
    selector = heuristic_selector()
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(
            [pools_dir() / f"{name}.jsonl.gz"],
            Path(folder) / "run",
            rules=RULES,
            replay=replay or None,
            judges=dict.fromkeys(replay, selector.judge),
        )
        return evaluate(selector, plan)["pools"][name]


def rows(pool: PoolFigures) -> Iterator[tuple[str, str]]:
    """Yield a label and a cell for each baseline, rule and judge, then for the price of each rule."""
    baselines, prices = pool["baselines"], pool["price"]
    yield from ((rule, figure(pool["rules"][rule]["em"])) for rule in ASKING_NOBODY)
    for name, score in baselines["scores"].items():
        if name not in ASKING_NOBODY:
            yield NAMES[name], figure(score["em"])
    for rule, of in pool["rules"].items():
        ends = pool["bounds"][rule]
        if rule not in ASKING_NOBODY and ends:
            least = (pool.get("bounds_any_deriver") or {}).get(rule)
            lowest = f", any deriver ≥ {figure(least[0])}" if least else ""
            yield _label(rule), f"{figure(of['em'])}, any judge ≥ {figure(ends[0])}{lowest}"
    for rule, price in {name_in(name): price for name, price in prices.items()}.items():
        if price and rule not in ("first", "majority"):
            yield f"price of {rule}", f"{price['lost']:,} lost: at most {figure(price['at_most'])}"


def _label(rule: str) -> str:
    judge = judge_in(rule)
    return name_in(rule) if judge is None else f"{name_in(rule)}, {judge}"


def table(pools: Mapping[str, PoolFigures]) -> str:
    cells = {name: dict(rows(pool)) for name, pool in pools.items()}
    labels = dict.fromkeys(label for column in cells.values() for label in column)
    lines = [["%", *cells], ["---"] * (len(cells) + 1)]
    lines += [[label, *(column.get(label, UNDEFINED) for column in cells.values())] for label in labels]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", nargs="+")
    options = parser.parse_args(arguments)
    pools = {name: run(name) for name in options.pools}
    print(table(pools))
    for name, pool in pools.items():
        print(*(f"\n* {name}: {sentence}" for sentence in usefulness(pool)), sep="")


if __name__ == "__main__":
    main()
