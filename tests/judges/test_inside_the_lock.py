"""Judges that ask no LM, inside the lock: what they read of candidates, and that the rule decides as on any judge."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eldgr_dspy import Sampled
from eldgr_dspy.programs.inputs import columns_of, to_question
from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.counting_judges import BestOf, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.lms.consulting import aask
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, scripted_lm
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import ballot_of
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import read_reply
from tests.capitals import row, write_pool
from tests.deciding import SILENT as REPLIES
from tests.deciding import decide_case
from tests.judges.balloting import ballot
from tests.modules import Answers
from tests.refusing import refusal, says
from tests.scenes import ABSTAINS, CONTESTED, in_style
from tests.selecting import select_acall, selector_of

Maker = Callable[[Path], dspy.Module]


def train(folder: Path) -> PipelineSelector:
    made_by = [{"source": "one"}, {"source": "one"}, {"source": "two"}]
    rows = [row(number) for number in range(3)]
    for one in rows:
        one["candidates"] = [{**candidate, **of} for candidate, of in zip(one["candidates"], made_by, strict=True)]
    return PipelineSelector(write_pool(folder / "train.jsonl", rows))


JUDGES: Mapping[str, Maker] = {
    "best_of_n": lambda _: WeightedVote("best_of_n:prm"),
    "cisc": lambda _: WeightedVote("cisc:0.2"),
    "soft_sc": lambda _: WeightedVote("soft_sc"),
    "drm": lambda _: DimensionalSelector(),
    "reward": lambda _: BestOf(lambda example, pred: -len(pred.text)),
    "own": lambda _: OwnSelector(lambda votes: len(votes.answers) - 1),
    "autodspy": train,
}

tenths = st.integers(0, 10).map(lambda n: n / 10)
rivals = st.lists(st.sampled_from(("Doha", "Lusail", "Doha", "dubai", "yes", None)), min_size=1, max_size=3)
evidences = st.sampled_from((["Doha"], ["Lusail", "Doha"], ["Doha"], ["Lusail"], ["Doha", "Dubai"], []))
negative = tenths.map(lambda n: -n)
logprobs = st.fixed_dictionaries({"probability": tenths, "reasoning": negative, "answer": negative})
SCORES = ("prm", "relevance", "coherence")
scores = st.fixed_dictionaries(dict.fromkeys(SCORES, tenths))
columns = st.fixed_dictionaries(
    {"source": st.sampled_from(("one", "two", "two", "three"))},
    optional={"confidence": tenths, "logprobs": logprobs, "scores": scores},
)
NUMBERS = {"probability": 0.2, "reasoning": -0.8, "answer": -0.8}
WHOLE: dict[str, Any] = {"confidence": 0.2, "logprobs": NUMBERS, "scores": dict.fromkeys(SCORES, 0.2), "source": "one"}


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a question in which consensus (Dubai) is mostly uncertified and a rival certified; few lack a column."""
    candidates: list[dict[str, Any]] = [
        *({"answer": "Dubai", **WHOLE} for _ in range(2)),
        *({"answer": name, **WHOLE, **draw(columns)} for name in draw(rivals)),
    ]
    for name in draw(st.sampled_from(((), (), (), tuple(WHOLE)))):
        candidates[-1].pop(name)
    return {"question": "Which?", "candidates": candidates, "evidence": [f"It is {name}." for name in draw(evidences)]}


@pytest.fixture(params=JUDGES)
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> dspy.Module:
    return JUDGES[request.param](tmp_path)


def selector(judge: Any, **options: Any) -> Selector:
    return selector_of(judge, ABSTAINS, ABSTAINS, **options)


