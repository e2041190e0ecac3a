"""Read a text that is one number, exactly, as a fraction.

It is not a parser of expressions (`eldgr_dspy.arithmetic`) and does not look for numbers inside prose
(`eldgr_dspy.number_search`). An ambiguous text is not read at all: `1,5` and `- 5` are not numbers here.
"""

import re
import unicodedata
from dataclasses import dataclass, field, replace
from fractions import Fraction

from eldgr_dspy.folding import drop_invisible

# Single-character fractions: each is decomposed separately, so that a digit before it cannot join the numerator.
_VULGAR = {
    character: Fraction(unicodedata.normalize("NFKC", character).replace("\N{FRACTION SLASH}", "/"))
    for character in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉"
}

VULGAR_FRACTIONS = "".join(_VULGAR)
"""The single-character fractions that count as numbers, fit for a regular expression's character class."""

CURRENCY_SIGNS = "$£¥฿\u20a0-\u20cf"
"""Whole-unit currency signs, fit for a regular expression's character class. The cent sign scales and is left out."""

DIGITS_FOLDED = "digits folded"
MINUS_FOLDED = "minus sign folded"
CURRENCY_DROPPED = "currency sign dropped"
INVISIBLE_DROPPED = "invisible characters dropped"

PAD = "\u200b"
"""What fills up a text of which a part was replaced by a shorter one. It is invisible, and so no part of a number."""

_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12, "dozen": 12}
_SCALES |= {"hundred": 100, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9}
_SCALES |= {"trillion": 10**12}
_WORDS = "|".join(sorted((name for name in _SCALES if len(name) > 1), reverse=True))
SCALED = rf"(?:[ -]?(?:{_WORDS})s?(?![A-Za-z]))"
"""What scales the number before it (`million`, `bn`), fit for a regular expression that ignores case."""

_SCALED = re.compile(
    rf"(?P<number>(?P<money>\W*[{CURRENCY_SIGNS}])?.*?[0-9{VULGAR_FRACTIONS}]{PAD}*(?:[ -](?:{_WORDS})s?)?)"
    rf"(?:(?P<k>k)|(?(money)(?P<letter>[mbt])|(?!))|[\s-]?(?P<word>{_WORDS})s?)\.?",
    re.IGNORECASE | re.DOTALL,
)
_MAY_BE_LATEX = re.compile(r"[\\{^°×]").search
_LATEX = re.compile(
    r"""\\[dtc]?frac\s*(?:\{\s*(?P<top>-?[0-9]+)\s*\}|(?P<up>[0-9]))\s*(?:\{\s*(?P<bottom>[0-9]+)\s*\}|(?P<low>[0-9]))
    | (?<=[0-9])(?:\{,\}|,\\!|\\[,!;:\ ])(?P<group>[0-9]{3})(?![0-9])
    | (?<=[0-9])\s?(?:\\times|\\cdot|[×x*])\s?10\s?(?:\^\s?(?P<brace>\{)?\s?(?P<power>[-+]?[0-9]{1,3})(?(brace)\s?\})
        | (?P<raised>[⁻⁺]?[⁰¹²³⁴-⁹]{1,3}))(?![0-9])
    | (?<![0-9A-Za-z\\.^*/×+}-])(?P<ten>10)\s?\^\s?(?:\{\s?(?P<tens>[-+]?[0-9]{1,3})\s?\}|(?P<short>[0-9]))(?![0-9^])
    | (?<=[0-9])\s?(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ(?![a-z]))|°)(?!\s?[A-Za-z]) | \\(?:display|text)style(?![a-z])\s?""",
    re.VERBOSE,
)
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")

# A longer text is not a number, so that every later step stays far below int's limit of 4,300 digits.
_LONGEST = 1_000
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_MINUS = "\N{MINUS SIGN}"

