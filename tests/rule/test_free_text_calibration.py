"""The threshold of free text: chosen on half of the judged pairs, measured on the other, and tied to its model."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.answer_types.entailment.calibration import Calibration, load_calibration
from eldgr_dspy.answer_types.entailment.readings import Pair
from eldgr_dspy.answer_types.free_text import FreeText
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.scoring.calibrating import JudgedPair, calibrate, read_pairs
from eldgr_dspy.rows import PassageRow
from eldgr_dspy.statistics import proportion_upper_bound
from tests.bag_of_words import BagOfWords, YesMan
from tests.scorers import trained_nli

SHARES = [0.55, 0.65, 0.75, 0.85, 0.95]


class Graded(BagOfWords):
    """Reads the share of entailment that the premise states."""

    def probabilities(self, pairs: Sequence[Pair]) -> list[tuple[float, ...]]:
        stated = [float(premise.split()[-1]) if premise[-1].isdigit() else 1.0 for premise, _ in pairs]
        return [(0.0, 1 - share, share) for share in stated]


def judged(number: int, share: float, supported: bool) -> JudgedPair:
    return JudgedPair(
        question=f"What is number {number}?",
        answer="Apples fall far down.",
        passages=[PassageRow(title="", text=f"They say that apples fall far down {share}")],
        supported=supported,
    )


def graded(n: int, wrong_below: float, seed: int = 0) -> list[JudgedPair]:
    drawn = random.Random(seed)
    shares = [drawn.choice(SHARES) for _ in range(n)]
    return [judged(number, share, share >= wrong_below or number % 2 == 0) for number, share in enumerate(shares)]


def test_the_lowest_threshold_that_reaches_the_precision_is_chosen_and_measured_on_the_other_half() -> None:
    pairs = graded(400, wrong_below=0.7)
    found = calibrate(Graded(), pairs, "hash", precision=0.9)
    assert found.threshold == 0.75
    assert found.precision == 1
    assert found.lower == 1 - proportion_upper_bound(found.certified, 0, level=0.95)
    assert found.chosen_on + found.measured_on == 400
    assert 0.5 < found.recall < 1
    assert found == calibrate(Graded(), pairs[::-1], "hash", precision=0.9)
    assert calibrate(Graded(), pairs, "hash", precision=0.6).threshold == 0.55


def test_the_bound_counts_the_errors_of_the_second_half() -> None:
    pairs = graded(400, wrong_below=0.7)
    found = calibrate(Graded(), pairs, "hash", precision=0.6)
    wrong = round(found.certified * (1 - found.precision))
    assert wrong > 0
    assert found.lower == 1 - proportion_upper_bound(found.certified, wrong, level=0.95) < found.precision


def test_the_pairs_of_a_question_stay_in_one_half() -> None:
    pairs = graded(400, wrong_below=0.7)
    found = calibrate(Graded(), [pair for pair in pairs for _ in range(2)], "hash")
    assert (found.chosen_on, found.measured_on) == (400, 400)
    with pytest.raises(ArgumentError, match="in each half of its questions"):
        calibrate(Graded(), [pair.model_copy(update={"question": "?"}) for pair in pairs], "hash")


def test_too_few_pairs_are_refused_with_how_many_are_needed() -> None:
    with pytest.raises(
        ArgumentError, match=r"at least 29 supported pairs in each half.*got 10 and 10.*Give 58 or more"
    ):
        calibrate(Graded(), graded(20, wrong_below=0), "hash")


def test_a_precision_that_no_threshold_reaches_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"No threshold reaches a precision of 0.9: the greatest lower bound"):
        calibrate(Graded(), graded(400, wrong_below=2), "hash")


MADE = Calibration("bag of words", 0.75, 0.9, 0.97, 0.93, 0.95, 0.6, 100, 100, 60, "0" * 64)


def test_a_calibration_is_kept_in_a_file_and_belongs_to_its_model_and_goal(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text(json.dumps(MADE.to_json()), encoding="utf-8")
    assert load_calibration(tmp_path / "made.json") == MADE
    kind = FreeText(BagOfWords(), tmp_path / "made.json")
    assert (kind.threshold, kind.experimental) == (0.75, False)
    assert FreeText(BagOfWords()).experimental
    with pytest.raises(ArgumentError, match="must be of the NLI model 'yes-man'; got one of 'bag of words'"):
        FreeText(YesMan(), MADE)
    with pytest.raises(ArgumentError, match="calibration must be of the NLI model"):
        FreeText(BagOfWords(), MADE, goal="{}")
    with pytest.raises(ArgumentError, match="calibration must be of the NLI model"):
        FreeText(BagOfWords(), replace(MADE, model="another"))


@pytest.mark.parametrize("threshold", [float("nan"), 0.0, 0.5, -1.0, 1.5])
def test_a_calibration_of_which_the_threshold_would_certify_anything_is_refused(threshold: float) -> None:
    with pytest.raises(ArgumentError, match=r"a threshold above 0\.5 and at most 1; got"):
        FreeText(BagOfWords(), replace(MADE, threshold=threshold))


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({**MADE.to_json(), "threshold": "high"})])
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "made.json").write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"calibration='.*made.json' must "):
        load_calibration(tmp_path / "made.json")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "line 2: the line is wrong"),
        ("{", "line 2: not one JSON object"),
        ('{"question": "?", "answer": "a", "passages": [], "supported": "yes"}', "line 2: supported is wrong"),
        ('{"question": "?", "answer": "a", "passages": ["p"], "supported": true}', "line 2: passages.0 is wrong"),
        ('{"question": "?", "answer": "a", "supported": true}', "line 2: passages is wrong"),
    ],
)
def test_a_line_that_is_no_pair_is_refused_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    first = judged(1, 0.5, supported=True).model_dump_json()
    (tmp_path / "pairs.jsonl").write_text(f"{first}\n{line}\n", encoding="utf-8")
    with pytest.raises(PoolError, match=f"pairs.jsonl, {said}"):
        read_pairs(tmp_path / "pairs.jsonl")


def facts() -> Iterator[dict[str, Any]]:
    """Judged pairs of facts that the trained model has learnt; every third answer has another value."""
    from tests import tiny_nli

    drawn = random.Random(4)
    for number in range(150):
        fact = tiny_nli._fact(drawn)
        supported = number % 3 > 0
        answer = fact if supported else tiny_nli._at_odds(drawn, fact)
        yield {
            "question": f"Is it so that {answer.told(0).rstrip('.')}? ({number})",
            "answer": answer.told(1),
            "passages": [{"text": fact.told(0)}],
            "supported": supported,
        }


def test_the_command_calibrates_the_trained_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from eldgr_dspy.programs.scoring.nli import load_nli

    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "made.json"
    pairs.write_text("".join(f"{json.dumps(pair)}\n" for pair in facts()), encoding="utf-8")
    command = ["calibrate", str(pairs), "--nli", str(trained_nli()), "--out", str(out), "--goal", "{}"]
    assert main(command) == 0, capsys.readouterr()
    printed = capsys.readouterr().out
    assert "On 75 others:" in printed
    assert f"Written to {out}." in printed
    made = load_calibration(out)
    assert (made.wanted, made.level, made.chosen_on) == (0.9, 0.95, 75)
    assert made.lower > 0.8
    assert not FreeText(load_nli(trained_nli()), out, goal="{}").experimental
    assert main([*command, "--precision", "0.99"]) == 1
    assert "at least 299 supported pairs" in capsys.readouterr().err
