"""Biases of a judge: how its verdicts depend on the order of the candidates and on their length.

They are measured from recorded replies, so for any judge and without a call, and do not change decisions. They are
associations on one pool: the longer answer may be the better one, and only a judge that sees the same candidates in
several orders (`SwapConsistent`) shows directly that order changed its verdict.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple

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
        preferred: The pool index that it preferred, None without a verdict. rationale: its reason.
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


# -- the effects over a pool ------------------------------------------------------------------------------------------


class EffectMarks(NamedTuple):
    """What a judge's reply to one question shows of each effect, an entry an observation.

    Attributes:
        verdicts: How many verdicts it gave. flips: one for each set of candidates that was judged in several orders.
        first_shown: Whether the class shown first was preferred, with its probability if order does not matter.
        longer: Whether the preferred candidate is longer.
    """

    verdicts: int
    flips: tuple[bool, ...]
    first_shown: tuple[tuple[bool, float], ...]
    longer: tuple[bool, ...]


def effect_marks(question: Question, classes: Classes, content: Mapping[str, Any]) -> EffectMarks:
    """Return what a judge's reply to a question shows; `classes` are those in which the pool's answers vote."""
    n_passages = len(question.passages)
    shown = showings(content, question.answers, n_passages)
    candidates: Any = question.role_inputs("judge")["candidates"]
    lengths = list(map(len, candidates))
    # Each candidate may be shown by itself.
    compared = shown or _verdict(content, question.answers, n_passages)
    return EffectMarks(
        sum(showing.preferred is not None for showing in shown),
        tuple(flips(shown, classes)),
        tuple(first for showing in shown if (first := first_shown_wins(showing, classes)) is not None),
        tuple(longer for showing in compared if (longer := longer_wins(showing, classes, lengths)) is not None),
    )


def effects_of(marks: Mapping[EffectMarks, int]) -> Effects:
    """Return the effects on a judge as the record has them, from how many questions have which marks.

    `position_flips` counts sets of candidates that were judged in several orders, the other figures verdicts; a judge
    that is asked in two orders gives two a question. `expected` is the rate of `first_shown_wins` if order did not
    matter.
    """

    def share(of: Callable[[EffectMarks], Sequence[bool]]) -> Share:
        count = sum(sum(of(one)) * n for one, n in marks.items())
        return share_of(count, sum(len(of(one)) * n for one, n in marks.items()))

    first = share(lambda one: [won for won, _ in one.first_shown])
    expected = sum(Fraction(chance) * n for one, n in marks.items() for _, chance in one.first_shown)
    return {
        "verdicts": sum(one.verdicts * n for one, n in marks.items()),
        "position_flips": share(lambda one: one.flips),
        "first_shown_wins": {**first, "expected": 100.0 * float(expected) / first["of"] if first["of"] else None},
        "longer_wins": share(lambda one: one.longer),
    }


def share_of(count: int, of: int) -> Share:
    """Return a count out of a total, and the rate in percent; None if the total is 0."""
    return {"count": count, "of": of, "rate": 100.0 * count / of if of else None}
