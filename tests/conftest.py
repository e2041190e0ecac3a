"""Fixtures and settings shared by all tests: no network, no cache on disk, warnings are errors (see pyproject)."""

import gc
import os
import tempfile
from collections.abc import Generator, Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# DSPy reads this when it is imported; whatever a test caches goes with the test run.
_CACHE = tempfile.TemporaryDirectory(prefix="eldgr-cache-")
os.environ["DSPY_CACHEDIR"] = _CACHE.name
# LiteLLM has a copy of its price list and would otherwise ask the network for a newer one.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
# Servers on loopback are asked directly, whatever proxy the machine has.
os.environ["no_proxy"] = "127.0.0.1"

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A gate is to fail for the change under it, not for the draw; people and deep runs look for new examples.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

OPTIONAL = (
    "accelerate datasets mlflow peft pyarrow ray safetensors sentence_transformers statsmodels "
    "tokenizers torch transformers trl z3".split()
)
"""What the package runs without; most of it is in an extra."""
ABSENT = frozenset(name for name in OPTIONAL if find_spec(name) is None)


def skip_if_absent(error: BaseException | None, *, module: bool = False) -> None:
    """Skip what needs a package that is not installed; a test that only pretends so fails as any other."""
    if isinstance(error, ModuleNotFoundError) and (name := (error.name or "").partition(".")[0]) in ABSENT:
        pytest.skip(f"{name} is not installed; the extra `test` has it", allow_module_level=module)


class NeedingModule(pytest.Module):
    """A module of tests that is skipped where what it imports is not installed."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            skip_if_absent(error.__cause__, module=True)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return NeedingModule.from_parent(parent, path=module_path)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported: it stays, and each full collection would look through it."""
    gc.collect()
    gc.freeze()


def _skipping() -> Generator[None, object, object]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        skip_if_absent(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    return (yield from _skipping())


@pytest.fixture(scope="session")
def pools_dir() -> Path:
    """The folder of real pools, from ELDGR_POOLS or beside the checkout; a test that needs it is skipped without."""
    folder = Path(os.environ.get("ELDGR_POOLS", ROOT.parent / "shared" / "data"))
    if not (folder / "gsm8k-openai4.jsonl.gz").is_file():
        pytest.skip(f"no real pools in {folder}; set ELDGR_POOLS to the folder that holds them")
    return folder
