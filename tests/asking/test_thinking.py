"""What a model thinks aloud never passes for its answer; the tags of all kinds are in `rule/written_answers.json`."""

import json

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.engines.strict import STRICT, StrictJSONAdapter, reason_of
from eldgr_dspy.text.thinking import is_unopened, split_thinking
from tests.asking_ollama import Prefer
from tests.case_tables import each_case

DRAFT, VERDICT = '{"preferred": 0}', '{"preferred": 1}'
pieces = st.lists(st.sampled_from(["<think>", "</think>", DRAFT, "prose ", "\n", '"', "[THINK]"]), max_size=8)


@each_case("asking", "thinking")
def test_the_answer_stands_after_all_thinking_or_there_is_none(text: str, answer: str) -> None:  # hazard 60
    assert split_thinking(text)[1] == answer


@each_case("asking", "texts without tags")
def test_a_text_without_tags_is_left_as_it_is(text: str) -> None:
    assert split_thinking(text) == ("", text)


@pytest.mark.parametrize("tag", ["</think>", "<think>", f"</think>{DRAFT}", "<think>x</think>"])
def test_a_tag_that_an_answer_quotes_is_part_of_the_answer(tag: str) -> None:  # hazard 71
    reply = json.dumps({"judge_rationale": f"Candidate 0 says {tag}", "preferred": 1})
    assert split_thinking(reply) == ("", reply)
    assert split_thinking(f"<think>{DRAFT}</think>{reply}") == (DRAFT, reply)
    assert split_thinking(f"{DRAFT}</think>{reply}") == ("", f"{DRAFT}</think>{reply}")


def test_neither_a_quoted_tag_in_the_thinking_nor_brackets_without_end_hide_the_answer() -> None:  # hazard 63
    assert split_thinking(f"<think>candidate 0 says </think>{DRAFT} and lies</think>{VERDICT}")[1] == VERDICT
    assert split_thinking("<think>" + '{"a":' * 100_000 + "</think>" + VERDICT)[1] == VERDICT


@pytest.mark.parametrize("tag", ["</think>", "</Thinking>", "</reasoning>", "[/THINK]"])
@pytest.mark.parametrize("before", ["", "maybe ", DRAFT, f"{DRAFT} <a>"])
@pytest.mark.parametrize("adapter", [STRICT, LENIENT], ids=["strict", "lenient"])
def test_a_block_that_was_never_opened_is_left_and_refused(tag: str, before: str, adapter: StrictJSONAdapter) -> None:
    """So Ollama's engine and any other server's give a role the same reply, and neither reads a verdict in it."""
    text = f"{before}{tag}{VERDICT}"
    assert split_thinking(text) == ("", text)
    with pytest.raises(dspy.AdapterParseError) as info:
        adapter.parse(Prefer, text)
    assert "a closing thinking tag without an opening one. Let the server split" in reason_of(info.value)


def test_a_reply_whose_prose_repeats_a_name_of_its_object_without_end_is_refused() -> None:
    """Looking for that name in that prose would take the square of its length."""
    with pytest.raises(dspy.AdapterParseError):
        LENIENT.parse(Prefer, "a-" * 100_000 + ' {"' + "a-" * 50_000 + 'b": 1} ')


@given(pieces)
@example(["<think>", DRAFT])
@example([DRAFT, "</think>", "<think>"])
def test_an_answer_is_an_end_of_the_text_and_holds_no_open_block(parts: list[str]) -> None:
    text = "".join(parts)
    answer = split_thinking(text)[1]
    assert text.strip().endswith(answer.strip())
    if not is_unopened(text):
        assert "<think>" not in answer and "</think>" not in answer


@given(pieces, st.dictionaries(st.text(max_size=9), st.text(max_size=9), min_size=1))
def test_an_object_after_a_tag_is_the_answer_whatever_was_thought(thought: list[str], fields: dict[str, str]) -> None:
    reply = json.dumps(fields)
    assert split_thinking(f"<think>{''.join(thought)}\n.</think>{reply}")[1] == reply
