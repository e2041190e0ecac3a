"""Columns of candidates survive every format, are checked value by value, and are summed up as selectors read them."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.formats.columns import COLUMNS, LARGEST, Columns, quote, read_columns
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.pools import Row, open_pool, write_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.ballots import MOST_NUMBERS, NOTHING, Logprobs, Statement
from tests.case_tables import each_case
from tests.pools.layouts import WORDS, refusal, write_parquet
from tests.refusing import refusal as refusal_of_argument
from tests.results.demo_pools import ARTIFACTS

FORMATS = (".jsonl", ".jsonl.gz", ".parquet")
FULL: dict[str, Any] = {"confidence": 0.1, "logprobs": {"tokens": [-0.1, -2.0, -1e-17], "answer_tokens": 2}}
FULL |= {"scores": {"prm": [0.9, 0.30000000000000004], "reward-1.b": -7.5}, "tags": ["cot", "modèle 日"]}

unit = st.floats(0, 1)
logprob = st.floats(-LARGEST, 0)
score = st.floats(-LARGEST, LARGEST)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(str.strip)


@st.composite
def series(draw: st.DrawFn) -> dict[str, Any]:
    tokens = draw(st.lists(logprob, min_size=1, max_size=4))
    n = draw(st.none() | st.integers(1, len(tokens)))
    return {"tokens": tokens, **({} if n is None else {"answer_tokens": n})}


summaries = st.fixed_dictionaries(
    {}, optional={"mean": logprob, "min": logprob, "probability": unit, "reasoning": logprob, "answer": logprob}
)
names = st.from_regex(r"[A-Za-z0-9_.-]{1,9}", fullmatch=True)
score_columns = st.dictionaries(names, score | st.lists(score, min_size=1, max_size=3))
columns_of_each: dict[str, st.SearchStrategy[Any]] = {"confidence": unit | st.sampled_from([0, 1])}
columns_of_each |= {"logprobs": series() | summaries, "scores": score_columns, "tags": st.lists(texts, max_size=2)}
stated_columns = st.fixed_dictionaries({}, optional={name: st.none() | of for name, of in columns_of_each.items()})


def record(*candidates: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {"id": f"q{number}", "question": "Who?", "task": "short", "candidates": [*candidates]}


def row(*candidates: dict[str, Any]) -> Row:
    return Row.model_validate(record(*candidates))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(stated_columns, min_size=1, max_size=3))
@example([FULL, {}, {"confidence": 0.0}])
@example([{"logprobs": {}, "scores": {}, "tags": []}])
def test_columns_are_the_same_in_every_format(tmp_path: Path, columns: list[dict[str, Any]]) -> None:
    pytest.importorskip("pyarrow")
    given_row = row(*({"answer": "Ada", **one} for one in columns))
    pools = [write_pool(tmp_path / f"p{suffix}", [given_row]) for suffix in FORMATS]
    assert len({pool.sha256 for pool in pools}) == 1
    for pool in pools:
        assert open_pool(pool.path) == pool
        assert list(pool.rows()) == [given_row]


def test_a_pool_without_columns_has_the_hash_and_the_bytes_that_it_had_before(tmp_path: Path) -> None:
    path = ARTIFACTS / "demo-retrieval.jsonl"
    pool = open_pool(path)
    assert pool.sha256 == "47b6c43f22df9370ff6ce4252340d229a852f30006e9ad731f4522ea43f6a54e"
    assert write_pool(tmp_path / "again.jsonl", pool.rows()).path.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_is_part_of_the_content(name: str) -> None:
    bare, full = row({"answer": "Ada"}), row({"answer": "Ada", name: FULL[name]})
    assert bare.digest() != full.digest()
    assert full.candidates[0].model_dump()[name] == FULL[name]


def test_null_and_empty_are_missing_a_whole_number_is_its_float_and_zero_is_a_value(tmp_path: Path) -> None:
    for columns in (dict.fromkeys(COLUMNS), {"scores": {}, "tags": [], "logprobs": {"tokens": []}}):
        assert row({"answer": "Ada", **columns}).digest() == row({"answer": "Ada"}).digest()
        assert row({"answer": "Ada", **columns}).to_question().stated == ()
    whole = {"confidence": 1, "scores": {"a": 2, "b": [1, 0]}, "logprobs": {"tokens": [-1, 0]}}
    floats = {"confidence": 1.0, "scores": {"a": 2.0, "b": [1.0, 0.0]}, "logprobs": {"tokens": [-1.0, 0.0]}}
    assert row({"answer": "Ada", **whole}).digest() == row({"answer": "Ada", **floats}).digest()
    zeros = {"confidence": 0, "logprobs": {"mean": 0}, "scores": {"prm": 0}}
    pool = write_pool(tmp_path / "p.jsonl", [row({"answer": "Ada", **zeros})])
    (read,) = pool.rows()
    assert '"confidence": 0.0, "logprobs": {"mean": 0.0}, "scores": {"prm": 0.0}' in pool.path.read_text()
    assert read.to_question().stated == (Statement(0.0, Logprobs(mean=0.0), {"prm": 0.0}),)
    some = row({"answer": "Ada", **FULL}, {"answer": "Bo"}, {"answer": None, "tags": ["react"]}).to_question().stated
    assert (some[0].confidence, some[0].scores) == (0.1, FULL["scores"])
    assert some[1:] == (NOTHING, Statement(tags=("react",)))


def test_parquet_holds_numbers_and_texts_where_it_can_and_json_where_it_cannot(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    write_pool(tmp_path / "p.parquet", [row({"answer": "Ada", **FULL}, {"answer": "Bo"})])
    first, second = arrow.read_table(tmp_path / "p.parquet").to_pylist()[0]["candidates"]
    assert (first["confidence"], first["tags"]) == (FULL["confidence"], FULL["tags"])
    assert [json.loads(first[name]) for name in ("logprobs", "scores")] == [FULL["logprobs"], FULL["scores"]]
    assert [second[name] for name in COLUMNS] == [None] * 4
    candidates = [{"answer": "Ada", **FULL}, {"answer": "Bo", "scores": {"other": 1.0}}]
    plain = write_pool(tmp_path / "p.jsonl", [row(*candidates)])  # files of others may hold objects
    assert open_pool(write_parquet(tmp_path / "other.parquet", record(*candidates))).sha256 == plain.sha256


VALUES: dict[str, Callable[..., Any]] = {**WORDS, "power": pow, "less": lambda number: -number}
VALUES["scores"] = lambda n: {f"s{number}": 1 for number in range(n)}


@each_case("pools", "refused columns", **VALUES)
def test_a_value_that_cannot_be_used_is_refused_with_place_and_remedy(name: str, value: Any, message: str) -> None:
    """In a pool and in a live candidate, with the same words."""
    wrong = record({"answer": "Ada", "confidence": 1}, {"answer": "Bo", name: value})
    assert refusal(lambda: validate(wrong, "p.jsonl, line 7")) == (
        f"p.jsonl, line 7, id 'q0': candidates[1].{name}{message}"
    )
    assert refusal_of_argument(lambda: read_columns({name: value}, "it.{}")) == f"it.{name}{message}"


@each_case("pools", "refused log probabilities of a chat")
def test_those_of_a_chat_api_are_refused_by_their_own_names(content: Any, message: str) -> None:
    assert refusal_of_argument(lambda: read_columns({"logprobs": {"content": content}})) == message


def test_the_limits_themselves_are_accepted_and_a_value_is_quoted_on_one_line() -> None:
    limits = {
        "confidence": 1,
        "logprobs": {"tokens": [-LARGEST, 0], "answer_tokens": 2},
        "scores": {"x" * 100: LARGEST, **{f"s{n}": -LARGEST for n in range(99)}},
    }
    (columns,) = row({"answer": "Ada", **limits}).to_question().stated
    assert columns.logprobs == Logprobs(-LARGEST / 2, -LARGEST, 0.5, None, -LARGEST)
    assert max(MOST_NUMBERS, 1_000) * LARGEST < sys.float_info.max  # so no sum overflows
    assert quote(type("Long", (), {"__repr__": lambda self: "one\ntwo"})()) == "one two"


def test_tokens_are_summed_up_by_hand_what_they_do_not_tell_is_unknown_and_summaries_stay() -> None:
    """Of the tokens ln 1/2, ln 1/4 and ln 1/8 the last two are the answer."""
    half = math.log(0.5)
    tokens = {"tokens": [half, 2 * half, 3 * half], "answer_tokens": 2}
    (columns,) = row({"answer": "Ada", "logprobs": tokens}).to_question().stated
    assert columns.logprobs is not None
    assert (columns.logprobs.least, columns.logprobs.reasoning) == (3 * half, half)
    assert columns.logprobs.mean == pytest.approx(2 * half, rel=1e-15)
    assert columns.logprobs.probability == pytest.approx((0.5 + 0.25 + 0.125) / 3, rel=1e-15)
    assert columns.logprobs.answer == pytest.approx(5 * half, rel=1e-15)
    summaries = {"mean": -1, "min": -2, "probability": 0.5, "reasoning": -3, "answer": -4}
    for logprobs, expected in (
        ({"tokens": [-1.0]}, Logprobs(-1.0, -1.0, math.exp(-1.0), None, None)),
        ({"tokens": [-1.0], "answer_tokens": 1}, Logprobs(-1.0, -1.0, math.exp(-1.0), None, -1.0)),
        (summaries, Logprobs(-1.0, -2.0, 0.5, -3.0, -4.0)),
    ):
        assert Columns.model_validate({"logprobs": logprobs}).to_statement() == Statement(logprobs=expected)


def test_log_probabilities_may_be_as_a_chat_api_returns_them() -> None:
    content = [{"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": []}, {"token": "da", "logprob": -1}]
    assert read_columns({"logprobs": {"content": content}}) == Columns.model_validate(
        {"logprobs": {"tokens": [-0.5, -1]}}
    )
    nothing: list[Any] = [None, {"content": None}, {"content": []}, {}]
    assert [read_columns({"logprobs": one}) for one in nothing] == [Columns()] * 4


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["pool", "check", *arguments]) == 0
    return capsys.readouterr().out


def test_a_check_counts_what_is_stated_and_bounds_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A score that is a percentage in one row and a fraction in another is seen by its ends."""
    first = row({"answer": "Ada", **FULL}, {"answer": "Bo", "confidence": 0, "scores": {"reward-1.b": 90}}, {})
    second = Row.model_validate(record({"answer": "Ada", "scores": {"prm": 0}}, number=1))
    path = str(write_pool(tmp_path / "p.jsonl", [first, second]).path)
    assert (
        "Stated of candidates: confidence 2 of 4, logprobs 1 of 4, scores.prm 2 of 4 from 0 to 0.9, "
        "scores.reward-1.b 2 of 4 from -7.5 to 90, tags 1 of 4."
    ) in " ".join(check(capsys, path).split())
    figures = json.loads(check(capsys, path, "--json"))["pools"]["p"]["columns"]
    assert figures["confidence"] == {"count": 2, "of": 4, "rate": 50.0, "lowest": None, "highest": None}
    assert figures["scores.prm"] == {"count": 2, "of": 4, "rate": 50.0, "lowest": 0.0, "highest": 0.9}
    assert list(figures) == ["confidence", "logprobs", "scores.prm", "scores.reward-1.b", "tags"]
    bare = str(ARTIFACTS / "demo-retrieval.jsonl")
    assert "Stated" not in check(capsys, bare)
    assert "columns" not in json.loads(check(capsys, bare, "--json"))["pools"]["demo-retrieval"]
