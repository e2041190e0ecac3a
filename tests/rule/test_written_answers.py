"""What models write is read as a careful person reads it: samples for their answers, and pairs of answers for sameness.

`written_answers.json` has the cases: `expected` is the answer of a sample, null if it gives none, `not:X` if it must
not be read as X. More of the same kinds may lie in `../shared/cases`.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, score
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.answer_types.extraction import extract_answer, read_sample
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.text.numbers import without_latex

OWN = json.loads(Path(__file__).with_name("written_answers.json").read_text("utf-8"))
SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"


def cases(name: str, own: str) -> list[Any]:
    """Return our cases, and those that are shared."""
    lines = (SHARED / name).read_text("utf-8").splitlines() if SHARED.is_dir() else []
    return [*OWN[own], *map(json.loads, lines)]


@pytest.mark.parametrize("case", cases("final-answers.jsonl", "samples"), ids=lambda case: f"{case['text']:.40}")
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


@pytest.mark.parametrize("pair", cases("same-answer.jsonl", "pairs"), ids=lambda pair: f"{pair['a']!r} {pair['b']!r}")
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
    assert reading.extraction is None and reading.unclosed


ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
    "\n\nQuestion: ",
    "\nQ: ",
    "\n### Instruction:\n",
    "\nHuman: ",
    "\nQuestion 2: ",
)


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
