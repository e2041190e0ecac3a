"""Files that become large in memory (hazards 95, 115) or are nested without end (63): each is refused in a sentence."""

import gc
import gzip
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.base.child_processes import _RUNNING
from eldgr_dspy.base.file_limits import RAISE, VARIABLE
from eldgr_dspy.errors import ArgumentError, EldgrError, JournalError, PoolError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.figures.record import journal_totals
from eldgr_dspy.formats.journal_lines import seal
from eldgr_dspy.formats.parquet import _IDLE, read_parquet
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.pools import Row, open_pool, write_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.freezes import read_freeze
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.scoring.cross_encoder import stated_columns
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.training.checkpoints import Checkpoint
from eldgr_dspy.training.curves import read_curve
from tests.hazards.bad_pools import record, write_lines
from tests.refusing import refuses

LONG = "x" * 500_000
REPLY = {"kind": "consultation", "pool": "p", "id": "q", "role": "judge", "outcome": "ok", "attempt": 1, "calls": 1}
WIDE = '{"x": [' + "[]," * 500_000 + "[]]}"
DEEP = '{"x": ' + "[" * 101 + "]" * 101 + "}"


def refusal(read: Callable[[], Any], kind: type[EldgrError] = PoolError) -> str:
    with pytest.raises(kind) as info:
        read()
    return str(info.value)


def drain(path: Path) -> int:
    return sum(1 for _ in read_predictions(path))


# -- Parquet --
def same(arrow: Any, text: str, times: int) -> Any:
    """A column of one text, stored once."""
    return arrow.DictionaryArray.from_arrays(arrow.array([0] * times, arrow.int32()), arrow.array([text]))


def in_one_list(arrow: Any, values: Any) -> Any:
    return arrow.ListArray.from_arrays(arrow.array([0, len(values)], arrow.int32()), values)


def texts_of_a_list(arrow: Any) -> dict[str, Any]:
    return {"gold": in_one_list(arrow, same(arrow, LONG, 450))}


def texts_of_objects_in_a_list(arrow: Any) -> dict[str, Any]:
    parts = [same(arrow, LONG, 450), same(arrow, "Nice", 450)]
    return {"candidates": in_one_list(arrow, arrow.StructArray.from_arrays(parts, ["text", "answer"]))}


def texts_that_begin_as_the_one_before(arrow: Any) -> dict[str, Any]:
    return {"gold": in_one_list(arrow, arrow.array([LONG] * 450))}


def a_text_too_long_for_a_row(arrow: Any) -> dict[str, Any]:
    return {"gold": in_one_list(arrow, same(arrow, LONG, 20))}


def nulls_that_take_no_bytes(arrow: Any) -> dict[str, Any]:
    return {"gold": in_one_list(arrow, arrow.nulls(300_000))}


def objects_that_take_a_bit(arrow: Any) -> dict[str, Any]:
    flags = arrow.array([False] * 150_000)
    return {"candidates": in_one_list(arrow, arrow.StructArray.from_arrays([flags], ["text"]))}


BOMBS: list[tuple[Callable[[Any], dict[str, Any]], str]] = [
    (texts_of_a_list, ", after row 0: takes more than 536,870,912 bytes of memory to read, the limit; write shorter"),
    (texts_of_objects_in_a_list, ", after row 0: takes more than 536,870,912 bytes of memory to read"),
    (texts_that_begin_as_the_one_before, ", after row 0: takes more than 536,870,912 bytes of memory to read"),
    (a_text_too_long_for_a_row, ", row 1: takes more than 8,388,608 bytes, the limit of a row; shorten it."),
    (nulls_that_take_no_bytes, ", row 1: holds more than 250,000 values, which is the limit; give fewer."),
    (objects_that_take_a_bit, ", row 1: holds more than 250,000 values"),
]


