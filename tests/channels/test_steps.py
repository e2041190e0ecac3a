"""Steps are pieces whose spans rebuild the text, whatever it is, and are split where a reader would split them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.blocks import blocks
from eldgr_dspy.channels.steps import LONGEST, MOST, Step, Steps, split_steps, unmeasurable
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.text.sentence_ends import sentence_starts, sentences
from tests.channels.hard_texts import PIECES

composed = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join)


def rebuilt(split: Steps) -> str:
    apart = [split.answer] if split.answer else list[Step]()
    tiles = sorted([*split.steps, *apart], key=lambda step: step.start)
    at = 0
    for tile in tiles:
        assert tile.start == at < tile.end and tile.text == split.text[tile.start : tile.end]
        at = tile.end
    return "".join(tile.text for tile in tiles)


def contents(text: str) -> list[str]:
    return [step.content for step in split_steps(text).steps]


@given(composed, st.integers(1, 30), st.integers(1, 5))
@example("\n#### 18\n", 1, 1)
@example("a\n\n\n", 1, 1)
@example("#### 1\na\nb", 5, 1)
def test_the_spans_rebuild_any_text(text: str, longest: int, most: int) -> None:
    assert rebuilt(split_steps(text)) == text
    capped = split_steps(text, longest, most)
    assert rebuilt(capped) == text and len(capped.steps) <= max(most, 1)


@given(composed)
def test_no_step_but_of_a_blank_text_is_blank(text: str) -> None:
    if text.strip():
        assert all(step.text.strip() for step in split_steps(text).steps)


@given(composed)
def test_no_block_is_cut(text: str) -> None:
    edges = {step.start for step in split_steps(text).steps}
    assert not any(start < edge < end for start, end in blocks(text) for edge in edges)


@pytest.mark.parametrize(
    ("text", "by", "expected"),
    [
        ("Step 1: A cup.\nIt is full.\nStep 2: A pot.", "markers", ["A cup.\nIt is full.", "A pot."]),
        ("**Step 1:** A cup.\n\n### Step 2 - A pot.", "markers", ["A cup.", "A pot."]),
        ("Let us see.\nStep 1: A cup.\nSTEP 2. A pot.", "markers", ["Let us see.", "A cup.", "A pot."]),
        ("1. A cup. It is full.\n2. A pot.", "markers", ["A cup. It is full.", "A pot."]),
        ("1) A cup.\n2) A pot.", "markers", ["A cup.", "A pot."]),
        ("(1) A cup.\n(2) A pot.", "markers", ["A cup.", "A pot."]),
        ("Step 1: A cup. It is full.", "markers", ["A cup. It is full."]),
        ("A cup. Full.\nOf tea.\n\nA pot.", "paragraphs", ["A cup. Full.\nOf tea.", "A pot."]),
        ("A cup.\r\nIt is full.\r\n \r\nA pot.", "paragraphs", ["A cup.\r\nIt is full.", "A pot."]),
        ("A cup.\r\nA pot. And so on.", "lines", ["A cup.", "A pot. And so on."]),
        ("A cup. A pot.", "sentences", ["A cup.", "A pot."]),
        ("A cup and a pot", "whole", ["A cup and a pot"]),
        ("Thought 1: A cup.\nAction: Search[A pot]", "lines", ["A cup.", "Search[A pot]"]),
        ("It costs\n3.5 dollars", "lines", ["It costs", "3.5 dollars"]),
        ("In all\n1. one alone", "lines", ["In all", "one alone"]),
    ],
)
def test_a_text_is_split_by_the_first_kind_that_applies(text: str, by: str, expected: list[str]) -> None:
    assert (split_steps(text).by, contents(text)) == (by, expected)


@pytest.mark.parametrize(
    "line",
    ["#### 18", "A: 18", "Answer: Dubai", "**Final Answer:** 18", "The final answer is 18.", "Finish[Dubai]",
     "Action 3: Finish[Dubai]", "\\boxed{18}", "$\\boxed{18}$."],
)  # fmt: skip
def test_a_line_that_states_the_answer_and_no_more_stands_apart(line: str) -> None:
    split = split_steps(f"She has 16 eggs.\nShe sells 9.\n{line}\n")
    assert [step.content for step in split.steps] == ["She has 16 eggs.", "She sells 9."]
    assert split.answer is not None and split.answer.text == f"{line}\n"


@pytest.mark.parametrize(
    "line",
    ["Therefore the answer is Dubai.", "A cup", "####", "Answer:", "Answer: " + "since she sells nine of them " * 6,
     "So we get \\boxed{18} eggs."],
)  # fmt: skip
def test_a_line_that_concludes_is_a_step(line: str) -> None:
    assert split_steps(f"She has 16 eggs.\n{line}").answer is None


def test_the_last_answer_line_counts_and_steps_may_follow_it() -> None:
    split = split_steps("A: 17\nThat was wrong.\nA: 18\n\nReflections: I was hasty.")
    assert split.answer is not None and split.answer.text == "A: 18\n"
    assert [step.content for step in split.steps] == ["A: 17", "That was wrong.", "Reflections: I was hasty."]


def test_a_text_that_is_an_answer_alone_has_no_step() -> None:
    assert split_steps("#### 18").steps == ()


def test_an_empty_text_has_no_step_and_a_blank_one_has_one_that_is_undefined() -> None:
    assert split_steps("").steps == ()
    (blank,) = split_steps(" \n\n ").steps
    assert unmeasurable(blank.content) == Undefined("the step is empty")


@pytest.mark.parametrize(
    "block",
    ["```python\na = 1\n\n\nb = 2. C\n```", "~~~\nA. B\n\n#### 3\n~~~", "\\[ x = 1. \n\n Y \\]", "$$\na.\n\nB\n$$",
     "\\begin{align}\na\n\nB\n\\end{align}", "````\n```\n\nx\n```\n````"],
)  # fmt: skip
def test_code_and_latex_stay_whole(block: str) -> None:
    assert contents(f"We begin.\n\n{block}\n\nWe end.") == ["We begin.", block, "We end."]


def test_an_open_fence_runs_to_the_end_and_open_latex_is_not_a_block() -> None:
    assert contents("We begin.\n\n```\na\n\nb") == ["We begin.", "```\na\n\nb"]
    assert contents("```48 + 24 = 72```\nSo it is 72.") == ["```48 + 24 = 72```", "So it is 72."]  # code in a line
    assert contents("We begin \\[ here.\n\nWe end.") == ["We begin \\[ here.", "We end."]
    assert blocks("a \\\\[2pt] b \\] \\end{x} $$ c") == []


@pytest.mark.parametrize(
    "sentence",
    ["Dr. Smith has 3.5 apples.", "He saw J. K. Rowling in Washington D.C. on Monday.", "It is No. 5 of vol. 3 of it.",
     "Fruit, e.g. Apples, i.e. Food, etc. and more.", "St. Louis vs. Chicago was on Jan. 5 at 5 p.m. sharp.",
     "The U.S. Senate met.", "It costs $1,000.50 at www.example.com today.", "Wait... what is it?",
     "3. This is a point.", "Acme Inc. Chairman Bob left."],
)  # fmt: skip
def test_abbreviations_initials_decimals_and_list_numbers_do_not_end_a_sentence(sentence: str) -> None:
    assert sentences(f"{sentence} The next one.") == [sentence, "The next one."]
    assert sentences(sentence) == [sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is 18. Then 19. So 20.", ["It is 18.", "Then 19.", "So 20."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("Really?! Yes. 5 more.", ["Really?!", "Yes.", "5 more."]),
        ("They met in the U.S. The rest is known.", ["They met in the U.S.", "The rest is known."]),
        ("It ended at 5 p.m. He left.", ["It ended at 5 p.m.", "He left."]),
        ("She said no. He left.", ["She said no.", "He left."]),
        ("北京是首都。上海不是！为什么？", ["北京是首都。", "上海不是！", "为什么？"]),
        ("Это да. Нет.", ["Это да.", "Нет."]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentence_starts_are_offsets_of_the_whole_text() -> None:
    text = "A cup. A pot. A pan."
    assert sentence_starts(text) == [7, 14] and sentence_starts(text, 7) == [14] and sentence_starts(text, 0, 13) == [7]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the step is empty"), (" \u200b\ufeff", "the step is empty"), ("18", "the step has one word"),
        ("Du\u200bbai.", "the step has one word"), ("?!", "the step has no word"),
        ("```\na = 1\n```", "the step is only code or LaTeX"),
        ("\\[ 3 + 4 = 7 \\]", "the step is only code or LaTeX"),
        ("ab " * 34_000, f"the step is longer than {LONGEST:,} characters"), ("So it is.", None), ("北京是", None),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_says_why(text: str, reason: str | None) -> None:
    assert unmeasurable(text) == (Undefined(reason) if reason else None)


def test_a_step_that_is_too_long_is_split_further_where_it_can_be() -> None:
    split = split_steps("Step 1: " + "It is so. " * 300 + "\nStep 2: Short.")
    assert split.by == "markers" and len(split.steps) == MOST and rebuilt(split) == split.text
    (whole,) = split_steps("ab " * 34_000).steps
    assert isinstance(unmeasurable(whole.content), Undefined)


def test_arguments_below_one_are_refused() -> None:
    with pytest.raises(ArgumentError, match="longest=0 and most=1"):
        split_steps("a", 0, 1)
