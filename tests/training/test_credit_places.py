"""A step is credited where the model wrote it, whatever was left out of the text that was split into steps."""

import pytest

from eldgr_dspy.training import StepReward
from eldgr_dspy.training.completions import outputs_of
from eldgr_dspy.training.step_credit import steps_in
from tests.training.calling import Fixed, Log, rows


@pytest.mark.parametrize(
    "text",
    [
        "One two.\nThree four.\nA: x",
        "One two.\nHmm.\nThree four.\nA: x",
        "<think>One two.\nHmm.\nWait\nThree four.</think>\nA: x",
        "Hmm.\n<think>\nOne two.\n</think>\nHmm.\nThree four.\nA: x",
    ],
)
def test_a_step_is_where_it_was_written_without_padding_and_tags(text: str) -> None:
    log = Log()
    StepReward(Fixed(), confidence=False)(["?"], [text], **rows(1), **log.arguments)
    placed = steps_in(log.columns["ra_msd_steps"][0], outputs_of([text])[0])
    written = [text[start:end] for start, end, _ in placed]
    # The line break that ends a step stands in the place of the first character of a tag.
    assert [step.removesuffix("<").strip() for step in written] == ["One two.", "Three four."]
    assert {reward for _, _, reward in placed} == {1.0}


def test_a_completion_that_the_scorer_failed_on_has_no_steps() -> None:
    assert steps_in(None, outputs_of(["One two."])[0]) == []
