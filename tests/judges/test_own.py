"""Selectors of a user's own, judges by name, and the selector in the style of AutoDSPy: what it learns and refuses."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.figures.record import JudgeFacts, judge_facts
from eldgr_dspy.figures.scored import contrasts_of
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.judges import DimensionalSelector, PairwiseJudge, Panel, PipelineSelector, PlanThenCheck
from eldgr_dspy.programs.judges.counting_judges import BestOf, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.named import is_own, make_judge, own_judge
from eldgr_dspy.programs.judges.repeated_judges import SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.ballots import Ballot, Statement
from eldgr_dspy.rule.consultations import Abstention
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.judges.balloting import ballot, majority
from tests.refusing import refusal, refuses, says
from tests.scenes import CONTESTED, SILENT
from tests.selecting import Returns, select_acall, select_sync, selector_of

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


def last(votes: Ballot) -> int:
    return len(votes.answers) - 1


def decide(judge: Any, **options: Any) -> Any:
    return selector_of(judge, **options)(**CONTESTED)


def test_a_function_prefers_a_candidate_or_abstains_with_a_reason_and_the_lock_decides() -> None:
    """An index of numpy counts, and a candidate without an answer cannot be preferred."""
    indices: list[Any] = [3, -1, 10**30, 1.0, True, "2", None, [2]]
    for index in indices:
        pred = decide(OwnSelector(lambda votes, index=index: index))  # type: ignore[misc]
        assert (pred.answer, pred.branch) == ("Dubai", "consensus")
        assert pred.abstentions["judge"].startswith("preferred=")
    assert OwnSelector(last)(ballot=ballot("aab")).preferred == 2
    pred = decide(OwnSelector(last))
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)
    pred = decide(OwnSelector(last), rule="judge")
    assert (pred.answer, pred.branch) == ("Doha", "judge")
    judge = OwnSelector(lambda votes: Abstention("too few votes"))
    assert judge(ballot=ballot("aab")).abstained == "too few votes"
    pred = decide(judge)
    assert (pred.answer, pred.abstentions["judge"]) == ("Dubai", "too few votes")
    best: Any = np.argmax([0.1, 0.2, 0.9])
    assert decide(OwnSelector(lambda votes: best)).answer == "Doha"
    pred = selector_of(OwnSelector(last))(**{**CONTESTED, "candidates": ["Dubai", "Dubai", "Doha", None]})
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert "without an answer" in pred.abstentions["judge"]


def test_a_function_sees_the_ballot_and_not_the_right_answer() -> None:
    ballots: list[Ballot] = []
    candidates = [{"answer": "Dubai", "confidence": 0.4, "tags": ["cot"]}, "dubai", {"answer": "Doha", "source": "m"}]
    selector_of(OwnSelector(ballots.append))(**{**CONTESTED, "candidates": candidates})  # type: ignore[arg-type]
    votes = ballots[0]
    assert (votes.question, votes.answers) == (CONTESTED["question"], ("Dubai", "dubai", "Doha"))
    assert votes.classes[0] == votes.classes[1] != votes.classes[2]
    assert [(one.confidence, one.pipeline) for one in votes.stated] == [(0.4, "cot"), (None, ""), (None, "m")]
    assert [passage.text for passage in votes.passages] == CONTESTED["evidence"]


async def later(votes: Ballot) -> int:
    return 0


class Later:
    async def __call__(self, votes: Ballot) -> int:
        return 0


@pytest.mark.parametrize("choose", [later, partial(later), Later(), 7, "last", None, Returns(SILENT)])
def test_what_cannot_be_called_with_a_ballot_is_refused(choose: Any) -> None:
    refuses(ArgumentError, r"choose must be a function of a ballot, not async; got .*\. Write", OwnSelector, choose)


@pytest.mark.parametrize("wrap", [SwapConsistent, PairwiseJudge, lambda judge: SwapConsistent(Panel([judge]))])
def test_inside_a_judge_that_shows_texts_it_says_that_a_ballot_is_missing(wrap: Any) -> None:
    select = selector_of(wrap(OwnSelector(last)))
    for call in (select_sync, select_acall):
        message = r"OwnSelector must be given a ballot; got None\. Make it the judge"
        refuses(ArgumentError, message, call, select, CONTESTED)


def test_a_changed_function_is_another_judge_and_its_name_is_stated_with_its_source(own: str) -> None:
    assert describe(OwnSelector(last)) == describe(OwnSelector(last)) != describe(OwnSelector(lambda votes: 0))
    source = describe(own_judge(f"{own}:last"))["attributes"]["self"]["source"]
    assert (source["name"], len(source["source"])) == (f"{own}:last", 16)


@each_case("judges", "judges by name")
def test_functions_classes_and_objects_are_found_by_name(own: str, name: str, kind: str, preferred: int | None) -> None:
    judge = make_judge(f"{own}:{name}")
    assert type(judge).__name__ == kind
    assert decide(judge, rule="judge", consult="always").preference == preferred


@each_case("judges", "names that are refused")
def test_what_is_not_a_judge_is_refused_with_its_name(own: str, name: str, sentence: str) -> None:
    assert sentence in refusal(lambda: own_judge(f"{own}:{name}"))
    assert "the module 'no_such_module' cannot be imported" in refusal(lambda: make_judge("no_such_module:last"))


@each_case("judges", "words that name a judge of one's own")
def test_a_name_is_told_from_formulas_and_models(word: str, own_name: bool) -> None:
    assert is_own(word) is own_name


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), dspy.LMServerError("away")])
def test_what_a_function_raises_is_raised_and_names_the_question_in_a_run(error: Exception, tmp_path: Path) -> None:
    def fails(votes: Ballot) -> int:
        raise error

    for call in (select_sync, select_acall):
        with pytest.raises(type(error)) as info:
            call(selector_of(OwnSelector(fails)), CONTESTED)
        assert info.value is error
    if isinstance(error, KeyError):
        pool = write_pool(tmp_path / "capitals.jsonl", [row(7, answers=("Nice", "Oslo"))])
        with pytest.raises(KeyError) as info:
            evaluate(selector_of(SILENT), Plan([pool], tmp_path / "run", judges={"own": OwnSelector(fails)}))
        assert info.value.__notes__ == ["Raised by the judge[own] on question 'q7' of pool 'capitals'."]
    named_error = type(error) if isinstance(error, dspy.LMError) else ArgumentError
    with pytest.raises(named_error, match=r"fails' has failed: \w+: .?mine.? \(.*test_own\.py, line \d+\)\.|away"):
        select_sync(selector_of(own_judge(fails)), CONTESTED)


FACTS = ("gold_in_training", "logprobs", "positioned")


def facts(judge: dspy.Module) -> JudgeFacts | None:
    return judge_facts([{"kind": "role", "name": "judge[j]", "details": describe(judge)}]).get("j")


def facts_of(*true: str) -> dict[str, bool]:
    return {name: name in true for name in FACTS}


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
    assert facts(judge) == (None if true is None else facts_of(*true))


def test_a_judge_of_a_published_system_is_in_no_family_and_a_panel_applies_where_a_member_does(tmp_path: Path) -> None:
    """A positioned judge with demonstrations was made with right answers."""
    for kind in (SliceJudge, PlanThenCheck):
        judge: Any = kind()
        judge.predictors()[-1].demos = [dspy.Example(question="q?")]
        assert facts(judge) == facts_of("gold_in_training", "positioned")
    pairs: Any = lambda rule, against: {"p": 0.5}  # noqa: E731
    rules = [f"{rule}[{judge}]" for judge in ("slices", "plain") for rule in ("judge", "eldgr")]
    by_name = {"slices": facts(SliceJudge()), "plain": facts(Judge())}
    names = [name for name, of in by_name.items() if of is not None and of["positioned"]]
    values = {one["against"]: one["p_holm"] for one in contrasts_of(rules, [*by_name], pairs, names)}
    assert values == {"judge[slices]": None, "judge[plain]": 0.5}
    votes = ballot("ab", [Statement(confidence=0.1), Statement(confidence=0.9)])
    inputs: Any = {"question": "q?", "evidence": [], "candidates": ["a", "b"], "ballot": votes}
    lacking = [WeightedVote("soft_sc"), WeightedVote("best_of_n:prm")]
    reply = Panel(lacking)(**inputs)
    assert reply.abstained == "not applicable: the pool states no log-probabilities"
    assert len(reply.members) == 2
    assert Panel([*lacking, WeightedVote("bcrl_max")])(**inputs).abstained.startswith("no majority of 3 judges")
    candidates = [{"answer": "A", "source": "one"}, {"answer": "B", "source": "two"}]
    pool = write_pool(tmp_path / "pool.jsonl", [row(0, candidates=candidates, evidence=[], gold=["A"])])
    panel = Panel([PipelineSelector(pool), WeightedVote("cisc")])
    assert facts(panel) == facts_of("gold_in_training", "positioned")
    plan = Plan([pool], tmp_path / "run", judges={"panel": panel})
    refuses(ArgumentError, r"judge\[panel\] was trained on 1 of the 1 questions", evaluate, Selector(), plan)


TOPICS = ("the wall", "the bridge", "the harbour", "the tower", "the abbey", "the mill", "the canal", "the market")
OLD, NEW = TOPICS[:5], TOPICS[5:]
# Right where the question says "when"; right elsewhere; always wrong, and twice, so that it is majority.
WHEN, ELSE, NEVER = {"tags": ["cot", "retrieve"], "source": "cot"}, {"source": "react"}, {"source": "direct"}
MADE_BY: Sequence[Mapping[str, Any]] = (WHEN, ELSE, NEVER, NEVER)


def questions(topics: Sequence[str]) -> list[str]:
    return [f"{start} {topic}?" for topic in topics for start in ("When did they build", "Who paid for")]


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


STATEMENTS = [Statement(tags=tuple(of.get("tags", ())), source=of.get("source")) for of in MADE_BY]


@pytest.fixture
def policy(tmp_path: Path) -> PipelineSelector:
    return PipelineSelector(write_pool(tmp_path / "train.jsonl", rows(OLD)))


def preferred(judge: PipelineSelector, question: str, statements: Sequence[Statement] = STATEMENTS) -> int:
    return int(judge(ballot=ballot("abcc", statements, question)).preferred)


def test_the_policy_is_right_on_unseen_questions_and_majority_is_not(policy: PipelineSelector) -> None:
    held_out = questions(NEW)
    indices = [preferred(policy, question) for question in held_out]
    assert [answers(q)[index] for q, index in zip(held_out, indices, strict=True)] == ["Right"] * len(held_out)
    assert set(indices) == {0, 1}  # no single source is as good
    assert majority(ballot("abcc")) == "c"


def test_training_is_the_same_every_time_and_learns_from_questions_that_differ(tmp_path: Path) -> None:
    """The advantage is a reward minus the group's mean: ten easy questions do not make up for the one that differs."""
    easy = [{**row, "candidates": [{"answer": "Right", "source": "easy"}]} for row in rows(OLD)]
    both = [{"answer": "Wrong", "source": "easy"}, {"answer": "Right", "source": "hard"}]
    hard = {**rows(NEW)[1], "id": "hard", "candidates": both}
    judge = PipelineSelector(write_pool(tmp_path / "easy.jsonl", [*easy, hard]))
    statements = [Statement(source="easy"), Statement(source="hard")]
    indices = [judge(ballot=ballot("ab", statements, question)).preferred for question in questions(NEW[1:])]
    assert indices == [1] * len(indices)
    pool = write_pool(tmp_path / "train.jsonl", rows(OLD))
    others = [{**row, "candidates": row["candidates"][::-1]} for row in rows(OLD)]
    judges = [PipelineSelector(path) for path in (pool, pool, write_pool(tmp_path / "turned.jsonl", others))]
    assert describe(judges[0]) == describe(judges[1]) != describe(judges[2])
    replies = [[preferred(judge, question) for question in questions(NEW)] for judge in judges]
    assert replies[0] == replies[1] == replies[2]
    # A pipeline is its tags in any order, and else its source.
    others = rows(OLD, [{"tags": ["retrieve", "cot"], "source": "x"}, *MADE_BY[1:]])
    judge = PipelineSelector(write_pool(tmp_path / "tags.jsonl", others))
    assert judge.pipelines == judges[0].pipelines == ["cot+retrieve", "direct", "react"]
    other_source = [Statement(tags=("cot", "retrieve"), source="react"), *STATEMENTS[1:]]
    assert [preferred(judge, question, other_source) for question in questions(NEW)[:2]] == [0, 1]


