"""What ships without a certificate, the votes of each class, and rules of one's own in a selector."""

import json
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.metrics import selection_feedback, selection_score
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.voting import majority
from tests.public_strategies import questions
from tests.selecting import (
    ABSTAINS,
    CONTESTED,
    DERIVATION,
    PENS,
    SETTLED,
    SILENT,
    Answers,
    asked,
    each_call,
    each_way,
    evaluating,
    example_of,
    inputs_of,
    repair,
    saying,
    selected,
    selector_of,
    verdict,
)

YES = {"question": "Is Doha in Qatar?", "candidates": ["yes", "yes", "no"], "evidence": CONTESTED["evidence"]}

# -- uncertified ------------------------------------------------------------------------------------------------------

NUMBERS = {**PENS, "candidates": ["36"] * 3}
SHIPPED: dict[str, tuple[dict[str, Any], dict[str, Any], str, bool]] = {
    "a certified consensus": (SETTLED, {}, "Doha", True),
    "a certified preference": (CONTESTED, {"judge": verdict(2)}, "Doha", True),
    "a certified repair": (CONTESTED, {"repairer": repair("Persian Gulf", 1)}, "Persian Gulf", True),
    "a consensus that no certificate applies to": (YES, {}, "yes", True),
    "a checked derivation": (PENS, {}, "36", True),
    "a derivation that agrees": ({**PENS, "candidates": ["36", "36", "35"]}, {}, "36", True),
    "an uncertified consensus": (CONTESTED, {"judge": verdict(0)}, "Dubai", False),
    "a consensus without evidence": ({**CONTESTED, "evidence": None}, {}, "Dubai", False),
    "a consensus without a derivation": (PENS, {"deriver": "?"}, "35", False),
    "one class of numbers, about which nobody is asked": (NUMBERS, {}, "36", False),
}


@each_way
@pytest.mark.parametrize(("inputs", "reply", "answer", "ships"), SHIPPED.values(), ids=SHIPPED)
def test_an_answer_ships_if_it_is_certified_or_no_certificate_applies_and_nothing_else_changes(
    call: Any, inputs: dict[str, Any], reply: dict[str, Any], answer: str, ships: bool
) -> None:
    with dspy.context(lm=saying(**reply)):
        result = call(Selector(uncertified="abstain", answer_field="response"), inputs).toDict()
        usual = call(Selector(answer_field="response"), inputs).toDict()
    assert (usual["answer"], usual["response"], usual["certified"] is False) == (answer, answer, not ships)
    shipped = answer if ships else None
    assert result == {**usual, "answer": shipped, "response": shipped}
    if inputs is NUMBERS:  # unless the deriver is asked about it
        assert selected(saying(), inputs=inputs, uncertified="abstain", homogeneous="repair").answer == answer


@settings(max_examples=50)
@given(questions(), st.sampled_from(("", "Paris", "1976")), st.integers(-1, 3), st.sampled_from((SILENT, DERIVATION)))
def test_withholding_alters_no_decision(question: Question, span: str, preferred: int, derived: dict[str, Any]) -> None:
    roles = {"preferred": preferred}, repair(span, -1), {**derived, "derived_answer": "36"}
    withheld = selector_of(*roles, uncertified="abstain")(**inputs_of(question)).toDict()
    shipped = selector_of(*roles)(**inputs_of(question)).toDict()
    answer = None if shipped["certified"] is False else shipped["answer"]
    assert withheld == {**shipped, "answer": answer}


async def unreachable(answer: str, evidence: Any) -> bool:
    raise ConnectionError("refused")


@each_way
def test_an_answer_whose_certificate_could_not_be_had_is_withheld(call: Any) -> None:
    """It is not one that no certificate applies to."""
    options: dict[str, Any] = {"certificate": unreachable, "on_failure": "abstain"}
    pred = call(Selector(**options, uncertified="abstain"), CONTESTED)
    assert (pred.answer, pred.certified, pred.branch, [*pred.failures]) == (None, None, "consensus", ["certificate"])
    assert call(Selector(**options), CONTESTED).answer == "Dubai"


class Entails(dspy.Module):  # a certificate that asks an LM
    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict("answer: str, passages: list[str], question: str -> certified: bool")

    def forward(self, answer: str, evidence: Any, question: str) -> Any:
        return self.ask(answer=answer, passages=[passage.text for passage in evidence], question=question)

    async def aforward(self, answer: str, evidence: Any, question: str) -> Any:
        return await self.ask.acall(answer=answer, passages=[passage.text for passage in evidence], question=question)


