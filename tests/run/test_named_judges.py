"""Several judges in one run: each is asked, journaled, recorded, counted and frozen under its own name."""

import json
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.heuristics import LexicalJudge, heuristic_selector
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.forecast import forecast
from eldgr_dspy.programs.run.freezes import read_freeze, write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.settling import decide_again
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm
from eldgr_dspy.tables.run import tables_of
from tests import case_tables
from tests.capitals import EVIDENCE, NO_SPAN, VERDICT, drop_times, recording, row, selector_with, write_pool
from tests.memory import memory_of
from tests.refusing import refuses
from tests.run.journals import json_lines, json_of
from tests.scenes import ASPECTS

SECOND = {**VERDICT, "preferred": 0}
NONE = {"outcome": "abstained", "content": None, "reason": "none"}
INPUTS = {"question": "Which?", "candidates": ["Nice", "Nice", "Paris"], "evidence": EVIDENCE}
SILENT = ("repairer", "deriver")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", (row(number, gold=["Paris"]) for number in range(12)))


def judge_with(reply: Any, name: str = "lm") -> tuple[Judge, Any]:
    says: Any = reply if callable(reply) else lambda _: reply
    lm = scripted_lm(says, model=f"scripted/{name}")
    judge = Judge()
    judge.set_lm(lm)
    return judge, lm


def judges(*replies: Any) -> dict[str, Any]:
    return {name: judge_with(reply, name)[0] for name, reply in zip("abcdefgh", replies, strict=False)}


def selector() -> Selector:
    return selector_with(lambda request: NO_SPAN)[0]


# -- asked once, each under its name --
@pytest.mark.parametrize("workers", [1, 8])
def test_each_judge_is_asked_once_a_question_and_rows_in_are_rows_out(pool: Path, tmp_path: Path, workers: int) -> None:
    """Each decision has the reasons of its own judge."""
    three = {name: judge_with(reply, name) for name, reply in zip("abc", (VERDICT, SECOND, VERDICT), strict=True)}
    plan = Plan([pool], tmp_path / "run", workers=workers, judges={name: judge for name, (judge, _) in three.items()})
    result = evaluate(selector(), plan)["pools"]["capitals"]
    assert {name: len(lm.requests) for name, (_, lm) in three.items()} == dict.fromkeys("abc", 12)
    expected = [f"{rule}[{j}]" for rule in ("judge", "eldgr") for j in "abc"]
    assert [rule for rule in result["rules"] if "[" in rule] == expected
    lines = json_lines(tmp_path / "run" / "decisions.jsonl")
    for rule in result["rules"]:
        assert [line["id"] for line in lines if line["rule"] == rule] == [f"q{number}" for number in range(12)]
    assert [result["rules"][f"judge[{name}]"]["em"] for name in "abc"] == [100.0, 0.0, 100.0]
    absent = judges({**VERDICT, "preferred": 8}, {**VERDICT, "preferred": 9})
    evaluate(selector(), Plan([pool], tmp_path / "absent", workers=workers, judges=absent))
    lines = [line for line in json_lines(tmp_path / "absent" / "decisions.jsonl") if "[" in line["rule"]]
    reasons = {line["rule"]: line["abstentions"]["judge"].partition(" ")[0] for line in lines}
    assert reasons == {f"{rule}[{j}]": f"preferred={n}" for rule in ("judge", "eldgr") for j, n in (("a", 8), ("b", 9))}


def test_a_run_of_one_named_judge_decides_as_the_run_of_that_judge_alone(pool: Path, tmp_path: Path) -> None:
    """The single judge has no name in the journal, and no figures of its own."""
    alone = evaluate(heuristic_selector(), Plan([pool], tmp_path / "alone"))["pools"]["capitals"]
    other = evaluate(heuristic_selector(), Plan([pool], tmp_path / "named", judges={"x": LexicalJudge()}))
    for rule in ("judge", "eldgr"):
        figures = other["pools"]["capitals"]["rules"][f"{rule}[x]"]
        assert figures | {"seconds": 0} == alone["rules"][rule] | {"seconds": 0}
    assert b'"judge": ' not in (tmp_path / "alone" / "journal.jsonl").read_bytes()
    assert "judges" not in json_of(tmp_path / "alone" / "summary.json")["pools"]["capitals"]


