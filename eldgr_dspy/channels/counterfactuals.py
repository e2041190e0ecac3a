"""Change the meaning of a step: `adv` checks the changed step against the same documents as the step itself.

`Counterfactuals` is what a channel scorer asks; `rule_counterfactuals` is the rule: change a number, else swap an
entity, else negate, else take an antonym. It is deterministic and does not understand meaning: if a step is true, the
changed one is usually false, but this is not checked. Linear in the length of step and passages.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from eldgr_dspy.channels.blocks import blocks
from eldgr_dspy.channels.steps import StepInContext
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.matching.occurrences import STOP_WORDS
from eldgr_dspy.text.folding import fold

Kind = Literal["number", "entity", "negation", "antonym"]


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A changed step, and the kind of change."""

    text: str
    kind: Kind


StepChange = Counterfactual | Undefined | None
"""None if nothing in the step can be changed; undefined if it could not be scored."""

Counterfactuals = Callable[[Sequence[StepInContext]], Sequence[StepChange]]
"""Changes the meaning of each step."""


def rule_counterfactuals(steps: Sequence[StepInContext]) -> list[StepChange]:
    """Return each step changed by rule, by an entity of its passages or of the question: see `counterfactual`."""
    return [counterfactual(step.text, (*step.passages, step.question)) for step in steps]


def counterfactual(step: str, passages: Sequence[str] = ()) -> Counterfactual | None:
    """Return the step with one change, or None if the rule finds nothing to change.

    It tries, in this order: the last number (in the same format: one digit, or one number word, changes); the last
    entity, swapped for the first of the passages that has as many words and that the step does not name; the first
    auxiliary negated, or its negation removed; the first word of the table of antonyms. Code and LaTeX stay.

    Args:
        step: The step's text.
        passages: Where other entities are taken from, in order.
    """
    visible = _prose(step)
    for kind, change in _CHANGES.items():
        if (edit := change(visible, passages)) is not None:
            start, end, instead = edit
            return Counterfactual(step[:start] + instead + step[end:], kind)
    return None


def _prose(step: str) -> str:
    """The step with its blocks blanked, so that every offset stays."""
    at, parts = 0, list[str]()
    for start, end in blocks(step):
        parts += (step[at:start], " " * (end - start))
        at = end
    return "".join([*parts, step[at:]])


Change = tuple[int, int, str]
"""Start and end in the step, and the new text, which always differs."""

# --- numbers ----------------------------------------------------------------------------------------------------------

_WORDS: Sequence[str] = "two three four five six seven eight nine ten eleven twelve".split()
_NEXT: dict[str, str] = dict(zip(_WORDS, [*_WORDS[1:], "ten"], strict=True))
# A number by itself: not part of a word, a version or an ordinal.
_NUMBER = re.compile(rf"(?<![\w.])(?:\d++(?>(?:[.,]\d++)*)(?!\w|[.,]\d)|(?i:{'|'.join(_WORDS)})\b)")
_YEAR = re.compile(r"(?:1\d|20)\d\d")


def _number(step: str, passages: Sequence[str]) -> Change | None:
    last = deque(_NUMBER.finditer(step), maxlen=1)
    return (*last[0].span(), _other_number(last[0][0])) if last else None


def _other_number(number: str) -> str:
    if word := _NEXT.get(number.lower()):
        return word.capitalize() if number[0].isupper() else word
    digits = (at for at, sign in enumerate(number) if sign.isdecimal() and int(sign))  # those that are not zero
    at = 2 if _YEAR.fullmatch(number) else next(digits, len(number) - 1)
    other = ord(number[at]) + (-1 if int(number[at]) == 9 else 1)  # of the same script
    return number[:at] + chr(other) + number[at + 1 :]


# --- entities ---------------------------------------------------------------------------------------------------------

