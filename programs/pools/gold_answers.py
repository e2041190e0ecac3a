"""Gold answers as datasets and harnesses write them: under several names, in lists, in objects, and printed as text.

They are read, or refused with what was found: a file whose right answers are lost in silence scores everything wrong.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.entries import NO_CHOICES, Choices, choices_at, is_missing, plain_name, repr_of, text_at
from eldgr_dspy.splitting import folded_question

# Fields that add accepted answers to those of another field, and fields that hold a list of accepted answers.
ALIASES: Final = ("answer_aliases", "gold_aliases", "possible_answers")
LISTS: Final = ("answers", "gold_answers", "golden_answers", "golds", "answers_spans", "short_answers", "references")

NAMES: Final = (
    *ALIASES, *LISTS, "answer", "answerkey", "answer_key", "best_answer", "correct_answer", "correct_answers",
    "expected_answer", "gold_answer", "ground_truth", "ground_truths", "ideal", "reference", "reference_answer",
    "reference_answers", "target", "targets",
)  # fmt: skip
"""The fields beside `gold`, without regard to case, that hold gold answers in datasets and in evaluations."""

# The fields of an object that hold its answers: SQuAD's `text`, TriviaQA's `value` and `aliases`, DROP's `spans`.
_PARTS = ("value", "text", "aliases", "spans", "number", "short_answers")
_OPENINGS = {"[": "]", "(": ")", "{": "}", "a": ")"}  # `a` of numpy's `array(`
_TOKEN = re.compile(
    r"""('(?>(?:[^'\\]|\\.)*)(?:'|\Z) | "(?>(?:[^"\\]|\\.)*)(?:"|\Z) | [^\s,:='"\[\](){}]++ | [\])}] )
    (\s++ (?= -? [\w.'"\[(] ))?""",
    re.VERBOSE | re.DOTALL,
)
_PRINT = re.compile(
    r"""[\[(] \s*+ ['"] .* ['"] \s*+ [\])] | array\( .*
    | \{ \s*+ ['"] (?:text|spans|value|aliases|answer_start) ['"] \s*+ : .*""",
    re.VERBOSE | re.DOTALL,
)
_UNREADABLE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)  # a list in a set is a TypeError
_CALLS = ("array", "list", "tuple", "str_", "int64", "int32", "float64", "float32")  # what numpy prints before a value
_NOTHING: dict[str, Any] = {"null": None, "nan": None, "true": True, "false": False}


def gold_at(
    row: Mapping[str, Any], where: str, choices: Choices = NO_CHOICES, *, field: str = "gold", samples: bool = False
) -> tuple[str, ...]:
    """Return the gold answers of a row: of `gold`, else of `field`, else of all fields in `NAMES` together."""
    for name in ("gold", field):
        if not is_missing(row.get(name)):
            return _option_answers(row[name], name, where, choices)
    names = {name: plain for name in row if (plain := plain_name(name)) in NAMES and not is_missing(row[name])}
    # Next to predictions, `answer` may be one of them, so it counts only beside the aliases of an answer.
    if samples and not set(ALIASES) & {*names.values()}:
        names = {name: plain for name, plain in names.items() if plain != "answer"}
    by_name, aliases, refusals = dict[str, tuple[str, ...]](), list[str](), list[PoolError]()
    for name, plain in names.items():
        try:
            answers = _option_answers(row[name], name, where, choices)
        except PoolError as error:
            refusals.append(error)
            continue
        if plain in ALIASES:
            aliases += answers
        elif answers:
            by_name[name] = answers
    if refusals and not by_name and not aliases:
        raise refusals[0]
    _refuse_different(by_name, where)
    return tuple(dict.fromkeys([*(answer for answers in by_name.values() for answer in answers), *aliases]))


def final_answers(value: Any, field: str, where: str) -> tuple[str, ...]:
    """Return accepted answers from a text, a whole number, a list or an object of them, or a text that prints these."""
    if is_missing(value):
        return ()
    if isinstance(value, str):
        value = _unprint(text_at(value, field, where), field, where)
    try:
        texts = [*_texts(value, field, where)]
    except RecursionError:
        raise PoolError(f"{where}: {field} is nested too deeply; write the accepted answers as a list.") from None
    # A solution in GSM8K's form has its answer after `####`.
    return tuple(answer for text in texts if (answer := text.rpartition("####")[2].strip()))


def _option_answers(value: Any, field: str, where: str, choices: Choices) -> tuple[str, ...]:
    """Return accepted answers; for the place or the label of an option, its text."""
    texts = choices.texts
    if type(value) is int and 0 <= value < len(texts):
        if str(value) in texts and str(value) != texts[value] and not choices.by_number:
            raise PoolError(
                f"{where}: {field} is {value}, which is the place of one option, from 0, and the text of another. "
                "Write its text as gold."
            )
        return (texts[value],)
    labels = dict(zip(choices.labels, texts, strict=False))
    return tuple(labels.get(answer, answer) for answer in final_answers(value, field, where))


def _refuse_different(by_name: Mapping[str, Sequence[str]], where: str) -> None:
    """Refuse fields that have no answer in common: which of them holds the gold answers is not clear."""
    first, first_answers = next(iter(by_name), ""), set[str]()
    for name, answers in by_name.items():
        keys = set(map(folded_question, answers))
        if first_answers and first_answers.isdisjoint(keys):
            raise PoolError(
                f"{where}: {first} and {name} may both hold the gold answers, and have none in common: "
                f"{by_name[first][0]!r:.60} and {answers[0]!r:.60}. Name the right one gold."
            )
        first_answers |= keys


def _texts(value: Any, field: str, where: str) -> Iterator[str]:
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    text = str(int(value)) if is_whole else value
    if isinstance(value, Mapping):
        texts = [one for name in _PARTS if value.get(name) for one in _texts(value[name], f"{field}.{name}", where)]
        if not any(map(str.strip, texts)) and any(map(_is_filled, value.values())):
            raise PoolError(
                f"{where}: {field} must be text, or a list of texts; got {repr_of(value)}. Write the accepted answers "
                "as a list under gold."
            )
        yield from dict.fromkeys(texts)
    elif isinstance(text, str):
        yield text_at(text, field, where)
    elif isinstance(value, Sequence):
        for index, one in enumerate(value):
            yield from _texts(one, f"{field}[{index}]", where)
    else:
        raise PoolError(f"{where}: {field} must be text, or a list of texts; got {repr_of(value)}.")


def _is_filled(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_filled, value.values()))
    return any(map(_is_filled, value)) if isinstance(value, list | tuple) else value not in (None, "")


def _unprint(text: str, field: str, where: str) -> Any:
    """Return the list or object that a text prints, as Python, JSON or numpy does. Any other text as it is."""
    whole = text.strip()
    if not (whole and whole.endswith(_OPENINGS.get(whole[0], "\0"))):
        return text
    try:
        value, of_numpy = _parse_print(whole)
        leaves = [*_leaves(value)]
    except _UNREADABLE:
        if _PRINT.fullmatch(whole):
            raise PoolError(
                f"{where}: {field} looks like a printed list, but cannot be read as one: {text!r:.80}. Write a list of "
                "texts."
            ) from None
        return text
    if isinstance(value, Mapping):
        return value if any(isinstance(value.get(name), list) for name in _PARTS) else text
    if not isinstance(value, list):
        return text
    if not leaves:
        return text if field == "target" else []
    # Numbers in brackets are an answer such as an interval, unless numpy printed them or the field holds a list.
    is_list = plain_name(field) in (*ALIASES, *LISTS) and whole[0] == "["
    are_texts = all(isinstance(leaf, str) for leaf in leaves)
    return leaves if are_texts or is_list or (of_numpy and len(leaves) > 1) else text


def printed_choices(row: Mapping[str, str]) -> Choices:
    """Return the options that a cell of a row prints, as Python, JSON or numpy does."""

    def read(cell: object) -> Any:
        with suppress(*_UNREADABLE):
            return _parse_print(str(cell).strip())[0]

    return choices_at(row, read)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from chain.from_iterable(map(_leaves, value))
    elif not is_missing(value):
        yield value


def _parse_print(text: str) -> tuple[Any, bool]:
    """Return the value that a text prints, and whether numpy printed it: with white space between values."""
    try:
        return json.loads(text), False
    except ValueError:
        with_commas = _TOKEN.sub(lambda token: f"{token[1]}, " if token[2] else token[1], text)
    with warnings.catch_warnings(action="ignore"):  # of escapes, which occur only in text that prints no value
        tree = ast.parse(with_commas, mode="eval").body
    return _literal(tree), with_commas != text


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [*map(_literal, parts)]
        case ast.Dict(keys=keys, values=values) if all(keys):
            return {ast.literal_eval(key): _literal(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[part, *_]) if name in _CALLS:
            return _literal(part)
        case ast.Name(id=name) if name in _NOTHING:
            return _NOTHING[name]
        case ast.Constant(value=value) if value is Ellipsis:
            raise ValueError("values were left out")
    return ast.literal_eval(node)
