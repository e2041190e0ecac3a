"""Compare answers: for the score by the rules of HotpotQA and GSM8K, for the vote by a safer key.

Both read an answer through `eldgr_dspy.stripping.strip_answer`. The official normalisation deletes punctuation, so it
reads '-5' as '5', '3.14' as '314' and 'A' as an empty answer. The score follows it, so that results are comparable.
The vote (`answer_class`) keeps such answers apart. An answer's class also decides whether it occurs in the evidence
(`eldgr_dspy.certificates`).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.folding import BIDI_CONTROLS, drop_invisible
from eldgr_dspy.numbers import CURRENCY_SIGNS, INVISIBLE_DROPPED, Number, fold_marks, parse_number
from eldgr_dspy.reading import read, respelled
from eldgr_dspy.sentence_ends import sentence_ends
from eldgr_dspy.stripping import strip_answer
from eldgr_dspy.structured import Structured
from eldgr_dspy.words import TASKS, Task

AMBIGUOUS_COMMA = "ambiguous decimal comma"
DETACHED_SIGN = "detached sign"

POLAR = frozenset({"yes", "no", "true", "false"})
"""The keys of yes/no answers, which an occurrence in the evidence does not support."""

_ALL_OR_NOTHING = frozenset({"yes", "no", "noanswer"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")

_MARK = re.escape(string.punctuation)
# Fractions, superscripts, Roman and circled numerals are word characters to `re`, but not letters. A mark next to one
# means what it means next to a digit. One of them replaces all the others while the marks are read.
_NUMERAL = "½"
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_DIGIT = f"[0-9{_NUMERAL}]"
_LETTER_OR_DIGIT = r"[^\W_]"
_LETTER = rf"[^\W\d_{_NUMERAL}]"
# What is attached to a word of one or two letters: 'A+', 'AB-', 'C#', and the pluses of 'C++11'.
_SHORT_WORD_ENDS = rf"(?:(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER})|(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER}{{2}}))"
_GRADE = rf"{_SHORT_WORD_ENDS}(?:[-+\#]++(?!{_LETTER_OR_DIGIT})|\+{{2,}}+(?![-\#]))"
_CONTRACTED = r"'(?=(?:d|ll|m|re|ve)(?!\w))"  # "he'll" is not "hell"
_GUARD_NEEDED = re.compile(rf"{_DIGIT}|\A-|{_GRADE}|['\"][-+#]|;|(?<=\w){_CONTRACTED}", re.IGNORECASE)
# A quotation; its closing quote does not mean feet, minutes or inches, even directly after a digit.
_QUOTED = re.compile(
    r"""(?<!\w)(?:"(?=\S)[^"]*+" | '(?=\S)(?:[^']|(?<=\w)'(?=\w))*+')(?![^\w\s]{0,3}\w)""",
    re.VERBOSE,
)
_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})++(?!,?[0-9])")
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
    | (?P<contracted> (?<={_LETTER}){_CONTRACTED} )
    | (?P<spaced> (?<={_DIGIT}\s)[-+*/](?=\s{_DIGIT}) )
    | [{_MARK}]""",
    re.VERBOSE | re.IGNORECASE,
)
# An article is dropped before a word if more than articles is left: not in "A & W", "A, B" or "The The".
_HEAD_ARTICLE = re.compile(
    r"""(?:an?|the)\ (?=["'(\[]{0,3}[^\W_])(?!(?:(?:an?|the)(?:\ |\W*\Z))+\W*\Z)""", re.IGNORECASE
)
_PLAIN_WORDS = re.compile(r"[A-Za-z]++(?: [A-Za-z]++)*+|[0-9]++").fullmatch
_COMMA_KEPT = re.compile(r"[0-9],[0-9]")

_CACHED_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Score:
    """An answer's score: exact match and token F1 in [0, 1]; in arithmetic, numeric equality and None."""

    em: bool
    f1: float | None


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """The class of an answer: answers with one `key` vote together, and the `note` does not count in a comparison.

    The note says what the key could not tell ("ambiguous decimal comma") or what it folded or dropped, if anything.
    """

    key: str
    note: str | None = field(default=None, compare=False)


def normalise(text: str) -> str:
    """Return the text in lower case without ASCII punctuation, articles and surplus white space.

    Source: the official HotpotQA evaluation. Votes use `answer_class` instead.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str | None, gold: Sequence[str]) -> bool:
    """Say whether the answer equals a gold answer after `normalise`. No answer, or a blank one, never does.

    Both are stripped first (`strip_answer`), so that marks around an answer do not matter; see `official_score`.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    return _matches(answer, gold, _compared)


def token_f1(answer: str | None, gold: Sequence[str]) -> float:
    """Return the greatest token F1, in [0, 1], of the answer against a gold answer, both stripped and normalised.

    If either is yes, no or noanswer, only the same word scores. No answer scores 0. Source: official HotpotQA.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    return _greatest_f1(answer, gold, _compared)


def official_score(answer: str | None, gold: Sequence[str], task: Task) -> Score:
    """Score an answer as the official script does: nothing is stripped before `normalise`.

    Raises:
        ArgumentError: `gold` is empty or one text, or `task` is not a task.
    """
    check_task(task)
    _check_gold(gold)
    if task == "arithmetic":
        return Score(_is_number_of(answer, gold, parse_number), None)
    return Score(_matches(answer, gold, normalise), _greatest_f1(answer, gold, normalise))


def _compared(text: str) -> str:
    """An answer as it is scored: stripped, then normalised."""
    return normalise(strip_answer(text))


def _matches(answer: str | None, gold: Sequence[str], read: Callable[[str], str]) -> bool:
    if answer is None or not answer.strip():
        return False
    normal = read(answer)
    return any(normal == read(right) for right in gold)


def _greatest_f1(answer: str | None, gold: Sequence[str], read: Callable[[str], str]) -> float:
    if answer is None:
        return 0.0
    normal = read(answer)
    return max(_f1(normal, read(right)) for right in gold)


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _ALL_OR_NOTHING or gold in _ALL_OR_NOTHING):
        return 0.0
    given, wanted = answer.split(), gold.split()
    shared = (Counter(given) & Counter(wanted)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(given), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def numeric_equal(answer: str | None, gold: Sequence[str]) -> bool:
    """Say whether the answer is exactly the number of a gold answer: '18.0' is '$18', '5%' is not '5'.

    Both must be numbers by `parse_number`; a text that is not a number equals nothing, not even itself.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    return _is_number_of(answer, gold, number_in)


def number_in(answer: str) -> Number | None:
    """Return the stripped answer as a number, or None."""
    return parse_number(strip_answer(answer))


def _is_number_of(answer: str | None, gold: Sequence[str], read: Callable[[str], Number | None]) -> bool:
    number = None if answer is None else read(answer)
    return number is not None and any(number == read(right) for right in gold)


def score(answer: str | None, gold: Sequence[str], task: Task) -> Score:
    """Score an answer as its task is scored: exact match and F1 in retrieval, numeric equality in arithmetic.

    Raises:
        ArgumentError: `gold` is empty or one text, or `task` is not a task.
    """
    check_task(task)
    if task == "arithmetic":
        return Score(numeric_equal(answer, gold), None)
    return Score(exact_match(answer, gold), token_f1(answer, gold))


def answer_class(answer: str | None, task: Task) -> AnswerClass | None:
    """Return the class in which an answer votes, or None if the answer is None or shows nothing.

    In retrieval the key is that of the stripped answer (`strip_answer`) in lower case, without punctuation, surplus
    white space and the article at its head. The key keeps what tells answers apart: signs, decimal points, currency,
    percent, `<` and `>`, feet, inches and marks between digits, the marks of 'A-', 'C++' and 'C#', semicolons and the
    ends of sentences. It drops well-formed thousands commas. An answer of only articles or punctuation is kept whole.
    Numerals such as '½' and '①' count as digits, and each stays itself: '①' is not '1'. In arithmetic a number's key is
    its exact value and whether it is a percentage; any other text has a key that no number has. A list or an object
    (`Structured`) votes by the classes of its leaves.

    Raises:
        ArgumentError: `task` is not a task.
    """
    if answer is None:
        return None
    if isinstance(answer, Structured):
        return AnswerClass("json:" + answer.key(lambda leaf: leaf if (key := class_key(leaf, task)) is None else key))
    return _cached_class(answer, task) if len(answer) <= _CACHED_LENGTH else _class(answer, task)


def class_key(answer: str | None, task: Task) -> str | None:
    """Return the key of an answer's class, by which answers are compared; None where there is no class."""
    class_ = answer_class(answer, task)
    return class_.key if class_ else None


def is_polar(answer: str) -> bool:
    """Say whether the answer is yes, no, true or false, so that a certificate is inapplicable to it."""
    return class_key(answer, "retrieval") in POLAR


def check_task(task: Task) -> None:
    """Raise an ArgumentError unless `task` is one of `words.TASKS`."""
    if task not in TASKS:
        raise ArgumentError(f"task must be one of {', '.join(map(repr, TASKS))}; got {task!r}.")


def text_key(read: str) -> str:
    """Return the key of an answer as `read_answer` returns it; in lower case, this is its class in retrieval."""
    if read.isascii() and read.isalnum():
        return read
    text = _ends_marked(without_article(read))
    if text.isascii():
        alike, numerals = text, ""
    else:
        alike = _FOREIGN.sub(lambda match: _NUMERAL if _is_numeral(match[0]) else match[0], text)
        numerals = "".join(filter(_is_numeral, text))
    plain = _guarded(alike) if _GUARD_NEEDED.search(alike) else alike.translate(_NO_PUNCTUATION)
    key = " ".join(plain.split()).replace(_END, ".")
    if numerals:
        following = iter(numerals)
        key = re.sub(_NUMERAL, lambda _: next(following), key)
    return key if _visible(key) else " ".join(read.split())


def _class(answer: str, task: Task) -> AnswerClass | None:
    check_task(task)
    if task == "retrieval" and _PLAIN_WORDS(answer):
        return AnswerClass(without_article(answer.lower()))
    stripped = strip_answer(answer)
    if not _visible(stripped):
        return None
    if task == "arithmetic" and (number := parse_number(stripped)) is not None:
        return AnswerClass(f"{number.value}{'%' * number.percent}", _noted(answer, *number.notes))
    key = text_key(read_answer(answer))
    if not BIDI_CONTROLS.isdisjoint(stripped):
        key = stripped  # which is never read as anything else (hazard 37)
    if not _visible(key):
        return None
    notes = (
        (AMBIGUOUS_COMMA, _COMMA_KEPT.search(key) is not None),
        (DETACHED_SIGN, stripped.startswith("- ")),
    )
    text = "text:" if task == "arithmetic" else ""
    return AnswerClass(text + key, _noted(answer, *(note for note, true in notes if true)))


_cached_class = lru_cache(maxsize=1 << 16)(_class)


def read_answer(answer: str, *, keep_case: bool = False) -> str:
    """Return an answer as it is compared: stripped, folded and respelled."""
    stripped = strip_answer(answer)
    if stripped.isascii() and stripped.isalnum():
        return stripped if keep_case else stripped.lower()
    return respelled(read(stripped, keep_case=keep_case).text)


def _noted(answer: str, *notes: str) -> str | None:
    """The note on an answer: what reading it folded or dropped, and what could not be told."""
    if not answer.isascii():
        seen = drop_invisible(answer)
        notes = (*fold_marks(seen)[1], *((INVISIBLE_DROPPED,) * (seen.strip() != answer.strip())), *notes)
    return "; ".join(dict.fromkeys(notes)) or None


def without_article(text: str) -> str:
    """Return the text without the article at its head."""
    article = _HEAD_ARTICLE.match(text)
    return text[article.end() :] if article else text


def _ends_marked(text: str) -> str:
    """The text with each end of a sentence within it replaced by a letter of its own."""
    for start, end in reversed(sentence_ends(text)):
        text = f"{text[:start]}{_END}{' ' * text[start:end].endswith(' ')}{text[end:]}"
    return text


def _is_numeral(character: str) -> bool:
    """Whether a character is a number but not a decimal digit: '½', '²', '①', 'Ⅷ'."""
    return unicodedata.category(character) in ("No", "Nl")


def _guarded(text: str) -> str:
    """The text without the marks that mean nothing next to a number."""
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    if "'" in text or '"' in text:
        text = _QUOTED.sub(lambda match: match[0][:-1], text)
    leading = _LEADING_DASH.match(text)
    dash, rest = (leading[0], text[leading.end() :]) if leading else ("", text)
    return dash + _PUNCTUATION.sub(_kept, rest)


def _kept(match: re.Match[str]) -> str:
    """What stays of a punctuation mark: what the pattern has a name for."""
    return match[match.lastgroup] if match.lastgroup else ""


def _visible(text: str) -> bool:
    """Whether any character is more than white space, a control or an invisible format character."""
    return any(not (character.isspace() or unicodedata.category(character) in ("Cc", "Cf")) for character in text)


def _check_gold(gold: Sequence[str]) -> None:
    if isinstance(gold, str) or not gold:
        raise ArgumentError(f"gold must be a list of one or more gold answers; got {gold!r}. Pass one such as ['18'].")
