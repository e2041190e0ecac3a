"""The help fits one screen in named groups, and a flag means the same in every command."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest

from eldgr_dspy.programs.commands.command import cli
from eldgr_dspy.programs.commands.output import Form
from eldgr_dspy.programs.selector import Selector
from tests.capitals import row, write_pool
from tests.commands.installed import Eldgr

ON_RUNS = ["report", "show", "compare", "decide", "export"]


def commands(group: click.Group = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command that is not a group, by its whole name."""
    for one in group.commands.values():
        whole = f"{name} {one.name}".strip()
        if isinstance(one, click.Group):
            yield from commands(one, whole)
        else:
            yield whole, one


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by each of their spellings."""
    return {spelling: one for one in command.params if isinstance(one, click.Option) for spelling in one.opts}


def having(flag: str) -> dict[str, click.Option]:
    """The option of a spelling in each command that has it."""
    return {name: result for name, one in commands() if (result := options_of(one).get(flag))}


def test_the_help_fits_one_screen_in_groups_with_whole_lines(monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = eldgr("--help").out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80 and "..." not in "".join(lines[1:])
    hits = [match for line in lines if (match := re.fullmatch(r"  (\w+) +(\S.*)", line)) and match[1] in cli.commands]
    assert [one[1] for one in hits] == [*cli.commands]
    assert all(len(one[2]) <= 60 and re.fullmatch(r"[A-Z][a-z]+\b.*\.", one[2]) for one in hits)
    at = lines.index("Finished runs:") + 1
    assert [line.split()[0] for line in lines[at : at + len(ON_RUNS)]] == ON_RUNS
    assert lines[at + len(ON_RUNS)] == "Pools and models:"


def test_every_command_that_prints_results_takes_json_and_format_and_that_writes_a_file_out() -> None:
    assert having("--json").keys() == having("--format").keys() - {"pool build"}
    assert having("--json").keys() >= {"evaluate", "doctor", "inspect", "pool check", *ON_RUNS} - {"export"}
    assert {one.help for one in having("--json").values()} == {"Short for --format json."}
    for name, one in having("--format").items():
        assert name == "pool build" or (isinstance(one.type, click.Choice) and {"text", "json"} <= {*one.type.choices})
    writing = {name for name, one in commands() if {"--out", "--out-dev"} & {*options_of(one)}}
    assert {name for name, one in commands() if one.params} - writing == {"doctor", "inspect"}


def test_a_flag_takes_the_same_values_in_every_command_and_there_are_few() -> None:
    for flag in ("--rules", "--limit", "--set", "--certificate"):
        result = [(str(one.type.to_info_dict()), one.multiple) for one in having(flag).values()]
        assert len(result) > 1 == len({*result})
    assert len([one for one in dict(commands())["evaluate"].params if isinstance(one, click.Option)]) <= 28
    assert len([name for name in inspect.signature(Selector.__init__).parameters if name != "self"]) <= 12


def test_json_is_short_for_format_json(run: Path, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    for command in (["report", str(run)], ["bound", "capitals.jsonl"], ["compare", str(run), f"b={run}"]):
        words = (["--json"], ["--format", "json"], ["--json", "--format", "json"])
        (text,) = {eldgr(*command, *one).out for one in words}
        assert json.loads(text)
    monkeypatch.setenv("ELDGR_REPORT_JSON", "1")
    assert eldgr("report", run, "--format", "markdown").out.startswith("### ")  # the command line wins


READING = {"report": "report run", "show": "show run q1", "compare": "compare a=run b=run"}


@pytest.mark.parametrize("form", get_args(Form))
@pytest.mark.parametrize("line", READING.values(), ids=READING)
def test_a_file_holds_what_would_be_printed_without_colour(run: Path, eldgr: Eldgr, line: str, form: str) -> None:
    command = [*line.split(), "--format", form]
    text = eldgr(*command).out
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORCE_COLOR", "1")
        assert eldgr(*command, "--out", "here.txt") == ("", "Written to here.txt.\n")
    assert Path("here.txt").read_text(encoding="utf-8") == text
    if line.startswith("report") and form == "json":
        assert json.loads(text) == json.loads(Path("run/summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("line", [*READING.values(), "report run --format html", "export run --out d.csv"])
def test_an_unfinished_run_is_refused_with_what_finishes_it(run: Path, eldgr: Eldgr, line: str) -> None:
    (run / "summary.json").unlink()
    out, err = eldgr(*line.split(), code=1)
    error = "Error: run has no summary.json: the run is not finished; to finish it give the same eldgr"
    assert (out, err[: len(error)]) == ("", error)


def test_evaluate_prints_the_main_table_and_the_bounds_and_report_all_tables(tmp_path: Path, eldgr: Eldgr) -> None:
    write_pool(tmp_path / "capitals.jsonl", map(row, range(8)))
    titles = {}
    for command in ("evaluate capitals.jsonl", "report runs/capitals"):
        out, err = eldgr(*command.split(), "--format", "markdown")
        titles[command.split()[0]] = re.findall(r"^### (.*)", out, flags=re.MULTILINE)
        assert ("To print all tables: eldgr report runs/capitals" in err) is command.startswith("evaluate")
    expected = ["capitals: retrieval, 8 questions", "capitals: what a judge must beat", "capitals: authority bounds, %"]
    assert titles["evaluate"] == expected and len(titles["report"]) > 6 and {*expected} <= {*titles["report"]}


def test_a_variable_has_one_setting_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, eldgr: Eldgr) -> None:
    write_pool(tmp_path / "capitals.jsonl", map(row, range(2)))
    monkeypatch.setenv("ELDGR_EVALUATE_SET", "refusals=no idea,n/a\npreference=stratum")
    eldgr("evaluate", "capitals.jsonl", "--quiet", "--json")
    values = json.loads((tmp_path / "runs/capitals/record.json").read_text(encoding="utf-8"))["settings"]
    assert (values["refusals"], values["preference"]) == (["no idea", "n/a"], "stratum")
