"""The figures of a pool are the statistics of its decisions."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.statistics import Contrast, contrast, holm
from tests.results.test_authority import ARTIFACTS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the demo pools."""
    out = tmp_path_factory.mktemp("run") / "demo"
    pools = [str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic")]
    assert (
        main(["evaluate", *pools, "--replay", str(ARTIFACTS / "demo-replay.jsonl"), "--out", str(out), "--quiet"]) == 0
    )
    return out


def contrasts(run: Path, pool: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((run / "summary.json").read_text("utf-8"))["pools"][pool]["contrasts"]
    return found


def decided(run: Path, pool: str, one: dict[str, Any], score: str) -> Contrast:
    """The contrast of a score as the lines of decisions.jsonl have it, in percentage points."""
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text("utf-8").splitlines()]
    arms = (
        [100.0 * line[score] for line in lines if (line["pool"], line["rule"]) == (pool, rule)] for rule in named(one)
    )
    return contrast(*arms)


def named(one: dict[str, Any]) -> tuple[str, str]:
    return one["rule"], one["against"]


def difference(found: Contrast) -> dict[str, Any]:
    assert found.bca is not None
    return {"delta": found.delta, "ci": list(found.interval), "bca": list(found.bca)}


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_a_contrast_has_both_intervals_the_exact_p_wins_and_losses(run: Path, pool: str) -> None:
    for one in contrasts(run, pool):
        found = decided(run, pool, one, "em")
        assert {key: one[key] for key in ("delta", "ci", "bca")} == difference(found)
        assert (one["p"], one["wins"], one["losses"]) == (found.p, found.wins, found.losses)


def test_in_retrieval_it_has_the_difference_in_f1_too(run: Path) -> None:
    for one in contrasts(run, "demo-retrieval"):
        assert one["f1"] == difference(decided(run, "demo-retrieval", one, "f1"))
    assert [one["f1"] for one in contrasts(run, "demo-arithmetic")] == [None] * 4


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_the_family_of_holm_is_all_contrasts_of_the_pool(run: Path, pool: str) -> None:
    found = contrasts(run, pool)
    assert [named(one) for one in found] == [
        ("eldgr", "first"),
        ("eldgr", "majority"),
        ("eldgr", "judge"),
        ("judge", "majority"),
    ]
    assert [one["p_holm"] for one in found] == list(holm([one["p"] for one in found]))
