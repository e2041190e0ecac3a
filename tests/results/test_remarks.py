"""Where half of a pool has nothing to go by, one sentence below its first table says so; otherwise nothing is said."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.remarks import remarks_of
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.tables.run import tables_of
from eldgr_dspy.words import Role, Task
from tests.capitals import row, selector_with, write_pool

PASSAGES = (Passage("", "Nice lies by the sea."),)


def case(answers: tuple[str | None, ...] = ("Nice",), passages: Any = PASSAGES, task: Task = "retrieval") -> Case:
    return Case(Question("Which?", task, answers, passages=passages))


def silent(role: Role, reason: str = "unparsable: why", **said: Any) -> Consultation:
    return Consultation("p", "q", role, "abstained", reason, **said)


def heard(role: Role) -> Consultation:
    return Consultation("p", "q", role, "ok", None, {"preferred": 0})


def remarks(*taken: tuple[Case, list[Consultation]], task: Task = "retrieval") -> list[str]:
    rows = DecidedRows(task, ("majority",))
    for case, entries in taken:
        rows.add(case, [], {"majority": Outcome(None, None, entries)}, ())
    return remarks_of(rows)


def test_a_pool_on_which_all_is_well_has_none() -> None:
    assert remarks() == remarks((case(), [heard("judge"), heard("repairer")])) == []


@pytest.mark.parametrize(("without", "with_answer", "message"), [(2, 0, "2 of 2"), (1, 1, "1 of 2"), (1, 2, "")])
def test_questions_without_any_answer_are_named_from_one_half_on(without: int, with_answer: int, message: str) -> None:
    result = remarks(*[(case((None, " ")), [])] * without, *[(case((None, "Nice")), [])] * with_answer)
    sentence = (
        f"No candidate has an answer on {message} questions, so that nothing but a repair can ship there. The field "
        "`answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
    )
    assert result == ([sentence] if message else [])


def test_in_arithmetic_a_derivation_can_ship_without_answers_and_evidence_is_not_missed() -> None:
    (result,) = remarks((case((None,), (), "arithmetic"), []), task="arithmetic")
    assert result.startswith("No candidate has an answer on 1 of 1 question, so that nothing but a derivation can ship")


def test_questions_without_evidence_are_named_from_half_of_them_on() -> None:
    bare, well = case(passages=()), case()
    message = (
        "There is no evidence on {}: nothing can be certified there, so that eldgr is majority. The field `evidence` "
        "of a question holds it."
    )
    assert remarks((bare, [])) == [message.format("1 of 1 question")]
    assert remarks((bare, []), (well, [])) == [message.format("1 of 2 questions")]
    assert remarks((bare, []), (well, []), (well, [])) == []


ROLES_SAID: list[tuple[Role, str]] = [
    ("judge", "rules went on without it there."),
    ("deriver", "nothing was derived there."),
    ("repairer", "nothing was repaired there."),
]


@pytest.mark.parametrize(("role", "instead"), ROLES_SAID)
def test_a_role_that_gave_no_usable_reply_on_half_of_what_it_was_asked_is_named(role: Role, instead: str) -> None:
    cut = silent(role, "cut off: the LM reached its limit", calls=1)
    result = remarks((case(), [silent(role)] * 2), (case(), [cut]), (case(), []), *[(case(), [heard(role)])] * 2)
    assert result == [
        f"The {role} gave no usable reply on 2 of 4 questions that it was asked (1 cut off, 1 unreadable): {instead} "
        f"`eldgr doctor --judge MODEL` looks into the {role}'s model."
    ]
    assert remarks((case(), [silent(role)]), *[(case(), [heard(role)])] * 2) == []


def test_without_a_model_the_doctor_is_not_named() -> None:
    (result,) = remarks((case(), [silent("judge", "there is nothing to measure by")]))
    assert result.endswith("(1 nothing to say): rules went on without it there.")


def test_to_find_no_span_or_no_derivation_is_a_reply_and_a_failed_call_is_counted_elsewhere() -> None:
    failed = Consultation("p", "q", "judge", "failed", "LMTimeoutError: late")
    assert remarks((case(), [silent("repairer", "no span"), silent("deriver", "not a sum"), failed])) == []


def test_a_judge_that_cannot_be_read_is_seen_in_the_tables_the_report_and_the_record(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    selector, _ = selector_with(lambda request: "I would take the third.")
    summary = evaluate(selector, Plan([pool], tmp_path / "run"))
    message = (
        "The judge gave no usable reply on 4 of 4 questions that it was asked (4 unreadable): rules went on without it"
    )
    assert summary["pools"]["capitals"]["remarks"][0].startswith(message)
    first, *_ = tables_of(summary)
    assert message in text_of({}, [first], "text", terminal=False)
    assert message in (tmp_path / "run" / "report.html").read_text("utf-8")
    record = json.loads((tmp_path / "run" / "record.json").read_text("utf-8"))
    assert record["remarks"][0].startswith(f"capitals: {message}")


def test_a_judge_that_is_a_module_without_a_model_is_named_too(tmp_path: Path) -> None:
    class Shy(dspy.Module):
        def forward(self, **inputs: Any) -> dspy.Prediction:
            return dspy.Prediction(preferred="the third")

    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    selector = heuristic_selector()
    selector.judge = Shy()
    (result,) = evaluate(selector, Plan([pool], tmp_path / "run"))["pools"]["capitals"]["remarks"]
    assert result.endswith("on 4 of 4 questions that it was asked (4 invalid): rules went on without it there.")


def test_candidates_of_texts_alone_are_named(tmp_path: Path) -> None:
    rows = [row(number, candidates=[{"text": "Nice"}, {"text": "Paris"}]) for number in range(4)]
    selector = heuristic_selector()
    result = evaluate(selector, Plan([write_pool(tmp_path / "texts.jsonl", rows)], tmp_path / "run"))
    assert result["pools"]["texts"]["remarks"][0].startswith("No candidate has an answer on 4 of 4 questions, so that")


def test_a_run_says_how_many_candidates_are_uncertified_for_their_spelling_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stated = {"question": "How long?", "task": "retrieval", "gold": ["2 years"]}
    candidates = [{"answer": "2 years"}, {"answer": "12%"}]
    evidence = [{"title": "", "text": "In a two-year trial it grew by 12 percent."}]
    line = {"id": "q", **stated, "candidates": candidates, "evidence": evidence}
    (tmp_path / "trial.jsonl").write_text(json.dumps(line), encoding="utf-8")
    assert main(["evaluate", "trial.jsonl", "--quiet", "--json"]) == 0
    remark = (
        "Candidates that are uncertified for their spelling only: 1, such as '2 years' for 'two-year' of the evidence."
    )
    assert remark in json.loads(capsys.readouterr().out)["pools"]["trial"]["remarks"]
    assert "uncertified for their spelling only" in (tmp_path / "runs/trial/report.html").read_text(encoding="utf-8")
