"""Models that the tests of this folder share, saved once a session."""

from pathlib import Path

import pytest

from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI


@pytest.fixture(scope="session")
def nli_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained NLI model; see `tests/tiny_nli.py`."""
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
    from tests.tiny_nli import tiny_nli

    torch.set_num_threads(1)  # several threads wait for each other where another process has their core
    return tiny_nli(tmp_path_factory.mktemp("nli"))


@pytest.fixture(scope="session")
def nli(nli_folder: Path) -> CrossEncoderNLI:
    """That model, run by torch."""
    return CrossEncoderNLI(nli_folder)
