"""Selectors of a user's own: functions of a ballot, and judges by the name of their module."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges import PairwiseJudge, Panel, SwapConsistent
from eldgr_dspy.programs.judges.counting_judges import OwnSelector
from eldgr_dspy.programs.judges.named import is_own, judge_named, own_judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention
from tests.capitals import row, write_pool
from tests.judges.balloting import ballot
from tests.refusing import refused
from tests.selecting import CONTESTED, SILENT, Returns, selector_of

MODULE = '''
import dspy

from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.programs.judges.counting_judges import WeightedVote


def last(ballot):
    """Prefer the last candidate."""
    return len(ballot.answers) - 1


def shy(ballot):
    return Abstention("I would rather not")


async def later(ballot):
    return 0


class Always(dspy.Module):
    def __init__(self, index=2):
        super().__init__()
        self.index = index

    def forward(self, question, evidence, candidates):
        return dspy.Prediction(preferred=self.index)


class Needy(dspy.Module):
    def __init__(self, index):
        super().__init__()


class Plain:
    def __init__(self, ballot):
        self.ballot = ballot


class Called:
    def __call__(self, ballot):
        return 1


always, counted, called, number = Always(1), WeightedVote("cisc"), Called(), 7
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that only this test knows: modules and what is found in them are kept."""
    name = f"own_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def last(counted: Ballot) -> int:
    return len(counted.answers) - 1


def selected(judge: Any, **options: Any) -> Any:
    return selector_of(judge, **options)(**CONTESTED)


# -- functions --
def test_a_function_prefers_a_candidate_and_the_lock_decides() -> None:
    assert OwnSelector(last)(ballot=ballot("aab")).preferred == 2
    pred = selected(OwnSelector(last))
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)
    pred = selected(OwnSelector(last), rule="judge")
    assert (pred.answer, pred.branch) == ("Doha", "judge")


def test_a_function_may_abstain_with_a_reason() -> None:
    judge = OwnSelector(lambda counted: Abstention("too few votes"))
    assert judge(ballot=ballot("aab")).abstained == "too few votes"
    pred = selected(judge)
    assert (pred.answer, pred.abstentions["judge"]) == ("Dubai", "too few votes")


@pytest.mark.parametrize("index", [3, -1, 10**30, 1.0, True, "2", None, [2]])
def test_what_is_not_the_index_of_a_candidate_is_an_abstention(index: Any) -> None:
    pred = selected(OwnSelector(lambda counted: index))
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert pred.abstentions["judge"].startswith("preferred=")


def test_an_index_of_numpy_counts() -> None:
    index: Any = np.argmax([0.1, 0.2, 0.9])
    assert selected(OwnSelector(lambda counted: index)).answer == "Doha"


def test_a_candidate_without_an_answer_cannot_be_preferred() -> None:
    pred = selector_of(OwnSelector(last))(**{**CONTESTED, "candidates": ["Dubai", "Dubai", "Doha", None]})
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert "without an answer" in pred.abstentions["judge"]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), dspy.LMServerError("away")])
def test_what_a_function_raises_is_raised(error: Exception) -> None:
    def fails(counted: Ballot) -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        selected(OwnSelector(fails))
    assert raised.value is error
    with pytest.raises(type(error)):
        asyncio.run(selector_of(OwnSelector(fails)).acall(**CONTESTED))


def test_a_function_sees_the_ballot_and_not_the_right_answer() -> None:
    seen: list[Ballot] = []

    def look(counted: Ballot) -> int:
        seen.append(counted)
        return 0

    candidates = [{"answer": "Dubai", "confidence": 0.4, "tags": ["cot"]}, "dubai", {"answer": "Doha", "source": "m"}]
    selector_of(OwnSelector(look))(**{**CONTESTED, "candidates": candidates})
    counted = seen[0]
    assert (counted.question, counted.answers) == (CONTESTED["question"], ("Dubai", "dubai", "Doha"))
    assert counted.classes[0] == counted.classes[1] != counted.classes[2]
    assert [(one.confidence, one.pipeline) for one in counted.stated] == [(0.4, "cot"), (None, ""), (None, "m")]
    assert [passage.text for passage in counted.passages] == CONTESTED["evidence"]


