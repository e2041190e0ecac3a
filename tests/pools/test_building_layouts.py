"""Every layout says the same of the same question, and what does not fit is named with file, line and field."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import PoolError
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.pools.entries import Entry, Sample
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.pools.question_files import Evidence, read_questions
from tests.pools.layouts import HOTPOTQA, QUESTION, choice, harness, log, only, refused, sample, write


def write_parquet(path: Path, *records: Mapping[str, Any]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records)), path)
    return path


def listed(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """The columns as a list of objects."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(
    ("prediction", "samples"),
    [
        ("It is Ana.", [Sample("It is Ana.")]),
        (None, [Sample("", None, final=True)]),
        (["Ana", None], [Sample("Ana"), Sample("", None, final=True)]),
        ({"text": "return 5", "answer": "5"}, [Sample("return 5", "5", final=True)]),
        ({"text": "I refuse.", "answer": None}, [Sample("I refuse.", None, final=True)]),
        ({"text": "It is Ana."}, [Sample("It is Ana.")]),
        ({"answer": "Ana"}, [Sample("", "Ana", final=True)]),
    ],
    ids=["text", "null", "list", "answered", "refused", "unanswered", "bare"],
)
def test_a_prediction_is_a_text_or_none_or_several(tmp_path: Path, prediction: Any, samples: list[Sample]) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "q", "prediction": prediction})
    assert only(path) == Entry(f"{path}, line 1", "q", None, tuple(samples))


def test_a_plain_row_may_have_what_a_pool_has_of_a_question(tmp_path: Path) -> None:
    passages = [{"title": "It", "text": "Ana did it."}, {"text": "Bo did not.", "score": 0.3}]
    row = {"id": 7, "question": QUESTION, "prediction": "Ana", "gold": ["Ana", "Anna"], "evidence": passages, "x": 1}
    entry = only(write(tmp_path / "a.jsonl", row))
    assert (entry.id, entry.question, entry.gold) == ("7", QUESTION, ("Ana", "Anna"))
    assert entry.evidence == (Passage("It", "Ana did it."), Passage("", "Bo did not."))


def test_packed_and_columnar_files_are_read_too(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "prediction": "Ana"}, {"id": "b", "prediction": None}]
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    columnar = write_parquet(tmp_path / "a.parquet", *rows)
    results = [[(entry.id, entry.samples) for entry in read_predictions(path)] for path in (packed, columnar)]
    assert results[0] == results[1] == [("a", (Sample("Ana"),)), ("b", (Sample("", None, final=True),))]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "q", "prediction": 18}, ": prediction must be text; got 18 (int)."),  # hazard 7
        ({"id": "q", "prediction": ["5", True]}, ": prediction[1] must be text; got True (bool)."),
        ({"id": "q", "prediction": []}, ": prediction must not be an empty list"),
        ({"id": "q", "prediction": {"text": 5}}, ": prediction.text must be text; got 5 (int)."),
        ({"id": "q", "prediction": {"answer": 5}}, ": prediction.answer must be text; got 5 (int)."),
        ({"id": "q"}, ": prediction is missing; add it, as null if the model gave none."),
        ({"id": True, "prediction": "5"}, ": id must be text; got True (bool)."),
        ({"id": "q", "question": ["?"], "prediction": "5"}, ": question must be text; got ['?'] (list)."),
        ({"id": "q", "gold": 5.5, "prediction": "5"}, ": gold must be text, or a list of texts; got 5.5 (float)."),
        ({"id": "q", "gold": ["5", None], "prediction": "5"}, ": gold[1] must be text, or a list of texts; got None"),
        ({"id": "q", "evidence": "x", "prediction": "5"}, ": evidence must be a list of objects"),
        (
            {"id": "q", "evidence": ["x"], "prediction": "5"},
            ", evidence[0]: must be an object with named fields; got 'x' (str)",
        ),
        ({"id": "q", "evidence": [{}], "prediction": "5"}, ": evidence[0].text must be text; got None (NoneType)"),
        ({"id": "q", "prediction": "\ud800"}, ": prediction holds half of a surrogate pair"),  # hazard 92
        ({"id": "q", "prediction": "x" * 500_001}, ": prediction has 500,001 characters; give at most 500,000"),
        (["q", "5"], ": must be an object with named fields; got ['q', '5'] (list)."),
    ],
)
def test_what_is_wrong_with_a_prediction_is_named(tmp_path: Path, record: object, message: str) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "p", "prediction": "4"}, record)
    assert f"{path}, line 2{message}" in refused(lambda: list(read_predictions(path)))


