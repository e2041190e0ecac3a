"""`eldgr inspect` prints what the channels say of each step, or why they say nothing; its JSON is JSON and no more."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.channels.protocols import Scorer
from eldgr_dspy.programs.commands.inspect import print_scores
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.texts import text_of_file, texts_of_pool
from tests.commands.installed import Eldgr
from tests.ollama_server import Reply, ollama_server
from tests.run.processes import COMMAND as HEARING
from tests.scorers import Rewards, trained_nli
from tests.scoring.readers import Reader, Says

QUESTION = "What is the capital of the country that hosted the 2022 FIFA World Cup?"
HOST = {"title": "2022 FIFA World Cup", "text": "The tournament was hosted by Qatar."}
CAPITAL = {"title": "Doha", "text": "Doha is the capital of Qatar."}
FIRST, SECOND = "The host was Qatar.", "The capital of Qatar is Dubai."
TEXT = f"{FIRST}\n{SECOND}\nThe answer is Dubai."


def qatar(premise: str, hypothesis: str) -> Says:
    """Everything follows from what stands before it; of the documents one supports the host, one denies Dubai."""
    if premise.startswith(QUESTION) or (hypothesis == FIRST and "hosted by Qatar" in premise):
        return "entailment"
    return "contradiction" if "Dubai" in hypothesis and premise.startswith("Doha") else "neutral"


SCORER = NLIScorer(Reader(qatar))


def pool(path: Path, *texts: str, **changes: Any) -> Path:
    candidates = [{"text": text, "answer": "Dubai", "source": "sample"} for text in texts]
    row = {"id": "r01", "question": QUESTION, "task": "retrieval", "candidates": candidates}
    path.write_text(json.dumps({**row, "evidence": [HOST, CAPITAL], **changes}) + "\n", encoding="utf-8")
    return path


def show(path: Path, *, scorer: Scorer = SCORER, as_json: bool = False) -> None:
    print_scores(path, texts_of_pool(path), {"nli reader": scorer}, as_json=as_json)


@pytest.fixture
def capitals(eldgr: Eldgr, tmp_path: Path) -> Path:
    return pool(tmp_path / "capitals.jsonl", TEXT, "Dubai")


Out = Callable[[], str]


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Out:
    return lambda: capsys.readouterr().out


def test_a_step_has_a_row_and_what_is_undefined_says_why(capitals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(capitals)
    assert capsys.readouterr() == (Path(__file__).with_name("inspected.txt").read_text(encoding="utf-8"), "")


def test_what_every_document_contradicts_is_marked_twice_and_what_is_missing_is_said(capitals: Path, out: Out) -> None:
    show(pool(capitals, SECOND, evidence=[CAPITAL]))
    table = out()
    assert re.search(r"^1  The capital .* 0\.00    0\.00  !!    0$", table, re.MULTILINE)
    assert "\n!! conflated: it scores high, and every document contradicts it (step 1 by doc 0)\n" in table
    show(pool(capitals, TEXT, evidence=[]))
    assert "\n— fact, triang, adv, min, conflated: there is no corpus\n" in out()
    show(pool(capitals, "#### Dubai", evidence=[HOST]))
    assert "There is no step to score.\n" in out()


def test_a_reason_names_its_steps_and_several_scorers_have_a_table_each(capitals: Path, out: Out) -> None:
    texts = [[*questions][:1] for questions in texts_of_pool(capitals)]
    print_scores(capitals, texts, {"nli a": SCORER, "lm b": Rewards([0.25])}, as_json=False)
    expected = ["candidate 0, Dubai, nli a: reward 0.65", "candidate 0, Dubai, lm b: reward 0.25"]
    assert re.findall(r"^candidate 0, .*", out(), re.MULTILINE) == expected
    show(pool(capitals, f"{FIRST}\n{SECOND}\nOne", question="", evidence=[]))
    reasons = [line for line in out().splitlines() if line.startswith("— ")]
    assert reasons[0] == "— logic, conflated: nothing stands before the step (step 1)"
    assert "— fact, triang, adv, min: there is no corpus (steps 1, 2)" in reasons
    assert "— conflated: there is no corpus (step 2)" in reasons


def test_scores_are_coloured_at_a_terminal(capitals: Path, out: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    show(capitals)
    assert "\x1b" not in out()
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    show(capitals)
    second = next(line for line in out().splitlines() if line.startswith("2  The capital"))
    green, yellow, red, dim, bold_red = 32, 33, 31, 2, "1;31"
    for text, code in {" 1.00": green, "0.50": yellow, "  0.00": red, "    —": dim, "!": bold_red}.items():
        assert f"\x1b[{code}m{text}\x1b[0m" in second
    monkeypatch.setenv("NO_COLOR", "1")
    show(capitals)
    assert not re.search(r"\x1b\[3\dm", out())


def test_no_text_steers_the_terminal(capitals: Path, out: Out) -> None:
    """Nor is it read as markup."""
    evil = "\x1b[2J\x07[red]The host\u202e was Qatar.[/red]\u2028"
    show(pool(capitals, f"{evil}\n\n{SECOND}", id=evil, question=evil, evidence=[{"title": evil, "text": SECOND}]))
    text = out()
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert text.count("[U+001B][2J[U+0007][red]") == 4


def test_json_is_an_object_a_text_and_nothing_else(capitals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(capitals, as_json=True)
    out, err = capsys.readouterr()
    (first, second), (question,) = map(json.loads, out.splitlines()), texts_of_pool(capitals)
    tables = SCORER.score([one.reasoning for one in question])
    about = {"source": str(capitals), "id": "r01", "candidate": 0, "question": QUESTION, "answer": "Dubai"}
    assert first == {**about, "scores": {"nli": json.loads(json.dumps(tables[0].to_json()))}}
    assert (second["candidate"], second["scores"]["nli"]["undefined"]) == (1, "no step was measured")
    assert out.isascii() and err == ""


def process(path: Path, *, as_json: bool, encoding: str = "utf-8", **options: Any) -> Any:
    """What is printed by a process of its own."""
    code = "import sys; from pathlib import Path; from tests.commands.test_inspect import show; "
    code += f"show(Path(sys.argv[1]), as_json={as_json})"
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False, **options)


@pytest.fixture
def reasoning(eldgr: Eldgr) -> Path:
    Path("reasoning.txt").write_bytes(f"\ufeff{FIRST}\r\n{SECOND}\r\n#### Dubai\r\n".encode())
    Path("evidence.txt").write_text(f"{HOST['text']}\n  \n\n{CAPITAL['text']}\n", encoding="utf-8")
    Path("evidence.jsonl").write_text(f"{json.dumps(HOST)}\n\n{json.dumps(CAPITAL)}\n", encoding="utf-8")
    return Path("reasoning.txt")


def test_a_text_in_a_file_has_its_question_its_answer_and_its_passages(reasoning: Path, out: Out) -> None:
    bare = text_of_file(reasoning).reasoning
    text = f"{FIRST}\r\n{SECOND}\r\n#### Dubai\r\n"
    assert (bare.text, bare.question, bare.passages, bare.answer) == (text, "", None, "Dubai")
    Path("unmarked.txt").write_text(FIRST, encoding="utf-8")
    assert text_of_file(Path("unmarked.txt")).reasoning.answer == ""
    for name, titles in (("evidence.txt", ["", ""]), ("evidence.jsonl", ["2022 FIFA World Cup", "Doha"])):
        full = text_of_file(reasoning, QUESTION, Path(name)).reasoning
        assert full.question == QUESTION and full.passages is not None
        assert [passage.title for passage in full.passages] == titles
        assert [passage.text for passage in full.passages] == [HOST["text"], CAPITAL["text"]]
    texts = [[text_of_file(reasoning, QUESTION, Path("evidence.txt"))]]
    print_scores(reasoning, texts, {"nli reader": SCORER}, as_json=False)
    page = out()  # under the name of the file
    assert page.startswith(f"reasoning.txt: {QUESTION}\n\nnli reader: reward 0.")
    assert page.endswith(f"\ndoc 0: {HOST['text']}\ndoc 1: {CAPITAL['text']}\n\n")
    print_scores(reasoning, [[text_of_file(reasoning)]], {"nli reader": SCORER}, as_json=True)
    reply = json.loads(out())
    assert [reply[name] for name in ("source", "id", "candidate", "question")] == ["reasoning.txt", None, None, ""]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
@pytest.mark.slow
def test_scores_are_printed_in_any_encoding_or_it_is_an_error_unless_the_reader_has_gone(capitals: Path) -> None:
    run = process(capitals, as_json=False, encoding="ascii", stdout=subprocess.PIPE)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"? epist: there are no token probabilities" in run.stdout
    with Path("/dev/full").open("wb") as full:
        run = process(capitals, as_json=True, stdout=full)
    assert b"ClickException: The scores could not be written: Standard output: No space" in run.stderr
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        run = process(capitals, as_json=True, stdout=pipe)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.slow
def test_a_trained_cross_encoder_reads_which_passage_denies_a_step(reasoning: Path, eldgr: Eldgr) -> None:
    reasoning.write_text("Oslo is the capital of Peru.\nThe capital of Peru is Oslo.\n#### Oslo\n", encoding="utf-8")
    Path("evidence.txt").write_text("Ada is a pilot.\n\nLima is the capital of Peru.\n\nThe capital of Norway is Oslo.")
    command = ["inspect", str(reasoning), "--evidence", "evidence.txt", "--nli", str(trained_nli())]
    out, err = eldgr(*command, "--json")
    first, second = json.loads(out)["scores"]["nli"]["steps"]
    assert (first["channels"]["logic"], second["channels"]["logic"]) == (None, 1.0)
    assert (second["channels"]["fact"], second["conflated"], second["conflated_not_neutral"]) == (0.5, False, True)
    assert (second["document"], second["contradicting"], err) == (2, 1, "")
    out, err = eldgr(*command, "--k", "1")
    assert "!! conflated: it scores high, and every document contradicts it (step 2 by doc 1)\n" in out


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with ollama_server(lambda _: json.dumps(REPLY)) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        yield server


SCORES = {"logic": 1.0, "fact": 1.0, "epist": None, "info": 0.5, "triang": 0.33, "adv": 0.6, "min": 1.0}
REPLY = {"step_rationale": "So.", "step_scores": [{"step": at, **SCORES} for at in range(3)]}


@pytest.mark.parametrize("by", ["the line", "the environment"])
def test_an_lm_may_score_some_questions(capitals: Path, eldgr: Eldgr, server: Any, by: str) -> None:
    lines = [capitals.read_text(encoding="utf-8").replace("r01", name) for name in ("r01", "r02", "r03")]
    capitals.write_text("".join(lines), encoding="utf-8")
    options = ["--lm", "ollama/deepseek-r1:7b", "--limit", "2", "--json"] if by == "the line" else []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LM": "ollama/deepseek-r1:7b", "JSON": "1", "LIMIT": "2"}.items() if not options else ():
            patch.setenv(f"ELDGR_INSPECT_{name}", value)
        out, err = eldgr("inspect", "capitals.jsonl", *options)
    assert len(server.bodies()) == 2
    first, second, *others = map(json.loads, out.splitlines())
    assert [step["channels"]["triang"] for step in first["scores"]["lm"]["steps"]] == [0.33] * 3
    assert list(first["scores"]) == ["lm"] and second["scores"]["lm"]["reward"] is None
    assert ([one["id"] for one in others], err) == (["r02", "r02"], "")


def test_an_lm_that_is_away_gives_exit_code_3(capitals: Path, eldgr: Eldgr, server: Any) -> None:
    server.behaviour = lambda _: Reply("no such key", status=401)
    out, err = eldgr("inspect", "capitals.jsonl", "--lm", "ollama/deepseek-r1:7b", code=3)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Stopped: lm ollama/deepseek-r1:7b could not be asked: ")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
def test_ctrl_c_speaks_of_no_journal(capitals: Path, server: Any) -> None:
    processes: list[subprocess.Popen[str]] = []

    def interrupt(_: Any) -> Reply:
        processes[0].send_signal(signal.SIGINT)
        return Reply(fault="hang")

    server.behaviour = interrupt
    command = [sys.executable, "-c", HEARING, "inspect", "capitals.jsonl", "--lm", "ollama/deepseek-r1:7b"]
    processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    _, err = processes[0].communicate()
    assert processes[0].returncode == 130 and err.strip().startswith("Interrupted.")
    assert "journal" not in err and "Traceback" not in err
