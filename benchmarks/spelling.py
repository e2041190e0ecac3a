r"""Whether spelling decides: the figures of each real pool, and with every answer in each decoration.

Run: python -m benchmarks.spelling [--every 1]

Each answer of a pool is put into one decoration of `eldgr_dspy.laws.decorations` (a full stop, bold, quotes, \boxed{}
and so on) and the pool is evaluated with the embedded roles. Printed are majority, EL-DGR and its bounds, of the pool
as it is and for every decoration under which one of them differs; the last line says under how many none does.
`--every` takes one question in so many.
"""

import argparse
import gzip
import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks._timing import pools_dir
from eldgr_dspy.laws.decorations import DECORATIONS, decorated
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate

POOLS = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")


def figures(rows: list[dict[str, Any]], decoration: str, folder: Path) -> dict[str, Any]:
    """What EL-DGR and majority measure, how every question was decided, and the bounds, with all answers decorated."""
    pool, out = folder / "pool.jsonl", folder / "run"
    with pool.open("w", encoding="utf-8") as lines:
        for row in rows:
            spelled = [{**one, "answer": decorated(one["answer"], decoration)} for one in row["candidates"]]
            lines.write(json.dumps({**row, "candidates": spelled}) + "\n")
    evaluate(heuristic_selector(), Plan([pool], out, rules=("majority", "eldgr"), fresh=True))
    found = json.loads((out / "summary.json").read_text("utf-8"))["pools"]["pool"]
    branches = [json.loads(line)["branch"] for line in (out / "decisions.jsonl").open(encoding="utf-8")]
    return {
        "majority": found["rules"]["majority"]["em"],
        "eldgr": found["rules"]["eldgr"]["em"],
        "bounds": found["bounds"]["eldgr"],
        "any span": found["bounds_any_span"]["eldgr"],
        "audit": found["audit"],
        "branches": hash(tuple(branches)),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--pools", nargs="*", default=POOLS)
    chosen = parser.parse_args()
    for name in chosen.pools:
        with gzip.open(pools_dir() / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            rows = [json.loads(line) for line in islice(lines, 0, None, chosen.every)]
        with tempfile.TemporaryDirectory() as folder:
            plain = figures(rows, "{}", Path(folder))
            print(f"{name}, {len(rows)} questions: {plain}", flush=True)
            others = {one: figures(rows, one, Path(folder)) for one in DECORATIONS}
        for decoration, found in others.items():
            if found != plain:
                print(f"  {decoration!r}: {found}")
        print(f"  the same under {sum(found == plain for found in others.values())} of {len(others)} decorations")


if __name__ == "__main__":
    main()
