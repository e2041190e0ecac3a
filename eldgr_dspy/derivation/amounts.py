"""The spellings of a quantity: `12%` and `12 percent`, `10 pm` and `22:00`, `$5 million` and `$5,000,000`, `two hours`.

A text that is one quantity, an amount with its unit, votes with every spelling of it, and each of them in the evidence
certifies it. A quantity has finitely many spellings, and a text is a quantity only if it is one of them. An amount
without a unit is not a quantity: `two` and `2` are two answers. A time from 1:00 to 12:59 must say am or pm, because
`10:30` also occurs in `10:30 pm`. Keys are as `eldgr_dspy.matching.text_keys.text_key` returns them. Source: ours.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from eldgr_dspy.derivation.tracing import NUMBER_WORDS, amount_at
from eldgr_dspy.text.numbers import CURRENCY_SIGNS, read_number

SCALES = {"thousand": (10**3, "k"), "million": (10**6, "m mn"), "billion": (10**9, "b bn"), "trillion": (10**12, "tn")}
WORD = rf"(?:{'|'.join(sorted((*NUMBER_WORDS, 'hundred', *SCALES), key=len, reverse=True))})"  # a number word
_CURRENCIES = {"$": "dollar", "\u20ac": "euro"}  # a pound is a weight too
_LONGEST = 240  # a number in words with its unit
_MOST, _MOST_IN_WORDS, _PLACES = 10**15, 10**12, 10**6
_DIGITS = r"[0-9][0-9.]*+"
SCALE = f"(?:hundred|{'|'.join(SCALES)}|quadrillion|dozen|lakh|crore|[mbt]n)s?"
_NO_UNIT = rf"(?:[ap]m|dozen|lakh|crore|[mbt]n|and|of|or|to|in|{WORD})s?\b"
_QUANTITY = re.compile(
    rf"""(?P<sign>[{CURRENCY_SIGNS}])(?P<price>{_DIGITS}(?:\ ?[a-z]+)?)
    | (?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-5][0-9]))?\ ?(?P<half>[ap])m
    | (?P<of_24>[01][0-9]|2[0-3]):(?P<of_60>[0-5][0-9])
    | (?P<amount>{_DIGITS}(?:\ (?:{"|".join(SCALES)}))?|{WORD}(?>(?:\ ?{WORD}|\ and\ {WORD})*))
      (?:(?P<percent>%|\ per\ ?cent)|\ (?P<unit>(?!{_NO_UNIT})[^\W\d_]{{2,30}}))""",
    re.VERBOSE,
).fullmatch
# A text that begins with an amount, as "Tennessee" does not.
_STARTS = re.compile(
    rf"[^\w{CURRENCY_SIGNS}]*+(?:an?\ )?(?:[a-z]{{0,3}}[{CURRENCY_SIGNS}]|[0-9]|(?:{WORD})+\b)", re.I
).match
_MAY_BE = re.compile(rf"[0-9{CURRENCY_SIGNS}]|{WORD}", re.I).match
# Units of which a larger one is often followed by a smaller one.
_MEASURES = (
    "years? months? weeks? days? (?:hours?|hrs?|h) (?:minutes?|mins?|m) (?:seconds?|secs?)",
    "miles? yards? (?:feet|foot|ft) (?:inch(?:es)?|in)",
    "stones? (?:pounds?|lbs?) (?:ounces?|oz)",
    "(?:pounds?|dollars?|euros?) (?:pence|cents?)",
)
_STOP = r"(?:(?<![a-z]{4})\.)?"  # of an abbreviation: 6 ft. 4 in.
_TWO_UNITS = "|".join(
    rf"{larger}{_STOP},?(?:\ and)?\ (?:[0-9][0-9.,/]*+|{WORD}(?>(?:[ -]{WORD})*))[ -]?(?:{'|'.join(units[at:])})"
    for units in map(str.split, _MEASURES)
    for at, larger in enumerate(units[:-1], start=1)
)
_COMPOUNDS = re.compile(rf"(?=((?:[0-9]|\b(?:an?|{WORD}))[ -]?(?:{_TWO_UNITS})\b))", re.I).finditer
# A unit, an amount of which may have no number: a mile and a half.
_IS_UNIT = re.compile("|".join(" ".join(_MEASURES).split()), re.I).fullmatch
_AND_A_HALF = re.compile(r"[ -]and[ -]an?[ -](?:half|quarter)\b(?! of)", re.I).match
# What makes an amount another one. Around any: half a million; minus five, "$10-15"; two and a half, per hour, a day.
_HALF_BEFORE = re.compile(r"\b(?:half|(?:third|quarter) of) an? \Z", re.I).search
_GOES_BEFORE = re.compile(
    rf"\b(?:minus|negative|point)[ -][^\W\d_]\Z|\+/- ?\S\Z"
    rf"|[{CURRENCY_SIGNS}] ?[0-9.,]+(?:-| - |[ -](?:to|or)[ -])[0-9]\Z",
    re.I,
).search
_GOES_ON = re.compile(
    rf"""[ -]and[ -](?:(?:an?[ -])?(?:half|quarter)|{WORD}[ -](?:half|quarters?|thirds?|fifths?|tenths?))\b(?!\ of)
    | (?<![12]\d\d\d) (?: (?:\ [^\W\d_]{{1,10}}){{0,2}}\ per\ (?!cent\b)[^\W\d_]
        | (?:\ [^\W\d_]{{1,10}})?\ an?\ (?:second|minute|hour|day|week|month|year)
            (?![\w-]|\ (?:time|later|earlier|after|before|ago)\b) )""",
    re.VERBOSE | re.I,
).match
# A number without a unit, unless it is a year, and what shares its scale with it: the million of "5-6 million".
_IS_BARE = re.compile(rf"[{CURRENCY_SIGNS}]?{_DIGITS}|\b(?:\ ?(?:{'|'.join(NUMBER_WORDS)})\b){{1,2}}", re.I).fullmatch
_SHARES_SCALE = re.compile(
    rf"""(?:-|(?<![12]\d\d\d)(?:\ -\ |[ -](?:to|or|and)[ -]))[{CURRENCY_SIGNS}]?
    (?:[0-9][0-9.,]*+[ -]?|(?:{WORD}[ -]){{1,4}}?)(?:(?:{SCALE}|[kmb])\b|[%{CURRENCY_SIGNS}](?!\w))""",
    re.VERBOSE | re.I,
).match
# Around one with its unit: point 5 million, a tenth of one percent.
_PART_BEFORE = re.compile(
    r"\b(?:point[ -]|(?:hal[fv]e?s?|thirds?|quarters?|fifths?|tenths?|hundredths?|thousandths?) of )\Z", re.I
).search
_NEAR = 60


def quantity_key(key: str) -> str:
    """Return the key of the quantity that a key spells, which is its first spelling. Any other key stays."""
    return spellings_of(key)[0]


@lru_cache(maxsize=4096)
def spellings_of(key: str) -> tuple[str, ...]:
    """Return the key of each spelling of the quantity that a key spells, or any other key itself."""
    match = _QUANTITY(key) if _MAY_BE(key) and len(key) <= _LONGEST else None
    spellings = tuple(dict.fromkeys(_spellings(match))) if match else ()
    return spellings if key.replace(" ", "") in {one.replace(" ", "") for one in spellings} else (key,)


def is_part(key: str, text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]`, of a quantity's key, is part of another: 2 hours 30 minutes, two and a half."""
    near = max(0, start - _NEAR)
    if _HALF_BEFORE(text, near, start) or (_AND_A_HALF(text, end) and _IS_UNIT(key.rpartition(" ")[2])):
        return True
    if not (_MAY_BE(key) and _STARTS(text, start)):
        return False
    if _GOES_BEFORE(text, near, start + 1) or (len(spellings_of(key)) > 1 and _PART_BEFORE(text, near, start)):
        return True
    is_last = text[end - 1] in ".,;:!?"  # of its sentence or clause, so that nothing behind it belongs to it
    if not is_last and (_GOES_ON(text, end) or (_IS_BARE(text[start:end]) and _SHARES_SCALE(text, end))):
        return True
    spans = (compound.span(1) for compound in _COMPOUNDS(text, near, end + _NEAR))
    return any(first < end and start < last and (first < start or end < last) for first, last in spans)


