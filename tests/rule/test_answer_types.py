"""An answer type has names, says how answers compare, and decides which of the rule's two ways is taken."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy import Selector
from eldgr_dspy.answer_types import BUILT_IN, answer_type, load_type
from eldgr_dspy.answer_types.answers import answer_class, official_score, score
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import TASKS
from tests.dates import LISTED, Years
from tests.refusing import refused

NAMES = {"short": "retrieval", "number": "arithmetic"}
TEXTS = ("The answer is 1,000 km. Or less.", "18.0", "the Paris", "5%", "", "-5", "I do not know")


class Places(ShortText):
    """A place, read as short text."""


@pytest.mark.parametrize(("new", "earlier"), NAMES.items())
def test_both_names_of_a_type_name_the_same(new: str, earlier: str) -> None:
    assert answer_type(new) is answer_type(earlier)
    assert Question("?", new, ()) == Question("?", earlier, ())
    for text in TEXTS:
        assert answer_class(text, new) == answer_class(text, earlier)
        assert score(text, ["18"], new) == score(text, ["18"], earlier)
        assert official_score(text, ["18"], new) == official_score(text, ["18"], earlier)
        assert extract_answer(text, new) == extract_answer(text, earlier)


@pytest.mark.parametrize(("new", "earlier"), NAMES.items())
def test_a_pool_has_the_same_content_under_both_names(new: str, earlier: str) -> None:
    record = {"id": "q", "question": "?", "candidates": [{"answer": "18"}], "gold": ["18"]}
    one, other = (validate({**record, "task": task}, "row") for task in (new, earlier))
    assert (one, one.digest(), one.task) == (other, other.digest(), earlier)
    assert pool_authority([one], new) == pool_authority([other], earlier)


def test_each_type_takes_one_of_the_two_ways_of_the_rule() -> None:
    assert {answer_type(task).task for task in TASKS} == {*TASKS} == {kind.task for kind in BUILT_IN.values()}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_type_gives_up_only_laws_that_exist(name: str) -> None:
    assert set(answer_type(name).gives_up) <= {law.name for law in (*LAWS, *LAWS_OF_TYPES)}


def test_an_answer_votes_as_a_type_of_your_own_says() -> None:
    years = load_type("tests.dates:YEARS")
    case = Case(Question("When?", "tests.dates:YEARS", ("in 1976", "1976.", "1977", "then")))
    assert (years.name, case.type, case.task) == ("tests.dates:YEARS", years, "retrieval")
    assert case.vote.classes == ("1976", "1976", "1977", None)
    assert case.roles() == ("judge", "repairer")
    assert score("May 1976", ["1976"], years.name).em


def test_a_type_that_a_derivation_certifies_asks_the_deriver() -> None:
    sums = load_type("tests.dates:Sums")
    case = Case(Question("When?", sums.name, ("1976", "1977")))
    assert (sums.name, case.task, case.roles()) == ("tests.dates:Sums", "arithmetic", ("deriver",))


def test_a_class_is_made_into_a_type() -> None:
    pred = Selector(answer=Years, rule="majority")(question="When?", candidates=["in 1976", "1976.", "1977"])  # type: ignore[arg-type]
    assert pred.votes == {"in 1976": 2, "1977": 1}


def test_a_type_that_derives_from_a_built_in_one_does_not_replace_it() -> None:
    kind = load_type(Places())
    assert kind.name == "tests.rule.test_answer_types:Places"
    assert answer_type("retrieval") is answer_type("short") is BUILT_IN["short"]
    assert answer_type(kind.name) is kind


@pytest.mark.parametrize("frozen", [True, False])
def test_a_type_may_be_a_dataclass(frozen: bool) -> None:
    made: Any = type("Dated", (Years,), {"__module__": __name__})
    kind = dataclass(frozen=frozen)(made)()
    assert load_type(kind).name == f"{__name__}:Dated"
    assert Case(Question("?", kind.name, ("in 1976", "1977", None), kind=kind)).vote.n_classes == 2


def test_a_name_alone_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "types_of_a_pool.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    name = "types_of_a_pool:dates"
    with pytest.raises(ArgumentError, match="got 'types_of_a_pool:dates'"):
        Question("?", name, ())
    with pytest.raises(PoolError, match="task is 'types_of_a_pool:dates'"):
        validate({"id": "q", "question": "?", "task": name, "candidates": [{"answer": "18"}]}, "row")
    assert "types_of_a_pool" not in sys.modules


WRONG: list[tuple[Any, str]] = [
    ({"way": "vote"}, "Wrong.way must be one of 'evidence', 'derivation'; got 'vote'."),
    ({"way": None}, "Wrong.way must be one of 'evidence', 'derivation'; got None."),
    ({"scores": "EM"}, "Wrong.scores must be a tuple of one or two names, ('accuracy',); got 'EM'."),
    ({"scores": ()}, "Wrong.scores must be a tuple of one or two names, ('accuracy',); got ()."),
    ({"__init__": lambda self, form: None}, "answer must be made without arguments; "),
    ("dates", f"answer must be one of {LISTED}; got 'dates'."),
    ("tests.dates:NOT_A_TYPE", "answer='tests.dates:NOT_A_TYPE' must be an "),
    ("tests.dates:nothing", "answer='tests.dates:nothing': the module 'tests.dates' has no 'nothing'"),
    ("tests.no_such:dates", "answer='tests.no_such:dates': the module 'tests.no_such' cannot be imported"),
]


@pytest.mark.parametrize(("kind", "message"), WRONG)
def test_what_is_not_a_type_or_does_not_say_what_it_must_is_refused(kind: Any, message: str) -> None:
    wrong = kind if isinstance(kind, str) else type("Wrong", (Years,), kind)
    assert refused(lambda: load_type(wrong)).startswith(message)


@pytest.mark.parametrize("reply", [None, 1, 0.5, "yes"])
def test_what_is_right_must_be_true_or_false(reply: Any) -> None:
    kind: Any = type("Says", (Years,), {"name": "says", "is_right": lambda *_: reply})()
    expected = f"says.is_right('1976', ['1976']) must be True or False; got {reply!r}."
    assert refused(lambda: kind.score("1976", ["1976"])) == expected