def case_of(inputs: Mapping[str, Any]) -> Case:
    return Case(partial(to_question, answer="short", answer_field="answer", columns=True)(**inputs), Settings())


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs=questions(), rule=st.sampled_from(("eldgr", "eldgr", "judge")))
def test_what_ships_is_what_the_rule_decides_on_it(judge: dspy.Module, inputs: dict[str, Any], rule: str) -> None:
    """Awaited it decides the same."""
    pred = selector(judge, rule=rule)(**inputs)
    case = case_of(inputs)
    response = judge(ballot=ballot_of(case))
    reply = read_reply("judge", response.toDict(), case.question.answers, len(case.question.passages))
    expected, replies = decide_case(case, {**REPLIES, "judge": reply}, rule)
    assert (pred.answer, pred.branch, pred.certified) == (expected.answer, expected.branch, expected.certified)
    assert ("judge" in pred.consulted) is ("judge" in replies)
    if "judge" in replies:
        assert pred.preference == (reply.preferred if isinstance(reply, Verdict) else None)
        assert pred.abstentions.get("judge") == (reply.reason if isinstance(reply, Abstention) else None)
    if rule == "eldgr" and case.certificate(case.consensus).certified:
        assert pred.answer == pred.consensus
    if rule == "eldgr" and pred.branch == "judge":
        assert case.certificate(pred.answer).certified
    select = selector(judge, consult="always")
    assert select_acall(select, inputs).toDict() == select(**inputs).toDict()


