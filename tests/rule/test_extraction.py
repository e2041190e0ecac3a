"""The answer that a text states is read as a careful person reads it, and what is returned stands in the text."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, score
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.answer_types.extraction import Extraction, extract_answer, read_sample
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.text.numbers import parse_number, without_latex
from eldgr_dspy.words import TASKS, Form, Task
from tests.dates import TYPE_LIST
from tests.refusing import refuses
from tests.rule.keys import cases

pieces = st.sampled_from(cases("pieces of samples"))


LONG = "1" * 5_000
CASES = [
    *(("arithmetic", *case) for case in cases("stated numbers")),
    *(("retrieval", *case) for case in cases("stated answers")),
    *(("arithmetic", text, "7", "last_number") for text in cases("looks like a mark")),
    *(("arithmetic", f"\\boxed{{{one}}}", one, "boxed") for one in ("\\frac{1}{2}", "3x+5", "(1, 2)", "x", "1{,}000")),
    ("arithmetic", f"{LONG} 7 {LONG}", "7", "last_number"),
]


@pytest.mark.parametrize(("task", "text", "answer", "form"), CASES)  # hazards 12, 16, 20, 21, 24 and 25
def test_the_answer_is_what_is_stated_last_in_a_mark_or_a_box_that_stays_whole(
    task: Task, text: str, answer: str, form: Form
) -> None:
    assert extract_answer(text, task) == Extraction(answer, form)


# hazards 12 and 16
@pytest.mark.parametrize("payload", [*cases("bound numbers"), "1" * 5_000])
@pytest.mark.parametrize("mark", ["A: ", "#### ", "the answer is ", "final answer: "])
def test_a_number_is_not_cut_out_of_what_it_is_bound_to(mark: str, payload: str) -> None:
    reading = extract_answer(f"1 + 1 = 2\n{mark}{payload}", "arithmetic")
    assert reading is not None and reading.answer == payload and reading.form != "last_number"


@pytest.mark.parametrize(("text", "answer"), cases("last marks"))
def test_the_last_mark_that_states_something_wins(text: str, answer: str) -> None:
    reading = extract_answer(text, "arithmetic")
    assert reading is not None and reading.answer == answer and reading.form != "last_number"


@pytest.mark.parametrize("text", ["", " \n\t"])
@pytest.mark.parametrize("task", TASKS)
def test_a_blank_text_has_no_answer(text: str, task: Task) -> None:
    assert extract_answer(text, task) is None


def test_an_unknown_task_is_named() -> None:
    assert extract_answer("I do not know.", "arithmetic") is None
    task: Any = "maths"
    refuses(ArgumentError, rf"^answer must be one of {TYPE_LIST}; got 'maths'\.$", extract_answer, "18", task)


@given(st.lists(pieces, max_size=12).map("".join) | st.text(st.characters()), st.sampled_from(TASKS))
@example("\\boxed{\\text{}}", "retrieval")
@example("A: = - 5", "arithmetic")
@example("Finish[]", "retrieval")
@example("\\boxed{", "arithmetic")
def test_the_answer_stands_in_the_text_and_is_not_blank(text: str, task: Task) -> None:
    reading = extract_answer(text, task)
    if reading is not None:
        answer, plain = (one.translate(dict.fromkeys(map(ord, "*_`"))) for one in (reading.answer, text))
        assert answer in plain and reading.answer.strip()  # but for an emphasis that began before it


@given(
    st.integers(-(10**9), 10**9), st.sampled_from(("#### {}", "A: {}", "\\boxed{{{}}}", "The answer is {}.", "x is {}"))
)
def test_an_integer_comes_back_as_it_was_written(number: int, frame: str) -> None:
    reading = extract_answer(f"3 + 4 = 7\n{frame.format(f'{number:,}')}\n", "arithmetic")
    assert reading is not None and reading.answer == f"{number:,}"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("piece", cases("pieces repeated for long"))
def test_a_hundred_kilobytes_of_anything_are_read(piece: str, task: Task) -> None:
    """A search that went back over what it has read would take longer here than any test may."""
    text = piece * (100_000 // len(piece))
    reading = extract_answer(text, task)
    assert reading is None or reading.answer in text


def test_a_string_without_an_end_and_boxes_a_hundred_thousand_deep_are_read() -> None:
    assert extract_answer('"answer": "' + '\\"' * 50_000 + "\\", "short") is not None
    text = "\\boxed{" * 100_000 + "5" + "}" * 100_000
    assert extract_answer(text, "arithmetic") == Extraction("5", "boxed")


@pytest.mark.parametrize("text", cases("tagged answers"))
def test_what_grpo_recipes_ask_for_is_read(text: str) -> None:
    for task in TASKS:
        reading = extract_answer(text, task)
        assert reading is not None and (reading.answer, reading.form in ("tagged", "boxed")) == ("18", True)


def test_the_recorded_answers_of_the_real_pools_are_found_again(pools_dir: Path) -> None:
    """All but one: whoever recorded the answers took 1.8 billion for 1.8."""
    others: list[tuple[str, str | None]] = []
    for name, tolerance in (("gsm8k-openai4", 1e-6), ("hotpotqa-reflexion12", 0.0)):
        with gzip.open(pools_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            rows = [json.loads(line) for line in lines]
        for row in rows:
            for candidate in row["candidates"]:
                reading = extract_answer(candidate["text"], row["task"])
                if candidate["answer"] is None:
                    assert reading is None or reading.form in ("last_number", "whole")
                elif reading is None or not _same(reading.answer, candidate["answer"], tolerance):
                    others.append((candidate["answer"], reading.answer if reading else None))
    assert others == [("-1.8", "-1.8 billion")]


def _same(answer: str, record: str, tolerance: float) -> bool:
    """Whether two answers agree; the pool of arithmetic was recorded with six decimals."""
    one, other = parse_number(answer), parse_number(record)
    if not tolerance or one is None or other is None:
        return answer == record
    return math.isclose(one.value, other.value, rel_tol=tolerance, abs_tol=tolerance)


# `expected` is the answer of a sample, null if it gives none, `not:X` if it must not be read as X; more of the same
# kinds may lie in `../shared/cases`.
OWN = json.loads(Path(__file__).with_name("written_answers.json").read_text("utf-8"))
SHARED_CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def shared_cases(name: str, own: str) -> list[Any]:
    """Return our cases, and those that are shared."""
    lines = (SHARED_CASES / name).read_text("utf-8").splitlines() if SHARED_CASES.is_dir() else []
    return [*OWN[own], *map(json.loads, lines)]


@pytest.mark.parametrize("case", shared_cases("final-answers.jsonl", "samples"), ids=lambda case: f"{case['text']:.40}")
def test_a_sample_gives_the_answer_that_a_careful_person_reads(case: dict[str, Any]) -> None:
    if case["type"] == "math":
        pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")
    question = to_question("?", [case["text"]], (), case["type"], "answer", case.get("options", ()))
    kind, (answer,), expected = question.type.of(question), question.answers, case["expected"]
    if expected is None and isinstance(kind, Choice):
        assert answer is None or kind.index(answer) is None
    elif expected is None:
        assert answer is None
    elif expected.startswith("not:"):
        assert kind.class_of(answer) != kind.class_of(expected.removeprefix("not:"))
    else:
        assert len({class_ and class_.key for class_ in kind.grouping([answer, expected]).classes}) == 1, answer


@pytest.mark.parametrize(
    "pair", shared_cases("same-answer.jsonl", "pairs"), ids=lambda pair: f"{pair['a']!r} {pair['b']!r}"
)
def test_two_answers_vote_and_score_alike_only_if_they_are_the_same(pair: dict[str, Any]) -> None:
    if pair["type"] == "math":
        pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")
    question = to_question("?", [pair["a"], pair["b"]], (), pair["type"], "answer")
    one, other = question.type.grouping((pair["a"], pair["b"])).classes
    assert (one == other) is pair["same"]
    scores = {score(one, [other], pair["type"]).em for one, other in ((pair["a"], pair["b"]), (pair["b"], pair["a"]))}
    assert pair["type"] == "number" or scores <= {True, pair["same"]}
    assert pair["same"] or pair["type"] == "short" or scores == {False}


TAGS = [
    ("<think>", "</think>"), ("<THINKING>", "</Thinking>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"), ("<|begin_of_thought|>", "<|end_of_thought|>"), ("", "</think>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]  # fmt: skip
PIECES = st.sampled_from(
    ("The answer is ", "#### ", "A: ", "\\boxed{7}", "\\boxed{", "7", "Paris", "\n", " ", ".", "Question: ", "x-1", "}")
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)
TYPES = st.sampled_from(("short", "number", "choice", "math"))


@given(TEXTS, TEXTS, st.sampled_from(TAGS), TYPES)
def test_thinking_before_a_text_changes_no_reading(thought: str, text: str, tags: tuple[str, str], kind: str) -> None:
    opening, closing = tags
    assert read_sample(f"{opening}{thought}{closing}{text}", kind) == read_sample(text, kind)


@given(TEXTS, TEXTS, st.sampled_from([tags for tags in TAGS if tags[0]]), TYPES)
def test_thinking_that_never_ends_leaves_no_answer(text: str, thought: str, tags: tuple[str, str], kind: str) -> None:
    reading = read_sample(f"{text}{tags[0]}{thought}", kind)
    assert reading.extraction is None and reading.is_open


ENDS = (
    "<|im_end|>", "<|eot_id|>", "</s>", "\n\nQuestion: ", "\nQ: ", "\n### Instruction:\n", "\nHuman: ",
    "\nQuestion 2: ",
)  # fmt: skip


@given(st.sampled_from(("The answer is {}.", "A: {}", "#### {}", "\\boxed{{{}}}")), st.sampled_from(ENDS), TEXTS, TYPES)
def test_what_follows_the_end_of_a_stated_answer_is_not_read(frame: str, end: str, after: str, kind: str) -> None:
    text = frame.format("7")
    assert extract_answer(f"{text}{end}{after}", kind) == extract_answer(text, kind)


OPERANDS = st.sampled_from(("x", "2x", "7", "\\pi", "(x+2)", "\\frac{x}{3}", "f(x)"))


@given(OPERANDS, OPERANDS, st.permutations("+-*/^"))
def test_a_sign_or_an_operator_tells_expressions_apart(one: str, other: str, operators: list[str]) -> None:
    first, second = (answer_class(f"{one}{operator}{other}y", "number") for operator in operators[:2])
    assert first != second
    assert answer_class(f"-{one}y", "number") != answer_class(f"{one}y", "number")


UNITS = st.sampled_from(("{} hours {} minutes", "{} feet and {} inches", "({}, {})", "{} remainder {}", "{} or {}"))


@given(st.integers(1, 999), st.integers(1, 999), UNITS, st.sampled_from(("A: {}", "So it takes {}.", "\\boxed{{{}}}")))
def test_two_quantities_are_not_one_number(one: int, other: int, units: str, frame: str) -> None:
    reading = extract_answer(frame.format(units.format(one, other)), "number")
    assert reading is not None
    assert answer_class(reading.answer, "number") not in [
        answer_class(str(number), "number") for number in (one, other)
    ]


@given(
    st.lists(
        st.sampled_from(["\\frac", "{1}", "{2}", "{,}", "234", "5", "\\times", "10", "^", "{3}", "-", " ", "°"]),
        max_size=8,
    )
)
def test_numbers_in_latex_are_replaced_at_their_places(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert len(without_latex(text)) == len(text)
