"""What a refusal says."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError


def refusal(action: Callable[[], object], kind: type[Exception] = ArgumentError) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises(kind) as info:
        action()
    return str(info.value)


Kinds = type[BaseException] | tuple[type[BaseException], ...]


def refuses(kind: Kinds, pattern: str, action: Callable[..., object], *inputs: Any, **more: Any) -> None:
    """Have a call refused with a sentence in which a pattern is found."""
    with pytest.raises(kind, match=pattern):
        action(*inputs, **more)


def says(pattern: str, text: str) -> bool:
    """Whether a text is what is written, where `...` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), text, re.DOTALL) is not None