@each_way
@pytest.mark.parametrize(("replies", "answer"), [("strict", "Dubai"), ("lenient", "Doha")])
def test_a_certificate_s_replies_are_read_as_the_roles_are(call: Any, replies: Any, answer: str) -> None:
    def said(request: Any) -> Any:
        named = request.config.response_format["schema"]["properties"]
        certified = "[[ ## answer ## ]]\nDoha" in (request.messages[-1].text or "")
        return "So: " + json.dumps({"certified": certified} if "certified" in named else verdict(2))

    select = Selector(certificate=Entails(), replies=replies)
    with dspy.context(lm=scripted_lm(said)):
        pred = call(select, CONTESTED)
    assert pred.answer == answer


def test_metrics_count_a_withheld_answer_as_wrong() -> None:
    devset = [example_of(CONTESTED, gold=["Dubai"]), example_of(SETTLED, gold=["Doha"])]
    select = selector_of(ABSTAINS, uncertified="abstain")
    for metric in (
        selection_score,
        lambda gold, pred, _=None: selection_feedback(gold, pred).score,
        lambda gold, pred, _=None: pred.answer in gold.gold,
    ):
        assert evaluating(metric, devset)(select).score == 50.0


def test_a_program_around_a_selector_passes_a_withheld_answer_on() -> None:
    dubai = dspy.Prediction(answer="Dubai")
    select = selector_of(uncertified="abstain")
    pred = Sampled(Answers(dubai, dubai), 2, select, num_threads=1)(question="Where?", context=CONTESTED["evidence"])
    assert (pred.answer, pred.votes, pred.consensus) == (None, {"Dubai": 2}, "Dubai")


# -- votes ------------------------------------------------------------------------------------------------------------
@each_way
def test_the_votes_of_each_class_are_on_the_prediction(call: Any) -> None:
    pred = call(selector_of(), {**SETTLED, "candidates": ["Doha", "dubai", "**Doha**", None, "Dubai.", "Doha"]})
    assert pred.votes == {"Doha": 3, "dubai": 2}


@given(questions("retrieval"))
def test_each_candidate_with_an_answer_has_one_vote(question: Question) -> None:
    pred = selector_of(ABSTAINS, SILENT, ABSTAINS)(**inputs_of(question))
    classes = majority(question.answers, question.task).classes
    voters = [answer for answer, key in zip(question.answers, classes, strict=True) if key is not None]
    assert sum(pred.votes.values()) == len(voters)
    assert len(pred.votes) == len(set(classes) - {None})
    assert pred.votes.get(pred.consensus, 0) == max(pred.votes.values(), default=0)


# -- rules of one's own -----------------------------------------------------------------------------------------------
def span_first(case: Any) -> Steps:
    """The repairer decides if its span is certified, else the judge if its preference is."""
    reply = yield "repairer"
    span = case.repaired(reply)
    if span is not None and case.certified(span):
        return Choice("repair", span)
    preferred = case.preferred((yield "judge"))
    if preferred is not None and case.certified(preferred):
        return Choice("judge", preferred)
    return Choice("consensus", case.consensus)


RULES: list[Any] = [span_first, "tests.selector.test_uncertified:span_first"]


@each_way
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_one_s_own_decides_in_every_way_to_call(call: Any, rule: Any) -> None:
    lm = saying(verdict(2), repair("Persian Gulf", 1))
    with dspy.context(lm=lm):
        pred = call(Selector(rule=rule), CONTESTED)
    assert (pred.answer, pred.branch, pred.certified, asked(lm)) == ("Persian Gulf", "repair", True, ["repairer"])
    with dspy.context(lm=saying(verdict(2), lm15.AuthError("no key"))):
        pred = call(Selector(rule=rule, on_failure="abstain", timeout=60), CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Doha", "judge", ["repairer", "judge"])


def test_a_rule_of_the_package_is_chosen_by_name_also_afterwards() -> None:
    lm, select = saying(verdict(2)), Selector()
    for rule, branch in (("first", "first"), ("majority", "consensus"), ("judge", "judge"), ("eldgr", "judge")):
        select.rule = rule
        with dspy.context(lm=lm):
            assert selected(lm, rule=rule).branch == select(**CONTESTED).branch == branch
    assert asked(lm) == ["judge"] * 4


def broken(case: Any) -> Steps:
    yield from ()
    raise KeyError("a slip")


@each_call
def test_a_rule_that_fails_is_named(call: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^The rule '.*:broken' has failed: KeyError: 'a slip'"):
        call(selector_of(rule=broken, on_error="abstain", on_failure="abstain"), CONTESTED)


@pytest.mark.parametrize("rule", ["best", "nowhere:best", lambda case: Choice("first", "x"), None, 5, len])
def test_what_is_not_a_rule_is_refused(rule: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^rule="):
        Selector(rule=rule)