def test_resuming_asks_a_new_judge_alone_and_refuses_another_of_a_name(pool: Path, tmp_path: Path) -> None:
    """Each row of the journal names its judge, and the finished run is read and decided again for each."""
    evaluate(selector(), Plan([pool], tmp_path / "run", judges=judges(VERDICT)))
    (old, before), (new, later) = judge_with(VERDICT, "a"), judge_with(SECOND, "b")
    other, never = judge_with(VERDICT, "another")
    plan = Plan([pool], tmp_path / "run", judges={"a": other})
    refuses(RunChangedError, r"another role 'judge\[a\]'", evaluate, selector(), plan)
    plan = Plan([pool], tmp_path / "run", judges={"a": old, "b": new})
    most = forecast(selector(), plan)["pools"]["capitals"]["roles"]
    assert (most["judge[a]"]["to_ask"], most["judge[b]"]["to_ask"], most["judge[b]"]["calls"]) == (0, 12, 12)
    figures: Any = evaluate(selector(), plan)["pools"]["capitals"]
    assert (never.requests, before.requests, len(later.requests)) == ([], [], 12)
    rows = [line for line in json_lines(tmp_path / "run" / "journal.jsonl") if line.get("role") == "judge"]
    assert Counter(line["judge"] for line in rows) == {"a": 12, "b": 12}
    run = read_run(tmp_path / "run")
    assert run.summary()["pools"]["capitals"] == figures
    again: Any = decide_again(run, ["near(2)"])
    assert [rule for rule in again.rules if rule.startswith("near")] == ["near(2)[a]", "near(2)[b]"]
    assert again.figures["capitals"]["rules"]["eldgr[b]"]["em"] == figures["rules"]["eldgr[b]"]["em"]
    assert again.figures["capitals"]["judges"] == figures["judges"]


# -- recorded --
def record_of(path: Path, n: int = 12, **more: Any) -> Path:
    ids = [f"q{number}" for number in range(n)]
    text = recording(path, ids, **more).read_text()
    pool = {"pool": more["pool"]} if "pool" in more else {}
    silent = [{"kind": "consultation", "id": one, "role": role, **NONE, **pool} for one in ids for role in SILENT]
    path.write_text(text + "".join(json.dumps(line) + "\n" for line in silent))
    return path


def test_each_judge_answers_from_its_own_recording_and_the_repairer_from_the_first(pool: Path, tmp_path: Path) -> None:
    files = {"a": record_of(tmp_path / "a.jsonl"), "b": record_of(tmp_path / "b.jsonl", content=SECOND, judge="b")}
    plan = Plan([pool], tmp_path / "run", judges={"a": Judge(), "b": Judge()}, replay=files)
    most = forecast(Selector(), plan)["pools"]["capitals"]["roles"]
    assert {role: of["recorded"] for role, of in most.items()} == {"judge[a]": 12, "judge[b]": 12, "repairer": 12}
    result = evaluate(Selector(), plan)
    assert [result["pools"]["capitals"]["rules"][f"judge[{name}]"]["em"] for name in "ab"] == [100.0, 0.0]
    assert result["consultations"]["judge[b]"]["recorded"] == 12
    # a journal of several judges is itself a recording of all of them, and of each
    again = Plan([pool], tmp_path / "again", judges=plan.judges, replay=tmp_path / "run" / "journal.jsonl")
    assert drop_times(evaluate(Selector(), again)) == drop_times(result)


