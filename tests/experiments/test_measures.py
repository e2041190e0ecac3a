"""What replies are worth, on replies made by hand, and a judge that errs as often as it is said to."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.experiments.partition.judged_pools import decide, judge_named, verdicts
from benchmarks.experiments.partition.policy_replies import MEASURES, measured
from benchmarks.experiments.partition.problems import problems
from benchmarks.experiments.partition.solved import Solved
from benchmarks.experiments.partition.worlds import questions
from eldgr_dspy.certificates import Passage
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, write_pool
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training.steps_reward import StepReward
from tests.scoring.readers import Reader, Says, by_chance

BORN = Solved(
    "r1",
    "In which town was Ada born?",
    "retrieval",
    "born",
    ("Ada was born in Rome.",),
    "Rome",
    evidence=(Passage("Ada", "Ada was born in Rome. Ada works at Kodak."), Passage("Ben", "Ben was born in Oslo.")),
    truths=frozenset({"Ada was born in Rome.", "Ada works at Kodak.", "Ben was born in Oslo."}),
)
SUM = Solved(
    "a1",
    "Ada has 7 pens. Ada buys 5 more. Ada loses 4. How many pens has Ada now?",
    "arithmetic",
    "+-",
    ("7 + 5 = 12", "12 - 4 = 8", "Check: 8 + 4 = 12"),
    "8",
)


def one(solved: Solved, text: str, says: Callable[[str, str], Says]) -> dict[str, float | None]:
    (result,) = measured([solved], [text], NLIScorer(Reader(says)))
    assert tuple(result) == MEASURES
    return result


def always(reply: Says) -> Callable[[str, str], Says]:
    return lambda premise, hypothesis: reply


@pytest.mark.parametrize("solved", [BORN, SUM], ids=lambda solved: solved.task)
def test_the_right_reply_has_everything_and_is_not_conflated_whatever_the_reader_says(solved: Solved) -> None:
    for said in ("entailment", "neutral", "contradiction"):
        result = one(solved, solved.reply, always(said))
        assert [result[name] for name in MEASURES[:4]] == [100, 100, 100.0, 0.0]


@pytest.mark.parametrize(("reply", "conflated"), [("entailment", 50.0), ("neutral", 0.0), ("contradiction", 0.0)])
def test_a_false_step_is_conflated_exactly_if_the_reader_takes_it_to_follow(reply: Says, conflated: float) -> None:
    result = one(BORN, "Ada works at Kodak.\nAda was born in Oslo.\nA: Oslo", always(reply))
    assert (result["exact_match"], result["true_steps"], result["conflated"]) == (0, 50.0, conflated)
    assert result["certified"] == 100  # another passage has the town


def test_a_step_is_read_under_the_question_and_the_steps_before_it() -> None:
    """The reader takes the second step to follow from just that, and from nothing else."""
    premise = f"{SUM.question}\n7 + 5 = 12"
    text = "7 + 5 = 12\n12 - 4 = 9\n#### 9"
    result = one(SUM, text, lambda before, step: "entailment" if before.strip() == premise else "neutral")
    assert (result["true_steps"], result["conflated"]) == (50.0, 50.0)


@pytest.mark.parametrize(("solved", "text"), [(BORN, "A: Rome"), (SUM, "#### 8")], ids=["retrieval", "arithmetic"])
def test_a_reply_without_steps_has_an_answer_and_no_share_of_true_ones(solved: Solved, text: str) -> None:
    result = one(solved, text, always("entailment"))
    assert (result["exact_match"], result["step_reward"]) == (100, 0.0)
    assert result["true_steps"] is result["conflated"] is None


def test_an_empty_reply_is_wrong_and_uncertified() -> None:
    for solved in (BORN, SUM):
        assert list(one(solved, "", always("entailment")).values()) == [0, 0, None, None, 0.0]


@pytest.mark.parametrize(
    "text",
    ["7 + 5 = 12\n12 - 4 = 8\n#### 8", "7 + 5 = 12\n12 - 4 = 8\nCheck: 8 + 4 = 12\n#### 9", "#### 8"],
    ids=["no-check", "another-answer", "no-steps"],
)
def test_a_word_problem_is_certified_by_its_own_derivation_with_a_check(text: str) -> None:
    assert one(SUM, text, always("neutral"))["certified"] == 0


def test_the_full_name_is_right_and_uncertified_and_the_short_name_the_opposite() -> None:
    solved = next(one for one in questions("any", 5, 1, 1) if one.alias)
    short = solved.reply.replace("Republic of ", "")
    assert [one(solved, solved.reply, always("neutral"))[name] for name in MEASURES[:2]] == [100, 0]
    assert [one(solved, short, always("neutral"))[name] for name in MEASURES[:2]] == [0, 100]


def test_the_step_reward_is_that_of_training_without_token_confidence() -> None:
    scorer = NLIScorer(Reader(by_chance("entailment", "neutral", "contradiction")))
    solved = [*questions("any", 8, 1, 2), *problems("any", 8, 1, unseen=True)]
    texts = [one.reply for one in solved]
    rows = [one.row() for one in solved]
    columns = {name: [row[name] for row in rows] for name in ("question", "task", "evidence")}
    earned = StepReward(scorer, confidence=False)(prompts=["?"] * 16, completions=texts, **columns)
    assert [result["step_reward"] for result in measured(solved, texts, scorer)] == pytest.approx(
        [100 * reward for reward in earned]
    )
    assert len({*earned}) > 8


def pool(path: Path, answers: Sequence[Sequence[str | None]], task: str = "retrieval") -> Pool:
    """A pool of questions whose right answer is 1, with these candidates."""
    rows: Iterator[Row] = (
        Row.model_validate(
            {
                "id": f"q{number}",
                "question": "What?",
                "task": task,
                "candidates": [{"text": answer or "", "answer": answer} for answer in own],
                "evidence": [{"title": "", "text": "It is 1 or 2."}] if task == "retrieval" else [],
                "gold": ["1"],
            }
        )
        for number, own in enumerate(answers)
    )
    return write_pool(path, rows)


def preferred(result: Pool, rate: float, seed: int = 1) -> list[str | None]:
    """The answers that the judge prefers, with a dash where it abstains."""
    rows = [row.candidates for row in result.rows()]
    return [
        candidates[reply.content["preferred"]].answer if reply.content is not None else "-"
        for candidates, reply in zip(rows, verdicts([result], rate, seed), strict=True)
    ]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_a_judge_errs_at_its_rate_and_never_prefers_a_candidate_without_an_answer(rate: float, tmp_path: Path) -> None:
    n = 2_000
    result = preferred(pool(tmp_path / "p.jsonl", [[None, "1", "2", None, "1", "3"]] * n), rate)
    assert {*result} == {"1", "2", "3"}
    wrong = sum(answer != "1" for answer in result)
    assert abs(wrong - n * rate) < 3.5 * math.sqrt(n * rate * (1 - rate))
    assert abs(result.count("2") - wrong / 2) < 3.5 * math.sqrt(wrong / 4)  # errors favor no candidate


def test_a_judge_without_a_right_or_without_a_wrong_candidate_takes_what_there_is(tmp_path: Path) -> None:
    result = pool(tmp_path / "p.jsonl", [["2", None], ["1", None, "1"], [None, None]] * 20)
    for rate in (0.0, 0.5, 1.0):
        assert preferred(result, rate) == ["2", "1", "-"] * 20


def test_the_seed_determines_where_a_judge_errs(tmp_path: Path) -> None:
    result = pool(tmp_path / "p.jsonl", [["1", "2"]] * 50)
    assert preferred(result, 0.5) == preferred(result, 0.5) != preferred(result, 0.5, seed=2)


def test_rules_decide_on_recordings_alone(tmp_path: Path) -> None:
    """The judge is right or wrong throughout, and the lock lets only certified answers through."""
    pools = tmp_path / "pools"
    pools.mkdir()
    pool(pools / "start-retrieval.jsonl", [["3", "3", "1", "2"], ["3", "3", "1", "4"]])
    pool(pools / "start-arithmetic.jsonl", [["2", "2", "1"], ["2", "2", "1"]], "arithmetic")
    pool(pools / "derived.jsonl", [["1"], ["1"]], "arithmetic")
    result = decide(tmp_path, "start", (0.0, 1.0), seed=1)
    assert [result["retrieval"][f"judge[{judge_named(rate)}]"] for rate in (0.0, 1.0)] == [100, 0]
    assert [result["retrieval"][f"eldgr[{judge_named(rate)}]"] for rate in (0.0, 1.0)] == [100, 0]
    assert result["retrieval"]["majority"] == result["arithmetic"]["majority"] == 0
    assert result["arithmetic"]["eldgr[wrong0]"] == 0  # "1" is not a derivation
    lines = (tmp_path / "runs" / "start" / "journal.jsonl").read_text("utf-8").splitlines()
    consultations = [entry for entry in map(json.loads, lines) if entry["kind"] == "consultation"]
    assert consultations and all(entry["recorded"] for entry in consultations)
