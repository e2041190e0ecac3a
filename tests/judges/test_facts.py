"""What tables show of a judge besides its figures: right answers in training, log-probabilities, a system imitated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.record import JudgeFacts, judge_facts
from eldgr_dspy.figures.scored import contrasts_of
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import write_pool
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.judges import (
    BestOf,
    DimensionalSelector,
    OwnSelector,
    Panel,
    PipelineSelector,
    PlanThenCheck,
    SliceJudge,
    WeightedVote,
)
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.ballots import Ballot, Stated
from tests.judges.balloting import ballot

KNOWN = ("gold_in_training", "logprobs", "positioned")


def facts(judge: dspy.Module) -> JudgeFacts | None:
    return judge_facts([{"kind": "role", "name": "judge[j]", "details": describe(judge)}]).get("j")


def named(*true: str) -> dict[str, bool]:
    return {name: name in true for name in KNOWN}


def first(counted: Ballot) -> int:
    return 0


class Checker(dspy.Module):  # a module of a user's own with a part that happens to be called `facts`
    def __init__(self) -> None:
        super().__init__()
        self.facts = dspy.Predict("question, evidence, candidates -> preferred: int")


@pytest.mark.parametrize(
    ("judge", "stated"),
    [
        (Judge, named()),
        (lambda: WeightedVote("cisc"), named()),
        (lambda: WeightedVote("bcrl_vote"), named("positioned")),
        (DimensionalSelector, named("logprobs", "positioned")),
        (SliceJudge, named("positioned")),
        (PlanThenCheck, named("positioned")),
        (lambda: OwnSelector(first), None),
        (lambda: BestOf(lambda example, candidate: len(candidate.text)), None),
        (Checker, None),
        (lambda: Panel([Judge(), LexicalJudge()]), named()),
        (lambda: Panel([Judge(), WeightedVote("soft_sc")]), named("logprobs")),
        (lambda: Panel([Panel([SliceJudge()]), WeightedVote("soft_sc")]), named("logprobs", "positioned")),
        (lambda: Panel([Judge(), OwnSelector(first)]), None),
    ],
)
def test_each_judge_states_what_is_known_of_it(judge: Callable[[], dspy.Module], stated: Any) -> None:
    assert facts(judge()) == stated


@pytest.mark.parametrize("kind", [SliceJudge, PlanThenCheck])
def test_a_positioned_judge_with_demonstrations_was_made_with_right_answers(kind: type[dspy.Module]) -> None:
    judge = kind()
    judge.predictors()[-1].demos = [dspy.Example(question="q?")]
    assert facts(judge) == named("gold_in_training", "positioned")


def test_a_judge_in_the_style_of_a_published_system_is_in_no_family() -> None:
    paired: Any = lambda rule, against: {"p": 0.5}  # noqa: E731
    rules = [f"{rule}[{judge}]" for judge in ("slices", "plain") for rule in ("judge", "eldgr")]
    known = {"slices": facts(SliceJudge()), "plain": facts(Judge())}
    untested = [name for name, of in known.items() if of is not None and of["positioned"]]
    tested = {one["against"]: one["p_holm"] for one in contrasts_of(rules, [*known], paired, untested)}
    assert tested == {"judge[slices]": None, "judge[plain]": 0.5}


def test_a_panel_applies_unless_the_pool_lacks_what_each_member_needs() -> None:
    counted = ballot("ab", [Stated(confidence=0.1), Stated(confidence=0.9)])
    inputs: Any = {"question": "q?", "evidence": [], "candidates": ["a", "b"], "ballot": counted}
    lacking = [WeightedVote("soft_sc"), WeightedVote("best_of_n:prm")]
    reply = Panel(lacking)(**inputs)
    assert reply.abstained == "not applicable: the pool states no log-probabilities"
    assert len(reply.members) == 2
    assert Panel([*lacking, WeightedVote("bcrl_max")])(**inputs).abstained.startswith("no majority of 3 judges")


def test_a_panel_with_a_member_that_was_trained_on_a_question_of_the_pool_is_refused(tmp_path: Path) -> None:
    candidates = [{"answer": "A", "source": "one"}, {"answer": "B", "source": "two"}]
    row = {"id": "0", "question": "Who?", "task": "retrieval", "candidates": candidates, "evidence": [], "gold": ["A"]}
    pool = write_pool(tmp_path / "pool.jsonl", [Row.model_validate(row)]).path
    panel = Panel([PipelineSelector(pool), WeightedVote("cisc")])
    assert facts(panel) == named("gold_in_training", "positioned")
    with pytest.raises(ArgumentError, match=r"judge\[panel\] was trained on 1 of the 1 questions"):
        evaluate(Selector(), Plan([pool], tmp_path / "run", judges={"panel": panel}))
