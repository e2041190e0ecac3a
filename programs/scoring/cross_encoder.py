"""An NLI model as a cross-encoder of sentence-transformers: premise and hypothesis are read together, by torch.

The labels are those of the model's own configuration, the premise alone is truncated, and the softmax is taken once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from numpy.typing import NDArray

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.labels import stated_columns
from eldgr_dspy.programs.scoring.reading import Pair, Reader
from eldgr_dspy.programs.scoring.weights import commit_of, located, revision_of, stored

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Precision = Literal["float32", "bfloat16", "float16"]

DEFAULT = "cross-encoder/nli-deberta-v3-small"
MAX_LENGTH = 512
"""Tokens of a pair, as the paper's model was trained."""
TRUNCATION = "only_first"

_LEAST = 8
_LOADING = Lock()


class CrossEncoderNLI:
    """Reads pairs with a three-way NLI cross-encoder; in float32, readings do not depend on what else is asked.

    Threads take turns, copies of a program share it, and a pickle says how to load it again.

    Attributes:
        name: Model, revision, precision, tokens and truncation.
        encoder: The loaded model of sentence-transformers.
        reader: Its tokenizer, with how many tokens it takes at once.
        folder: Where it lies.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT,
        *,
        revision: str | None = None,
        device: str | None = None,
        dtype: Precision = "float32",
        max_length: int = MAX_LENGTH,
        batch_size: int = 16,
        local_files_only: bool = False,
    ) -> None:
        """Load the model.

        Args:
            model: A folder, or a name on the Hugging Face Hub; weights must be safetensors.
            revision: A commit, tag or branch of the Hub; a folder has none.
            device: As torch names it; None takes a GPU where there is one. How many threads torch uses is left alone.
            dtype: The precision of weights and arithmetic. Probabilities are of double precision in any case.
            max_length: Tokens of a pair at most; never more than the model itself takes.
            batch_size: Pairs at once. On a processor more than 16 gain nothing.
            local_files_only: Use what is on the disk, and never ask the network.

        Raises:
            ArgumentError: The model is absent and cannot be fetched, cannot be loaded, has no trained head, or lacks
                one of the three labels.
        """
        _refuse(dtype, batch_size)
        self.folder = located(model, revision, local_files_only=local_files_only)
        self._columns = stated_columns(self.folder, str(model))
        self.encoder = _loaded(str(model), self.folder, device, dtype)
        self._batch_size = batch_size
        transformer: Any = self.encoder.model
        _refuse_untrained(str(model), transformer, self.folder)
        self.reader = Reader(self.encoder.tokenizer, _window(self.encoder.tokenizer, transformer.config, max_length))
        self.name = f"{model}@{revision_of(self.folder)} {dtype} {self.reader.window} {TRUNCATION}"
        self._alone = Lock()  # a tokenizer holds its truncation as state, so two threads would meet in it
        self._settings = {
            "model": str(model),
            "revision": commit_of(self.folder) or revision,
            "device": device,
            "dtype": dtype,
            "max_length": max_length,
            "batch_size": batch_size,
            "local_files_only": local_files_only,
        }

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return what it reads in (premise, hypothesis) pairs.

        Returns:
            Shape (n, 3): contradiction, neutral, entailment. A row of NaN is a pair that it could not read.

        Raises:
            ArgumentError: `pairs` holds something other than pairs of texts.
        """
        with self._alone:
            return self.reader.probabilities(pairs, self._logits, self._columns)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # who copies a program that holds it wants no second model

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _loaded_again, (self._settings, self.name)

    def _logits(self, pairs: list[Pair]) -> NDArray[Any]:
        from torch.nn import Identity

        text = {"truncation": TRUNCATION, "max_length": self.reader.window}
        logits: NDArray[Any] = self.encoder.predict(
            pairs,  # sorted by length there
            batch_size=self._batch_size,
            show_progress_bar=False,
            activation_fn=Identity(),  # a model may bring a softmax of its own
            processing_kwargs={"text": text},
        )
        return logits


def _loaded_again(settings: Mapping[str, Any], name: str) -> CrossEncoderNLI:
    """Load the model of a pickle from where it lies, and refuse another than it was."""
    found = CrossEncoderNLI(**settings)
    if found.name != name:
        raise ArgumentError(
            f"What was saved reads with the NLI model {name!r}, but {found.name!r} lies there now; put the first one "
            "back, or make the scorer anew."
        )
    return found


def _window(tokenizer: Any, config: Any, max_length: int) -> int:
    """Return how many tokens of a pair are read: `max_length`, or fewer where the model takes fewer."""
    if max_length < _LEAST:
        raise ArgumentError(f"max_length is {max_length}, but at least {_LEAST} tokens were expected.")
    positions = getattr(config, "max_position_embeddings", None) or max_length
    return int(min(max_length, tokenizer.model_max_length, positions))


def _refuse(dtype: str, batch_size: int) -> None:
    if dtype not in get_args(Precision):
        raise ArgumentError(f"dtype={dtype!r} is no precision; give one of {', '.join(get_args(Precision))}.")
    if batch_size < 1:
        raise ArgumentError(f"batch_size is {batch_size}, but at least 1 was expected.")


def _loaded(model: str, folder: Path, device: str | None, dtype: Precision) -> "CrossEncoder":
    try:
        from safetensors import SafetensorError
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise ArgumentError(
            f"model={model!r} needs sentence-transformers; run: pip install 'eldgr_dspy[nli]'"
        ) from error
    settings = {"dtype": dtype, "use_safetensors": True}
    try:
        with _without_bar():
            encoder: CrossEncoder = CrossEncoder(
                str(folder), device=device, local_files_only=True, model_kwargs=settings
            )
    except (OSError, ValueError, KeyError, RuntimeError, AssertionError, SafetensorError) as error:
        raise ArgumentError(f"model={model!r} could not be loaded from {str(folder)!r}: {error}") from error
    if not getattr(encoder.tokenizer, "is_fast", False):
        raise ArgumentError(
            f"model={model!r} has no fast tokenizer, which says where its tokens stand; convert it to tokenizer.json."
        )
    return encoder


@contextmanager
def _without_bar() -> Iterator[None]:
    """Keep the progress bars of transformers off the terminal in this thread; whatever else it says is heard."""
    from transformers.utils import logging

    here, install = get_ident(), getattr(logging, "set_tqdm_hook", None)
    if install is None:  # early releases of transformers 5 can hide a bar for good only
        yield
        return

    def hidden(bar: Any, args: Any, kwargs: Any) -> Any:
        if get_ident() == here:
            return bar(*args, **{**kwargs, "disable": True})
        return before(bar, args, kwargs) if before else bar(*args, **kwargs)

    with _LOADING:  # the hook is one for all threads: who sets it second would put back the first one's
        before = install(hidden)
        try:
            yield
        finally:
            install(before)


def _refuse_untrained(model: str, transformer: Any, folder: Path) -> None:
    """Refuse a head that the files do not hold: it would be drawn at random, and so would all that it says."""
    base = f"{transformer.base_model_prefix}."
    head = {name for name in transformer.state_dict() if not name.startswith(base)}
    if absent := sorted(head - stored(folder)):
        raise ArgumentError(
            f"model={model!r} has no trained head: {absent[0]} is not among its weights; give a model that was trained "
            "on NLI."
        )
