"""From pairs of texts to probabilities: what a model cannot read is a row of NaN.

A pair is given to the model with invisible characters left out. It cannot be read where a text has no letter and no
digit, or mostly such as the tokenizer does not know, or where the hypothesis leaves the premise too little room.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.folding import INVISIBLE

Pair = tuple[str, str]
Logits = Callable[[list[Pair]], NDArray[Any]]
"""What a model says of n pairs, shape (n, 3), in its own order of columns."""

_DROP = dict.fromkeys(map(ord, INVISIBLE))
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Text(NamedTuple):
    tokens: int
    legible: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """A tokenizer and the tokens that the model takes at once, premise, hypothesis and separators together."""

    tokenizer: Any
    window: int

    def __post_init__(self) -> None:
        self.tokenizer.split_special_tokens = True  # a text that has "[SEP]" in it must not begin another text

    def probabilities(self, pairs: Sequence[Pair], logits: Logits, columns: Sequence[int]) -> Floats:
        """Return shape (n, 3): contradiction, neutral, entailment; the softmax is taken here, and only here.

        Args:
            pairs: (premise, hypothesis). Only such as can be read are given to the model, in one call.
            logits: The model.
            columns: Where it has the three labels.

        Raises:
            ArgumentError: The pairs are not pairs of texts, or the model does not return three logits a pair.
        """
        given = [(_visible(premise), _visible(hypothesis)) for premise, hypothesis in checked(pairs)]
        readable = self._readable(given)
        found = np.full((len(given), 3), np.nan)
        if readable:
            said = np.asarray(logits([given[at] for at in readable]), dtype=np.float64)
            if said.shape != (len(readable), 3):
                raise ArgumentError(
                    f"The model returned the shape {said.shape} for {len(readable)} pairs, but three logits a pair "
                    "were expected; give a model for sequence classification."
                )
            finite = np.isfinite(said).all(axis=1)
            found[np.array(readable)[finite]] = softmax(said[finite], axis=1)[:, list(columns)]
        return found

    def _readable(self, pairs: Sequence[Pair]) -> list[int]:
        texts = self._texts(list({text: None for pair in pairs for text in pair}))
        room = self.window - self.tokenizer.num_special_tokens_to_add(pair=True)
        return [at for at, (one, other) in enumerate(pairs) if _readable(texts[one], texts[other], room)]

    def _texts(self, texts: list[str]) -> dict[str, _Text]:
        known = {text: _Text(0, False) for text in texts}
        worded = [text for text in texts if any(map(str.isalnum, text)) and not _SURROGATE.search(text)]
        if worded:
            cut = self.tokenizer(
                worded,
                add_special_tokens=False,
                padding=False,
                truncation=False,
                return_offsets_mapping=True,
                verbose=False,
            )
            for text, ids, spans in zip(worded, cut["input_ids"], cut["offset_mapping"], strict=True):
                known[text] = _Text(len(ids), self._legible(text, ids, spans))
        return known

    def _legible(self, text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> bool:
        """Whether at least half of the letters and digits are known to the tokenizer.

        One that it knows lies in exactly one token, which is not the unknown one; others are cut into their bytes.
        """
        if text.isascii() and self.tokenizer.unk_token_id not in ids:
            return True
        starts, ends = np.array(spans).reshape(-1, 2).T
        weights = np.where(np.array(ids) == self.tokenizer.unk_token_id, 2, 1)
        change = np.zeros(len(text) + 1, dtype=np.int64)
        np.add.at(change, starts, weights)
        np.add.at(change, ends, -weights)
        letters = np.fromiter(map(str.isalnum, text), dtype=np.bool_, count=len(text))
        known = np.cumsum(change)[:-1][letters] == 1
        return bool(2 * known.sum() >= len(known))


def _readable(premise: _Text, hypothesis: _Text, room: int) -> bool:
    """A hypothesis is never cut; where the premise must be, half of the room is left to it (ours)."""
    whole = premise.tokens + hypothesis.tokens <= room
    return premise.legible and hypothesis.legible and (whole or hypothesis.tokens <= room // 2)


def checked(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return what was given. Raises `ArgumentError` where it is anything but pairs of texts."""
    given: Sequence[object] = pairs
    for at, pair in enumerate(given):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise ArgumentError(
                f"pairs[{at}] is {pair!r:.200}, but a premise and a hypothesis were expected, both str."
            )
    return pairs


def _visible(text: str) -> str:
    return text if text.isascii() else text.translate(_DROP)
