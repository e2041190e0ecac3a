"""A type may compare answers in pairs: what is connected is a class, and `alike` must be symmetric."""

from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import Selector
from eldgr_dspy.answer_types.base import Way
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.text_keys import AnswerClass, short_class
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question
from tests.refusing import refused


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


def test_a_class_is_what_is_connected_and_has_the_key_of_its_earliest_answer() -> None:
    assert classes(NEAR, ["3", "9", "1", "2"]) == ["3", "9", "3", "3"]


@given(numbers, st.randoms(use_true_random=False))
def test_the_order_of_the_pool_changes_no_class(answers: list[str], random: Random) -> None:
    shuffled = random.sample(answers, len(answers))
    together, apart = (dict(zip(order, classes(NEAR, order), strict=True)) for order in (answers, shuffled))
    assert all((together[a] == together[b]) == (apart[a] == apart[b]) for a in answers for b in answers)


@given(numbers)
def test_classes_are_a_partition_by_reachability(answers: list[str]) -> None:
    keys, present = dict(zip(answers, classes(NEAR, answers), strict=True)), {*map(int, answers)}
    for one in present:
        for other in present:
            linked = all(n in present for n in range(min(one, other), max(one, other) + 1))
            assert (keys[str(one)] == keys[str(other)]) == linked


def test_a_later_answer_joins_a_class_or_is_its_own() -> None:
    grouping = NEAR.grouping(["3", "9"])
    assert [class_.key for answer in ("4", "8", "6", "3") if (class_ := grouping.class_of(answer))] == [
        "3",
        "9",
        "6",
        "3",
    ]


def test_a_relation_with_a_direction_is_refused_with_the_pair() -> None:
    assert refused(lambda: Above().grouping(["1", "3"])) == (
        "near.alike must be symmetric and True or False; alike('1', '3') is True, and the other way round it is False. "
        "Compare both ways."
    )


@pytest.mark.parametrize("reply", [float("nan"), 0.5, None, 1, np.zeros(2)], ids=repr)
def test_a_relation_that_says_something_else_than_true_or_false_is_refused(reply: Any) -> None:
    class Vague(Near):
        def alike(self, one: str, other: str) -> bool:
            return reply  # type: ignore[no-any-return]

    with pytest.raises(ArgumentError, match=r"near\.alike must be symmetric and True or False; alike\('1', '3'\) is "):
        Vague().grouping(["1", "3"])


def test_the_truth_values_of_numpy_are_true_and_false() -> None:
    class Compared(Near):
        def alike(self, one: str, other: str) -> bool:
            reply: Any = super().alike(one, other)
            return np.bool_(reply) if one < other else reply  # type: ignore[return-value]

    assert classes(Compared(), ["3", "9", "1", "2"]) == ["3", "9", "3", "3"]


def test_a_relation_that_is_not_transitive_is_refused_with_the_pair() -> None:
    with pytest.raises(
        ArgumentError, match=r"near\.alike must be transitive; '1' and '3' are alike through other answers"
    ):
        Strict().grouping(["1", "2", "3"])


def test_a_selector_takes_a_type_as_a_value_and_ships_by_its_classes() -> None:
    pred = Selector(answer=NEAR, rule="majority")(question="?", candidates=["9", "3", "4"])
    assert (pred.answer, pred.votes) == ("3", {"3": 2, "9": 1})


def test_two_selectors_may_have_two_types_of_one_name() -> None:
    for kind, n in ((Near(), 1), (Strict(), 1)):
        assert len(Selector(answer=kind, rule="majority")(question="?", candidates=["3", "4"]).votes) == n


def test_a_question_of_a_pool_has_the_type_of_the_settings_and_not_another_of_its_name() -> None:
    near, strict = Selector(answer=Near()), Selector(answer=Strict())
    asked = Question("?", "near", ("3", "4"))
    assert asked.type is strict.type  # the one that was loaded last
    assert [Case(asked, one.settings).type for one in (near, strict)] == [near.type, strict.type]


def test_settled_is_refused_where_a_sample_may_join_two_classes() -> None:
    with pytest.raises(ArgumentError, match="answer type must be one of which classes do not depend on the pool"):
        Sampled(Selector(), select=Selector(answer=NEAR), stop="settled")


def test_the_rule_sees_the_classes_of_the_pool() -> None:
    case = Case(Question("?", "near", ("9", "3", "4"), kind=NEAR))
    assert (case.consensus, case.same("4", "3"), case.same("2", "4"), case.same("9", "3")) == ("3", True, True, False)