def test_a_judge_of_another_source_is_refused_with_both_sources(pool: Path, tmp_path: Path) -> None:
    """Not: the old recorded replies decide under the name of the new judge."""
    half = record_of(tmp_path / "half.jsonl", 6)
    whole = record_of(tmp_path / "whole.jsonl")
    model, lm = judge_with(SECOND, "n")
    sources: dict[str, tuple[Any, Path | None]] = {"recording": (Judge(), whole), "half": (Judge(), half)}
    sources |= {"model": (model, None), "words": (LexicalJudge(), None), "both": (model, whole)}

    def plan(source: str, out: str) -> Plan:
        judge, file = sources[source]
        return Plan([pool], tmp_path / out, judges={"a": judge}, replay=file and {"a": file})

    for before, after, words in case_tables.tables_of("run")["sources of a judge"]["cases"]:
        out, message = f"{before}-{after}", f"Judge 'a' must keep the source that this run was started with, {words}"
        evaluate(selector(), plan(before, out))
        requests_before = len(lm.requests)
        for again in (evaluate, forecast):
            refuses(RunChangedError, message, again, selector(), plan(after, out))
        assert len(lm.requests) == requests_before
    evaluate(selector(), plan("half", "completed"))
    result = evaluate(selector(), plan("recording", "completed"))  # a recording may be completed
    assert result["pools"]["capitals"]["rules"]["judge[a]"]["em"] == 100.0


def test_names_that_no_label_can_hold_and_recordings_that_do_not_fit_are_refused(pool: Path, tmp_path: Path) -> None:
    for name in ("", "a[b]", "a b", "a=b", "é"):
        refuses(ArgumentError, "letters, digits", Plan, [pool], judges={name: LexicalJudge()})
    two, out = {"a": Judge(), "b": Judge()}, tmp_path / "run"
    message = "replay must be for judges of this run; got 'c'"
    refuses(ArgumentError, message, Plan, [pool], out, judges=two, replay={"c": tmp_path / "c.jsonl"})
    of_b, brackets = record_of(tmp_path / "b.jsonl", judge="b"), record_of(tmp_path / "bad.jsonl", judge="a[b]")
    others = write_pool(tmp_path / "others.jsonl", (row(number + 50) for number in range(3)))
    for file, plan, message in (
        (pool, {"judges": two, "replay": {"a": of_b}}, "must hold replies of judge 'a'; got those of 'b'"),
        (pool, {"replay": of_b}, "holds replies of 'b', judges that this run lacks"),
        (others, {"judges": {"b": Judge()}, "replay": {"b": of_b}}, "must hold replies to questions of 'others'"),
    ):
        options: Any = plan
        refuses(ArgumentError, rf"b\.jsonl: {message}", evaluate, Selector(), Plan([file], out, **options))
    message = r"bad\.jsonl, line 1: judge='a\[b\]' does not name a judge"
    refuses(JournalError, message, evaluate, Selector(), Plan([pool], out, judges=two, replay=brackets))


def test_a_recording_of_a_pool_of_another_name_counts_if_that_is_said(pool: Path, tmp_path: Path) -> None:
    replay = {"a": record_of(tmp_path / "a.jsonl", pool="capitals-before")}
    plan = Plan([pool], tmp_path / "run", judges={"a": Judge()}, replay=replay)
    for name, message in (
        (None, r"recorded for 'capitals-before'.*give recorded_for= in Python"),
        ("capitols", "recorded_for='capitols' must be the name of a pool"),
    ):
        refuses(ArgumentError, message, evaluate, Selector(), replace(plan, recorded_for=name))
    refuses(ArgumentError, "recorded_for='x' needs a recording", Plan, [pool], recorded_for="x")
    result = evaluate(Selector(), replace(plan, recorded_for="capitals-before"))
    assert result["pools"]["capitals"]["rules"]["judge[a]"]["em"] == 100.0


