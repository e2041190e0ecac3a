"""Corpora as the paper builds them: HotpotQA's supporting facts, and solutions of GSM8K.

Rows come as Hugging Face's `datasets` has them; nothing is downloaded here. Every corpus has each passage once, in the
order of its first appearance. The corpus is part of what the channels measure: supporting facts were annotated by
people who knew the answers, and solutions show how far a step agrees with other ways to solve such questions, not
whether it is true.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.questions import require_one_of

Unit = Literal["sentence", "paragraph"]

_ANNOTATION = re.compile(r"<<[^<>]*>>")
_ANSWER = "####"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _Columns(_Model):
    @model_validator(mode="after")
    def _require_alignment(self) -> Self:
        if len({len(getattr(self, name)) for name in type(self).model_fields}) > 1:
            raise ValueError("the lists differ in length")
        return self


class _Context(_Columns):
    title: list[str]
    sentences: list[list[str]]


class _Facts(_Columns):
    title: list[str]
    sent_id: list[int]


class _HotpotQA(_Model):
    context: _Context
    supporting_facts: _Facts


class _GSM8K(_Model):
    answer: str


_Kind = TypeVar("_Kind", bound=_Model)


def hotpotqa_corpus(rows: Iterable[Mapping[str, Any]], unit: Unit = "sentence") -> tuple[Passage, ...]:
    """Return the supporting-facts corpus of some questions of HotpotQA.

    The paper names the corpus but not its unit. A fact is a sentence there, so it is here by default, under the title
    of its paragraph. Facts that point to a missing sentence, which the dataset has a few of, are left out.

    Args:
        rows: Rows of `hotpot_qa`, `distractor`: `context` with `title` and `sentences`, `supporting_facts` with `title`
            and `sent_id`.
        unit: `sentence`, or `paragraph` for the whole paragraph of a fact.

    Raises:
        ArgumentError: The unit is neither of the two, or a row has another layout.
    """
    require_one_of("unit", unit, get_args(Unit))
    return _distinct(passage for row in _rows(rows, _HotpotQA, "hotpot_qa") for passage in _facts(row, unit))


def _facts(row: _HotpotQA, unit: Unit) -> Iterator[Passage]:
    paragraphs = dict(zip(row.context.title, row.context.sentences, strict=True))
    for title, number in zip(row.supporting_facts.title, row.supporting_facts.sent_id, strict=True):
        sentences = paragraphs.get(title, [])
        if 0 <= number < len(sentences):
            yield Passage(title, ("".join(sentences) if unit == "paragraph" else sentences[number]).strip())


def gsm8k_corpus(rows: Iterable[Mapping[str, Any]], solutions: int = 1_000) -> tuple[Passage, ...]:
    """Return the first solutions of GSM8K's training split as a corpus; they have no titles.

    The calculator's annotations (`<<48/2=24>>`) and the last line (`#### 72`) are removed: both are written for
    programs, and no sampled step has them. A question whose own solution is in the corpus is compared with it; give
    other rows to avoid that.

    Args:
        rows: Rows of `gsm8k`, `main`, with an `answer`. No more are read than are asked for.
        solutions: How many, at least 1; the paper has 1,000. Fewer rows make a smaller corpus.

    Raises:
        ArgumentError: `solutions` is not such a number, or a row has another layout.
    """
    if type(solutions) is not int or solutions < 1:
        raise ArgumentError(f"solutions must be a whole number of at least 1; got {solutions!r:.80}.")
    examples = _rows(rows, _GSM8K, "gsm8k", solutions)
    return _distinct(Passage("", _ANNOTATION.sub("", row.answer.partition(_ANSWER)[0]).strip()) for row in examples)


def _rows(rows: object, kind: type[_Kind], dataset: str, first: int | None = None) -> Iterator[_Kind]:
    if not isinstance(rows, Iterable):
        raise ArgumentError(f"rows must be rows of `{dataset}` as Hugging Face has them; got {rows!r:.80}.")
    for index, row in enumerate(islice(rows, first)):
        try:
            yield kind.model_validate(row)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            place = "".join(f"[{part!r}]" for part in (index, *wrong["loc"]))
            problem = "is missing" if wrong["type"] == "missing" else f"is {wrong['input']!r:.80}"
            raise ArgumentError(f"rows{place} {problem}; give rows of `{dataset}` as Hugging Face has them.") from None


def _distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(passage for passage in passages if passage.text.strip()))
