"""The selector in the style of AutoDSPy: what it learns, what it ships on unseen questions, what it refuses."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.named import judge_named
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.rule.ballots import Stated
from tests.capitals import row, write_pool
from tests.judges.balloting import ballot, majority
from tests.refusing import refused, says
from tests.scenes import SILENT
from tests.selecting import selector_of

TOPICS = ("the wall", "the bridge", "the harbour", "the tower", "the abbey", "the mill", "the canal", "the market")
SEEN, UNSEEN = TOPICS[:5], TOPICS[5:]
# Right where the question says "when"; right elsewhere; always wrong, and twice, so that it is majority.
WHEN, ELSE, NEVER = {"tags": ["cot", "retrieve"], "source": "cot"}, {"source": "react"}, {"source": "direct"}
MADE_BY: Sequence[Mapping[str, Any]] = (WHEN, ELSE, NEVER, NEVER)


def questions(topics: Sequence[str]) -> list[str]:
    return [f"{asked} {topic}?" for topic in topics for asked in ("When did they build", "Who paid for")]


def answers(question: str) -> tuple[str, str, str, str]:
    return ("Right", "Wrong", "Noise", "Noise") if "When" in question else ("Wrong", "Right", "Noise", "Noise")


def rows(topics: Sequence[str], made_by: Sequence[Mapping[str, Any]] = MADE_BY, **changes: Any) -> list[Any]:
    """The questions about these topics; each candidate is right, wrong or noise."""
    changes = {"evidence": [{"text": "Right it is."}], "gold": ["Right"], **changes}
    result = []
    for number, question in enumerate(questions(topics)):
        candidates = [{"answer": a, **of} for a, of in zip(answers(question), made_by, strict=True)]
        result.append(row(number, question=question, candidates=candidates, **changes))
    return result


STATED = [Stated(tags=tuple(of.get("tags", ())), source=of.get("source")) for of in MADE_BY]


@pytest.fixture
def trained(tmp_path: Path) -> PipelineSelector:
    return PipelineSelector(write_pool(tmp_path / "train.jsonl", rows(SEEN)))


def preferred(judge: PipelineSelector, question: str, stated: Sequence[Stated] = STATED) -> int:
    return int(judge(ballot=ballot("abcc", stated, question)).preferred)


def test_the_policy_is_right_on_unseen_questions_and_majority_is_not(trained: PipelineSelector) -> None:
    held_out = questions(UNSEEN)
    chosen = [preferred(trained, question) for question in held_out]
    assert [answers(q)[index] for q, index in zip(held_out, chosen, strict=True)] == ["Right"] * len(held_out)
    assert set(chosen) == {0, 1}  # no single source is as good
    assert majority(ballot("abcc")) == "c"


def test_training_is_the_same_every_time_and_learns_from_questions_that_differ(tmp_path: Path) -> None:
    """The advantage is a reward minus the group's mean: ten easy questions do not make up for the one that differs."""
    easy = [{**row, "candidates": [{"answer": "Right", "source": "easy"}]} for row in rows(SEEN)]
    both = [{"answer": "Wrong", "source": "easy"}, {"answer": "Right", "source": "hard"}]
    hard = {**rows(UNSEEN)[1], "id": "hard", "candidates": both}
    judge = PipelineSelector(write_pool(tmp_path / "easy.jsonl", [*easy, hard]))
    stated = [Stated(source="easy"), Stated(source="hard")]
    asked = [judge(ballot=ballot("ab", stated, question)).preferred for question in questions(UNSEEN[1:])]
    assert asked == [1] * len(asked)
    pool = write_pool(tmp_path / "train.jsonl", rows(SEEN))
    turned = [{**row, "candidates": row["candidates"][::-1]} for row in rows(SEEN)]
    judges = [PipelineSelector(path) for path in (pool, pool, write_pool(tmp_path / "turned.jsonl", turned))]
    assert describe(judges[0]) == describe(judges[1]) != describe(judges[2])
    replies = [[preferred(judge, question) for question in questions(UNSEEN)] for judge in judges]
    assert replies[0] == replies[1] == replies[2]
    # A pipeline is its tags in any order, and else its source.
    turned = rows(SEEN, [{"tags": ["retrieve", "cot"], "source": "x"}, *MADE_BY[1:]])
    judge = PipelineSelector(write_pool(tmp_path / "tags.jsonl", turned))
    assert judge.pipelines == judges[0].pipelines == ["cot+retrieve", "direct", "react"]
    other_source = [Stated(tags=("cot", "retrieve"), source="react"), *STATED[1:]]
    assert [preferred(judge, question, other_source) for question in questions(UNSEEN)[:2]] == [0, 1]


