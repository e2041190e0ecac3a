"""Answers that take long to compare: each question has a limit, no event loop waits, and a replay decides the same."""

import asyncio
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.answer_types import comparing
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.comparing import Comparison, Comparisons, Pair, compare
from eldgr_dspy.answer_types.math import Math
from eldgr_dspy.decision import Choice
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.settling import decide_again
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.questions import Question
from tests.capitals import write_pool

pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")

# hazard 111

SLOW = [rf"\sin(x)^{{{n}}}+\cos(y)^{{{n}}}\tan(x+y)" for n in (90, 91)]
"""Each pair takes minutes, and none is stopped by what its text looks like."""
OVER = 0.0
"""A time that has passed, by `monotonic`."""


def lines(out: Path) -> list[Mapping[str, Any]]:
    return [*map(json.loads, (out / "decisions.jsonl").read_text(encoding="utf-8").splitlines())]


def records(out: Path) -> list[Mapping[str, Any]]:
    return [head["details"] for head in read_run(out).heads if head["kind"] == "comparisons"]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads in which expressions are compared; none of them is equal to another."""
    idents = set[int]()

    def fake(*pair: object, seconds: float, ends: float | None = None) -> Comparison:
        idents.add(threading.get_ident())
        return Comparison(False, 0.0)

    monkeypatch.setattr(comparing, "compare", fake)
    return idents


def test_the_timeout_of_a_selector_ends_the_comparisons_and_a_note_says_so() -> None:
    pred = Selector(answer="math", rule="majority", timeout=0.2)(question="Which?", candidates=[SLOW[0], *SLOW])
    assert pred.votes == {SLOW[0]: 2, SLOW[1]: 1}
    assert len(pred.notes) == 2 and all("or its timeout" in note for note in pred.notes)


def test_scores_have_the_limit_of_their_question() -> None:
    answers = [f"x+{n}" for n in range(1, 401)]
    case = Case(Question("Which?", "math", tuple(answers), comparisons=Comparisons(ends=OVER)))
    golds = [f"y+{n}" for n in range(1, 6)]
    assert not any(score(answer, golds, case.type).em for answer in answers)
    late = case.type.comparisons.late if case.type.comparisons else []
    assert [sum(pair.both is both for pair in late) for both in (True, False)] == [32 * 31 // 2, 400 * 5]


def test_what_ran_out_of_time_once_is_compared_by_the_next_question() -> None:
    assert Comparisons(ends=OVER).equal("6/22", "3/11", both=True) is None
    assert compare("6/22", "3/11", True, seconds=1e-6).equal is None  # the system ends the process
    assert Comparisons().equal("6/22", "3/11", both=True) is True


def test_a_remembered_pair_takes_the_time_that_it_took_at_first() -> None:
    first = compare("6/28", "3/14", True)
    assert first.equal is True and compare("6/28", "3/14", True) == first
    if first.seconds:  # a coarse clock may see none pass
        assert compare("6/28", "3/14", True, seconds=first.seconds / 2).equal is None


def test_a_derivation_that_could_not_be_compared_is_noted() -> None:
    case = Case(Question("What is 3 + 4?", "math", ("7.0 + 0",), comparisons=Comparisons(ends=OVER)))
    derivation = Derivation((Step("3 + 4", "7"),), "7", "7 - 4 = 3")
    decision = case.record(Choice("repair", "7"), {"deriver": derivation})
    assert [note for note in decision.notes if note.startswith("'7': not compared")]


def test_a_system_without_file_descriptors_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    resource: Any = pytest.importorskip("resource", reason="this system does not limit file descriptors")
    comparing._worker(os.getpid()).stop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(ArgumentError, match=r"close files .* cannot be started \(.*Too many open files\)\."):
            score("6x/26", ["3x/13"], "math")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert score("6x/26", ["3x/13"], "math").em


def test_other_tasks_go_on_while_a_selector_compares() -> None:
    events = list[str]()

    async def select() -> None:
        await Selector(answer="math", rule="majority", timeout=0.3).acall(question="Which?", candidates=SLOW)
        events.append("selected")

    async def tick() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        events.append("ticked")

    async def both() -> None:
        await asyncio.gather(select(), tick())

    asyncio.run(both())
    assert events == ["ticked", "selected"]


def test_nothing_is_compared_in_the_thread_of_an_event_loop(threads: set[int]) -> None:
    asyncio.run(heuristic_selector(answer="math").acall(question="What is 1 + 2?", candidates=["x/2", "0.5x"]))
    assert threads and threading.get_ident() not in threads


def test_a_comparison_that_ran_out_of_time_is_recorded_and_never_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    candidates = [{"text": answer, "answer": answer} for answer in ("3x/17", "6x/34", "5")]
    row = {"id": "q", "question": "Which part?", "task": "math", "candidates": candidates, "gold": ["9x/51"]}
    pool = write_pool(tmp_path / "p.jsonl", [row])
    out, again = tmp_path / "run", tmp_path / "again"
    plan = Plan([pool], out, ("majority", "eldgr"))
    with monkeypatch.context() as slow:
        slow.setattr(comparing, "compare", lambda *pair, seconds, ends: Comparison(None, seconds))
        first = evaluate(heuristic_selector(), plan)
    assert Math().alike("3x/17", "6x/34")

    assert first["pools"]["p"]["rules"]["majority"]["em"] == 0.0
    assert "could not be compared in time on 1 of 1 question" in " ".join(first["pools"]["p"]["remarks"])
    whole = records(out)[-1]
    pairs = {(whole["texts"][one], whole["texts"][other]) for one, other in whole["classes"]}
    assert ("3x/17", "6x/34") in pairs and whole["scores"]

    second = evaluate(heuristic_selector(), plan)
    replay = evaluate(heuristic_selector(), replace(plan, out=again, replay=out / "journal.jsonl"))
    pools = decide_again(read_run(out), plan.rules).figures
    for summary in (second, replay):
        assert summary["pools"]["p"]["rules"]["majority"]["em"] == 0.0
        assert summary["pools"]["p"]["remarks"] == first["pools"]["p"]["remarks"]
    assert pools["p"]["ties"] == first["pools"]["p"]["ties"] == 1
    assert lines(again) == lines(out)
    assert records(again)[-1] == whole and len(records(out)) == 2
    assert main(["show", str(out), "q"]) == 0
    assert "not compared as mathematics" in capsys.readouterr().out


def test_a_close_comparison_is_recorded_and_a_replay_gives_it_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list[float]()

    def slow(*pair: object, seconds: float, ends: float | None = None) -> Comparison:
        limits.append(seconds)
        return Comparison(True, 2.0)

    monkeypatch.setattr(comparing, "compare", slow)
    first = Comparisons()
    assert first.equal("1", "2", both=True) and first.is_close and first.late == []
    assert Comparisons([first.record("q")]).equal("1", "2", both=True)
    assert limits == [comparing.SECONDS, 10 * comparing.SECONDS]


def test_a_question_is_close_when_half_of_its_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "compare", lambda *pair, seconds, ends: Comparison(True, 1.4))
    comparisons = Comparisons()
    close = [(comparisons.equal("1", str(n), both=True), comparisons.is_close)[1] for n in range(6)]
    assert close == [False, False, False, False, False, True]  # 7 seconds, and 8.4


def test_a_record_holds_each_text_once() -> None:
    comparisons = Comparisons(ends=OVER)
    for pair in (Pair("1/2", "a", True), Pair("1/2", "b", False), Pair("b", "1/2", False)):
        assert comparisons.equal(*pair[:2], both=pair.both) is None
    record = comparisons.record("q")
    assert record == {"id": "q", "texts": ["1/2", "a", "b"], "classes": [[0, 1]], "scores": [[0, 2], [2, 0]]}
    assert Comparisons([record]).late == comparisons.late