def test_a_date_that_python_cannot_hold_is_named_with_its_file(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    never = arrow.array([2**31 - 1], arrow.date32())
    arrow.parquet.write_table(arrow.table({"id": ["q"], "prediction": ["4"], "until": never}), tmp_path / "a.parquet")
    assert "a.parquet: not a readable Parquet file (" in refused(lambda: list(read_predictions(tmp_path / "a.parquet")))


def test_a_line_of_the_harness_is_recognised(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_gsm8k.jsonl", harness())
    expected = Entry(f"{path}, line 1", "0", QUESTION, (Sample(" 2 + 3 = 5\n#### 5"),), ("5",), may_repeat=True)
    assert only(path) == only(path, "lm-eval") == expected


@pytest.mark.parametrize(
    ("target", "gold"), [("['Ana', \"D'Oro\"]", ("Ana", "D'Oro")), *((one, ()) for one in (None, "", "no #### "))]
)
def test_a_target_is_a_text_or_a_list_that_was_written_as_one(tmp_path: Path, target: Any, gold: tuple[str]) -> None:
    assert only(write(tmp_path / "samples.jsonl", harness(target=target))).gold == gold


@pytest.mark.parametrize(
    "resps",
    [[[["-1.5", "True"]], [["-2.5", "False"]]], [[["-1.5", "True"]]], [["a"], ["b"]], [[]], [], ["a"], "a", None],
    ids=["choices", "likelihood", "two requests", "no text", "no request", "flat", "text", "null"],
)
def test_a_task_that_generates_no_text_is_refused(tmp_path: Path, resps: Any) -> None:
    path = write(tmp_path / "samples.jsonl", harness(resps=resps))
    with pytest.raises(PoolError, match=r"line 1: resps must be \[\[text, \.\.\.\]\].*sample nothing"):
        only(path)


@pytest.mark.parametrize("doc", [{"prompt": QUESTION}, {"question": {"text": QUESTION}}, QUESTION, None])
def test_a_document_without_the_text_of_a_question_has_none(tmp_path: Path, doc: Any) -> None:
    assert only(write(tmp_path / "samples.jsonl", harness(doc=doc))).question is None


def test_a_log_of_inspect_is_recognised(tmp_path: Path) -> None:
    path = log(tmp_path / "log.json", sample())
    expected = Entry(f"{path}, samples[0]", "1", QUESTION, (Sample("ANSWER: Ana"),), ("Ana",))
    assert only(path) == only(path, "inspect") == expected


def stopped(path: Path, status: Any, *samples: object, **rest: Any) -> Path:
    """A log of inspect that came so far; `rest` is what else it holds."""
    path.write_text(json.dumps({"version": 2, "status": status, "samples": samples, **rest}), encoding="utf-8")
    return path


ERROR = {"message": "the server was gone", "traceback": ""}
OF_22 = {"eval": {"dataset": {"samples": 22, "sample_ids": [*range(1, 23)]}, "config": {"epochs": 3}}}
DONE = [sample(id=number % 22 + 1, epoch=number // 22 + 1, input=f"{number % 22}?") for number in range(27)]


def test_a_failed_log_is_taken_where_that_is_asked_for_and_what_it_lacks_is_told(tmp_path: Path) -> None:
    failed = sample(id=6, epoch=2, input="5?", output=None, error=ERROR)
    path, told = stopped(tmp_path / "log.json", "error", *DONE, failed, error=ERROR, **OF_22), list[str]()
    entries = list(read_predictions(path, unfinished=True, notes=told))
    assert [len(entry.samples) for entry in entries] == [2] * 6 + [1] * 16
    assert told == [f"{path}: a log of status 'error', with 27 of 66 samples done; 1 ended in an error."]


@pytest.mark.parametrize(
    ("status", "rest", "message"),
    [
        ("cancelled", OF_22, "a log of status 'cancelled', with 1 of 66 samples done"),
        ("started", OF_22, "a log of status 'started', with 1 of 66 samples done"),
        (None, {}, "a log of status None, with 1 sample done"),
        ("error", {"results": {"total_samples": 40}, **OF_22}, "with 1 of 40 samples done"),
        ("error", {"eval": {"dataset": {"samples": 9}, "config": {"limit": 5}}}, "with 1 of 5 samples done"),
        ("error", {"eval": {"dataset": {"samples": 9}, "config": {"limit": [2, 6]}}}, "with 1 of 4 samples done"),
        ("error", {"eval": {"dataset": {"samples": "9"}}}, "with 1 sample done"),
        ("error", {"eval": 5, "results": 5}, "with 1 sample done"),
    ],
)
def test_whatever_stopped_a_log_is_named(tmp_path: Path, status: Any, rest: dict[str, Any], message: str) -> None:
    path = stopped(tmp_path / "log.json", status, sample(), **rest)
    assert refused(lambda: list(read_predictions(path))).endswith(
        f"{message}. Its first questions would represent all of them; finish the log with inspect eval-retry, or "
        "accept it as it is with --unfinished."
    )


def test_a_failed_log_without_a_sample_is_said_to_have_failed(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="a log of status 'error', with 0 of 66 samples done"):
        list(read_predictions(stopped(tmp_path / "log.json", "error", error=ERROR, **OF_22)))
    with pytest.raises(PoolError, match="must be a log of inspect"):
        list(read_predictions(tmp_path / "log.json", unfinished=True))


@pytest.mark.parametrize(
    ("samples", "planned", "told"),
    [
        ([sample()], 1, None),
        ([sample()], None, None),
        ([sample()], 3, "with 1 of 3 samples done"),
        ([sample(), sample(id=2, input="?", error=ERROR)], 2, "with 1 of 2 samples done; 1 ended in an error"),
    ],
)
def test_a_log_that_succeeded_is_taken_and_told_of_where_it_lacks_samples(
    tmp_path: Path, samples: list[Any], planned: int | None, told: str | None
) -> None:
    path, results = stopped(tmp_path / "log.json", "success", *samples, results={"total_samples": planned}), list[str]()
    assert len(list(read_predictions(path, notes=results))) == len(samples)
    assert results == ([] if told is None else [f"{path}: a log of status 'success', {told}."])


def test_epochs_and_choices_are_samples_in_order(tmp_path: Path) -> None:
    second = sample(epoch=2, output={"choices": [choice("c"), choice("d")], "completion": "c"})
    first = sample(epoch=1, output={"choices": [choice("a"), choice("b")]})
    other = sample(id="x", output={"choices": [], "completion": "e"})
    results = list(read_predictions(log(tmp_path / "log.json", second, other, first)))
    assert [(entry.id, [one.text for one in entry.samples]) for entry in results] == [("1", [*"abcd"]), ("x", ["e"])]


def test_reasoning_and_images_are_not_what_was_answered(tmp_path: Path) -> None:
    parts = [{"type": kind, kind: text} for kind, text in (("reasoning", "#### 3"), ("text", "It is"), ("text", "5"))]
    roles = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "image"}, parts[1]]}]
    entry = only(log(tmp_path / "log.json", sample(input=roles, output={"choices": [choice(parts)]})))
    assert (entry.question, entry.samples) == ("It is", (Sample("It is\n5"),))


