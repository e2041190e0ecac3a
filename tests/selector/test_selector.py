"""The selector decides the same however it is called, and asks nobody where nothing can change."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Choices, Settings
from tests.dates import LISTED
from tests.scorers import table_of
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    SAID,
    SETTLED,
    SILENT,
    asked,
    each_call,
    each_way,
    evaluating,
    example_of,
    repair,
    right,
    saying,
    selected,
    verdict,
)


# -- what is decided --------------------------------------------------------------------------------------------------
def test_a_certified_preference_ships_with_its_witness() -> None:
    pred = selected(saying(verdict(2)))
    assert (pred.certified, pred.consensus, pred.preference, pred.repair) == (True, "Dubai", 2, None)
    assert (pred.witness["passage"], pred.witness["text"], pred.witness["start"]) == (0, "Doha", 0)
    assert (pred.tie, pred.consulted, pred.abstentions) == (False, ["judge"], {})
    assert (sorted(pred.ranking), pred.witness["flags"]) == ([0, 1, 2], [])


FALSE = {**DERIVATION, "derivation_steps": [{"expression": "3 * 12", "value": "37"}], "derived_answer": "37"}
ONE = {**CONTESTED, "candidates": ["Dubai"]}
DECIDED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Any, ...], list[str]]] = {
    "preference": (CONTESTED, {"judge": verdict(2)}, ("Doha", "judge", "preference_certified", True), ["judge"]),
    "repair": (
        CONTESTED,
        {"judge": verdict(0), "repairer": repair("Persian Gulf", 1)},
        ("Persian Gulf", "repair", "repair_certified", True),
        ["judge", "repairer"],
    ),
    "no evidence": (
        CONTESTED,
        {"judge": verdict(0), "repairer": repair("Manama")},
        ("Dubai", "consensus", "default", False),
        ["judge", "repairer"],
    ),
    "derivation": (PENS, {}, ("36", "repair", "derivation_checked", True), ["deriver"]),
    "unchecked": (PENS, {"deriver": FALSE}, ("35", "consensus", "default", False), ["deriver"]),
    "homogeneous": (ONE, {"repairer": repair("Doha")}, ("Doha", "repair", "repair_certified", True), ["repairer"]),
}


@pytest.mark.parametrize(("inputs", "replies", "decision", "roles"), DECIDED.values(), ids=DECIDED)
def test_an_answer_ships_with_its_reason_and_only_roles_that_matter_are_asked(
    inputs: dict[str, Any], replies: dict[str, Any], decision: tuple[Any, ...], roles: list[str]
) -> None:
    lm = saying(**replies)
    pred = selected(lm, inputs=inputs)
    assert (pred.answer, pred.branch, pred.reason, pred.certified) == decision
    assert pred.consulted == asked(lm) == roles


NOBODY: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "consensus is certified": ({}, SETTLED, "consensus_certified"),
    "consensus is inapplicable": ({}, {**CONTESTED, "candidates": ["yes", "Yes", "Doha"]}, "consensus_inapplicable"),
    "consensus refuses": ({}, {**CONTESTED, "candidates": ["None", "none", "Doha"]}, "consensus_inapplicable"),
    "refusals do not vote": ({"refusals": ["Dubai"], "refusal": "no_answer"}, CONTESTED, "consensus_certified"),
    "one class, skipped": ({"homogeneous": "skip"}, {**CONTESTED, "candidates": ["Dubai"] * 3}, "homogeneous"),
    "one class of numbers": ({}, {**PENS, "candidates": ["35", "35.0", "$35"]}, "homogeneous"),
    "one candidate": ({"homogeneous": "skip"}, {**CONTESTED, "candidates": ["Dubai"]}, "homogeneous"),  # hazard 2
    "no candidate": ({}, {**CONTESTED, "candidates": []}, "empty_pool"),  # hazard 1
    "no candidate, always": ({"consult": "always"}, {**CONTESTED, "candidates": []}, "empty_pool"),
    "no number": ({}, {**PENS, "candidates": []}, "empty_pool"),
}


@pytest.mark.parametrize(("options", "inputs", "reason"), NOBODY.values(), ids=NOBODY)
def test_nobody_is_asked_where_nothing_can_change(options: dict[str, Any], inputs: dict[str, Any], reason: str) -> None:
    lm = saying(verdict(2))
    pred = selected(lm, inputs=inputs, **options)
    assert lm.requests == []
    assert (pred.branch, pred.reason, pred.consulted, pred.answer) == ("consensus", reason, [], pred.consensus)
    assert pred.answer is not None or inputs["candidates"] == []


def test_an_lm_that_is_missing_where_one_is_asked_is_said_so() -> None:
    with pytest.raises(ValueError, match="No LM is loaded"):
        Selector()(**CONTESTED)


def test_always_asks_every_role_and_decides_the_same() -> None:
    lazy, always = saying(verdict(2), repair("Persian Gulf")), saying(verdict(2), repair("Persian Gulf"))
    one, other = selected(lazy), selected(always, consult="always")
    assert (one.answer, one.branch) == (other.answer, other.branch) == ("Doha", "judge")
    assert (asked(lazy), asked(always)) == (["judge"], ["judge", "repairer"])


@pytest.mark.parametrize("candidates", [[None, None], ["", " "], [{"answer": None}, "\n"]])
def test_a_pool_without_answers_may_still_be_repaired(candidates: Any) -> None:  # hazard 5
    inputs = {**CONTESTED, "candidates": candidates}
    assert selected(saying(repairer=repair("Doha")), inputs=inputs).answer == "Doha"
    silent = selected(saying(), inputs=inputs)
    assert (silent.answer, silent.reason, silent.consensus) == (None, "no_answers", None)


def test_a_tie_goes_to_the_earliest_and_is_reported() -> None:  # hazards 8 and 9
    pred = selected(saying(verdict(0)), inputs={**CONTESTED, "candidates": ["Dubai", "Manama", "Doha"]})
    assert (pred.answer, pred.tie) == ("Dubai", True)


@pytest.mark.parametrize("declared", ["short", "number"])
def test_the_answer_type_may_be_declared_for_one_call(declared: str) -> None:
    other = {"short": "number", "number": "short"}[declared]
    inputs = {**CONTESTED, "candidates": ["35", "35", "36"], "evidence": ["There are 36 pens."]}
    select, lm = Selector(answer=other), saying(verdict(0))
    with dspy.context(lm=lm):
        select(**inputs, answer=declared)
        select(**inputs)
    judged = ["judge", "repairer"]
    assert asked(lm) == ([*judged, "deriver"] if declared == "short" else ["deriver", *judged])


def test_the_answer_field_names_the_answer_twice() -> None:
    inputs = {**CONTESTED, "candidates": [dspy.Prediction(response=text) for text in CONTESTED["candidates"]]}
    pred = selected(saying(verdict(2)), inputs=inputs, answer_field="response")
    assert pred.response == pred["response"] == pred.answer == "Doha"


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("certificate", "exact", "'substring', 'token', 'folded'"),
        ("consult", None, "'lazy', 'always'"),
        ("homogeneous", "ask", "None, 'repair', 'skip'"),
        ("preference", "local", "'global', 'stratum'"),
        ("refusal", "silent", "'inapplicable', 'no_answer'"),
        ("derivation", "strict", "'stated', 'chained', 'traced', 'executed', 'bounded', 'agreed'"),
        ("on_error", "ignore", "'abstain', 'raise'"),
    ],
)
def test_an_option_that_is_not_known_is_refused_with_those_that_are(option: str, value: Any, known: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"{option}={value!r} is not known; use one of {known}.")):
        Selector(**{option: value})


@pytest.mark.parametrize("answer", ["", "trivia", [], 0, "retrieval", "arithmetic"])
def test_an_answer_type_has_one_name_and_another_is_refused(answer: Any) -> None:
    expected = f"^{re.escape(f'answer must be one of {LISTED}; got {answer!r}')}"
    with pytest.raises(ArgumentError, match=expected):
        Selector()(**{**SETTLED, "answer": answer})
    if isinstance(answer, str):
        with pytest.raises(ArgumentError, match=f"^answer must be one of {LISTED}; "):
            Selector(answer=answer)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        *(
            (field, f"answer_field must be the name of the field that holds the answer; got {field!r}.")
            for field in (3, None, "", " ")
        ),
        *(
            (field, f"answer_field='{field}' is a field of the decision; use another field")
            for field in ("branch", "reason", "consensus", "repair", "votes", "failures", "scores", "notes")
        ),
    ],
)
def test_an_answer_field_that_is_not_a_name_or_that_a_decision_has_is_refused(field: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}"):
        Selector(answer_field=field)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"candidates": ["Doha", b"7"]}, "candidates[1] must be a string, a prediction, a finite number"),  # hazard 7
        ({"candidates": ["a"] * 10_000}, "There are 10,000 candidates; give at most 1,000"),  # hazard 10
        ({"evidence": ["a", None]}, "evidence[1] must be a string, or something with text"),
    ],
)
@each_call
def test_what_is_not_a_question_is_refused_before_any_call(call: Any, changes: dict[str, Any], expected: str) -> None:
    lm = saying(verdict(2))
    with dspy.context(lm=lm), pytest.raises(ArgumentError, match=f"^{re.escape(expected)}"):
        call(Selector(), {**CONTESTED, **changes})
    assert lm.requests == []


# -- ways to call (law 18) --------------------------------------------------------------------------------------------
@each_way
@pytest.mark.parametrize(("inputs", "reply"), SAID.values(), ids=SAID)
@pytest.mark.parametrize("timeout", [None, 60])
def test_every_way_to_call_decides_the_same_asks_the_same_and_returns_plain_json(
    call: Callable[..., Any], inputs: dict[str, Any], reply: dict[str, Any], timeout: Any
) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(timeout=timeout), inputs).toDict()
    assert fields == selected(reference, inputs=inputs).toDict() == json.loads(json.dumps(fields))
    assert lm.requests == reference.requests


def by_number(request: Any) -> Any:
    """A judge that prefers Doha in odd questions and Dubai in even ones."""
    odd = "number 1 or" in text_of(request)
    return verdict(2 if odd else 0) if role_of(request) == "judge" else SILENT


class Long:  # a scorer that goes by the question's length
    def score(self, reasonings: Sequence[Any]) -> list[Any]:
        return [table_of(one.text, float(len(one.question))) for one in reasonings]


def in_threads(select: Selector, questions: list[dict[str, Any]]) -> Any:
    return select.batch([*map(example_of, questions)], num_threads=8, disable_progress_bar=True)


def in_tasks(select: Selector, questions: list[dict[str, Any]]) -> Any:
    async def all_at_once() -> list[Any]:
        return list(await asyncio.gather(*(select.acall(**inputs) for inputs in questions)))

    return asyncio.run(all_at_once())


@pytest.mark.parametrize("all_at_once", [in_threads, in_tasks])
def test_questions_that_are_under_way_at_once_are_not_mixed_up(all_at_once: Any) -> None:
    questions = [
        {**CONTESTED, "question": f"number {number % 2} or not?{'?' * number}"}  # each of its own length
        for number in range(40)
    ]
    with dspy.context(lm=scripted_lm(by_number, delay=0.001)):
        preds = all_at_once(Selector(scorers=Long()), questions)
    assert [pred.answer for pred in preds] == ["Dubai", "Doha"] * 20
    assert [pred.scores[2]["reward"] for pred in preds] == [float(len(one["question"])) for one in questions]


def test_an_evaluation_is_saved_as_json(tmp_path: Path) -> None:
    devset = [example_of(CONTESTED, gold="Doha"), example_of(SETTLED, gold="Dubai")]
    with dspy.context(lm=saying(verdict(2))):
        assert evaluating(right, devset, save_as_json=str(tmp_path / "rows.json"))(Selector()).score == 50.0
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["branch"], row["right"]) for row in rows] == [("judge", True), ("consensus", False)]


# -- whose LM ---------------------------------------------------------------------------------------------------------
def test_a_role_uses_its_own_lm_and_the_others_the_context_s() -> None:
    own, shared = saying(verdict(0)), saying()
    select = Selector()
    select.judge.set_lm(own)
    with dspy.context(lm=shared):
        select(**CONTESTED)
    assert (asked(own), asked(shared)) == (["judge"], ["repairer"])


def test_one_lm_is_set_for_every_role_but_a_frozen_one() -> None:
    """Also for the deriver, since a call may be about answers of another type."""
    lm, own, unused = saying(verdict(0)), saying(), saying()
    select, frozen = Selector(), Selector()
    frozen.repairer.set_lm(own)
    frozen.repairer._compiled = True
    with dspy.context(lm=unused):
        for one in (select, frozen):
            one.set_lm(lm)
            one(**CONTESTED)
            one(**PENS)
    assert select.get_lm() is lm
    roles = [["judge", "repairer", "deriver", "judge", "deriver"], ["repairer"], []]
    assert [asked(one) for one in (lm, own, unused)] == roles


# -- answer types and settings ----------------------------------------------------------------------------------------
def test_votes_and_certificates_go_by_a_type_of_your_own_which_is_among_the_choices_with_its_source() -> None:
    select = Selector(answer="tests.dates:YEARS")
    pred = select(question="When?", candidates=["in 1976", "1976", "1977"], evidence=["It was 1976."])
    assert (pred.answer, pred.certified, pred.consulted) == ("1976", True, [])
    choices = select.choices()
    assert (choices["task"], len(choices["answer"]["source"])) == ("tests.dates:YEARS", 16)
    assert "answer" not in Selector(answer="short").choices()
    assert [Selector(answer=answer).choices()["task"] for answer in ("short", "number")] == ["retrieval", "arithmetic"]


def test_settings_are_taken_whole_and_single_ones_go_before_them() -> None:
    settings = Settings(certificate="token", consult="always", answer="number")
    assert (whole := Selector(settings=settings)).settings == settings and whole.type is settings.type
    assert Selector(settings=settings, certificate="substring").settings == replace(settings, certificate="substring")
    assert Selector(certificate="token").settings == Settings(certificate="token")
    assert {*get_type_hints(Choices)} == {field.name for field in fields(Settings)} - {"answer"}
    with pytest.raises(TypeError, match="Selector has no argument 'certificates'"):
        Selector(certificates="token")  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"^settings must be Settings\(...\); got \{'certificate': 'token'\}"):
        Selector(settings={"certificate": "token"})  # type: ignore[arg-type]
