"""Biases of a judge: how its verdicts depend on the order of the candidates and on their length.

They are measured from recorded replies, so for any judge and without a call, and do not change decisions. They are
associations on one pool: the longer answer may be the better one, and only a judge that sees the same candidates in
several orders (`SwapConsistent`) shows directly that order changed its verdict.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from typing import Any

from eldgr_dspy.consultations import Verdict
from eldgr_dspy.figures.results.record import Effects, Share
from eldgr_dspy.questions import Question
from eldgr_dspy.replies import read_reply

Classes = Sequence[str | None]
"""The class of each candidate of a pool, in pool order; None for one without an answer."""


@dataclass(frozen=True, slots=True)
class Showing:
    """Candidates that a judge was shown together, and its verdict on them.

    Attributes:
        order: Their pool indices, in the order shown.
        preferred: The pool index that it preferred, None without a verdict.
        rationale: Its reason, in which candidates are numbered as they were shown.
    """

    order: tuple[int, ...]
    preferred: int | None
    rationale: str = ""

    def contested(self, classes: Classes) -> bool:
        """Whether it gave a verdict on candidates of more than one class."""
        return self.preferred is not None and len({classes[index] for index in self.order}) > 1


def showings(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """Return the orders in which a judge saw the candidates, from its journaled or recorded fields.

    Under `orders` a judge reports what it showed its LM; an invalid entry is skipped. Without that field the judge saw
    the pool once, in the pool's order.
    """
    if "orders" not in content:
        return _verdict(content, answers, n_passages)
    entries = content["orders"] if isinstance(content["orders"], list) else []
    parsed = (_showing(entry, len(answers)) for entry in entries if isinstance(entry, Mapping))
    return tuple(showing for showing in parsed if showing is not None)


def _verdict(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """The verdict on the whole pool, shown once in its order; empty without a verdict."""
    reply = read_reply("judge", content, answers, n_passages)
    whole = tuple(range(len(answers)))
    return (Showing(whole, reply.preferred, reply.rationale),) if isinstance(reply, Verdict) else ()


def _showing(entry: Mapping[str, Any], n: int) -> Showing | None:
    order, preferred, rationale = entry.get("order"), entry.get("preferred"), entry.get("rationale")
    if not isinstance(order, list) or not all(type(index) is int and 0 <= index < n for index in order):
        return None
    if preferred is not None and (type(preferred) is not int or preferred not in order):
        return None
    return Showing(tuple(order), preferred, rationale if isinstance(rationale, str) else "")


# -- the effects of one question --------------------------------------------------------------------------------------


def flips(shown: Iterable[Showing], classes: Classes) -> list[bool]:
    """Return, for each set of candidates that was judged in several orders, whether the preferred class changed.

    Only verdicts on more than one class count. Source: the position-flip rate of pairwise judging (Zheng et al. 2023,
    "Judging LLM-as-a-judge"), here for pools of any size and by class.
    """
    groups = defaultdict[frozenset[int], list[Showing]](list)
    for showing in shown:
        groups[frozenset(showing.order)].append(showing)
    return [
        len({classes[showing.preferred] for showing in group if showing.preferred is not None}) > 1
        for group in groups.values()
        if len({showing.order for showing in group if showing.contested(classes)}) > 1
    ]


def first_shown_wins(showing: Showing, classes: Classes) -> tuple[bool, float] | None:
    """Return whether the class shown first was preferred, and how likely that is if order does not matter.

    This probability is the share of the shown candidates that are of the preferred class, 1/G if no two agree. None
    without a verdict, or if all candidates are of one class.
    """
    if showing.preferred is None or not showing.contested(classes):
        return None
    preferred = classes[showing.preferred]
    share = sum(classes[index] == preferred for index in showing.order) / len(showing.order)
    return classes[showing.order[0]] == preferred, share


def longer_wins(showing: Showing, classes: Classes, lengths: Sequence[int]) -> bool | None:
    """Return whether the preferred candidate is longer than the median of those of other classes shown with it.

    If length does not matter, this is as often true as false. None if the lengths are equal, or if the verdict does not
    tell. `lengths` are those of the candidates as shown, in characters. Source: ours, after the verbosity bias of
    pairs.
    """
    if showing.preferred is None or not showing.contested(classes):
        return None
    others = median(lengths[index] for index in showing.order if classes[index] != classes[showing.preferred])
    return None if lengths[showing.preferred] == others else lengths[showing.preferred] > others


_NUMBER = r"candidate\s+(?:number\s+|no\.?\s*|\#)?(?P<{}>\d{{1,4}})\b"
_STATED = re.compile(
    rf"(?<!not )(?<!n't )(?<!never )\b(?:prefer|choose|select|pick|favou?r)\s+{_NUMBER.format('chosen')}"
    rf"|\b(?:best|better|preferred|strongest)\s+(?:one\s+|answer\s+|candidate\s+)?is\s+{_NUMBER.format('named')}"
    rf"|{_NUMBER.format('praised')}\s+(?:is|wins)\s+(?:the\s+)?(?:best|better|correct|right|strongest|preferred)\b",
    re.IGNORECASE,
)


def contradicts(showing: Showing, classes: Classes) -> bool | None:
    """Return whether the rationale calls only other candidates the best one.

    It matches a few plain forms ("I prefer candidate 2", "candidate 2 is correct") by number, and compares classes.
    None if the rationale has none of these forms. This is only counted: `preferred` is the verdict.
    """
    if showing.preferred is None:
        return None
    numbers = (int(match[match.lastgroup or 0]) for match in _STATED.finditer(showing.rationale))
    stated = {classes[showing.order[number]] for number in numbers if number < len(showing.order)}
    return classes[showing.preferred] not in stated if stated else None


# -- the effects over a pool ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Share:
    """A count out of a total."""

    count: int = 0
    of: int = 0

    def add(self, true: bool | None) -> None:
        """Take one observation; None is not counted."""
        if true is not None:
            self.count += true
            self.of += 1

    def figures(self) -> Share:
        """Return count, total and rate in percent, None if the total is 0."""
        return {"count": self.count, "of": self.of, "rate": 100.0 * self.count / self.of if self.of else None}


@dataclass(slots=True)
class JudgeEffects:
    """The effects on a judge over the questions of a pool, taken one by one."""

    verdicts: int = 0
    position_flips: _Share = field(default_factory=_Share)
    first_shown: _Share = field(default_factory=_Share)
    longer: _Share = field(default_factory=_Share)
    contradicted: _Share = field(default_factory=_Share)
    _expected: Counter[float] = field(default_factory=Counter)

    def add(self, question: Question, classes: Classes, content: Mapping[str, Any]) -> None:
        """Take what the judge returned to one question; `classes` are those in which the pool's answers vote."""
        n_passages = len(question.passages)
        shown = showings(content, question.answers, n_passages)
        candidates: Any = question.role_inputs("judge")["candidates"]
        lengths = list(map(len, candidates))
        for flipped in flips(shown, classes):
            self.position_flips.add(flipped)
        # Each candidate may be shown by itself.
        for showing in shown or _verdict(content, question.answers, n_passages):
            self.longer.add(longer_wins(showing, classes, lengths))
        for showing in shown:
            self.verdicts += showing.preferred is not None
            self.contradicted.add(contradicts(showing, classes))
            first = first_shown_wins(showing, classes)
            if first is not None:
                self.first_shown.add(first[0])
                self._expected[first[1]] += 1

    def figures(self) -> Effects:
        """Return the effects as the record has them: counts of verdicts, and rates in percent.

        `position_flips` counts sets of candidates that were judged in several orders, the other figures verdicts; a
        judge that is asked in two orders gives two a question. `expected` is the rate of `first_shown_wins` if
        order did not matter.
        """
        of, expected = self.first_shown.of, sum(Fraction(share) * n for share, n in self._expected.items())
        return {
            "verdicts": self.verdicts,
            "position_flips": self.position_flips.figures(),
            "first_shown_wins": {
                **self.first_shown.figures(),
                "expected": 100.0 * float(expected) / of if of else None,
            },
            "longer_wins": self.longer.figures(),
            "rationale_names_another": self.contradicted.figures(),
        }
