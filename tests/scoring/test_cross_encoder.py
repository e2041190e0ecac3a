"""A cross-encoder that has learnt a small corpus tells the labels apart, and gives no number where it cannot read."""

import json
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from transformers import AutoModel, AutoModelForSequenceClassification

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import LABELS, CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli import load_nli
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.tiny_nli import held_out

FACT = ("Doha is the capital of Qatar.", "The capital of Qatar is Doha.")
PAIRS = [(example.premise, example.hypothesis) for example in held_out(20)]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def alone(nli: CrossEncoderNLI) -> dict[tuple[str, str], Floats]:
    return {pair: nli.probabilities([pair])[0] for pair in PAIRS}


def alter(folder: Path, source: Path, change: Callable[[Any], object]) -> Path:
    shutil.copytree(source, folder, dirs_exist_ok=True)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        change(model)
    model.save_pretrained(folder)
    return folder


def test_on_pairs_that_it_was_not_shown_each_label_is_found(nli: CrossEncoderNLI) -> None:
    examples = held_out()
    result = nli.probabilities([(example.premise, example.hypothesis) for example in examples])
    right = np.array([LABELS[column] for column in result.argmax(axis=1)]) == [example.label for example in examples]
    for label in LABELS:
        assert right[[example.label == label for example in examples]].mean() > 0.9


def test_softmax_is_taken_once_and_labels_in_their_order(
    nli: CrossEncoderNLI, nli_folder: Path, tmp_path: Path
) -> None:
    tokens = nli.encoder.tokenizer(*FACT, return_tensors="pt")
    transformer: Any = nli.encoder.model
    with torch.inference_mode():
        logits = transformer(**tokens).logits[0].double().numpy()
    contradiction, entailment, neutral = softmax(logits)
    assert nli.probabilities([FACT])[0] == pytest.approx([contradiction, neutral, entailment], abs=1e-5)
    own = {"activation_fn": "torch.nn.modules.activation.Softmax"}
    other = configure(tmp_path / "own", nli_folder, lambda config: config.update(sentence_transformers=own))
    assert CrossEncoderNLI(other).probabilities([FACT]) == pytest.approx(nli.probabilities([FACT]), abs=1e-6)
    labels = {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}  # where the model has con, ent, neu
    columns = {label: int(column) for column, label in labels.items()}
    folder = configure(tmp_path / "order", nli_folder, lambda config: config.update(id2label=labels, label2id=columns))
    assert CrossEncoderNLI(folder).probabilities([FACT])[0] == pytest.approx(nli.probabilities([FACT])[0][[1, 2, 0]])


def configure(folder: Path, source: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    change(config)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@settings(max_examples=15)
@given(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=20), st.integers(1, 15))
def test_a_reading_does_not_depend_on_others(nli: CrossEncoderNLI, alone: Any, pairs: list[Any], times: int) -> None:
    result = nli.probabilities([*pairs, (FACT[0] * times, FACT[1])])
    assert abs(result[:-1] - [alone[pair] for pair in pairs]).max() <= 1e-5


def test_neither_batches_nor_threads_matter_and_those_of_torch_stay(nli: CrossEncoderNLI, nli_folder: Path) -> None:
    whole = nli.probabilities(PAIRS)
    for size in (1, 3, 64):
        assert abs(CrossEncoderNLI(nli_folder, batch_size=size).probabilities(PAIRS) - whole).max() <= 1e-5
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(nli.probabilities, [PAIRS, PAIRS[::-1]] * 4):
            assert min(abs(result - whole).max(), abs(result[::-1] - whole).max()) <= 1e-5
    before = torch.get_num_threads()
    CrossEncoderNLI(nli_folder).probabilities([FACT])
    assert torch.get_num_threads() == before


def test_names_distinguish_readings_and_half_precision(nli: CrossEncoderNLI, nli_folder: Path, tmp_path: Path) -> None:
    half = CrossEncoderNLI(nli_folder, dtype="bfloat16")
    assert half.name == nli.name.replace("float32", "bfloat16") != nli.name
    assert abs(half.probabilities(PAIRS) - nli.probabilities(PAIRS)).max() < 0.1
    other = alter(tmp_path / "other", nli_folder, lambda model: model.classifier.bias.add_(1))
    readers = (CrossEncoderNLI(nli_folder), CrossEncoderNLI(nli_folder, max_length=64), CrossEncoderNLI(other))
    names = [one.name for one in readers]
    assert names[0].endswith(" float32 128 only_first") and names[1].endswith(" float32 64 only_first")
    assert len({name.split()[0].rpartition("@")[2] for name in names}) == 2 and len(set(names)) == 3


def test_only_the_premise_is_cut(nli: CrossEncoderNLI) -> None:
    """What stands behind the window is not shown to the model; the hypothesis is, to its end."""
    texts: list[str] = []
    filler, transformer = "Ada is a nurse. " * 40, cast("Any", nli.encoder.model)
    hook = transformer.get_input_embeddings().register_forward_pre_hook(
        lambda _, values: texts.extend(nli.encoder.tokenizer.batch_decode(values[0]))
    )
    for premise in (f"{FACT[0]} {filler}", f"{filler} {FACT[0]}", filler):
        nli.probabilities([(premise, FACT[1])])
    hook.remove()
    ahead, behind, nothing = texts
    assert behind == nothing
    assert [text.count(FACT[0].lower()) for text in texts] == [1, 0, 0]
    assert all(text.endswith(f"[SEP] {FACT[1].lower()}[SEP]") for text in texts), ahead


