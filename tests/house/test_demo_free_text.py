"""The demo pool of free text is what `artifacts/README.md` says of it, under an NLI model that counts words."""

import json
from pathlib import Path

import pytest

from eldgr_dspy.answer_types.free_text import FreeText
from eldgr_dspy.cases import Case
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.questions import Question
from eldgr_dspy.rows import Row
from tests.bag_of_words import BagOfWords
from tests.house.doc_blocks import demo_rows

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"
POOL = ARTIFACTS / "demo-free-text.jsonl"
ROWS = {row.id: row for row in open_pool(POOL).rows()}
WORDS = FreeText(BagOfWords(), 0.9)

# One mark a candidate: y certified, n not, ? inapplicable. Then the candidate whose class is consensus, and the answer
# that is right, from 0.
TEXTS = {
    "t01": "nyy 1 1",
    "t02": "nny 0 2",
    "t03": "nny 0 2",
    "t04": "nny 0 2",
    "t05": "nny 0 2",
    "t06": "nnn 0 0",
    "t07": "yyn 0 0",
    "t08": "??y 0 2",
}


def case_of(row: Row) -> Case:
    asked = row.to_question()
    return Case(Question(asked.text, asked.task, asked.answers, asked.texts, asked.passages, kind=WORDS))


def described(row: Row) -> str:
    """Return what TEXTS says of a row."""
    case = case_of(row)
    answers = case.question.answers
    marks = "".join({True: "y", False: "n", None: "?"}[case.certified(answer)] for answer in answers)
    right = [case.type.is_right(answer, row.gold) for answer in answers]
    return f"{marks} {case.vote.classes.index(case.vote.winner)} {right.index(True)}"


def test_each_row_has_the_votes_and_certificates_that_it_is_meant_to_have() -> None:
    assert {row_id: described(row) for row_id, row in ROWS.items()} == TEXTS


def test_the_readme_says_of_each_consensus_what_is_meant() -> None:
    words = {"y": "certified", "n": "uncertified", "?": "n/a"}
    assert [*demo_rows("t").items()] == [
        (row_id, [f"{words[marks[int(at)]]}, {'right' if case_right(row_id) else 'wrong'}"])
        for row_id, (marks, at, _) in ((row_id, meant.split()) for row_id, meant in TEXTS.items())
    ]


def case_right(row_id: str) -> bool:
    case = case_of(ROWS[row_id])
    return case.type.is_right(case.consensus, ROWS[row_id].gold)


def test_a_passage_that_contradicts_is_counted_and_vetoes_nothing() -> None:
    found = case_of(ROWS["t07"]).certificate("The spring water of Greywick is hot.")
    assert found.witness is not None and "contradicted" in found.witness.flags
    assert "1 passage contradicts a claim" in found.reason


def test_the_pool_runs_with_a_model_named_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--answer", f"{__name__}:WORDS", "--rules", "majority,certified", "--out", "run", "--quiet"]
    assert main(["evaluate", str(POOL), *arguments]) == 0
    pool = json.loads(Path("run/summary.json").read_text("utf-8"))["pools"]["demo-free-text"]
    assert {rule: figures["em"] for rule, figures in pool["rules"].items()} == {"majority": 37.5, "certified": 87.5}
