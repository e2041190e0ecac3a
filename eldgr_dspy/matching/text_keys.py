"""Turn a text that is an answer into the key by which texts vote, and into what is compared with the evidence.

An answer is read through `eldgr_dspy.text.stripping.strip_answer`. The official normalisation deletes punctuation, so
it reads '-5' as '5', '3.14' as '314' and 'A' as an empty answer. The key keeps such answers apart. It also decides
whether an answer occurs in the evidence (`eldgr_dspy.certificates`).
"""

import re
import string
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, compress, pairwise

from eldgr_dspy.derivation.amounts import quantity_key
from eldgr_dspy.text.folding import BIDI_CONTROLS, drop_invisible
from eldgr_dspy.text.numbers import CURRENCY_SIGNS, fold_digits, fold_marks
from eldgr_dspy.text.reading import read, respell
from eldgr_dspy.text.sentence_ends import sentence_ends
from eldgr_dspy.text.stripping import strip_answer

POLAR = frozenset({"yes", "no", "true", "false"})  # keys that an occurrence in the evidence does not support
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MARK = re.escape(string.punctuation)
# Fractions, superscripts, Roman and circled numerals are word characters to `re`, but not letters. A mark next to one
# means what it means next to a digit. One of them replaces all the others while the marks are read.
_NUMERAL = "½"
_DIGIT = f"[0-9{_NUMERAL}]"
_LETTER_OR_DIGIT = r"[^\W_]"
_LETTER = rf"[^\W\d_{_NUMERAL}]"
# What is attached to a word of one or two letters: 'A+', 'AB-', 'C#', and the pluses of 'C++11'.
_SHORT_WORD_ENDS = rf"(?:(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER})|(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER}{{2}}))"
_GRADE = rf"{_SHORT_WORD_ENDS}(?:[-+\#]++(?!{_LETTER_OR_DIGIT})|\+{{2,}}+(?![-\#]))"
_CONTRACTION = r"'(?=(?:d|ll|m|re|ve)(?!\w))"  # "he'll" is not "hell"
_NEEDS_GUARD = re.compile(rf"{_DIGIT}|\A-|{_GRADE}|['\"][-+#]|;|(?<=\w){_CONTRACTION}", re.IGNORECASE)
# A quotation; its closing quote does not mean feet, minutes or inches, even directly after a digit.
_QUOTATION = re.compile(
    r"""(?<!\w)(?:"(?=\S)[^"]*+" | '(?=\S)(?>(?:[^']|(?<=\w)'(?=\w))*)')(?![^\w\s]{0,3}\w)""", re.VERBOSE
)
_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?>(?:,[0-9]{3})+)(?!,?[0-9])")
# A dash that opens the text is a sign before a digit or a lone symbol ('-5', '- 5', '-US$5', '-x'), not in '-Paris'.
_LEADING_DASH = re.compile(rf"-++(?:(?=\s*+[^\w\s]{{0,3}}{_DIGIT})|(?=\S*{_DIGIT})|(?=\S)(?!{_LETTER}{{2}}))")
_END = "\ue000"  # replaces the end of a sentence while the marks are read
_PUNCTUATION = re.compile(
    rf"""(?P<between> (?<={_DIGIT})[{_MARK}]++(?={_DIGIT}) )
    | (?P<power> (?<={_DIGIT}[eE])[-+](?={_DIGIT}) )
    | (?P<sign> (?<!{_LETTER_OR_DIGIT})(?<!-)-++
        (?=[^\w\s]{{0,3}}{_DIGIT} | [A-Za-z]{{0,3}}\\?[{CURRENCY_SIGNS}]\s?\.?{_DIGIT}) )
    | (?P<point> (?<!{_LETTER_OR_DIGIT})(?<!\.)\.(?={_DIGIT}) )
    | (?P<price> \$(?=[-+]?\.?{_DIGIT}) | (?<={_DIGIT})\$(?!{_LETTER_OR_DIGIT}) )
    | (?P<grade> {_GRADE} )
    | (?<={_DIGIT})(?P<behind>['"+]++)(?!{_LETTER_OR_DIGIT})
    | (?P<order> [<>]++=?)(?=\s*+[^\w\s]{{0,3}}{_DIGIT})
    | (?<={_DIGIT})\.?\s*+\\?(?P<percent>%)(?![^\w\s]*+\w)
    | (?P<clause> ;(?=\s) | (?<=\s); )
    | (?P<contracted> (?<={_LETTER}){_CONTRACTION} )
    | (?P<spaced> (?<={_DIGIT}\s)[-+*/](?=\s{_DIGIT}) )
    | [{_MARK}]""",
    re.VERBOSE | re.IGNORECASE,
)
# An article is dropped before a word if more than articles is left: not in "A & W", "A, B" or "The The".
_HEAD_ARTICLE = re.compile(
    rf"""\A(?:an?|the)\ (?=["'(\[]{{0,3}}(?:[^\W_]|(?:[-+±~<>≤≥\#.\\{CURRENCY_SIGNS}]\ ?){{1,3}}[0-9]))"""
    r"(?!(?:(?:an?|the)(?:\ |\W*\Z))+\W*\Z)",
    re.IGNORECASE,
)
_PLAIN_WORDS = re.compile(r"[A-Za-z0-9]++(?>(?: [A-Za-z0-9]++)*)").fullmatch
_COMMA = re.compile(r"[0-9],[0-9]")


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """The class of an answer: answers with one `key` vote together, and the `note` does not count in a comparison.

    The note says what the key could not tell ("ambiguous decimal comma") or what it folded or dropped, if anything.
    """

    key: str
    note: str | None = field(default=None, compare=False)


