"""A group is ranked by what its answers earn; completions are read in whatever form a trainer gives them."""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.ranking import rank
from eldgr_dspy.training import GroupReward, StepReward, TokenConfidence, eldgr_rank, format, orm
from eldgr_dspy.training.groups import Key, midranks
from eldgr_dspy.training.model_outputs import Message, outputs_of
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.training.calling import ByLength, Failing, Log, Model, Steady, Trainer, places, rows, speak
from tests.training.training_on import trains

keys = st.tuples(st.booleans(), st.booleans(), st.none() | st.sampled_from([0.0, 0.5, 1.0]))
THOUGHT, DRAFT, ANSWER = "The host was Qatar.\nIs it Dubai, then?", "\nA: Dubai", "It is a city there.\nA: Doha"
INSIDE = {"tags": f"<think>\n{THOUGHT}{DRAFT}\n</think>\n\n{ANSWER}", "prefilled": f"{THOUGHT}{DRAFT}</think>{ANSWER}"}
DOHA = rows(1, gold=["Doha"])
OPEN = f"{THOUGHT}\nA: Doha"
pieces = st.lists(st.sampled_from(["<think>", "</think>", "\n", " ", "a b", "\n\n", "A: x", "c"]), max_size=8)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_policy_that_is_trained_on_the_rank_alone_does_not_learn_to_say_yes(size: int) -> None:
    """In every group that has both, a yes earns less on average, and so does its advantage, which is what trains."""
    for group in combinations_with_replacement(("Qatar", "Chile", "Peru", "yes"), size):
        result = places(*group)
        said_yes = [place for answer, place in zip(group, result, strict=True) if answer == "yes"]
        others = [place for answer, place in zip(group, result, strict=True) if answer != "yes"]
        if said_yes and others:
            assert max(said_yes) < 0.5 < sum(others) / len(others), group


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_the_mean_advantage_of_a_yes_is_negative_whatever_the_policy_says(yes: float, certified: float) -> None:
    """Exact over all groups of two: the gradient on the logit of "yes" is its probability times this."""
    policy = {"yes": yes, "Qatar": (1 - yes) * certified, "Chile": (1 - yes) * (1 - certified)}
    mean = sum(other * places("yes", answer)[0] for answer, other in policy.items())
    assert mean - 0.5 == pytest.approx(-(1 - yes) / 2)


def test_the_auxiliary_score_ranks_alone_in_arithmetic_and_elsewhere_within_strata_and_is_logged() -> None:
    columns = {"task": ["arithmetic"] * 3}
    auxiliary = StepReward(ByLength(), confidence=False)
    texts = ["One step.\n#### 7", "Two longer steps.\n#### 7", "The longest of all steps.\n#### 8"]
    assert GroupReward(auxiliary=auxiliary, group_size=3)(["?"] * 3, texts, **rows(3, **columns)) == [0, 0.5, 1]
    log = Log()
    texts = ["A: Qatar", "So much is said of it that it is long. A: Chile", "It is said of it.\nA: Qatar"]
    reward = GroupReward(auxiliary=StepReward(ByLength(), confidence=False), group_size=3)
    assert reward(["?"] * 3, texts, **rows(3), **log.arguments) == [0.5, 0, 1]
    assert log.metrics["eldgr_rank/supported"] == pytest.approx(2 / 3) and 0 < log.metrics["eldgr_rank/auxiliary"] < 1
    assert log.columns["eldgr_rank_supported"] == [True, False, True]


@given(st.lists(keys, min_size=1, max_size=6))
def test_places_are_in_the_order_of_the_rank_of_a_pool_and_ties_share_theirs(entries: list[Any]) -> None:
    """`eldgr_dspy.rule.ranking` breaks by position what is a tie here."""
    results: list[Key] = [(one, one and two, score is not None, score or 0.0) for one, two, score in entries]
    support, consensus, scores = zip(*entries, strict=True)
    order = rank(support, consensus, scores)
    assert [midranks(results)[at] for at in order] == sorted(midranks(results), reverse=True)
    places_of_all = midranks(results)
    assert sum(places_of_all) == pytest.approx(len(results) / 2)
    assert all((results[a] == results[b]) == (places_of_all[a] == places_of_all[b]) for a in order for b in order)


@given(st.lists(st.sampled_from(["Qatar", "qatar", "Chile", "yes", ""]), min_size=1, max_size=5), st.randoms())
def test_the_position_in_the_group_decides_nothing(answers: list[str], random: Any) -> None:
    """Nor does it decide a tie of votes, as it has to where one answer ships."""
    order = random.sample(range(len(answers)), len(answers))
    result = places(*answers)
    assert places(*(answers[at] for at in order)) == [result[at] for at in order]