async def later(counted: Ballot) -> int:
    return 0


class Later:
    async def __call__(self, counted: Ballot) -> int:
        return 0


@pytest.mark.parametrize("choose", [later, partial(later), Later(), 7, "last", None, Returns(SILENT)])
def test_what_cannot_be_called_with_a_ballot_is_refused(choose: Any) -> None:
    with pytest.raises(ArgumentError, match=r"choose must be a function of a ballot, not async; got .*\. Write"):
        OwnSelector(choose)


@pytest.mark.parametrize("wrap", [SwapConsistent, PairwiseJudge, lambda judge: SwapConsistent(Panel([judge]))])
def test_inside_a_judge_that_shows_texts_it_says_that_a_ballot_is_missing(wrap: Any) -> None:
    select = selector_of(wrap(OwnSelector(last)))
    with pytest.raises(ArgumentError, match=r"OwnSelector must be given a ballot; got None\. Make it the judge"):
        select(**CONTESTED)
    with pytest.raises(ArgumentError, match="must be given a ballot"):
        asyncio.run(select.acall(**CONTESTED))


def test_a_changed_function_is_another_judge() -> None:
    assert describe(OwnSelector(last)) == describe(OwnSelector(last)) != describe(OwnSelector(lambda counted: 0))


# -- by name --
@pytest.mark.parametrize(
    ("name", "kind", "preferred"),
    [
        ("last", "OwnSelector", 2),
        ("called", "OwnSelector", 1),
        ("Always", "Always", 2),
        ("always", "Always", 1),
        ("counted", "WeightedVote", None),
    ],
)
def test_functions_classes_and_objects_are_found_by_name(own: str, name: str, kind: str, preferred: int | None) -> None:
    judge = judge_named(f"{own}:{name}")
    assert type(judge).__name__ == kind
    assert selected(judge, rule="judge", consult="always").preference == preferred


def test_the_name_of_a_function_is_stated_with_its_source(own: str) -> None:
    source = describe(own_judge(f"{own}:last"))["attributes"]["self"]["source"]
    assert source["name"] == f"{own}:last"
    assert len(source["source"]) == 16


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("number", "must be a dspy.Module or a function of a ballot; got int"),
        ("Plain", "must be a dspy.Module or a function of a ballot; got the class Plain"),
        ("Needy", "must be a judge's class that needs no argument"),
        ("later", "choose must be a function of a ballot, not async"),
        ("missing", "has no 'missing'; check the name"),
    ],
)
def test_what_is_not_a_judge_is_refused_with_its_name(own: str, name: str, message: str) -> None:
    assert message in refused(lambda: own_judge(f"{own}:{name}"))


def test_a_module_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the module 'no_such_module' cannot be imported"):
        judge_named("no_such_module:last")


@pytest.mark.parametrize(
    ("word", "own_name"),
    [
        ("my_module:MyJudge", True),
        ("my.module:judge", True),
        ("cisc:0.5", False),
        ("best_of_n:prm", False),
        ("autodspy:pool", False),
        ("drm", False),
        ("heuristic", False),
        ("openai/gpt-4o-mini", False),
        ("ollama/qwen3:8b", False),
        ("my_module", False),
        ("my_module:", False),
        ("a:b:c", False),
    ],
)
def test_a_name_is_told_from_formulas_and_models(word: str, own_name: bool) -> None:
    assert is_own(word) is own_name


# -- in a run --
def test_what_a_function_raises_in_a_run_names_the_question(tmp_path: Path) -> None:
    def fails(counted: Ballot) -> int:
        raise KeyError("mine")

    pool = write_pool(tmp_path / "capitals.jsonl", [row(7, answers=("Nice", "Oslo"))])
    plan = Plan([pool], tmp_path / "run", judges={"own": OwnSelector(fails)})
    with pytest.raises(KeyError) as raised:
        evaluate(selector_of(SILENT), plan)
    assert raised.value.__notes__ == ["Raised by the judge[own] on question 'q7' of pool 'capitals'."]
