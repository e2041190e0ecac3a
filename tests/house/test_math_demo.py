"""The demo pool of mathematics is what its README says: classes, consensus and derivations, row by row."""

import json
from collections.abc import Mapping
from functools import cache
from string import ascii_lowercase
from typing import Any

import pytest

from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.pools import open_pool
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from tests.house.doc_blocks import ROOT, demo_rows

pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")

POOL, REPLAY = (ROOT / "artifacts" / f"demo-math{end}.jsonl" for end in ("", "-replay"))


@cache
def rows() -> Mapping[str, Mapping[str, Any]]:
    return {row["id"]: row for row in map(json.loads, POOL.read_text(encoding="utf-8").splitlines())}


@cache
def recorded() -> Mapping[str, Mapping[str, Any]]:
    return {line["id"]: line for line in map(json.loads, REPLAY.read_text(encoding="utf-8").splitlines())}


def case_of(row_id: str) -> Case:
    row = rows()[row_id]
    return Case(Question(row["question"], "math", tuple(one["answer"] for one in row["candidates"])))


def found(row_id: str) -> list[str]:
    """The cells of the README's table: classes as letters, whether consensus is right, and what the derivation does."""
    case, row, line = case_of(row_id), rows()[row_id], recorded()[row_id]
    letters = dict(zip(filter(None, dict.fromkeys(case.vote.classes)), ascii_lowercase, strict=False))
    reply = read_reply("deriver", line["content"], (), 0) if line["outcome"] == "ok" else None
    passes = isinstance(reply, Derivation) and case.derived(reply) is not None
    return [
        "".join("." if key is None else letters[key] for key in case.vote.classes),
        "right" if score(case.consensus, row["gold"], "math").em else "wrong",
        line["outcome"].replace("abstained", "abstains") if reply is None else "passes" if passes else "fails",
    ]


def test_the_rows_are_what_the_readme_says() -> None:
    assert [*demo_rows("m").items()] == [(row_id, found(row_id)) for row_id in rows()]


def test_the_pool_is_one_and_each_question_has_a_recording() -> None:
    assert (open_pool(POOL).task, [*recorded()]) == ("math", [*rows()])
    assert {line["pool"] for line in recorded().values()} == {"demo-math"}
    assert all(line["recorded"] is True for line in recorded().values())


@pytest.mark.parametrize("row_id", ["m01", "m02", "m03", "m04"])
def test_a_derived_number_is_right_and_joins_a_class_of_the_pool(row_id: str) -> None:
    case = case_of(row_id)
    reply = read_reply("deriver", recorded()[row_id]["content"], (), 0)
    assert isinstance(reply, Derivation)
    derived = case.derived(reply)
    assert score(derived, rows()[row_id]["gold"], "math").em
    assert any(case.same(derived, answer) for answer in case.question.answers)
