"""An answer type has names, says how answers compare, and decides which of the two ways of the rule is taken."""

import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import Selector
from eldgr_dspy.answer_types import BUILT_IN, answer_type, load_type
from eldgr_dspy.answer_types.answers import answer_class, official_score, score
from eldgr_dspy.answer_types.base import Grouping, Score, StatedType, Way, is_truth
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.base.named_objects import source_of
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES
from eldgr_dspy.matching.text_keys import AnswerClass, short_class
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import TASKS
from tests.dates import TYPE_LIST, Years
from tests.refusing import refusal, refuses
from tests.rule.keys import cases

NAMES = {"short": "retrieval", "number": "arithmetic"}
TEXTS = ("The answer is 1,000 km. Or less.", "18.0", "the Paris", "5%", "", "-5", "I do not know")


class Places(ShortText):
    """A place, read as short text."""


@pytest.mark.parametrize(("new", "earlier"), NAMES.items())
def test_both_names_of_a_type_name_the_same_also_for_a_pool(new: str, earlier: str) -> None:
    assert answer_type(new) is answer_type(earlier)
    assert Question("?", new, ()) == Question("?", earlier, ())
    for text in TEXTS:
        assert answer_class(text, new) == answer_class(text, earlier)
        assert score(text, ["18"], new) == score(text, ["18"], earlier)
        assert official_score(text, ["18"], new) == official_score(text, ["18"], earlier)
        assert extract_answer(text, new) == extract_answer(text, earlier)
    record = {"id": "q", "question": "?", "candidates": [{"answer": "18"}], "gold": ["18"]}
    one, other = (validate({**record, "task": task}, "row") for task in (new, earlier))
    assert (one, one.digest(), one.task) == (other, other.digest(), earlier)
    assert pool_authority([one], new) == pool_authority([other], earlier)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_type_gives_up_only_laws_that_exist(name: str) -> None:
    assert set(answer_type(name).gives_up) <= {law.name for law in (*LAWS, *LAWS_OF_TYPES)}


def test_an_answer_votes_and_is_certified_as_a_type_of_your_own_says() -> None:
    years = load_type("tests.dates:YEARS")
    case = Case(Question("When?", "tests.dates:YEARS", ("in 1976", "1976.", "1977", "then")))
    assert (years.name, case.type, case.task) == ("tests.dates:YEARS", years, "retrieval")
    assert case.vote.classes == ("1976", "1976", "1977", None)
    assert case.roles() == ("judge", "repairer")
    assert score("May 1976", ["1976"], years.name).em
    sums = load_type("tests.dates:Sums")
    case = Case(Question("When?", sums.name, ("1976", "1977")))
    assert (sums.name, case.task, case.roles()) == ("tests.dates:Sums", "arithmetic", ("deriver",))
    pred = Selector(answer=Years, rule="majority")(question="When?", candidates=["in 1976", "1976.", "1977"])  # type: ignore[arg-type]
    assert pred.votes == {"in 1976": 2, "1977": 1}
    kind = load_type(Places())
    assert kind.name == "tests.rule.test_answer_types:Places"
    assert answer_type("retrieval") is answer_type("short") is BUILT_IN["short"]
    assert answer_type(kind.name) is kind
    assert {answer_type(task).task for task in TASKS} == {*TASKS} == {kind.task for kind in BUILT_IN.values()}


@pytest.mark.parametrize("immutable", [True, False])
def test_a_type_may_be_a_dataclass(immutable: bool) -> None:
    base: Any = type("Dated", (Years,), {"__module__": __name__})
    kind = dataclass(frozen=immutable)(base)()
    assert load_type(kind).name == f"{__name__}:Dated"
    assert Case(Question("?", kind.name, ("in 1976", "1977", None), kind=kind)).vote.n_classes == 2


def test_a_name_alone_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "types_of_a_pool.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    name = "types_of_a_pool:dates"
    refuses(ArgumentError, "got 'types_of_a_pool:dates'", Question, "?", name, ())
    with pytest.raises(PoolError, match="task is 'types_of_a_pool:dates'"):
        validate({"id": "q", "question": "?", "task": name, "candidates": [{"answer": "18"}]}, "row")
    assert "types_of_a_pool" not in sys.modules


