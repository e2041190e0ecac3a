"""A terminal (a pty) obeys nothing that comes from outside: no error, name of a model or file, or text of a pool."""

import json
import logging
import os
import re
import subprocess
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from eldgr_dspy.errors import PoolError
from eldgr_dspy.journal import Journal, TornLineWarning
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.messages import log_display
from eldgr_dspy.showing import is_printable, printable
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.commands.installed import COMMAND
from tests.lm_server import Answer, obliging, serving
from tests.ollama_server import Models, Reply, obedient, ollama_server
from tests.refusing import refusal
from tests.results.demo_pools import ARTIFACTS

pty = pytest.importorskip("pty")
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\u2066\x7f\r!"
"""Clears the screen, sets the title, turns red, reverses the text, and goes back to the beginning of the line."""
PRINTABLE = "[U+001B][2J[U+001B]]0;owned[U+0007][U+009B]31m[U+202E]evil[U+2066][U+007F][U+000D]!"

# What rich and the command itself send: colours, the cursor hidden and shown, lines of a progress bar erased.
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r(?=\x1b|\n|run so far|questions)")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = {"no_proxy": "127.0.0.1", "OPENAI_API_KEY": "key", "TERM": "xterm", "COLUMNS": "200", "PYTHONUTF8": "1"}
    for name, value in {**settings, "PYTHONPATH": str(ARTIFACTS.parent)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    write_pool(Path("p.jsonl"), [row(0)])


def on_terminal(*arguments: str) -> str:
    """What a command sends to the terminal that it runs on."""
    ours, its = pty.openpty()
    process = subprocess.Popen([*COMMAND, *arguments], stdin=its, stdout=its, stderr=its)
    os.close(its)
    output = b""
    with suppress(OSError):  # so a terminal ends on Linux
        while data := os.read(ours, 65_536):
            output += data
    process.wait(60)
    os.close(ours)
    return output.decode("utf-8", "replace")


def controls(text: str) -> str:
    """What of it a terminal would obey that is not ours."""
    rest = OURS.sub("", text.replace("\r\n", "\n"))
    return "".join(sign for sign in rest if not is_printable(sign))


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 401, 500])
def test_the_error_of_a_server_is_shown_and_not_obeyed(status: int) -> None:
    body = json.dumps({"error": {"message": EVIL, "type": EVIL, "code": EVIL}}, ensure_ascii=False).encode()
    with serving(lambda request: Answer(status=status, body=body)) as server:
        arguments = ("--lm", "openai/m", "--api-base", server.address, "--timeout", "1")
        stop = on_terminal("evaluate", "p.jsonl", *arguments)
        whole = on_terminal("evaluate", "p.jsonl", *arguments, "--max-failures", "100%", "--out", "finished")
        check = on_terminal("doctor", "--judge", "openai/m", "--api-base", server.address)
    assert controls(stop + whole + check) == ""
    if status != 500:  # which is asked again until the time is up
        assert PRINTABLE.replace("[U+000D]", " ") in stop
    assert "[U+202E]evil" in check


@pytest.mark.slow
def test_the_name_of_the_model_that_answered_and_of_a_pool_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / f"{EVIL}.jsonl", [row(0), row(1, question=EVIL, id=EVIL)])
    with serving(lambda request: replace(obliging(request), changes={"model": EVIL})) as server:
        output = on_terminal("evaluate", str(pool), "--lm", "openai/m", "--api-base", server.address, "--out", "run")
    for command in ("report", "decide", "compare", "export"):
        more = {"decide": ["--rules", "eldgr"], "compare": ["run"], "export": ["--out", f"{EVIL}.csv"]}.get(command, [])
        output += on_terminal(command, "run", *more)
    output += on_terminal("pool", "check", str(pool)) + on_terminal("bound", str(pool), "--rules", "eldgr")
    output += on_terminal("report", "run", "--format", "markdown")
    output += on_terminal("freeze", "--heuristic", "--out", f"{EVIL}.freeze")
    assert controls(output) == ""
    assert output.count("[U+202E]evil") > 5