@pytest.mark.parametrize(("bomb", "sentence"), BOMBS, ids=[bomb.__name__ for bomb, _ in BOMBS])
def test_a_parquet_file_that_expands_is_stopped_in_a_process_of_its_own(  # hazard 95
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: Callable[[Any], dict[str, Any]], sentence: str
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv(VARIABLE, "0.5")
    row = {"id": ["q"], "question": ["Q?"], "task": ["retrieval"], **bomb(arrow)}
    prefixes = bomb is texts_that_begin_as_the_one_before
    how = {"use_dictionary": False, "column_encoding": {"gold.list.element": "DELTA_BYTE_ARRAY"}} if prefixes else {}
    path = tmp_path / "p.parquet"
    parquet.write_table(arrow.table(row), path, compression="zstd", store_schema=False, **how)
    assert path.stat().st_size < 12_000
    message = refusal(lambda: open_pool(path))
    assert message.startswith(f"{path}{sentence}") and message.endswith(RAISE)
    assert open_pool(write_pool(tmp_path / "good.parquet", [Row.model_validate(record(0))]).path).n == 1


def test_rows_that_cost_nothing_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv(VARIABLE, "0.01")
    path = tmp_path / "p.parquet"
    table = arrow.table({name: same(arrow, "x" * 500, 2_000) for name in ("id", "prediction")})
    parquet.write_table(table, path, store_schema=False)
    assert path.stat().st_size < 5_000
    message = refusal(lambda: drain(path))
    assert "expands to more than " in message and message.endswith(RAISE)


def test_a_reader_that_was_ended_is_replaced(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = write_pool(tmp_path / "p.parquet", [Row.model_validate(record(0))]).path
    assert open_pool(path).n == 1
    _IDLE[-1].kill()
    _IDLE[-1].wait()
    assert open_pool(path).n == 1


# -- JSON, plain and compressed --
@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (WIDE, ", line 1: holds more than 500,000 values, which is the limit; give fewer. " + RAISE),
        (DEEP, ", line 1: nested too deeply, more than 100 lists or objects in one another; flatten it."),
    ],
    ids=["wide", "deep"],
)
def test_a_line_is_measured_before_it_is_parsed(tmp_path: Path, meta: str, message: str) -> None:  # hazards 63, 95
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(record(0, meta=None)).replace("null", meta).encode()))
    assert path.stat().st_size < 10_000
    assert refusal(lambda: open_pool(path)) == f"{path}{message}"
    path.write_bytes(gzip.compress(json.dumps({**REPLY, "content": None}).replace("null", meta).encode()))
    assert refusal(lambda: Recordings(path), JournalError) == f"{path}{message}"
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{{"kind": "settings", "name": "", "details": {meta}}}\n')
    assert refusal(lambda: Journal(path), JournalError) == f"{path}{message}"


def test_commas_within_a_text_are_no_values(tmp_path: Path) -> None:
    assert open_pool(write_lines(tmp_path / "p.jsonl", [record(0, meta={"x": ['[{"\\",:' * 100_000] * 4})])).n == 1


def test_heads_of_a_recording_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    """Each is small, and all of them stay in memory."""
    monkeypatch.setenv(VARIABLE, "0.01")
    path = tmp_path / "j.jsonl"
    head = {"kind": "settings", "name": "s", "details": {"x": [[]] * 1_500}}
    path.write_text("".join(json.dumps(one) + "\n" for one in [REPLY | {"content": {}}] + [head] * 35))
    message = refusal(lambda: Recordings(path), JournalError)
    assert message.endswith(f"holds more than 100,000 values, which is the limit; give fewer. {RAISE}")
    assert refusal(lambda: Journal(path), JournalError) == message


