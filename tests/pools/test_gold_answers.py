"""Gold answers as datasets, harnesses and tables write them are read, or refused with what was found; none is lost."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.csv_files import Columns
from eldgr_dspy.programs.pools.devsets import read_devset
from eldgr_dspy.programs.pools.gold_answers import final_answers, gold_at
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.pools.question_files import read_questions
from tests.pools.layouts import QUESTION, choice, harness, log, only, refused, rows, sample, table, write

PARIS = ("Paris", "City of Paris")


def gold(**row: Any) -> tuple[str, ...]:
    return gold_at(row, "f, line 1")


PRINTED = {
    "['Paris' 'City of Paris']": PARIS,
    "['Paris'\n 'City of Paris']": PARIS,
    "['Paris', 'City of Paris']": PARIS,
    '["Paris", "City of Paris"]': PARIS,
    "('Paris', 'City of Paris')": PARIS,
    "[['Paris']\n ['City of Paris']]": PARIS,
    "array(['Paris', 'City of Paris'], dtype=object)": PARIS,
    "array(['Paris', 'City of Paris'],\n      dtype='<U13')": PARIS,
    "[np.str_('Paris'), np.str_('City of Paris')]": PARIS,
    "[array(['Paris'], dtype=object)\n list(['City of Paris'])]": PARIS,
    '["Paris", null, "City of Paris"]': PARIS,
    "{'text': ['Paris', 'City of Paris'], 'answer_start': [1, 7]}": PARIS,
    "{'text': array(['Paris', 'City of Paris'], dtype=object), 'answer_start': array([1, 7], dtype=int32)}": PARIS,
    "{'spans': ['Paris', 'City of Paris'], 'types': ['span', 'span']}": PARIS,
    "['Paris']": ("Paris",),
    "[\"L'Isle\" 'The \"Isle\"' 'it\\'s \"so\"']": ("L'Isle", 'The "Isle"', 'it\'s "so"'),
    "[\"Rock 'n' Roll\" 'x'\n \"a, b\" '[c] d']": ("Rock 'n' Roll", "x", "a, b", "[c] d"),
    '["caf\\u00e9", "\\ud83d\\ude00"]': ("café", "😀"),
    "[1990 1991]": ("1990", "1991"),
    "['\\d']": ("\\d",),
    "[-1 -2]": ("-1", "-2"),
    '{"text": [], "answer_start": []}': (),
}


@pytest.mark.parametrize(("text", "answers"), PRINTED.items())
@pytest.mark.parametrize("field", ["target", "gold", "answers"])
def test_a_printed_list_or_object_is_its_answers(text: str, answers: tuple[str, ...], field: str) -> None:
    assert final_answers(text, field, "f") == answers


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]", "[0, 1)", "(3, 4)", "{1, 2}", "[1 - 2]", "[x - 1, 2]", "[18]", "[citation needed]", "(B)", "[]",
        "['Paris']!",
        "['tis so]", "(see 'Paris')", '{"value": 5}', "{x | x > 1}", "array of 3",
        "{[0,1],[2,3]}", "{{1,2},{3}}", "{[1]: 2}", "[" * 3000 + "]" * 3000,
    ],
)  # fmt: skip
def test_any_other_text_is_one_answer(text: str) -> None:
    assert final_answers(text, "target", "f") == (text,)


@pytest.mark.parametrize(("field", "answers"), [("answers", ("1", "2")), ("gold", ("[1, 2]",))])
def test_numbers_in_brackets_are_several_where_the_field_holds_a_list(field: str, answers: tuple[str, ...]) -> None:
    assert final_answers("[1, 2]", field, "f") == answers


@pytest.mark.parametrize(
    "text",
    ["['a' 'b' ... 'z']", "['a', 'b' = 'c']", "{'text': array(['a', ..., 'z'], dtype=object)}", "array(['a'; 'b'])"],
)
def test_a_printed_list_that_cannot_be_read_is_refused(text: str) -> None:
    assert refused(lambda: final_answers(text, "target", "f, line 3")) == (
        f"f, line 3: target looks like a printed list, but cannot be read as one: {text!r:.80}. Write a list of texts."
    )


_TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=5)


@given(_TEXTS, st.sampled_from([" ", "\n ", ", "]))
@example(["Paris", "City of Paris"], "\n ")
@example(["it's", '"', "\\", "a' 'b"], " ")
def test_whatever_numpy_or_python_prints_is_read_as_it_was(texts: Sequence[str], gap: str) -> None:
    kept = tuple(stripped for text in texts if (stripped := text.rpartition("####")[2].strip()))
    assert final_answers(f"[{gap.join(map(repr, texts))}]", "target", "f") == kept


@given(st.text("['\"](){},.: \n\\ab1-", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(PoolError):
        assert all(isinstance(answer, str) for answer in final_answers(f"[{text}]", "target", "f"))


@pytest.mark.parametrize("unit", ["'", "\\'", '"\\', "' ", "['", "a ", "- ", "\"'", "{'text':"])
def test_a_long_text_of_open_quotes_is_read_once(unit: str) -> None:
    """Looking for the end of each quote anew would take hours."""
    with suppress(PoolError):
        final_answers(f"['{unit * (400_000 // len(unit))}]", "target", "f")


TRIVIA = {
    "value": "David Seville",
    "aliases": ["David Seville", "Seville"],
    "normalized_aliases": ["david seville", "seville"],
    "type": "WikipediaEntity",
}
ROWS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a pool": ({"gold": ["Ana", "Anna"], "answer": "Bo"}, ("Ana", "Anna")),
    "an empty list of a pool": ({"gold": [], "answer": "Bo"}, ()),
    "GSM8K": ({"answer": "2 + 3 = 5\n#### 5"}, ("5",)),
    "HotpotQA": ({"answer": "Ana"}, ("Ana",)),
    "SQuAD": ({"answers": {"text": ["a", "a", "the a"], "answer_start": [1, 1, 1]}}, ("a", "the a")),
    "SQuAD 2 without an answer": ({"answers": {"text": [], "answer_start": []}}, ()),
    "SQuAD as it is published": ({"answers": [{"text": "a", "answer_start": 1}, {"text": "b"}]}, ("a", "b")),
    "Natural Questions, open": ({"answer": ["a", "b"]}, ("a", "b")),
    "Natural Questions": ({"short_answers": [{"text": ["a", "b"], "start_token": [1, 2]}]}, ("a", "b")),
    "TriviaQA": ({"answer": TRIVIA}, ("David Seville", "Seville")),
    "PopQA": ({"obj": "politician", "possible_answers": '["politician", "pol"]'}, ("politician", "pol")),
    "MuSiQue": ({"answer": "a", "answer_aliases": ["b", "c"]}, ("a", "b", "c")),
    "DROP": ({"answers_spans": {"spans": ["4", "four"], "types": ["number", "span"]}}, ("4", "four")),
    "DROP as it is published": (
        {"answer": {"number": "4", "date": {"day": "", "month": "", "year": ""}, "spans": []}},
        ("4",),
    ),
    "ideal": ({"input": [{"role": "user", "content": "?"}], "ideal": ["a", "b"]}, ("a", "b")),
    "reference": ({"reference": "a", "retrieved_contexts": ["x"]}, ("a",)),
    "ground truth": ({"ground_truth": "a"}, ("a",)),
    "golden answers": ({"golden_answers": ["a"]}, ("a",)),
    "GPQA": ({"Correct Answer": "a", "Incorrect Answer 1": "b"}, ("a",)),
    "TruthfulQA": ({"best_answer": "a", "correct_answers": ["a", "b"], "incorrect_answers": ["c"]}, ("a", "b")),
    "names of one set": ({"answers": ["a", "b"], "answer": "A"}, ("a", "b", "A")),
    "a whole number": ({"answer": 18}, ("18",)),
    "whole numbers": ({"answers": [18, 18.0, -3]}, ("18", "-3")),
    "a whole number as a float": ({"gold": 18.0}, ("18",)),
    "NaN beside an answer": ({"gold": float("nan"), "answer": "a"}, ("a",)),
    "null beside an answer": ({"gold": None, "reference": None, "answer": "a"}, ("a",)),
    "a name that means something else": ({"answer": "a", "references": [{"url": "x"}]}, ("a",)),
}


@pytest.mark.parametrize(("row", "answers"), ROWS.values(), ids=ROWS)
def test_gold_answers_are_found_by_their_names(tmp_path: Path, row: dict[str, Any], answers: tuple[str, ...]) -> None:
    (entry,) = read_questions(write(tmp_path / "q.jsonl", {"question": QUESTION, **row}))
    assert entry.gold == answers


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"answer": "Paris is it.", "reference": "Paris"},
            "answer and reference may both hold the gold answers, and have none in common: 'Paris is it.' and 'Paris'. "
            "Name the right one gold.",
        ),
        ({"answer": {"a": 1}}, "answer must be text, or a list of texts; got {'a': 1} (dict). Write the accepted"),
        ({"answer": True}, "answer must be text, or a list of texts; got True (bool)."),
        ({"answers": [1.5]}, "answers[0] must be text, or a list of texts; got 1.5 (float)."),
        ({"references": [{"output": {"text": "a"}}]}, "references[0] must be text, or a list of texts; got"),
        (
            {"answer": {"number": "", "date": {"day": "3", "month": "May", "year": ""}, "spans": []}},
            "answer must be text, or a list of texts; got {'number': '', 'date': {'day': '3',",
        ),
        ({"answers": {"text": [], "answer": "Paris"}}, "answers must be text, or a list of texts; got {'text': [],"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_was_found(row: dict[str, Any], message: str) -> None:
    assert refused(lambda: gold(**row)).startswith(f"f, line 1: {message}")


def test_lists_in_lists_without_end_are_refused() -> None:
    deep: Any = "a"
    for _ in range(5_000):
        deep = [deep]
    assert refused(lambda: gold(answer=deep)) == (
        "f, line 1: answer is nested too deeply; write the accepted answers as a list."
    )


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"answers": {"text": ["a"], "answer_start": [1]}}, ("a",)), ({"answers": ["a", "b"]}, ("a", "b")),
        ({"ideal": "a"}, ("a",)), ({"reference": "a", "answer": "said"}, ("a",)), ({"possible_answers": ["a"]}, ("a",)),
        ({"answer": "a", "answer_aliases": ["b"]}, ("a", "b")), ({"answer": "said"}, ()),
    ],
)  # fmt: skip
def test_an_answer_alone_may_be_a_prediction(tmp_path: Path, row: dict[str, Any], answers: tuple[str, ...]) -> None:
    assert only(write(tmp_path / "a.jsonl", {"id": "q", "prediction": "x", **row})).gold == answers
    cells = {name: value if isinstance(value, str) else str(value) for name, value in row.items()}
    assert only(table(tmp_path / "a.csv", ("id", "prediction", *cells), ("q", "x", *cells.values()))).gold == answers


@pytest.mark.parametrize("fields", [{"answer": "D"}, {"label": "Doha", "id": "q"}, {"solution": "5", "Expected": "x"}])
def test_fields_that_may_hold_gold_answers_and_were_not_read_are_told(tmp_path: Path, fields: dict[str, Any]) -> None:
    row = {"question": QUESTION, "prediction": "Doha", **fields}
    for path in (write(tmp_path / "a.jsonl", row), table(tmp_path / "a.csv", tuple(row), tuple(row.values()))):
        built = build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl")
        names = " or ".join(repr(name) for name in sorted({*fields} - {"id"}))
        assert built.lacking == [f"{path}: no gold answer was read; if {names} holds it, name it gold."]


def test_nothing_is_told_where_gold_was_read_or_nothing_else_is_there(tmp_path: Path) -> None:
    for fields in ({"gold": "Doha", "label": "x"}, {"id": 1, "confidence": 0.5, "context": "x"}):
        path = write(tmp_path / "a.jsonl", {"question": QUESTION, "prediction": "Doha", **fields})
        assert build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl").lacking == []


@pytest.mark.parametrize("name", ["question", "Question", "problem", "Problem", "input", "query"])
def test_a_question_may_have_other_names(tmp_path: Path, name: str) -> None:
    (asked,) = read_questions(write(tmp_path / "q.jsonl", {name: QUESTION, "level": "x"}))
    (row,) = read_questions(table(tmp_path / "q.csv", ("n", name), ("1", QUESTION)))
    logged = only(write(tmp_path / "samples.jsonl", harness(doc={name: QUESTION})))
    assert {asked.question, row.question, logged.question} == {QUESTION}


def test_the_last_message_of_the_user_is_the_question_of_a_chat(tmp_path: Path) -> None:
    replies = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    (entry,) = read_questions(write(tmp_path / "q.jsonl", {"input": replies, "ideal": "Ana"}))
    assert (entry.question, entry.gold) == (QUESTION, ("Ana",))


TOWNS = ["Doha", "Oslo", "7"]
MARKED = {
    "a list": (TOWNS, "B"),
    "columns": ({"text": TOWNS, "label": ["1", "2", "3"]}, "2"),
    "objects": ([{"text": text, "label": label} for text, label in zip(TOWNS, "PQR", strict=True)], "Q"),
    "by label": (dict(zip("XYZ", TOWNS, strict=True)), "Y"),
}


@pytest.mark.parametrize("name", ["choices", "options"])
@pytest.mark.parametrize(("listed", "right"), MARKED.values(), ids=MARKED)
def test_choices_are_options_and_a_label_names_one(tmp_path: Path, name: str, listed: Any, right: str) -> None:
    row = {"question": QUESTION, name: listed, "answerKey": right}
    (entry,) = read_questions(write(tmp_path / "q.jsonl", row))
    assert entry.options == tuple(TOWNS) and entry.gold in (("Oslo",), ("B",))


def test_the_choices_of_harnesses_reach_the_pool(tmp_path: Path) -> None:
    doc = {"question": QUESTION, "choices": TOWNS, "answer": 1}
    logs = [
        write(tmp_path / "samples_mmlu.jsonl", harness(doc=doc, target="1", resps=[["B"]])),
        log(tmp_path / "log.json", sample(choices=TOWNS, target="B", output={"choices": [choice("B")]})),
    ]
    for path in logs:
        (row,) = rows(build_pool(Recipe([path], "choice"), tmp_path / "pool.jsonl"))
        assert row.options == TOWNS and row.gold in (["Oslo"], ["B"])
        (plain,) = rows(build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl"))
        assert plain.options == []


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ({"choices": TOWNS, "answer": 1}, "Oslo"), ({"options": TOWNS, "answer": 0}, "Doha"),
        ({"choices": ["1", "2", "3"], "answer": 1}, "2"), ({"options": ["a", "b", "7"], "answer": 7}, "7"),
        ({"choices": TOWNS, "answer": 9}, "9"), ({"answer": 1}, "1"), ({"choices": TOWNS, "answer": "7"}, "7"),
    ],
)  # fmt: skip
def test_a_whole_number_is_the_place_of_an_option(tmp_path: Path, row: dict[str, Any], right: str) -> None:
    (entry,) = read_questions(write(tmp_path / "q.jsonl", {"question": QUESTION, **row}))
    assert entry.gold == (right,)


def test_a_number_that_may_be_a_place_or_a_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", {"question": QUESTION, "options": ["2", "1", "3"], "answer": 2})
    assert refused(lambda: list(read_questions(path))).endswith(
        "answer is 2, which is the place of one option, from 0, and the text of another. Write its text as gold."
    )


@pytest.mark.parametrize("right", ["1", "9"])
def test_a_number_as_text_that_is_no_option_is_refused_for_a_choice(tmp_path: Path, right: str) -> None:
    path = write(tmp_path / "a.jsonl", {"question": QUESTION, "prediction": "A", "options": ["a", "b"], "gold": right})
    assert refused(lambda: build_pool(Recipe([path], "choice"), tmp_path / "p.jsonl")) == (
        f"{path}, line 1: gold is '{right}', which is not the text of an option; write the letter or the text of the "
        "right one."
    )
    (row,) = rows(build_pool(Recipe([path], "arithmetic"), tmp_path / "p.jsonl"))
    assert row.gold == [right]


def test_the_context_of_squad_is_a_passage(tmp_path: Path) -> None:
    row = {"id": "5", "title": "Qatar", "context": "Doha is it.", "question": QUESTION, "answers": {"text": ["Doha"]}}
    (entry,) = read_questions(write(tmp_path / "q.jsonl", row))
    assert (entry.evidence, entry.gold) == ((Passage("Qatar", "Doha is it."),), ("Doha",))


@pytest.mark.parametrize("cell", [*PRINTED][:12])
@pytest.mark.parametrize("name", ["gold", "answers", "ideal", "Possible Answers"])
def test_the_list_in_a_cell_is_its_answers(tmp_path: Path, name: str, cell: str) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction", name), ("1", QUESTION, "x", cell))
    assert only(path).gold == PARIS
    (asked,) = read_questions(path)
    assert asked.gold == PARIS
    (named,) = read_predictions(path, columns=Columns({"gold": [name]}))
    assert named.gold == PARIS


def test_a_column_that_a_flag_names_is_the_only_one_with_gold(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "prediction", "answers", "right"), ("1", "x", "Bo", "Ana"))
    (entry,) = read_predictions(path, columns=Columns({"gold": ["right"]}))
    assert entry.gold == ("Ana",)


@pytest.mark.parametrize("cell", ["nan", "NaN", "null", "NULL", "<NA>", "None", "NA", "N/A", "#N/A", "", " nan "])
def test_a_missing_cell_does_not_vote(tmp_path: Path, cell: str) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction"), ("1", QUESTION, cell), ("1", QUESTION, "Nan"))
    (row,) = rows(build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl"))
    assert [one.answer for one in row.candidates] == [None, "Nan"]
    stated = table(tmp_path / "b.csv", ("id", "question", "prediction", "said"), ("1", QUESTION, "It is.", cell))
    (row,) = rows(build_pool(Recipe([stated], "short", columns={"answer": ["said"]}), tmp_path / "pool.jsonl"))
    assert [one.answer for one in row.candidates] == [None]


@pytest.mark.parametrize("cell", ["Nan", "Null", "nano", "nan bread", "Na", "none"])
def test_a_written_answer_votes(tmp_path: Path, cell: str) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction", "gold"), ("1", QUESTION, cell, cell))
    (row,) = rows(build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl"))
    assert ([one.answer for one in row.candidates], row.gold) == ([cell], [cell])


@pytest.mark.parametrize(("cell", "answers"), [("nan", ()), ("NULL", ()), ("None", ("None",)), ("NA", ("NA",))])
def test_a_missing_gold_answer_is_none_and_a_word_is_one(tmp_path: Path, cell: str, answers: tuple[str, ...]) -> None:
    assert only(table(tmp_path / "a.csv", ("id", "prediction", "gold"), ("1", "x", cell))).gold == answers


@pytest.mark.parametrize("prediction", [float("nan"), {"answer": float("nan")}, [float("nan")]])
def test_nan_in_json_is_no_answer_either(tmp_path: Path, prediction: Any) -> None:
    path = write(tmp_path / "a.jsonl", {"question": QUESTION, "prediction": prediction})
    assert "NaN" in path.read_text(encoding="utf-8")
    (row,) = rows(build_pool(Recipe([path], "short"), tmp_path / "pool.jsonl"))
    assert [one.answer for one in row.candidates] == [None]


CUT = "It takes 3 and then 12 and"
MARKED_TEXT = "The answer is 12. Let me check: 3 and"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length", {"reason": "length"}])
@pytest.mark.parametrize("name", ["finish_reason", "stop_reason", "done_reason"])
def test_a_sample_that_stopped_at_its_limit_has_its_marked_answer_alone(tmp_path: Path, name: str, reason: Any) -> None:
    texts = [CUT, MARKED_TEXT]
    layouts: list[dict[str, Any]] = [
        {"prediction": texts, name: [reason] * 2},
        {"prediction": [{"text": text, name: reason} for text in texts]},
        {"prediction": [{"text": CUT, name: reason}, {"text": CUT, "answer": "12", name: reason}]},
    ]
    for row in layouts:
        path = write(tmp_path / "a.jsonl", {"question": QUESTION, **row})
        built = build_pool(Recipe([path], "arithmetic"), tmp_path / "pool.jsonl")
        (result,) = rows(built)
        assert ([one.answer for one in result.candidates], built.cut) == ([None, "12"], 1)


def test_a_sample_that_ended_by_itself_is_read_whole(tmp_path: Path) -> None:
    for reason in ("stop", None, "eos_token", 3):
        path = write(tmp_path / "a.jsonl", {"question": QUESTION, "prediction": CUT, "finish_reason": reason})
        built = build_pool(Recipe([path], "arithmetic"), tmp_path / "pool.jsonl")
        assert ([one.answer for one in rows(built)[0].candidates], built.cut) == (["12"], 0)


def test_logs_of_inspect_and_tables_say_which_samples_stopped_at_their_limit(tmp_path: Path) -> None:
    ends = [{**choice(text), "stop_reason": stop} for text in (CUT, MARKED_TEXT) for stop in ("max_tokens", "stop")]
    logged = log(tmp_path / "log.json", sample(output={"choices": ends}, target="12"))
    cells = [("1", QUESTION, text, stop) for text in (CUT, MARKED_TEXT) for stop in ("length", "stop")]
    listed = table(tmp_path / "a.csv", ("id", "question", "prediction", "finish_reason"), *cells)
    for path in (logged, listed):
        built = build_pool(Recipe([path], "arithmetic"), tmp_path / "pool.jsonl")
        assert ([one.answer for one in rows(built)[0].candidates], built.cut) == ([None, "12", "12", "12"], 1)


def test_what_a_program_is_told_is_not_gold(tmp_path: Path) -> None:
    class Told(dspy.Module):
        def forward(self, question: str, reference: str) -> dspy.Prediction:
            return dspy.Prediction(answer=reference)

    path = write(tmp_path / "dev.jsonl", {"question": QUESTION, "reference": "a page", "answer": "Doha"})
    (asked,) = read_devset(str(path), Told(), "short", "answer")
    assert (asked.entry.gold, asked.inputs["reference"]) == (("Doha",), "a page")
