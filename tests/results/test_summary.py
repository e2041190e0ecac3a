"""The figures of a pool are the statistics of its decisions."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.statistics import Contrast, contrast, holm
from tests.results.demo_pools import ARTIFACTS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the demo pools."""
    out = tmp_path_factory.mktemp("run") / "demo"
    pools = [str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic")]
    replay = str(ARTIFACTS / "demo-replay.jsonl")
    assert main(["evaluate", *pools, "--replay", replay, "--out", str(out), "--quiet"]) == 0
    return out


def contrasts(run: Path, pool: str) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = json.loads((run / "summary.json").read_text("utf-8"))["pools"][pool]["contrasts"]
    return figures


def decided(run: Path, pool: str, one: dict[str, Any], score: str) -> Contrast:
    """The contrast of a score as the lines of decisions.jsonl have it, in percentage points."""
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text("utf-8").splitlines()]
    arms = (
        [100.0 * line[score] for line in lines if (line["pool"], line["rule"]) == (pool, rule)] for rule in named(one)
    )
    return contrast(*arms)


def named(one: dict[str, Any]) -> tuple[str, str]:
    return one["rule"], one["against"]


def difference(result: Contrast) -> dict[str, Any]:
    return {"delta": result.delta, "ci": list(result.interval)}


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_a_contrast_has_both_intervals_the_exact_p_wins_and_losses(run: Path, pool: str) -> None:
    for one in contrasts(run, pool):
        result = decided(run, pool, one, "em")
        assert {key: one[key] for key in ("delta", "ci")} == difference(result)
        assert (one["p"], one["wins"], one["losses"]) == (result.p, result.wins, result.losses)
        graded = difference(decided(run, pool, one, "f1")) if pool == "demo-retrieval" else None
        assert one["f1"] == graded


@pytest.mark.parametrize("pool", ["demo-retrieval", "demo-arithmetic"])
def test_the_family_of_holm_is_the_contrasts_of_the_matched_selectors(run: Path, pool: str) -> None:
    result = contrasts(run, pool)
    expected = [("eldgr", "first"), ("eldgr", "majority"), ("eldgr", "judge"), ("judge", "majority")]
    assert [named(one) for one in result if one["p_holm"] is not None] == expected
    assert [named(one) for one in result if one["p_holm"] is None] == [("eldgr", "certified")]
    tested = [one for one in result if one["p_holm"] is not None]
    assert [one["p_holm"] for one in tested] == list(holm([one["p"] for one in tested]))


def test_a_question_that_stands_five_times_counts_once_in_a_contrast(run: Path, tmp_path: Path) -> None:
    """Five copies under other ids: the same wins, losses and p, and a count of the texts."""
    rows = [json.loads(line) for line in (ARTIFACTS / "demo-retrieval.jsonl").read_text("utf-8").splitlines()]
    copies = [row | {"id": f"{row['id']}.{number}"} for number in range(5) for row in rows]
    (tmp_path / "copies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in copies), "utf-8")
    assert main(["evaluate", str(tmp_path / "copies.jsonl"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    pool = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["pools"]["copies"]
    assert (pool["n"], pool["n_scored"], pool["n_distinct"]) == (5 * len(rows), 5 * len(rows), len(rows))
    once = contrasts(run, "demo-retrieval")
    for one, other in zip(pool["contrasts"], once, strict=True):
        assert {key: one[key] for key in ("p", "wins", "losses", "p_holm")} == {
            key: other[key] for key in ("p", "wins", "losses", "p_holm")
        }
        assert one["delta"] == pytest.approx(other["delta"])


def test_one_question_alone_has_a_contrast_that_says_so(tmp_path: Path) -> None:
    line = (ARTIFACTS / "demo-retrieval.jsonl").read_text("utf-8").splitlines()[0]
    (tmp_path / "one.jsonl").write_text(line + "\n", "utf-8")
    assert main(["evaluate", str(tmp_path / "one.jsonl"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    pool = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["pools"]["one"]
    for one in pool["contrasts"]:
        expected = "There is only one question: the interval is a point and says nothing about other questions."
        assert one["notes"][0] == expected