def test_the_earliest_candidate_of_a_pipeline_that_votes_is_preferred(policy: PipelineSelector) -> None:
    """A pipeline that was not trained is not preferred, and a candidate that does not vote needs no tags."""
    question = questions(NEW)[0]
    reply = policy(ballot=ballot("a-bc", [STATEMENTS[1], STATEMENTS[0], STATEMENTS[0], STATEMENTS[0]], question))
    assert (reply.preferred, reply.judge_rationale) == (2, "the policy prefers cot+retrieve")
    assert policy(ballot=ballot("ab", [Statement(source="new"), STATEMENTS[2]], question)).preferred == 1
    assert policy(ballot=ballot("-a", [Statement(), STATEMENTS[0]], question)).preferred == 1
    none = "not applicable: the pool states no tags or sources"
    new = "not applicable: no pipeline of the pool was trained"
    for statements, reason in (
        ([Statement(), Statement(confidence=0.5)], none),
        ([Statement(source="new"), Statement(tags=("newer",))], new),
        ([STATEMENTS[0], Statement()], "no tags or source are stated of candidate 1"),
    ):
        reply = policy(ballot=ballot("ab", statements, questions(NEW)[0]))
        assert (reply.abstained, "preferred" in reply) == (reason, False)


def test_it_abstains_on_a_question_of_its_training_and_a_run_is_refused(policy: Any, tmp_path: Path) -> None:
    """A run on other questions is right on all of them."""
    old, other, evidence = rows(OLD)[0], rows(NEW)[0], ["Right it is."]
    for text in (old["question"], old["question"].upper(), f"  {old['question']} "):
        pred = selector_of(policy)(question=text, candidates=old["candidates"], evidence=evidence)
        assert (pred.answer, pred.branch) == ("Noise", "consensus")
        assert pred.abstentions["judge"] == "the selector was trained on this question"
    pred = selector_of(policy)(question=other["question"], candidates=other["candidates"], evidence=evidence)
    assert (pred.answer, pred.branch) == ("Right", "judge")
    pool = write_pool(tmp_path / "test.jsonl", rows(TOPICS[4:]))
    for is_named, judge in ((True, SILENT), (False, policy)):
        plan = Plan([pool], tmp_path / "run", judges={"policy": policy} if is_named else {})
        message = refusal(partial(evaluate, selector_of(judge), plan))
        assert re.search(r"trained on 2 of the 8 questions of .*test\.jsonl", message)
        assert ("policy" in message, "eldgr pool split" in message) == (is_named, True)
        assert not (tmp_path / "run").exists()
    plan = Plan([write_pool(tmp_path / "test.jsonl", rows(NEW))], tmp_path / "run", judges={"policy": policy})
    result: Any = evaluate(selector_of(SILENT), plan)["pools"]["test"]
    em = {rule: of["em"] for rule, of in result["rules"].items()}
    assert (em["judge[policy]"], em["eldgr[policy]"], em["majority"]) == (100.0, 100.0, 0.0)
    facts = {name: result["judges"]["policy"][name] for name in ("gold_in_training", "logprobs", "positioned")}
    assert facts == {"gold_in_training": True, "logprobs": False, "positioned": True}
    assert "trained_questions" not in json.dumps(describe(policy))


def test_a_pool_without_right_answers_with_one_pipeline_or_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    two = "...candidates of at least two pipelines, in tags or source; got "
    for questions_of, message in (
        (rows(OLD, gold=[]), "...train.jsonl must have right answers to train on; give a pool with gold..."),
        (rows(OLD, [{"source": "direct"}] * 4), f"{two}1..."),
        (rows(OLD, [{}] * 4), f"{two}0..."),
    ):
        pool = write_pool(tmp_path / "train.jsonl", questions_of)
        assert says(message, refusal(partial(PipelineSelector, pool)))
    refuses(PoolError, r"none\.jsonl", make_judge, f"autodspy:{tmp_path / 'none.jsonl'}")
    for name in ("autodspy:", "autodspy"):
        message = refusal(partial(make_judge, name))
        assert says("...autodspy must name a training pool; got ''. Write autodspy:FILE...", message)