WRONG: list[tuple[Any, str]] = [
    ({"way": "vote"}, "Wrong.way must be one of 'evidence', 'derivation'; got 'vote'."),
    ({"way": None}, "Wrong.way must be one of 'evidence', 'derivation'; got None."),
    ({"scores": "EM"}, "Wrong.scores must be a tuple of one or two names, ('accuracy',); got 'EM'."),
    ({"scores": ()}, "Wrong.scores must be a tuple of one or two names, ('accuracy',); got ()."),
    ({"__init__": lambda self, form: None}, "answer must be made without arguments; "),
    ("dates", f"answer must be one of {TYPE_LIST}; got 'dates'."),
    ("tests.dates:NOT_A_TYPE", "answer='tests.dates:NOT_A_TYPE' must be an "),
    ("tests.dates:nothing", "answer='tests.dates:nothing': the module 'tests.dates' has no 'nothing'"),
    ("tests.no_such:dates", "answer='tests.no_such:dates': the module 'tests.no_such' cannot be imported"),
]


@pytest.mark.parametrize(("kind", "message"), WRONG)
def test_what_is_not_a_type_or_does_not_say_what_it_must_is_refused(kind: Any, message: str) -> None:
    wrong = kind if isinstance(kind, str) else type("Wrong", (Years,), kind)
    assert refusal(lambda: load_type(wrong)).startswith(message)


@pytest.mark.parametrize("reply", [None, 1, 0.5, "yes"])
def test_what_is_right_must_be_true_or_false(reply: Any) -> None:
    kind: Any = type("Says", (Years,), {"name": "says", "is_right": lambda *_: reply})()
    expected = f"says.is_right('1976', ['1976']) must be True or False; got {reply!r}."
    assert refusal(lambda: kind.score("1976", ["1976"])) == expected


