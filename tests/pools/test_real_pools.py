"""On real pools that nobody here wrote: the figures that are known beforehand, and the laws on every question."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Reply, Verdict
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.refusals import REFUSALS, Refusing
from eldgr_dspy.words import Role
from tests.deciding import SILENT, decide_case

pytestmark = pytest.mark.slow  # whole pools

POOLS = ("gsm8k-openai4", "hotpotqa-reflexion12", "svamp-codex8")


@cache
def rows(folder: Path, name: str) -> Sequence[Row]:
    return tuple(open_pool(folder / f"{name}.jsonl.gz").rows())


def judges(case: Case) -> Iterator[Reply]:
    """Every judge that there can be: silent, or for any candidate that has an answer."""
    yield SILENT["judge"]
    yield from (Verdict(index) for index, key in enumerate(case.vote.classes) if key is not None)


def em(summary: Any, rule: str) -> float:
    return round(float(summary["rules"][rule]["em"]), 2)


def test_four_recorded_judges_in_one_run_score_as_each_alone(pools_dir: Path, tmp_path: Path) -> None:
    full = {"gpt4": 62.40, "chatgpt": 61.31, "davinci003": 61.01, "bing": 60.92}
    replay = {name: pools_dir / "judges" / f"nq-openqa10.{name}.jsonl.gz" for name in full}
    if not all(file.is_file() for file in replay.values()):
        pytest.skip(f"no recorded judges in {pools_dir}")
    plan = Plan([pools_dir / "nq-openqa10.jsonl.gz"], tmp_path, judges=dict.fromkeys(full, Judge()), replay=replay)
    result: Any = evaluate(Selector(), plan)["pools"]["nq-openqa10"]
    assert {name: em(result, f"judge[{name}]") for name in full} == full
    assert em(result, "majority") == 59.09
    assert result["bounds"]["judge[bing]"] == pytest.approx([27.28, 78.37], abs=0.005)
    assert result["rules"]["judge[gpt4]"]["asked"] == result["rules"]["judge[bing]"]["asked"]
    family = {one["against"]: one for one in result["contrasts"] if one["p_holm"] is not None}
    assert set(family) >= {f"judge[{name}]" for name in full}
    assert all(one["p_holm"] >= one["p"] for one in family.values())


@pytest.mark.parametrize("certificate", ["substring", "token", "folded"])
@pytest.mark.parametrize("name", POOLS)
def test_no_judge_moves_a_certified_or_inapplicable_consensus(pools_dir: Path, name: str, certificate: Any) -> None:
    overrides = 0
    for row in rows(pools_dir, name):
        case = Case(row.to_question(), Settings(certificate))
        final = case.task == "retrieval" and case.certified(case.consensus) is not False
        for judge in judges(case):
            decision, roles = decide_case(case, {**SILENT, "judge": judge})
            assert not final or (decision.answer, decision.branch, roles) == (case.consensus, "consensus", {})
            assert decision.branch == "consensus" or decision.certified is True
            overrides += decision.branch != "consensus"
    assert (overrides > 0) == (name == "hotpotqa-reflexion12")


@pytest.mark.parametrize("name", POOLS)
def test_lazy_and_always_agree_on_every_question_whatever_the_judge_answers(pools_dir: Path, name: str) -> None:
    for row in rows(pools_dir, name):
        lazy, always = (Case(row.to_question(), Settings(consult=consult)) for consult in ("lazy", "always"))
        for judge in judges(lazy):
            one, other = (decide_case(case, {**SILENT, "judge": judge})[0] for case in (lazy, always))
            assert (one.answer, one.branch) == (other.answer, other.branch)


def test_of_all_candidates_four_refuse_none_as_consensus_and_no_right_answer_does(pools_dir: Path) -> None:
    n_answers, refusing = 0, dict[str, int]()
    for name in (*POOLS, "nq-openqa10", "nq-openqa10-struck"):
        for row in rows(pools_dir, name):
            question = row.to_question()
            refuses = Refusing(REFUSALS, question.answers, question.type)
            n_answers += sum(answer is not None for answer in question.answers)
            refusing[name] = refusing.get(name, 0) + sum(map(refuses, question.answers))
            assert not refuses(Case(question).consensus)
            assert not any(map(refuses, row.gold))
    assert n_answers == 60_296
    assert {name: n for name, n in refusing.items() if n} == {"hotpotqa-reflexion12": 4}


def test_at_most_20_questions_for_the_judge_and_23_for_the_repairer_whatever_the_judge_answers(pools_dir: Path) -> None:
    ids: dict[Role, set[str]] = {"judge": set(), "repairer": set()}
    for row in rows(pools_dir, "hotpotqa-reflexion12"):
        case = Case(row.to_question())
        for judge in judges(case):
            for role in decide_case(case, {**SILENT, "judge": judge})[1]:
                ids[role].add(row.id)
    assert (len(ids["judge"]), len(ids["repairer"])) == (20, 23)


def test_the_heuristic_roles_run_the_whole_path_on_real_questions(pools_dir: Path, tmp_path: Path) -> None:
    plan = Plan([pools_dir / "hotpotqa-reflexion12.jsonl.gz"], tmp_path / "run", limit=40)
    result: Any = evaluate(heuristic_selector(), plan)["pools"]["hotpotqa-reflexion12"]
    assert result["audit"]["correct_to_incorrect"] == 0
    low, high = result["bounds_any_span"]["eldgr"]
    assert low <= result["rules"]["eldgr"]["em"] <= high
