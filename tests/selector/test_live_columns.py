"""A selector whose judge counts ballots reads the columns of live candidates; any other takes no notice of them."""

import math
from typing import Any

import dspy
import pytest

from eldgr_dspy import Sampled, Selector
from eldgr_dspy.programs.inputs import columns_of
from eldgr_dspy.programs.judges.counting_judges import OwnSelector, WeightedVote
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.ballots import Ballot
from tests.refusing import refused
from tests.selecting import CONTESTED, Answers, in_style

EVIDENCE = ["Doha is the capital of Qatar. Lusail is a city north of it."]
ANSWERS = ("Dubai", "Dubai", "Doha")
SURE = (0.1, 0.1, 0.9)
OTHER_KINDS = {"confidence": "high", "logprobs": [-0.5], "scores": 3, "tags": "cot"}
CHAT = {"content": [{"token": "Do", "logprob": -0.5}, {"token": "ha", "logprob": -1.5}]}


def silent(**_: Any) -> dspy.Prediction:
    return dspy.Prediction(abstained="not asked for here")


def selector(judge: Any) -> Any:
    select: Any = Selector()
    select.judge, select.repairer = judge, silent
    return select


def decided(select: Selector, candidates: Any) -> tuple[Any, str]:
    reply = select(question="What is the capital of Qatar?", candidates=candidates, evidence=EVIDENCE)
    return str(reply.answer), str(reply.branch)


KINDS: dict[str, Any] = {"mappings": dict, "examples": dspy.Example, "predictions": dspy.Prediction}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_confidences_are_counted_of_every_kind_of_candidate_and_refused_only_by_who_counts(kind: Any) -> None:
    """Two of .1 weigh 2 exp(.1) = 2.21, and one of .9 weighs exp(.9) = 2.46."""
    pool = [kind(answer=answer, confidence=sure) for answer, sure in zip(ANSWERS, SURE, strict=True)]
    completions = dspy.Prediction.from_completions({"answer": [*ANSWERS], "confidence": [*SURE]})
    for given in (pool, completions):
        assert decided(selector(WeightedVote("cisc")), given) == ("Doha", "judge")
        assert decided(selector(silent), given) == ("Dubai", "consensus")
    pool = [kind(answer="Dubai", confidence=0.5), kind(answer="Doha", confidence="high")]
    assert refused(lambda: decided(selector(WeightedVote("cisc")), pool)) == (
        "candidates[1].confidence must be a number from 0 to 1; got 'high'. Divide a percentage by 100, or leave it "
        "out."
    )
    assert decided(selector(silent), pool) == ("Dubai", "consensus")


def test_the_plain_judge_takes_candidates_with_fields_of_any_kind() -> None:
    pool = [{**OTHER_KINDS, "answer": answer} for answer in CONTESTED["candidates"]]
    for given in (pool, [dspy.Example(**one) for one in pool], [dspy.Prediction(**one) for one in pool]):
        with dspy.context(lm=scripted_lm(lambda request: in_style(request, 2, 0.5, n=3))):
            reply = Selector()(**{**CONTESTED, "candidates": given})
        assert (reply.answer, reply.branch) == ("Doha", "judge")


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([{"answer": "Dubai", "confidence": 0.5}, {"answer": "Doha"}], "no confidence is stated of candidate 1"),
        ([*ANSWERS], "not applicable: the pool states no confidence"),
    ],
)
def test_a_missing_confidence_is_an_abstention_and_never_a_number(candidates: Any, message: str) -> None:
    pred = selector(WeightedVote("cisc"))(question="?", candidates=candidates, evidence=EVIDENCE)
    assert (pred.answer, pred.abstentions["judge"]) == ("Dubai", message)


def test_all_columns_reach_the_ballot() -> None:
    seen: list[Ballot] = []

    def choose(ballot: Ballot) -> int:
        seen.append(ballot)
        return 0

    full = {"confidence": 0.5, "logprobs": CHAT, "scores": {"prm": (0.5, 1)}, "tags": ["cot"]}
    decided(selector(OwnSelector(choose)), [{"answer": "Dubai"}, {"answer": "Doha", **full}])
    bare, stated = seen[0].stated
    assert (bare.confidence, bare.logprobs, bare.scores, bare.tags) == (None, None, {}, ())
    assert (stated.confidence, stated.scores, stated.tags) == (0.5, {"prm": [0.5, 1.0]}, ("cot",))
    assert stated.logprobs is not None
    assert (stated.logprobs.mean, stated.logprobs.least, stated.logprobs.answer) == (-1.0, -1.5, None)
    assert stated.logprobs.probability == pytest.approx((math.exp(-0.5) + math.exp(-1.5)) / 2, rel=1e-15)


def test_the_columns_of_candidates_are_read_one_by_one() -> None:
    first, second = columns_of(["Dubai", {"answer": "Doha", "confidence": 1}], "answer")
    assert (first.confidence, second.confidence) == (None, 1.0)


def sampled(judge: Any, *said: dict[str, Any]) -> dspy.Prediction:
    predictions = [dspy.Prediction(**one) for one in said]
    program = Sampled(Answers(*predictions), n=len(said), select=selector(judge), num_threads=1)
    result: dspy.Prediction = program(question="What is the capital of Qatar?", evidence=EVIDENCE)
    return result


def test_a_sampled_program_hands_its_columns_on_and_log_probabilities_as_dspy_returns_them() -> None:
    replies = [{"answer": answer, "confidence": sure} for answer, sure in zip(ANSWERS, SURE, strict=True)]
    result = sampled(WeightedVote("cisc"), *replies)
    assert (result.answer, result.branch, result.confidence) == ("Doha", "judge", 0.9)
    certain, unsure = ({"content": [{"token": "x", "logprob": logprob}]} for logprob in (0.0, -3.0))
    probable = [{"answer": "Dubai", "logprobs": unsure}] * 2 + [{"answer": "Doha", "logprobs": certain}]
    assert sampled(WeightedVote("soft_sc"), *probable).answer == "Doha"


def test_a_sample_whose_column_cannot_be_used_fails_alone() -> None:
    """As one without the answer's field does; a judge that does not count takes it."""
    replies: list[dict[str, Any]] = [
        {"answer": "Dubai", "confidence": 0.1},
        {"answer": "Dubai", "confidence": 90},
        {"answer": "Doha", "confidence": 0.9},
    ]
    result = sampled(WeightedVote("cisc"), *replies)
    assert result.answer == "Doha"
    (failed,) = result.failed_samples
    assert failed["sample"] == 1
    assert "confidence must be a number from 0 to 1; got 90." in failed["error"]
    assert sampled(silent, *replies).failed_samples == []
