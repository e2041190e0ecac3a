"""The selector decides the same however it is called, and asks nobody where nothing can change."""

import asyncio
import json
import re
from collections.abc import Callable
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
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    SAID,
    SETTLED,
    SILENT,
    asked,
    each_way,
    evaluating,
    example_of,
    repair,
    right,
    saying,
    select_acall,
    select_sync,
    selected,
    verdict,
)

# -- what is decided --------------------------------------------------------------------------------------------------


def test_a_certified_preference_ships_with_its_witness() -> None:
    lm = saying(verdict(2))
    pred = selected(lm)
    assert (pred.answer, pred.branch, pred.reason) == ("Doha", "judge", "preference_certified")
    assert (pred.certified, pred.consensus, pred.preference, pred.repair) == (True, "Dubai", 2, None)
    assert (pred.witness["passage"], pred.witness["text"], pred.witness["start"]) == (0, "Doha", 0)
    assert (pred.tie, pred.consulted, pred.abstentions) == (False, ["judge"], {})
    assert sorted(pred.ranking) == [0, 1, 2]
    assert asked(lm) == ["judge"]


def test_after_a_preference_without_a_certificate_the_repairer_is_asked() -> None:
    lm = saying(verdict(0), repair("Persian Gulf", 1))
    pred = selected(lm)
    assert (pred.answer, pred.branch, pred.reason) == ("Persian Gulf", "repair", "repair_certified")
    assert (pred.preference, pred.repair, pred.witness["passage"]) == (0, "Persian Gulf", 1)
    assert pred.consulted == asked(lm) == ["judge", "repairer"]


def test_a_repair_that_the_evidence_does_not_hold_changes_nothing() -> None:
    pred = selected(saying(verdict(0), repair("Manama")))
    assert (pred.answer, pred.branch, pred.certified, pred.repair) == ("Dubai", "consensus", False, "Manama")


def test_a_checked_derivation_ships_and_the_judge_is_not_asked() -> None:
    lm = saying()
    pred = selected(lm, inputs=PENS)
    assert (pred.answer, pred.branch, pred.reason) == ("36", "repair", "derivation_checked")
    assert asked(lm) == ["deriver"]


def test_an_unchecked_derivation_changes_nothing() -> None:
    false = {**DERIVATION, "derivation_steps": [{"expression": "3 * 12", "value": "37"}], "derived_answer": "37"}
    pred = selected(saying(deriver=false), inputs=PENS)
    assert (pred.answer, pred.branch, pred.certified) == ("35", "consensus", False)


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
    assert (pred.branch, pred.reason, pred.consulted) == ("consensus", reason, [])


def test_no_lm_is_needed_where_nobody_is_asked() -> None:
    assert Selector()(**SETTLED).answer == "Doha"


def test_an_lm_that_is_missing_where_one_is_asked_is_said_so() -> None:
    with pytest.raises(ValueError, match="No LM is loaded"):
        Selector()(**CONTESTED)


def test_always_asks_every_role_and_decides_the_same() -> None:
    lazy, always = saying(verdict(2), repair("Persian Gulf")), saying(verdict(2), repair("Persian Gulf"))
    one, other = selected(lazy), selected(always, consult="always")
    assert (one.answer, one.branch) == (other.answer, other.branch) == ("Doha", "judge")
    assert (asked(lazy), asked(always)) == (["judge"], ["judge", "repairer"])


def test_a_homogeneous_pool_is_repaired_and_not_judged() -> None:
    lm = saying(repairer=repair("Doha"))
    pred = selected(lm, inputs={**CONTESTED, "candidates": ["Dubai"]})
    assert (pred.answer, pred.branch, asked(lm)) == ("Doha", "repair", ["repairer"])


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


@pytest.mark.parametrize("answer", ["", "trivia", [], 0])
def test_an_answer_type_that_is_not_known_is_refused_in_a_call(answer: Any) -> None:
    with pytest.raises(
        ArgumentError,
        match=re.escape(f"answer must be one of {LISTED}; got {answer!r}."),
    ):
        Selector()(**{**SETTLED, "answer": answer})


