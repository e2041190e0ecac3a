"""From a model's name to an LM: names of Ollama's go to the engine for Ollama, all others to `dspy.LM`."""

from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError

_OLLAMA = ("ollama", "ollama_chat")


def lm_named(name: str, api_base: str | None = None, **options: Any) -> dspy.LM:
    """Return the LM of a name such as `ollama/deepseek-r1:7b` or `openai/gpt-4o-mini`.

    Args:
        name: A provider and a model, as `dspy.LM` has them. `ollama/NAME` and `ollama_chat/NAME` are the same here.
        api_base: Address of the server, where it is not the provider's own. For Ollama it may end in `/v1` or not.
        options: Further options of `dspy.LM`; those of `eldgr_dspy.ollama` too, where the name is one of Ollama's.

    Raises:
        ArgumentError: The name has no model, or the address is none.
    """
    provider, _, model = name.strip().partition("/")
    if not provider or not model.strip():
        raise ArgumentError(f"{name!r} names no model; expected PROVIDER/MODEL, such as ollama/deepseek-r1:7b.")
    if provider in _OLLAMA:
        from eldgr_dspy.programs.engines.ollama import ollama

        return ollama(model, host=api_base, **options)
    return dspy.LM(name.strip(), **({} if api_base is None else {"api_base": api_base}), **options)
