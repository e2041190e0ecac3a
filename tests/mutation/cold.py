"""A pytest plugin for mutation runs: every test starts with cold caches, which hide mutants, and meets few examples."""

import pytest
from hypothesis import HealthCheck, Phase, settings

from eldgr_dspy import certificates
from eldgr_dspy.answer_types import number
from eldgr_dspy.matching import text_keys
from eldgr_dspy.rule import refusals
from eldgr_dspy.text import folding

settings.register_profile(
    "mutation",
    derandomize=True,
    max_examples=30,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def cold_caches() -> None:
    for module in (certificates, folding, number, refusals, text_keys):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
