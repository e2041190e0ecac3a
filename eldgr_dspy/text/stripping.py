r"""Strip everything around an answer before it is compared: one function for all comparisons.

    strip_answer("**Doha**.")        "Doha"
    strip_answer("\boxed{Doha}")     "Doha"
    strip_answer("C++.")             "C++"

It drops edge punctuation, quotes, brackets around the whole, Markdown, HTML and LaTeX wrappers, surplus white space and
invisible characters. It keeps the marks that tell answers apart: "-5", ".5", "$5", "5%", "5'", "C++", "A-", the dots of
"U.S.", and the answer itself, character for character. Source: ours.
"""

import re
import unicodedata
from functools import lru_cache

from eldgr_dspy.text.folding import PLAIN, drop_invisible
from eldgr_dspy.text.numbers import CURRENCY_SIGNS, TEX_COMMAND, TEX_TEXT
from eldgr_dspy.text.reading import without_markup
from eldgr_dspy.text.sentence_ends import REACH, has_own_stop

_LAYERS, _ROUNDS = 32, 4
"""How many nested wrappers are taken off, and how often nested markup is resolved."""

_PAIRS = dict(zip("([{「『《【〈〔⟨⟪〖", ")]}」』》】〉〕⟩⟫〗", strict=True))
_BRACKETS = frozenset(_PAIRS).union(_PAIRS.values())
_SHAPE = {code: mark for code, mark in PLAIN.items() if code > 127} | {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    0x3000: " ",
}
"""Typographic quotes and dashes, and full-width characters, as plain ones, one for one."""

_ESCAPE = re.compile(r"\\([%$&#_{}])")
_WRAPPER = re.compile(
    rf"""{TEX_COMMAND}(?P<braced>.+)\}} | \\\((?P<inline>.+)\\\) | \\\[(?P<displayed>.+)\\\]
    | \$\$(?P<dollars>[^$]+)\$\$ | \$(?P<dollar>[^$]+)\$
    | <(?!su[bp]\b)(?P<name>[A-Za-z][\w-]*+)>(?P<tagged>.+)</(?P=name)>""",
    re.VERBOSE,
)
_QUOTE_WITHIN = {'"': r'(?<![0-9¼-¾⅐-⅞"])"|"(?=\w)', "'": r"(?<![\w'])'|(?<=[^\W0-9¼-¾⅐-⅞])'(?!\w)"}
_LINK = re.compile(r"\[([^\[\]]++)\]\([^()\s]*+\)")
_PASSAGES = r"(?:see )?[Pp]assages? \d{1,3}(?:(?:,? and|,) \d{1,3}){0,9}"
_CITATION = re.compile(
    r"([^\W\d_]{2}|\d\d|[.*\"')]|. )"
    rf"(?:(?:\[\^?[1-9]\d{{0,2}}\]|【\d{{1,3}}[^】]{{0,40}}】|\[{_PASSAGES}\])+|\({_PASSAGES}\))(?=\W*\Z)"
)


@lru_cache(maxsize=4096)
def strip_answer(text: str) -> str:
    """Return the answer in a text without its wrappers. A text without letters and digits stays whole.

    Stripping twice changes nothing. Stripped answers of one class (`eldgr_dspy.answer_types.answers.answer_class`) may
    still be spelled in several ways. It takes any text, in time linear in the length.
    """
    for _ in range(_ROUNDS):
        if bare := _BARE(text):
            return bare[1]
        if (inner := _once(text)) == text:
            break
        text = inner
    return text


def _once(text: str) -> str:
    """The answer within a text; markup that this uncovers is left for another round."""
    clean = " ".join(drop_invisible(without_markup(text)).split())
    for wrapper in (TEX_TEXT, _ESCAPE, _LINK, _CITATION):
        clean = wrapper.sub(r"\1", clean)
    start, end = 0, len(clean)
    if not any(map(str.isalnum, clean)):
        return clean
    shape = clean if clean.isascii() else clean.translate(_SHAPE)
    for _ in range(_LAYERS):
        if _TUPLE.fullmatch(shape, start, end):
            break
        if (inner := _unwrap(shape, start, end) or _trim(shape, start, end)) == (start, end):
            break
        start, end = inner
    return clean[start:end]


# -- wrappers ----------------------------------------------------------------------------------------------------------