@pytest.mark.parametrize("text", ["a" * 100_000, "a b " * 25_000, "Ada is a nurse. " * 6_250], ids=["a", "ab", "words"])
def test_a_hypothesis_of_100_kb_is_not_a_number_and_such_a_premise_is_cut(nli: CrossEncoderNLI, text: str) -> None:
    result = nli.probabilities([(FACT[0], text), (text, FACT[1]), FACT])
    assert np.isnan(result).any(axis=1).tolist() == [True, False, False]


@each_case("scoring", "unreadable texts")
def test_a_text_that_cannot_be_read_is_no_number_and_spoils_no_other(nli: CrossEncoderNLI, text: str) -> None:
    """A text is read where at least half of its letters and digits are known to the model's tokenizer."""
    result = nli.probabilities([(text, FACT[1]), FACT, (FACT[0], text), (text, text)])
    assert np.isnan(result).all(axis=1).tolist() == [True, False, True, True]
    assert result[1] == pytest.approx(nli.probabilities([FACT])[0], abs=1e-5)


def test_separators_and_the_invisible_change_nothing_and_foreign_letters_are_read(
    nli: CrossEncoderNLI,
) -> None:  # hazard 70
    tokenizer = nli.reader.tokenizer
    ids = tokenizer(f"{FACT[0]} [SEP] [CLS] [PAD]", FACT[1])["input_ids"]
    assert [one for one in ids if one in tokenizer.all_special_ids] == [ids[0], ids[-1], ids[-1]]
    # Otherwise one letter would take a step out of what is scored.
    for text in ("Doha\u200b is the capi\u00adtal of Qatar.", "\ufeffDoha is the capital of \u2060Qatar."):
        assert nli.probabilities([(text, FACT[1])]) == pytest.approx(nli.probabilities([FACT]), abs=1e-5)
    assert np.isfinite(nli.probabilities([(f"{FACT[0]} 多哈", FACT[1])])).all()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), max_size=4))
def test_any_row_is_a_distribution_or_nothing(nli: CrossEncoderNLI, pairs: list[tuple[str, str]]) -> None:
    result = nli.probabilities(pairs)
    nothing = np.isnan(result).all(axis=1)
    assert result.shape == (len(pairs), 3) and result.dtype == np.float64
    assert result[~nothing].sum(axis=1) == pytest.approx(1) and (result[~nothing] >= 0).all()


@pytest.mark.parametrize("pairs", [["ab"], [("one", None)], [("one", "two", "three")], ["a premise", "a hypothesis"]])
def test_what_is_not_a_pair_of_texts_is_refused(nli: CrossEncoderNLI, pairs: Any) -> None:
    message = r"^pairs\[0\] must be a premise and a hypothesis, both str; got .*"
    refuses(ArgumentError, message, nli.probabilities, pairs)


def test_a_model_without_labels_head_or_extra_is_refused(nli_folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    configure(tmp_path / "unlabelled", nli_folder, lambda config: config.pop("id2label"))
    message = r"must have exactly the labels .*; its config\.json has None as id2label"
    refuses(ArgumentError, message, load_nli, tmp_path / "unlabelled")
    # Its configuration states the labels, and a head would be drawn at random.
    headless = shutil.copytree(nli_folder, tmp_path / "headless")
    body: Any = AutoModel.from_pretrained(nli_folder)
    body.save_pretrained(headless)
    shutil.copy(nli_folder / "config.json", headless)
    refuses(ArgumentError, r"has no trained head: classifier\.bias is not among its weights", CrossEncoderNLI, headless)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    needs = r"needs sentence-transformers; run: pip install 'eldgr_dspy\[nli\]'"
    refuses(ArgumentError, needs, CrossEncoderNLI, nli_folder)


@each_case("scoring", "torn models")
def test_a_torn_model_is_refused_with_its_folder(nli_folder: Path, tmp_path: Path, name: str, content: str) -> None:
    shutil.copytree(nli_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_text(content, encoding="utf-8")
    refuses(ArgumentError, r"could not be loaded from '", CrossEncoderNLI, tmp_path)


@each_case("scoring", "refused settings of a cross-encoder")
def test_a_setting_out_of_range_is_refused(nli_folder: Path, settings: dict[str, Any], expected: str) -> None:
    refuses(ArgumentError, expected, CrossEncoderNLI, nli_folder, **settings)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_no_number(nli_folder: Path, tmp_path: Path, weight: float) -> None:
    folder = alter(tmp_path, nli_folder, lambda model: model.classifier.bias[1].fill_(weight))
    assert np.isnan(CrossEncoderNLI(folder).probabilities([FACT, PAIRS[0]])).all()
