"""The tables compile with pdfLaTeX and the preamble that the reference states, whatever pools and rules are named."""

import shutil
import subprocess
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.tables.formats import as_latex
from eldgr_dspy.tables.table import Table
from tests.capitals import row
from tests.case_tables import each_case
from tests.finished_runs import finished_run
from tests.results.demo_pools import demo_run

ROOT = Path(__file__).resolve().parents[2]
PREAMBLE = r"\usepackage{booktabs}"

pytestmark = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def compiles(tables: str, folder: Path) -> bool:
    (folder / "paper.tex").write_text(
        f"\\documentclass{{article}}\n{PREAMBLE}\n\\begin{{document}}\n{tables}\n\\end{{document}}\n", encoding="utf-8"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    tex = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert tex.returncode == 0, "\n".join(line for line in tex.stdout.splitlines() if line.startswith(("!", "l.")))
    return (folder / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_a_finished_run_compiles_with_the_preamble_of_the_reference(tmp_path: Path) -> None:
    assert f"the preamble needs `{PREAMBLE}`" in (ROOT / "docs" / "reference" / "command.md").read_text("utf-8")
    run, out = demo_run(tmp_path / "run"), tmp_path / "tables.tex"
    assert main(["report", str(run), "--format", "latex", "--out", str(out)]) == 0
    assert compiles(out.read_text("utf-8"), tmp_path)


@each_case("results", "names in LaTeX")
def test_any_name_in_any_place_compiles(tmp_path: Path, name: str) -> None:
    table = Table(name, (name, name), ((name, name), ("", name)), (name, name))
    assert compiles(as_latex([table, table]), tmp_path)


def test_a_pool_with_a_hostile_name_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, pool = finished_run(tmp_path, rows=[row(0)], out=tmp_path / "other")
    hostile = pool.rename(tmp_path / "50% of_{x}\\y & Zoé~#$^.jsonl")
    assert main(["evaluate", str(hostile), "--out", "run", "--quiet"]) == 0
    assert main(["report", "run", "--format", "latex", "--out", "tables.tex"]) == 0
    assert compiles(Path("tables.tex").read_text("utf-8"), tmp_path)