def test_the_laws_hold_and_dspy_warns_of_nothing_when_it_is_awaited(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a candidate that votes it abstains."""
    warnings: list[str] = []
    monkeypatch.setattr(logging.getLogger("dspy.primitives.module"), "warning", lambda text, *_: warnings.append(text))
    votes = ballot_of(case_of({"question": "Which?", "candidates": ["Dubai"], "evidence": []}))
    reply = asyncio.run(aask(judge, {"ballot": votes}, "judge")).content
    assert (warnings, "abstained" in reply or "preferred" in reply) == ([], True)
    assert judge(ballot=ballot("--")).abstained == "there is no candidate to judge"
    counts = check_selector(selector(judge), max_examples=2)
    assert counts["certified_consensus_is_final"] and counts["sync_equals_async_equals_batch_equals_replay"]


def test_a_preference_without_a_certificate_stays_one_and_a_column_that_cannot_be_used_is_refused() -> None:
    """The judge is sure of Lusail, which no passage mentions; of Doha it is right."""
    sure = [{"answer": name, "confidence": c} for name, c in (("Dubai", 0.1), ("Dubai", 0.1), ("Lusail", 0.9))]
    inputs: dict[str, Any] = {"question": "Which?", "candidates": sure, "evidence": ["It is Doha."]}
    select = selector(WeightedVote("cisc:0.1"), consult="always")
    pred = select(**inputs)
    assert (pred.answer, pred.branch, pred.preference) == ("Dubai", "consensus", 2)
    pred = select(**{**inputs, "candidates": [*sure[:2], {"answer": "Doha", "confidence": 0.9}]})
    assert (pred.answer, pred.branch) == ("Doha", "judge")
    counting: Any = selector(WeightedVote("cisc"))
    for column, value, message in (
        ("confidence", 1.5, "candidates[1].confidence must be a number from 0 to 1; got 1.5..."),
        ("scores", {"prm": float("nan")}, "candidates[1].scores must have under..."),
    ):
        candidates = [{"answer": "Dubai"}, {"answer": "Doha", column: value}]
        inputs = {**inputs, "candidates": candidates}
        assert says(message, refusal(partial(counting, **inputs)))
        assert selector(ABSTAINS)(**inputs).answer == "Dubai"


EVIDENCE = ["Doha is the capital of Qatar. Lusail is a city north of it."]
ANSWERS = ("Dubai", "Dubai", "Doha")
SURE = (0.1, 0.1, 0.9)
OTHER_KINDS = {"confidence": "high", "logprobs": [-0.5], "scores": 3, "tags": "cot"}
CHAT = {"content": [{"token": "Do", "logprob": -0.5}, {"token": "ha", "logprob": -1.5}]}


def ship(select: Selector, candidates: Any) -> tuple[Any, str]:
    reply = select(question="What is the capital of Qatar?", candidates=candidates, evidence=EVIDENCE)
    return str(reply.answer), str(reply.branch)


@pytest.mark.parametrize("kind", [dict, dspy.Example, dspy.Prediction])
def test_confidences_are_counted_of_every_kind_of_candidate_and_refused_only_by_who_counts(kind: Any) -> None:
    """Two of .1 weigh 2 exp(.1) = 2.21, and one of .9 weighs exp(.9) = 2.46."""
    pool = [kind(answer=answer, confidence=sure) for answer, sure in zip(ANSWERS, SURE, strict=True)]
    completions = dspy.Prediction.from_completions({"answer": [*ANSWERS], "confidence": [*SURE]})
    silent: Any = Selector()
    silent.judge = silent.repairer = lambda **_: dspy.Prediction(**ABSTAINS)  # a function may play a role
    for candidates in (pool, completions):
        assert ship(selector(WeightedVote("cisc")), candidates) == ("Doha", "judge")
        assert ship(silent, candidates) == ("Dubai", "consensus")
    pool = [kind(answer="Dubai", confidence=0.5), kind(answer="Doha", confidence="high")]
    sentence = "candidates[1].confidence must be a number from 0 to 1; got 'high'. Divide a percentage by 100, or "
    assert refusal(lambda: ship(selector(WeightedVote("cisc")), pool)) == f"{sentence}leave it out."
    assert ship(silent, pool) == ("Dubai", "consensus")


def test_the_plain_judge_takes_any_fields_and_a_missing_confidence_is_an_abstention() -> None:
    pool = [{**OTHER_KINDS, "answer": answer} for answer in CONTESTED["candidates"]]
    for candidates in (pool, [dspy.Example(**one) for one in pool], [dspy.Prediction(**one) for one in pool]):
        with dspy.context(lm=scripted_lm(lambda request: in_style(request, 2, 0.5, n=3))):
            reply = Selector()(**{**CONTESTED, "candidates": candidates})
        assert (reply.answer, reply.branch) == ("Doha", "judge")
    lacking = [{"answer": "Dubai", "confidence": 0.5}, {"answer": "Doha"}]
    for candidates, message in (
        (lacking, "no confidence is stated of candidate 1"),
        ([*ANSWERS], "not applicable: the pool states no confidence"),
    ):
        pred = selector(WeightedVote("cisc"))(question="?", candidates=candidates, evidence=EVIDENCE)
        assert (pred.answer, pred.abstentions["judge"]) == ("Dubai", message)


def test_all_columns_reach_the_ballot_and_a_sampled_program_hands_them_on() -> None:
    """A sample whose column cannot be used fails alone; a judge that counts nothing takes it."""
    ballots: list[Ballot] = []
    full = {"confidence": 0.5, "logprobs": CHAT, "scores": {"prm": (0.5, 1)}, "tags": ["cot"]}
    judge = OwnSelector(ballots.append)  # type: ignore[arg-type]
    ship(selector(judge), [{"answer": "Dubai"}, {"answer": "Doha", **full}])
    bare, whole = ballots[0].stated
    assert (bare.confidence, bare.logprobs, bare.scores, bare.tags) == (None, None, {}, ())
    assert (whole.confidence, whole.scores, whole.tags) == (0.5, {"prm": [0.5, 1.0]}, ("cot",))
    assert whole.logprobs is not None
    assert (whole.logprobs.mean, whole.logprobs.least, whole.logprobs.answer) == (-1.0, -1.5, None)
    assert whole.logprobs.probability == pytest.approx((math.exp(-0.5) + math.exp(-1.5)) / 2, rel=1e-15)
    first, second = columns_of(["Dubai", {"answer": "Doha", "confidence": 1}], "answer")
    assert (first.confidence, second.confidence) == (None, 1.0)
    replies: list[Any] = [{"answer": answer, "confidence": sure} for answer, sure in zip(ANSWERS, SURE, strict=True)]
    result = sample(WeightedVote("cisc"), *replies)
    assert (result.answer, result.branch, result.confidence) == ("Doha", "judge", 0.9)
    certain, unsure = ({"content": [{"token": "x", "logprob": logprob}]} for logprob in (0.0, -3.0))
    probable = [{"answer": "Dubai", "logprobs": unsure}] * 2 + [{"answer": "Doha", "logprobs": certain}]
    assert sample(WeightedVote("soft_sc"), *probable).answer == "Doha"
    replies[1] = {"answer": "Dubai", "confidence": 90}
    result = sample(WeightedVote("cisc"), *replies)
    (failure,) = result.failed_samples
    assert (result.answer, failure["sample"]) == ("Doha", 1)
    assert "confidence must be a number from 0 to 1; got 90." in failure["error"]
    assert sample(ABSTAINS, *replies).failed_samples == []


def sample(judge: Any, *values: dict[str, Any]) -> Any:
    program = Sampled(Answers(*(dspy.Prediction(**one) for one in values)), len(values), selector(judge), num_threads=1)
    return program(question="What is the capital of Qatar?", evidence=EVIDENCE)
