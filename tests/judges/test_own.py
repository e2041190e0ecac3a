"""Selectors of a user's own: functions of a ballot, and judges by name; and what tables show of each judge."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.record import JudgeFacts, judge_facts
from eldgr_dspy.figures.scored import contrasts_of
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.judges import DimensionalSelector, PairwiseJudge, Panel, PipelineSelector, PlanThenCheck
from eldgr_dspy.programs.judges.counting_judges import BestOf, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.named import is_own, judge_named, own_judge
from eldgr_dspy.programs.judges.repeated_judges import SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.ballots import Ballot, Stated
from eldgr_dspy.rule.consultations import Abstention
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.judges.balloting import ballot
from tests.refusing import refused
from tests.scenes import CONTESTED, SILENT
from tests.selecting import Returns, selector_of

MODULE = '''
import dspy
from eldgr_dspy.programs.judges.counting_judges import WeightedVote

def last(ballot):
    """Prefer the last candidate."""
    return len(ballot.answers) - 1

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


@pytest.mark.parametrize("index", [3, -1, 10**30, 1.0, True, "2", None, [2]])
def test_what_is_not_the_index_of_a_candidate_is_an_abstention(index: Any) -> None:
    pred = selected(OwnSelector(lambda counted: index))
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert pred.abstentions["judge"].startswith("preferred=")


def test_a_function_prefers_a_candidate_or_abstains_with_a_reason_and_the_lock_decides() -> None:
    """An index of numpy counts, and a candidate without an answer cannot be preferred."""
    assert OwnSelector(last)(ballot=ballot("aab")).preferred == 2
    pred = selected(OwnSelector(last))
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)
    pred = selected(OwnSelector(last), rule="judge")
    assert (pred.answer, pred.branch) == ("Doha", "judge")
    judge = OwnSelector(lambda counted: Abstention("too few votes"))
    assert judge(ballot=ballot("aab")).abstained == "too few votes"
    pred = selected(judge)
    assert (pred.answer, pred.abstentions["judge"]) == ("Dubai", "too few votes")
    index: Any = np.argmax([0.1, 0.2, 0.9])
    assert selected(OwnSelector(lambda counted: index)).answer == "Doha"
    pred = selector_of(OwnSelector(last))(**{**CONTESTED, "candidates": ["Dubai", "Dubai", "Doha", None]})
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert "without an answer" in pred.abstentions["judge"]


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


def test_a_changed_function_is_another_judge_and_its_name_is_stated_with_its_source(own: str) -> None:
    assert describe(OwnSelector(last)) == describe(OwnSelector(last)) != describe(OwnSelector(lambda counted: 0))
    source = describe(own_judge(f"{own}:last"))["attributes"]["self"]["source"]
    assert (source["name"], len(source["source"])) == (f"{own}:last", 16)


@each_case("judges", "judges by name")
def test_functions_classes_and_objects_are_found_by_name(own: str, name: str, kind: str, preferred: int | None) -> None:
    judge = judge_named(f"{own}:{name}")
    assert type(judge).__name__ == kind
    assert selected(judge, rule="judge", consult="always").preference == preferred


@each_case("judges", "names that are refused")
def test_what_is_not_a_judge_is_refused_with_its_name(own: str, name: str, sentence: str) -> None:
    assert sentence in refused(lambda: own_judge(f"{own}:{name}"))
    assert "the module 'no_such_module' cannot be imported" in refused(lambda: judge_named("no_such_module:last"))


@each_case("judges", "words that name a judge of one's own")
def test_a_name_is_told_from_formulas_and_models(word: str, own_name: bool) -> None:
    assert is_own(word) is own_name


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), dspy.LMServerError("away")])
def test_what_a_function_raises_is_raised_and_names_the_question_in_a_run(error: Exception, tmp_path: Path) -> None:
    def fails(counted: Ballot) -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        selected(OwnSelector(fails))
    assert raised.value is error
    with pytest.raises(type(error)):
        asyncio.run(selector_of(OwnSelector(fails)).acall(**CONTESTED))
    if isinstance(error, KeyError):
        pool = write_pool(tmp_path / "capitals.jsonl", [row(7, answers=("Nice", "Oslo"))])
        with pytest.raises(KeyError) as raised:
            evaluate(selector_of(SILENT), Plan([pool], tmp_path / "run", judges={"own": OwnSelector(fails)}))
        assert raised.value.__notes__ == ["Raised by the judge[own] on question 'q7' of pool 'capitals'."]


KNOWN = ("gold_in_training", "logprobs", "positioned")


def facts(judge: dspy.Module) -> JudgeFacts | None:
    return judge_facts([{"kind": "role", "name": "judge[j]", "details": describe(judge)}]).get("j")


def named(*true: str) -> dict[str, bool]:
    return {name: name in true for name in KNOWN}


class Checker(dspy.Module):  # a module of a user's own with a part that happens to be called `facts`
    def __init__(self) -> None:
        super().__init__()
        self.facts = dspy.Predict("question, evidence, candidates -> preferred: int")


KINDS: dict[str, Any] = {
    "Judge": Judge, "WeightedVote": WeightedVote, "DimensionalSelector": DimensionalSelector, "SliceJudge": SliceJudge,
    "PlanThenCheck": PlanThenCheck, "OwnSelector": lambda: OwnSelector(last), "Checker": Checker,
    "BestOf": lambda: BestOf(lambda example, candidate: len(candidate.text)), "LexicalJudge": LexicalJudge,
    "Panel": lambda *judges: Panel(judges),
}  # fmt: skip


@each_case("judges", "facts", **KINDS)
def test_each_judge_states_what_is_known_of_it(judge: dspy.Module, true: list[str] | None) -> None:
    assert facts(judge) == (None if true is None else named(*true))


def test_a_judge_of_a_published_system_is_in_no_family_and_a_panel_applies_where_a_member_does(tmp_path: Path) -> None:
    """A positioned judge with demonstrations was made with right answers."""
    for kind in (SliceJudge, PlanThenCheck):
        judge: Any = kind()
        judge.predictors()[-1].demos = [dspy.Example(question="q?")]
        assert facts(judge) == named("gold_in_training", "positioned")
    paired: Any = lambda rule, against: {"p": 0.5}  # noqa: E731
    rules = [f"{rule}[{judge}]" for judge in ("slices", "plain") for rule in ("judge", "eldgr")]
    known = {"slices": facts(SliceJudge()), "plain": facts(Judge())}
    untested = [name for name, of in known.items() if of is not None and of["positioned"]]
    tested = {one["against"]: one["p_holm"] for one in contrasts_of(rules, [*known], paired, untested)}
    assert tested == {"judge[slices]": None, "judge[plain]": 0.5}
    counted = ballot("ab", [Stated(confidence=0.1), Stated(confidence=0.9)])
    inputs: Any = {"question": "q?", "evidence": [], "candidates": ["a", "b"], "ballot": counted}
    lacking = [WeightedVote("soft_sc"), WeightedVote("best_of_n:prm")]
    reply = Panel(lacking)(**inputs)
    assert reply.abstained == "not applicable: the pool states no log-probabilities"
    assert len(reply.members) == 2
    assert Panel([*lacking, WeightedVote("bcrl_max")])(**inputs).abstained.startswith("no majority of 3 judges")
    candidates = [{"answer": "A", "source": "one"}, {"answer": "B", "source": "two"}]
    pool = write_pool(tmp_path / "pool.jsonl", [row(0, candidates=candidates, evidence=[], gold=["A"])])
    panel = Panel([PipelineSelector(pool), WeightedVote("cisc")])
    assert facts(panel) == named("gold_in_training", "positioned")
    with pytest.raises(ArgumentError, match=r"judge\[panel\] was trained on 1 of the 1 questions"):
        evaluate(Selector(), Plan([pool], tmp_path / "run", judges={"panel": panel}))
