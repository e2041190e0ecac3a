"""An NLI model that tests can foresee: a text entails another if it has all its words, and opposites contradict."""

import re
from collections.abc import Sequence

from eldgr_dspy.answer_types.entailment.readings import Pair
from eldgr_dspy.occurrences import STOP_WORDS

ENTAILS, NEUTRAL, CONTRADICTS = (0.0, 0.03, 0.97), (0.02, 0.96, 0.02), (0.97, 0.03, 0.0)
OPPOSITES = (("hot", "cold"), ("old", "young"))
GOAL = re.compile(r'This answers the question "(.*)"', re.DOTALL)
ASKED = re.compile(r"[^?.]*\?")


class BagOfWords:
    """Counts what it is asked, and overlooks questions. A text answers a question if it has a word of it."""

    name = "bag of words"

    def __init__(self, tokens: int = 512) -> None:
        self.tokens = tokens
        self.batches: list[list[Pair]] = []

    @property
    def calls(self) -> int:
        return len(self.batches)

    def probabilities(self, pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        self.batches.append([*pairs])
        return [self.reading(*pair) for pair in pairs]

    def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
        goal = GOAL.fullmatch(hypothesis)
        if goal:
            asked = words(goal[1])
            return ENTAILS if len(asked) < 2 or asked & words(premise) else NEUTRAL
        given, wanted = words(premise), words(ASKED.sub("", hypothesis))
        if any(one in given and other in wanted for pair in OPPOSITES for one, other in (pair, pair[::-1])):
            return CONTRADICTS
        return ENTAILS if wanted <= given else NEUTRAL


class YesMan(BagOfWords):
    """Says that everything follows from anything, so that only rules can object."""

    name = "yes-man"

    def reading(self, premise: str, hypothesis: str) -> tuple[float, ...]:
        return ENTAILS


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS}
