"""Search with Hypothesis for the smallest example that fails a check. Needs the extra `testing`."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure

T = TypeVar("T")

_CHECKS = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.nested_given)


def falsify(examples: st.SearchStrategy[T], hold: Callable[[T], object], most: int | None) -> None:
    """Raise what the smallest example that Hypothesis finds makes `hold` raise, without Hypothesis's own notes.

    Args:
        examples: The examples. hold: the check. most: how many to draw; by default as many as the profile says.
    """
    __tracebackhide__ = True
    if most == 0:
        return
    raised = list[tuple[Exception, list[str]]]()

    @settings(
        max_examples=settings().max_examples if most is None else most,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=_CHECKS,
        phases=(Phase.generate, Phase.shrink),
    )
    @given(examples)
    def tried(example: T) -> None:
        try:
            hold(example)
        except Exception as error:
            raised.append((error, [*getattr(error, "__notes__", ())]))
            raise

    try:
        tried()
    except Exception as error:
        if not raised:
            raise
        # Hypothesis ends with the smallest; if that raises nothing any more, the first is as good as any.
        failure, notes = raised[0 if isinstance(error, FlakyFailure) else -1]
        failure.__notes__ = notes
    else:
        return
    raise failure.with_traceback(None) from failure.__cause__
