"""What else than the answers a judge's verdicts go by: the order in which it is shown candidates, and their length.

Measured from what is recorded, hence for any judge and without a call. None of these figures changes a decision. They
are associations on one pool: the longer answer may be the better one, and only a judge that is shown the same
candidates in several orders (`SwapConsistent`) says by itself that order moved it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
        preferred: The pool index that it preferred, None where it gave no verdict.
        rationale: Its reason, in which candidates are numbered as they were shown.
    """

    order: tuple[int, ...]
    preferred: int | None
    rationale: str = ""

    def contested(self, classes: Classes) -> bool:
        """Whether it gave a verdict on candidates of more than one class."""
        return self.preferred is not None and len({classes[index] for index in self.order}) > 1


def showings(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """Return what a judge was shown, from the fields that it returned, as journaled or as supplied by a recording.

    Under `orders` a judge says itself what it showed its LM; an entry that is not a showing is passed over. Without
    that field it was shown the pool once, in the pool's order.
    """
    if "orders" not in content:
        return _verdict(content, answers, n_passages)
    entries = content["orders"] if isinstance(content["orders"], list) else []
    found = (_showing(entry, len(answers)) for entry in entries if isinstance(entry, Mapping))
    return tuple(one for one in found if one is not None)


def _verdict(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """The verdict on the whole pool as if it had been shown so, nothing where there is none."""
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
    for one in shown:
        groups[frozenset(one.order)].append(one)
    return [
        len({classes[one.preferred] for one in group if one.preferred is not None}) > 1
        for group in groups.values()
        if len({one.order for one in group if one.contested(classes)}) > 1
    ]


def first_shown_wins(one: Showing, classes: Classes) -> tuple[bool, float] | None:
    """Return whether the class shown first was preferred, and how likely that is where order plays no part.

    That is the share of the shown candidates that are of the preferred class, 1/G where no two agree. None where the
    verdict does not say: there is none, or all candidates are of one class.
    """
    if one.preferred is None or not one.contested(classes):
        return None
    preferred = classes[one.preferred]
    share = sum(classes[index] == preferred for index in one.order) / len(one.order)
    return classes[one.order[0]] == preferred, share


def longer_wins(one: Showing, classes: Classes, lengths: Sequence[int]) -> bool | None:
    """Return whether the preferred candidate is longer than the median of those of other classes shown with it.

    Where length plays no part this is as often true as false. None where it is as long, or where the verdict does not
    say. `lengths` are those of the candidates as shown, in characters. Source: ours, after the verbosity bias of pairs.
    """
    if one.preferred is None or not one.contested(classes):
        return None
    others = median(lengths[index] for index in one.order if classes[index] != classes[one.preferred])
    return None if lengths[one.preferred] == others else lengths[one.preferred] > others


_NUMBER = r"candidate\s+(?:number\s+|no\.?\s*|\#)?(?P<{}>\d{{1,4}})\b"
_STATED = re.compile(
    rf"(?<!not )(?<!n't )(?<!never )\b(?:prefer|choose|select|pick|favou?r)\s+{_NUMBER.format('chosen')}"
    rf"|\b(?:best|better|preferred|strongest)\s+(?:one\s+|answer\s+|candidate\s+)?is\s+{_NUMBER.format('named')}"
    rf"|{_NUMBER.format('praised')}\s+(?:is|wins)\s+(?:the\s+)?(?:best|better|correct|right|strongest|preferred)\b",
    re.IGNORECASE,
)


def contradicts(one: Showing, classes: Classes) -> bool | None:
    """Return whether the rationale says of other candidates alone that they are the best one.

    Seen by a few plain forms ("I prefer candidate 2", "candidate 2 is correct"), by number, and taken by class. None
    where the rationale says nothing in such a form. It is counted and never read as a verdict: `preferred` rules.
    """
    if one.preferred is None:
        return None
    numbers = (int(match[match.lastgroup or 0]) for match in _STATED.finditer(one.rationale))
    stated = {classes[one.order[number]] for number in numbers if number < len(one.order)}
    return classes[one.preferred] not in stated if stated else None


# -- the effects over a pool ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Share:
    """How many of how many."""

    count: int = 0
    of: int = 0

    def take(self, true: bool | None) -> None:
        """Take one observation; None is none."""
        if true is not None:
            self.count += true
            self.of += 1

    def figures(self) -> Share:
        """Return count, number and rate in percent, None where there is nothing to take a share of."""
        return {"count": self.count, "of": self.of, "rate": 100.0 * self.count / self.of if self.of else None}


@dataclass(slots=True)
class JudgeEffects:
    """The effects on a judge over the questions of a pool, taken one by one."""

    verdicts: int = 0
    position_flips: _Share = field(default_factory=_Share)
    first_shown: _Share = field(default_factory=_Share)
    longer: _Share = field(default_factory=_Share)
    contradicted: _Share = field(default_factory=_Share)
    _expected: float = 0.0

    def take(self, question: Question, classes: Classes, content: Mapping[str, Any]) -> None:
        """Take what the judge returned to one question; `classes` are those in which the pool's answers vote."""
        n_passages = len(question.passages)
        shown = showings(content, question.answers, n_passages)
        candidates: Any = question.role_inputs("judge")["candidates"]
        lengths = list(map(len, candidates))
        for flipped in flips(shown, classes):
            self.position_flips.take(flipped)
        for one in shown or _verdict(content, question.answers, n_passages):  # each candidate may be shown by itself
            self.longer.take(longer_wins(one, classes, lengths))
        for one in shown:
            self.verdicts += one.preferred is not None
            self.contradicted.take(contradicts(one, classes))
            first = first_shown_wins(one, classes)
            if first is not None:
                self.first_shown.take(first[0])
                self._expected += first[1]

    def figures(self) -> Effects:
        """Return the effects as the record has them: counts of verdicts, and rates in percent.

        `position_flips` counts sets of candidates that were judged in several orders, the other figures verdicts; a
        judge that is asked in two orders gives two a question. `expected` is what the rate of `first_shown_wins` would
        come to if order played no part.
        """
        of = self.first_shown.of
        return {
            "verdicts": self.verdicts,
            "position_flips": self.position_flips.figures(),
            "first_shown_wins": {**self.first_shown.figures(), "expected": 100.0 * self._expected / of if of else None},
            "longer_wins": self.longer.figures(),
            "rationale_names_another": self.contradicted.figures(),
        }
