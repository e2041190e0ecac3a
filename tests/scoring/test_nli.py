"""A pair is read once while it is remembered, a tokenizer tells what can be read; a saved program finds its model."""

import copy
import json
import pickle
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli import CachedNLI, load_nli
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.pair_reader import Pair
from eldgr_dspy.programs.scoring.pair_reader import Reader as PairReader
from eldgr_dspy.programs.selector import Selector
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.tiny_nli import held_out

Pairs = Sequence[tuple[str, str]]

texts = st.sampled_from(["", "a", "b", "ab", "\0", "a\0", "\ud800"])
calls = st.lists(st.lists(st.tuples(texts, texts), max_size=5), max_size=8)
PREMISE = "Doha is the capital of Qatar."


class Counting:  # reads the lengths of the texts, and counts what it is asked
    def __init__(self, name: str = "counting") -> None:
        self.name, self.calls = name, list[list[tuple[str, str]]]()

    def probabilities(self, pairs: Pairs) -> Floats:
        self.calls.append(list(pairs))
        return np.array([self.row(*pair) for pair in pairs]).reshape(-1, 3)

    def row(self, premise: str, hypothesis: str) -> list[float]:
        sums = float(sum(map(ord, premise))), float(sum(map(ord, hypothesis)))
        return [float("nan")] * 3 if premise == "" else [*sums, len(self.name)]


@given(calls, st.integers(1, 6))
@example([[("a", "b"), ("b", "a"), ("a", "b"), ("", "b")], [("", "b")]], 6)
def test_it_reads_alike_and_asks_only_what_it_lacks(questions: list[list[tuple[str, str]]], entries: int) -> None:
    plain, counting = Counting(), Counting()
    cache, memory = CachedNLI(counting, entries), list[tuple[str, str]]()
    for pairs in questions:
        before = len(counting.calls)
        np.testing.assert_array_equal(cache.probabilities(pairs), plain.probabilities(pairs))
        fresh = list(dict.fromkeys(pair for pair in pairs if pair not in memory))
        assert counting.calls[before:] == ([fresh] if fresh else [])
        memory = list(dict.fromkeys(reversed([*memory, *pairs])))[:entries][::-1]
        assert len(cache) == len(memory) <= entries
    assert cache.read == sum(map(len, counting.calls))


def test_another_name_is_another_model_and_what_is_returned_may_be_changed_without_harm() -> None:
    counting = Counting()
    cache, pairs = CachedNLI(counting), [("a", "b")]
    cache.probabilities(pairs)[:] = 7
    assert cache.probabilities(pairs)[0, 2] == len("counting")
    counting.name = "renamed-since"
    assert cache.probabilities(pairs)[0, 2] == len(cache.name) == len("renamed-since")
    assert cache.name == "renamed-since"


def test_threads_that_ask_the_same_ask_the_model_once() -> None:
    counting = Counting()
    cache, pairs, start = CachedNLI(counting), [(str(one), "b") for one in range(50)], threading.Barrier(4)

    def ask(_: int) -> bool:
        start.wait()
        return bool(np.isfinite(cache.probabilities(pairs)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(4)))
    assert counting.calls == [pairs]


def test_neither_a_call_that_fails_nor_a_reader_that_returns_another_shape_leaves_anything_behind() -> None:
    class Failing(Counting):
        def probabilities(self, pairs: Pairs) -> Floats:
            if not self.calls:
                self.calls.append([])
                raise OSError("no device")
            return super().probabilities(pairs)

    cache = CachedNLI(Failing())
    refuses(OSError, "no device", cache.probabilities, [("a", "b")])
    assert len(cache) == 0 and np.isfinite(cache.probabilities([("a", "b")])).all()

    class Short(Counting):
        def probabilities(self, pairs: Pairs) -> Floats:
            return np.zeros((len(pairs), 2))

    message = r"^The NLI model 'counting' returned the shape \(1, 2\) for 1 pairs"
    refuses(ArgumentError, message, CachedNLI(Short()).probabilities, [("a", "b")])


def test_a_copy_shares_the_model_and_what_is_remembered_and_a_pickle_has_the_reader_alone(nli: CrossEncoderNLI) -> None:
    cache = CachedNLI(nli)
    assert copy.deepcopy({"scorer": cache})["scorer"] is cache
    assert copy.deepcopy({"reader": nli})["reader"] is nli
    scorer: Any = Selector(scorers=NLIScorer(cache)).deepcopy().scorers[0]
    assert copy.copy(nli) is nli and scorer.nli is cache
    cache = CachedNLI(Counting(), 3)
    cache.probabilities([("a", "b"), ("b", "a")])
    again = repickle(cache)
    assert (again.name, again.read, len(again)) == ("counting", 0, 0)
    again.probabilities([("a", str(one)) for one in range(5)])
    assert len(again) == 3