def test_groups_are_places_in_the_order_of_the_trainer_and_parts_say_what_they_need_and_raise() -> None:
    texts = ["A: Qatar", "A: Chile", "A: Qatar", "A: Chile"]
    evidence = [["It was Qatar."], ["It was Qatar."], ["It was Chile."], ["It was Chile."]]
    assert GroupReward(group_size=2)(["?"] * 4, texts, **rows(4, evidence=evidence)) == [1, 0, 0, 1]
    reward = GroupReward(auxiliary=StepReward(Failing(), confidence=False), group_size=1)
    assert reward.needs == ("question", "evidence", "task")
    refuses(Exception, "out of memory", reward, ["?"], ["A: Qatar"], **rows(1))
    for prompts in ([], ["?"] * 2):  # too few, as of a caller that gives one a question
        with pytest.raises(ArgumentError, match=r"^4 completions are not groups of 2 of one prompt each: the 0 of"):
            GroupReward(group_size=2)(prompts, texts, **rows(4))


@pytest.mark.parametrize(("training", "expected"), [(True, [1, 0, 0.5, 0.5]), (False, [1, 1 / 3, 1 / 3, 1 / 3])])
def test_the_trainer_says_how_many_completions_a_prompt_has(training: bool, expected: list[float]) -> None:
    texts = ["A: Qatar", "A: Chile", "A: Peru", "A: Chile"]
    assert eldgr_rank(["?"] * 4, texts, **rows(4), log_metric=Trainer(Model(training)).log) == pytest.approx(expected)


@dataclass
class Picture:  # as much of an image of PIL as is looked at: equal ones are equal, though they are two objects
    colour: bytes


def picture(colour: bytes) -> Any:
    return [{"role": "user", "content": [{"type": "image", "image": Picture(colour)}, {"type": "text", "text": "?"}]}]


def test_prompts_with_equal_images_are_one_prompt_though_each_has_its_own_copy() -> None:
    reward = GroupReward(group_size=2)
    assert reward([picture(b"red"), picture(b"red")], ["A: Qatar", "A: Chile"], **rows(2)) == [1, 0]
    message = "the 2 of group 0 are too few, or have different prompts"
    refuses(ArgumentError, message, reward, [picture(b"red"), picture(b"sky")], ["A: Qatar", "A: Chile"], **rows(2))


def thought(name: str, thinking: str = THOUGHT, content: str = ANSWER) -> list[dict[str, object]]:
    """A completion as TRL parses it, its thinking in a field of its own."""
    return [{"role": "assistant", name: thinking, "content": content}]


FORMS: dict[str, Any] = {
    **INSIDE,
    **{name: thought(name, THOUGHT + DRAFT) for name in ("reasoning_content", "thinking")},
    "conversation": speak(INSIDE["tags"]),
}


@pytest.mark.parametrize("completion", FORMS.values(), ids=FORMS)
def test_thinking_has_steps_and_its_drafts_are_not_the_answer(completion: Any) -> None:
    scorer = Steady()
    StepReward(scorer, confidence=False)(["?"], [completion], **DOHA)
    (reasoning,) = scorer.inputs
    lines = [step.content for step in split_steps(reasoning.text).steps]
    assert lines == [*THOUGHT.split("\n"), "A: Dubai", "It is a city there."] and reasoning.answer == "Doha"
    assert orm(["?"], [completion], **DOHA) == format(["?"], [completion], **DOHA) == [1.0]
    assert orm(["?"], [completion], **rows(1, gold=["Dubai"])) == [0.0]


@each_case("training", "endless thinking")
def test_thinking_that_does_not_end_in_an_answer_earns_neither_outcome_nor_format(completion: Any) -> None:
    assert orm(["?"], [completion], **DOHA) == format(["?"], [completion], **DOHA) == [0.0]
    assert StepReward(Steady(), confidence=False)(["?"], [completion], **DOHA) == [1.0], "it still has steps"
    two: Any = {"completions": [completion, "A: Chile"], **rows(2, evidence=[["Doha."]] * 2)}
    assert GroupReward(group_size=2)(["?"] * 2, **two) == [0.5] * 2


@pytest.mark.parametrize("last", [speak("<think>Is it Dubai?"), thought("thinking", content="")], ids=["tags", "field"])
def test_after_a_tool_thinking_that_does_not_end_takes_back_the_earlier_answer(last: Any) -> None:
    messages: list[Any] = [*speak("A: Doha"), {"role": "tool", "content": "Dubai"}]
    assert orm(["?"], [messages + last], **DOHA) == format(["?"], [messages + last], **DOHA) == [0.0]
    assert orm(["?"], [messages + speak("<think>Yes.</think>So it is.")], **DOHA) == [1.0]


