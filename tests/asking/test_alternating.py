"""The two roles of a planning judge are tuned in turn: one is frozen, and a stage that lowers the score is undone."""

from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges import PlanThenCheck, tuned_in_turn
from eldgr_dspy.programs.testing import scripted_lm, text_of

INPUTS = {"question": "Which?", "evidence": ["Doha is the capital of Qatar."], "candidates": ["Dubai", "Doha"]}
EXAMPLES = [dspy.Example(**{**INPUTS, "question": f"{n}. Which?"}, gold=1).with_inputs(*INPUTS) for n in range(4)]
BOTH = ["interactor.predict", "navigator.predict"]


class Rewrites:
    """An optimizer that appends a word to the instructions of each predictor it is shown, and keeps their names."""

    def __init__(self, word: str) -> None:
        self.word, self.shown = word, list[str]()

    def compile(self, student: Any, *, trainset: Any) -> Any:
        for name, predictor in student.named_predictors():
            self.shown.append(name)
            signature = predictor.signature
            predictor.signature = signature.with_instructions(f"{signature.instructions} {self.word}")
        student._compiled = True  # as DSPy's do
        return student


def replying(request: Any) -> Any:
    """Prefers Doha if the checks are sharp and are read closely; else finds both right, so that Dubai is first."""
    text = text_of(request)
    if "broken" in text:
        return "?"
    if "checks" in request.config.response_format["schema"]["properties"]:
        return {"checks": ["SHARP"] if "sharp" in text else ["VAGUE"]}
    told = "SHARP" in text and "closely" in text and "blind" not in text
    return {"check_rationale": "", "passed": ["\nDoha\n" in text or not told], "consistent": True}


def is_right(example: dspy.Example, prediction: dspy.Prediction) -> float:
    return float(prediction.get("preferred") == example.gold)


def tuned(*words: str, judge: PlanThenCheck | None = None) -> tuple[PlanThenCheck, list[float], list[list[str]]]:
    """The judge kept, the scores, and whom each stage's optimizer was shown."""
    optimizers = [Rewrites(word) for word in words]
    with dspy.context(lm=scripted_lm(replying)):
        kept, scores = tuned_in_turn(
            judge or PlanThenCheck(), optimizers, trainset=EXAMPLES[:1], devset=EXAMPLES[1:], metric=is_right
        )
    return kept, scores, [one.shown for one in optimizers]


def words_of(judge: PlanThenCheck) -> dict[str, str]:
    """What was appended to each role's instructions."""
    known = ("sharp", "closely", "blind", "broken")
    predictors: list[tuple[str, Any]] = sorted(judge.named_predictors())
    return {
        name: " ".join(word for word in one.signature.instructions.split()[-3:] if word in known)
        for name, one in predictors
    }


def test_stages_alternate_and_each_optimizer_is_shown_one_role() -> None:
    kept, scores, shown = tuned("sharp", "closely", "sharp", "closely")
    assert shown == [["navigator.predict"], ["interactor.predict"]] * 2
    assert scores == [0, 0, 1, 1, 1]  # the plan alone changes nothing; both together do
    assert words_of(kept) == dict(zip(BOTH, ["closely closely", "sharp sharp"], strict=True))


@pytest.mark.parametrize("worse", ["blind", "broken"])  # wrong, and a reply that cannot be read
def test_a_stage_that_lowers_the_score_is_undone_and_the_next_starts_from_what_was_kept(worse: str) -> None:
    kept, scores, shown = tuned("sharp", "closely", "sharp", worse, "broken", "closely")
    assert scores == [0, 0, 1, 1, 0, 0, 1]
    assert shown[4:] == [["navigator.predict"], ["interactor.predict"]]
    assert words_of(kept) == dict(zip(BOTH, ["closely closely", "sharp sharp"], strict=True))


def test_the_judge_that_was_given_stays_as_it_is_and_the_one_kept_can_be_saved_and_tuned_again() -> None:
    given = PlanThenCheck()
    before = given.dump_state()
    kept, _, _ = tuned("sharp", judge=given)
    again, scores, shown = tuned("sharp", "closely", judge=kept)
    assert given.dump_state() == before != kept.dump_state()
    assert sorted(again.dump_state()) == BOTH
    assert (scores, shown) == ([0, 0, 1], [["navigator.predict"], ["interactor.predict"]])


def test_without_a_stage_the_judge_is_returned_with_its_score() -> None:
    judge = PlanThenCheck()
    kept, scores, _ = tuned(judge=judge)
    assert (kept is judge, scores) == (True, [0])


def test_an_optimizer_of_dspy_teaches_one_role_and_leaves_the_other_its_demonstrations() -> None:
    optimizers = [dspy.BootstrapFewShot(max_bootstrapped_demos=1, max_labeled_demos=0) for _ in range(2)]
    demos: list[list[int]] = []
    for stages in (1, 2):
        with dspy.context(lm=scripted_lm(replying)):
            kept, _ = tuned_in_turn(
                PlanThenCheck(), optimizers[:stages], trainset=EXAMPLES[:1], devset=EXAMPLES[1:], metric=is_right
            )
        demos.append([len(one.demos) for _, one in sorted(kept.named_predictors())])
    assert demos == [[0, 1], [1, 1]]


def test_a_failed_call_is_raised_and_not_scored() -> None:
    with dspy.context(lm=scripted_lm([dspy.LMServerError("down")])), pytest.raises(dspy.LMError):
        tuned_in_turn(PlanThenCheck(), [], trainset=[], devset=EXAMPLES, metric=is_right)


def test_without_examples_to_score_on_nothing_is_tuned() -> None:
    with pytest.raises(ArgumentError, match="devset must be at least one example; got 0"):
        tuned_in_turn(PlanThenCheck(), [], trainset=EXAMPLES, devset=[], metric=is_right)
