"""Read a text that is one number, exactly, as a fraction; and find the number that a longer text states.

It is not a parser of expressions (`eldgr_dspy.derivation.arithmetic`). An ambiguous text is not read at all: `1,5` and
`- 5` are not numbers here. A number is cut out of a text only if it is the whole quantity: "2 hours 30 minutes" stays.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import islice

from eldgr_dspy.text.folding import drop_invisible
from eldgr_dspy.words import Mark

VULGAR_FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉"  # characters that are numbers; for a character class
CURRENCY_SIGNS = "$£¥฿\u20a0-\u20cf"  # for a character class; not the cent sign, which is not of a whole unit
PAD, _GAP = "\u200b", "\u200c"  # invisible: padding of a shorter spelling, and a command around a number
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7}
_SCALES |= {"billion": 10**9, "trillion": 10**12, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_SCALE = "|".join(_SCALES)
_SCALES |= {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
# `5m` is a number only behind a currency sign.
_WITH_SCALE = re.compile(
    rf"(?P<number>(?P<money>\W*[{CURRENCY_SIGNS}])?.*?[0-9{VULGAR_FRACTIONS}][{PAD}{_GAP}]*(?:[ -](?:{_SCALE})s?)?)"
    rf"(?:(?P<k>k)|(?(money)(?P<letter>[mbt])|(?!))|[\s-]?(?P<word>{_SCALE})s?)\.?",
    re.IGNORECASE | re.DOTALL,
)
_SUPERSCRIPTS = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_POWER = r"\^\s?(?:\{\s?([-+]?\d{1,3})\s?\}|([-+]?\d{1,3}))(?!\d)"
_NEGATIVE = re.compile(r"\A\s*(?:(?i:minus|negative)\s|[–‑－﹣])(?=[^\w\s]{0,2}\d)")
_FRACTION = r"\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"
_TEX = "boxed emph fbox mathbf mathit mathrm mathsf mathtt mbox operatorname text textbf textit textrm texttt underline"
TEX_COMMAND = rf"\\(?:{'|'.join(_TEX.split())})\s?\{{"
TEX_TEXT = re.compile(rf"{TEX_COMMAND}([^{{}}]*+)\}}")
_LATEX = [
    (re.compile(rf"(?<=\d){_FRACTION}"), r" \1\2/\3\4"),
    (re.compile(_FRACTION), r"\1\2/\3\4"),
    (re.compile(r"(?<=\d)(?:\{,\}|(?:\\!)?,\\!|\\[,!;: ])(\d{3})(?!\d)"), r",\1"),
    (re.compile(rf"(?<=\d)\s?(?:\\times|\\cdot|[×x*])\s?10\s?(?:{_POWER}|([⁻⁺]?[⁰¹²³⁴-⁹]{{1,3}}))"), r"e\1\2\3"),
    (re.compile(rf"(?<![0-9A-Za-z\\.^*/×+}}-])10\s?{_POWER}(?!\^)"), r"1e\1\2"),
    (re.compile(r"(?<=\d)\s?(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ(?![a-z]))|\\degree(?![a-z])|°)(?!\s?[A-Za-z])"), ""),
    (re.compile(r"\\(?:display|text)style(?![a-z])"), ""),
]
"""How LaTeX spells numbers, and what each spelling is in plain text."""
_MAY_BE_LATEX = re.compile(r"[\\{^°×]").search

# A longer text is not a number, so that every later step stays far below int's limit of 4,300 digits.
_LONGEST = 1_000
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")

_INTEGER = r"(?:[1-9][0-9]{0,2}(?>(?:,[0-9]{3})+)|[0-9]++)"
_BEFORE = rf"(?P<sign>[-+])?(?P<before>\\?[{CURRENCY_SIGNS}]\s?)?(?P<inner>[-+])?"
_AFTER = rf"(?:\s?(?P<after>\\?[{CURRENCY_SIGNS}])|\s?(?P<percent>\\?%|(?i:per\s?cent)))?\.?"
# A currency sign may be on both sides, as in `$5$`, if it is the same. These are not read: 'nan', '1_000', '1,5',
# '- 5', '5¢' and an exponent of more than three digits.
_NUMBER = re.compile(
    rf"""{_BEFORE}
    (?: (?: (?P<whole>[0-9]{{1,3}})\s (?=[0-9]{{1,3}}/[0-9]{{1,3}}(?![0-9,])) )?
        (?P<top>{_INTEGER})\s?/\s?(?P<bottom>{_INTEGER})
      | (?P<units>[0-9]{{1,3}}\s?)?(?P<vulgar>[{VULGAR_FRACTIONS}])
      | (?P<decimal>(?:{_INTEGER}(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][-+]?[0-9]{{1,3}})?)
    ){_AFTER}""",
    re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(rf"{_BEFORE}(?:[0-9]{{1,3}}(?>(?:\.[0-9]{{3}})+)|[0-9]++),[0-9]++{_AFTER}")


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number as written: 5 for '5%', with `percent` set. `is_price` says whether it has a currency sign.

    Two numbers are equal if value and percent agree. The currency sign does not count.
    """

    value: Fraction
    percent: bool = False
    is_price: bool = field(default=False, compare=False)