@pytest.mark.parametrize("output", [None, {}, {"choices": []}, {"choices": [choice(None)]}, {"completion": ""}])
def test_a_model_that_was_never_heard_has_a_sample_without_text(tmp_path: Path, output: Any) -> None:
    assert only(log(tmp_path / "log.json", sample(output=output))).samples == (Sample(""),)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], ": must be a log of inspect"),
        ([sample(), sample()], ", samples[1]: id '1' and epoch 1 are also in "),
        ([sample(id=None)], ", samples[0]: id or epoch is missing or invalid"),
        ([sample(epoch="1")], ", samples[0]: id or epoch is missing or invalid"),
        ([sample(input=[])], ", samples[0]: input must be text; got None (NoneType)."),
        ([sample(target=True)], ", samples[0]: target must be text, or a list of texts; got True (bool)."),
        ([sample(output=[5])], ", samples[0], output: must be an object with named fields; got [5] (list)"),
        ([sample(output={"choices": ["x"]})], ", samples[0]: must be an object with named fields; got 'x' (str)"),
        (
            [sample(output={"choices": [choice(5)]})],
            ", samples[0]: output.choices[0].message.content must be text; got 5 (int)",
        ),
        (["x"], ", samples[0]: must be an object with named fields; got 'x' (str)"),
    ],
)
def test_what_is_wrong_with_a_log_is_named(tmp_path: Path, samples: list[Any], message: str) -> None:
    assert f"log.json{message}" in refused(lambda: list(read_predictions(log(tmp_path / "log.json", *samples))))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.json", b"[1]", "must be a log of inspect"),
        (
            "log.json",
            b'{"id": "q", "prediction": "5"}\n' * 2,
            r"not one JSON object.* The name of a file of JSON lines ends in \.jsonl\.",
        ),
        ("a.jsonl", b"", "no predictions; the file is empty"),
        ("a.jsonl", b'{"id": "q", "output": "5"}\n', "got the fields 'id', 'output'"),
        ("a.jsonl", b"{}\n", r"got the fields \(none\)"),
        ("a.jsonl", b"[]\n", "line 1: one JSON document of all rows is not read"),
        ("a.pkl", b"\x80\x04", "a pickle, which is never loaded"),  # hazard 96
    ],
)
def test_a_file_of_none_of_these_kinds_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PoolError, match=message):
        list(read_predictions(tmp_path / name))