def test_whole_files_hold_values_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    monkeypatch.setenv(VARIABLE, "0.001")
    log, table, samples = tmp_path / "log.json", tmp_path / "t.csv", tmp_path / "log.eval"
    log.write_text('{"samples": [' + "[]," * 10_000 + "[]]}")
    table.write_text("id,prediction\n" + "1,\n" * 10_000)
    with zipfile.ZipFile(samples, "w") as out:
        out.writestr("header.json", "{}")
        for number in range(5):
            out.writestr(f"samples/{number}.json", json.dumps({"id": number, "output": [[]] * 3_000}))
    for path in (log, table, samples):
        message = refusal(lambda path=path: drain(path))  # type: ignore[misc]
        assert message.startswith(str(path)) and "holds more than 10,000 values" in message and RAISE in message


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"x": [' + "[]," * 5_000 + "[]]}", "holds more than 5,000 values"), (DEEP, "nested too deeply")],
    ids=["wide", "deep"],
)
def test_a_freeze_and_the_files_of_a_run_are_measured_too(  # hazards 63, 95
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    evaluate(heuristic_selector(), Plan([write_lines(tmp_path / "p.jsonl", [record(0)])], tmp_path / "run"))
    run = read_run(tmp_path / "run")
    summary = run.summary()
    monkeypatch.setenv(VARIABLE, "0.01")
    (tmp_path / "a.freeze").write_text(text)
    assert message in refusal(lambda: read_freeze(tmp_path / "a.freeze"), ArgumentError)
    (tmp_path / "run" / "decisions.jsonl").write_text(text)
    refusal(lambda: list(run.decisions(summary)), ArgumentError)
    (tmp_path / "run" / "summary.json").write_text(text)
    refusal(run.summary, ArgumentError)


# -- archives of inspect --
def archive(path: Path, method: int, spaces: int = 2**20) -> Path:
    """A log whose sample states that it is a hundred bytes long."""
    with zipfile.ZipFile(path, "w", method) as out:
        out.writestr("header.json", "{}", zipfile.ZIP_STORED)
        out.writestr("samples/1.json", b" " * spaces)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.rindex(b"PK\x01\x02") + 24, 100)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_packed_as_inspect_packs(tmp_path: Path, method: int) -> None:  # hazard 95
    path = archive(tmp_path / "log.eval", method)
    assert refusal(lambda: drain(path)) == (
        f"{path}, samples/1.json: must be stored, deflated or packed by zstd, as inspect does; got method {method}. "
        "Write the log as JSON: inspect log dump log.eval > log.json"
    )


def test_a_sample_is_unpacked_no_further_than_it_states(tmp_path: Path) -> None:  # hazard 95
    path = archive(tmp_path / "log.eval", zipfile.ZIP_DEFLATED, 2**25)
    tracemalloc.start()
    try:
        assert "the log is cut off or damaged (Bad CRC-32" in refusal(lambda: drain(path))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


# -- the limit --
def test_one_variable_raises_every_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    write_lines(path, [record(0, meta={"x": [0] * 6_000})])
    monkeypatch.setenv(VARIABLE, "0.01")
    assert "holds more than 5,000 values" in refusal(lambda: open_pool(path))
    monkeypatch.setenv(VARIABLE, "0.02")
    assert open_pool(path).n == 1
    for value in ("0", "-1", "nan", "inf", "two"):
        monkeypatch.setenv(VARIABLE, value)
        assert refusal(lambda: open_pool(path), ArgumentError) == (
            f"{VARIABLE} must be a number above 0; got {value!r}. Set it to 2, or unset it."
        )