def test_a_recorded_reply_takes_a_few_bytes_of_memory_however_long_it_is(tmp_path: Path) -> None:
    """Fifty judges fit beside each other, also if no two replies are alike."""
    n, file = 2_000, tmp_path / "a.jsonl"
    reasons = [f"{number} as the passage says " * 20 for number in range(n)]
    lines = json_lines(recording(file, [f"q{number}" for number in range(n)]))
    contents = [{**VERDICT, "judge_rationale": reason} for reason in reasons]
    write_pool(file, ({**line, "content": content} for line, content in zip(lines, contents, strict=True)))
    assert memory_of(Recordings, dict.fromkeys("abcdefgh", file)).size < 8 * n * 50
    recordings = Recordings(dict.fromkeys("abcdefgh", file))
    for judge, number in (("a", 0), ("h", n - 1), ("c", 7)):
        result: Any = recordings.find(("capitals", f"q{number}", f"judge[{judge}]"))
        assert (result.pool, result.id, result.judge) == ("capitals", f"q{number}", judge)
        assert (result.content, result.recorded) == (contents[number], True)


# -- what is measured --
def test_the_matrix_counts_what_each_judge_fixes_and_breaks(pool: Path, tmp_path: Path) -> None:
    def scoring(*scalars: float) -> dict[str, Any]:
        values = [dict.fromkeys(ASPECTS, 1) | {"scalar": scalar} for scalar in scalars]
        return {"preferred": max(range(3), key=scalars.__getitem__), "assessments": values, "judge_rationale": ""}

    plan = Plan([pool], tmp_path / "run", judges=judges(scoring(0.1, 0.5, 0.9), scoring(0.5, 0.5, 0.5), VERDICT))
    figures: Any = evaluate(selector(), plan)["pools"]["capitals"]
    a, b = (figures["judges"][name] for name in "ab")
    assert (a["alone"], a["locked"], b["alone"]) == (100.0, 100.0, 0.0)  # b prefers consensus, which is wrong
    assert a["alone_against_majority"] == {"correct_to_incorrect": 0, "incorrect_to_correct": 12}
    assert (a["gold_in_training"], a["asked"], a["calls"]) == (False, 12, 12)
    contrasts = [(one["rule"], one["against"]) for one in figures["contrasts"]]
    assert contrasts == [(f"eldgr[{name}]", f"judge[{name}]") for name in "abc"]
    assert "judges alone and under the lock" in (tmp_path / "run" / "report.html").read_text()
    assert "eldgr[c]" in (tmp_path / "run" / "questions.html").read_text()


def test_each_judge_has_its_own_audit_as_the_run_of_that_judge_alone(pool: Path, tmp_path: Path) -> None:
    replies = {"a": VERDICT, "b": SECOND, "c": ConnectionError("away")}
    plan = Plan([pool], tmp_path / "run", max_failures="100%", judges=judges(*replies.values()))
    summary = evaluate(selector(), plan)
    figures: Any = summary["pools"]["capitals"]
    for name, reply in replies.items():
        single = selector()
        single.judge = judge_with(reply, name)[0]
        alone: Any = evaluate(single, Plan([pool], tmp_path / name, max_failures="100%"))["pools"]["capitals"]
        of = figures["judges"][name]
        assert (of["audit"], of["decided"]["outcomes"]) == (alone["audit"], alone["decided"]["outcomes"])
        assert [*of["decided"]["flips"].values()] == [*alone["decided"]["flips"].values()]
    counts = {name: (of["asked"], of["failed"]) for name, of in figures["judges"].items()}
    assert counts == {"a": (12, 0), "b": (12, 0), "c": (12, 12)}
    roles, record = summary["consultations"], json_of(tmp_path / "run" / "record.json")
    assert (roles["judge[a]"]["ok"], roles["judge[b]"]["ok"], roles["judge[c]"]["failed"]) == (12, 12, 12)
    assert {one["role"] for one in record["silences"]} >= {"judge[c]"} and "judge[b]" in record["fingerprints"]
    assert [figures["judges"][name]["audit"]["judge_overrides"] for name in replies] == [12, 0, 0]
    assert figures["audit"] == figures["judges"]["a"]["audit"]
    titles, page = [table.title for table in tables_of(summary)], (tmp_path / "run" / "report.html").read_text()
    for words in ("decision audit of", "what shipped, by decision and certificate, under"):
        for title in (f"{words} eldgr[{name}]" for name in replies):
            assert f"capitals: {title}" in titles and title in page


