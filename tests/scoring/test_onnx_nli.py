"""An exported model reads what the model reads; `test_cross_encoder.py` tries both on the same texts."""

import json
import logging
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.programs.scoring.onnx_nli import OnnxNLI, export_onnx
from tests.tiny_nli import held_out

PAIRS = [(example.premise, example.hypothesis) for example in held_out(100)]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def exported(nli: CrossEncoderNLI, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_onnx(nli, tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="session")
def quantised(nli: CrossEncoderNLI, exported: Path) -> Path:
    return export_onnx(nli, exported.parent, int8=True)


def test_the_export_reads_as_the_model_does_at_every_length(nli: CrossEncoderNLI, onnx_nli: OnnxNLI) -> None:
    long = [("Ada is a nurse. " * times, "The nurse is Ada.") for times in range(1, 40)]
    for pairs in (PAIRS, long):
        assert abs(onnx_nli.probabilities(pairs) - nli.probabilities(pairs)).max() <= 1e-5


def test_eight_bits_find_the_same_labels(nli: CrossEncoderNLI, quantised: Path) -> None:
    found, expected = OnnxNLI(quantised).probabilities(PAIRS), nli.probabilities(PAIRS)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.95


def test_with_eight_bits_too_a_reading_does_not_depend_on_what_else_is_asked(quantised: Path) -> None:
    reader = OnnxNLI(quantised)
    whole = reader.probabilities(PAIRS)
    assert whole[::-1].tobytes() == reader.probabilities(PAIRS[::-1]).tobytes()
    assert whole[7].tobytes() == reader.probabilities(PAIRS[7:8]).tobytes()


def test_the_number_of_threads_changes_no_label(exported: Path) -> None:
    one, two = (OnnxNLI(exported, threads=threads).probabilities(PAIRS) for threads in (1, 2))
    assert abs(one - two).max() <= 1e-5


def test_what_is_exported_stands_in_one_folder(exported: Path, quantised: Path) -> None:
    assert exported.parent == quantised.parent
    names = {path.name for path in exported.parent.iterdir()}
    assert names == {"model.onnx", "model-int8.onnx", "config.json", "tokenizer.json", "tokenizer_config.json"}
    assert quantised.stat().st_size < exported.stat().st_size


def test_the_name_tells_the_files_apart(exported: Path, quantised: Path) -> None:
    names = [OnnxNLI(exported).name, OnnxNLI(exported, max_length=64).name, OnnxNLI(quantised).name]
    assert len(set(names)) == 3 and names[1].endswith(" onnx 64 only_first")


def test_the_description_may_lie_in_the_folder_above(exported: Path, tmp_path: Path) -> None:
    """As on the Hub, where exports lie in a folder `onnx` of the model."""
    shutil.copytree(exported.parent, tmp_path, dirs_exist_ok=True)
    (tmp_path / "onnx").mkdir()
    below = (tmp_path / "model.onnx").rename(tmp_path / "onnx" / "model.onnx")
    assert np.isfinite(OnnxNLI(below).probabilities(PAIRS[:1])).all()


def test_an_export_leaves_logging_and_the_model_as_they_were(nli: CrossEncoderNLI, tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    expected = nli.probabilities(PAIRS[:3])
    export_onnx(nli, tmp_path, int8=True)
    assert (root.handlers, root.level) == before
    assert nli.probabilities(PAIRS[:3]).tobytes() == expected.tobytes()


def test_only_a_model_in_float32_is_exported(nli_folder: Path, tmp_path: Path) -> None:
    half = CrossEncoderNLI(nli_folder, dtype="bfloat16")
    with pytest.raises(ArgumentError, match=r"^nli is '.* bfloat16 .*', but float32 was expected; load the model with"):
        export_onnx(half, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_whose_labels_are_not_the_three_is_refused(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported.parent, tmp_path, dirs_exist_ok=True)
    stated = json.loads((tmp_path / "config.json").read_text("utf-8"))
    stated["id2label"] = {"0": "contradiction", "1": "entailment"}
    (tmp_path / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"has the labels contradiction, entailment, but exactly"):
        OnnxNLI(tmp_path / "model.onnx")


def test_a_file_that_is_absent_torn_or_alone_is_refused(exported: Path, tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "model.onnx"
    file.parent.mkdir(parents=True)
    with pytest.raises(ArgumentError, match=r"model\.onnx' is no file; give an exported model"):
        OnnxNLI(file)
    shutil.copy(exported, file)
    with pytest.raises(ArgumentError, match=r"model\.onnx' has no config\.json beside it"):
        OnnxNLI(file)
    shutil.copy(exported.parent / "config.json", file.parent)
    file.write_bytes(b"torn")
    with pytest.raises(ArgumentError, match=r"model\.onnx' could not be loaded: "):
        OnnxNLI(file)


def test_a_model_that_wants_what_the_tokenizer_does_not_give_is_refused(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported.parent, tmp_path, dirs_exist_ok=True)
    graph = onnx.load(exported)
    renamed = {"token_type_ids": "position_ids"}
    for one in graph.graph.input:
        one.name = renamed.get(one.name, one.name)
    for node in graph.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    onnx.save(graph, tmp_path / "model.onnx")
    with pytest.raises(ArgumentError, match=r"model\.onnx' wants position_ids, which its tokenizer does not give"):
        OnnxNLI(tmp_path / "model.onnx")


def test_without_the_extra_the_sentence_names_it(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ArgumentError, match=r"needs onnxruntime; run: pip install 'eldgr_dspy\[nli,onnx\]'"):
        OnnxNLI(exported)
