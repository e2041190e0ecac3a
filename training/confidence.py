"""How sure the policy was of each step: c_t, from the log-probabilities of the very tokens that it sampled.

One definition. c_t = exp(mean of log p(token | everything before it)) over the tokens of a step, the geometric mean of
their probabilities, which does not fall with the length of the step (ours; the paper says "token confidence"). p is the
policy's own distribution at temperature 1, over the whole vocabulary, without dropout, whatever the temperature or the
cut-off of the sampling.

Nothing is tokenised again, which could give other tokens: the sampled tokens themselves are decoded. A token belongs to
the step in which it ends; a token without text, such as the end of a sequence, belongs to no step.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from eldgr_dspy.channels.undefined import Score, Undefined

ELSEWHERE = Undefined("the sampled tokens do not spell the text once")
NO_TOKEN = Undefined("no token ends in the step")
NO_NUMBER = Undefined("the policy gave no number for a token of the step")

_PARTIAL = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class TokenConfidence:
    """The tokens of one completion and how likely each was.

    Attributes:
        text: What they spell.
        ends: Where in the text each token ends, in order.
        logps: log p of each, at temperature 1; at most 0.
    """

    text: str
    ends: tuple[int, ...]
    logps: tuple[float, ...]

    def of_steps(self, text: str, spans: Sequence[tuple[int, int]]) -> list[Score]:
        """Return c_t in [0, 1] for each span of a text that the tokens spell, alone or within something longer.

        Args:
            text: The text that was split into steps.
            spans: Start and end of each step, as `split_steps(text).spans`.

        Returns:
            One score a span; undefined if the tokens do not spell the text exactly once, if no token ends in the span,
            or if one of its tokens has no number.
        """
        if self.text.count(text) != 1:
            return [ELSEWHERE] * len(spans)
        at = self.text.index(text)
        places = [slice(*(bisect_right(self.ends, at + edge) for edge in span)) for span in spans]
        return [self._of(self.logps[place]) for place in places]

    def _of(self, logps: tuple[float, ...]) -> Score:
        if not logps:
            return NO_TOKEN
        mean = math.fsum(logps) / len(logps)
        return NO_NUMBER if math.isnan(mean) else min(1.0, math.exp(min(mean, 0.0)))


def token_confidence(
    tokenizer: Any, ids: Sequence[int], logps: Sequence[float], further: Iterable[int] = ()
) -> TokenConfidence:
    """Return the text of sampled tokens, with their log-probabilities; special and further tokens are left out."""
    special = {*tokenizer.all_special_ids, *further}
    pairs = [(token, logp) for token, logp in zip(ids, logps, strict=True) if token not in special]
    pieces = spell(tokenizer.decode, [token for token, _ in pairs])
    return TokenConfidence("".join(pieces), tuple(accumulate(map(len, pieces))), tuple(logp for _, logp in pairs))


def spell(decode: Callable[[list[int]], str], ids: list[int]) -> list[str]:
    """Return what each token adds to the text that all of them spell.

    If several tokens spell one character together, the first gets it and the others nothing. Decoding continues from a
    few tokens back, so that its time grows only with the number of tokens.
    """
    pieces = list[str]()
    before = end = 0  # decoding starts at `before`; the text of the tokens in front of `read` is known
    for at in range(1, len(ids) + 1):
        prefix, longer = decode(ids[before:end]), decode(ids[before:at])
        whole = len(longer) > len(prefix) and not longer.endswith(_PARTIAL)
        if whole or at == len(ids):
            pieces += [longer[len(prefix) :], *[""] * (at - end - 1)]
            before, end = end, at
    return pieces
