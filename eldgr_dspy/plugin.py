"""The pytest plugin: a Hypothesis profile `patience`, which tries many more examples.

    pytest --hypothesis-profile=patience

It does nothing if Hypothesis is not used, and keeps a profile of that name that a project has registered itself.
"""

import sys
from typing import Any

PATIENCE = 5_000
"""Examples per property under the profile."""


def pytest_cmdline_main(config: Any) -> None:
    """Register the profile: conftest files are loaded by now, and Hypothesis has not yet chosen among profiles."""
    if "hypothesis" in sys.modules or config.getoption("--hypothesis-profile", None):
        _register()


def _register() -> None:
    from hypothesis import HealthCheck, settings
    from hypothesis.errors import InvalidArgument

    try:
        settings.get_profile("patience")
    except InvalidArgument:
        settings.register_profile(
            "patience",
            parent=settings.get_profile("default"),
            max_examples=PATIENCE,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
