"""What a user's answer type, certificate or rule returns, if it is not what was agreed: a sentence that names it."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar

import dspy
import pytest

from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.base import AnswerType, Grouping, Score, Way
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.certificates import Certificate
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.matching.text_keys import AnswerClass
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.testing import check_answer_type, check_laws
from tests.refusing import refuses

# hazard 112

DOHA, ROME = AnswerClass("doha"), AnswerClass("rome")


class Town(AnswerType):  # towns, by their letters
    name = "town"
    way: ClassVar[Way] = "evidence"
    scores = ("accuracy",)

    def read(self, answer: str) -> AnswerClass | None:
        return AnswerClass(answer.lower()) if answer.strip() else None

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer in gold


class Near(Related):  # towns, alike if they begin alike
    name = "near"
    way: ClassVar[Way] = "evidence"
    scores = ("accuracy",)
    connects = True

    def read(self, answer: str) -> AnswerClass | None:
        return AnswerClass(answer)

    def alike(self, one: str, other: str) -> bool:
        return one[:2] == other[:2]

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer in gold


class Repairer(dspy.Module):  # copies a span that no candidate gives
    def forward(self, question: str, evidence: list[str]) -> dspy.Prediction:
        return dspy.Prediction(repaired_answer="Rome is", repair_passage=0)


class Judge(dspy.Module):  # prefers the first candidate
    def forward(self, question: str, evidence: list[str], candidates: list[str]) -> dspy.Prediction:
        return dspy.Prediction(preferred=0)


def make(base: type[AnswerType] = Town, **methods: Any) -> AnswerType:
    kind: AnswerType = type("Made", (base,), methods)()
    return kind


def ask(kind: AnswerType | str = "short", **options: Any) -> Any:
    options = {"answer": kind, "rule": "certified", **options}
    select = Selector(**options)
    select.judge, select.repairer = Judge(), Repairer()
    return select(question="Where?", candidates=["Doha", "Rome"], evidence=["Rome is a city."])


def certifies(result: object) -> Callable[..., object]:
    """An `evidence` whose `certify` returns this."""
    return lambda kind, passages, policy: type("Found", (), {"certify": lambda self, answer, question="": result})()


def groups(classes: object, class_of: object) -> Callable[..., Grouping]:
    build: Any = Grouping
    return lambda kind, answers: build(classes, class_of)


def rule(case: Any) -> Generator[Any, Any, Any]:
    yield 3


BREAKS: dict[str, tuple[Callable[[], object], str]] = {
    "a class that is text": (lambda: ask(make(read=lambda kind, answer: "x")), r"town\.read\(.*AnswerClass.*got 'x'"),
    "a list as key": (lambda: ask(make(read=lambda kind, answer: AnswerClass([]))), r"town\.read\(.*its key text; got"),  # type: ignore[arg-type]
    "a number as key": (lambda: ask(make(read=lambda kind, answer: AnswerClass(3))), r"town\.read\(.*key=3"),  # type: ignore[arg-type]
    "no type of a question": (lambda: ask(make(of=lambda kind, request: None)), r"town\.of\(question\) .* got None"),
    "a question in a number": (
        lambda: ask(make(shown_question=lambda kind, request: 3), rule="judge"),
        r"town\.shown_question\(question\) must return text; got 3",
    ),
    "no evidence": (lambda: ask(make(evidence=lambda *values: None)), r"town\.evidence\(.*certify\(.*got None"),
    "a yes for a certificate": (lambda: ask(make(evidence=certifies("yes"))), r"town\.evidence\(.*got 'yes'"),
    "True for a certificate": (lambda: ask(make(evidence=certifies(True))), r"town\.evidence\(.*Certificate.*got True"),
    "a certificate of text": (
        lambda: ask(make(evidence=certifies(Certificate("yes", "")))),  # type: ignore[arg-type]
        r"town\.evidence\(.*certified='yes'",
    ),
    "no reason": (
        lambda: ask(certificate=lambda answer, evidence: Certificate(True, None)),  # type: ignore[arg-type]
        r"certificate\('Doha', \.\.\.\) returned Certificate.*with a reason",
    ),
    "no grouping": (lambda: ask(make(grouping=lambda *values: None)), r"town\.grouping\(answers\) .* got None"),
    "no classes": (lambda: ask(make(grouping=groups(None, len))), r"town\.grouping\(answers\) must return a Grouping"),
    "no class_of": (lambda: ask(make(grouping=groups((DOHA, ROME), None))), r"town\.grouping\(answers\) must return a"),
    "too few classes": (lambda: ask(make(grouping=groups((DOHA,), len))), r"got 1 for 2 answers"),
    "classes of text": (lambda: ask(make(grouping=groups(("a", "b"), len))), r"Each of the classes of town\.grouping"),
    "class_of text": (
        lambda: ask(make(grouping=groups((DOHA, ROME), str)), rule="eldgr", on_error="raise"),
        r"class_of\('Rome is'\) of town\.grouping\(answers\) must be an AnswerClass",
    ),
    "no components": (lambda: ask(make(Near, components=lambda *values: None)), r"near\.components\(.*got None"),
    "lost components": (lambda: ask(make(Near, components=lambda *values: [])), r"near\.components\(.*got \[\]"),
    "unknown components": (lambda: ask(make(Near, components=lambda *values: [["x"]])), r"near\.components\(.*'x'"),
    "no word of joining": (
        lambda: make(Near, joins=lambda *values: None).grouping(["Doha"]).class_of("Rome"),
        r"near\.joins\('Rome', \.\.\.\) must be True or False; got None",
    ),
    "no score": (lambda: score("a", ["a"], make(score=lambda *values: None)), r"town\.score\('a', .*got None"),
    "a score of text": (
        lambda: score("a", ["a"], make(score=lambda *values: Score("yes", None))),  # type: ignore[arg-type]
        r"town\.score\('a', .*got Score\(em='yes'",
    ),
    "no examples": (lambda: check_answer_type(make(examples=lambda kind: None)), r"town\.examples\(\) .*got None"),
    "a rule that asks a number": (lambda: ask(rule=rule), r"asks 3; it may ask one of judge"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_returned_is_named_with_what_was_expected(name: str) -> None:
    call, message = BREAKS[name]
    refuses(ArgumentError, message, call)


class Moody(Town):  # reads an answer to a question otherwise the first time than later
    def __init__(self) -> None:
        self._read = set[str]()

    def of(self, question: object) -> "Moody":
        return Moody()

    def read(self, answer: str) -> AnswerClass | None:
        again = answer in self._read
        self._read.add(answer)
        return AnswerClass(f"{answer} again" if again else answer) if answer.strip() else None


class Counting(Town):  # reads each answer otherwise
    n = 0

    def read(self, answer: str) -> AnswerClass | None:
        type(self).n += 1
        return AnswerClass(f"{answer}{self.n}") if answer.strip() else None


def test_a_class_that_changes_from_call_to_call_is_noticed() -> None:
    refuses(LawBroken, "Law 22, a_type_repeats_itself", check_answer_type, Moody(), max_examples=1)


def test_a_class_that_changes_is_not_blamed_on_the_rule() -> None:
    with pytest.raises(ArgumentError, match="The answer type 'town' must put the same answers into the same classes"):
        check_laws(answer=Counting(), max_examples=1)


def test_evidence_needs_nothing_but_certify() -> None:
    assert ask(make(evidence=certifies(Certificate(True, "known")))).certified