def fold_digits(text: str) -> str:
    """Return the text with the decimal digits of every script as ASCII; superscripts and fractions stay."""
    return _FOREIGN_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)


def fold_marks(text: str) -> str:
    """Return the text with digits and the minus sign U+2212 as ASCII, one for one."""
    return text if text.isascii() else fold_digits(text).replace("\N{MINUS SIGN}", "-")


def parse_number(text: str) -> Number | None:
    """Read the whole text as one number, or return None if it is not one or is ambiguous."""
    plain = fold_marks(drop_invisible(text).strip())
    match = _NUMBER.fullmatch(plain) if len(text.strip()) <= _LONGEST else None
    if match is None or (match["sign"] and match["inner"]):
        return None
    currencies = {match[name].replace("\\", "").strip() for name in ("before", "after") if match[name]}
    if len(currencies) + bool(match["percent"]) > 1:
        return None
    magnitude = Fraction((match["decimal"] or match["whole"] or match["units"] or "0").replace(",", ""))
    if match["vulgar"]:
        magnitude += Fraction(unicodedata.numeric(match["vulgar"])).limit_denominator(10)
    if match["bottom"]:
        top, bottom = (int(match[name].replace(",", "")) for name in ("top", "bottom"))
        if not bottom or (match["whole"] and top >= bottom):
            return None
        magnitude += Fraction(top, bottom)
    negative = "-" in (match["sign"], match["inner"])
    return Number(-magnitude if negative else magnitude, match["percent"] is not None, bool(currencies))


def read_number(text: str) -> Number | None:
    r"""Read a whole text as a number, also in LaTeX (`\frac{1}{2}`, `5\times10^3`) or with a scale (`1.5 million`)."""
    if _MAY_BE_LATEX(text):
        text = without_latex(text)
    text = _NEGATIVE.sub("-", text)
    number = parse_number(text)
    match = _WITH_SCALE.fullmatch(text.strip()) if number is None and len(text) <= _LONGEST else None
    if match is None:
        return number
    number, name = read_number(match["number"]), match[match.lastgroup or 0]
    return None if number is None or number.percent else replace(number, value=number.value * _SCALES[name.lower()])


def without_latex(text: str) -> str:
    """Return the text with digits, signs and what LaTeX spells as a number in plain text. The length stays the same."""
    text = fold_marks(text)
    if _MAY_BE_LATEX(text):
        text = TEX_TEXT.sub(lambda match: f"{_GAP * (match.start(1) - match.start())}{match[1]}{_GAP}", text)
        for latex, plain in _LATEX:
            text = latex.sub(partial(_pad, plain), text)
    return text


def _pad(plain: str, match: re.Match[str]) -> str:
    return match.expand(plain).translate(_SUPERSCRIPTS).rjust(len(match[0]), PAD)


def is_ambiguous(text: str) -> bool:
    """Say whether the text is a number except for a comma that may be a decimal mark: '1,5', '0,500', '1.000,50'."""
    plain = fold_marks(drop_invisible(text).strip())
    return len(plain) <= _LONGEST and _DECIMAL_COMMA.fullmatch(plain) is not None and parse_number(plain) is None


# -- numbers in texts -------------------------------------------------------------------------------------------------

