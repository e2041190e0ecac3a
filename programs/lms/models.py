"""From a model's name to an LM: Ollama's names go to the engine for Ollama, all others to `dspy.LM`."""

from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import SchemaUse

_OLLAMA = ("ollama", "ollama_chat")
_LOCAL = "local:"


def is_of_ollama(name: str) -> bool:
    """Return whether a name belongs to Ollama."""
    return name.strip().partition("/")[0] in _OLLAMA


def is_of_a_file(name: str) -> bool:
    """Return whether a name is that of a model's file, which is loaded in this process."""
    return name.strip().startswith(_LOCAL)


def make_lm(
    name: str,
    api_base: str | None = None,
    *,
    num_ctx: int | None = None,
    structured: SchemaUse = "auto",
    **options: Any,
) -> dspy.LM:
    """Return the LM of a name such as `ollama/deepseek-r1:7b`, `openai/gpt-4o-mini` or `local:model.gguf`."""
    lm = _lm(name, api_base, num_ctx, options)
    if structured != "auto":
        setattr(lm, "structured", structured)  # noqa: B010 -- not an attribute of DSPy's
    return lm


def _lm(name: str, api_base: str | None, num_ctx: int | None, options: dict[str, Any]) -> dspy.LM:
    if is_of_a_file(name):
        from eldgr_dspy.programs.engines.local import local

        require_ollama(num_ctx, [name])
        if api_base is not None:
            raise ArgumentError(f"{name!r} runs in this process and takes no api_base; got {api_base!r:.200}.")
        return local(name.strip().removeprefix(_LOCAL), **options)
    provider, _, model = name.strip().partition("/")
    if not provider or not model.strip():
        raise ArgumentError(f"A model must be PROVIDER/MODEL, such as ollama/deepseek-r1:7b; got {name!r}.")
    if provider == "vllm":  # to LiteLLM that is vLLM in this process
        name = f"hosted_vllm/{model.strip()}"
    if is_of_ollama(name):
        from eldgr_dspy.programs.engines.ollama import ollama

        own: dict[str, Any] = {} if num_ctx is None else {"num_ctx": num_ctx}
        return ollama(model, host=api_base, **own, **options)
    require_ollama(num_ctx, [name])
    return dspy.LM(name.strip(), **({} if api_base is None else {"api_base": api_base}), **options)


def require_ollama(num_ctx: int | None, names: Sequence[str]) -> None:
    """Raise an ArgumentError if a context is given and no model is Ollama's. Only Ollama takes one in a request."""
    if num_ctx is not None and not any(map(is_of_ollama, names)):
        raise ArgumentError(
            f"num_ctx={num_ctx} is for models of Ollama; got {' and '.join(names) or 'no model'}."
            " Name the model ollama/MODEL, or leave the context to the server."
        )
