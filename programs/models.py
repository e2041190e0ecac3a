"""From a model's name to an LM: names of Ollama's go to the engine for Ollama, all others to `dspy.LM`."""

from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError

_OLLAMA = ("ollama", "ollama_chat")


def is_of_ollama(name: str) -> bool:
    """Whether the LM of a name is Ollama's."""
    return name.strip().partition("/")[0] in _OLLAMA


def lm_named(name: str, api_base: str | None = None, *, num_ctx: int | None = None, **options: Any) -> dspy.LM:
    """Return the LM of a name such as `ollama/deepseek-r1:7b` or `openai/gpt-4o-mini`.

    Args:
        name: A provider and a model, as `dspy.LM` has them. `ollama/NAME` and `ollama_chat/NAME` are the same here.
        api_base: Address of the server, where it is not the provider's own. For Ollama it may end in `/v1` or not.
        num_ctx: Tokens that prompt and reply may have together; only where the name is one of Ollama's.
        options: Further options of `dspy.LM`; those of `eldgr_dspy.ollama` too, where the name is one of Ollama's.

    Raises:
        ArgumentError: The name has no model, the address is none, or a context is given to a model not of Ollama's.
    """
    provider, _, model = name.strip().partition("/")
    if not provider or not model.strip():
        raise ArgumentError(f"{name!r} names no model; expected PROVIDER/MODEL, such as ollama/deepseek-r1:7b.")
    if is_of_ollama(name):
        from eldgr_dspy.programs.engines.ollama import ollama

        own: dict[str, Any] = {} if num_ctx is None else {"num_ctx": num_ctx}
        return ollama(model, host=api_base, **own, **options)
    require_ollama(num_ctx, [name])
    return dspy.LM(name.strip(), **({} if api_base is None else {"api_base": api_base}), **options)


def require_ollama(num_ctx: int | None, names: Sequence[str]) -> None:
    """Raise an ArgumentError where a context is given and no model is Ollama's, which alone take one in a request."""
    if num_ctx is not None and not any(map(is_of_ollama, names)):
        raise ArgumentError(
            f"num_ctx={num_ctx} is the context of a model of Ollama, and {' and '.join(names) or 'no model'} is given;"
            " name it ollama/MODEL, or leave the context to the server."
        )