def test_a_reader_that_nobody_reads_to_its_end_is_ended(tmp_path: Path) -> None:
    """An error keeps the frames of who was reading, so that reader and process are collected in one go."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"id": [str(n) for n in range(1_000)]}), tmp_path / "a.parquet")
    others = _RUNNING - set(_IDLE)
    rows = read_parquet(tmp_path / "a.parquet")
    next(rows)
    (process,) = _RUNNING - set(_IDLE) - others
    cycle: list[Any] = [rows]
    cycle.append(cycle)
    del rows, cycle
    gc.collect()
    assert process.poll() is not None


# -- programs, journals and settings that were saved --
@pytest.mark.parametrize("make", [Selector, Judge, lambda: Sampled(dspy.Predict("question -> answer"), n=2)])
@pytest.mark.parametrize(
    ("value", "error", "why"),
    [
        ("[" + "[]," * 1_100_000 + "[]]", PoolError, "holds more than"),
        ("[" * 200 + "]" * 200, PoolError, "nested too"),
        ("9" * 5_000, ArgumentError, "must be JSON that save wrote; got Exceeds the limit"),
    ],
)
def test_a_saved_program_that_expands_is_refused_before_it_is_parsed(  # hazard 115
    make: Callable[[], Any], value: str, error: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0.1")
    file = tmp_path / "program.json"
    make().save(str(file))
    file.write_text(f'{file.read_text().rstrip().removesuffix("}")}, "more": {value}}}')
    refuses(error, why, make().load, str(file))


def test_a_saved_program_within_the_limits_is_loaded_as_before(tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    judge, other = Judge(), Judge()
    judge.predict.demos = [dspy.Example(question="a" * 1_000)]
    judge.save(str(file))
    other.load(str(file))
    assert other.predict.demos[0]["question"] == "a" * 1_000


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("rule.freeze.json", read_freeze),
        ("config.json", lambda file: stated_columns(file.parent, "model")),
        ("trainer_state.json", lambda file: read_curve(file.parent)),
        ("adapter_config.json", lambda file: Checkpoint.of("mine", file.parent)),
        ("summary.json", lambda file: read_run(file.parent).summary()),
    ],
)
def test_a_file_that_expands_and_one_of_8_gb_are_not_read(  # hazard 115
    name: str, read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = {"kind": "settings", "name": "rule", "details": Settings().to_json()}
    (tmp_path / "journal.jsonl").write_bytes(seal(head))
    (tmp_path / name).write_text('{"log_history": [' + "[]," * 600_000 + "[]]}")  # takes fifty times as many bytes
    monkeypatch.setenv(VARIABLE, "0.1")
    refuses(EldgrError, rf"{name}.*holds more than [\d,]+ values", read, tmp_path / name)
    monkeypatch.delenv(VARIABLE)
    with (tmp_path / name).open("wb") as file:
        file.truncate(8 * 2**30)
    refuses(EldgrError, r"holds more than 268,435,456 bytes, .* set ELDGR_FILE_LIMITS=2", read, tmp_path / name)


def test_the_labels_of_a_model_that_expand_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"id2label": [' + "[]," * 600_000 + "[]]}")
    refuses(ArgumentError, "holds more than", stated_columns, tmp_path, "model")


@pytest.mark.parametrize("temperature", [[0.7], {"a": 1}, "hot"], ids=str)
def test_a_temperature_that_is_not_a_number_is_named(temperature: Any) -> None:
    select, question = Selector(), {"question": "Which?", "candidates": ["A", "A", "B"], "evidence": ["It is B."]}
    lm = scripted_lm([], temperature=temperature)
    with dspy.context(lm=lm), pytest.raises(ArgumentError, match=r"The temperature of .* must be a number; got"):
        select(**question)
    select.judge = judge = Judge()
    judge.predict.config["temperature"] = temperature
    with dspy.context(lm=scripted_lm([])), pytest.raises(ArgumentError, match="The temperature of a predictor must be"):
        select(**question)


def test_a_type_error_of_a_role_s_own_code_stays_as_it_is() -> None:
    class Faulty(dspy.Module):
        def forward(self, **_: Any) -> Any:
            return 1 + "1"  # type: ignore[operator]

    select = Selector()
    select.judge = Faulty()
    with dspy.context(lm=scripted_lm([])), pytest.raises(TypeError, match="unsupported operand"):
        select(question="Which?", candidates=["A", "A", "B"], evidence=["It is B."])


def decisions_of(path: Path) -> Any:
    path.replace(path.with_name("decisions.jsonl"))
    summary: Any = {"pools": {}}
    return [*RunRead(path.parent, [], journal_totals([])).decisions(summary)]


@pytest.mark.parametrize("read", [lambda path: [*read_journal(path)], Journal, decisions_of])
def test_no_endless_line_is_read(read: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")
    with (tmp_path / "journal.jsonl").open("wb") as file:
        file.write(b'{"kind": ')
        file.truncate(2**23)
    with pytest.raises(JournalError, match=r"a line is longer than 671,088 bytes; a run writes no such line\. If"):
        read(tmp_path / "journal.jsonl")
