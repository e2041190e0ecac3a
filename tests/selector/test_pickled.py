"""A selector that is pickled decides as before, and its settings are equal: rules and answer types are held by name."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

from eldgr_dspy.answer_types import BUILT_IN
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.decision import RULES, near
from eldgr_dspy.decision import Choice as Chosen
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.questions import Settings
from tests.asking.transport import Silent
from tests.selecting import CONTESTED


class Loud(ShortText):  # short text under a name of its own
    name = "loud"


LOUD = Loud()


def last_of_all(case: Any) -> Any:
    """Ship the last answer."""
    yield from ()
    return Chosen("judge", case.question.answers[-1])


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- made here


@pytest.mark.parametrize(
    "rule", [*RULES, "near(0)", near(2), last_of_all, f"{__name__}:last_of_all"], ids=lambda rule: str(rule)[:20]
)
def test_a_selector_with_any_rule_that_has_a_name_is_pickled(rule: Any) -> None:
    select = Selector(rule=rule, answer="short")
    select.judge, select.repairer, select.deriver = Silent(), Silent(), Silent()
    again = pickled(pickled(select))
    assert (again.rule, again.settings, again.choices()) == (select.rule, select.settings, select.choices())
    assert again(**CONTESTED).toDict() == select(**CONTESTED).toDict()


def test_a_rule_without_a_name_is_not_taken_for_another_one() -> None:
    def last_of_all(case: Any) -> Any:
        yield from ()
        return Chosen("consensus", case.consensus)

    with pytest.raises((pickle.PicklingError, AttributeError), match="last_of_all"):
        pickle.dumps(Selector(rule=last_of_all))


@pytest.mark.parametrize("answer", [None, *BUILT_IN.values(), f"{__name__}:Loud", f"{__name__}:LOUD"])
def test_settings_are_equal_after_pickling_whatever_the_answer_type(answer: Any) -> None:
    settings = Settings(answer=answer, certificate="token", refusals=("Pass",))
    again = pickled(settings)
    assert again == settings and again.type is settings.type


def test_the_options_of_a_question_are_pickled_with_its_type() -> None:
    assert pickled(Choice(["Doha", "Oslo"])).options == ("Doha", "Oslo")


def test_another_process_finds_what_the_pickle_names() -> None:
    code = "import pickle, sys; one = pickle.load(sys.stdin.buffer); print(one.rule, one.type.name, one.type.loaded_as)"
    select = Selector(rule=last_of_all, answer=f"{__name__}:Loud")
    process = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(select), capture_output=True, check=True)
    assert process.stdout.decode().split() == [f"{__name__}:last_of_all", "loud", f"{__name__}:Loud"]
