"""What replies are worth, on replies made by hand, and a judge that errs as often as it is said to."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.judged_pools import decide, judge_name, verdicts
from benchmarks.experiments.partition.policy_replies import MEASURES, measure
from benchmarks.experiments.partition.problems import problems
from benchmarks.experiments.partition.worlds import questions
from eldgr_dspy.certificates import Passage
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, write_pool
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training.steps_reward import StepReward
from tests.experiments.working import is_replay
from tests.scoring.readers import Reader, Says, by_chance

EVIDENCE = (Passage("Ada", "Ada was born in Rome. Ada works at Kodak."), Passage("Ben", "Ben was born in Oslo."))
TRUTHS = frozenset({"Ada was born in Rome.", "Ada works at Kodak.", "Ben was born in Oslo."})
WHERE, STEPS = "In which town was Ada born?", ("7 + 5 = 12", "12 - 4 = 8", "Check: 8 + 4 = 12")
BORN = Exercise("r1", WHERE, "retrieval", "born", ("Ada was born in Rome.",), "Rome", evidence=EVIDENCE, truths=TRUTHS)
PENS = "Ada has 7 pens. Ada buys 5 more. Ada loses 4. How many pens has Ada now?"
SUM = Exercise("a1", PENS, "arithmetic", "+-", STEPS, "8")


def one(exercise: Exercise, text: str, says: Callable[[str, str], Says]) -> dict[str, float | None]:
    (result,) = measure([exercise], [text], NLIScorer(Reader(says)))
    assert tuple(result) == MEASURES
    return result


def always(reply: Says) -> Callable[[str, str], Says]:
    return lambda premise, hypothesis: reply


@pytest.mark.parametrize(("exercise", "bare"), [(BORN, "A: Rome"), (SUM, "#### 8")], ids=["retrieval", "arithmetic"])
def test_a_right_reply_has_everything_one_without_steps_no_share_of_true_ones_and_an_empty_one_nothing(
    exercise: Exercise, bare: str
) -> None:
    for label in ("entailment", "neutral", "contradiction"):
        result = one(exercise, exercise.reply, always(label))
        assert [result[name] for name in MEASURES[:4]] == [100, 100, 100.0, 0.0]
    result = one(exercise, bare, always("entailment"))
    assert (result["exact_match"], result["step_reward"]) == (100, 0.0)
    assert result["true_steps"] is result["conflated"] is None
    assert list(one(exercise, "", always("entailment")).values()) == [0, 0, None, None, 0.0]


@pytest.mark.parametrize(("reply", "percent"), [("entailment", 50.0), ("neutral", 0.0), ("contradiction", 0.0)])
def test_a_false_step_is_conflated_exactly_if_the_reader_takes_it_to_follow(reply: Says, percent: float) -> None:
    result = one(BORN, "Ada works at Kodak.\nAda was born in Oslo.\nA: Oslo", always(reply))
    assert (result["exact_match"], result["true_steps"], result["conflated"]) == (0, 50.0, percent)
    assert result["certified"] == 100  # another passage has the town


def test_a_step_is_read_under_the_question_and_the_steps_before_it() -> None:
    """The reader takes the second step to follow from just that, and from nothing else."""
    premise, text = f"{SUM.question}\n7 + 5 = 12", "7 + 5 = 12\n12 - 4 = 9\n#### 9"
    result = one(SUM, text, lambda before, step: "entailment" if before.strip() == premise else "neutral")
    assert (result["true_steps"], result["conflated"]) == (50.0, 50.0)


def test_a_word_problem_is_certified_by_its_own_derivation_with_a_check_and_a_name_by_its_passage() -> None:
    steps = "7 + 5 = 12\n12 - 4 = 8"
    texts = (f"{steps}\n#### 8", f"{steps}\nCheck: 8 + 4 = 12\n#### 9", "#### 8")
    assert [one(SUM, text, always("neutral"))["certified"] for text in texts] == [0, 0, 0]
    # In retrieval the full name is right and uncertified, and the short name the opposite.
    exercise = next(one for one in questions("any", 5, 1, 1) if one.alias)
    short = exercise.reply.replace("Republic of ", "")
    assert [one(exercise, exercise.reply, always("neutral"))[name] for name in MEASURES[:2]] == [100, 0]
    assert [one(exercise, short, always("neutral"))[name] for name in MEASURES[:2]] == [0, 100]


def test_the_step_reward_is_that_of_training_without_token_confidence() -> None:
    scorer = NLIScorer(Reader(by_chance("entailment", "neutral", "contradiction")))
    exercises = [*questions("any", 8, 1, 2), *problems("any", 8, 1, fresh=True)]
    texts, rows = [one.reply for one in exercises], [one.row() for one in exercises]
    columns = {name: [row[name] for row in rows] for name in ("question", "task", "evidence")}
    values = StepReward(scorer, confidence=False)(prompts=["?"] * 16, completions=texts, **columns)
    rewards = [result["step_reward"] for result in measure(exercises, texts, scorer)]
    assert rewards == pytest.approx([100 * reward for reward in values])
    assert len({*values}) > 8


def pool(path: Path, answers: Sequence[Sequence[str | None]], task: str = "retrieval") -> Pool:
    """A pool of questions whose right answer is 1, with these candidates."""
    evidence = [{"title": "", "text": "It is 1 or 2."}] if task == "retrieval" else []
    common = {"question": "What?", "task": task, "evidence": evidence, "gold": ["1"]}
    pools = [[{"text": answer or "", "answer": answer} for answer in own] for own in answers]
    rows = ({**common, "id": f"q{number}", "candidates": own} for number, own in enumerate(pools))
    return write_pool(path, map(Row.model_validate, rows))


def preferences(result: Pool, rate: float, seed: int = 1) -> list[str | None]:
    """The answers that the judge prefers, with a dash where it abstains."""
    rows = [row.candidates for row in result.rows()]
    return [
        candidates[reply.content["preferred"]].answer if reply.content is not None else "-"
        for candidates, reply in zip(rows, verdicts([result], rate, seed), strict=True)
    ]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_a_judge_errs_at_its_rate_and_never_prefers_a_candidate_without_an_answer(rate: float, tmp_path: Path) -> None:
    n = 2_000
    result = preferences(pool(tmp_path / "p.jsonl", [[None, "1", "2", None, "1", "3"]] * n), rate)
    assert {*result} == {"1", "2", "3"}
    wrong = sum(answer != "1" for answer in result)
    assert abs(wrong - n * rate) < 3.5 * math.sqrt(n * rate * (1 - rate))
    assert abs(result.count("2") - wrong / 2) < 3.5 * math.sqrt(wrong / 4)  # errors favor no candidate


def test_a_judge_takes_what_there_is_and_its_seed_determines_where_it_errs(tmp_path: Path) -> None:
    result = pool(tmp_path / "p.jsonl", [["2", None], ["1", None, "1"], [None, None]] * 20)
    for rate in (0.0, 0.5, 1.0):
        assert preferences(result, rate) == ["2", "1", "-"] * 20
    result = pool(tmp_path / "two.jsonl", [["1", "2"]] * 50)
    assert preferences(result, 0.5) == preferences(result, 0.5) != preferences(result, 0.5, seed=2)


def test_rules_decide_on_recordings_alone(tmp_path: Path) -> None:
    """The judge is right or wrong throughout, and the lock lets only certified answers through."""
    pools = tmp_path / "pools"
    pools.mkdir()
    pool(pools / "start-retrieval.jsonl", [["3", "3", "1", "2"], ["3", "3", "1", "4"]])
    pool(pools / "start-arithmetic.jsonl", [["2", "2", "1"], ["2", "2", "1"]], "arithmetic")
    pool(pools / "derived.jsonl", [["1"], ["1"]], "arithmetic")
    result = decide(tmp_path, "start", (0.0, 1.0), seed=1)
    assert [result["retrieval"][f"judge[{judge_name(rate)}]"] for rate in (0.0, 1.0)] == [100, 0]
    assert [result["retrieval"][f"eldgr[{judge_name(rate)}]"] for rate in (0.0, 1.0)] == [100, 0]
    assert result["retrieval"]["majority"] == result["arithmetic"]["majority"] == 0
    assert result["arithmetic"]["eldgr[wrong0]"] == 0  # "1" is not a derivation
    assert is_replay(tmp_path / "runs" / "start" / "journal.jsonl")
