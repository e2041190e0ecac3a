"""Find quantities that an answer and the evidence spell in two ways, as `12%` and `12 percent`.

Nothing here certifies: such an answer stays uncertified, and `eldgr pool check` counts it, since many of them would say
that certificates do not fit a pool. Number words equal digits only with the same unit in both, a time of the day needs
am or pm or its minutes, and an amount with a unit is never a bare number. The words are English. Source: ours.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from eldgr_dspy.certificates import Passage
from eldgr_dspy.numbers import CURRENCY_SIGNS
from eldgr_dspy.occurrences import STOP_WORDS
from eldgr_dspy.reading import read
from eldgr_dspy.stripping import strip_answer
from eldgr_dspy.tracing import SCALES, SPELLED, amount_at, tokens_of

_WORDS = rf"(?:{'|'.join((*SPELLED, *SCALES))})\b"
_AMOUNT = rf"(?:[0-9][0-9,]*+(?:\.[0-9]++)?|{_WORDS})(?>(?:(?:[ -]|\ and\ ){_WORDS})*)"
_QUANTITY = re.compile(
    rf"""(?<![\w.,:{CURRENCY_SIGNS}-])(?<![{CURRENCY_SIGNS}]\ )
    (?: (?P<sign>[{CURRENCY_SIGNS}])\ ?(?P<price>{_AMOUNT})(?!\ ?(?:trillion|lakh|crore|[kmbt]n?\b)|[-.,]?\d)
      | (?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-5][0-9]))?\ ?(?P<half>[ap])\.?\ ?m\b
      | (?P<of_24>[0-9]{{1,2}}):(?P<of_60>[0-5][0-9])(?![:\d])
      | (?P<amount>{_AMOUNT})(?:\ ?(?P<percent>%)|[ -](?P<unit>per\ cent\b|[^\W\d_]{{3,}})) )""",
    re.VERBOSE,
)
_UNITS = {"percent": "%", "per cent": "%", "dollar": "$", "euro": "€", "yen": "¥"}

Quantity = tuple[Fraction, str]
"""An amount and its unit: `%`, the sign of a currency, `clock` for the minutes of a day, or a word in the singular."""


def other_spelling(answer: str, passages: Sequence[Passage]) -> str | None:
    """Return how the evidence spells the quantity that an answer is, where it does; None for any other answer.

    It may be the answer's own spelling: whether the answer is certified is for the caller to ask.
    """
    match = _QUANTITY.fullmatch(read(strip_answer(answer)).text.strip(" ."))
    wanted = match and _quantity(match)
    texts = (text for passage in passages for text in (passage.text, passage.title)) if wanted else ()
    return next((spelling for text in texts for spelling, found in _quantities(text) if found == wanted), None)


def _quantities(text: str) -> Iterator[tuple[str, Quantity]]:
    for match in _QUANTITY.finditer(read(text).text):
        if quantity := _quantity(match):
            yield match[0], quantity


def _quantity(match: re.Match[str]) -> Quantity | None:
    """The amount and the unit of a match, or None where they are not of one quantity."""
    hour, minute = match["hour"] or match["of_24"], match["minute"] or match["of_60"] or "0"
    if hour:
        afternoon = 12 * (match["half"] == "p")
        return Fraction(60 * (int(hour) % 12 + afternoon if match["half"] else int(hour)) + int(minute)), "clock"
    unit = match["sign"] or match["percent"] or match["unit"].removesuffix("s")
    tokens = tokens_of((match["price"] or match["amount"]).replace("-", " "))
    amount, after = amount_at(tokens, 0)
    scales = tokens[after:]
    if amount is None or unit in STOP_WORDS or not SCALES.keys() >= set(scales):
        return None
    for scale in scales:
        amount *= SCALES[scale]
    return amount, _UNITS.get(unit, unit)
