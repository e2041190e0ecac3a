"""Short text: an entity, a date, a phrase. It is certified by an occurrence in the evidence."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from eldgr_dspy.answer_types.base import AnswerType, Score, require_gold
from eldgr_dspy.matching.text_keys import AnswerClass, short_class
from eldgr_dspy.text.stripping import strip_answer

_ALL_OR_NOTHING = frozenset({"yes", "no", "noanswer"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")


class ShortText(AnswerType):
    """Short text, scored by exact match and token F1 as HotpotQA does.

    The key of a class is that of the stripped answer in lower case, without surplus white space and without the article
    at its head. Punctuation goes too, except where it tells answers apart (`eldgr_dspy.matching.text_keys`): signs,
    decimal points, currency and the marks of 'A-' and 'C++' stay. Numerals such as '½' and '①' count as digits, and
    each stays itself: '①' is not '1'. A quantity has one key in all its spellings (`eldgr_dspy.derivation.amounts`).
    """

    name = "short"
    way = "evidence"
    scores = ("EM", "F1")
    enumerates_spans = True

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of an answer."""
        return short_class(answer)

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer is an exact match."""
        return exact_match(answer, gold)

    def score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return exact match and token F1."""
        return Score(exact_match(answer, gold), token_f1(answer, gold))

    def official_score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return both as the official script has them: nothing is stripped before `normalise`."""
        require_gold(gold)
        return Score(_matches(answer, gold, normalise), _greatest_f1(answer, gold, normalise))


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return a text in lower case without ASCII punctuation, articles and surplus white space, as HotpotQA does."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str | None, gold: Sequence[str]) -> bool:
    """Say whether an answer equals a gold answer after `strip_answer` and `normalise`; a blank one never does.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    require_gold(gold)
    return _matches(answer, gold, _normal_form)


def token_f1(answer: str | None, gold: Sequence[str]) -> float:
    """Return the greatest token F1, in [0, 1], of the answer against a gold answer, both stripped and normalised."""
    require_gold(gold)
    return _greatest_f1(answer, gold, _normal_form)


def _normal_form(text: str) -> str:
    return normalise(strip_answer(text))


def _matches(answer: str | None, gold: Sequence[str], normalize: Callable[[str], str]) -> bool:
    if answer is None or not answer.strip():
        return False
    normal = normalize(answer)
    return any(normal == normalize(right) for right in gold)


def _greatest_f1(answer: str | None, gold: Sequence[str], normalize: Callable[[str], str]) -> float:
    if answer is None:
        return 0.0
    normal = normalize(answer)
    return max(_f1(normal, normalize(right)) for right in gold)


def _f1(answer: str, gold: str) -> float:
    # If either is yes, no or noanswer, only the same word scores. Source: official HotpotQA.
    if answer != gold and (answer in _ALL_OR_NOTHING or gold in _ALL_OR_NOTHING):
        return 0.0
    tokens, gold_tokens = answer.split(), gold.split()
    overlap = (Counter(tokens) & Counter(gold_tokens)).total()
    if not overlap:
        return 0.0
    precision, recall = overlap / len(tokens), overlap / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)
