"""Judges that ask several times stand in the judge's place: the laws hold, sync and async, saved, and in a run."""

import hashlib
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs import judges
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import Line, ScriptedLM, scripted_lm, text_of
from eldgr_dspy.rule.questions import Question
from tests.asking.judge_modules import each_call, properties_of
from tests.public_strategies import questions
from tests.selecting import CONTESTED, PENS, SETTLED, awaiting, in_style, inputs_of, shipped_lawfully, with_judge

DEMO = Path(__file__).resolve().parents[2] / "artifacts" / "demo-retrieval.jsonl"

FAIR: dict[str, Callable[[], Any]] = {
    "swapped": lambda: judges.SwapConsistent(Judge()),
    "three orders": lambda: judges.SwapConsistent(Judge(), 3),
    "pairwise": judges.PairwiseJudge,
    "pairwise, both orders": lambda: judges.PairwiseJudge(judges.SwapConsistent(judges.Comparer())),
    "swapped pairwise": lambda: judges.SwapConsistent(judges.PairwiseJudge()),
    "pointwise": judges.PointwiseJudge,
    "slices": lambda: judges.SliceJudge(2),
    "checks": judges.PlanThenCheck,
    "panel": lambda: judges.Panel([Judge(), judges.PointwiseJudge(), judges.PairwiseJudge()]),
    "pairs of slices": lambda: judges.PairwiseJudge(judges.SliceJudge(2)),
    "chain of swaps": lambda: judges.SwapConsistent(judges.SwapConsistent(LexicalJudge())),
}
each_fair = pytest.mark.parametrize("name", FAIR)
CUT = Line("{", cut=True)
NEEDS_ALL = pytest.mark.parametrize("name", [name for name in FAIR if name not in ("panel", "chain of swaps")])
UNREADABLE = [("Certainly.", "unparsable: "), ({"checks": 1, "sound": 1}, "unparsable: "), (CUT, "cut off: ")]
BY_ITSELF = [(name, "Certainly.", dspy.AdapterParseError) for name in ("swapped", "pointwise", "slices", "checks")]
IN_PLACE = [(name, dspy.LMServerError("down"), dspy.LMError) for name in FAIR if name != "chain of swaps"]


def obliging(text: str, response: Any = None, first: int = 0, last: int = 0) -> Any:
    """An LM that prefers the candidate with this text, in whatever way it is asked, and finds no span.

    To the requests from `first`, before `last`, it says what is given.
    """
    numbers = count()

    def reply(request: Any) -> Any:
        if first <= next(numbers) < last:
            return response
        prompt = request.messages[-1].text or ""
        texts = [one.partition("</")[0] for one in re.split(r"<(?:candidate|slice) \d+ ", prompt)[1:]]
        index = next((number for number, one in enumerate(texts) if text in one), 0)
        return in_style(request, index, 0.9 if texts and text in texts[0] else 0.1, len(texts))

    return scripted_lm(reply)


@each_fair
@each_call
def test_every_judge_stands_in_the_judge_s_place(call: Any, name: str) -> None:
    with dspy.context(lm=obliging("Doha")):
        pred = call(with_judge(FAIR[name]()))(**CONTESTED)
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)


def number_of_calls(name: str) -> int:
    with dspy.context(lm=(lm := obliging("Doha"))):
        with_judge(FAIR[name]())(**CONTESTED)
    return len(lm.requests)


@NEEDS_ALL
@pytest.mark.parametrize(("reply", "reason"), UNREADABLE)
@each_call
def test_a_reply_that_cannot_be_read_is_an_abstention(call: Any, name: str, reply: Any, reason: str) -> None:
    """A judge that asks several times needs the last of its replies as it needs all of them."""
    requests_before = number_of_calls(name)
    for first in (0, requests_before - 1):
        with dspy.context(lm=obliging("Doha", reply, first, requests_before)):
            pred = call(with_judge(FAIR[name]()))(**CONTESTED)
        assert (pred.answer, pred.preference) == ("Dubai", None) and reason in pred.abstentions["judge"]


@pytest.mark.parametrize(("name", "reply", "error"), [*BY_ITSELF, *IN_PLACE])
@each_call
def test_what_a_judge_cannot_use_is_raised(call: Any, name: str, reply: Any, error: type[Exception]) -> None:
    n, make = number_of_calls(name), FAIR[name] if reply == "Certainly." else lambda: with_judge(FAIR[name]())
    for first in (0, n - 1):
        with dspy.context(lm=obliging("Doha", reply, first, n)), pytest.raises(error):
            call(make())(**CONTESTED)


@each_fair
def test_no_judge_is_asked_where_it_cannot_matter(name: str) -> None:
    with dspy.context(lm=(lm := obliging("Doha"))):
        with_judge(FAIR[name]())(**SETTLED)
        with_judge(FAIR[name]())(**PENS, evidence=None)
    assert all("derivation_steps" in properties_of(one) for one in lm.requests)


@each_fair
def test_a_fair_judge_is_saved_loaded_and_copied(name: str, tmp_path: Any) -> None:
    select = with_judge(FAIR[name]())
    for _, predictor in select.judge.named_predictors():
        predictor.demos = [dspy.Example(question="shown before")]
    select.save(tmp_path / "select.json")
    other = with_judge(FAIR[name]())
    other.load(tmp_path / "select.json")
    for twin in (other, select.deepcopy()):
        demos = [[dict(demo) for demo in one.demos] for one in twin.judge.predictors()]
        assert demos == [[{"question": "shown before"}] for _ in select.judge.predictors()]


def capricious(seed: int, span: str) -> ScriptedLM:
    """An LM that answers each request by a whim of its own: mostly as asked, always the same to the same request."""

    def reply(request: Any) -> Any:
        whim = int.from_bytes(hashlib.sha256(f"{seed}{text_of(request)}".encode(errors="replace")).digest()[:4])
        size = len(set(re.findall(r"<candidate (\d+) ", request.messages[-1].text or "")))
        index, scalar = whim % max(size, 1), whim % 11 / 10
        if whim % 13 == 0:
            return '{"preferred": true'
        return in_style(request, index, scalar, size, span)

    return scripted_lm(reply)


@each_fair
@settings(max_examples=10, deadline=None)
@given(question=questions("retrieval"), seed=st.integers(0, 999), span=st.sampled_from(("", "Paris", "1976")))
def test_the_laws_hold_with_every_judge_and_async_is_sync(name: str, question: Question, seed: int, span: str) -> None:
    select = with_judge(FAIR[name](), consult="always")
    with dspy.context(lm=capricious(seed, span)):
        pred = select(**inputs_of(question))
        assert awaiting(select.acall)(**inputs_of(question)).toDict() == pred.toDict()
    shipped_lawfully(pred, question, select.settings)


@pytest.mark.parametrize("options", [["--set", "orders=2"], ["--set", "judge_style=pairwise", "--set", "orders=2"]])
def test_the_command_keeps_its_style(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(DEMO), "--limit", "5", "--quiet", "--out", str(tmp_path / "run")]
    assert main([*command, *options]) == 0
    assert '"orders": [' in (tmp_path / "run" / "journal.jsonl").read_text("utf-8")
    assert main(command) == 1
    assert "judge" in capsys.readouterr().err
