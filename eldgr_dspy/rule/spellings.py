"""Find answers whose numbers, times or dates the evidence spells in another way that certifies nothing: `two-year`.

Such an answer is uncertified, and it is counted: many of them say that certificates do not fit a pool. This reader is
wide where a certificate is strict. To it a bare number is its word, `two-year` is `two years`, `5km` is `5 km`, `10:30`
is `10:30 am`, and `5 May 1990` is `May 5th, 1990`. What `eldgr_dspy.derivation.amounts` has as one class is not
counted. The words are English. Source: ours.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from eldgr_dspy.certificates import Passage
from eldgr_dspy.derivation.amounts import SCALES, WORD, value_of
from eldgr_dspy.matching.text_keys import short_class
from eldgr_dspy.text.numbers import CURRENCY_SIGNS
from eldgr_dspy.text.reading import read
from eldgr_dspy.text.stripping import strip_answer

_SCALE = rf"(?:[ -](?:{'|'.join(SCALES)}|dozen|lakh|crore)\b)?"
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}+\b"
_TOKEN = re.compile(
    rf"""(?P<hour>\b[0-9]{{1,2}})(?::(?P<minute>[0-5][0-9])(?![:\d]))?\ ?(?P<half>[ap])\.?m\b
    | (?P<of_24>\b[0-9]{{1,2}}):(?P<of_60>[0-5][0-9])(?![:\d])
    | (?P<day>\b[0-9]{{1,2}})(?:st|nd|rd|th)?\ (?:of\ )?(?P<month>{_MONTH})
    | (?P<month_first>\b{_MONTH})\ (?P<day_last>[0-9]{{1,2}})(?:st|nd|rd|th)?\b(?![.,]?\d)
    | (?P<amount>(?<![\w.,-])(?:-|[a-z]{{0,3}}[{CURRENCY_SIGNS}]\ ?)?
        (?:[0-9]++(?>(?:,[0-9]{{3}}(?!\d))*)(?:\.[0-9]++)?{_SCALE}
            | \b{WORD}(?>(?:(?:[ -]|\ and\ ){WORD})*)\b))(?P<percent>\ ?(?:%|per\ ?cent\b))?
    | (?P<word>[^\W\d_]++) | (?P<mark>\d++|[^\s\w,.'"()-])""",
    re.VERBOSE,
).finditer
_FIRST_WORD = re.compile(rf"(?!{WORD}|{_MONTH})[^\W\d_]{{4,}}+").match  # no number, month or currency
_MAY_BE = re.compile(rf"\d|\b{WORD}").search
_MAY_VARY = re.compile(rf"\d[.,]\d|\b{WORD}|dozen|lakh|crore").search  # without any, a number has its value's digits
_LONGEST = 200


def has_number(answer: str) -> bool:
    """Return whether an answer has a number, in digits or words, and is short enough to be sought."""
    plain = _plain(strip_answer(answer))
    return len(plain) <= _LONGEST and _MAY_BE(plain) is not None


def other_spelling(answer: str, passages: Sequence[Passage]) -> str | None:
    """Return how the evidence spells such an answer in another class; whether it is certified is not asked."""
    if not has_number(answer):
        return None
    key = _plain(strip_answer(answer))
    texts = [text for passage in passages for text in (passage.text, passage.title)]
    if (first := _FIRST_WORD(key)) and not any(first[0].removesuffix("s") in _plain(text) for text in texts):
        return None
    tokens, _ = _tokens(key)
    candidates = (spelling for text in texts if tokens for spelling in _spellings(text, tokens))
    own = short_class(answer)
    return next((spelling for spelling in candidates if short_class(spelling) != own), None)


def _spellings(text: str, key: Sequence[str]) -> Iterator[str]:
    plain = _plain(text)
    if not all(token in plain for token in key if token.isalpha()):
        return
    if not all(token in plain for token in key if token.isdecimal()) and not _MAY_VARY(plain):
        return
    tokens, spans = _tokens(plain)
    for at, token in enumerate(tokens):
        if token == key[0] and tokens[at : at + len(key)] == key:
            yield plain[spans[at][0] : spans[at + len(key) - 1][1]]


@lru_cache(maxsize=256)
def _plain(text: str) -> str:
    return read(text).text


@lru_cache(maxsize=256)
def _tokens(plain: str) -> tuple[Sequence[str], Sequence[tuple[int, int]]]:
    matches = [*_TOKEN(plain)]
    return [*map(_token, matches)], [match.span() for match in matches]


def _token(match: re.Match[str]) -> str:
    if match.lastgroup in ("word", "mark"):
        return match[0].removesuffix("s")
    if hour := match["hour"] or match["of_24"]:
        of_24 = int(hour) % 12 + 12 * (match["half"] == "p") if match["half"] else int(hour)
        return f"{of_24}:{match['minute'] or match['of_60'] or '00'}"
    if month := match["month"] or match["month_first"]:
        return f"{month[:3]} {int(match['day'] or match['day_last'])}"
    amount, percent = match["amount"], "%" if match["percent"] else ""
    if amount.isdecimal():
        return f"{amount.lstrip('0') or '0'}{percent}"
    sign = re.split(r"\ ?[0-9]", amount)[0] if not amount[0].isalnum() else ""
    value = value_of(amount.replace("-", " ") if amount[0].isalpha() else amount)
    return f"{sign}{amount if value is None else value}{percent}"
