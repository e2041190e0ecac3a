"""How often a request that failed is sent again, and after how long: as DSPy does, and at once to another server.

Ours, but for the pauses, which are DSPy's.
"""

import math

import dspy

from eldgr_dspy.programs.consulting import is_transient

_LONGEST_PAUSE = 60.0  # seconds, even if a server asks for more
_ELSEWHERE = "eldgr_elsewhere"


class Retries:
    """The requests that a call may still send."""

    def __init__(self, retries: int, spare: int = 0) -> None:
        """Take the number of retries, which have pauses, and how often the call may go to another server at once."""
        self._left, self._spare, self._sent = retries, spare, 0

    def pause_after(self, error: Exception) -> float | None:
        """Return the seconds before the request is sent again, and count it; None if it is not sent again."""
        if self._spare and getattr(error, _ELSEWHERE, False):
            self._spare -= 1
            return 0.0
        if self._sent >= self._left or not is_transient(error):
            return None
        self._sent += 1
        return min(_asked_pause(error, 2.0 ** (self._sent - 1)), _LONGEST_PAUSE)


def send_elsewhere(error: dspy.LMError) -> None:
    """Mark a failure of one server, while another one is well."""
    setattr(error, _ELSEWHERE, True)


def _asked_pause(error: BaseException, otherwise: float) -> float:
    """Return how many seconds a server asks to wait; LiteLLM has it in the headers of what it raised."""
    hint = getattr(error, "retry_after", None)
    if hint is None:
        hint = _header(error)
    return float(hint) if isinstance(hint, int | float) and 0 <= hint < math.inf else otherwise


def _header(error: BaseException | None) -> float | None:
    """Return the seconds of a `Retry-After` header; a date there is ignored."""
    while error is not None:
        headers = getattr(error, "litellm_response_headers", None)
        if headers is not None:
            value = next((str(headers[name]) for name in headers if str(name).lower() == "retry-after"), "")
            return float(value) if value.replace(".", "", 1).isdecimal() else None
        error = error.__cause__
    return None
