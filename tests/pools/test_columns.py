"""Columns of candidates survive every format, are checked value by value, and are summed up as selectors read them."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.formats.columns import COLUMNS, LARGEST, Columns, quote, read_columns
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.pools import Row, open_pool, write_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.ballots import MOST_NUMBERS, NOTHING, Logprobs, Stated
from tests.pools.layouts import refused
from tests.refusing import refused as refused_argument
from tests.results.demo_pools import ARTIFACTS

FORMATS = (".jsonl", ".jsonl.gz", ".parquet")
FULL: dict[str, Any] = {
    "confidence": 0.1,
    "logprobs": {"tokens": [-0.1, -2.0, -1e-17], "answer_tokens": 2},
    "scores": {"prm": [0.9, 0.30000000000000004], "reward-1.b": -7.5},
    "tags": ["cot", "modèle 日"],
}

unit = st.floats(0, 1)
logprob = st.floats(-LARGEST, 0)
score = st.floats(-LARGEST, LARGEST)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(str.strip)


@st.composite
def listed(draw: st.DrawFn) -> dict[str, Any]:
    tokens = draw(st.lists(logprob, min_size=1, max_size=4))
    n = draw(st.none() | st.integers(1, len(tokens)))
    return {"tokens": tokens, **({} if n is None else {"answer_tokens": n})}


summaries = st.fixed_dictionaries(
    {}, optional={"mean": logprob, "min": logprob, "probability": unit, "reasoning": logprob, "answer": logprob}
)
stated_columns = st.fixed_dictionaries(
    {},
    optional={
        "confidence": st.none() | unit | st.sampled_from([0, 1]),
        "logprobs": st.none() | listed() | summaries,
        "scores": st.none()
        | st.dictionaries(
            st.from_regex(r"[A-Za-z0-9_.-]{1,9}", fullmatch=True), score | st.lists(score, min_size=1, max_size=3)
        ),
        "tags": st.none() | st.lists(texts, max_size=2),
    },
)


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


@pytest.mark.parametrize("columns", [dict.fromkeys(COLUMNS), {"scores": {}, "tags": [], "logprobs": {"tokens": []}}])
def test_null_and_empty_are_missing(columns: dict[str, Any]) -> None:
    assert row({"answer": "Ada", **columns}).digest() == row({"answer": "Ada"}).digest()
    assert row({"answer": "Ada", **columns}).to_question().stated == ()


def test_a_whole_number_is_the_same_as_its_float() -> None:
    whole = {"confidence": 1, "scores": {"a": 2, "b": [1, 0]}, "logprobs": {"tokens": [-1, 0]}}
    floats = {"confidence": 1.0, "scores": {"a": 2.0, "b": [1.0, 0.0]}, "logprobs": {"tokens": [-1.0, 0.0]}}
    assert row({"answer": "Ada", **whole}).digest() == row({"answer": "Ada", **floats}).digest()


def test_zero_is_a_value(tmp_path: Path) -> None:
    zeros = {"confidence": 0, "logprobs": {"mean": 0}, "scores": {"prm": 0}}
    pool = write_pool(tmp_path / "p.jsonl", [row({"answer": "Ada", **zeros})])
    (read,) = pool.rows()
    assert '"confidence": 0.0, "logprobs": {"mean": 0.0}, "scores": {"prm": 0.0}' in pool.path.read_text()
    assert read.to_question().stated == (Stated(0.0, Logprobs(mean=0.0), {"prm": 0.0}),)


def test_parquet_holds_numbers_and_texts_where_it_can_and_json_where_it_cannot(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    write_pool(tmp_path / "p.parquet", [row({"answer": "Ada", **FULL}, {"answer": "Bo"})])
    first, second = arrow.read_table(tmp_path / "p.parquet").to_pylist()[0]["candidates"]
    assert (first["confidence"], first["tags"]) == (FULL["confidence"], FULL["tags"])
    assert [json.loads(first[name]) for name in ("logprobs", "scores")] == [FULL["logprobs"], FULL["scores"]]
    assert [second[name] for name in COLUMNS] == [None] * 4


def test_parquet_of_others_may_hold_objects(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    candidates = [{"answer": "Ada", **FULL}, {"answer": "Bo", "scores": {"other": 1.0}}]
    plain = write_pool(tmp_path / "p.jsonl", [row(*candidates)])
    assert open_pool(parquet(tmp_path, *candidates)).sha256 == plain.sha256


def test_json_that_is_not_json_is_refused_by_its_candidate(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"answer": "Ada", "scores": "{}"}, {"answer": "Bo", "scores": "{prm: 1}"})
    assert refused(lambda: open_pool(path)).startswith(f"{path}, row 1, candidates[1].scores: not one JSON object (")


def parquet(folder: Path, *candidates: dict[str, Any]) -> Path:
    arrow, path = pytest.importorskip("pyarrow"), folder / "other.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist([record(*candidates)]), path)
    return path


UNIT = "must be a number from 0 to 1; got "
DIVIDE = ". Divide a percentage by 100, or leave it out."
LOGARITHM = "must be a natural logarithm, a number from -1e300 to 0; got "
LEAVE = ". Leave logprobs out."
SCORE = "must have under 'prm' a number from -1e300 to 1e300, or a list with one for each step; got "
NAMES = "must have names of 1 to 100 letters, digits, '_', '-' and '.'; got "
COUNT = "must be a whole number of at least 1; got "
TAGS = "must be a list of texts that are not blank; got "

REFUSED: list[tuple[str, Any, str]] = [
    ("confidence", 1.0000000000000002, f" {UNIT}1.0000000000000002{DIVIDE}"),
    ("confidence", -0.1, f" {UNIT}-0.1{DIVIDE}"),
    ("confidence", 90, f" {UNIT}90{DIVIDE}"),
    ("confidence", "0.9", f" {UNIT}'0.9'{DIVIDE}"),
    ("confidence", "90 %", f" {UNIT}'90 %'{DIVIDE}"),
    ("confidence", True, f" {UNIT}True{DIVIDE}"),
    ("confidence", [0.9], f" {UNIT}[0.9]{DIVIDE}"),
    ("confidence", math.nan, f" {UNIT}nan{DIVIDE}"),
    ("confidence", 10**400, f" {UNIT}1{'0' * 17}...{'0' * 19}{DIVIDE}"),
    ("confidence", 10**5000, f" {UNIT}a number with too many digits to show{DIVIDE}"),
    ("logprobs", "x", " must be an object; got 'x'. Write {\"mean\": -0.5}, or leave it out."),
    ("logprobs", [-0.5], ' must be an object; got [-0.5]. Write {"mean": -0.5}, or leave it out.'),
    ("logprobs", {"tokens": [-1, 0.1]}, f".tokens[1] {LOGARITHM}0.1{LEAVE}"),
    ("logprobs", {"tokens": [-math.inf]}, f".tokens[0] {LOGARITHM}-inf{LEAVE}"),
    ("logprobs", {"tokens": [-1, math.nan]}, f".tokens[1] {LOGARITHM}nan{LEAVE}"),
    ("logprobs", {"tokens": [None]}, f".tokens[0] {LOGARITHM}None{LEAVE}"),
    ("logprobs", {"tokens": [False]}, f".tokens[0] {LOGARITHM}False{LEAVE}"),
    ("logprobs", {"mean": -(10**400)}, f".mean {LOGARITHM}-1{'0' * 16}...{'0' * 19}{LEAVE}"),
    ("logprobs", {"answer": -1e301}, f".answer {LOGARITHM}-1e+301{LEAVE}"),
    ("logprobs", {"probability": 1.5}, f".probability {UNIT}1.5. Leave it out."),
    ("logprobs", {"tokens": "x"}, ".tokens must be a list of numbers; got 'x'. Leave it out."),
    (
        "logprobs",
        {"tokens": [-1.0] * (MOST_NUMBERS + 1)},
        ".tokens must have at most 100,000 numbers; got 100,001. Leave it out.",
    ),
    ("logprobs", {"tokens": [-1], "min": -1}, " must have tokens or summaries; got tokens and min. Leave one out."),
    (
        "logprobs",
        {"mean": -1, "answer_tokens": 1},
        " must have tokens if it has answer_tokens; got none. Leave answer_tokens out.",
    ),
    (
        "logprobs",
        {"tokens": [-1, -2], "answer_tokens": 3},
        " must have at most as many answer_tokens as tokens, 2; got 3. Count only the tokens of the answer.",
    ),
    ("logprobs", {"tokens": [-1], "answer_tokens": 0}, f".answer_tokens {COUNT}0. Leave it out."),
    ("logprobs", {"tokens": [-1], "answer_tokens": 0.5}, f".answer_tokens {COUNT}0.5. Leave it out."),
    ("logprobs", {"tokens": [-1], "answer_tokens": True}, f".answer_tokens {COUNT}True. Leave it out."),
    (
        "logprobs",
        {"confidence": -1},
        ".confidence is not a field of logprobs, which have tokens and answer_tokens, or mean, min, probability, "
        "reasoning, answer; got -1. Leave it out.",
    ),
    ("scores", {"prm": math.nan}, f" {SCORE}nan. Leave it out."),
    ("scores", {"prm": math.inf}, f" {SCORE}inf. Leave it out."),
    ("scores", {"prm": 1e301}, f" {SCORE}1e+301. Leave it out."),
    ("scores", {"ok": 1, "prm": "0.9"}, f" {SCORE}'0.9'. Leave it out."),
    ("scores", {"prm": None}, f" {SCORE}None. Leave it out."),
    ("scores", {"prm": True}, f" {SCORE}True. Leave it out."),
    ("scores", {"prm": []}, f" {SCORE}[]. Leave it out."),
    ("scores", {"prm": [1, [2]]}, f" {SCORE}[1, [2]]. Leave it out."),
    ("scores", {"prm": [0] * (MOST_NUMBERS + 1)}, f" {SCORE}[0, 0, 0, 0, 0, 0, ...]. Leave it out."),
    ("scores", {"": 1}, f" {NAMES}''. Rename it."),
    ("scores", {"a:b": 1}, f" {NAMES}'a:b'. Rename it."),
    ("scores", {"a\n": 1}, f" {NAMES}'a\\n'. Rename it."),
    ("scores", {"x" * 101: 1}, f" {NAMES}'{'x' * 37}...{'x' * 38}'. Rename it."),
    ("scores", {f"s{n}": 1 for n in range(101)}, " must have at most 100 scores; got 101. Leave some out."),
    ("scores", 0.9, ' must be an object; got 0.9. Name each score: {"prm": 0.9}.'),
    ("tags", "cot", f" {TAGS}'cot'. Write [\"cot\"]."),
    ("tags", ["cot", " "], f" {TAGS}['cot', ' ']. Write [\"cot\"]."),
    ("tags", [3], f' {TAGS}[3]. Write ["cot"].'),
    ("tags", {"cot": 1}, f" {TAGS}{{'cot': 1}}. Write [\"cot\"]."),
    ("tags", ["\ud800"], " must be valid Unicode; got '\\ud800'. Fix or drop it."),
]


@pytest.mark.parametrize(("name", "value", "message"), REFUSED, ids=[f"{one[0]} {n}" for n, one in enumerate(REFUSED)])
def test_a_value_that_cannot_be_used_is_refused_with_place_and_remedy(name: str, value: Any, message: str) -> None:
    """In a pool and in a live candidate, with the same words."""
    wrong = record({"answer": "Ada", "confidence": 1}, {"answer": "Bo", name: value})
    assert refused(lambda: validate(wrong, "p.jsonl, line 7")) == (
        f"p.jsonl, line 7, id 'q0': candidates[1].{name}{message}"
    )
    assert refused_argument(lambda: read_columns({name: value}, "it.{}")) == f"it.{name}{message}"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ('"confidence": NaN', f"confidence {UNIT}nan{DIVIDE}"),
        ('"logprobs": {"tokens": [-Infinity]}', f"logprobs.tokens[0] {LOGARITHM}-inf{LEAVE}"),
        (f'"scores": {{"prm": 1{"0" * 400}}}', f"scores {SCORE}1{'0' * 17}...{'0' * 19}. Leave it out."),
    ],
)
def test_a_file_with_such_a_value_is_refused_by_its_line(tmp_path: Path, columns: str, message: str) -> None:
    good = json.dumps(record({"answer": "Ada", **FULL}))
    bad = json.dumps(record({"answer": "Bo"}, number=1)).replace('"Bo"', f'"Bo", {columns}')
    (tmp_path / "p.jsonl").write_text(f"{good}\n{bad}\n")
    assert refused(lambda: open_pool(tmp_path / "p.jsonl")) == (
        f"{tmp_path / 'p.jsonl'}, line 2, id 'q1': candidates[0].{message}"
    )


def test_the_limits_themselves_are_accepted() -> None:
    limits = {
        "confidence": 1,
        "logprobs": {"tokens": [-LARGEST, 0], "answer_tokens": 2},
        "scores": {"x" * 100: LARGEST, **{f"s{n}": -LARGEST for n in range(99)}},
    }
    (stated,) = row({"answer": "Ada", **limits}).to_question().stated
    assert stated.logprobs == Logprobs(-LARGEST / 2, -LARGEST, 0.5, None, -LARGEST)


def test_no_sum_of_the_largest_numbers_overflows() -> None:
    most = max(MOST_NUMBERS, 1_000)
    assert most * LARGEST < sys.float_info.max


def test_an_unknown_column_is_refused_and_a_column_elsewhere_is_not_one() -> None:
    wrong = record({"answer": "Ada", "logits": [1]})
    assert "candidates[0].logits is [1] (list); not a field of a candidate, which has text, answer, source, confid" in (
        refused(lambda: validate(wrong, "here"))
    )
    evidence = {**record({"answer": "Ada"}), "evidence": [{"text": "Ada.", "scores": {"bm25": 1}}]}
    assert "evidence[0].scores is {'bm25': 1} (dict); not a field of a passage" in (
        refused(lambda: validate(evidence, "here"))
    )


def test_further_faults_of_a_row_are_counted() -> None:
    wrong = record({"answer": "Ada", "confidence": 2, "tags": "cot"})
    assert refused(lambda: validate(wrong, "here")).endswith("leave it out. (1 more in this row.)")


def test_a_value_is_quoted_on_one_line() -> None:
    class Long:
        def __repr__(self) -> str:
            return "one\ntwo"

    assert quote(Long()) == "one two"


def test_tokens_are_summed_up_by_hand() -> None:
    """Of the tokens ln 1/2, ln 1/4 and ln 1/8 the last two are the answer."""
    half = math.log(0.5)
    tokens = {"tokens": [half, 2 * half, 3 * half], "answer_tokens": 2}
    (stated,) = row({"answer": "Ada", "logprobs": tokens}).to_question().stated
    assert stated.logprobs is not None
    assert stated.logprobs.mean == pytest.approx(2 * half, rel=1e-15)
    assert stated.logprobs.least == 3 * half
    assert stated.logprobs.probability == pytest.approx((0.5 + 0.25 + 0.125) / 3, rel=1e-15)
    assert stated.logprobs.reasoning == half
    assert stated.logprobs.answer == pytest.approx(5 * half, rel=1e-15)


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        ({"tokens": [-1.0]}, (-1.0, -1.0, math.exp(-1.0), None, None)),
        ({"tokens": [-1.0], "answer_tokens": 1}, (-1.0, -1.0, math.exp(-1.0), None, -1.0)),
        ({"mean": -1, "min": -2, "probability": 0.5, "reasoning": -3, "answer": -4}, (-1.0, -2.0, 0.5, -3.0, -4.0)),
    ],
    ids=["the answer unknown", "the answer alone", "summaries"],
)
def test_what_tokens_do_not_tell_is_unknown_and_summaries_stay(logprobs: dict[str, Any], expected: Any) -> None:
    assert Columns.model_validate({"logprobs": logprobs}).to_stated() == Stated(logprobs=Logprobs(*expected))


def test_what_is_missing_of_some_candidates_stays_missing() -> None:
    question = row({"answer": "Ada", **FULL}, {"answer": "Bo"}, {"answer": None, "tags": ["react"]}).to_question()
    assert question.stated[0].confidence == 0.1
    assert question.stated[0].scores == FULL["scores"]
    assert question.stated[1:] == (NOTHING, Stated(tags=("react",)))


def test_log_probabilities_may_be_as_a_chat_api_returns_them() -> None:
    content = [{"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": []}, {"token": "da", "logprob": -1}]
    assert read_columns({"logprobs": {"content": content}}) == Columns.model_validate(
        {"logprobs": {"tokens": [-0.5, -1]}}
    )
    nothing: list[Any] = [None, {"content": None}, {"content": []}, {}]
    assert [read_columns({"logprobs": one}) for one in nothing] == [Columns()] * 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"logprob": -1}, {"logprob": 0.5}], f"logprobs.content[1].logprob {LOGARITHM}0.5{LEAVE}"),
        ([{"token": "x"}], f"logprobs.content[0].logprob {LOGARITHM}None{LEAVE}"),
        (["x"], f"logprobs.content[0].logprob {LOGARITHM}'x'{LEAVE}"),
        ("x", "logprobs.content must be a list of numbers; got 'x'. Leave it out."),
    ],
)
def test_those_of_a_chat_api_are_refused_by_their_own_names(content: Any, message: str) -> None:
    assert refused_argument(lambda: read_columns({"logprobs": {"content": content}})) == message


def test_a_pool_has_no_log_probabilities_of_a_chat_api() -> None:
    wrong = record({"answer": "Ada", "logprobs": {"content": []}})
    assert "candidates[0].logprobs.content is not a field of logprobs" in refused(lambda: validate(wrong, "here"))


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["pool", "check", *arguments]) == 0
    return capsys.readouterr().out


def test_a_check_counts_what_is_stated_and_bounds_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A score that is a percentage in one row and a fraction in another is seen by its ends."""
    first = row({"answer": "Ada", **FULL}, {"answer": "Bo", "confidence": 0, "scores": {"reward-1.b": 90}}, {})
    second = Row.model_validate(record({"answer": "Ada", "scores": {"prm": 0}}, number=1))
    path = str(write_pool(tmp_path / "p.jsonl", [first, second]).path)
    message = (
        "Stated of candidates: confidence 2 of 4, logprobs 1 of 4, scores.prm 2 of 4 from 0 to 0.9, "
        "scores.reward-1.b 2 of 4 from -7.5 to 90, tags 1 of 4."
    )
    assert message in " ".join(checked(capsys, path).split())
    figures = json.loads(checked(capsys, path, "--json"))["pools"]["p"]["columns"]
    assert figures["confidence"] == {"count": 2, "of": 4, "rate": 50.0, "lowest": None, "highest": None}
    assert figures["scores.prm"] == {"count": 2, "of": 4, "rate": 50.0, "lowest": 0.0, "highest": 0.9}
    assert list(figures) == ["confidence", "logprobs", "scores.prm", "scores.reward-1.b", "tags"]


def test_a_check_of_a_pool_without_columns_says_nothing_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ARTIFACTS / "demo-retrieval.jsonl")
    assert "Stated" not in checked(capsys, path)
    assert "columns" not in json.loads(checked(capsys, path, "--json"))["pools"]["demo-retrieval"]