# The body takes in every mark that may join digits, so that '10:30', '1.2.3' and '1_000' are refused whole, not cut.
_CHUNK = re.compile(
    rf"""(?<![A-Za-z0-9_^{PAD}])(?<![0-9][.,/:])
    (?: (?<=[=:(])-\ | (?<=[=:(]\ )-\  | (?<![\w)\]}}%])(?:[-+]|(?<!\d\ )[–‑－﹣])
      | (?:\A|(?<=\b(?:is|to|of|be)\ )|(?<=\b(?:are|was|get)\ )|(?<=[=:]\ ))(?i:minus|negative)\  )?
    (?: \\?[{CURRENCY_SIGNS}]\ ?-? )? {PAD}*+
    (?: (?: [0-9](?<![\^_]\{{.)(?<![\^_]\{{[-+].)[0-9.,/:_{PAD}]*+ | \.[0-9][0-9.,/:_{PAD}]*+ )
        (?: [eE][-+]?[0-9]{{1,3}}(?![A-Za-z0-9]) | \ [0-9]{{1,3}}/[0-9]{{1,3}}(?![0-9/]) | \ ?[{VULGAR_FRACTIONS}] )?
      | [{VULGAR_FRACTIONS}] )
    (?! (?:st|nd|rd|th)\b | [\^²³¹⁰-⁹⁻] | [A-Za-z]+[0-9] )
    (?: \ ?(?:\\?%|(?i:per\ ?cent\b)) | (?: [\ {PAD}{_GAP}-]*+(?i:{_SCALE}|k)s?(?![A-Za-z0-9]) ){{1,2}} )?""",
    re.VERBOSE,
)
_LOOSE_END = f".,/:_{PAD}{_GAP}"
_DIGIT = re.compile(rf"[\d{VULGAR_FRACTIONS}]")
# Words other than those before a quantity, a currency and a label such as "Total: 18".
_HEADING = re.compile(
    r"(?!minus|negative|about|approximately|around|nearly|almost|roughly|exactly|between|at |over|under|up to|less|more"
    r"|fewer|only|(?-i:[A-Z]{2,3}|Rs)\b\.? ?\d|[^\d:=]*[:=]\s*[^\s\w]*\d)[^\W\d_]{2}",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2}|\d[,;]\s[^\W\d_]\s?\Z")  # or the "5, y " of "x = 5, y = 6"
