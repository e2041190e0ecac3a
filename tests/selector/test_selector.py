"""The selector decides the same however it is called, and asks nobody where nothing can change."""

import asyncio
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Choices, Settings
from tests.case_tables import each_case
from tests.dates import LISTED
from tests.scenes import CONTESTED, PENS, SAID, SETTLED, SILENT, WORDS, repair, verdict
from tests.scorers import table_of
from tests.selecting import asked, each_way, evaluating, example_of, right, saying, selected


def test_a_decision_comes_with_its_witness_and_always_asks_every_role_for_the_same() -> None:
    pred = selected(saying(verdict(2)))
    assert (pred.certified, pred.consensus, pred.preference, pred.repair) == (True, "Dubai", 2, None)
    assert (pred.witness["passage"], pred.witness["text"], pred.witness["start"]) == (0, "Doha", 0)
    assert (pred.tie, pred.consulted, pred.abstentions) == (False, ["judge"], {})
    assert (sorted(pred.ranking), pred.witness["flags"]) == ([0, 1, 2], [])
    pred = selected(saying(verdict(0)), inputs={**CONTESTED, "candidates": ["Dubai", "Manama", "Doha"]})
    assert (pred.answer, pred.tie) == ("Dubai", True)  # hazards 8 and 9: the earliest ships
    candidates = [dspy.Prediction(response=text) for text in CONTESTED["candidates"]]
    pred = selected(saying(verdict(2)), inputs={**CONTESTED, "candidates": candidates}, answer_field="response")
    assert pred.response == pred["response"] == pred.answer == "Doha"
    with pytest.raises(ValueError, match="No LM is loaded"):
        Selector()(**CONTESTED)
    for consult, roles in (("lazy", ["judge"]), ("always", ["judge", "repairer"])):
        lm = saying(verdict(2), repair("Persian Gulf"))
        pred = selected(lm, consult=consult)
        assert (pred.answer, pred.branch, asked(lm)) == ("Doha", "judge", roles)


@each_case("selector", "what ships, why, and who is asked", **WORDS)
def test_only_roles_that_matter_are_asked(inputs: Any, replies: Any, decision: list[Any], roles: list[str]) -> None:
    lm = saying(**replies)
    pred = selected(lm, inputs=inputs)
    assert [pred.answer, pred.branch, pred.reason, pred.certified] == decision
    assert pred.consulted == asked(lm) == roles


@each_case("selector", "nobody is asked", **WORDS)  # hazards 1 and 2
def test_nobody_is_asked_where_nothing_can_change(options: dict[str, Any], inputs: dict[str, Any], reason: str) -> None:
    lm = saying(verdict(2))
    pred = selected(lm, inputs=inputs, **options)
    assert lm.requests == []
    assert (pred.branch, pred.reason, pred.consulted, pred.answer) == ("consensus", reason, [], pred.consensus)
    assert pred.answer is not None or inputs["candidates"] == []


@pytest.mark.parametrize("candidates", [[None, None], ["", " "], [{"answer": None}, "\n"]])
def test_a_pool_without_answers_may_still_be_repaired(candidates: Any) -> None:  # hazard 5
    inputs = {**CONTESTED, "candidates": candidates}
    assert selected(saying(repairer=repair("Doha")), inputs=inputs).answer == "Doha"
    silent = selected(saying(), inputs=inputs)
    assert (silent.answer, silent.reason, silent.consensus) == (None, "no_answers", None)


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


@pytest.mark.parametrize("answer", ["", "trivia", [], 0, "retrieval", "arithmetic"])
def test_an_answer_type_has_one_name_and_another_is_refused(answer: Any) -> None:
    expected = f"^{re.escape(f'answer must be one of {LISTED}; got {answer!r}')}"
    with pytest.raises(ArgumentError, match=expected):
        Selector()(**{**SETTLED, "answer": answer})
    if isinstance(answer, str):
        with pytest.raises(ArgumentError, match=expected):
            Selector(answer=answer)


