"""A count of tokens that cannot be true is unknown, and the reply that it came with is used.

DSPy's own parser refuses a whole reply if its server counts -5, 3.5 or NaN tokens, and has no setting for that. So the
checks of these types of `dspy.lm15` are wrapped, once a process: while a role is asked or a request is metered, such a
count becomes None, and NaN in the copy of the server's body a text. Anywhere else they refuse as before.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Any

import dspy
from dspy.lm15 import Response, StreamEndEvent, Usage

from eldgr_dspy.formats.journal_lines import is_plausible
from eldgr_dspy.programs.service.service_log import LOG

_SETTING = "eldgr_lenient_usage"
ANY_USAGE: Mapping[str, Any] = {_SETTING: True}
"""The setting of DSPy's within which a count may be unknown: `dspy.Parallel` passes only settings to its threads."""

_OLLAMA = ("prompt_eval_count", "eval_count")


def is_count(value: object) -> bool:
    """Return whether a value may be a number of tokens: a whole number that is not below 0."""
    return (type(value) is int or (type(value) is float and value.is_integer())) and value >= 0


def reported_usage(response: object) -> Mapping[str, Any]:
    """Return the counts of a response as its server wrote them. Empty where it wrote none."""
    body = getattr(response, "provider_data", None)
    usage = body.get("usage") if isinstance(body, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def without_false_counts(body: bytes) -> bytes:
    """Return the body of Ollama's reply without counts that cannot be true, which its client would refuse."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return body
    counts = [name for name in _OLLAMA if isinstance(reply, dict) and reply.get(name) is not None]
    false = [name for name in counts if not (is_count(reply[name]) and is_plausible(reply[name]))]
    for name in false:
        _log(name, reply.pop(name))
    return json.dumps(reply).encode() if false else body


def _drop_counts(usage: Any) -> None:
    for name in (field.name for field in fields(usage)):
        value = getattr(usage, name)
        if value is not None and not is_count(value):
            object.__setattr__(usage, name, None)
            _log(name, value)


def _log(name: str, value: object) -> None:
    message = f"A server reported {name} of {value!r:.40}, which cannot be true and counts as unknown"
    LOG.log(logging.WARNING, ("usage", name), message)


def _spell_out_nan(response: Any) -> None:
    body = json.loads(json.dumps(response.provider_data), parse_constant=str)
    object.__setattr__(response, "provider_data", body)


def _mending(check: Callable[[Any], None], mend: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(check)
    def check_or_mend(usage: Any) -> None:
        try:
            check(usage)
        except (TypeError, ValueError):
            if not dspy.settings.get(_SETTING):
                raise
            mend(usage)
            check(usage)

    return check_or_mend


for _kind, _mend in ((Usage, _drop_counts), (Response, _spell_out_nan), (StreamEndEvent, _spell_out_nan)):
    setattr(_kind, "__post_init__", _mending(_kind.__post_init__, _mend))  # noqa: B010 - a method, to type checkers
