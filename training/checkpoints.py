"""Checkpoints to sample from: whole models, or adapters of PEFT on a base; and their prompts.

An instruction-tuned model that is asked without its chat template continues the question instead of answering it, and
nothing fails. So a prompt is messages, which a template must render, or text, which is refused if there is a template.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.file_limits import document, parsed_json
from eldgr_dspy.programs.scoring.weights import digest, revision_of

Precision = Literal["auto", "float32", "bfloat16", "float16"]

_ADAPTER = "adapter_config.json"
_WEIGHTS = ("*.safetensors", "config.json", _ADAPTER)
_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint before it is loaded.

    Attributes:
        name: The name of its candidates in the pool.
        model: The folder, or a name on the Hugging Face Hub.
        base: The model that it is an adapter on; None for a whole model.
    """

    name: str
    model: str
    base: str | None

    @classmethod
    def of(cls, name: str, model: str | Path, base: str | Path | None = None) -> "Checkpoint":
        """Return the checkpoint in a folder: an adapter where it says so, on `base` or else on the base that it names.

        Raises:
            ArgumentError: A folder is absent, or holds no weights as safetensors; or no base is named.
        """
        own = Path(model).expanduser() / _ADAPTER
        if not own.is_file():
            checkpoint = cls(name, str(Path(model).expanduser()), None)
        else:
            named = base or parsed_json(document(own), str(own)).get("base_model_name_or_path")
            if not named:
                raise ArgumentError(f"The adapter of the checkpoint {name!r} names no base; give it as base=.")
            checkpoint = cls(name, str(own.parent), str(named))
        for place in checkpoint._parts():
            _require_weights(name, place)
        return checkpoint

    def identity(self) -> dict[str, Any]:
        """Return what identifies it: a digest of each folder's weights, the commit of a name of the Hub."""
        return {"weights": [_identity(place) for place in self._parts()]}

    def tokenizer(self) -> Any:
        """Return its tokenizer: its own, or that of its base if the adapter was saved without one.

        Raises:
            ArgumentError: Neither has one.
        """
        from transformers import AutoTokenizer

        whole: Any = AutoTokenizer
        bare = self.base is not None and not (Path(self.model) / "tokenizer_config.json").is_file()
        place = str(self.base) if bare else self.model
        tokenizer = self._loaded("tokenizer", place, lambda: whole.from_pretrained(place))
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    def window(self) -> int | None:
        """Return how many tokens the model takes; None if its configuration does not say."""
        from transformers import AutoConfig

        place = self.base or self.model
        config = self._loaded("configuration", place, lambda: AutoConfig.from_pretrained(place))
        window: int | None = getattr(config, "max_position_embeddings", None)
        return window

    def policy(self, tokenizer: Any, *, device: str | None = None, dtype: Precision = "auto") -> Any:
        """Return the model in evaluation mode; its `generation_config` says only what ends a text.

        A model brings its own settings there, such as a penalty on repetition, which would apply silently.

        Args:
            tokenizer: Its tokenizer, whose end of sequence also ends a text.
            device: As torch names it; None takes a GPU if there is one.
            dtype: The precision of the weights; `auto` as they were saved.

        Raises:
            ArgumentError: It cannot be loaded.
        """
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig

        causal: Any = AutoModelForCausalLM
        plain: Any = GenerationConfig
        place = self.base or self.model
        model = self._loaded("model", place, lambda: causal.from_pretrained(place, dtype=dtype, use_safetensors=True))
        own = model.generation_config.eos_token_id
        ends = {*(own if isinstance(own, list) else [own]), tokenizer.eos_token_id} - {None}
        model.generation_config = plain(eos_token_id=sorted(ends), pad_token_id=tokenizer.pad_token_id)
        if self.base is not None:
            model = self._loaded("adapter", self.model, lambda: _adapted(model, self.model))
        return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()

    def _parts(self) -> list[str]:
        return [self.model] if self.base is None else [self.model, self.base]

    def _loaded(self, what: str, place: str, load: Callable[[], _Loaded]) -> _Loaded:
        try:
            return load()
        except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise ArgumentError(
                f"The {what} of the checkpoint {self.name!r} cannot be loaded from {place!r} ({brief(reason)}); give a "
                "folder with a model of transformers or an adapter of PEFT, and base= if the base is elsewhere."
            ) from error