def test_a_layout_that_is_given_is_not_guessed(tmp_path: Path) -> None:
    both = {"id": "q", "prediction": "Ana", **harness()}
    path = write(tmp_path / "a.jsonl", both)
    assert [only(path, layout).id for layout in ("predictions", "lm-eval")] == ["q", "0"]


def asked(path: Path, evidence: Evidence = "paragraphs") -> Entry:
    (entry,) = read_questions(path, evidence)
    return entry


def test_rows_of_hotpotqa_have_paragraphs_and_facts(tmp_path: Path) -> None:
    lists = HOTPOTQA | {name: listed(HOTPOTQA[name]) for name in ("context", "supporting_facts")}  # type: ignore[arg-type]
    paths = [
        write(tmp_path / "columns.jsonl", HOTPOTQA),
        write(tmp_path / "objects.jsonl", lists),
        write_parquet(tmp_path / "columns.parquet", HOTPOTQA),
        write_parquet(tmp_path / "objects.parquet", lists),
    ]
    for path in paths:
        entry = asked(path)
        assert (entry.id, entry.gold) == ("5ab", ("Ana",))
        assert entry.evidence == (
            Passage("Ana", "Ana paints. Ana sings."),
            Passage("It", "It hangs. Ana did it."),
            Passage("Bo", "Bo did not."),
        )
        assert asked(path, "facts").evidence == (Passage("Ana", "Ana paints."), Passage("It", "Ana did it."))


def test_questions_without_context_may_have_the_fields_of_a_pool(tmp_path: Path) -> None:
    row = {"id": "q", "question": QUESTION, "gold": ["Ana", "Anna"], "answer": "Bo", "evidence": [{"text": "x"}]}
    entry = asked(write(tmp_path / "q.jsonl", row))
    assert (entry.gold, entry.evidence) == (("Ana", "Anna"), (Passage("", "x"),))


def test_paragraphs_need_no_facts(tmp_path: Path) -> None:
    row = {name: value for name, value in HOTPOTQA.items() if name != "supporting_facts"}
    path = write(tmp_path / "q.jsonl", row, row | {"context": []})
    assert [len(entry.evidence) for entry in read_questions(path)] == [3, 0]
    with pytest.raises(PoolError, match=r"line 1: row\['supporting_facts'\] is None"):
        list(read_questions(path, "facts"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": None}, "line 1: question is missing; add it."),
        ({"context": "Ana"}, "line 1: row['context'] is 'Ana'; give rows of `hotpot_qa` as Hugging Face has them."),
        ({"context": {"title": ["Ana"]}}, "line 1: row['context']['sentences'] is missing"),
        ({"context": {"title": ["Ana"], "sentences": []}}, "line 1: row['context'] is"),
        ({"context": [{"title": "Ana"}]}, "line 1: row['context']['sentences'][0] is None"),
        ({"context": [["Ana", ["Ana paints."]]]}, "line 1: row['context'] is"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "q.jsonl", HOTPOTQA | changes)
    assert message in refused(lambda: asked(path))


def test_a_file_without_a_question_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_bytes(b"\n \n")
    with pytest.raises(PoolError, match=r"q\.jsonl: no questions; the file is empty\."):
        list(read_questions(tmp_path / "q.jsonl"))


PROMPTFOO = {"promptIdx": 0, "testIdx": 0, "vars": {"question": "Who?"}, "response": {"output": "Ana"}, "success": True}
SQUAD = {"id": "5", "title": "Ana", "context": "It is Ana's.", "question": "Whose?", "answers": {"text": ["Ana"]}}
PUBLISHED = {"data": [{"title": "Ana", "paragraphs": [{"context": "It is Ana's.", "qas": []}]}], "version": "1.1"}
STRANGERS: list[tuple[str, dict[str, Any], str]] = [
    ("a.jsonl", PROMPTFOO, "line 1: an output of promptfoo is not read. Write a CSV with a row a result"),
    ("a.json", {"evalId": 1, "results": {"version": 3, "results": [PROMPTFOO]}}, "an output of promptfoo is not read"),
    ("a.jsonl", SQUAD, "line 1: rows of SQuAD are questions without predictions; give them .* as --questions"),
    ("a.json", PUBLISHED, "SQuAD is read with a row a question. Write one JSON object a line for each of its `qas`"),
]


@pytest.mark.parametrize(("name", "record", "message"), STRANGERS)
def test_other_tools_files_are_refused_by_name(name: str, record: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, record)
    with pytest.raises(PoolError, match=message):
        list(read_predictions(path))
    message = message if name == "a.jsonl" else "eldgr pool build .* says how to convert a file of promptfoo or SQuAD"
    message = message.replace("line 1: rows", "line 1, id '5': rows")
    with pytest.raises(PoolError, match=message):
        open_pool(path)
