"""A run directory read back is the run that was made, or a sentence says what keeps it from being one."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy import errors
from eldgr_dspy.errors import ArgumentError, EldgrError, JournalError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.questions import Settings
from tests.case_tables import each_case
from tests.finished_runs import finished_run, unseal
from tests.refusing import refusal, refuses


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory.mktemp("made"))[0]


@pytest.fixture
def run(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "run"))


def change(path: Path, how: Callable[[dict[str, Any]], object]) -> None:
    figures = json.loads(path.read_text(encoding="utf-8"))
    how(figures)
    path.write_text(json.dumps(figures), encoding="utf-8")


def replace_in(path: Path, old: str, new: str) -> None:
    text = unseal(path.read_text(encoding="utf-8"))
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def read_all(run: Path) -> None:
    read = read_run(run)
    assert isinstance(read.settings, Settings)
    list(read.decisions(read.summary()))
    read.record()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def rename_pool(path: Path) -> None:
    change(path, lambda result: result["pools"].update(other=result["pools"].pop("capitals")))


def test_a_finished_run_reads_as_it_was_written_whatever_its_times_say(run: Path) -> None:
    read = read_run(run)
    assert read.is_finished() and not read.is_torn
    assert read.summary() == json.loads((run / "summary.json").read_text(encoding="utf-8"))
    lines = (run / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert list(read.decisions(read.summary())) == [json.loads(line) for line in lines]
    assert read.record() == json.loads((run / "record.json").read_text(encoding="utf-8"))
    assert (read.settings, read.versions) == (Settings(), ["0.1.0"])
    assert read.heads_of("pool")["capitals"]["path"].endswith("capitals.jsonl")
    with (run / "decisions.jsonl").open(encoding="utf-8") as file:
        assert list(Decided.__annotations__) == list(json.loads(file.readline()))
    (run / "journal.jsonl").touch()
    assert read_run(run).is_finished()


FAILURE = '{"kind": "consultation", "pool": "capitals", "id": "q9", "role": "judge", "outcome": "failed"}\n'


def test_what_is_not_a_run_is_said(tmp_path: Path) -> None:
    refuses(ArgumentError, r"nowhere: no such directory; give the directory of a run", read_run, tmp_path / "nowhere")
    (tmp_path / "a.jsonl").touch()
    refuses(ArgumentError, r"a\.jsonl: not a directory; give the directory of a run", read_run, tmp_path / "a.jsonl")
    refuses(ArgumentError, r"holds no journal\.jsonl; give the directory of a run", read_run, tmp_path)
    (tmp_path / "journal.jsonl").write_text(FAILURE.replace('"pool": "capitals", ', ""))
    message = r"does not state the settings of a run: it is a recording, or its run never"
    refuses(ArgumentError, message, read_run, tmp_path)


def test_a_run_that_went_on_after_its_summary_is_not_finished(run: Path) -> None:
    with (run / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write(FAILURE)
    assert not read_run(run).is_finished()
    refuses(
        ArgumentError, r"the run is not finished: its journal is not what summary\.json counts", read_run(run).summary
    )


@pytest.mark.parametrize("spoil", [Path.unlink, rename_pool], ids=["no summary", "a summary of another pool"])
def test_a_run_without_its_own_summary_is_not_finished(run: Path, spoil: Callable[[Path], None]) -> None:
    spoil(run / "summary.json")
    assert not read_run(run).is_finished()
    refuses(ArgumentError, r"the run is not finished[:;] .*to finish it give the same", read_run(run).summary)


def test_a_torn_last_line_of_the_journal_is_passed_over_and_the_run_unfinished(run: Path) -> None:
    whole = len(list(read_run(run).consultations()))
    cut(run / "journal.jsonl")
    read = read_run(run)
    assert read.is_torn and not read.is_finished()
    assert len(list(read.consultations())) == whole - 1


def test_an_earlier_line_that_cannot_be_read_is_named_also_where_the_last_is_torn(run: Path) -> None:
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join([*lines[:3], b"{\n", *lines[4:-1], lines[-1][:-9]]))
    refuses(JournalError, r"journal\.jsonl, line 4: not a JSON object", read_run, run)


@pytest.mark.parametrize("name", ["summary.json", "decisions.jsonl", "record.json"])
@pytest.mark.parametrize("spoil", [Path.unlink, cut], ids=["missing", "torn"])
def test_a_result_that_is_missing_or_torn_is_named_with_the_remedy(
    run: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    spoil(run / name)
    message = refusal(lambda: read_all(run))
    assert name in message and "give the same eldgr evaluate command again, without --fresh" in message


def test_decisions_that_lack_whole_lines_are_missed(run: Path) -> None:
    lines = (run / "decisions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "decisions.jsonl").write_bytes(b"".join(lines[:-1]))
    read = read_run(run)
    with pytest.raises(ArgumentError, match=r"has 5 decisions of rule 'eldgr' on pool 'capitals', and .* counts 6"):
        list(read.decisions(read.summary()))


@each_case("results", "files that were edited")
def test_a_file_that_was_edited_is_no_result(run: Path, edits: list[list[str]], kind: str, message: str) -> None:
    for name, old, new in edits:
        replace_in(run / name, old, new)
    assert message in refusal(lambda: read_all(run), getattr(errors, kind))


@pytest.mark.parametrize("version", ['["0.0.7"]', '{"a": 1}'], ids=["list", "object"])
def test_a_version_of_another_kind_is_said_as_it_stands(run: Path, version: str) -> None:
    replace_in(run / "journal.jsonl", '"eldgr_dspy": "0.1.0"', f'"eldgr_dspy": {version}')
    read = read_run(run)
    assert read.versions == [str(json.loads(version))]
    assert read.made_by_others is not None and read.versions[0] in read.made_by_others


def discordant(n_scored: int, wins: int) -> Any:
    figures = {"wins": wins, "losses": 0}
    return lambda pool: pool.update(n_scored=n_scored, contrasts=[one | figures for one in pool["contrasts"]])


SILENCE = r"eldgr\.asked: Value error, nothing is said of judge and deriver and"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (discordant(3, 4), r"capitals: Value error, 4 discordant questions of 3"),
        (discordant(0, 0), r"capitals: Value error, 0 discordant questions of 0"),
        (lambda pool: pool.update(n=10**400), r"capitals\.n: Input should be less than or equal to"),
        (lambda pool: pool["rules"]["eldgr"].update(asked={}), SILENCE),
    ],
    ids=["more questions", "no questions", "no float", "no role"],
)
def test_figures_that_do_not_add_up_or_are_missing_are_no_results(run: Path, how: Any, message: str) -> None:
    change(run / "summary.json", lambda result: how(result["pools"]["capitals"]))
    refuses(ArgumentError, message, read_run(run).summary)


def test_a_journal_that_may_not_be_read_is_an_error_and_no_stop(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (run / "journal.jsonl").chmod(0)
    assert main(["report", str(run)]) == 1
    message = f"Error: {run / 'journal.jsonl'}: Permission denied. Check its permissions and those of its folder.\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("name", ["summary.json", "record.json", "decisions.jsonl"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(run: Path, name: str) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    read = read_run(run)
    with pytest.raises(EldgrError, match=f"{name}: must be a file; it is a device or a pipe"):
        _ = read.record() if name == "record.json" else [*read.decisions(read.summary())]
