"""The selector in the style of AutoDSPy: what it learns, what it ships on unseen questions, what it refuses."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.named import judge_named
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.rule.ballots import Stated
from tests.capitals import write_pool
from tests.judges.balloting import ballot, majority
from tests.refusing import refused
from tests.selecting import SILENT, selector_of

TOPICS = ("the wall", "the bridge", "the harbour", "the tower", "the abbey", "the mill", "the canal", "the market")
SEEN, UNSEEN = TOPICS[:5], TOPICS[5:]
MADE_BY: Sequence[Mapping[str, Any]] = (
    {"tags": ["cot", "retrieve"], "source": "cot"},  # right where the question says "when"
    {"source": "react"},  # right elsewhere
    {"source": "direct"},  # always wrong, and twice, so that it is majority
    {"source": "direct"},
)


def questions(topics: Sequence[str]) -> list[str]:
    return [f"{asked} {topic}?" for topic in topics for asked in ("When did they build", "Who paid for")]


def answers(question: str) -> tuple[str, str, str, str]:
    """What each of the candidates says: Right, Wrong or Noise."""
    return ("Right", "Wrong", "Noise", "Noise") if "When" in question else ("Wrong", "Right", "Noise", "Noise")


def rows(topics: Sequence[str], made_by: Sequence[Mapping[str, Any]] = MADE_BY, **changes: Any) -> list[Any]:
    return [
        {
            "id": f"q{number}",
            "question": question,
            "task": "retrieval",
            "candidates": [{"answer": a, **of} for a, of in zip(answers(question), made_by, strict=True)],
            "evidence": [{"text": "Right it is."}],
            "gold": ["Right"],
            **changes,
        }
        for number, question in enumerate(questions(topics))
    ]


STATED = [Stated(tags=tuple(of.get("tags", ())), source=of.get("source")) for of in MADE_BY]


@pytest.fixture
def trained(tmp_path: Path) -> PipelineSelector:
    return PipelineSelector(write_pool(tmp_path / "train.jsonl", rows(SEEN)))


def preferred(judge: PipelineSelector, question: str, stated: Sequence[Stated] = STATED) -> int:
    return int(judge(ballot=ballot("abcc", stated, question)).preferred)


# -- what it learns --
def test_the_policy_is_right_on_unseen_questions_and_majority_is_not(trained: PipelineSelector) -> None:
    held_out = questions(UNSEEN)
    chosen = [preferred(trained, question) for question in held_out]
    assert [answers(q)[index] for q, index in zip(held_out, chosen, strict=True)] == ["Right"] * len(held_out)
    assert set(chosen) == {0, 1}  # no single source is as good
    assert majority(ballot("abcc")) == "c"


def test_a_question_on_which_all_pipelines_are_alike_teaches_nothing(tmp_path: Path) -> None:
    """The advantage is a reward minus the group's mean: ten easy questions do not make up for the one that differs."""
    easy = [{**row, "candidates": [{"answer": "Right", "source": "easy"}]} for row in rows(SEEN)]
    both = [{"answer": "Wrong", "source": "easy"}, {"answer": "Right", "source": "hard"}]
    hard = {**rows(UNSEEN)[1], "id": "hard", "candidates": both}
    judge = PipelineSelector(write_pool(tmp_path / "train.jsonl", [*easy, hard]))
    stated = [Stated(source="easy"), Stated(source="hard")]
    asked = [judge(ballot=ballot("ab", stated, question)).preferred for question in questions(UNSEEN[1:])]
    assert asked == [1] * len(asked)


def test_training_is_the_same_every_time_and_in_any_order_of_the_candidates(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "train.jsonl", rows(SEEN))
    turned = [{**row, "candidates": row["candidates"][::-1]} for row in rows(SEEN)]
    judges = [PipelineSelector(path) for path in (pool, pool, write_pool(tmp_path / "turned.jsonl", turned))]
    assert describe(judges[0]) == describe(judges[1]) != describe(judges[2])
    replies = [[preferred(judge, question) for question in questions(UNSEEN)] for judge in judges]
    assert replies[0] == replies[1] == replies[2]
    assert judges[0].pipelines == ["cot+retrieve", "direct", "react"]


def test_a_pipeline_is_its_tags_in_any_order_and_else_its_source(tmp_path: Path) -> None:
    turned = [{"tags": ["retrieve", "cot"], "source": "x"}, *MADE_BY[1:]]
    judge = PipelineSelector(write_pool(tmp_path / "train.jsonl", rows(SEEN, turned)))
    assert judge.pipelines == ["cot+retrieve", "direct", "react"]
    when, who = questions(UNSEEN)[:2]
    other_source = [Stated(tags=("cot", "retrieve"), source="react"), *STATED[1:]]
    assert [preferred(judge, question, other_source) for question in (when, who)] == [0, 1]


def test_of_several_candidates_of_one_pipeline_the_earliest_that_votes_is_preferred(trained: PipelineSelector) -> None:
    question = questions(UNSEEN)[0]
    reply = trained(ballot=ballot("a-bc", [STATED[1], STATED[0], STATED[0], STATED[0]], question))
    assert (reply.preferred, reply.judge_rationale) == (2, "the policy prefers cot+retrieve")


def test_a_pipeline_that_was_not_trained_is_not_preferred(trained: PipelineSelector) -> None:
    question = questions(UNSEEN)[0]
    assert trained(ballot=ballot("ab", [Stated(source="new"), STATED[2]], question)).preferred == 1


# -- what it abstains on --
@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ([Stated(), Stated(confidence=0.5)], "{N/A}the pool states no tags or sources"),
        ([Stated(source="new"), Stated(tags=("newer",))], "{N/A}no pipeline of the pool was trained"),
        ([STATED[0], Stated()], "no tags or source are stated of candidate 1"),
    ],
)
def test_what_is_lacking_is_an_abstention(trained: PipelineSelector, stated: Sequence[Stated], reason: str) -> None:
    reply = trained(ballot=ballot("ab", stated, questions(UNSEEN)[0]))
    assert reply.abstained == reason.replace("{N/A}", "not applicable: ")
    assert "preferred" not in reply


def test_a_candidate_that_does_not_vote_needs_no_tags(trained: PipelineSelector) -> None:
    assert trained(ballot=ballot("-a", [Stated(), STATED[0]], questions(UNSEEN)[0])).preferred == 1


# -- the questions that it was trained on --
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


# -- what it cannot be trained on --
def test_a_pool_without_right_answers_or_with_one_pipeline_is_refused(tmp_path: Path) -> None:
    for questions_of, message in (
        (rows(SEEN, gold=[]), r"train\.jsonl must have right answers to train on; give a pool with gold"),
        (rows(SEEN, [{"source": "direct"}] * 4), "candidates of at least two pipelines, in tags or source; got 1"),
        (rows(SEEN, [{}] * 4), "candidates of at least two pipelines, in tags or source; got 0"),
    ):
        with pytest.raises(ArgumentError, match=message):
            PipelineSelector(write_pool(tmp_path / "train.jsonl", questions_of))


def test_a_pool_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r"none\.jsonl"):
        judge_named(f"autodspy:{tmp_path / 'none.jsonl'}")
    for name in ("autodspy:", "autodspy"):
        with pytest.raises(ArgumentError, match=r"autodspy must name a training pool; got ''\. Write autodspy:FILE"):
            judge_named(name)