@pytest.mark.parametrize("field", [3, None, "", " "])
def test_an_answer_field_that_is_not_a_name_is_refused(field: Any) -> None:
    expected = f"answer_field must be the name of the field that holds the answer; got {field!r}."
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}$"):
        Selector(answer_field=field)


@pytest.mark.parametrize("field", ["branch", "reason", "consensus", "witness", "repair"])
def test_an_answer_field_that_a_decision_has_is_refused(field: str) -> None:
    expected = f"answer_field={field!r} is a field of the decision; use another field for the answers."
    with pytest.raises(ArgumentError, match=re.escape(expected)):
        Selector(answer_field=field)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"question": None}, "question must be text; got None. Give the question as a string."),
        ({"candidates": "Doha"}, "candidates must be a list of strings or predictions; got 'Doha'."),
        (
            {"candidates": ["Doha", b"7"]},
            "candidates[1] must be a string, a prediction, a finite number or None; got b'7' (bytes).",
        ),  # hazard 7
        ({"candidates": ["a"] * 10_000}, "There are 10,000 candidates; give at most 1,000"),  # hazard 10
        ({"evidence": 7}, "evidence must be a list of strings or passages; got 7."),
        ({"evidence": ["a", None]}, "evidence[1] must be a string, or something with text"),
    ],
)
def test_what_is_not_a_question_is_refused_before_any_call(changes: dict[str, Any], expected: str) -> None:
    lm = saying(verdict(2))
    for call in (select_sync, select_acall):
        with dspy.context(lm=lm), pytest.raises(ArgumentError, match=f"^{re.escape(expected)}"):
            call(Selector(), {**CONTESTED, **changes})
    assert lm.requests == []


# -- ways to call (law 18) --------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize(("inputs", "said"), SAID.values(), ids=SAID)
def test_every_way_to_call_decides_the_same_and_asks_the_same(
    call: Callable[..., Any], inputs: dict[str, Any], said: dict[str, Any]
) -> None:
    lm, reference = saying(**said), saying(**said)
    with dspy.context(lm=lm):
        pred = call(Selector(), inputs)
    assert pred.toDict() == selected(reference, inputs=inputs).toDict()
    assert lm.requests == reference.requests


@each_way
def test_a_prediction_is_plain_json(call: Callable[..., Any]) -> None:
    with dspy.context(lm=saying(verdict(2))):
        fields = call(Selector(consult="always"), CONTESTED).toDict()
    assert json.loads(json.dumps(fields)) == fields
    assert fields["witness"]["flags"] == []


def by_number(request: Any) -> Any:
    """A judge that prefers Doha in odd questions and Dubai in even ones."""
    odd = "number 1 or" in text_of(request)
    return verdict(2 if odd else 0) if role_of(request) == "judge" else SILENT


NUMBERED = [{**CONTESTED, "question": f"number {number % 2} or not?"} for number in range(40)]


def test_threads_mix_nothing_up() -> None:
    with dspy.context(lm=scripted_lm(by_number, delay=0.001)):
        preds: Any = Selector().batch([*map(example_of, NUMBERED)], num_threads=8, disable_progress_bar=True)
    assert [pred.answer for pred in preds] == ["Dubai", "Doha"] * 20


def test_tasks_of_one_loop_mix_nothing_up() -> None:
    async def all_at_once() -> list[Any]:
        select = Selector()
        return list(await asyncio.gather(*(select.acall(**inputs) for inputs in NUMBERED)))

    with dspy.context(lm=scripted_lm(by_number, delay=0.001)):
        assert [pred.answer for pred in asyncio.run(all_at_once())] == ["Dubai", "Doha"] * 20


