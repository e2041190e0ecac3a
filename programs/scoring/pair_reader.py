"""From pairs of texts to probabilities: a pair that a model cannot read is a row of NaN.

A pair is given to the model without invisible characters. It cannot be read if a text has no letter and no digit, or
mostly ones that the tokenizer does not know, or if the hypothesis leaves the premise too little room.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.text.folding import drop_invisible

Pair = tuple[str, str]
Logits = Callable[[list[Pair]], NDArray[Any]]
"""The model's output for n pairs, shape (n, 3), in its own order of columns."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reader:
    """A tokenizer and its limit of tokens: premise, hypothesis and separators together."""

    tokenizer: Any
    window: int

    def __post_init__(self) -> None:
        self.tokenizer.split_special_tokens = True  # a "[SEP]" inside a text must not start another text

    def probabilities(self, pairs: Sequence[Pair], logits: Logits, columns: Sequence[int]) -> Floats:
        """Return shape (n, 3): contradiction, neutral, entailment, which the model has in `columns`.

        Only readable pairs are given to the model, in one call. The softmax is taken here, and only here.
        """
        texts = [(drop_invisible(premise), drop_invisible(hypothesis)) for premise, hypothesis in check_pairs(pairs)]
        readable = self._readable(texts)
        probabilities = np.full((len(texts), 3), np.nan)
        if readable:
            output = np.asarray(logits([texts[at] for at in readable]), dtype=np.float64)
            if output.shape != (len(readable), 3):
                raise ArgumentError(
                    f"The model returned the shape {output.shape} for {len(readable)} pairs, but three logits a pair "
                    "were expected; give a model for sequence classification."
                )
            finite = np.isfinite(output).all(axis=1)
            probabilities[np.array(readable)[finite]] = softmax(output[finite], axis=1)[:, list(columns)]
        return probabilities

    def _readable(self, pairs: Sequence[Pair]) -> list[int]:
        """Return which pairs can be read. A hypothesis is never cut; a cut premise keeps half of the room (ours)."""
        lengths = self._lengths(dict.fromkeys(text for pair in pairs for text in pair))
        room = self.window - self.tokenizer.num_special_tokens_to_add(pair=True)
        return [
            at
            for at, (premise, hypothesis) in enumerate(pairs)
            if premise in lengths
            and hypothesis in lengths
            and lengths[hypothesis] <= max(room - lengths[premise], room // 2)
        ]

    def _lengths(self, texts: Iterable[str]) -> dict[str, int]:
        """Return how many tokens each text has that can be read."""
        lengths = dict[str, int]()
        readable = [text for text in texts if any(map(str.isalnum, text)) and not _SURROGATE.search(text)]
        if readable:
            off = dict.fromkeys(("add_special_tokens", "padding", "truncation", "verbose"), False)
            cut = self.tokenizer(readable, return_offsets_mapping=True, **off)
            for text, ids, spans in zip(readable, cut["input_ids"], cut["offset_mapping"], strict=True):
                if self._legible(text, ids, spans):
                    lengths[text] = len(ids)
        return lengths

    def _legible(self, text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> bool:
        """Return whether at least half of the letters and digits are known to the tokenizer."""
        if text.isascii() and self.tokenizer.unk_token_id not in ids:
            return True
        starts, ends = np.array(spans).reshape(-1, 2).T
        weights = np.where(np.array(ids) == self.tokenizer.unk_token_id, 2, 1)
        change = np.zeros(len(text) + 1, dtype=np.int64)
        np.add.at(change, starts, weights)
        np.add.at(change, ends, -weights)
        letters = np.fromiter(map(str.isalnum, text), dtype=np.bool_, count=len(text))
        whole = np.cumsum(change)[:-1][letters] == 1  # others are of the unknown token, or split into their bytes
        return bool(2 * whole.sum() >= len(whole))


def check_pairs(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs. Raises `ArgumentError` for anything but pairs of texts."""
    items: Sequence[object] = pairs
    for at, pair in enumerate(items):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise ArgumentError(f"pairs[{at}] must be a premise and a hypothesis, both str; got {pair!r:.200}.")
    return pairs