WRONGLY: list[tuple[str, Any, str]] = [
    ("read", "1976", "says.read('1976') must be an AnswerClass or None, and its key text; got '1976'."),
    ("read", AnswerClass(7), "says.read('1976') must be an AnswerClass or None, "),  # type: ignore[arg-type]
    ("score", 1, "says.score('1976', ...) must be a Score, of True or False and a number or None; got 1."),
    ("score", Score("yes", None), "says.score('1976', ...) must be a Score, "),  # type: ignore[arg-type]
    ("official_score", Score(True, "1"), "says.official_score('1976', ...) must be a Score, "),  # type: ignore[arg-type]
    ("of", None, "says.of(question) must return an AnswerType; got None. Return self."),
    ("grouping", None, "says.grouping(answers) must return a Grouping of a tuple and a function; got None."),
    ("grouping", Grouping((), 7), "says.grouping(answers) must return a Grouping of a "),  # type: ignore[arg-type]
    ("grouping", Grouping((), len), "says.grouping(answers) must return one class or None per answer; got 0 for 1 "),  # type: ignore[arg-type]
    ("grouping", Grouping((7,), len), "Each of the classes of says.grouping(answers) must be an AnswerClass"),  # type: ignore[arg-type]
    ("grouping", Grouping((None,), len), "class_of('1977') of says.grouping(answers) must be an AnswerClass"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("method", "reply", "message"), WRONGLY, ids=str)
def test_what_a_type_of_your_own_returns_is_refused_by_name(method: str, reply: Any, message: str) -> None:
    kind: Any = type("Says", (Years,), {"name": "says", method: lambda *_: reply})()

    def use() -> None:
        for scorer in (score, official_score):
            scorer("1976", ["1976"], kind)
        Case(Question("When?", "says", ("1976",), kind=kind)).same("1977", "1976")

    assert refusal(use).startswith(message)


def test_a_type_states_itself_in_files_and_is_found_again_by_its_name() -> None:
    years, other = load_type("tests.dates:YEARS"), type("Years", (Years,), {"name": "years", "gives_up": ("law",)})()
    entry: dict[str, Any] = {"name": "tests.dates:YEARS", "source": source_of(Years)}
    assert years.to_json() == entry
    other.loaded_as = "dates:YEARS"
    expected = {"name": "years", "loaded_as": "dates:YEARS", "source": source_of(type(other)), "gives_up": ["law"]}
    assert other.to_json() == expected
    assert answer_type("short").to_json() == {"name": "short", "source": source_of(ShortText)}
    assert pickle.loads(pickle.dumps(answer_type("choice"))) is answer_type("choice")  # noqa: S301 - our own bytes
    assert [official_score("1976", [gold], years).em for gold in ("May 1976", "1977")] == [True, False]
    of_figures = StatedType("dates", "evidence", ["EM"])
    assert (of_figures.name, of_figures.way, of_figures.scores) == ("dates", "evidence", ("EM",))
    assert of_figures.class_of("The Paris") == AnswerClass("paris")
    assert refusal(lambda: of_figures.score("Paris", ["Paris"])) == (
        "The answer type 'dates' must be loaded to score an answer. Give --answer NAME."
    )
    assert is_truth(type("bool_", (int,), {})(1))  # as numpy 1 names it


OPTIONS = ("Doha", "Dubai", "Riyadh", "None of the above")
RECORD = {
    "id": "q", "question": "What is the capital of Qatar?", "task": "choice",
    "candidates": [{"answer": "A"}, {"answer": "Dubai"}], "options": [*OPTIONS],
}  # fmt: skip


def case_of(*answers: str | None, options: tuple[str, ...] = OPTIONS, evidence: str = "It is Doha.") -> Case:
    """Return a question with options."""
    return Case(Question("Which?", "choice", answers, (), (Passage("", evidence),), options))


@pytest.mark.parametrize(("answer", "index"), cases("named options"))
def test_an_answer_names_an_option_by_letter_by_text_or_by_both(answer: str, index: int | None) -> None:
    assert Choice(OPTIONS).index(answer) == index


def test_options_stand_in_the_row_the_type_and_what_roles_see() -> None:
    assert Choice(("B", "A")).index("A") == 1
    row = validate(RECORD, "row")
    assert row.to_question().options == OPTIONS
    assert row.digest() != validate({**RECORD, "options": ["Doha", "Dubai"]}, "row").digest()
    select = Selector(answer="choice", rule="certified")
    pred = select(question="?", candidates=["B", "B", "A"], evidence=["It is Doha."], options=OPTIONS)
    assert (pred.answer, pred.branch, pred.certified) == ("A", "certified", True)
    kind = answer_type("choice")
    assert isinstance(kind, Choice) and kind.options == () and case_of().type is not kind
    question = case_of("A").question
    text = "Which?\nOptions:\nA. Doha\nB. Dubai\nC. Riyadh\nD. None of the above"
    assert [question.role_inputs(role)["question"] for role in ("judge", "repairer")] == [text] * 2
    options = tuple(f"Town {number}" for number in range(28))
    lines = str(case_of("A", options=options).question.role_inputs("judge")["question"]).splitlines()
    assert lines[27:] == ["Z. Town 25", "- Town 26", "- Town 27"]


@given(st.lists(st.sampled_from(("A", "Doha", "a)", "B", "Dubai", "Muscat", "E", None)), max_size=6))
def test_letters_and_texts_of_an_option_vote_together(answers: list[str | None]) -> None:
    votes = case_of(*answers).vote.classes
    keys = {"A": "doha", "Doha": "doha", "a)": "doha", "B": "dubai", "Dubai": "dubai", "Muscat": "muscat", "E": "e"}
    assert votes == tuple(answer and keys[answer] for answer in answers)


def test_an_option_is_certified_inapplicable_right_or_a_refusal_by_letter_as_by_text() -> None:
    case = case_of("B", "A")
    assert (case.certified("A"), case.certified("B"), case.certified("Muscat")) == (True, False, False)
    result = case.certificate("A").witness
    assert result is not None and result.text == "Doha"
    assert case_of("A", evidence="").certified("A") is False
    case = case_of("A", options=("Yes", "No"), evidence="Yes.")
    assert (case.certified("A"), case.certified("no")) == (None, None)
    options, evidence = ("I don't know", "Doha"), "I don't know. It is Doha."
    case = case_of("A", "I don't know", "B", options=options, evidence=evidence)
    assert [case.certified(answer) for answer in case.question.answers] == [None, None, True]
    without = Case(case.question, Settings(refusal="no_answer"))
    assert without.vote.classes == (None, None, "doha")
    assert [one.same("I do not know", "I do not know") for one in (case, without)] == [True, False]
    assert without.certificate("A").reason == "the answer refuses, which counts as no answer"
    case = case_of("A", "B", options=("Paris", "Paris, Texas"), evidence="He was born in Paris, Texas.")
    assert (case.certified("A"), case.certified("B")) == (None, True)
    for answer in ["D", "None of the above"]:
        assert case_of(answer, evidence="None of the above.").certified(answer) is None
    for gold in ["A", "Doha", "(a)"]:
        kind = case_of().type
        answers = ("A", "doha", "B", "Muscat", None)
        assert [kind.is_right(answer, [gold]) for answer in answers] == [True, True, False, False, False]


@pytest.mark.parametrize(("options", "message"), cases("options that are alike"))
def test_options_that_do_not_tell_answers_apart_are_refused(options: list[str], message: str) -> None:
    assert refusal(lambda: Selector(answer="choice")(question="?", candidates=["A"], options=options)) == message
    of_a_row = refusal(lambda: validate({**RECORD, "options": options}, "pool.jsonl, line 1"), PoolError)
    assert of_a_row == f"pool.jsonl, line 1, id 'q': row {message}"


@pytest.mark.parametrize("options", ["AB", {"A": "Doha"}, 3, [None, "B"], ["A", {}]])
def test_options_that_are_no_texts_or_of_another_type_are_refused(options: Any) -> None:
    inputs = {"question": "?", "candidates": ["A"]}
    assert refusal(lambda: Selector(answer="choice")(**inputs, options=options)).startswith("options")
    message = refusal(lambda: Selector()(**inputs, options=["A", "B"]))
    assert message.startswith("options must be empty for the answer type 'short'")


class Near(Related):
    """Whole numbers, alike if they are neighbours."""

    name = "near"
    way: ClassVar[Way] = "evidence"
    scores = ("accuracy",)
    connects = True

    def read(self, answer: str) -> AnswerClass | None:
        return short_class(answer)

    def alike(self, one: str, other: str) -> bool:
        return abs(int(one) - int(other)) <= 1

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        return answer in gold


class Strict(Near):
    """The same, where only neighbours may be one class."""

    connects = False


class Above(Near):
    """A relation that has a direction."""

    def alike(self, one: str, other: str) -> bool:
        return int(one) <= int(other)


NEAR = Near()
numbers = st.lists(st.integers(0, 20).map(str), max_size=8)


def classes(kind: Related, answers: Sequence[str]) -> list[str]:
    """Return the keys of the answers' classes."""
    return [class_.key for class_ in kind.grouping(answers).classes if class_]


def test_a_class_is_what_a_relation_connects_and_one_without_symmetry_or_transitivity_is_refused() -> None:
    assert classes(NEAR, ["3", "9", "1", "2"]) == ["3", "9", "3", "3"]
    grouping = NEAR.grouping(["3", "9"])
    assert [class_.key for one in ("4", "8", "6", "3") if (class_ := grouping.class_of(one))] == ["3", "9", "6", "3"]
    case = Case(Question("?", "near", ("9", "3", "4"), kind=NEAR))
    assert (case.consensus, case.same("4", "3"), case.same("2", "4"), case.same("9", "3")) == ("3", True, True, False)

    class Comparison(Near):
        def alike(self, one: str, other: str) -> bool:
            reply: Any = super().alike(one, other)
            return np.bool_(reply) if one < other else reply  # type: ignore[return-value]

    assert classes(Comparison(), ["3", "9", "1", "2"]) == ["3", "9", "3", "3"]
    assert refusal(lambda: Above().grouping(["1", "3"])) == (
        "near.alike must be symmetric; alike('1', '3') is True, and the other way round it is False. Compare both ways."
    )
    message = r"near\.alike must be transitive; '1' and '3' are alike through other answers"
    refuses(ArgumentError, message, Strict().grouping, ["1", "2", "3"])
    with pytest.raises(ArgumentError, match="answer type must be one of which classes do not depend on the pool"):
        Sampled(Selector(), select=Selector(answer=NEAR), stop="settled")


@given(numbers, st.randoms(use_true_random=False))
def test_the_order_of_the_pool_changes_no_class(answers: list[str], random: Random) -> None:
    other = random.sample(answers, len(answers))
    together, apart = (dict(zip(order, classes(NEAR, order), strict=True)) for order in (answers, other))
    assert all((together[a] == together[b]) == (apart[a] == apart[b]) for a in answers for b in answers)


@given(numbers)
def test_classes_are_a_partition_by_reachability(answers: list[str]) -> None:
    keys, present = dict(zip(answers, classes(NEAR, answers), strict=True)), {*map(int, answers)}
    for one in present:
        for other in present:
            chain = all(n in present for n in range(min(one, other), max(one, other) + 1))
            assert (keys[str(one)] == keys[str(other)]) == chain


@pytest.mark.parametrize("reply", [float("nan"), 0.5, None, 0, 1, np.zeros(2)], ids=repr)
def test_a_relation_that_says_something_else_than_true_or_false_is_refused(reply: Any) -> None:
    class Vague(Near):
        def alike(self, one: str, other: str) -> bool:
            return reply  # type: ignore[no-any-return]

    with pytest.raises(ArgumentError, match=r"near\.alike\('1', '3'\) must be True or False; got "):
        Vague().grouping(["1", "3"])


def test_selectors_take_a_type_as_a_value_also_two_of_one_name() -> None:
    pred = Selector(answer=NEAR, rule="majority")(question="?", candidates=["9", "3", "4"])
    assert (pred.answer, pred.votes) == ("3", {"3": 2, "9": 1})
    for kind, n in ((Near(), 1), (Strict(), 1)):
        assert len(Selector(answer=kind, rule="majority")(question="?", candidates=["3", "4"]).votes) == n
    near, strict = Selector(answer=Near()), Selector(answer=Strict())
    question = Question("?", "near", ("3", "4"))
    assert question.type is strict.type  # the one that was loaded last
    assert [Case(question, one.settings).type for one in (near, strict)] == [near.type, strict.type]
