"""Lines that say nothing never raise the reward of the steps, and a step that cannot be measured counts as 0."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import StepReward, TokenConfidence
from eldgr_dspy.training.named_rewards import process_reward
from eldgr_dspy.training.padding import without_padding
from tests.scoring.readers import Reader, by_chance
from tests.training.calling import UNMEASURED, Fixed, Log, by_heart, rows

TEXT = "The host was Qatar.\nThe capital of it is Doha.\nA: Doha"


def earned(text: str, read: Any = by_heart) -> dict[str, float]:
    """What a text earns for its steps, by reward."""
    rewards = (StepReward(NLIScorer(Reader(read)), confidence=False), process_reward(Reader(read)))
    return {reward.__name__: reward(["?"], [text], **rows(1))[0] for reward in rewards}


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["first", "between", "before the answer", "last"])
def test_thirty_lines_of_hmm_never_raise_the_reward(place: int) -> None:
    """They count as 30 steps that earn nothing: two steps of 32 are measured."""
    lines = TEXT.split("\n")
    padded = "\n".join([*lines[:place], *["Hmm."] * 30, *lines[place:]])
    assert earned(padded) == {name: pytest.approx(reward * 2 / 32) for name, reward in earned(TEXT).items()}


def test_the_padding_of_one_line_of_sentences_does_not_make_them_one_step() -> None:
    """As three steps they earn a third, as one all of it: divided by two steps, that was more."""

    def read(premise: str, hypothesis: str) -> Any:
        return "contradiction" if hypothesis.startswith(("So it", "Then")) else "entailment"

    text = "The host was Qatar. So it is hot. Then it is cold."
    before, after = earned(text, read)["prm"], earned(f"{text}\nHmm.", read)["prm"]
    assert [before, after] == pytest.approx([1 / 3, 1 / 4])


LAYOUTS = (
    "{0}. {1}. {2}.",
    "{0}.\n{1}.\n{2}.",
    "{0}.\n\n{1}.\n{2}.",
    "1. {0}.\n2. {1}.\n3. {2}.",
    "Step 1: {0}\nStep 2:\n{1}",
)
SAID = ["The host was Qatar", "It is hot", "So", "Doha is a city", "$$x$$", "7 + 7 = 14", "", "Qatar is not Doha"]
PADDING = ["Hmm.", "...", "Wait", "---", "7", "Step 9:", "Thought:", "**", "", "1.", "\u200b", "- ok"]
texts = st.builds(str.format, st.sampled_from(LAYOUTS), *[st.sampled_from(SAID)] * 3)
answers = st.sampled_from(["", "\nA: Doha", "\n#### 7", "\nThe answer is Doha."])


@example("So.\nSo.\nSo.", "", ["Step 9:"], 1)
@given(texts, answers, st.lists(st.sampled_from(PADDING), min_size=1, max_size=5), st.integers(1, 60))
def test_no_appended_padding_raises_a_reward(text: str, answer: str, padding: list[str], times: int) -> None:
    read = by_chance("contradiction", "neutral", "entailment")
    before = earned(text + answer, read)
    after = earned("\n".join([text + answer, *padding * times]), read)
    assert all(after[name] <= before[name] + 1e-12 for name in before)


@pytest.mark.parametrize(
    ("text", "kept", "lines"),
    [
        ("a b\nHmm.\n\nc d\n...\nA: x", "a b\n\nc d\nA: x", 2),
        ("a b\n#### 7", "a b\n#### 7", 0),
        ("\n\n#### 7\n a b", "\n\n#### 7\n a b", 0),
        ("#### 6\na b\n#### 7", "a b\n#### 7", 1),
        ("Step 1:\na b\nStep 2:\n\nHmm.\nc d\nStep 3:\n#### 7", "Step 1:\na b\nStep 2:\n\nc d\n#### 7", 2),
        ("a b\nStep 7:\nStep 8:\n", "a b\n", 2),
        ("a b\n```\nx\n```\n\\[\nx\n\\]\nso", "a b\n```\nx\n```\n\\[\nx\n\\]\n", 1),
        ("Hmm.\r\na b\rHmm.\rc d", "a b\rc d", 2),
        ("\nHmm.\n\nYes.", "Hmm.\n", 1),
        ("It is so. " * 300 + "\nHmm.\n#### 7", "It is so. " * 300 + "\n#### 7", 1),
        (" \n", " \n", 0),
        ("", "", 0),
    ],
)
def test_padding_is_a_line_of_which_no_step_could_be_scored(text: str, kept: str, lines: int) -> None:
    left, padding = without_padding(text)
    assert ("".join(line for line, _ in left), padding) == (kept, lines)
    assert all(text.startswith(line, start) for line, start in left)


def test_an_answer_after_more_lines_than_there_may_be_steps_is_still_the_answer() -> None:
    left, padding = without_padding("a b\n" + "Hmm.\n" * 280 + "#### 7\n" + "Hmm.\n" * 20)
    assert ([line for line, _ in left], padding) == (["a b\n", "#### 7\n"], 300)


def test_a_step_that_cannot_be_measured_counts_as_0() -> None:
    """A display of LaTeX is a step without words; so is what the scorer left undefined."""
    reward = StepReward(Fixed(), confidence=False)
    log = Log()
    columns = rows(1)
    lost = StepReward(Fixed(UNMEASURED, UNMEASURED), confidence=False)
    assert lost(["?"], [TEXT], **columns, **log.arguments) == [0.0] and log.metrics["ra_msd/undefined"] == 1
    assert reward(["?"], [TEXT], **columns, **log.arguments) == [1.0] and log.metrics["ra_msd/padding"] == 0
    halves = earned("The host was Qatar.\n\\[ x = 7 \\]")
    whole = earned("The host was Qatar.")
    assert halves == {name: pytest.approx(reward / 2) for name, reward in whole.items()}


def test_the_log_says_how_many_lines_were_padding_and_what_was_earned() -> None:
    log = Log()
    StepReward(Fixed(), confidence=False)(["?"] * 2, [TEXT, f"Hmm.\nSo\n{TEXT}"], **rows(2), **log.arguments)
    assert (log.metrics["ra_msd/padding"], log.metrics["ra_msd/steps"]) == (1, 2)
    tables = [json.loads(table) for table in log.columns["ra_msd_steps"]]
    assert [(table["reward"], table["padding"], len(table["steps"])) for table in tables] == [(1, 0, 2), (0.5, 2, 2)]


def test_the_confidence_of_a_step_is_not_that_of_padding() -> None:
    scorer, text = Fixed(), "a b\nHmm.\nc d"
    tokens = TokenConfidence(text, (4, 9, 12), (0.0, -9.0, 0.0))
    StepReward(scorer)(["?"], [text], **rows(1), token_confidence=[tokens])
    confidences = scorer.given[0].confidences
    assert confidences is not None and list(confidences) == [1.0, 1.0]
    assert not any(isinstance(one, Undefined) for one in confidences)


def test_two_words_are_a_step_and_raise_a_low_mean_if_they_are_neutral() -> None:
    def read(premise: str, hypothesis: str) -> Any:
        return "contradiction" if "wrong" in hypothesis else "neutral"

    low = "It is wrong here."
    assert earned(low, read) == earned("Hmm.\n" * 30 + low, read) == {"ra_msd": 0.0, "prm": 0.0}
    assert all(reward > 0.35 for reward in earned("Hmm, well.\n" * 30 + low, read).values())