def value_of(amount: str) -> Fraction | None:
    """Return the value of an amount in digits, perhaps with a scale and a currency sign, or in words, or None."""
    if not amount[0].isalpha():
        number = read_number(amount)
        return number.value if number else None
    tokens = re.findall(rf"{WORD}|and", amount)
    value, after = amount_at(tokens, 0)
    return value if after == len(tokens) else None


def _spellings(match: re.Match[str]) -> Iterator[str]:
    """The spellings of the quantity that a match reads as, which need not have the one that was read."""
    if hour := match["hour"] or match["of_24"]:
        of_24 = int(hour) % 12 + 12 * (match["half"] == "p") if match["half"] else int(hour)
        return _of_a_time(of_24, match["minute"] or match["of_60"] or "00")
    value = value_of(f"{match['sign']}{match['price']}" if match["sign"] else match["amount"])
    if value is None or value >= _MOST or _PLACES % value.denominator:
        return iter(())
    unit = match["unit"] or ""
    sign = match["sign"] or next((sign for sign, name in _CURRENCIES.items() if unit in (name, f"{name}s")), None)
    return _of_money(value, sign) if sign else _of_an_amount(value, unit)


def _of_a_time(hour: int, minute: str) -> Iterator[str]:
    if hour > 12 or hour == 0:
        yield f"{hour:02}:{minute}"
    for of_12 in ((hour + 11) % 12 + 1, f"{(hour + 11) % 12 + 1:02}"):
        half = "pm" if hour >= 12 else "am"
        yield f"{of_12}:{minute} {half}"
        if minute == "00":
            yield f"{of_12} {half}"


