"""The kit catches each slip by the fixed situations alone, and complains of nothing that is lawful."""

from dataclasses import replace
from functools import partial
from typing import Any

import dspy
import pytest

from eldgr_dspy.laws import LawBroken
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.situations import derived_sum
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.testing import check_laws
from eldgr_dspy.words import STRICTNESS
from tests.laws import lawful, slips, slips_of_selectors
from tests.refusing import refused, says

pytestmark = pytest.mark.slow  # some two hundred runs of the whole kit

LAW_OF = {"joins": "evidence_order_and_duplicates_do_not_matter", "vetoed": "more_evidence_never_uncertifies"}
LAW_OF |= {"drops": "spelling_does_not_decide"}


@pytest.mark.parametrize("name", slips.CERTIFICATES)
def test_a_slip_of_a_certificate_is_caught_whatever_is_drawn(name: str) -> None:
    law = LAW_OF[name.partition(" ")[0]]
    with pytest.raises(LawBroken) as caught:
        check_laws(certificate=slips.CERTIFICATES[name], laws=[law], max_examples=0)
    assert caught.value.law.name == law


@pytest.mark.parametrize("name", slips.RULES)
def test_a_slip_of_a_rule_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_laws(slips.RULES[name], laws=["the_cases_partition"], max_examples=0)


@pytest.mark.parametrize("name", slips_of_selectors.SELECTORS)
def test_a_slip_of_a_selector_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_selector(slips_of_selectors.SELECTORS[name](), max_examples=0)


@pytest.mark.parametrize("name", [*lawful.CERTIFICATES, *lawful.RULES])
def test_a_lawful_certificate_or_rule_passes_a_few_laws(name: str) -> None:
    options: dict[str, Any] = {**lawful.CERTIFICATES, **lawful.RULES}[name]
    few = [*LAW_OF.values()] if name in lawful.CERTIFICATES else ["default_is_consensus", "the_cases_partition"]
    laws = [law for law in few if law not in options.get("without", ())]
    assert min(check_laws(**{**options, "without": [], "laws": laws}, max_examples=3).values()) > 0


@pytest.mark.parametrize("name", lawful.SELECTORS)
def test_a_lawful_selector_passes(name: str) -> None:
    tried = check_selector(lawful.SELECTORS[name](), max_examples=1)
    assert tried["sync_equals_async_equals_batch_equals_replay"] > 40


DENIAL = slips.DENIAL


class WithAttributes:
    """Not read."""

    word = "Saint "

    def certify(self, answer: str, passages: slips.Passages) -> bool:
        """Not read either."""
        return self.word in answer and "not so" not in answer


def certificate(answer: str, passages: slips.Passages, prefix: str = "by ", *, word: str = "seven") -> bool:
    closed = [one for one in passages if one.title.startswith("Doubtful")]
    return not closed and prefix in answer and DENIAL.search(answer) is None and word not in answer


def test_literals_are_those_of_code_defaults_closures_globals_patterns_and_attributes_of_others() -> None:
    texts = literals(certificate)
    assert {"Doubtful", "seven", "by ", "disproved", "retracted"} <= {*texts}
    assert "burg" in literals(partial(certificate, word="burg"))
    assert {"not so", "Saint "} <= {*literals(WithAttributes().certify)}
    assert "debunked" in literals(slips.vetoed_by("debunked"))
    assert not [text for text in literals(WithAttributes().certify) if text.startswith("Not read")]
    assert literals(Selector(), len, None) == []
    assert literals(lawful.RULES["the shipped one"]["rule"]) == []


def test_situations_around_a_text_have_it_as_an_answer_in_one_in_the_evidence_and_in_a_sum() -> None:
    trials = [*around(["7"])]
    answers = {answer or "" for trial in trials for answer in trial.question.answers}
    assert {"7", "7Kyoto7", "719", "197"} <= answers
    assert any("7 Paris" in passage.text for trial in trials for passage in trial.more)


@pytest.mark.parametrize("right", ["-5", "−5", "-1,200", "0", "0.5", "2.25", "7", "1,200", "1000000", "41", "-0.5"])
def test_a_derivation_that_the_situations_call_sound_is_checked_at_every_level(right: str) -> None:
    text, sound = derived_sum(right)
    for level in STRICTNESS:
        checked = check_derivation(replace(sound, others=(sound,)), text, level)
        assert checked.passed, checked.reason


class Bare(Selector):
    lost: tuple[str, ...] = ("reason", "ranking")

    def forward(self, *args: Any, **inputs: Any) -> Any:
        pred = super().forward(*args, **inputs)
        return dspy.Prediction(**{name: value for name, value in pred.items() if name not in self.lost})


class Unbranched(Bare):
    lost = ("branch",)


class Silent(Selector):
    def forward(self, *args: Any, **inputs: Any) -> Any:
        super().forward(*args, **inputs)


def test_a_selector_whose_prediction_lacks_fields_is_told_which() -> None:
    must = "The selector's prediction must "
    advice = "Return the prediction of Selector.forward with your changes and additions."
    assert says(f"... without branch. {advice}", refused(lambda: check_selector(Unbranched())))
    assert says(f"{must}... without reason, ranking. Return...", refused(lambda: check_selector(Bare())))
    assert says(f"{must}have all fields of a ...; got None with...", refused(lambda: check_selector(Silent())))