def test_thinking_messages_and_answer_share_no_step_and_tokens_of_tags_no_confidence() -> None:
    messages: list[Message] = [*speak("a b\n\nc d"), {"role": "tool", "content": "x"}, *speak("e f")]
    (output,) = outputs_of([messages])
    assert [step.content for step in split_steps(output.reasoning).steps] == ["a b", "c d", "e f"]
    for name in ("reasoning_content", "thinking"):
        assert orm(["?"], [[{"role": "assistant", name: None, "content": "A: Doha"}]], **DOHA) == [1.0]
    text = "<think>a b\nc d\n\ne f</think>g h"
    (output,) = outputs_of([text])
    assert [step.content for step in split_steps(output.reasoning).steps] == ["a b\nc d", "e f", "g h"]
    scorer, whole = Steady(), "<think>\na b\n</think>\nc d"
    tokens = TokenConfidence(whole, (7, 11, 21, 24), (-9.0, 0.0, -9.0, 0.0))
    StepReward(scorer)(["?"], [whole], **DOHA, token_confidence=[tokens])
    assert scorer.inputs[0].confidences == [1.0, 1.0]


def test_a_prompt_that_opens_the_thinking_makes_a_completion_without_tags_one_that_never_ended() -> None:
    for prompt, expected in (("Who?\n<think>\n", [0.0]), ("Who?\n<think>\n\n</think>\n\n", [1.0]), ("Who?", [1.0])):
        assert orm([prompt], [OPEN], **DOHA) == format([prompt], [OPEN], **DOHA) == expected
        assert orm([prompt], [INSIDE["prefilled"]], **DOHA) == [1.0]


def renders(name: str, text: str = "a", **settings: Any) -> Trainer:
    """A trainer whose tokenizer has a chat template as TRL brings it, and spells a text."""
    import trl

    from tests.tiny_policy import tiny_tokenizer

    tokenizer = tiny_tokenizer([text])
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text("utf-8")
    return Trainer(None, tokenizer, settings)


@trains
@pytest.mark.parametrize("name", ["deepseek_r1_distill", "qwen3", "qwen3 without thinking", "qwen2_5"])
def test_a_chat_template_that_opens_the_thinking_does_so_for_every_completion(name: str) -> None:
    settings: dict[str, Any] = {"enable_thinking": False} if "without" in name else {}
    prompt, log = [{"role": "user", "content": "Who?"}], renders(name.split()[0], **settings).log
    completions = [speak(OPEN), speak(INSIDE["prefilled"]), thought("reasoning_content")]
    results = [orm([prompt], [one], **DOHA, log_metric=log)[0] for one in completions]
    assert results == [0.0 if name == "deepseek_r1_distill" else 1.0, 1.0, 1.0]


@dataclass
class Processor:  # as much of a processor of images as renders a prompt
    tokenizer: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


@trains
@pytest.mark.parametrize("tag", ["<think>\n", "<thought>", "[THINK]"])
def test_each_prompt_says_for_itself_whether_it_opens_the_thinking_with_any_tag(tag: str) -> None:
    trainer = renders("qwen2_5")
    switch = "{% if not tools and '/no_think' not in messages[0].content %}" + tag + "{% endif %}"
    trainer.processing_class.chat_template = "{{ messages[0].content }}\n" + switch
    prompts = [[{"role": "user", "content": text}] for text in ("Who?", "Who? /no_think", "Who?")]
    three: Any = {"completions": [speak(OPEN)] * 3, **rows(3, gold=["Doha"] * 3)}
    assert orm(prompts, **three, log_metric=trainer.log) == [0.0, 1.0, 0.0]
    tools = [{"type": "function", "function": {"name": "look"}}]
    assert orm(prompts, **three, log_metric=trainer._replace(tools=tools).log) == [1.0] * 3


@trains
def test_a_processor_of_images_renders_text_as_a_part_as_the_trainer_does() -> None:
    trainer = renders("llava_next")
    trainer = trainer._replace(processing_class=Processor(trainer.processing_class))
    assert orm([[{"role": "user", "content": "Who?"}]], [speak(OPEN)], **DOHA, log_metric=trainer.log) == [1.0]


@trains
@each_case("training", "tokens of thinking")
def test_tokens_of_a_parsed_message_say_whether_thinking_ended(tokens: str, before: list[Any], expected: float) -> None:
    """TRL parses thinking that is empty and thinking that never ends to the same message."""
    trainer = renders("deepseek_r1_distill", tokens)
    ids = trainer.processing_class(tokens).input_ids
    prompt, reply = [{"role": "user", "content": "Who?"}], [*before, *speak("A: Doha")]
    assert orm([prompt], [reply], **DOHA, completion_ids=[ids], log_metric=trainer.log) == [expected]


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
