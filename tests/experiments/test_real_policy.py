"""The page on training shows what the kept results of the real policies say."""

import json

from benchmarks.experiments.real_policy import ARMS, HELD_OUT, KEPT, table
from tests.house.package_files import ROOT


def test_the_table_of_the_page_is_that_of_the_kept_results() -> None:
    results = json.loads((ROOT / KEPT).read_text(encoding="utf-8"))
    page = (ROOT / "docs/how-to/train-a-policy.md").read_text(encoding="utf-8")
    assert "\n".join(table(results)) in page
    assert list(results) == ["base", *(f"{arm}-{seed}" for arm in ARMS for seed in (1, 2))]
    assert all(len(result["right"]) == len(result["answers"]) == HELD_OUT for result in results.values())
