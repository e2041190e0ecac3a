"""What a model thinks aloud never passes for its answer."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.thinking import split_thinking

DRAFT, VERDICT = '{"preferred": 0}', '{"preferred": 1}'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>maybe {DRAFT}</think>\n{VERDICT}", f"<think>{DRAFT}</think>{VERDICT}",
        f"maybe {DRAFT}</think>{VERDICT}",  # the opening tag stood in the template
        f"{DRAFT}</think>{VERDICT}", f"<think>one</think><think>two {DRAFT}</think>{VERDICT}",
        f"<think>a <think>b</think> {DRAFT}</think>{VERDICT}", f"Let me see. <think>{DRAFT}</think> {VERDICT}",
        f"<THINK>{DRAFT}</Think>{VERDICT}", f"[THINK]{DRAFT}[/THINK]{VERDICT}",
        f"<reasoning>{DRAFT}</reasoning>{VERDICT}",
    ],
)  # fmt: skip
def test_the_answer_is_what_stands_after_the_thinking(text: str) -> None:  # hazard 60
    assert split_thinking(text)[1] == VERDICT
    assert "preferred" not in split_thinking(text)[0] or DRAFT in split_thinking(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>maybe {DRAFT}", f"<think>{DRAFT}\n{VERDICT}", f"{VERDICT}<think>or rather {DRAFT}",
        f"<think>a</think>b<think>{DRAFT}", f"I think <think>{DRAFT}",
    ],
)  # fmt: skip
def test_a_block_that_is_never_closed_leaves_no_answer(text: str) -> None:  # hazard 60
    assert split_thinking(text)[1] == ""


@pytest.mark.parametrize(
    "text", ["", VERDICT, "Paris", "I think so.", "a < think > b", '```json\n{"a": 1}\n```', " as it is ", "{" * 9]
)
def test_a_text_without_tags_is_left_as_it_is(text: str) -> None:
    assert split_thinking(text) == ("", text)


@pytest.mark.parametrize("quoted", ["</think>", "<think>", f"</think>{DRAFT}", "<think>x</think>"])
def test_a_tag_that_an_answer_quotes_is_part_of_the_answer(quoted: str) -> None:  # hazard 71
    reply = json.dumps({"judge_rationale": f"Candidate 0 says {quoted}", "preferred": 1})
    assert split_thinking(reply) == ("", reply)
    assert split_thinking(f"<think>{DRAFT}</think>{reply}") == (DRAFT, reply)
    assert split_thinking(f"{DRAFT}</think>{reply}")[1] == reply


def test_a_quoted_tag_in_the_thinking_does_not_end_it() -> None:
    text = f"<think>candidate 0 says </think>{DRAFT} and lies</think>{VERDICT}"
    assert split_thinking(text)[1] == VERDICT


def test_brackets_without_end_are_read_without_an_error() -> None:  # hazard 63
    assert split_thinking('{"a":' * 100_000 + "</think>" + VERDICT)[1] == VERDICT


pieces = st.lists(st.sampled_from(["<think>", "</think>", DRAFT, "prose ", "\n", '"', "[THINK]"]), max_size=8)


@given(pieces)
@example(["<think>", DRAFT])
@example([DRAFT, "</think>", "<think>"])
def test_an_answer_is_an_end_of_the_text_and_holds_no_open_block(parts: list[str]) -> None:
    text = "".join(parts)
    answer = split_thinking(text)[1]
    assert text.strip().endswith(answer.strip())
    assert "<think>" not in answer and "</think>" not in answer


@given(pieces, st.dictionaries(st.text(max_size=9), st.text(max_size=9), min_size=1))
def test_an_object_after_a_closing_tag_is_the_answer_whatever_was_thought(
    thought: list[str], fields: dict[str, str]
) -> None:
    reply = json.dumps(fields)
    answer = split_thinking(f"<think>{''.join(thought)}\n.</think>{reply}")[1]
    assert answer == reply
