"""What a model can read is told by its tokenizer, and what becomes of its logits does not depend on how it is run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.pair_reader import Pair, Reader

PREMISE = "Doha is the capital of Qatar."


def tokenizer_of_bytes(*whole: str) -> Any:
    """A tokenizer as RoBERTa's: it knows ASCII and these letters, and cuts all others into bytes."""
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelt = [bytewise.pre_tokenize_str(letter)[0][0] for letter in whole]
    merges = [(one[0], one[1]) for one in spelt]
    pieces = ["<pad>", "</s>", *alphabet, *spelt]
    bpe = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    bpe.pre_tokenizer = bytewise
    bpe.post_processor = processors.TemplateProcessing(pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=bpe, pad_token="<pad>", eos_token="</s>")


@pytest.fixture
def reader() -> Reader:
    return Reader(tokenizer_of_bytes("é"), 100)


class Saying:  # a model that says the same logits of each pair, and keeps what it was given
    def __init__(self, logits: Sequence[float]) -> None:
        self.logits, self.given = logits, list[Pair]()

    def __call__(self, pairs: list[Pair]) -> NDArray[Any]:
        self.given += pairs
        return np.array([self.logits] * len(pairs), dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Doha", True), ("x", True), ("3 + 4 = 7", True), ("Café é", True), ("Doha, 多哈", True),
        ("多哈是卡塔尔的首都。", False), ("Доха — столица Катара.", False), ("= + —", False),
    ],
)  # fmt: skip
def test_a_letter_that_is_cut_into_bytes_is_not_known(reader: Reader, text: str, read: bool) -> None:
    """Such a tokenizer has no unknown token, and would have the model read bytes."""
    assert np.isfinite(reader.probabilities([(PREMISE, text)], Saying([0, 0, 0]), (0, 1, 2))).all() == read


def test_what_cannot_be_read_is_not_given_to_the_model(reader: Reader) -> None:
    saying = Saying([0, 0, 0])
    reader.probabilities([("", "x"), (PREMISE, "x\u200b"), (PREMISE, "多哈"), (PREMISE, "")], saying, (0, 1, 2))
    assert saying.given == [(PREMISE, "x")]


def test_no_model_is_called_for_nothing(reader: Reader) -> None:
    saying = Saying([0, 0, 0])
    assert np.isnan(reader.probabilities([("", "x")], saying, (0, 1, 2))).all()
    assert saying.given == []


def test_columns_are_put_in_order_after_one_softmax(reader: Reader) -> None:
    result = reader.probabilities([(PREMISE, "x")], Saying([0.0, np.log(2.0), np.log(5.0)]), (2, 0, 1))
    assert result[0] == pytest.approx([5 / 8, 1 / 8, 2 / 8], abs=1e-6)


@pytest.mark.parametrize("logit", [float("nan"), float("inf"), float("-inf")])
def test_one_logit_that_is_not_finite_makes_the_row_nothing(reader: Reader, logit: float) -> None:
    assert np.isnan(reader.probabilities([(PREMISE, "x")], Saying([1.0, logit, 0.0]), (0, 1, 2))).all()


def test_a_hypothesis_leaves_the_premise_half_of_the_window_or_the_premise_is_whole(reader: Reader) -> None:
    """100 tokens, two of them separators, a letter a token."""
    pairs = [
        ("p" * 60, "h" * 38),
        ("p" * 60, "h" * 49),
        ("p" * 60, "h" * 50),
        ("p" * 20, "h" * 78),
        ("p" * 20, "h" * 79),
    ]
    result = reader.probabilities(pairs, Saying([0, 0, 0]), (0, 1, 2))
    assert np.isfinite(result).all(axis=1).tolist() == [True, True, False, True, False]


def test_a_model_with_another_number_of_logits_is_refused(reader: Reader) -> None:
    with pytest.raises(ArgumentError, match=r"^The model returned the shape \(1, 2\) for 1 pairs, but three logits"):
        reader.probabilities([(PREMISE, "x")], Saying([0, 0]), (0, 1, 2))