def test_an_evaluation_is_saved_as_json(tmp_path: Path) -> None:
    devset = [example_of(CONTESTED, gold="Doha"), example_of(SETTLED, gold="Dubai")]
    with dspy.context(lm=saying(verdict(2))):
        evaluate = evaluating(right, devset, save_as_json=str(tmp_path / "rows.json"))
        assert evaluate(Selector()).score == 50.0
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["answer"], row["branch"], row["right"]) for row in rows] == [
        ("Doha", "judge", True),
        ("Doha", "consensus", False),
    ]


# -- whose LM ---------------------------------------------------------------------------------------------------------


def test_a_role_uses_its_own_lm_and_the_others_the_context_s() -> None:
    own, shared = saying(verdict(0)), saying()
    select = Selector()
    select.judge.set_lm(own)
    with dspy.context(lm=shared):
        select(**CONTESTED)
    assert (asked(own), asked(shared)) == (["judge"], ["repairer"])


def test_one_lm_may_be_set_for_all_roles() -> None:
    lm, unused = saying(verdict(0)), saying()
    select = Selector()
    select.set_lm(lm)
    assert select.get_lm() is lm
    with dspy.context(lm=unused):
        select(**CONTESTED)
        select(**PENS)
    assert (asked(lm), asked(unused)) == (["judge", "repairer", "deriver"], [])


def test_another_lm_changes_no_rule() -> None:
    """Law 20: an LM that prefers without a certificate gets nowhere, whichever role it is set for."""
    for name in ("judge", "repairer"):
        select = Selector()
        getattr(select, name).set_lm(saying(verdict(1), repair("Manama")))
        with dspy.context(lm=saying(verdict(0), repair("Manama"))):
            assert select(**CONTESTED).answer == "Dubai"


# -- answer types -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "task"), [("short", "retrieval"), ("number", "arithmetic")])
def test_a_type_has_one_name_and_files_state_another(answer: str, task: str) -> None:
    select = Selector(answer=answer)
    assert (select.type.name, select.choices()["task"]) == (answer, task)
    for call in (lambda: Selector(answer=task), lambda: select(**CONTESTED, answer=task)):
        with pytest.raises(ArgumentError, match=f"^answer must be one of 'short', 'number', .*; got '{task}'"):
            call()


def test_a_selector_for_numbers_asks_the_deriver() -> None:
    lm = saying()
    with dspy.context(lm=lm):
        pred = Selector(answer="number")(**{name: value for name, value in PENS.items() if name != "answer"})
    assert (pred.answer, pred.reason, asked(lm)) == ("36", "derivation_checked", ["deriver"])


def test_a_type_of_your_own_is_among_the_choices_with_its_source() -> None:
    choices = Selector(answer="tests.dates:YEARS").choices()
    assert choices["task"] == "tests.dates:YEARS"
    assert len(choices["answer"]["source"]) == 16
    assert "answer" not in Selector(answer="short").choices()


def test_votes_and_certificates_go_by_a_type_of_your_own() -> None:
    select = Selector(answer="tests.dates:YEARS")
    pred = select(question="When?", candidates=["in 1976", "1976", "1977"], evidence=["It was 1976."])
    assert (pred.answer, pred.certified, pred.consulted) == ("1976", True, [])


def test_an_answer_type_that_is_not_known_is_refused() -> None:
    with pytest.raises(ArgumentError, match=f"^answer must be one of {LISTED}; "):
        Selector(answer="trivia")


def test_settings_are_taken_whole_and_single_ones_go_before_them() -> None:
    settings = Settings(certificate="token", consult="always", answer="number")
    assert (whole := Selector(settings=settings)).settings == settings and whole.type is settings.type
    single = Selector(settings=settings, certificate="substring")
    assert single.settings == replace(settings, certificate="substring")
    assert Selector(certificate="token").settings == Settings(certificate="token")
    assert {*get_type_hints(Choices)} == {field.name for field in fields(Settings)} - {"answer"}
    with pytest.raises(TypeError, match="Selector has no argument 'certificates'"):
        Selector(certificates="token")  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"^settings must be Settings\(...\); got \{'certificate': 'token'\}"):
        Selector(settings={"certificate": "token"})  # type: ignore[arg-type]
