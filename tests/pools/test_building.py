"""Files join question by question or are refused; what comes of it is a pool, the same whatever the files' order."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.pools.building import BuildResult, Recipe, build_pool, shuffled_order
from eldgr_dspy.words import Task
from tests.pools import layouts
from tests.pools.layouts import harness, log, predictions, question, questions, refused, rows, sample, write


def build(folder: Path, *sources: Path, task: Task = "retrieval", **recipe: Any) -> BuildResult:
    return build_pool(Recipe(sources, task, **recipe), folder / "pool.jsonl")


def texts(built: BuildResult) -> dict[str, list[str]]:
    return layouts.texts_of(open_pool(built.pool.path))


def failure(folder: Path, *sources: Path, **recipe: Any) -> str:
    message = refused(lambda: build(folder, *sources, **recipe))
    assert not (folder / "pool.jsonl").exists()
    return message


def test_the_candidates_of_a_question_stand_in_the_order_of_the_files(tmp_path: Path) -> None:
    built = build(tmp_path, predictions(tmp_path / "b.jsonl"), predictions(tmp_path / "a.jsonl", [3, 1, 0, 2]))
    assert texts(built) == {f"q{number}": [f"b says {number}", f"a says {number}"] for number in range(4)}
    assert [candidate.source for candidate in rows(built)[0].candidates] == ["b", "a"]
    assert (built.by, built.left_out, built.pool.n) == ("id", 0, 4)


def test_what_is_written_is_a_pool(tmp_path: Path) -> None:
    for name in ("pool.jsonl", "pool.jsonl.gz", "pool.parquet"):
        recipe = Recipe([predictions(tmp_path / "a.jsonl")], "retrieval", questions(tmp_path / "q.jsonl"))
        pool = open_pool(build_pool(recipe, tmp_path / name).pool.path)
        assert (pool.n, pool.task, pool.missing) == (4, "retrieval", 0)
        assert [row.gold for row in pool.rows()] == [[town] for town in layouts.TOWNS]


def test_the_order_of_the_lines_changes_no_row(tmp_path: Path) -> None:
    questions_file = questions(tmp_path / "q.jsonl")
    first = build(tmp_path, predictions(tmp_path / "a.jsonl"), questions=questions_file, shuffle=1)
    second = build(tmp_path, predictions(tmp_path / "a.jsonl", [2, 0, 3, 1]), questions=questions_file, shuffle=1)
    assert first.pool.sha256 == second.pool.sha256


def test_files_without_ids_are_joined_by_the_folded_question(tmp_path: Path) -> None:
    questions_file = questions(tmp_path / "q.jsonl")
    loud = write(tmp_path / "a.jsonl", *({"question": f" {question(n).upper()}", "prediction": "x"} for n in range(4)))
    built = build(tmp_path, loud, questions=questions_file)
    assert built.by == "question"
    assert [(row.id, row.question) for row in rows(built)] == [(f"q{n}", question(n)) for n in range(4)]


def test_a_question_without_an_id_gets_one_from_its_text(tmp_path: Path) -> None:
    questions_file = write(tmp_path / "q.jsonl", {"question": question(0)}, {"question": question(1)})
    turned = write(tmp_path / "r.jsonl", {"question": question(1)}, {"question": question(0)})
    sources = predictions(tmp_path / "a.jsonl", range(2))
    one, other = (
        {row.question: row.id for row in rows(build(tmp_path, sources, questions=q))} for q in (questions_file, turned)
    )
    assert one == other == {question(0): "q-6e5bedbc555a41e0", question(1): "q-a6eeebf8042bf9a2"}


def test_questions_that_no_file_is_on_are_left_out(tmp_path: Path) -> None:
    built = build(tmp_path, predictions(tmp_path / "a.jsonl", [1]), questions=questions(tmp_path / "q.jsonl"))
    assert (built.left_out, [row.id for row in rows(built)]) == (3, ["q1"])


def test_logs_of_two_harnesses_and_a_plain_file_make_one_pool(tmp_path: Path) -> None:
    of_harness = [
        harness(doc_id=n, doc={"question": question(n)}, resps=[[f"#### {n}", "none"]], filter=name)
        for name in ("strict-match", "flexible-extract")
        for n in range(3)
    ]
    of_inspect = [sample(id=n + 1, epoch=epoch, input=question(n)) for epoch in (1, 2) for n in range(3)]
    sources = [
        write(tmp_path / "samples.jsonl", *of_harness),
        log(tmp_path / "log.json", *of_inspect),
        predictions(tmp_path / "a.jsonl", range(3)),
    ]
    gsm8k = write(tmp_path / "gsm8k.jsonl", *({"question": question(n), "answer": f"x\n#### {n}"} for n in range(4)))
    built = build(tmp_path, *sources, task="arithmetic", questions=gsm8k)
    assert (built.by, built.left_out) == ("question", 1)
    replies = [["#" * 4 + f" {n}", "none", "ANSWER: Ana", "ANSWER: Ana", f"a says {n}"] for n in range(3)]
    assert [*texts(built).values()] == replies
    assert [row.gold for row in rows(built)] == [["0"], ["1"], ["2"]]
    assert [one.source for one in rows(built)[0].candidates] == ["samples #1", "samples #2", "log #1", "log #2", "a"]


def test_files_of_the_same_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "a.jsonl" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        predictions(path)
    built = build(tmp_path, *paths)
    assert [candidate.source for candidate in rows(built)[0].candidates] == [path.as_posix() for path in paths]


def test_evidence_comes_from_the_file_of_questions(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", {"id": "5ab", "prediction": "Finish[Ana]", "gold": ["Bo"]})
    questions_file = write(tmp_path / "hotpot.jsonl", layouts.HOTPOTQA)
    (row,) = rows(build(tmp_path, source, questions=questions_file, evidence="facts"))
    assert [(one.title, one.text) for one in row.evidence] == [("Ana", "Ana paints."), ("It", "Ana did it.")]
    assert (row.gold, row.candidates[0].answer) == (["Ana"], "Ana")


def test_answers_are_extracted_unless_they_are_stated(tmp_path: Path) -> None:
    values = ["So it is 5.\n#### 6", "That makes 7 apples.", "No idea.", None, {"text": "x = 3", "answer": "9"}]
    built = build(tmp_path, predictions(tmp_path / "a.jsonl", [0], prediction=values), task="arithmetic")
    assert [candidate.answer for candidate in rows(built)[0].candidates] == ["6", "7", None, None, "9"]
    assert built.forms == {"hashes": 1, "last_number": 1}
    assert built.pool.missing == 2


def test_predictions_on_no_question_are_named(tmp_path: Path) -> None:
    source, questions_file = predictions(tmp_path / "a.jsonl"), questions(tmp_path / "q.jsonl", [2])
    assert failure(tmp_path, source, questions=questions_file) == (
        f"{source}: 3 questions that {questions_file} does not have: id 'q0' ({source}, line 1), "
        f"id 'q1' ({source}, line 2), id 'q3' ({source}, line 4). Give files on the same questions, or join them by "
        "question."
    )


def test_questions_that_a_file_lacks_are_named(tmp_path: Path) -> None:
    sources = predictions(tmp_path / "a.jsonl"), predictions(tmp_path / "b.jsonl", [3])
    message = failure(tmp_path, *sources)
    lacking = f"{sources[1]}: 3 questions without a prediction here, unlike others: "
    assert f"{lacking}id 'q0' ({sources[0]}, line 1)" in message
    again = failure(tmp_path, *sources, questions=questions(tmp_path / "q.jsonl"), by="question")
    assert f"{lacking}'What is town number 0?'" in again
    assert again.endswith("or join them by id.")


def test_no_more_than_three_are_named(tmp_path: Path) -> None:
    first = predictions(tmp_path / "a.jsonl", range(4))
    many = predictions(tmp_path / "b.jsonl", range(40))
    assert "36 questions that" in failure(tmp_path, first, many)
    assert "id 'q4'" in (message := failure(tmp_path, first, many)) and "id 'q6'" in message and "q7" not in message
    assert "line 7), ... Give" in message


@pytest.mark.parametrize("by", ["id", "question"])
def test_a_question_that_a_file_has_twice_is_refused(tmp_path: Path, by: Any) -> None:  # hazard 4
    twice = predictions(tmp_path / "a.jsonl", [0, 1, 1])
    message = failure(tmp_path, twice, by=by)
    assert f"{twice}, line 3: {by} '" in message and f"is also in {twice}, line 2;" in message
    questions_file = questions(tmp_path / "q.jsonl", [0, 1, 2, 1])
    assert f"{questions_file}, line 4:" in failure(
        tmp_path, predictions(tmp_path / "b.jsonl", [0]), questions=questions_file, by=by
    )


def test_ids_that_occur_twice_are_refused_where_questions_join(tmp_path: Path) -> None:
    questions_file = write(tmp_path / "q.jsonl", *({"id": "q", "question": question(number)} for number in range(2)))
    message = failure(tmp_path, predictions(tmp_path / "a.jsonl", [0, 1]), questions=questions_file, by="question")
    assert f"{questions_file}, line 2: id 'q' is also in {questions_file}, line 1;" in message


def test_a_log_that_has_a_question_once_a_filter_is_read_once(tmp_path: Path) -> None:
    lines = [harness(filter=name, filtered_resps=[name]) for name in ("strict", "flexible")]
    other = write(tmp_path / "other.jsonl", *lines, harness(resps=[["#### 6"]]))
    assert f"{other}, line 3: id '0' is also in {other}, line 1;" in failure(tmp_path, other, task="arithmetic")
    built = build(tmp_path, write(tmp_path / "samples.jsonl", *lines), task="arithmetic")
    assert [len(row.candidates) for row in rows(built)] == [1]


def test_one_id_for_two_questions_is_refused(tmp_path: Path) -> None:
    first = predictions(tmp_path / "a.jsonl", [0])
    other = predictions(tmp_path / "b.jsonl", [0], question="Who is it?")
    message = failure(tmp_path, first, other)
    assert f"{other}, line 1: id 'q0' has the question 'Who is it?', but another in {first}, line 1" in message


def test_a_prompt_that_contains_the_question_is_not_another_question(tmp_path: Path) -> None:
    prompted = predictions(tmp_path / "b.jsonl", [0], question=f"Answer briefly.\n\n{question(0)}")
    assert build(tmp_path, predictions(tmp_path / "a.jsonl", [0]), prompted).pool.n == 1


@pytest.mark.parametrize(
    ("row", "recipe", "message"),
    [
        ({"id": "q0", "prediction": "x"}, {}, "line 1: question is missing; add it, or give a file of questions."),
        ({"prediction": "x"}, {},
         "question is missing, but joins the files (not every row has an id); add it."),
        ({"question": "?", "prediction": "x"}, {"by": "id"}, "id is missing, but joins the files; add it."),
        ({"id": "q0", "prediction": "x"}, {"by": "question"},
         "question is missing, but joins the files; add"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_joined_is_named(tmp_path: Path, row: Any, recipe: Any, message: str) -> None:
    assert message in failure(tmp_path, write(tmp_path / "a.jsonl", row), **recipe)


def test_a_row_that_is_not_a_row_of_a_pool_is_named(tmp_path: Path) -> None:
    first = predictions(tmp_path / "a.jsonl", [0], prediction=["x"] * 1_001)
    assert f"{first}, line 1, id 'q0': candidates has 1,001 items" in failure(tmp_path, first)


def test_files_are_not_read_twice_and_not_overwritten(tmp_path: Path) -> None:
    first, questions_file = predictions(tmp_path / "a.jsonl"), questions(tmp_path / "q.jsonl")
    before = first.read_bytes()
    with pytest.raises(ArgumentError, match="is given twice, so its candidates would vote twice; give it once"):
        build(tmp_path, first, tmp_path / "." / "a.jsonl")
    for out in (first, questions_file):
        with pytest.raises(ArgumentError, match="is one of the files to read; give the pool another name"):
            build_pool(Recipe([first], "retrieval", questions_file), out)
    with pytest.raises(ArgumentError, match="Give at least one file of predictions"):
        build(tmp_path)
    assert first.read_bytes() == before


def test_a_pool_that_was_there_stays_where_the_files_do_not_fit(tmp_path: Path) -> None:  # hazard 89
    (tmp_path / "pool.jsonl").write_text("before")
    with pytest.raises(PoolError):
        build(tmp_path, predictions(tmp_path / "a.jsonl"), predictions(tmp_path / "b.jsonl", [1]))
    assert (tmp_path / "pool.jsonl").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "pool.jsonl"]


def test_an_order_never_changes() -> None:
    assert shuffled_order(6, seed=7, id="q1") == [2, 0, 1, 4, 3, 5]


@given(st.integers(0, 50), st.integers(), st.text())
def test_an_order_has_every_position_once(n: int, seed: int, name: str) -> None:
    assert sorted(shuffled_order(n, seed, name)) == list(range(n))


def test_every_order_is_about_as_likely() -> None:
    first = [shuffled_order(4, seed, "q")[0] for seed in range(4_000)]
    assert all(900 <= first.count(position) <= 1_100 for position in range(4))


def test_shuffling_keeps_the_candidates_and_depends_on_the_seed(tmp_path: Path) -> None:
    source = predictions(tmp_path / "a.jsonl", prediction=[f"sample {number}" for number in range(8)])
    plain, one, same, other = (texts(build(tmp_path, source, shuffle=seed)) for seed in (None, 1, 1, 2))
    assert one == same != other
    assert one != plain
    assert {name: sorted(result) for name, result in one.items()} == plain
    assert len({tuple(result) for result in one.values()}) > 1  # each question has an order of its own


def test_a_real_pool_taken_apart_is_put_together_again(pools_dir: Path, tmp_path: Path) -> None:
    pool = open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz")
    before = list(pool.rows())
    draw = random.Random(5)
    sources = []
    for index in range(12):
        order = draw.sample(before, len(before))
        one_file = [
            {"id": row.id, "prediction": {"text": row.candidates[index].text, "answer": row.candidates[index].answer}}
            for row in order
        ]
        sources.append(write(tmp_path / f"{index}.jsonl", *one_file))
    file = write(tmp_path / "q.jsonl", *(json.loads(row.model_dump_json(exclude={"candidates"})) for row in before))
    after = rows(build(tmp_path, *sources, questions=file))

    def content(row: Row) -> Any:
        return row.model_dump(exclude={"candidates", "meta"}), [(one.text, one.answer) for one in row.candidates]

    assert [content(row) for row in after] == [content(row) for row in before]
