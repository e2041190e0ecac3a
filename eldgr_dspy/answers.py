"""When two answers are the same: for the score, by HotpotQA's and GSM8K's own rules; for the vote, by a safer key.

The official normalisation deletes punctuation, so it takes '-5' for '5', '3.14' for '314' and 'A' for nothing. The
score keeps to it, so that figures can be compared; the vote (`answer_class`) refines it where it would merge different
answers. Whether an answer stands in the evidence is not asked here (`eldgr_dspy.certificates`).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.folding import drop_invisible
from eldgr_dspy.numbers import (
    CURRENCY_DROPPED,
    CURRENCY_SIGNS,
    INVISIBLE_DROPPED,
    fold_marks,
    parse_number,
)
from eldgr_dspy.words import TASKS, Task

AMBIGUOUS_COMMA = "ambiguous decimal comma"
DETACHED_SIGN = "detached sign"

_POLAR = frozenset({"yes", "no", "true", "false"})
_ALL_OR_NOTHING = frozenset({"yes", "no", "noanswer"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")

_MARK = re.escape(string.punctuation)
# Fractions, superscripts, Roman and circled numerals are word characters to `re`, and no letters. A mark beside one of
# them means what it means beside a digit. One of them stands for all while the marks are looked at.
_NUMERAL = "½"
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_DIGIT = f"[0-9{_NUMERAL}]"
_LETTER_OR_DIGIT = r"[^\W_]"
_LETTER = rf"[^\W\d_{_NUMERAL}]"
# What is attached to a word of one or two letters: 'A+', 'AB-', 'C#', and the pluses of 'C++11'.
_SHORT_WORD_ENDS = rf"(?:(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER})|(?<=(?<!{_LETTER_OR_DIGIT}){_LETTER}{{2}}))"
_GRADE = rf"{_SHORT_WORD_ENDS}(?:[-+\#]++(?!{_LETTER_OR_DIGIT})|\+{{2,}}+(?![-\#]))"
_GUARD_NEEDED = re.compile(rf"{_DIGIT}|\A-|{_GRADE}")
# A quotation; its closing quote is no sign of feet, minutes or inches, though it may stand behind a digit.
_QUOTED = re.compile(
    r"""(?<!\w)(?:"(?=\S)[^"]*+" | '(?=\S)(?:[^']|(?<=\w)'(?=\w))*+')(?![^\w\s]{0,3}\w)""",
    re.VERBOSE,
)
_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})++(?!,?[0-9])")
# A dash that opens the text is a sign before a digit or a lone symbol ('-5', '- 5', '-US$5', '-x'), not in '-Paris'.
_LEADING_DASH = re.compile(rf"-++(?:(?=\s*+[^\w\s]{{0,3}}{_DIGIT})|(?=\S*{_DIGIT})|(?=\S)(?!{_LETTER}{{2}}))")
_PUNCTUATION = re.compile(
    rf"""(?P<between> (?<={_DIGIT})[{_MARK}]++(?={_DIGIT}) )
    | (?P<power> (?<={_DIGIT}e)[-+](?={_DIGIT}) )
    | (?P<sign> (?<!{_LETTER_OR_DIGIT})(?<!-)-++
        (?=[^\w\s]{{0,3}}{_DIGIT} | [a-z]{{0,3}}\\?[{CURRENCY_SIGNS}]\s?\.?{_DIGIT}) )
    | (?P<point> (?<!{_LETTER_OR_DIGIT})(?<!\.)\.(?={_DIGIT}) )
    | (?P<grade> {_GRADE} )
    | (?<={_DIGIT})(?P<behind>['"+]++)(?!{_LETTER_OR_DIGIT})
    | (?P<order> [<>]++=?)(?=\s*+[^\w\s]{{0,3}}{_DIGIT})
    | (?<={_DIGIT})\.?\s*+\\?(?P<percent>%)(?![^\w\s]*+\w)
    | [{_MARK}]""",
    re.VERBOSE,
)
# A kept mark belongs to its word: '-a' and 'a:-5' hold no article.
_GUARDED_ARTICLE = re.compile(rf"(?<![\w{_MARK}])(?:an?|the)(?![\w{_MARK}])")
_COMMA_KEPT = re.compile(r"[0-9],[0-9]")
_DOLLAR = re.compile(rf"\$[-+]?\s?\.?{_DIGIT}|{_DIGIT}\s?\$")

_CACHED_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Score:
    """How right an answer is: exact match and token F1 in [0, 1]; in arithmetic, numeric equality and None."""

    em: bool
    f1: float | None


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """The class of an answer: answers with one `key` vote together, and the `note` does not count in a comparison.

    The note says what the key could not tell ("ambiguous decimal comma") or what it folded or dropped; None is nothing.
    """

    key: str
    note: str | None = field(default=None, compare=False)


def normalise(text: str) -> str:
    """Return the text in lower case without ASCII punctuation, articles and surplus white space.

    Source: the official HotpotQA evaluation, which compares answers so. Votes are taken by `answer_class` instead.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str | None, gold: Sequence[str]) -> bool:
    """Say whether the answer equals a gold answer after `normalise`. No answer, or a blank one, never does.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    if answer is None or not answer.strip():
        return False
    normal = normalise(answer)
    return any(normal == normalise(right) for right in gold)


