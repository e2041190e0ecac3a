"""Checkpoints to sample from: whole models, or adapters of PEFT on a base; and their prompts.

An instruction-tuned model that is asked without its chat template continues the question instead of answering it, and
nothing fails. So a prompt is messages, which a template must render, or text, which is refused if there is a template.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from eldgr_dspy.base.file_limits import document, parsed_json
from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.programs.scoring.weights import find_model, revision_of

Precision = Literal["auto", "float32", "bfloat16", "float16"]

_ADAPTER = "adapter_config.json"
_WEIGHTS = ("*.safetensors", "config.json", _ADAPTER)  # a trainer leaves logs and settings beside them
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint before it is loaded.

    Attributes:
        name: The name of its candidates in the pool.
        model: The folder.
        base: The folder of the model that it is an adapter on; None for a whole model.
    """

    name: str
    model: str
    base: str | None

    @classmethod
    def of(cls, name: str, model: str | Path, base: str | Path | None = None) -> "Checkpoint":
        """Return the checkpoint in a folder: an adapter where it says so, on `base` or the one that it names."""
        folder = Path(model).expanduser()
        if not (folder / _ADAPTER).is_file():
            return cls(name, str(find_model(model)), None)
        path = base or parsed_json(document(folder / _ADAPTER), str(folder / _ADAPTER)).get("base_model_name_or_path")
        if not path:
            raise ArgumentError(f"The adapter of the checkpoint {name!r} names no base; give it as base=.")
        if not any(folder.glob("*.safetensors")):
            raise ArgumentError(
                f"The adapter of the checkpoint {name!r} has no weights as safetensors in {str(folder)!r} (pickles are "
                "not loaded); give the folder that the trainer saved its model to."
            )
        return cls(name, str(folder), str(find_model(path)))

    def identity(self) -> dict[str, Any]:
        """Return what identifies it: a digest of each folder's weights, or its commit in the cache of the Hub."""
        places = [self.model] if self.base is None else [self.model, self.base]
        return {"weights": [revision_of(Path(place), _WEIGHTS) for place in places]}

    def tokenizer(self) -> Any:
        """Return its tokenizer: its own, or that of its base if the adapter was saved without one."""
        from transformers import AutoTokenizer

        whole: Any = AutoTokenizer
        bare = self.base is not None and not (Path(self.model) / "tokenizer_config.json").is_file()
        place = str(self.base) if bare else self.model
        tokenizer = self._load("tokenizer", place, lambda: whole.from_pretrained(place))
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    def window(self) -> int | None:
        """Return how many tokens the model takes; None if its configuration does not say."""
        from transformers import AutoConfig

        place = self.base or self.model
        config = self._load("configuration", place, lambda: AutoConfig.from_pretrained(place))
        window: int | None = getattr(config, "max_position_embeddings", None)
        return window

    def policy(self, tokenizer: Any, *, device: str | None = None, dtype: Precision = "auto") -> Any:
        """Return the model in evaluation mode; its `generation_config` says only what ends a text.

        A model brings its own settings there, such as a penalty on repetition, which would apply silently. The end of
        sequence of its tokenizer also ends a text. `device` and `dtype` are those of `sample_pool`.
        """
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig

        causal: Any = AutoModelForCausalLM
        plain: Any = GenerationConfig
        place = self.base or self.model
        model = self._load("model", place, lambda: causal.from_pretrained(place, dtype=dtype, use_safetensors=True))
        own = model.generation_config.eos_token_id
        ends = {*(own if isinstance(own, list) else [own]), tokenizer.eos_token_id} - {None}
        model.generation_config = plain(eos_token_id=sorted(ends), pad_token_id=tokenizer.pad_token_id)
        if self.base is not None:
            from peft import PeftModel

            model = self._load("adapter", self.model, lambda: PeftModel.from_pretrained(model, self.model))
        return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()

    def _load(self, what: str, place: str, load: Callable[[], _Part]) -> _Part:
        try:
            return load()
        except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise ArgumentError(
                f"The {what} of the checkpoint {self.name!r} cannot be loaded from {place!r} ({brief(reason)}); give a "
                "folder with a model of transformers or an adapter of PEFT, and base= if the base is elsewhere."
            ) from error


def render(tokenizer: Any, checkpoint: str, question: str, prompt: Any) -> list[int]:
    """Return the tokens of a prompt as the model must read it, ready for its answer."""
    what = f"the prompt of the question {question!r:.80}"
    is_text = isinstance(prompt, str)
    if is_text and getattr(tokenizer, "chat_template", None):
        raise ArgumentError(
            f"The checkpoint {checkpoint!r} has a chat template, but {what} is text, which would bypass it; give "
            "messages, as [{'role': 'user', 'content': ...}]."
        )
    text: str = prompt if is_text else _text_of(tokenizer, checkpoint, what, prompt)
    tokens = list(tokenizer(text, add_special_tokens=is_text).input_ids)
    # A tokenizer that was loaded as another kind silently drops what it does not know.
    if 2 * len(tokenizer.decode(tokens)) < len(text):
        raise ArgumentError(
            f"The tokenizer of the checkpoint {checkpoint!r} spells less than half of {what}; save the tokenizer that "
            "it was trained with into its folder."
        )
    return tokens


def _text_of(tokenizer: Any, checkpoint: str, what: str, prompt: Any) -> str:
    """Return messages as the chat template renders them."""
    if not getattr(tokenizer, "chat_template", None):
        raise ArgumentError(
            f"The checkpoint {checkpoint!r} has no chat template to render {what}, and without one its "
            "completions would be worthless; save the tokenizer that it was trained with into its folder."
        )
    fits = isinstance(prompt, Sequence) and all(
        isinstance(message, dict) and all(isinstance(message.get(name), str) for name in ("role", "content"))
        for message in prompt
    )
    if not fits or not prompt or prompt[-1]["role"] != "user":
        raise ArgumentError(
            f"{what[0].upper()}{what[1:]} must be messages with a role and a text, the last one the user's; "
            f"got {prompt!r:.80}."
        )
    try:
        text: str = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template may raise anything
        raise ArgumentError(
            f"The chat template of the checkpoint {checkpoint!r} cannot render {what} ({brief(error, 200)}); fix the "
            "messages, or give the template that it was trained with."
        ) from error
    if prompt[-1]["content"].strip() not in text:
        raise ArgumentError(
            f"The chat template of the checkpoint {checkpoint!r} leaves out the last message of {what}; give the "
            "template that it was trained with."
        )
    return text
