"""The demo pools, for figures that are known, and a run of them."""

from pathlib import Path

from eldgr_dspy.programs.commands import main

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"


def demo_run(out: Path) -> Path:
    pools = [str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic")]
    replay = str(ARTIFACTS / "demo-replay.jsonl")
    assert main(["evaluate", *pools, "--replay", replay, "--out", str(out), "--quiet"]) == 0
    return out