@lru_cache(maxsize=4096)
def short_class(answer: str) -> AnswerClass | None:
    """Return the class of an answer as short text."""
    class_ = AnswerClass(without_article(answer.lower())) if _PLAIN_WORDS(answer) else class_of_text(answer)
    return AnswerClass(quantity_key(class_.key), class_.note) if class_ else None


def class_of_text(answer: str) -> AnswerClass | None:
    """Return the class of an answer as text of any kind, or None if it shows nothing."""
    core = strip_answer(answer)
    is_plain = BIDI_CONTROLS.isdisjoint(core)  # another is never read as anything else (hazard 37)
    key = text_key(read_answer(answer)) if is_plain else core
    if not visible(key):
        return None
    doubts = _COMMA.search(key) is not None, core.startswith("- ")
    return AnswerClass(key, note_on(answer, *compress(("ambiguous decimal comma", "detached sign"), doubts)))


def text_key(folded: str) -> str:
    """Return the key of an answer as `read_answer` returns it. In retrieval, `quantity_key` makes its class of it."""
    if _PLAIN_WORDS(folded):
        return without_article(folded)
    text = without_article(folded)
    if ends := sentence_ends(text):
        parts = [text[start:end] for start, end in pairwise((0, *chain.from_iterable(ends), len(text)))]
        parts[1::2] = [_END + " " * stop.endswith(" ") for stop in parts[1::2]]
        text = "".join(parts)
    numerals = "" if text.isascii() else "".join(sign for sign in text if unicodedata.category(sign) in ("No", "Nl"))
    alike = text.translate(dict.fromkeys(map(ord, numerals), _NUMERAL))
    plain = _guard(alike) if _NEEDS_GUARD.search(alike) else alike.translate(_NO_PUNCTUATION)
    key = " ".join(plain.split()).replace(_END, ".")
    following = iter(numerals)
    key = re.sub(_NUMERAL, lambda _: next(following), key)
    return key if visible(key) else " ".join(folded.split())


def read_answer(answer: str, *, keep_case: bool = False) -> str:
    """Return an answer as it is compared: stripped, folded and respelled."""
    return respell(read(strip_answer(answer), keep_case=keep_case).text)


def note_on(answer: str, *notes: str) -> str | None:
    """Return the note on an answer: what reading it folded or dropped, and what could not be told."""
    if not answer.isascii():
        bare = drop_invisible(answer)
        digits = fold_digits(bare)
        changes = digits != bare, fold_marks(bare) != digits, bare.strip() != answer.strip()
        notes = (*compress(("digits folded", "minus sign folded", "invisible characters dropped"), changes), *notes)
    return "; ".join(dict.fromkeys(notes)) or None


def without_article(text: str) -> str:
    """Return the text without the article at its head."""
    return _HEAD_ARTICLE.sub("", text)


def _guard(text: str) -> str:
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    if "'" in text or '"' in text:
        text = _QUOTATION.sub(lambda match: match[0][:-1], text)
    leading = _LEADING_DASH.match(text)
    dash, rest = (leading[0], text[leading.end() :]) if leading else ("", text)
    return dash + _PUNCTUATION.sub(lambda match: match[match.lastgroup] if match.lastgroup else "", rest)


def visible(text: str) -> bool:
    """Return whether any character is more than white space, a control or an invisible format character."""
    return any(not (character.isspace() or unicodedata.category(character) in ("Cc", "Cf")) for character in text)
