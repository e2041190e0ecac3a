"""Judges that ask no LM, inside the lock: whatever they prefer, the rule decides on it as on any judge's preference."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.counting_judges import BestOf, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.lms.consulting import aask
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import ballot_of
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import read_reply
from tests.capitals import row, write_pool
from tests.deciding import SILENT as REPLIES
from tests.deciding import decided
from tests.judges.balloting import ballot
from tests.selecting import selector_of

Maker = Callable[[Path], dspy.Module]
ABSTAINING = {"abstained": "not asked for here"}


def trained(folder: Path) -> PipelineSelector:
    made_by = [{"source": "one"}, {"source": "one"}, {"source": "two"}]
    rows = [row(number) for number in range(3)]
    for one in rows:
        one["candidates"] = [{**given, **of} for given, of in zip(one["candidates"], made_by, strict=True)]
    return PipelineSelector(write_pool(folder / "train.jsonl", rows))


JUDGES: Mapping[str, Maker] = {
    "best_of_n": lambda _: WeightedVote("best_of_n:prm"),
    "cisc": lambda _: WeightedVote("cisc:0.2"),
    "soft_sc": lambda _: WeightedVote("soft_sc"),
    "drm": lambda _: DimensionalSelector(),
    "reward": lambda _: BestOf(lambda example, pred: -len(pred.text)),
    "own": lambda _: OwnSelector(lambda counted: len(counted.answers) - 1),
    "autodspy": trained,
}

tenths = st.integers(0, 10).map(lambda n: n / 10)
logprobs = st.fixed_dictionaries(
    {"probability": tenths, "reasoning": tenths.map(lambda n: -n), "answer": tenths.map(lambda n: -n)}
)
columns = st.fixed_dictionaries(
    {"source": st.sampled_from(("one", "two", "two", "three"))},
    optional={
        "confidence": tenths,
        "logprobs": logprobs,
        "scores": st.fixed_dictionaries(dict.fromkeys(("prm", "relevance", "coherence"), tenths)),
    },
)


rivals = st.lists(st.sampled_from(("Doha", "Lusail", "Doha", "dubai", "yes", None)), min_size=1, max_size=3)
shown = st.sampled_from((["Doha"], ["Lusail", "Doha"], ["Doha"], ["Lusail"], ["Doha", "Dubai"], []))
WHOLE: Mapping[str, Any] = {
    "confidence": 0.2,
    "logprobs": {"probability": 0.2, "reasoning": -0.8, "answer": -0.8},
    "scores": {"prm": 0.2, "relevance": 0.2, "coherence": 0.2},
    "source": "one",
}


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a question in which consensus (Dubai) is mostly uncertified and a rival certified; few lack a column."""
    candidates: list[dict[str, Any]] = [
        *({"answer": "Dubai", **WHOLE} for _ in range(2)),
        *({"answer": name, **WHOLE, **draw(columns)} for name in draw(rivals)),
    ]
    for name in draw(st.sampled_from(((), (), (), tuple(WHOLE)))):
        candidates[-1].pop(name)
    return {"question": "Which?", "candidates": candidates, "evidence": [f"It is {name}." for name in draw(shown)]}


@pytest.fixture(params=JUDGES)
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> dspy.Module:
    return JUDGES[request.param](tmp_path)


def selector(judge: dspy.Module, **options: Any) -> Selector:
    return selector_of(judge, ABSTAINING, ABSTAINING, **options)


def case_of(inputs: Mapping[str, Any]) -> Case:
    return Case(partial(to_question, answer="short", answer_field="answer", columns=True)(**inputs), Settings())


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs=asked(), rule=st.sampled_from(("eldgr", "eldgr", "judge")))
def test_what_ships_is_what_the_rule_decides_on_it(judge: dspy.Module, inputs: dict[str, Any], rule: str) -> None:
    pred = selector(judge, rule=rule)(**inputs)
    case = case_of(inputs)
    response = judge(ballot=ballot_of(case))
    reply = read_reply("judge", response.toDict(), case.question.answers, len(case.question.passages))
    expected, heard = decided(case, {**REPLIES, "judge": reply}, rule)
    assert (pred.answer, pred.branch, pred.certified) == (expected.answer, expected.branch, expected.certified)
    assert ("judge" in pred.consulted) is ("judge" in heard)
    if "judge" in heard:
        assert pred.preference == (reply.preferred if isinstance(reply, Verdict) else None)
        assert pred.abstentions.get("judge") == (reply.reason if isinstance(reply, Abstention) else None)
    if rule == "eldgr" and case.certificate(case.consensus).certified:
        assert pred.answer == pred.consensus
    if rule == "eldgr" and pred.branch == "judge":
        assert case.certificate(pred.answer).certified


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs=asked())
def test_awaited_it_decides_the_same(judge: dspy.Module, inputs: dict[str, Any]) -> None:
    select = selector(judge, consult="always")
    assert asyncio.run(select.acall(**inputs)).toDict() == select(**inputs).toDict()


def test_dspy_warns_of_nothing_when_it_is_awaited(judge: dspy.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(
        logging.getLogger("dspy.primitives.module"), "warning", lambda response, *_: warned.append(response)
    )
    counted = ballot_of(case_of({"question": "Which?", "candidates": ["Dubai"], "evidence": []}))
    reply = asyncio.run(aask(judge, {"ballot": counted}, "judge")).content
    assert (warned, "abstained" in reply or "preferred" in reply) == ([], True)


def test_without_a_candidate_that_votes_it_abstains(judge: dspy.Module) -> None:
    assert judge(ballot=ballot("--")).abstained == "there is no candidate to judge"


def test_the_laws_of_a_selector_hold(judge: dspy.Module) -> None:
    tried = check_selector(selector(judge), max_examples=2)
    assert tried["certified_consensus_is_final"] and tried["sync_equals_async_equals_batch_equals_replay"]


# -- what a judge is shown --
def test_a_preference_without_a_certificate_stays_a_preference() -> None:
    """The judge is sure of Lusail, which no passage mentions; of Doha it is right."""
    sure = [{"answer": name, "confidence": c} for name, c in (("Dubai", 0.1), ("Dubai", 0.1), ("Lusail", 0.9))]
    inputs: dict[str, Any] = {"question": "Which?", "candidates": sure, "evidence": ["It is Doha."]}
    select = selector(WeightedVote("cisc:0.1"), consult="always")
    pred = select(**inputs)
    assert (pred.answer, pred.branch, pred.preference) == ("Dubai", "consensus", 2)
    pred = select(**{**inputs, "candidates": [*sure[:2], {"answer": "Doha", "confidence": 0.9}]})
    assert (pred.answer, pred.branch) == ("Doha", "judge")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("confidence", 1.5, r"candidates\[1\].confidence must be a number from 0 to 1; got 1.5"),
        ("scores", {"prm": float("nan")}, r"candidates\[1\].scores must have under"),
    ],
)
def test_a_column_that_cannot_be_used_is_refused_by_who_reads_it(column: str, value: Any, message: str) -> None:
    inputs: dict[str, Any] = {
        "question": "Which?",
        "candidates": [{"answer": "Dubai"}, {"answer": "Doha", column: value}],
        "evidence": ["It is Doha."],
    }
    with pytest.raises(ValueError, match=message):
        selector(WeightedVote("cisc"))(**inputs)
    assert selector_of(ABSTAINING, ABSTAINING, ABSTAINING)(**inputs).answer == "Dubai"