# -- frozen --
def test_a_freeze_fixes_the_judges_and_names_another_one(pool: Path, tmp_path: Path) -> None:
    rules, one = ("majority", "eldgr"), {"a": LexicalJudge()}
    freeze = write_freeze(heuristic_selector(), rules, tmp_path / "rule.freeze.json", one)
    assert set(read_freeze(freeze.path).content["roles"]) == {"judge[a]", "deriver", "repairer"}
    plan: dict[str, Any] = {"pools": [pool], "freeze": freeze.path, "out": tmp_path / "run"}
    two = Plan(rules=freeze.rules, judges={**one, "b": LexicalJudge()}, **plan)
    refuses(RunChangedError, r"judge\[b\]", evaluate, heuristic_selector(), two)
    message = r"'eldgr\[a\]' names a judge that this run does not have"
    refuses(ArgumentError, message, Plan, rules=freeze.rules, judges={"b": LexicalJudge()}, **plan)
    result = evaluate(heuristic_selector(), Plan(rules=freeze.rules, judges=one, **plan))
    assert set(result["pools"]["capitals"]["rules"]) == {"majority", "eldgr[a]"}
    assert isinstance(frozen_selector(freeze.path).judge, LexicalJudge)


def test_a_freeze_of_several_judges_ships_the_one_that_its_rule_names(tmp_path: Path) -> None:
    base, lm = selector_with(lambda request: VERDICT if role_of(request) == "judge" else NO_SPAN)
    by_name = {"words": LexicalJudge(), **judges(VERDICT), "own": Judge()}
    by_name["own"].set_lm(lm)
    freeze = write_freeze(base, ("majority", "eldgr"), tmp_path / "rule.freeze.json", by_name).path
    message = r"rule must be one of majority, .*eldgr\[own\]; got 'eldgr'. Give one"
    refuses(ArgumentError, message, frozen_selector, freeze)
    for name, judge in by_name.items():
        select = frozen_selector(freeze, rule=f"eldgr[{name}]", lm=None if name == "a" else lm)
        assert (select.rule, describe(select.judge)) == ("eldgr", describe(judge))
    pred = frozen_selector(freeze, rule="eldgr[own]", lm=lm)(**INPUTS)
    assert (pred.answer, pred.branch, pred.preference) == ("Paris", "judge", 2)
    assert frozen_selector(freeze, rule="majority").rule == "majority"
    refuses(RunChangedError, r"roles\.judge\[a\]", frozen_selector, freeze, rule="eldgr[a]", judge=LexicalJudge())
    one = write_freeze(base, ("judge", "eldgr"), tmp_path / "one.freeze.json", {"a": by_name["a"]}).path
    assert describe(frozen_selector(one, rule="judge").judge) == describe(by_name["a"])
    assert frozen_selector(one).rule == "eldgr"


# -- killed --
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a fork and a kill of POSIX")
def test_a_run_of_two_judges_that_was_killed_asks_nothing_twice(pool: Path, tmp_path: Path) -> None:
    journal, log = tmp_path / "run" / "journal.jsonl", tmp_path / "asked"

    def judging(name: str) -> Judge:
        def reply(request: Any) -> Any:
            with log.open("a") as file:
                file.write(f"{name}\n")
            time.sleep(0.01)
            return VERDICT

        return judge_with(reply, name)[0]

    plan = Plan([pool], tmp_path / "run", judges={name: judging(name) for name in "ab"})
    child = os.fork()
    if not child:
        evaluate(selector(), plan)
        os._exit(0)
    while not journal.exists() or journal.read_bytes().count(b'"role": "judge"') < 7:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    calls = sum(one.role == "judge" for one in read_journal(journal, on_tear=lambda _: None))
    before = len(log.read_text().split())
    evaluate(selector(), plan)
    assert before - calls in (0, 1)  # the call that was under way
    labels = Counter(one.label for one in read_journal(journal) if one.role == "judge")
    assert labels == {"judge[a]": 12, "judge[b]": 12}
    assert len(log.read_text().split()) == 24 + before - calls
