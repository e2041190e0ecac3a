"""A pair is read once while it is remembered, and what is remembered is what was read."""

import copy
import json
import pickle
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli import CachedNLI, load_nli
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.selector import Selector
from tests.tiny_nli import held_out

Pairs = Sequence[tuple[str, str]]

texts = st.sampled_from(["", "a", "b", "ab", "\0", "a\0", "\ud800"])
calls = st.lists(st.lists(st.tuples(texts, texts), max_size=5), max_size=8)


class Counting:  # reads the lengths of the texts, and counts what it is asked
    def __init__(self, name: str = "counting") -> None:
        self.name, self.asked = name, list[list[tuple[str, str]]]()

    def probabilities(self, pairs: Pairs) -> Floats:
        self.asked.append(list(pairs))
        return np.array([self.row(*pair) for pair in pairs]).reshape(-1, 3)

    def row(self, premise: str, hypothesis: str) -> list[float]:
        seen = float(sum(map(ord, premise))), float(sum(map(ord, hypothesis)))
        return [float("nan")] * 3 if premise == "" else [*seen, len(self.name)]


@given(calls, st.integers(1, 6))
@example([[("a", "b"), ("b", "a"), ("a", "b"), ("", "b")], [("", "b")]], 6)
def test_it_reads_alike_and_asks_only_what_it_lacks(questions: list[list[tuple[str, str]]], entries: int) -> None:
    plain, counting = Counting(), Counting()
    cached, remembered = CachedNLI(counting, entries), list[tuple[str, str]]()
    for pairs in questions:
        before = len(counting.asked)
        np.testing.assert_array_equal(cached.probabilities(pairs), plain.probabilities(pairs))
        fresh = list(dict.fromkeys(pair for pair in pairs if pair not in remembered))
        assert counting.asked[before:] == ([fresh] if fresh else [])
        remembered = list(dict.fromkeys(reversed([*remembered, *pairs])))[:entries][::-1]
        assert len(cached) == len(remembered) <= entries
    assert cached.read == sum(map(len, counting.asked))


def test_another_name_is_another_model() -> None:
    counting = Counting()
    cached = CachedNLI(counting)
    assert cached.probabilities([("a", "b")])[0, 2] == len("counting")
    counting.name = "renamed-since"
    assert cached.probabilities([("a", "b")])[0, 2] == len("renamed-since")
    assert cached.name == "renamed-since"


def test_what_is_returned_may_be_changed_without_harm() -> None:
    cached = CachedNLI(Counting())
    cached.probabilities([("a", "b")])[:] = 7
    assert cached.probabilities([("a", "b")])[0, 2] == len("counting")


def test_threads_that_ask_the_same_ask_the_model_once() -> None:
    counting = Counting()
    cached, pairs, start = CachedNLI(counting), [(str(one), "b") for one in range(50)], threading.Barrier(4)

    def ask() -> None:
        start.wait()
        assert np.isfinite(cached.probabilities(pairs)).all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counting.asked == [pairs]


def test_a_call_that_fails_leaves_nothing_behind_and_the_next_one_is_asked() -> None:
    class Failing(Counting):
        def probabilities(self, pairs: Pairs) -> Floats:
            if not self.asked:
                self.asked.append([])
                raise OSError("no device")
            return super().probabilities(pairs)

    cached = CachedNLI(Failing())
    with pytest.raises(OSError, match="no device"):
        cached.probabilities([("a", "b")])
    assert len(cached) == 0 and np.isfinite(cached.probabilities([("a", "b")])).all()


def test_a_reader_that_returns_another_shape_is_refused() -> None:
    class Short(Counting):
        def probabilities(self, pairs: Pairs) -> Floats:
            return np.zeros((len(pairs), 2))

    with pytest.raises(ArgumentError, match=r"^The NLI model 'counting' returned the shape \(1, 2\) for 1 pairs"):
        CachedNLI(Short()).probabilities([("a", "b")])


def test_a_copy_of_a_program_shares_the_model_and_what_is_remembered(nli: CrossEncoderNLI) -> None:
    cached = CachedNLI(nli)
    assert copy.deepcopy({"scorer": cached})["scorer"] is cached
    assert copy.deepcopy({"reader": nli})["reader"] is nli
    scorer: Any = Selector(scorers=NLIScorer(cached)).deepcopy().scorers[0]
    assert copy.copy(nli) is nli and scorer.nli is cached


def pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))  # noqa: S301 -- our own


def test_a_pickle_has_the_reader_and_the_room_and_nothing_that_was_read() -> None:
    cached = CachedNLI(Counting(), 3)
    cached.probabilities([("a", "b"), ("b", "a")])
    again = pickled(cached)
    assert (again.name, again.read, len(again)) == ("counting", 0, 0)
    again.probabilities([("a", str(one)) for one in range(5)])
    assert len(again) == 3


def test_a_saved_program_loads_its_model_from_where_it_lay(nli_folder: Path, tmp_path: Path) -> None:
    """The weights stay out of the file."""
    cached = load_nli(nli_folder, max_length=64, batch_size=2)
    Selector(scorers=NLIScorer(cached)).save(tmp_path / "program", save_program=True)
    loaded: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    nli, pairs = loaded.scorers[0].nli, [(example.premise, example.hypothesis) for example in held_out(5)]
    assert nli.name == cached.name and nli.nli is not cached.nli
    assert nli.probabilities(pairs).tobytes() == cached.probabilities(pairs).tobytes()
    assert (tmp_path / "program" / "program.pkl").stat().st_size < 100_000


def test_a_saved_program_refuses_another_model_than_its_own(nli_folder: Path, tmp_path: Path) -> None:
    """Its readings would be others, under the same program."""
    folder = shutil.copytree(nli_folder, tmp_path / "nli")
    scorer = NLIScorer(load_nli(folder))
    stated = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(stated | {"since": "changed"}), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"^What was saved reads with the NLI model '.*', but '.*' is there now; "):
        pickled(scorer)
    shutil.rmtree(folder)
    with pytest.raises(ArgumentError, match=r"must be a folder on this disk; give the folder that holds the model's"):
        pickled(scorer)


def test_room_for_nothing_is_refused() -> None:
    message = r"^entries must be at least 1; got 0\. Without a memory, use the reader itself"
    with pytest.raises(ArgumentError, match=message):
        CachedNLI(Counting(), 0)
