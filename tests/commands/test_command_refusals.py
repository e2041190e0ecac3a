"""What no command can do is refused in a sentence, with nothing printed, no traceback, and no file written."""

import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from tests.capitals import recording, row, write_pool
from tests.case_tables import each_case
from tests.finished_runs import finished_run
from tests.pools.layouts import predictions
from tests.results.demo_pools import ARTIFACTS

FILES = {
    "torn.jsonl": b'{"id": "q", "question": "?", "prediction": "x"}\n{\n',
    "bad.jsonl": b"{",
    "folder/report.html": b"mine",
    "w.csv": b"id,gpt\n1,Nice\n",
    "blank.jsonl": b"\n",
    "rows.jsonl": b'{"text": "Doha"}\n{"title": "Doha"}\n',
    "empty.txt": b" \n",
    "latin.txt": "né".encode("latin-1"),
    "long.txt": b"a" * 500_001,
    "huge.txt": b"a" * 2_000_001,
    "a.txt": b"Doha is the capital.",
    "ending.py": b"raise SystemExit(0)",
    "refused_code.py": b"class Strict:\n    def __call__(self, answer, evidence):\n        return False\n\nnumber = 7",
}

DEMO, NUMBERS = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))
POOL_FILES = {"POOL": "capitals.jsonl", "DEMO": DEMO, "NUMBERS": NUMBERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("refused")
    with chdir(folder):
        finished_run(folder, n=3)
        for name in ("r.jsonl", "s.jsonl"):
            recording(Path(name), ["q0"])
        write_pool(Path("gone.jsonl"), [row(0)])
        predictions(Path("p.jsonl"))
        Path("folder").mkdir()
        for name, content in FILES.items():
            Path(name).write_bytes(content)
        yield folder


@each_case("commands", "refused command lines")
def test_what_cannot_be_done_is_refused_in_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, message: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts}
    assert main([POOL_FILES.get(word, word) for word in shlex.split(line)]) == code
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    text, whole = " ".join(err.split()), message.startswith("Error: ") and message.endswith(".")
    assert text == message if whole else message in text
    assert {path: path.stat().st_mtime_ns for path in before if path.is_file()}.items() <= before.items()
    assert {path for path in folder.rglob("*") if "__pycache__" not in path.parts} == {*before}