def repickle(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))  # noqa: S301 -- our own


def test_a_saved_program_finds_its_model_and_refuses_another(nli_folder: Path, tmp_path: Path) -> None:
    """The weights stay out of the file."""
    cache = load_nli(nli_folder, max_length=64, batch_size=2)
    Selector(scorers=NLIScorer(cache)).save(tmp_path / "program", save_program=True)
    program: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    nli, pairs = program.scorers[0].nli, [(example.premise, example.hypothesis) for example in held_out(5)]
    assert nli.name == cache.name and nli.nli is not cache.nli
    assert nli.probabilities(pairs).tobytes() == cache.probabilities(pairs).tobytes()
    assert (tmp_path / "program" / "program.pkl").stat().st_size < 100_000
    # Its readings would be others, under the same program.
    folder = shutil.copytree(nli_folder, tmp_path / "nli")
    scorer = NLIScorer(load_nli(folder))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"since": "changed"}), encoding="utf-8")
    refuses(ArgumentError, r"^What was saved reads with the NLI model '.*', but '.*' is there now; ", repickle, scorer)
    shutil.rmtree(folder)
    refuses(ArgumentError, r"must be a folder on this disk; give the folder that holds the model's", repickle, scorer)


def tokenizer_of_bytes(*whole: str) -> Any:
    """A tokenizer as RoBERTa's: it knows ASCII and these letters, and cuts all others into bytes."""
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelt = [bytewise.pre_tokenize_str(letter)[0][0] for letter in whole]
    pieces = ["<pad>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *spelt]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    bpe = Tokenizer(models.BPE(vocabulary, [(one[0], one[1]) for one in spelt]))
    bpe.pre_tokenizer = bytewise
    bpe.post_processor = processors.TemplateProcessing(pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=bpe, pad_token="<pad>", eos_token="</s>")


@pytest.fixture
def reader() -> PairReader:
    return PairReader(tokenizer_of_bytes("é"), 100)


class Saying:  # a model that says the same logits of each pair, and keeps what it was given
    def __init__(self, logits: Sequence[float]) -> None:
        self.logits, self.pairs = logits, list[Pair]()

    def __call__(self, pairs: list[Pair]) -> NDArray[Any]:
        self.pairs += pairs
        return np.array([self.logits] * len(pairs), dtype=np.float32)


@each_case("scoring", "letters of bytes")
def test_a_letter_that_is_cut_into_bytes_is_not_known(reader: PairReader, text: str, read: bool) -> None:
    """Such a tokenizer has no unknown token, and would have the model read bytes."""
    assert np.isfinite(reader.probabilities([(PREMISE, text)], Saying([0, 0, 0]), (0, 1, 2))).all() == read


def test_what_cannot_be_read_is_not_given_to_the_model_and_none_is_called_for_nothing(reader: PairReader) -> None:
    first, second = Saying([0, 0, 0]), Saying([0, 0, 0])
    reader.probabilities([("", "x"), (PREMISE, "x\u200b"), (PREMISE, "多哈"), (PREMISE, "")], first, (0, 1, 2))
    assert np.isnan(reader.probabilities([("", "x")], second, (0, 1, 2))).all()
    assert (first.pairs, second.pairs) == ([(PREMISE, "x")], [])


def test_columns_are_put_in_order_the_premise_is_cut_and_another_number_of_logits_refused(reader: PairReader) -> None:
    result = reader.probabilities([(PREMISE, "x")], Saying([0.0, np.log(2.0), np.log(5.0)]), (2, 0, 1))
    assert result[0] == pytest.approx([5 / 8, 1 / 8, 2 / 8], abs=1e-6)
    # 100 tokens, two of them separators, a letter a token.
    pairs = [("p" * premise, "h" * n) for premise, n in ((60, 38), (60, 49), (60, 50), (20, 78), (20, 79))]
    result = reader.probabilities(pairs, Saying([0, 0, 0]), (0, 1, 2))
    assert np.isfinite(result).all(axis=1).tolist() == [True, True, False, True, False]
    with pytest.raises(ArgumentError, match=r"^The model returned the shape \(1, 2\) for 1 pairs, but three logits"):
        reader.probabilities([(PREMISE, "x")], Saying([0, 0]), (0, 1, 2))


@pytest.mark.parametrize("logit", [float("nan"), float("inf"), float("-inf")])
def test_one_logit_that_is_not_finite_makes_the_row_nothing(reader: PairReader, logit: float) -> None:
    assert np.isnan(reader.probabilities([(PREMISE, "x")], Saying([1.0, logit, 0.0]), (0, 1, 2))).all()
