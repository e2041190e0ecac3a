"""Report each decision to whoever watches a service: as a span of OpenTelemetry, and to DSPy's callbacks.

OpenTelemetry's API is used where it is installed. Without its SDK, or another one, it records nothing. Where nobody
watches, a decision reports nothing and its tokens are not counted.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Any

import dspy
from dspy.utils.callback import ACTIVE_CALL_ID

from eldgr_dspy.errors import describe_failure
from eldgr_dspy.programs.calls import Calls, Usage
from eldgr_dspy.programs.service.service_log import LOG
from eldgr_dspy.rule.consultations import Reply
from eldgr_dspy.words import Role

_Report = Callable[[dspy.Prediction, Mapping[Role, Reply]], dspy.Prediction]

OPERATION_NAME = "gen_ai.operation.name"
AGENT_NAME = "gen_ai.agent.name"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"
"""Names of the GenAI semantic conventions, 0.1.0. They are still in development, so they are constants of ours."""

INVOKE_WORKFLOW = "invoke_workflow"
"""Their name for an operation that calls several models in an order of its own."""

_CERTIFICATES = {True: "certified", False: "uncertified", None: "inapplicable"}


@dataclass(frozen=True, slots=True)
class DecisionEvent:
    """A decision as it is watched: with no text of a question, an answer or a reply.

    Attributes:
        branch, reason, certified, consulted: See `eldgr_dspy.decision.Decision`.
        abstentions: By role, the kind of its reason. See `eldgr_dspy.words.ABSTENTION_KINDS`.
        failures: By who was called, the error.
        input_tokens, output_tokens: Of all calls, as their servers reported, or None if one did not, or none was sent.
        seconds: From the call of the selector to its decision, scores included.
        call_seconds: By who was called.
    """

    branch: str
    reason: str
    certified: bool | None
    consulted: tuple[str, ...]
    abstentions: Mapping[str, str]
    failures: Mapping[str, str]
    input_tokens: int | None
    output_tokens: int | None
    seconds: float
    call_seconds: Mapping[str, float]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a span. What is unknown is not one of them."""
        by_name = {"abstentions": self.abstentions, "failures": self.failures, "seconds": self.call_seconds}
        values = {
            "eldgr.branch": self.branch,
            "eldgr.reason": self.reason,
            "eldgr.certificate": _CERTIFICATES[self.certified],
            "eldgr.consulted": self.consulted,
            INPUT_TOKENS: self.input_tokens,
            OUTPUT_TOKENS: self.output_tokens,
            **{f"eldgr.{name}.{who}": value for name, of in by_name.items() for who, value in of.items()},
        }
        return {name: value for name, value in values.items() if value is not None}


@contextmanager
def watch(select: dspy.Module, calls: Calls) -> Iterator[_Report]:
    """Watch a selector decide in the block. What is yielded is called with the prediction and the replies.

    A callback of DSPy's, of the settings or of the selector, is given the event if it has a method
    `on_decision(call_id, instance, event)`.
    """
    callbacks = [*dspy.settings.callbacks, *select.callbacks]
    listeners = [one.on_decision for one in callbacks if hasattr(one, "on_decision")]
    with _span(type(select).__name__) as span:
        if not listeners and span is None:
            yield lambda prediction, replies: prediction
            return
        start, usage = monotonic(), Usage()

        def report(prediction: Any, replies: Mapping[Role, Reply]) -> dspy.Prediction:
            silent = [role for role in prediction.abstentions if role not in calls.abstentions]
            event = DecisionEvent(
                branch=prediction.branch,
                reason=prediction.reason,
                certified=prediction.certified,
                consulted=tuple(prediction.consulted),
                abstentions={role: getattr(replies[role], "kind", "invalid") for role in silent},  # the case refused it
                failures={who: why.kind for who, why in calls.abstentions.items()},
                input_tokens=usage.total("prompt_tokens"),
                output_tokens=usage.total("completion_tokens"),
                seconds=monotonic() - start,
                call_seconds=dict(calls.seconds),
            )
            if span is not None:
                span.set_attributes(event.attributes())
            for listener in listeners:
                try:
                    listener(call_id=ACTIVE_CALL_ID.get(), instance=select, event=event)
                except Exception as error:  # noqa: BLE001 - the user's; it is logged, as DSPy logs it
                    message = f"A callback's on_decision failed: {describe_failure(error)}"
                    LOG.log(logging.WARNING, ("callback", type(error).__name__), message)
            return prediction

        with dspy.context(usage_tracker=usage):
            yield report


@cache
def _api() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


@contextmanager
def _span(name: str) -> Iterator[Any]:
    """Yield the span of a decision, which is the current one in the block, or None if it is not recorded."""
    api = _api()
    if api is None:
        yield None
        return
    attributes = {OPERATION_NAME: INVOKE_WORKFLOW, AGENT_NAME: name}
    with api.get_tracer("eldgr_dspy").start_as_current_span(
        f"{INVOKE_WORKFLOW} {name}", attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span if span.is_recording() else None
        except Exception as error:
            span.set_attribute(ERROR_TYPE, type(error).__name__)
            span.set_status(api.StatusCode.ERROR, describe_failure(error))
            raise
