"""Shards on a small cluster of Ray: the run is that of one process, whichever worker dies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards.merging import merge
from tests.house.doc_blocks import ROOT
from tests.shards.on_ray import run
from tests.shards.sharded import results, sharded

ray = pytest.importorskip("ray", reason="Ray is not installed; the extra `ray` has it")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 2**20)
        yield
        ray.shutdown()


def test_a_run_on_ray_is_that_of_one_process(tmp_path: Path) -> None:
    directory = sharded(tmp_path)
    run(directory)
    merge(directory, tmp_path / "merged")
    evaluate(heuristic_selector(), Plan([tmp_path / "capitals.jsonl"], tmp_path / "plain"))
    assert results(tmp_path / "merged") == results(tmp_path / "plain")
