"""Read a text as a person sees it: resolve markup, then fold, and keep the way back to the original characters.

Before folding (`folding`), some parts are replaced by as many characters as they had, so that every offset stays the
same: HTML entities and formatting tags, digits of other scripts, "№", Turkish capital "İ", and marks that only set the
direction of text. A subscript digit after a letter is a digit ("CO₂" is "CO2"). Source: ours.
"""

import re
from dataclasses import replace
from html import unescape

from eldgr_dspy.text.folding import BIDI_CONTROLS, Folded, fold
from eldgr_dspy.text.numbers import CURRENCY_SIGNS, PAD, fold_digits

_ALIKE = str.maketrans({"№": "#", "٪": "%", "İ": "I", **dict.fromkeys(BIDI_CONTROLS, PAD)})
_DOTTED_I = re.compile("(?<=[Ii])\u0307")
_ODD = re.compile(f"[№٪İ\u0307{''.join(sorted(BIDI_CONTROLS))}]|[^\\D0-9]").search  # translating takes far longer
# Tags that only format.
_INLINE = (
    "a abbr answer b big cite code del dfn em final final_answer font i ins kbd mark q s samp small span strike strong"
    " tt u"
)
_BLOCK = "blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody td th thead tr ul"
_VALUE = r"""(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>=]++)"""
_ATTRIBUTES = rf"(?>(?:\s++[A-Za-z][\w:-]*+\s*+=\s*+{_VALUE})*)\s*+/?"
_TAGS = rf"(?>(?:</?(?:{'|'.join(_INLINE.split())}){_ATTRIBUTES}>)*)"  # between a number and its power
ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,9}+|\#[0-9]{1,7}+|\#[Xx][0-9A-Fa-f]{1,6}+);")
_LINE_BREAK = re.compile(r"(?:\u00ad[ \t]*+|(?<=[^\W\d_][-\u2010]))\r?\n[ \t]*+(?=[^\W\d_])")
_MARKUP = re.compile(
    rf"""{ENTITY.pattern}
    | (?P<power>(?<=[0-9)]){_TAGS}<sup{_ATTRIBUTES}>) | (?P<index>(?<=[0-9]){_TAGS}<sub{_ATTRIBUTES}>)
    | </?(?: (?P<inline>su[bp]|{"|".join(_INLINE.split())}) | (?:{"|".join(_BLOCK.split())}) ){_ATTRIBUTES}>""",
    re.VERBOSE | re.IGNORECASE,
)
_DISPLAY = {"power": "^", "index": "_", "inline": "", "block": " "}  # "10<sup>2</sup>" is not 102
_EM_DASH = re.compile(r"(?<=\w)[—―](?=[^\W\d_])")  # "code—a" is two words, "Jay-Z" one
_SUBSCRIPTS = re.compile(r"(?<=[^\W\d_])[₀-₉]++(?!\d)")
_AS_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_INITIALS = re.compile(r"(?<!\w)([^\W\d_])\.[ ](?=[^\W\d_]\.)")
_BARE_POINT = re.compile(r"(?<![\w.])\.(?=[0-9])")
_WITHIN_AMOUNT = re.compile(
    rf"""(?<=[0-9])\ (?=[¼-¾⅐-⅞] | \\?[%‰‱°] | \\?[{CURRENCY_SIGNS}](?!\w)) | (?<=[{CURRENCY_SIGNS}])\ (?=[0-9.])
    | (?<=[<>≤≥])\ (?=[0-9]) | (?<=[0-9]')\ (?=[0-9]) | (?<=[0-9])\ (?=-\ [0-9]) | (?<=[0-9]\ -)\ (?=[0-9])""",
    re.VERBOSE,
)


def read(text: str, *, keep_case: bool = False) -> Folded:
    """Return the text folded, markup resolved; `source` has the length of `text`, and so the same offsets."""
    text = without_markup(text)
    text = text if text.isascii() else _EM_DASH.sub("~", text)
    if not text.isascii() and _ODD(text):
        text = _DOTTED_I.sub(PAD, fold_digits(text).translate(_ALIKE))
    if (folded := fold(text, keep_case=keep_case)).text.isascii():
        return folded
    return replace(folded, text=_SUBSCRIPTS.sub(lambda match: match[0].translate(_AS_DIGITS), folded.text))


def without_markup(text: str) -> str:
    """Return the text with HTML entities and formatting tags resolved, and padded with invisible characters."""
    if "\n" in text:
        # A word that a hyphen breaks at a line end is whole again.
        text = _LINE_BREAK.sub(lambda match: PAD * len(match[0]), text)
    return _MARKUP.sub(_resolve, text) if "&" in text or "<" in text else text


def _resolve(match: re.Match[str]) -> str:
    """The text that an entity or a tag shows, filled up to its length."""
    text = _DISPLAY[match.lastgroup or "block"] if match[0].startswith("<") else unescape(match[0])
    return text.ljust(len(match[0]), PAD)  # no entity shows more characters than it has


def respell(folded: str) -> str:
    """Return a folded text in its usual spelling: "J.R.R." for "J. R. R.", "0.5" for ".5", "5°C" for "5 °C", "5%"."""
    if "." in folded:
        folded = _BARE_POINT.sub("0.", _INITIALS.sub(r"\1.", folded))
    return _WITHIN_AMOUNT.sub("", folded) if " " in folded else folded
