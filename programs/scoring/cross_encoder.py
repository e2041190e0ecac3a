"""An NLI model as a cross-encoder of sentence-transformers: torch reads premise and hypothesis together.

The labels are those of the model's own configuration, only the premise is truncated, and the softmax is taken once.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from numpy.typing import NDArray

from eldgr_dspy.base.file_limits import document, parsed_json
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.pair_reader import Pair, Reader
from eldgr_dspy.programs.scoring.weights import commit_of, find_model, revision_of, tensor_names
from eldgr_dspy.rule.questions import require_one_of

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Precision = Literal["float32", "bfloat16", "float16"]

DEFAULT = "cross-encoder/nli-deberta-v3-small"
MAX_LENGTH = 512
"""Tokens of a pair, as the paper's model was trained."""
TRUNCATION = "only_first"
LABELS = ("contradiction", "neutral", "entailment")
"""The order of the columns of `NLI.probabilities`."""

_LEAST = 8


class CrossEncoderNLI:
    """Reads pairs with a three-way NLI cross-encoder; in float32, results do not depend on the other pairs of a call.

    Threads take turns, copies of a program share it, and a pickle says how to load it again.
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
    ) -> None:
        """Load the model.

        Args:
            model: A folder, or a name on the Hugging Face Hub; weights must be safetensors.
            revision: A commit, tag or branch of the Hub; a folder has none. With HF_HUB_OFFLINE=1 in the environment
                the network is not used.
            device: As torch names it; None takes a GPU if there is one. The number of torch's threads is not changed.
            dtype: The precision of weights and arithmetic. Probabilities are always in double precision.
            max_length: Tokens of a pair at most; never more than the model itself takes.
            batch_size: Pairs at once. On a processor more than 16 bring no gain.

        Raises:
            ArgumentError: The model is absent and cannot be fetched, cannot be loaded, has no trained head, or lacks
                one of the three labels.
        """
        require_one_of("dtype", dtype, get_args(Precision))
        if batch_size < 1:
            raise ArgumentError(f"batch_size must be at least 1; got {batch_size}.")
        self.folder = find_model(model, revision)
        self._columns = stated_columns(self.folder, str(model))
        self.encoder = _load(str(model), self.folder, device, dtype)
        self._batch_size = batch_size
        transformer: Any = self.encoder.model
        _require_head(str(model), transformer, self.folder)
        if max_length < _LEAST:
            raise ArgumentError(f"max_length must be at least {_LEAST} tokens; got {max_length}.")
        positions = getattr(transformer.config, "max_position_embeddings", None) or max_length
        window = int(min(max_length, self.encoder.tokenizer.model_max_length, positions))
        self.reader = Reader(self.encoder.tokenizer, window)
        self.name = f"{model}@{revision_of(self.folder)} {dtype} {self.reader.window} {TRUNCATION}"
        self._alone = Lock()  # a tokenizer holds its truncation as state, so two threads would clash
        self._settings = {
            "model": str(model),
            "revision": commit_of(self.folder) or revision,
            "device": device,
            "dtype": dtype,
            "max_length": max_length,
            "batch_size": batch_size,
        }

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return what the model reads in (premise, hypothesis) pairs; see `NLI`."""
        with self._alone:
            return self.reader.probabilities(pairs, self._logits, self._columns)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a copy of a program that holds it needs no second model

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


def stated_columns(folder: Path, model: str) -> tuple[int, int, int]:
    """Return the columns of contradiction, neutral and entailment that config.json in a model's folder states."""
    # Read before transformers reads it, which makes up labels if the file states none.
    path = folder / "config.json"
    try:
        config = parsed_json(document(path), str(path))
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"model={model!r} could not be loaded from {str(folder)!r}: its config.json is not JSON ({error})."
        ) from error
    labels = config.get("id2label") if isinstance(config, dict) else None
    entries = labels.items() if isinstance(labels, dict) else ()
    columns = {str(label).strip().casefold(): column for column, label in entries}
    if set(columns) != set(LABELS) or {column for column, _ in entries} != {"0", "1", "2"}:
        raise ArgumentError(
            f"model={model!r} must have exactly the labels contradiction, neutral and entailment; its config.json has "
            f"{labels!r:.120} as id2label. If it is a three-way NLI model, name its columns there in the order of its "
            'training, as "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}.'
        )
    contradiction, neutral, entailment = (int(columns[label]) for label in LABELS)
    return contradiction, neutral, entailment


def _loaded_again(settings: Mapping[str, Any], name: str) -> CrossEncoderNLI:
    """Load the model of a pickle from its folder, and refuse it if it has changed."""
    nli = CrossEncoderNLI(**settings)
    if nli.name != name:
        raise ArgumentError(
            f"What was saved reads with the NLI model {name!r}, but {nli.name!r} is there now; put the first one "
            "back, or make the scorer anew."
        )
    return nli


def _load(model: str, folder: Path, device: str | None, dtype: Precision) -> "CrossEncoder":
    try:
        from safetensors import SafetensorError
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise ArgumentError(
            f"model={model!r} needs sentence-transformers; run: pip install 'eldgr_dspy[nli]'"
        ) from error
    settings = {"dtype": dtype, "use_safetensors": True}
    try:
        encoder: CrossEncoder = CrossEncoder(str(folder), device=device, local_files_only=True, model_kwargs=settings)
    except (OSError, ValueError, KeyError, RuntimeError, AssertionError, SafetensorError) as error:
        raise ArgumentError(f"model={model!r} could not be loaded from {str(folder)!r}: {error}") from error
    if not getattr(encoder.tokenizer, "is_fast", False):
        raise ArgumentError(
            f"model={model!r} has no fast tokenizer, which gives the place of each token; convert it to tokenizer.json."
        )
    return encoder


def _require_head(model: str, transformer: Any, folder: Path) -> None:
    """Refuse a head that is missing in the files: it would be random, and so would every result."""
    base = f"{transformer.base_model_prefix}."
    head = {name for name in transformer.state_dict() if not name.startswith(base)}
    if absent := sorted(head - tensor_names(folder)):
        raise ArgumentError(
            f"model={model!r} has no trained head: {absent[0]} is not among its weights; give a model that was trained "
            "on NLI."
        )