@each_way
@pytest.mark.parametrize(("inputs", "reply"), SAID.values(), ids=SAID)
@pytest.mark.parametrize("timeout", [None, 60])
def test_every_way_to_call_decides_and_asks_the_same(call: Any, inputs: Any, reply: Any, timeout: Any) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(timeout=timeout), inputs).toDict()
    assert fields == selected(reference, inputs=inputs).toDict() == json.loads(json.dumps(fields))
    assert lm.requests == reference.requests


@pytest.mark.parametrize("in_threads", [True, False])
def test_questions_that_are_under_way_at_once_are_not_mixed_up(in_threads: bool) -> None:
    """The judge prefers Doha in odd questions and Dubai in even ones; a scorer goes by the length, which differs."""

    def by_number(request: Any) -> Any:
        odd = "number 1 or" in text_of(request)
        return verdict(2 if odd else 0) if role_of(request) == "judge" else SILENT

    async def in_tasks() -> Any:
        return await asyncio.gather(*(select.acall(**inputs) for inputs in questions))

    by_length: Any = SimpleNamespace(
        score=lambda texts: [table_of(one.text, float(len(one.question))) for one in texts]
    )
    select: Any = Selector(scorers=by_length)
    questions = [{**CONTESTED, "question": f"number {n % 2} or not?{'?' * n}"} for n in range(40)]
    with dspy.context(lm=scripted_lm(by_number, delay=0.001)):
        if in_threads:
            preds = select.batch([*map(example_of, questions)], num_threads=8, disable_progress_bar=True)
        else:
            preds = asyncio.run(in_tasks())
    assert [pred.answer for pred in preds] == ["Dubai", "Doha"] * 20
    assert [pred.scores[2]["reward"] for pred in preds] == [float(len(one["question"])) for one in questions]


def test_an_evaluation_is_saved_as_json(tmp_path: Path) -> None:
    devset = [example_of(CONTESTED, gold="Doha"), example_of(SETTLED, gold="Dubai")]
    with dspy.context(lm=saying(verdict(2))):
        assert evaluating(right, devset, save_as_json=str(tmp_path / "rows.json"))(Selector()).score == 50.0
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["branch"], row["right"]) for row in rows] == [("judge", True), ("consensus", False)]


def test_a_role_uses_its_own_lm_and_one_lm_is_set_for_every_role_but_a_frozen_one() -> None:
    """Also for the deriver, since a call may be about answers of another type."""
    own, shared, select = saying(verdict(0)), saying(), Selector()
    select.judge.set_lm(own)
    with dspy.context(lm=shared):
        select(**CONTESTED)
    assert (asked(own), asked(shared)) == (["judge"], ["repairer"])
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


def test_settings_are_taken_whole_and_a_type_of_your_own_is_among_them_with_its_source() -> None:
    select = Selector(answer="tests.dates:YEARS")
    pred = select(question="When?", candidates=["in 1976", "1976", "1977"], evidence=["It was 1976."])
    assert (pred.answer, pred.certified, pred.consulted) == ("1976", True, [])
    choices = select.choices()
    assert (choices["task"], len(choices["answer"]["source"])) == ("tests.dates:YEARS", 16)
    assert "answer" not in Selector(answer="short").choices()
    assert [Selector(answer=answer).choices()["task"] for answer in ("short", "number")] == ["retrieval", "arithmetic"]
    settings = Settings(certificate="token", consult="always", answer="number")
    assert (whole := Selector(settings=settings)).settings == settings and whole.type is settings.type
    assert Selector(settings=settings, certificate="substring").settings == replace(settings, certificate="substring")
    assert Selector(certificate="token").settings == Settings(certificate="token")
    assert {*get_type_hints(Choices)} == {field.name for field in fields(Settings)} - {"answer"}
    with pytest.raises(TypeError, match="Selector has no argument 'certificates'"):
        Selector(certificates="token")  # type: ignore[call-arg]