_INTEGER = r"(?:[1-9][0-9]{0,2}(?>(?:,[0-9]{3})+)|[0-9]++)"
_BEFORE = rf"(?P<sign>[-+])?(?P<before>\\?[{CURRENCY_SIGNS}]\s?)?(?P<inner>[-+])?"
_AFTER = rf"(?:\s?(?P<after>\\?[{CURRENCY_SIGNS}])|\s?\\?(?P<percent>%))?\.?"
_NUMBER = re.compile(
    rf"""{_BEFORE}
    (?: (?P<top>{_INTEGER})\s?/\s?(?P<bottom>{_INTEGER})
      | (?P<whole>[0-9]{{1,3}})\s(?P<part>[0-9]{{1,3}}/[0-9]{{1,3}})
      | (?P<units>[0-9]{{1,3}}\s?)?(?P<vulgar>[{VULGAR_FRACTIONS}])
      | (?P<decimal>(?:{_INTEGER}(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][-+]?[0-9]{{1,3}})?)
    ){_AFTER}""",
    re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(rf"{_BEFORE}(?:[0-9]{{1,3}}(?>(?:\.[0-9]{{3}})+)|[0-9]++),[0-9]++{_AFTER}")


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number. `value` is as written: 5 for '5%', with `percent` set. `notes` say what reading dropped.

    Two numbers are equal when value and percent agree; the notes do not count.
    """

    value: Fraction
    percent: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)


def fold_digits(text: str) -> str:
    """Return the text with the decimal digits of every script as ASCII; the length and all else stay the same.

    Superscripts and fractions are not decimal digits, so '10²' never becomes '102'.
    """
    if text.isascii():
        return text
    return _FOREIGN_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)


def fold_marks(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with digits and the minus sign U+2212 as ASCII, one for one, and notes on what changed."""
    if text.isascii():
        return text, ()
    digits = fold_digits(text)
    folded = digits.replace(_MINUS, "-")
    notes = ((DIGITS_FOLDED, digits != text), (MINUS_FOLDED, folded != digits))
    return folded, tuple(note for note, true in notes if true)


def parse_number(text: str) -> Number | None:
    """Read the whole text as one number, or return None if it is not one or is ambiguous.

    It reads a sign (`-`, `+` or U+2212), well-formed thousands groups, decimals, one currency sign before or after (or
    the same on both sides: `$5$`), percent, `1e3`, `1/2`, `2 1/2` with a whole part of up to three digits,
    single-character fractions, and one closing full stop. Digits of any script count.

    Args:
        text: The text; white space around it and invisible characters are ignored.

    Returns:
        The exact number with notes on what was dropped or folded, or None: also for 'nan', 'inf', '1_000', '1,5',
        '- 5', '5¢', a division by zero, an exponent of more than three digits and texts above 1,000 characters.
    """
    stripped = text.strip()
    if len(stripped) > _LONGEST:
        return None
    text = drop_invisible(stripped).strip()
    if text.isascii() and text.isdigit():
        return Number(Fraction(int(text)), notes=(INVISIBLE_DROPPED,) * (text != stripped))
    folded, notes = fold_marks(text)
    notes += (INVISIBLE_DROPPED,) * (text != stripped)
    match = _NUMBER.fullmatch(folded)
    if match is None or (match["sign"] and match["inner"]):
        return None
    currencies = {match[name].replace("\\", "").strip() for name in ("before", "after") if match[name]}
    magnitude = _magnitude(match)
    if magnitude is None or len(currencies) + bool(match["percent"]) > 1:
        return None
    negative = "-" in (match["sign"], match["inner"])
    notes += (CURRENCY_DROPPED,) if currencies else ()
    return Number(-magnitude if negative else magnitude, match["percent"] is not None, notes)


def read_number(text: str) -> Number | None:
    r"""Read the whole text as one number, also in LaTeX (`\frac{1}{2}`, `5\times10^3`) or with a scale (`1.5 million`).

    A scale is applied; `5m` is a number only behind a currency sign. Returns what `parse_number` does.
    """
    number = parse_number(text)
    if number is None and _MAY_BE_LATEX(text):
        text = unlatexed(fold_marks(text)[0])
        number = parse_number(text)
    scaled = _SCALED.fullmatch(text.strip()) if number is None and len(text) <= _LONGEST else None
    if scaled and (number := read_number(scaled["number"])) and not number.percent:
        name = scaled["k"] or scaled["letter"] or scaled["word"]
        return replace(number, value=number.value * _SCALES[name.lower()])
    return None if scaled else number


def unlatexed(text: str) -> str:
    """Return the text with the numbers that LaTeX spells as plain ones; the length and all else stay the same."""
    return _LATEX.sub(_plain, text) if _MAY_BE_LATEX(text) else text


def _plain(match: re.Match[str]) -> str:
    """A number in LaTeX, or the part of one, as `parse_number` reads it, filled up in front."""
    plain = ""
    if (top := match["top"] or match["up"]) is not None:
        mixed = match.string[match.start() - 1 : match.start()].isdecimal()
        plain = f"{' ' * mixed}{top}/{match['bottom'] or match['low']}"
    elif match["group"]:
        plain = f",{match['group']}"
    elif power := match["power"] or (match["raised"] or "").translate(_RAISED):
        plain = f"e{power}"
    elif match["ten"]:
        plain = f"1e{match['tens'] or match['short']}"
    return plain.rjust(len(match[0]), PAD)


def _magnitude(match: re.Match[str]) -> Fraction | None:
    """The unsigned value of a match of `_NUMBER`; None for a zero denominator and for '3 7/2'."""
    if match["decimal"] is not None:
        return Fraction(match["decimal"].replace(",", ""))
    if match["vulgar"] is not None:
        return int(match["units"] or 0) + _VULGAR[match["vulgar"]]
    if match["top"] is not None:
        return _ratio(match["top"].replace(",", ""), match["bottom"].replace(",", ""))
    part = _ratio(*match["part"].split("/"))
    return int(match["whole"]) + part if part is not None and part < 1 else None


def _ratio(top: str, bottom: str) -> Fraction | None:
    return Fraction(int(top), int(bottom)) if int(bottom) else None


def is_ambiguous(text: str) -> bool:
    """Say whether the text is a number except for a comma that may be a decimal mark: '1,5', '0,500', '1.000,50'.

    A well-formed thousands group such as '1,000' is read as one and is not ambiguous.
    """
    folded = fold_marks(drop_invisible(text).strip())[0]
    return len(folded) <= _LONGEST and _DECIMAL_COMMA.fullmatch(folded) is not None and parse_number(folded) is None
