r"""Check that spelling does not decide: the results of each real pool, and with every answer in each decoration.

Run: python -m benchmarks.spelling [--every 1]

Each answer of a pool is put into one decoration of `eldgr_dspy.laws.of_rules` (a full stop, bold, quotes, \boxed{}
and so on), and the pool is evaluated with the heuristic roles. Printed are majority, EL-DGR and its bounds for the pool
as it is, and for every decoration under which one of them differs. The last line counts the decorations under which all
are the same. `--every N` takes one question in N.
"""

import argparse
import gzip
import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks._timing import pools_dir
from eldgr_dspy.laws.of_rules import DECORATIONS, decorate
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate

POOLS = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")


def figures(rows: list[dict[str, Any]], decoration: str, folder: Path) -> dict[str, Any]:
    """Return the results of EL-DGR and majority, each question's decision, and the bounds, with answers decorated."""
    pool, out = folder / "pool.jsonl", folder / "run"
    with pool.open("w", encoding="utf-8") as lines:
        for row in rows:
            candidates = [
                {**candidate, "answer": decorate(candidate["answer"], decoration)} for candidate in row["candidates"]
            ]
            lines.write(json.dumps({**row, "candidates": candidates}) + "\n")
    evaluate(heuristic_selector(), Plan([pool], out, rules=("majority", "eldgr"), fresh=True))
    results = json.loads((out / "summary.json").read_text("utf-8"))["pools"]["pool"]
    branches = [json.loads(line)["branch"] for line in (out / "decisions.jsonl").open(encoding="utf-8")]
    return {
        "majority": results["rules"]["majority"]["em"],
        "eldgr": results["rules"]["eldgr"]["em"],
        "bounds": results["bounds"]["eldgr"],
        "any span": results["bounds_any_span"]["eldgr"],
        "audit": results["audit"],
        "branches": hash(tuple(branches)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--pools", nargs="*", default=POOLS)
    options = parser.parse_args()
    for name in options.pools:
        with gzip.open(pools_dir() / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            rows = [json.loads(line) for line in islice(lines, 0, None, options.every)]
        with tempfile.TemporaryDirectory() as folder:
            plain = figures(rows, "{}", Path(folder))
            print(f"{name}, {len(rows)} questions: {plain}", flush=True)
            others = {decoration: figures(rows, decoration, Path(folder)) for decoration in DECORATIONS}
        for decoration, results in others.items():
            if results != plain:
                print(f"  {decoration!r}: {results}")
        print(f"  the same under {sum(results == plain for results in others.values())} of {len(others)} decorations")


if __name__ == "__main__":
    main()
