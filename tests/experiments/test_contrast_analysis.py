"""Contrasts against calculations by hand, families under Holm, and outcomes that name only what there is."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest

from benchmarks.experiments.partition import analysis
from benchmarks.experiments.partition.analysis import Contrast, compare, contrast, noise, resolve, score_of
from benchmarks.experiments.partition.arms import ARMS, START
from benchmarks.experiments.partition.outcomes import Direction, Outcome, Outcomes, RuleOutcome, outcomes
from benchmarks.experiments.partition.partition_run import policies
from benchmarks.experiments.partition.partition_tables import tables
from benchmarks.experiments.partition.policy_replies import MEASURES
from benchmarks.experiments.partition.sizes import SIZES
from eldgr_dspy.decision import RULES
from eldgr_dspy.tables.formats import as_markdown
from eldgr_dspy.training.recipe import NAMES
from eldgr_dspy.words import TASKS

PLAN = outcomes()


def test_a_contrast_is_students_over_the_seeds_and_has_no_interval_without_several_values() -> None:
    # Mean 4, standard deviation 2, error 2 / sqrt(3); the quantile of t with two degrees of freedom is 4.302653.
    # Its tail beyond t is (1 - t / sqrt(t^2 + 2)) / 2, and t here is 2 sqrt(3).
    result = contrast([2.0, 4.0, 6.0], 0.95)
    half = 4.302653 * 2 / math.sqrt(3)
    assert result.delta == 4.0
    assert result.interval == pytest.approx((4 - half, 4 + half), abs=1e-5)
    assert result.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert result.by_seed == (2.0, 4.0, 6.0)
    # The sign changes its ends and nothing else.
    one, other = contrast([1.0, 2.0, 4.0], 0.9), contrast([-1.0, -2.0, -4.0], 0.9)
    assert one.interval is not None and other.interval == (-one.interval[1], -one.interval[0])
    assert (one.delta, one.p) == (-(other.delta or 0), other.p)
    # One seed has no interval, seeds that differ equally have a point, and one without a value leaves nothing.
    assert contrast([3.0], 0.95) == Contrast(3.0, None, None, (3.0,))
    for differences, p in (([2.0, 2.0], 0.0), ([0.0, 0.0], 1.0)):
        result = contrast(differences, 0.95)
        assert (result.p, result.interval) == (p, (differences[0], differences[0]))
    assert contrast([1.0, None, 2.0], 0.95) == Contrast(None, None, None, (1.0, None, 2.0))


def test_a_contrast_is_resolved_by_the_p_value_that_holm_adjusts_and_without_one_counts_in_its_family() -> None:
    family = [Contrast(1.0, (0.0, 2.0), p, (1.0, 1.0)) for p in (0.03, 0.01, 0.04)]
    assert resolve(family[:1], 0.05) == [True]
    assert resolve(family, 0.05) == [False, True, False]  # adjusted: .06, .03, .06
    undefined = contrast([None], 0.95)
    one = Contrast(1.0, (0.0, 2.0), 0.02, (1.0, 1.0))
    assert resolve([one, undefined], 0.05) == [True, False]  # .02 twice is .04
    assert resolve([one, undefined, undefined], 0.05) == [False] * 3


def measures(exact_match: float | None) -> dict[str, dict[str, float | None]]:
    return {task: dict.fromkeys(MEASURES, exact_match) for task in ("both", *TASKS)}


def test_runs_are_averaged_within_their_seed_and_one_without_a_value_leaves_it_undefined() -> None:
    arms = {
        1: {"orm": [measures(40.0), measures(60.0)], START: [measures(30.0)]},
        2: {"orm": [measures(50.0), measures(70.0)], START: [measures(20.0)]},
    }
    (result,) = compare(arms, [Outcome("?", "orm", START, "exact_match")], 0.95)
    assert (result.by_seed, result.delta) == ((20.0, 40.0), 30.0)
    arms = {1: {"orm": [measures(40.0), measures(None)], START: [measures(30.0)]}}
    (result,) = compare(arms, [Outcome("?", "orm", START, "true_steps", "retrieval")], 0.95)
    assert result == Contrast(None, None, None, (None,))


def test_noise_is_pooled_over_arms_and_leaves_the_start_out() -> None:
    arms = {
        1: {START: [measures(0.0)], "a": [measures(1.0), measures(3.0)], "b": [measures(0.0), measures(4.0)]},
        2: {START: [measures(9.0)], "a": [measures(5.0), measures(7.0)], "b": [measures(2.0), measures(6.0)]},
    }
    result = noise(arms)  # variances of runs: 2, 2, 8, 8; of the seeds' means 2, 6 and 2, 4: 8 and 2
    assert result == {"runs": pytest.approx(math.sqrt(5)), "seeds": pytest.approx(math.sqrt(5))}
    single = {1: {START: [measures(0.0)], "a": [measures(1.0)]}}
    assert noise(single) == {"runs": None, "seeds": None}


def test_the_mean_of_a_file_is_over_replies_that_have_the_measure_and_both_tasks_count_alike(tmp_path: Path) -> None:
    none: dict[str, Any] = dict.fromkeys(MEASURES, 0.0)
    lines = [{"task": "retrieval", **dict.fromkeys(MEASURES, 100.0)}, {"task": "retrieval", **none, "true_steps": None}]
    lines += [{"task": task, **none, "conflated": None} for task in TASKS]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    result = analysis.measures_in(path)
    assert result["retrieval"]["exact_match"] == pytest.approx(100 / 3)
    assert result["retrieval"]["true_steps"] == result["retrieval"]["conflated"] == 50.0
    assert result["both"]["true_steps"] == 25.0
    assert (result["retrieval"]["with_steps"], result["both"]["with_steps"]) == pytest.approx((200 / 3, 250 / 3))
    assert result["arithmetic"]["conflated"] is result["both"]["conflated"] is None


def test_rules_are_compared_under_the_judge_of_the_same_error_rate() -> None:
    scores = {"judge[wrong10]": 60.0, "judge[wrong50]": 20.0, "majority": 40.0}
    by_task = {"retrieval": scores, "arithmetic": {name: value + 10 for name, value in scores.items()}}
    assert (score_of(by_task, "judge", 0.5), score_of(by_task, "majority", 0.5)) == (25.0, 45.0)
    plan = Outcomes(0.05, 0.95, (0.1, 0.5), ("start",), (), (), (RuleOutcome("?", "judge", "majority"),), "")
    result = analysis.compare_rules({1: {"start": by_task}}, plan)
    assert [(one["error_rate"], one["contrast"].delta) for one in result] == [(0.1, 20.0), (0.5, -20.0)]


def test_outcomes_name_only_what_there_is_ask_nothing_twice_and_compare_every_arm() -> None:
    for one in (*PLAN.controls, *PLAN.contrasts):
        assert {one.arm, one.against} <= {*ARMS, START} and one.arm != one.against
        assert one.measure in MEASURES and one.task in (None, *TASKS)
    assert all(one.expected in get_args(Direction) for one in PLAN.controls)
    assert not any(one.expected for one in PLAN.contrasts)
    assert {name for one in PLAN.rules for name in (one.rule, one.against)} <= {*RULES}
    assert all({*PLAN.pools} <= {*policies(size)} for size in SIZES.values())
    assert all(0 < share < 1 for share in (*PLAN.error_rates, PLAN.alpha, PLAN.level))
    assert len({round(100 * rate) for rate in PLAN.error_rates}) == len(PLAN.error_rates)
    whole: list[Any] = [(one.arm, one.against, one.measure, one.task) for one in (*PLAN.controls, *PLAN.contrasts)]
    whole += [(one.rule, one.against) for one in PLAN.rules]
    assert len({*whole}) == len(whole)
    assert {*ARMS, START} == {name for one in (*PLAN.controls, *PLAN.contrasts) for name in (one.arm, one.against)}
    assert {reward for rewards in ARMS.values() for reward in rewards} <= {*NAMES}


def test_the_results_that_are_kept_have_their_tables_the_outcomes_fixed_before_and_controls_that_hold() -> None:
    folder = Path(__file__).resolve().parents[2] / "artifacts" / "results" / "partition"
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert (folder / "tables.md").read_text("utf-8") == as_markdown([*tables(results)])
    assert results["outcomes"] == PLAN.sha256
    names = [[one["name"] for one in results[family]] for family in ("controls", "contrasts")]
    assert names == [[one.name for one in PLAN.controls], [one.name for one in PLAN.contrasts]]
    for one in results["controls"]:
        assert one["resolved"] and (one["delta"] > 0) == (one["expected"] == "above")