@pytest.mark.slow
@each_case("commands", "arguments that a terminal would obey")
def test_no_argument_that_is_refused_is_obeyed(arguments: list[str]) -> None:
    output = on_terminal(*(word.replace("EVIL", EVIL) for word in arguments))
    assert (controls(output), bool(output)) == ("", True)


@pytest.mark.slow
def test_what_an_ollama_server_says_of_its_models_is_shown_and_not_obeyed() -> None:
    steps = ({"status": f"pulling [bold]{EVIL}"}, {"status": EVIL, "total": 9, "completed": 3}, {"status": "success"})
    with ollama_server(obedient, Models(names=[], steps=steps)) as server:
        output = on_terminal("doctor", "--api-base", server.address, "--pull")
        server.behaviour = lambda body: Reply(obedient(body), model=EVIL)
        output += on_terminal("doctor", "--api-base", server.address)
        server.behaviour = lambda body: Reply(EVIL, status=500)
        output += on_terminal("doctor", "--api-base", server.address)
    assert controls(output) == ""
    assert output.count("[U+202E]evil") >= 4


RAISING = {"error": "raise RuntimeError(EVIL)", "exit": "raise SystemExit(EVIL)", "while it is freed": "Freed()"}


@pytest.mark.slow
@pytest.mark.parametrize("raising", RAISING.values(), ids=RAISING)
def test_a_bug_is_told_without_what_a_terminal_would_obey(raising: str) -> None:
    lines = [f"EVIL = {EVIL!r}", "class Freed:", "    def __del__(self):", "        raise RuntimeError(EVIL)"]
    lines += ["def rule(case):", f"    {raising}", "    yield from ()"]
    Path("own.py").write_text("\n".join(lines), encoding="utf-8")
    output = on_terminal("evaluate", "p.jsonl", "--rules", "own:rule")
    assert controls(output) == ""
    assert "[U+202E]evil" in output


def test_what_a_library_logs_is_shown(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    logger, before = logging.getLogger("somebody.else"), logging.getLogRecordFactory()
    monkeypatch.setattr(caplog.handler, "formatter", logging.Formatter("%(message)s"))
    with log_display():
        logger.warning("refused: %s", EVIL)
        logger.error("100%")
        try:
            raise ValueError(EVIL)
        except ValueError:
            logger.exception("it failed")
    assert caplog.text.startswith(f"refused: {PRINTABLE}\n100%\nit failed\nTraceback")
    assert caplog.text.endswith(f"ValueError: {PRINTABLE}\n")
    assert logging.getLogRecordFactory() is before


@pytest.mark.filterwarnings("always")
def test_a_warning_is_a_note_that_shows_what_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "p.jsonl", "--out", EVIL, "--quiet"]) == 0
    with Path(EVIL, "journal.jsonl").open("ab") as journal:
        journal.write(b"{torn")
    assert main(["evaluate", "p.jsonl", "--out", EVIL]) == 0
    streams = capsys.readouterr()
    assert f"Note: {PRINTABLE}/journal.jsonl, line " in streams.err
    assert is_printable(streams.out + streams.err)


@pytest.mark.parametrize("sign", [*map(chr, range(32)), *"\x7f\x85\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u2069"])
def test_every_sign_that_a_terminal_may_obey_is_shown_by_its_code_point(sign: str) -> None:
    plain = sign in "\t\n"
    assert printable(f"a{sign}b") == (f"a{sign}b" if plain else f"a[U+{ord(sign):04X}]b")


def test_what_is_printed_or_told_shows_what_it_quotes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pool = write_pool(tmp_path / f"{EVIL}.jsonl", [row(0), row(1, question=EVIL, id=EVIL)])
    assert main(["pool", "check", str(pool), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii() and is_printable(out)
    assert [*json.loads(out)["pools"]] == [EVIL]
    sentence = refusal(lambda: open_pool(tmp_path / f"no{EVIL}.jsonl"), PoolError)
    assert PRINTABLE in sentence and is_printable(sentence)
    path = tmp_path / f"j{EVIL}"
    path.write_bytes(b'{"kind": "torn')
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        Journal(path).close()
    (one,) = (one for one in notes if one.category is TornLineWarning)
    assert is_printable(str(one.message)) and one.filename == __file__  # whoever opened it
