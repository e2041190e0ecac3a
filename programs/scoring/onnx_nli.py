"""An NLI model run by ONNX Runtime on a processor: exported from torch, in float32 or with weights of eight bits.

Pairs are run one by one. Padding would be computed too, and with eight bits all that is in a batch shares one scale, so
that a reading would depend on its neighbours.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import MAX_LENGTH, TRUNCATION, CrossEncoderNLI, window
from eldgr_dspy.programs.scoring.labels import stated_columns
from eldgr_dspy.programs.scoring.reading import ModelNLI, Pair, Reader
from eldgr_dspy.programs.scoring.weights import digest

if TYPE_CHECKING:
    import torch

_OPSET = 17


class OnnxNLI(ModelNLI):
    """Reads pairs with an exported model; readings do not depend on what else is asked.

    Attributes:
        name: File, digest, tokens and truncation.
        reader: Its tokenizer, with how many tokens it takes at once.
    """

    def __init__(self, file: str | Path, *, max_length: int = MAX_LENGTH, threads: int | None = None) -> None:
        """Load an exported model.

        Args:
            file: The .onnx file. config.json and the tokenizer lie beside it, or in the folder above as on the Hub.
            max_length: Tokens of a pair at most; never more than the model itself takes.
            threads: Of ONNX Runtime; None is one a core.

        Raises:
            ArgumentError: A file is absent or cannot be read, or the model lacks one of the three labels.
        """
        path = Path(file).expanduser()
        home = _home(path)
        self._session = _session(path, threads)
        labelled = stated_columns(home, str(file))
        config, tokenizer = _described(home)
        _refuse_further_inputs(path, self._session, tokenizer)
        reader = Reader(tokenizer, window(tokenizer, config, max_length))
        name = f"{file}@{digest([path, *home.glob('*.json')])} onnx {reader.window} {TRUNCATION}"
        settings = {"file": str(file), "max_length": max_length, "threads": threads}
        super().__init__(name, reader, labelled, settings)

    def _logits(self, pairs: list[Pair]) -> NDArray[Any]:
        return np.concatenate([self._run(*pair) for pair in pairs])

    def _run(self, premise: str, hypothesis: str) -> NDArray[Any]:
        cut = self.reader.tokenizer(premise, hypothesis, truncation=TRUNCATION, max_length=self.reader.window)
        given = {one.name: np.array([cut[one.name]], dtype=np.int64) for one in self._session.get_inputs()}
        logits: NDArray[Any] = self._session.run(None, given)[0]
        return logits


def export_onnx(nli: CrossEncoderNLI, folder: str | Path, *, int8: bool = False) -> Path:
    """Write a loaded model into a folder with its configuration and tokenizer, and return the file.

    Args:
        nli: A model in float32.
        folder: Made where it is absent.
        int8: Write model-int8.onnx in the place of model.onnx: weights have eight bits, embeddings included, and what
            they are multiplied with is quantised as it comes. Labels may change; compare before you rely on it.

    Raises:
        ArgumentError: The model is not in float32, or a library is missing.
    """
    where = Path(folder).expanduser()
    where.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=where) as aside, _as_it_was():
        written = _exported(nli, Path(aside) / "model.onnx")
        written = _quantised(written) if int8 else written
        transformer: Any = nli.encoder.model
        transformer.config.save_pretrained(where)
        nli.reader.tokenizer.save_pretrained(where)
        return written.replace(where / written.name)


def _exported(nli: CrossEncoderNLI, path: Path) -> Path:
    import torch

    if nli.encoder.dtype != torch.float32:
        raise ArgumentError(f"nli is {nli.name!r}, but float32 was expected; load the model with dtype='float32'.")
    example = nli.reader.tokenizer("A premise.", "A hypothesis.", return_tensors="pt").to(nli.encoder.device)
    names = list(example)
    torch.onnx.export(
        _logits_of(nli.encoder.model, names),
        tuple(example[name] for name in names),
        str(path),
        dynamo=False,
        opset_version=_OPSET,
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "pairs", 1: "tokens"} for name in names} | {"logits": {0: "pairs"}},
    )
    return path


def _logits_of(model: Any, names: Sequence[str]) -> "torch.nn.Module":
    """The model as a function of its inputs by position that returns the logits alone."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.model(**dict(zip(names, given, strict=True))).logits
            return logits

    return Logits().eval()


def _quantised(path: Path) -> Path:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain, small = path.with_stem("model-plain"), path.with_stem("model-int8")
    quant_pre_process(str(path), str(plain), skip_symbolic_shape=True)
    quantize_dynamic(str(plain), str(small), weight_type=QuantType.QInt8)
    return small


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Ignore the warnings of a trace, and take back that the quantiser sets up the root logger when it is imported."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)


def _home(path: Path) -> Path:
    """The folder that describes a model: that of the file, or the one above it."""
    if not path.is_file():
        raise ArgumentError(f"file={str(path)!r} is no file; give an exported model, as `export_onnx` writes it.")
    for folder in (path.parent, path.parent.parent):
        if (folder / "config.json").is_file():
            return folder
    raise ArgumentError(
        f"file={str(path)!r} has no config.json beside it; put the model's config.json and tokenizer there."
    )


def _session(path: Path, threads: int | None) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ArgumentError(f"file={str(path)!r} needs onnxruntime; run: pip install 'eldgr_dspy[nli,onnx]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a thread that waits leaves its core
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ArgumentError(f"file={str(path)!r} could not be loaded: {error}") from error


def _refuse_further_inputs(path: Path, session: Any, tokenizer: Any) -> None:
    further = sorted({one.name for one in session.get_inputs()} - set(tokenizer("", "")))
    if further:
        raise ArgumentError(
            f"file={str(path)!r} wants {', '.join(further)}, which its tokenizer does not give; export the model by "
            "`export_onnx`."
        )


def _described(home: Path) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(home, local_files_only=True)
        return config, AutoTokenizer.from_pretrained(home, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"The model in {str(home)!r} could not be loaded: {error}") from error