def _of_money(value: Fraction, sign: str) -> Iterator[str]:
    name = _CURRENCIES.get(sign)
    for amount in _amounts(value):
        digits, _, scale = amount.partition(" ")
        if amount[0].isdecimal():
            yield f"{sign}{amount}"
            yield from (f"{sign}{digits}{letters}" for letters in (SCALES[scale][1].split() if scale else ()))
        yield from (f"{amount} {name}{plural}" for plural in ("s", "") if name and (plural or value == 1))


def _of_an_amount(value: Fraction, unit: str) -> Iterator[str]:
    for number, amount in enumerate(_amounts(value)):
        if unit:
            yield f"{amount} {unit}"
            continue
        if number == 0:
            yield f"{amount}%"
        yield f"{amount} percent"
        yield f"{amount} per cent"


def _amounts(value: Fraction) -> Iterator[str]:
    """The spellings of an amount: in digits, in digits before a scale, in words with and without "and"."""
    yield _in_digits(value)
    yield from (f"{_in_digits(value / scale)} {name}" for name, (scale, _) in SCALES.items() if value >= scale)
    if value.denominator == 1 and value < _MOST_IN_WORDS:
        words = _in_words(int(value))
        yield words
        yield words.replace(" and ", " ")


def _in_digits(value: Fraction) -> str:
    return f"{Decimal(value.numerator) / value.denominator:f}"


def _in_words(value: int) -> str:
    names = {number: word for word, number in NUMBER_WORDS.items()}
    if value < 100:
        return names.get(value) or f"{names[value - value % 10]} {names[value % 10]}"
    scales = {"hundred": 100} | {name: scale for name, (scale, _) in SCALES.items()}
    name, scale = max((one for one in scales.items() if one[1] <= value), key=lambda one: one[1])
    rest = value % scale
    joint = " and " if rest < 100 else " "
    return f"{_in_words(value // scale)} {name}{joint + _in_words(rest) if rest else ''}"