def _unwrap(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The inside of `text[start:end]` where it is wrapped as a whole, without its outer wrapper; None elsewhere."""
    first, last, is_wrapped = text[start], text[end - 1], False
    if end - start < 3:
        return None
    if first in "\\$<" and (wrapper := _WRAPPER.fullmatch(text, start, end)):
        brace = wrapper.start("braced")
        is_one = brace < 0 or is_balanced(text[brace : end - 1], frozenset("{}"))
        return wrapper.span(wrapper.lastgroup or 0) if is_one else None
    if first in _PAIRS:
        is_wrapped = last == _PAIRS[first] and is_balanced(text[start + 1 : end - 1], frozenset(first + last))
    elif first == last:
        is_emphasis = first in "*_~" and text.find(first, start + 1, end - 1) in (-1, start + 1)
        is_wrapped = is_emphasis or (first in "\"'" and not _has_quote(text[start + 1 : end - 1], first))
    return (start + 1, end - 1) if is_wrapped else None


def is_balanced(text: str, brackets: frozenset[str] = _BRACKETS) -> bool:
    """Return whether each of the brackets in a text has its other half."""
    closers: list[str] = []
    for bracket in filter(brackets.__contains__, text):
        if bracket in _PAIRS:
            closers.append(_PAIRS[bracket])
        elif not closers or closers.pop() != bracket:
            return False
    return not closers


def _has_quote(text: str, quote: str) -> bool:
    """Whether a quotation contains another one that is not all of it; apostrophes, feet and inches do not count."""
    for _ in range(_LAYERS):  # “"The Dark Tower"”
        text = text[1:-1] if len(text) > 2 and text[0] == text[-1] == quote else text
    return re.search(_QUOTE_WITHIN[quote], text) is not None


# -- edges -------------------------------------------------------------------------------------------------------------

# Most answers have nothing to take off but a mark at the end.
_BARE = re.compile(r"([A-Za-z0-9]++(?>(?:[,.'-]?[ ]?[A-Za-z0-9]++)*))[,;:!?]?").fullmatch
_LOOSE = re.compile("[ `~|^=<>✅✔❤⭐\ufe0f\U0001f1e6-\U0001faff]")
_NUMERAL = r"[\d¹²³¼-¾⁰⁴-⁹₀-₉⅐-ↂ①-⓿❶-➓]"
_NEAR = rf"[^\w\s]{{0,3}}{_NUMERAL}"
_OWN_START = re.compile(
    rf"\.{_NUMERAL}|-(?:[^\W_]|[ ]?(?:{_NEAR}|\\?[{CURRENCY_SIGNS}]|\\[A-Za-z]|[∞√]|\((?![^\W\d_]{{2}})))"
    rf"|[<>]=?[ ]?{_NEAR}|\\[A-Za-z]"
)
# The brackets of a pair or an interval belong to it: (1, 2) is not [1, 2]. Those of "(1,000)" and "(Paris, Texas)" go.
_TERM = r"\s*[-+]?\s*(?:\\?[$]?\.?\d[\w./\\{}^%]*|[^\W\d_]|\\(?:infty|pi)|∞|inf(?:inity)?|oo)\s*"
_TUPLE = re.compile(rf"(?!.[1-9]\d{{0,2}}(?:,\d{{3}})+.\Z)[(\[]{_TERM}(?>(?:[,;]{_TERM})+)[)\]]", re.IGNORECASE)
_OWN_END = re.compile(rf"(?:{_NUMERAL}\+|(?<![^\W\d_])(?:[^\W\d_][\u0300-\u036f]{{0,3}}){{1,2}}(?:[-+#]|\+\++))\Z")


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of `text[start:end]` without loose marks at its edges. All of it if it is only marks."""
    first, last = start, end
    pairs = {} if _BRACKETS.isdisjoint(text) else _PAIRS
    closers = {opener: text.rfind(closer, start, end) for opener, closer in pairs.items()}
    while first < last and _is_loose(mark := text[first]):
        if closers.get(mark, -1) > first or _OWN_START.match(text, first):
            break
        first += 1
    openers = {closer: text.find(opener, first, last) for opener, closer in pairs.items()}
    while first < last and _is_loose(mark := text[last - 1]):
        if 0 <= openers.get(mark, -1) < last or _keeps_last(text, first, last):
            break
        last -= 1
    return (first, last) if first < last else (start, end)


@lru_cache(maxsize=4096)
def _is_loose(mark: str) -> bool:
    """Whether a character is white space, an emoji or loose punctuation; quotes go in pairs or not at all."""
    return _LOOSE.match(mark) is not None or (mark not in "\"'" and unicodedata.category(mark)[0] == "P")


def _keeps_last(text: str, start: int, end: int) -> bool:
    if (mark := text[end - 1]) in "%‰‱٪؉؊":
        return text[max(start, end - 64) : end - 1].rstrip(" .\\")[-1:].isnumeric()
    if mark == ".":
        return has_own_stop(text[max(start, end - REACH) : end])
    return mark in "+-#" and _OWN_END.search(text[max(start, end - 8) : end]) is not None
