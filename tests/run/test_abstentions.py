"""A run stops at more unusable replies than `--max-abstentions` allows, also on resume and in replay."""

from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.testing import role_of, text_of
from tests.capitals import NO_SPAN, VERDICT, obliging, row, selector_with, untimed, write_pool
from tests.selecting import Returns

SAID = "I would take the third."  # in words, where JSON was asked for


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", map(row, range(12)))


each_way = pytest.mark.parametrize("workers", [1, 4])


def mumbling(request: Any) -> Any:
    """Judges every other question in words."""
    number = int(text_of(request).split("capital number ")[1].split("?")[0])
    return SAID if role_of(request) == "judge" and number % 2 else obliging(request)


@each_way
def test_over_the_limit_the_run_stops_and_a_higher_limit_resumes_it(pool: Path, tmp_path: Path, workers: int) -> None:
    plan = Plan([pool], tmp_path / "run", workers=workers, max_abstentions=3)
    selector, lm = selector_with(mumbling)
    message = (
        r"^4 questions had an unusable reply, and --max-abstentions allows 3; give a higher limit to resume\. "
        r"The judge gave 4, most often unreadable \(4\), such as: unparsable: "
    )
    with pytest.raises(RunStoppedError, match=message):
        evaluate(selector, plan)
    assert not (tmp_path / "run" / "summary.json").exists()
    again, silent = selector_with(mumbling)
    with pytest.raises(RunStoppedError, match=message):
        evaluate(again, plan)
    assert silent.requests == [] or workers > 1
    resumed, rest = selector_with(mumbling)
    result = evaluate(resumed, Plan([pool], tmp_path / "run", workers=workers, max_abstentions=6))
    whole, _ = selector_with(mumbling)
    assert untimed(result["pools"]) == untimed(evaluate(whole, Plan([pool], tmp_path / "whole"))["pools"])
    requests_before = len(lm.requests) + len(silent.requests) + len(rest.requests)
    assert requests_before == sum(one.calls for one in read_journal(tmp_path / "run" / "journal.jsonl"))


@each_way
def test_a_finished_run_and_its_replay_are_held_to_it_too(pool: Path, tmp_path: Path, workers: int) -> None:
    """They ask nothing."""
    run, (again, lm) = tmp_path / "run", selector_with(mumbling)
    evaluate(selector_with(mumbling)[0], Plan([pool], run))
    before = (run / "summary.json").read_bytes()
    with pytest.raises(RunStoppedError, match=r"^1 question had an unusable reply, and --max-abstentions allows 0"):
        evaluate(again, Plan([pool], run, workers=workers, max_abstentions=0))
    assert (run / "summary.json").read_bytes() == before
    evaluate(again, Plan([pool], run, workers=workers))  # an abstention is never asked again
    replay: Any = {"out": tmp_path / "replay", "workers": workers, "replay": run / "journal.jsonl"}
    with pytest.raises(RunStoppedError, match=r"^5 questions had an unusable reply, and --max-abstentions allows 4"):
        evaluate(again, Plan([pool], max_abstentions="40%", **replay))
    assert lm.requests == []
    evaluate(again, Plan([pool], max_abstentions="50%", **replay))


def test_a_question_counts_once_and_each_role_is_named_with_its_most_frequent_reason(tmp_path: Path) -> None:
    """The judge and the repairer are both asked on each question, and neither can be read."""
    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(3)))

    def reply(request: Any) -> Any:
        return VERDICT | {"preferred": 9} if role_of(request) == "judge" else SAID

    selector, lm = selector_with(reply)
    evaluate(selector, Plan([pool], tmp_path / "three", max_abstentions=3))
    assert len(lm.requests) == 6
    with pytest.raises(RunStoppedError) as stopped:
        evaluate(selector, Plan([pool], tmp_path / "two", max_abstentions=2))
    judge, repairer = str(stopped.value).split(" to resume. ")[1].split(" The repairer")
    assert judge == (
        "The judge gave 3, most often invalid (3), such as: preferred=9 is not a whole number from 0 to 2."
    )
    assert repairer.startswith(" gave 2, most often unreadable (2), such as: unparsable: ")


def test_what_a_role_declares_and_what_fails_is_not_counted(pool: Path, tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return NO_SPAN if role_of(request) == "repairer" else dspy.LMServerError("away")

    selector, _ = selector_with(reply)
    evaluate(selector, Plan([pool], tmp_path / "failing", limit=5, max_failures="100%", max_abstentions=0))
    selector.judge = Returns({"abstained": "I know too little"})
    evaluate(selector, Plan([pool], tmp_path / "declining", max_abstentions=0))


def test_a_reply_that_no_journal_holds_is_unusable(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be written, and refused by whatever reads the journal afterwards."""
    monkeypatch.setenv("ELDGR_FILE_LIMITS", "0.01")

    def flooding(request: Any) -> Any:
        if role_of(request) != "judge" or "capital number 1?" not in text_of(request):
            return obliging(request)
        return {"judge_rationale": "", "assessments": [[]] * 5_000, "preferred": 0}

    result = evaluate(selector_with(flooding)[0], Plan([pool], tmp_path / "run"))
    assert result["consultations"]["judge"]["abstained"] == 1
    again, silent = selector_with(flooding)
    assert evaluate(again, Plan([pool], tmp_path / "run"))["consultations"] == result["consultations"]
    assert silent.requests == []
    replies = [one for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.role == "judge"]
    (large,) = [one for one in replies if one.outcome == "abstained"]
    assert large.content is None
    assert large.reason == "unreadable: the reply is too large, or nested too deeply, for a line of a journal"