def rendered(tokenizer: Any, checkpoint: str, question: str, prompt: Any) -> list[int]:
    """Return the tokens of a prompt as the model must read it, ready for its answer.

    Args:
        tokenizer: Of transformers.
        checkpoint: The name of the checkpoint, for errors.
        question: The id of the question, for errors.
        prompt: Messages with role and content; text for a model without a chat template.

    Raises:
        ArgumentError: The prompt is messages without a template, it is text with one, or the template cannot render it
            or leaves out the question.
    """
    asked = f"the prompt of the question {question!r:.80}"
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(prompt, str):
        if template:
            raise ArgumentError(
                f"The checkpoint {checkpoint!r} has a chat template, but {asked} is text, which would bypass it; give "
                "messages, as [{'role': 'user', 'content': ...}]."
            )
        return _spelling(tokenizer, checkpoint, asked, prompt, list(tokenizer(prompt).input_ids))
    if not template:
        raise ArgumentError(
            f"The checkpoint {checkpoint!r} has no chat template to render {asked}, and without one its "
            "completions would be worthless; save the tokenizer that it was trained with into its folder."
        )
    _require_messages(asked, prompt)
    return _templated(tokenizer, checkpoint, asked, prompt)


def _templated(tokenizer: Any, checkpoint: str, asked: str, messages: Sequence[Any]) -> list[int]:
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template may raise anything
        raise ArgumentError(
            f"The chat template of the checkpoint {checkpoint!r} cannot render {asked} ({brief(error, 200)}); fix the "
            "messages, or give the template that it was trained with."
        ) from error
    if messages[-1]["content"].strip() not in text:
        raise ArgumentError(
            f"The chat template of the checkpoint {checkpoint!r} leaves out the last message of {asked}; give the "
            "template that it was trained with."
        )
    return _spelling(tokenizer, checkpoint, asked, text, list(tokenizer(text, add_special_tokens=False).input_ids))


def _spelling(tokenizer: Any, checkpoint: str, asked: str, text: str, tokens: list[int]) -> list[int]:
    """Refuse a tokenizer that was loaded as another kind: it silently drops what it does not know."""
    if 2 * len(tokenizer.decode(tokens)) < len(text):
        raise ArgumentError(
            f"The tokenizer of the checkpoint {checkpoint!r} spells less than half of {asked}; save the tokenizer that "
            "it was trained with into its folder."
        )
    return tokens


def _require_messages(asked: str, prompt: Any) -> None:
    fits = isinstance(prompt, Sequence) and all(
        isinstance(message, dict) and all(isinstance(message.get(name), str) for name in ("role", "content"))
        for message in prompt
    )
    if not fits or not prompt or prompt[-1]["role"] != "user":
        raise ArgumentError(
            f"{asked[0].upper()}{asked[1:]} must be messages with a role and a text, the last one the user's; "
            f"got {prompt!r:.80}."
        )


def _adapted(model: Any, folder: str) -> Any:
    from peft import PeftModel

    return PeftModel.from_pretrained(model, folder)


def _require_weights(name: str, place: str) -> None:
    folder = Path(place)
    if folder.is_dir():
        if not any(folder.glob("*.safetensors")):
            raise ArgumentError(
                f"The checkpoint {name!r} needs weights as safetensors in the folder {place!r}, which has none "
                "(pickles are not loaded); give the folder that the trainer saved its model to."
            )
    elif len(folder.parts) > 2 or folder.is_absolute() or place.startswith("."):
        raise ArgumentError(
            f"The checkpoint {name!r} needs {place!r}, which is not a folder on this disk; give one that is."
        )


def _identity(place: str) -> str:
    from huggingface_hub import try_to_load_from_cache

    folder = Path(place)
    if folder.is_dir():
        return digest(path for kind in _WEIGHTS for path in folder.glob(kind))
    cached = try_to_load_from_cache(place, "config.json")
    return f"{place}@{revision_of(Path(cached).parent)}" if isinstance(cached, str) else place