def token_f1(answer: str | None, gold: Sequence[str]) -> float:
    """Return the greatest token F1, in [0, 1], of the answer against a gold answer, both after `normalise`.

    Where either says yes, no or noanswer, only the same word scores. No answer scores 0. Source: official HotpotQA.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    if answer is None:
        return 0.0
    normal = normalise(answer)
    return max(_f1(normal, normalise(right)) for right in gold)


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

    Both must be numbers by `parse_number`; a text that is none equals nothing, itself included.

    Raises:
        ArgumentError: `gold` is empty, or one text instead of a sequence.
    """
    _check_gold(gold)
    number = None if answer is None else parse_number(answer)
    return number is not None and any(number == parse_number(right) for right in gold)


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
    """Return the class in which an answer votes, or None where it is no answer: None, or nothing visible.

    In retrieval the key is `normalise`, of the composed (NFC) text without invisible characters, with a guard: signs,
    decimal points, percent, `<` and `>`, feet, inches and marks between digits stay, and so do the marks of 'A-', 'C++'
    and 'C#'; well-formed thousands commas go, and an answer of nothing but articles or punctuation keeps it. Numerals
    such as '½', '²', 'Ⅷ' and '①' count as digits there, and none is read as another: '①' is not '1'. In arithmetic a
    number's key is its exact value, percent apart, and any other text has a key that no number has.

    Raises:
        ArgumentError: `task` is not a task.
    """
    if answer is None:
        return None
    return _cached_class(answer, task) if len(answer) <= _CACHED_LENGTH else _class(answer, task)


def is_polar(answer: str) -> bool:
    """Say whether the answer is yes, no, true or false by `normalise`, so that a certificate is inapplicable to it."""
    return normalise(answer) in _POLAR


def check_task(task: Task) -> None:
    """Raise an ArgumentError unless `task` is one of `words.TASKS`."""
    if task not in TASKS:
        raise ArgumentError(f"task={task!r} is not a task; expected one of {', '.join(map(repr, TASKS))}.")


def _class(answer: str, task: Task) -> AnswerClass | None:
    check_task(task)
    if not _visible(answer):
        return None
    if task == "retrieval":
        return _text_class(answer)
    number = parse_number(answer)
    if number is not None:
        return AnswerClass(f"{number.value}{'%' * number.percent}", _joined(number.notes))
    text = _text_class(answer)
    return AnswerClass(f"text:{text.key}", text.note)


_cached_class = lru_cache(maxsize=1 << 16)(_class)


def _text_class(answer: str) -> AnswerClass:
    if answer.isascii() and answer.isdigit():
        return AnswerClass(answer)
    seen = drop_invisible(answer)
    folded, notes = fold_marks(unicodedata.normalize("NFC", seen.strip().lower()))
    notes += (INVISIBLE_DROPPED,) * (seen != answer)
    alike = _FOREIGN.sub(lambda match: _NUMERAL if _is_numeral(match[0]) else match[0], folded)
    if _GUARD_NEEDED.search(alike):
        guarded, found = _guarded(alike)
        numerals = filter(_is_numeral, folded)
        key = re.sub(_NUMERAL, lambda _: next(numerals), guarded)
        notes += found
    else:
        key = normalise(folded)
    return AnswerClass(key if _visible(key) else _bare(folded), _joined(notes))


def _is_numeral(character: str) -> bool:
    """Whether a character is a number and no decimal digit: '½', '²', '①', 'Ⅷ'."""
    return unicodedata.category(character) in ("No", "Nl")


def _guarded(text: str) -> tuple[str, tuple[str, ...]]:
    """The key of a lower-case text that may hold a number, and the notes on it."""
    grouped = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    if "'" in grouped or '"' in grouped:
        grouped = _QUOTED.sub(lambda match: match[0][:-1], grouped)
    leading = _LEADING_DASH.match(grouped)
    dash, rest = (leading[0], grouped[leading.end() :]) if leading else ("", grouped)
    stripped = dash + _PUNCTUATION.sub(_kept, rest)
    key = " ".join(_GUARDED_ARTICLE.sub(" ", stripped).split())
    notes = (
        (AMBIGUOUS_COMMA, _COMMA_KEPT.search(key) is not None),
        (DETACHED_SIGN, bool(dash) and rest[:1].isspace()),
        (CURRENCY_DROPPED, _DOLLAR.search(text) is not None),
    )
    return key, tuple(note for note, true in notes if true)


def _kept(match: re.Match[str]) -> str:
    """What stays of a punctuation mark: what the pattern has a name for."""
    return match[match.lastgroup] if match.lastgroup else ""


def _bare(text: str) -> str:
    """The key of a text that is nothing but articles or punctuation: the articles, else the text as it is."""
    words = " ".join(text.translate(_NO_PUNCTUATION).split())
    return words if _visible(words) else " ".join(text.split())


def _visible(text: str) -> bool:
    """Whether any character is more than white space, a control or an invisible format character."""
    return any(not (character.isspace() or unicodedata.category(character) in ("Cc", "Cf")) for character in text)


def _joined(notes: tuple[str, ...]) -> str | None:
    return "; ".join(notes) or None


def _check_gold(gold: Sequence[str]) -> None:
    if isinstance(gold, str) or not gold:
        raise ArgumentError(f"gold={gold!r} is not a sequence of at least one gold answer; pass a list such as ['18'].")
