"""Errors of a call to Ollama, as the errors that DSPy knows: some are transient, some only repeat themselves."""

import re
from http import HTTPStatus
from typing import Any

from dspy import lm15
from ollama import ResponseError

from eldgr_dspy.errors import brief
from eldgr_dspy.programs.engines.bounded import OversizedError

_KINDS: dict[int, type[lm15.LM15Error]] = {
    HTTPStatus.PAYMENT_REQUIRED: lm15.BillingError,
    HTTPStatus.REQUEST_TIMEOUT: lm15.TimeoutError,
    HTTPStatus.TOO_MANY_REQUESTS: lm15.RateLimitError,
    HTTPStatus.GATEWAY_TIMEOUT: lm15.TimeoutError,
}
_TOO_LONG = re.compile(r"context (?:length|size|window)", re.IGNORECASE)
_PROVIDER = "ollama"


def fault_of(error: Exception, model: str, host: str, seconds: float) -> lm15.LM15Error:
    """Return DSPy's error for what the `ollama` client raised in a call; each message says what to do.

    Args:
        error: What was raised.
        model: The model's name at the server.
        host: The address of the server.
        seconds: The deadline of the call.
    """
    if isinstance(error, ResponseError):
        return _refusal(error, model, host)
    if isinstance(error, OversizedError):
        return lm15.TransportError(
            f"The server at {host} sent {error}, and the call was abandoned; check that the address is that of an "
            "Ollama server, and any proxy on the way.",
            provider=_PROVIDER,
        )
    if isinstance(error, TimeoutError):
        return lm15.TimeoutError(
            f"{model} at {host} had not answered in full after {seconds:g} s, and the call was abandoned; "
            "give a larger timeout= (in a command, --timeout) to wait longer.",
            provider=_PROVIDER,
        )
    if isinstance(error, ValueError | TypeError | AttributeError | RecursionError):
        return lm15.TransportError(
            f"The server at {host} did not answer in Ollama's format ({type(error).__name__}: {brief(error, 100)}); "
            "check that the address is that of an Ollama server.",
            provider=_PROVIDER,
        )
    said = "" if isinstance(error, ConnectionError) else f": {brief(error, 200)}"  # there the client gives advice
    return lm15.TransportError(
        f"The call to Ollama at {host} did not come through ({type(error).__name__}{said}); "
        "check the address, and that `ollama serve` is running there.",
        provider=_PROVIDER,
    )


def cut_off(model: str, host: str) -> lm15.LM15Error:
    """Return the error of a reply that broke off."""
    return lm15.TransportError(f"The reply of {model} at {host} broke off before its end.", provider=_PROVIDER)


def unsendable_key() -> lm15.LM15Error:
    """Return the error of a key that no header can carry; it does not quote the key."""
    return lm15.AuthError(
        "OLLAMA_API_KEY must fit in an HTTP header; it has a space, the end of a line or the like. Set it again.",
        provider=_PROVIDER,
    )


def unread(reason: str, model: str) -> lm15.LM15Error:
    """Return the error of a prompt that was not read in full."""
    return lm15.ContextLengthError(
        f"{model} did not read the whole prompt: {reason.removesuffix('.')}. A larger num_ctx= (--num-ctx) gives "
        "it a larger window.",
        provider=_PROVIDER,
    )


def _refusal(error: ResponseError, model: str, host: str) -> lm15.LM15Error:
    said, status = brief(error.error), error.status_code
    about: dict[str, Any] = {"provider": _PROVIDER, "status": status if status > 0 else None}
    if status <= 0:  # an error within a reply that had started
        return lm15.ServerError(f"{model} at {host} failed while it answered: {said}", **about)
    if status == HTTPStatus.NOT_FOUND and "model" in said:
        message = f"Ollama at {host} has no model {model!r}; get it with: ollama pull {model}"
        return lm15.UnsupportedModelError(message, **about)
    if status == HTTPStatus.NOT_FOUND:
        return lm15.InvalidRequestError(f"{host} does not answer as Ollama does ({said}); check the address.", **about)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        message = f"Ollama at {host} refused access ({said}); a key is read from OLLAMA_API_KEY."
        return lm15.AuthError(message, **about)
    if status == HTTPStatus.BAD_REQUEST and _TOO_LONG.search(said):
        return unread(said, model)
    other = lm15.ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else lm15.InvalidRequestError
    kind: type[lm15.LM15Error] = _KINDS.get(status, other)
    return kind(f"Ollama at {host} refused the call for {model} with status {status}: {said}", **about)
