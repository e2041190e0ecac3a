"""The kit catches each slip whatever the seed, and complains of nothing that is lawful.

Of a slip one drawn example is enough, since the situations that are tried first tell. `python -m benchmarks.kit` runs
each of these twenty times at the default.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import dspy
import pytest

from eldgr_dspy.derivations import check_derivation
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAWS, LawBroken
from eldgr_dspy.laws.constants import Constants, constants_of
from eldgr_dspy.laws.making import derived_sum
from eldgr_dspy.laws.pointed import MOST_TRIALS, pointed
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.testing import check_laws
from eldgr_dspy.words import STRICTNESS
from tests.laws import lawful, slips, slips_of_selectors
from tests.refusing import refused

pytestmark = pytest.mark.slow  # some two hundred runs of the whole kit

LAW_OF = {"joins": "evidence_order_and_duplicates_do_not_matter", "vetoed": "more_evidence_never_uncertifies"}
LAW_OF |= {"drops": "spelling_does_not_decide"}
ABOUT_CERTIFICATES = [*LAW_OF.values()]
ABOUT_RULES = ["default_is_consensus", "the_cases_partition"]
"""A few laws, one of which each slip breaks: quicker than all of them."""


@pytest.mark.parametrize("name", slips.CERTIFICATES)
def test_a_slip_of_a_certificate_is_caught_whatever_is_drawn(name: str) -> None:
    law = LAW_OF[name.partition(" ")[0]]
    with pytest.raises(LawBroken) as caught:
        check_laws(certificate=slips.CERTIFICATES[name], laws=[law], max_examples=1)
    assert caught.value.law.name == law


@pytest.mark.parametrize("name", slips.RULES)
def test_a_slip_of_a_rule_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_laws(slips.RULES[name], laws=["the_cases_partition"], max_examples=1)


@pytest.mark.parametrize("name", slips_of_selectors.SELECTORS)
def test_a_slip_of_a_selector_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_selector(slips_of_selectors.SELECTORS[name](), max_examples=1)


@pytest.mark.parametrize("name", lawful.CERTIFICATES)
def test_a_lawful_certificate_passes(name: str) -> None:
    laws = [law for law in ABOUT_CERTIFICATES if law not in lawful.CERTIFICATES[name].get("without", ())]
    options = {**lawful.CERTIFICATES[name], "without": [], "laws": laws}
    assert min(check_laws(**options, max_examples=3).values()) > 0


@pytest.mark.parametrize("name", lawful.RULES)
def test_a_lawful_rule_passes(name: str) -> None:
    laws = [law for law in ABOUT_RULES if law not in lawful.RULES[name].get("without", ())]
    options = {**lawful.RULES[name], "without": [], "laws": laws}
    assert min(check_laws(**options, max_examples=3).values()) > 0


@pytest.mark.parametrize("name", lawful.SELECTORS)
def test_a_lawful_selector_passes(name: str) -> None:
    tried = check_selector(lawful.SELECTORS[name](), max_examples=1)
    assert tried["sync_equals_async_equals_batch_equals_replay"] > 40


# -- what a slip is written with ---------------------------------------------------------------------------------------


MOST = 40


class WithAttributes:
    """Not read: 99."""

    most = 25

    def certify(self, answer: str, passages: slips.Passages) -> bool:
        """Not read either: 98."""
        return len(answer) < self.most and "not so" not in answer


def written(answer: str, passages: slips.Passages, least: float = 0.25, *, word: str = "seven") -> bool:
    closed = [one for one in passages if one.title.startswith("Doubtful")]
    return not closed and len(answer) <= MOST and slips.DENIAL.search(answer) is None and word not in answer


def test_constants_are_those_of_code_defaults_closures_globals_patterns_and_attributes() -> None:
    found = constants_of(written)
    assert set(found.texts) == {"Doubtful", "seven"}
    assert set(found.numbers) == {40, 0.25}
    assert found.patterns == (slips.DENIAL.pattern,)
    assert constants_of(partial(written, least=33)).numbers == (*found.numbers, 33)
    assert constants_of(WithAttributes().certify) == Constants(("not so",), (25,))
    assert constants_of(slips.dropping(77)).numbers == (77,)
    assert constants_of(slips.drops_by_a_pattern).numbers == (50,)


def test_what_the_package_is_written_with_is_left_out() -> None:
    assert not constants_of(Selector(), len, None)
    assert not constants_of(lawful.RULES["the shipped one"]["rule"])


def test_situations_around_a_constant_stand_on_both_sides_of_it() -> None:
    trials = [*pointed(Constants(("7",), (40,)))]
    answers = {answer or "" for trial in trials for answer in trial.question.answers}
    assert {39, 40, 41} <= {len(answer) for answer in answers}
    assert {39, 40, 41} <= {len(answer.split()) for answer in answers}
    assert {"7", "39", "40", "41"} <= answers
    assert {39, 40, 41} <= {len(trial.question.answers) for trial in trials}
    assert any("7 Paris" in passage.text for trial in trials for passage in trial.more)


def test_situations_around_many_constants_are_bounded_and_each_constant_has_its_share() -> None:
    words = [f"word{number}" for number in range(30)]
    trials = [*pointed(Constants(tuple(words), tuple(range(100, 130))))]
    assert len(trials) == MOST_TRIALS
    shown = " ".join(str(trial) for trial in trials)
    assert all(word in shown for word in words)


def test_what_a_situation_around_a_constant_varies_fits_its_question() -> None:
    for trial in pointed(Constants(("not ", "{}", "-", "\ud800", "?"), (3, 2_000, -7, 0.5, 10**15))):
        assert sorted(trial.pool_order) == list(range(len(trial.question.answers)))
        assert set(trial.evidence_order) == set(range(len(trial.question.passages)))


SUMS = ["-5", "−5", "-1,200", "0", "0.5", "2.25", "7", "1,200", "1000000", "41", "-0.5"]


@pytest.mark.parametrize("right", SUMS)
def test_a_derivation_that_the_situations_call_sound_is_checked_at_every_level(right: str) -> None:
    text, sound = derived_sum(right)
    for level in STRICTNESS:
        checked = check_derivation(replace(sound, others=(sound,)), text, level)
        assert checked.passed, checked.reason


def test_among_the_situations_are_negative_sums_denials_and_no_evidence() -> None:
    trials: list[Trial] = [*situations()]
    assert any(trial.question.task == "arithmetic" and trial.gold == "-5" for trial in trials)
    assert any("not Paris" in passage.text for trial in trials for passage in trial.more)
    assert any(trial.question.task == "retrieval" and not trial.question.passages for trial in trials)


# -- what is told ------------------------------------------------------------------------------------------------------


class Bare(Selector):
    """Returns less than a decision."""

    lost: tuple[str, ...] = ("reason", "ranking")

    def forward(self, *args: Any, **inputs: Any) -> Any:
        pred = super().forward(*args, **inputs)
        return dspy.Prediction(**{name: value for name, value in pred.items() if name not in self.lost})


class Unbranched(Bare):
    """Forgets one field."""

    lost = ("branch",)


class Silent(Selector):
    """Returns nothing."""

    def forward(self, *args: Any, **inputs: Any) -> Any:
        super().forward(*args, **inputs)


ADVICE = "Return the prediction of Selector.forward with your changes and additions, not a new one with fewer fields."


def test_a_selector_whose_prediction_lacks_fields_is_told_which() -> None:
    assert refused(lambda: check_selector(Unbranched())) == f"The selector's prediction has no field 'branch'. {ADVICE}"
    with pytest.raises(ArgumentError, match=r"^The selector's prediction has no fields 'reason', 'ranking'\. Return"):
        check_selector(Bare())
    with pytest.raises(ArgumentError, match=r"^The selector returned None; return the dspy\.Prediction of Selector\."):
        check_selector(Silent())


def test_the_laws_that_these_tests_go_by_are_laws() -> None:
    assert {*ABOUT_CERTIFICATES, *ABOUT_RULES} <= {law.name for law in LAWS}
