"""What a refusal says."""

from collections.abc import Callable

import pytest

from eldgr_dspy.errors import ArgumentError


def refused(action: Callable[[], object], kind: type[Exception] = ArgumentError) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises(kind) as caught:
        action()
    return str(caught.value)
