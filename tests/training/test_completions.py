"""Thinking has steps and no answer: in tags, in a field of a message, opened by the prompt, or never ended."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.training import GroupReward, StepReward, TokenConfidence, format, orm
from eldgr_dspy.training.model_outputs import Message, outputs_of
from tests.refusing import refused
from tests.training.calling import Fixed, Trainer, rows, said
from tests.training.training_on import trains

THOUGHT, DRAFT, ANSWER = "The host was Qatar.\nIs it Dubai, then?", "\nA: Dubai", "It is a city there.\nA: Doha"
INSIDE = {"tags": f"<think>\n{THOUGHT}{DRAFT}\n</think>\n\n{ANSWER}", "prefilled": f"{THOUGHT}{DRAFT}</think>{ANSWER}"}
DOHA = rows(1, gold=["Doha"])


def thought(name: str, thinking: str = THOUGHT, content: str = ANSWER) -> list[dict[str, object]]:
    """A completion as TRL parses it, its thinking in a field of its own."""
    return [{"role": "assistant", name: thinking, "content": content}]


FORMS: dict[str, Any] = {
    **INSIDE,
    **{name: thought(name, THOUGHT + DRAFT) for name in ("reasoning_content", "thinking")},
    "conversation": said(INSIDE["tags"]),
}


@pytest.mark.parametrize("completion", FORMS.values(), ids=FORMS)
def test_thinking_has_steps_and_its_drafts_are_not_the_answer(completion: Any) -> None:
    scorer = Fixed()
    StepReward(scorer, confidence=False)(["?"], [completion], **DOHA)
    (given,) = scorer.given
    lines = [step.content for step in split_steps(given.text).steps]
    assert lines == [*THOUGHT.split("\n"), "A: Dubai", "It is a city there."] and given.answer == "Doha"
    assert orm(["?"], [completion], **DOHA) == format(["?"], [completion], **DOHA) == [1.0]
    assert orm(["?"], [completion], **rows(1, gold=["Dubai"])) == [0.0]


@pytest.mark.parametrize(
    "completion",
    [
        f"<think>\n{THOUGHT}\nA: Doha",
        f"<think>a b</think>A: Doha<think>{THOUGHT}\nA: Doha",
        f"{THOUGHT}\nA: Doha</think>",
        thought("reasoning_content", f"{THOUGHT}\nA: Doha", ""),
        [{"role": "assistant", "thinking": f"{THOUGHT}\nA: Doha"}],
    ],
    ids=["opened", "opened again", "nothing after", "field", "no content"],
)
def test_thinking_that_does_not_end_in_an_answer_earns_neither_outcome_nor_format(completion: Any) -> None:
    assert orm(["?"], [completion], **DOHA) == format(["?"], [completion], **DOHA) == [0.0]
    assert StepReward(Fixed(), confidence=False)(["?"], [completion], **DOHA) == [1.0], "it still has steps"
    answered = ["A: Chile"]
    assert (
        GroupReward(group_size=2)(["?"] * 2, [completion, *answered], **rows(2, evidence=[["Doha."]] * 2)) == [0.5] * 2
    )


@pytest.mark.parametrize("last", [said("<think>Is it Dubai?"), thought("thinking", content="")], ids=["tags", "field"])
def test_after_a_tool_thinking_that_does_not_end_takes_back_the_earlier_answer(last: Any) -> None:
    called: list[Any] = [*said("A: Doha"), {"role": "tool", "content": "Dubai"}]
    assert orm(["?"], [called + last], **DOHA) == format(["?"], [called + last], **DOHA) == [0.0]
    assert orm(["?"], [called + said("<think>Yes.</think>So it is.")], **DOHA) == [1.0]


def test_a_message_after_one_of_paragraphs_shares_no_step_with_it() -> None:
    messages: list[Message] = [*said("a b\n\nc d"), {"role": "tool", "content": "x"}, *said("e f")]
    (output,) = outputs_of([messages])
    assert [step.content for step in split_steps(output.reasoning).steps] == ["a b", "c d", "e f"]


UNENDED = f"{THOUGHT}\nA: Doha"


def test_a_prompt_that_opens_the_thinking_makes_a_completion_without_tags_one_that_never_ended() -> None:
    for prompt, expected in (("Who?\n<think>\n", [0.0]), ("Who?\n<think>\n\n</think>\n\n", [1.0]), ("Who?", [1.0])):
        assert orm([prompt], [UNENDED], **DOHA) == format([prompt], [UNENDED], **DOHA) == expected
        assert orm([prompt], [INSIDE["prefilled"]], **DOHA) == [1.0]


def renders(name: str, **settings: Any) -> Trainer:
    """A trainer whose tokenizer has a chat template as TRL brings it."""
    import trl

    from tests.tiny_policy import tiny_tokenizer

    tokenizer = tiny_tokenizer(["a"])
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text("utf-8")
    return Trainer(None, tokenizer, settings)


@trains
@pytest.mark.parametrize(
    ("trainer", "expected"),
    [
        (lambda: renders("deepseek_r1_distill"), 0.0),
        (lambda: renders("qwen3"), 1.0),
        (lambda: renders("qwen3", enable_thinking=False), 1.0),
        (lambda: renders("qwen2_5"), 1.0),
    ],
    ids=["deepseek_r1_distill", "qwen3", "without thinking", "qwen2_5"],
)
def test_a_chat_template_that_opens_the_thinking_does_so_for_every_completion(trainer: Any, expected: float) -> None:
    prompt, log = [{"role": "user", "content": "Who?"}], trainer().log
    assert orm([prompt], [said(UNENDED)], **DOHA, log_metric=log) == [expected]
    assert orm([prompt], [said(INSIDE["prefilled"])], **DOHA, log_metric=log) == [1.0]
    assert orm([prompt], [thought("reasoning_content")], **DOHA, log_metric=log) == [1.0]


@pytest.mark.parametrize("name", ["reasoning_content", "thinking"])
def test_thinking_that_is_not_text_is_refused(name: str) -> None:
    assert refused(lambda: orm(["?"], [[{"role": "assistant", name: ["a"], "content": "A: Doha"}]], **DOHA)) == (
        f"completions: a message's {name} must be text; got ['a']. Join the text parts of the message before it is "
        "rewarded."
    )
    assert orm(["?"], [[{"role": "assistant", name: None, "content": "A: Doha"}]], **DOHA) == [1.0]


def test_paragraphs_of_thinking_are_not_joined_to_the_answer() -> None:
    text = "<think>a b\nc d\n\ne f</think>g h"
    (output,) = outputs_of([text])
    assert [step.content for step in split_steps(output.reasoning).steps] == ["a b\nc d", "e f", "g h"]


def test_the_confidence_of_a_step_is_that_of_its_own_tokens_and_not_of_tags() -> None:
    scorer, whole = Fixed(), "<think>\na b\n</think>\nc d"
    tokens = TokenConfidence(whole, (7, 11, 21, 24), (-9.0, 0.0, -9.0, 0.0))
    StepReward(scorer)(["?"], [whole], **DOHA, token_confidence=[tokens])
    assert scorer.given[0].confidences == [1.0, 1.0]


pieces = st.lists(st.sampled_from(["<think>", "</think>", "\n", " ", "a b", "\n\n", "A: x", "c"]), max_size=8)


@given(pieces.map("".join), st.booleans())
def test_each_character_of_the_reasoning_is_where_it_was(text: str, twice: bool) -> None:
    message = {"role": "assistant", "content": text}
    (output,) = outputs_of([[message, message]] if twice else [text])
    reasoning = output.reasoning
    assert len(reasoning) == len(output.whole)
    pairs = [(new, old) for new, old in zip(reasoning, output.whole, strict=True) if new != old]
    assert {new for new, _ in pairs} <= {" ", "\n"}, "a tag became white space"
    assert "<think>" not in reasoning and text.replace("</think>", "").count("a b") <= reasoning.count("a b")
    if "think" not in text:
        assert output.whole == reasoning == output.final
