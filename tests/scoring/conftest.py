"""Models that the tests of this folder share, saved once a session."""

from pathlib import Path

import pytest

from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from tests.scorers import trained_nli


@pytest.fixture(scope="session")
def nli_folder() -> Path:
    """The folder of a trained NLI model; see `tests/tiny_nli.py`."""
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
    torch.set_num_threads(1)  # several threads wait for each other where another process has their core
    return trained_nli()


@pytest.fixture(scope="session")
def nli(nli_folder: Path) -> CrossEncoderNLI:
    return CrossEncoderNLI(nli_folder)