_COMMAND = re.compile(r"\\[A-Za-z]+")
# What joins clauses, so that an equation is not all that a text says; and what calculates with a number before it.
_CLAUSE = re.compile(
    r"\b(?:because|since|as|so|for|from|which|that|who|if|when|where|with|and|but|after|or|is|are)\b|[;:]|,(?!\d{3})",
    re.I,
)
_CALCULATES = re.compile(r"\d\D*(?:[*×÷+]|\s[-–/]\s|\b(?:times|plus|minus|of|divided by)\b)|\d\s?[-/]\s?\d", re.I)
# A number that is a circumstance, as in "the cost of 3 shirts is $18", and one that is stated.
_CIRCUMSTANCE = re.compile(
    r"\b(?:(?<!total )of|in|after|at|for|from|if|when|the|all|each|every|per|over|within|during"
    r"|(?:for|by)\s[a-z]+ing|if\s[a-z]+\s[a-z]+"
    r"|(?<!\bneed\s)(?<!\bneeds\s)(?<!\bha[sd]\s)(?<!\bhave\s)to\s(?!be|get|give|obtain|equal|have|reach|find|become)[a-z]+)\s(?:the\s|all\s)?(?:remaining\s|other\s)?\Z",
    re.I,
)
_STATEMENT = re.compile(r"(?<!which )\b(?:is|are|was|were|equals)\s\Z", re.I)
_ONE = rf"[-+]?[{CURRENCY_SIGNS}]?[0-9{VULGAR_FRACTIONS}]++(?>(?:[.,/][0-9]++)*)"
_MEASURE_UNIT = (
    r"\s?(?:h|hours?|hrs?|minutes?|mins?|seconds?|secs?|days?|weeks?|months?|years?|feet|foot|ft|inch(?:es)?|in|yards?"
    r"|miles?|pounds?|lbs?|ounces?|oz|(?:kilo)?grams?|k?g|[kcm]?m|(?:kilo|centi|milli)?met(?:er|re)s?|dollars?|cents?|pence"
    r"|rupees?|paise|euros?|gallons?|quarts?|pints?|cups?|degrees?|dozens?|lakhs?|crores?|million|thousand)\b"
)
_MEASURE = rf"{_ONE}{_MEASURE_UNIT}"
_IN_WORDS = rf"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?=\s\w{{4}}){_MEASURE_UNIT}"
_REST = r"(?:with\s)?(?:an?\s)?(?:remainder(?:\sof)?|rem\.?|r\.?)"
# Two quantities that are one answer only together.
_COMPOUND = re.compile(
    rf"(?<![\w.,])(?<!\d/)(?:(?:{_MEASURE}|{_IN_WORDS})(?:,?\s(?:and\s|&\s)?{_MEASURE})+"
    rf"|{_ONE},?\s(?:{_REST}|or|out\sof)\s{_ONE}|[a-z]\s?=\s?{_ONE},?\s(?:and\s)?[a-z]\s?=\s?{_ONE}"
    rf"|{_ONE}(?:['′]\s?|[–-]|\s?±\s?|√|\s:\s){_ONE}[\"″]?|between\s{_ONE}\sand\s{_ONE})|√{_ONE}"
    rf"|[(\[]\s?{_ONE}(?>(?:\s?[,;]\s?{_ONE})+)\s?[)\]]"
    r"|(?<![\w.,/])[0-9]{1,3}(?>(?:[ \u00a0\u202f][0-9]{3}){1,6})(?![\d,/])",
    re.IGNORECASE,
)
_UNIT = (
    r"\s?(?!(?:per|for|in|at|of|out|from|on|each|every|after|before|when|if|with|by|over|than|as|because|since|so|which"
    r"|that|is|are|was|were|left|more|less|times|to|into|the|an?|he|she|they|it|we|you|i|and|or|while|but)\b)[A-Za-z]+\b"
)
# What a number must not be cut away from: a sign set apart, a LaTeX command, an exponent, the rest of an expression,
# the next group of three digits ('1 000'), half of it, or another number ('5 or 6', '5 apples and 6 pears').
_BOUND_BEFORE = re.compile(
    r"""\\[A-Za-z] | [{^] | (?:[-–±√≤≥‑﹣－˗⁻➖]|(?:\A|\s)[<>])\s*+\Z | [-–‑﹣－][(\[|*_"']{1,3}\Z
    | (?i:minus|negative)\s*+[(*_"']{0,3}\Z""",
    re.VERBOSE,
)
_BOUND_AFTER = re.compile(
    rf"""\s?(?: [\^{{] | \\(?![\\,;:!)\] ]|text|mathrm)
        | (?:[-–+/×÷·⋅∙x±]|\*{{1,2}})\s?{PAD}*+(?:[\d($\\π√{VULGAR_FRACTIONS}]|pi\b) )
    | [.,٫٬．，’·][^\D] | \.(?:\\overline|\([0-9]) | \s?[π√‰]
    | [A-Za-zπ√∞¢百千万萬亿億兆] | \+\s*\Z | \s[0-9]{{3}}(?![0-9]) | \s(?:pi|mill?|score|gross|(?-i:[MBT]))\b
    | \s(?:or|to|and|out\sof)\s(?: (?:a\s|one\s)?(?:half|third|quarter)\b
        | (?:[a-z]\s?=\s?)?[-{CURRENCY_SIGNS}]{{0,2}}[0-9{VULGAR_FRACTIONS}] ) | \swith\s{_ONE}\s(?:left|over|remain)
    | (?: {_UNIT}(?:{_UNIT})? ,?\s (?:and\s|&\s|plus\s)? | \s(?:ft|in|hrs?|mins?|secs?|lbs?|oz|yds?)\.\s | ,?\s{_REST}\s
        | ['′]\s? | ,\s(?:[a-z]\s?=\s?)? | \s?[:;]\s? ) (?={_ONE}(?!\s*[=+*/×]))""",
    re.VERBOSE | re.IGNORECASE,
)

# A citation or a footnote. An index such as x[1] is not a citation.
_CITATION = re.compile(r"\[(?:\^\d{1,3}\](?::.*)?|(?<=[^\W\d_]{2}\[|\w[.!?]\[)[1-9]\d?\](?>(?:\[[1-9]\d?\])*))")
_BOLD = re.compile(rf"\*\*\\?[{CURRENCY_SIGNS}]?\d[^*\n]*+\*\*")
# A sign from which no number is cut off, and the run of characters around it: it ends at white space, except in
# "25 \pi", and at the delimiters of a formula.
_BINDS = re.compile(r"[\\π√¢](?:(?<!\\)|(?:pi|sqrt)(?![a-z]))")
_TOKEN = re.compile(rf"(?>(?:(?<!\\)\([^\s()$]*+(?<!\\)\)|[^\s()$=≈\\]|\\[^\s()\[\]]|(?<=\d) (?={_BINDS.pattern}))+)")