def test_the_earliest_candidate_of_a_pipeline_that_votes_is_preferred(trained: PipelineSelector) -> None:
    """A pipeline that was not trained is not preferred, and a candidate that does not vote needs no tags."""
    question = questions(UNSEEN)[0]
    reply = trained(ballot=ballot("a-bc", [STATED[1], STATED[0], STATED[0], STATED[0]], question))
    assert (reply.preferred, reply.judge_rationale) == (2, "the policy prefers cot+retrieve")
    assert trained(ballot=ballot("ab", [Stated(source="new"), STATED[2]], question)).preferred == 1
    assert trained(ballot=ballot("-a", [Stated(), STATED[0]], question)).preferred == 1
    none = "not applicable: the pool states no tags or sources"
    new = "not applicable: no pipeline of the pool was trained"
    for stated, reason in (
        ([Stated(), Stated(confidence=0.5)], none),
        ([Stated(source="new"), Stated(tags=("newer",))], new),
        ([STATED[0], Stated()], "no tags or source are stated of candidate 1"),
    ):
        reply = trained(ballot=ballot("ab", stated, questions(UNSEEN)[0]))
        assert (reply.abstained, "preferred" in reply) == (reason, False)


@pytest.mark.parametrize("change", [str, str.upper, lambda text: f"  {text} "])
def test_a_selector_abstains_on_a_question_of_the_training_pool(trained: PipelineSelector, change: Any) -> None:
    select = selector_of(trained)
    row = rows(SEEN)[0]
    pred = select(question=change(row["question"]), candidates=row["candidates"], evidence=["Right it is."])
    assert (pred.answer, pred.branch) == ("Noise", "consensus")
    assert pred.abstentions["judge"] == "the selector was trained on this question"
    other = rows(UNSEEN)[0]
    pred = select(question=other["question"], candidates=other["candidates"], evidence=["Right it is."])
    assert (pred.answer, pred.branch) == ("Right", "judge")


@pytest.mark.parametrize("named", [True, False])
def test_a_run_on_questions_of_its_training_is_refused(trained: PipelineSelector, named: bool, tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "test.jsonl", rows(TOPICS[4:]))
    select = selector_of(SILENT if named else trained)
    plan = Plan([pool], tmp_path / "run", judges={"policy": trained} if named else {})
    message = refused(lambda: evaluate(select, plan))
    assert re.search(r"trained on 2 of the 8 questions of .*test\.jsonl", message)
    assert ("policy" in message) is named
    assert "eldgr pool split" in message
    assert not (tmp_path / "run").exists()


def test_a_run_on_other_questions_is_right_on_all_of_them(trained: PipelineSelector, tmp_path: Path) -> None:
    plan = Plan([write_pool(tmp_path / "test.jsonl", rows(UNSEEN))], tmp_path / "run", judges={"policy": trained})
    result: Any = evaluate(selector_of(SILENT), plan)["pools"]["test"]
    em = {rule: of["em"] for rule, of in result["rules"].items()}
    assert (em["judge[policy]"], em["eldgr[policy]"], em["majority"]) == (100.0, 100.0, 0.0)
    facts = {name: result["judges"]["policy"][name] for name in ("gold_in_training", "logprobs", "positioned")}
    assert facts == {"gold_in_training": True, "logprobs": False, "positioned": True}
    assert "trained_questions" not in json.dumps(describe(trained))


def test_a_pool_without_right_answers_with_one_pipeline_or_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for questions_of, message in (
        (rows(SEEN, gold=[]), "...train.jsonl must have right answers to train on; give a pool with gold..."),
        (
            rows(SEEN, [{"source": "direct"}] * 4),
            "...candidates of at least two pipelines, in tags or source; got 1...",
        ),
        (rows(SEEN, [{}] * 4), "...candidates of at least two pipelines, in tags or source; got 0..."),
    ):
        pool = write_pool(tmp_path / "train.jsonl", questions_of)
        assert says(message, refused(partial(PipelineSelector, pool)))
    with pytest.raises(PoolError, match=r"none\.jsonl"):
        judge_named(f"autodspy:{tmp_path / 'none.jsonl'}")
    for name in ("autodspy:", "autodspy"):
        message = refused(partial(judge_named, name))
        assert says("...autodspy must name a training pool; got ''. Write autodspy:FILE...", message)