_NAME = r"[^\W\d_a-z][\w'’&-]*+"
_ENTITY = re.compile(rf"(?<!\w){_NAME}(?>(?: (?:(?:of|de|van|von|the|la|le) )?{_NAME})*)")
_OPENS = re.compile(r"(?:\A|[.!?:\n])[\s\"'“‘(*_]*\Z")
_REACH = 8
_NO_NAMES = STOP_WORDS | frozenset(
    "according action additionally again although answer because finally first further given hence however i last let"
    " moreover next now observation only second similarly since step still then therefore third thought thus".split()
)
# How many entities of a passage are read at most.
_MOST_READ = 20_000


def _entity(step: str, passages: Sequence[str]) -> Change | None:
    own = list(_names(step))
    own_names = {fold(name).text for _, name, _ in own}
    entities = [entity for passage in passages for entity in _names(passage[:_MOST_READ])] if own else []
    others: dict[tuple[int, bool], str] = {}
    for _, name, _ in sorted(entities, key=itemgetter(2)):
        if fold(name).text not in own_names:
            others.setdefault(_shape(name), name)
    for start, name, doubtful in reversed(own):
        if not doubtful and _shape(name) in others:
            return start, start + len(name), others[_shape(name)]
    return None


def _shape(name: str) -> tuple[int, bool]:
    """What two names must have in common to be swapped: the number of words, and whether they are in capitals."""
    return len(name.split()), name.isupper()


def _names(text: str) -> Iterator[tuple[int, str, bool]]:
    """The capitalised runs that look like names: start, name, and whether it may be a word that opens a sentence."""
    for match in _ENTITY.finditer(text):
        start, name = match.start(), match[0]
        while name.partition(" ")[0].casefold() in _NO_NAMES and " " in name:
            start, name = start + name.index(" ") + 1, name.partition(" ")[2]
        opens = start == match.start() and _OPENS.search(text[max(0, start - _REACH) : start]) is not None
        if name[0].upper() != name[0].lower() and name.casefold() not in _NO_NAMES:
            yield start, name, opens and " " not in name and not name.isupper()


# --- negation and antonyms --------------------------------------------------------------------------------------------

_NEGATION = re.compile(
    r"\b(?:(?P<can>can)not|(?P<wont>w)on['’]t|(?P<cant>ca)n['’]t"
    r"|(?P<aux>is|are|was|were|has|have|had|does|do|did|could|would|should|must|will|can|may|might)"
    r"(?:(?P<not>\s++not\b|n['’]t\b)|\b))",
    re.IGNORECASE,
)


def _negation(step: str, passages: Sequence[str]) -> Change | None:
    if (match := _NEGATION.search(step)) is None:
        return None
    if match["aux"]:
        return (*match.span(), match["aux"] if match["not"] else f"{match['aux']} not")
    return (*match.span(), f"{match['wont']}ill" if match["wont"] else match["can"] or f"{match['cant']}n")


_OPPOSITES = (
    "first last, more less, before after, born died, older younger, larger smaller, bigger smaller, higher lower,"
    " longer shorter, earlier later, most least, always never, increase decrease, increases decreases, increased"
    " decreased, above below, north south, east west, northern southern, eastern western, male female, husband"
    " wife, father mother, son daughter, brother sister, win lose, wins loses, won lost, true false, even odd,"
    " positive negative, inside outside, open closed, begins ends, began ended, starts stops, started stopped, buy"
    " sell, buys sells, bought sold, adds subtracts, added subtracted, all none, both neither, same different, old"
    " new, rich poor, early late, up down"
)
_PAIRS = [(pair.split()[0], pair.split()[1]) for pair in _OPPOSITES.split(",")]
_ANTONYMS = {second: first for first, second in reversed(_PAIRS)} | dict(_PAIRS)
_ANTONYM = re.compile(rf"\b(?:{'|'.join(_ANTONYMS)})\b", re.IGNORECASE)


def _antonym(step: str, passages: Sequence[str]) -> Change | None:
    if (match := _ANTONYM.search(step)) is None:
        return None
    word = _ANTONYMS[match[0].lower()]
    return (*match.span(), word.capitalize() if match[0][0].isupper() else word)


_CHANGES: dict[Kind, Callable[[str, Sequence[str]], Change | None]] = {
    "number": _number,
    "entity": _entity,
    "negation": _negation,
    "antonym": _antonym,
}