def stated_number(payload: str, mark: Mark) -> str:
    """Return the number of an explicit answer, all of it if none can be cut out safely, or '' if it does not count."""
    if read_number(payload):
        return payload.rstrip(".")
    # It does not count if it has no digit and its mark may be in ordinary prose, or if it is a heading in words.
    if not _DIGIT.search(payload):
        return payload if mark in ("boxed", "finish", "tagged") else ""
    if mark == "hashes" and _HEADING.match(payload):
        return ""
    left, _, right = payload.rpartition("=")
    plain = _COMMAND.sub(" ", left)
    calculates = not _CLAUSE.search(plain) and (_CALCULATES.search(plain) or not _DIGIT.search(plain))
    is_bare = (calculates or not _WORD.search(plain)) and left.count("(") == left.count(")")
    side = right if is_bare and _DIGIT.search(right) else payload  # of 'x = 5' or '5 + 3 = 8 apples'
    text = without_latex(side)
    numbers = list(islice(_numbers(text, 0, len(text)), 2))
    if not numbers or (mark == "boxed" and len(numbers) > 1):
        return payload
    start, end = numbers[0]
    if _HEADING.match(side) and _CIRCUMSTANCE.search(text[:start]):
        spans = _numbers(text, 0, len(text))
        near = (span for span in spans if _STATEMENT.search(text[max(0, span[0] - 20) : span[0]]))
        start, end = next(near, numbers[0])
    bound = _BOUND_BEFORE.search(text[:start]) or _BOUND_AFTER.match(text, end)
    return payload if bound else side[start:end]


def _numbers(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return the spans of the numbers in a part of a text, without loose punctuation. Dates and times do not count."""
    for match in _CHUNK.finditer(text, start, end):
        chunk = match[0].rstrip(_LOOSE_END)
        if read_number(chunk.removeprefix("- ")) or is_ambiguous(chunk):
            yield match.start(), match.start() + len(chunk)


def last_number(text: str) -> str:
    """Return the last number of the text with what it is bound to; the one before its circumstances; '' if none."""
    plain = _CITATION.sub(lambda match: " " * len(match[0]), without_latex(text))
    for line in reversed([*re.finditer(r".+", plain)]):
        if numbers := [*_numbers(plain, *line.span())]:
            together = [match.span() for match in _COMPOUND.finditer(plain, *line.span())]
            last = [span for span in together if span[0] <= numbers[-1][0] < span[1]] or numbers[-1:]
            for token in _TOKEN.finditer(plain, *line.span()) if _BINDS.search(line[0]) else ():
                if token.start() < numbers[-1][1] <= token.end() and _BINDS.search(token[0]):
                    return text[slice(*token.span())].strip("*_`.,;:!?")
            return text[slice(*(_amount_before_circumstances(plain, line, numbers) or last[0]))]
    return ""


def _amount_before_circumstances(
    text: str, line: re.Match[str], numbers: list[tuple[int, int]]
) -> tuple[int, int] | None:
    """Return the amount of a line behind which each number is a circumstance, if it is in bold or the last result.

    '**$10** for 50 minutes', and '13 in 3 years' if '10 + 3 = 13' is before it.
    """
    bold = [match.span() for match in islice(_BOLD.finditer(text, *line.span()), 2)] if "**" in line[0] else []
    start, end = bold[0] if len(bold) == 1 else (0, 0)
    inside = [span for span in numbers if start < span[0] < end] or _restated(text, numbers)
    behind = [span for span in numbers[-9:] if len(inside) == 1 and span[0] > inside[0][0]]
    before = [text[max(end, inside[0][1]) : span[0]] for span in behind]
    circumstances = [_CIRCUMSTANCE.search(part[-30:]) or part.rfind("(") > part.rfind(")") for part in before]
    also = [at > 0 and part.endswith(" and ") for at, part in enumerate(before)]
    return inside[0] if before and all(map(max, map(bool, circumstances), also)) else None


def _restated(text: str, numbers: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The last number with the value behind the last equals sign, if those behind are known and in its sentence."""
    at = text.rfind("=", 0, numbers[-1][0]) + 1
    result = next(_numbers(text, at, at + 60), None) if at else None
    if result is None or re.search(r"\w", text[at : result[0]]):
        return []
    value = read_number(text[slice(*result)])
    same = [span for span in numbers if value and read_number(text[slice(*span)]) == value][-1:]
    is_known = all(text[slice(*span)] in text[:at] for span in numbers[-9:] if span > max(same, default=span))
    between = text[same[0][1] : numbers[-1][0]] if same else ""
    return same if is_known and not re.search(r"[.!?]\s|\b(?:minus|plus|less)\b", between) else []
