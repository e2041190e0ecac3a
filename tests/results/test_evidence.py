"""The page of evidence shows what its commands print; needs the real pools."""

import re
from pathlib import Path

import pytest

from benchmarks import evidence, selectors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`python -m benchmarks\.evidence (.+)`\n\n((?:[|*].*\n|\n)+)", PAGE, flags=re.MULTILINE)
MATRICES = re.findall(r"^### (.+): [\d,]+ questions\n\n((?:[|*].*\n|\n)+)", PAGE, flags=re.MULTILINE)
CPU = selectors.HEADERS.index("CPU ms") + 1


def test_each_table_of_the_page_has_a_command() -> None:
    assert len(SHOWN) == 3
    assert len(SHOWN) + len(MATRICES) == PAGE.count("| first |") == 9


@pytest.mark.slow
@pytest.mark.parametrize(("pools", "table"), SHOWN, ids=[pools.replace(" ", "+") for pools, _ in SHOWN])
def test_a_command_prints_its_table(
    pools: str, table: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    evidence.main(pools.split())
    assert capsys.readouterr().out.strip() == table.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "matrix"), MATRICES, ids=[name for name, _ in MATRICES])
def test_a_command_prints_its_matrix(
    name: str, matrix: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processor time apart, which no two runs share."""
    if name == selectors.DEMO.stem:
        selectors.main([])
    else:
        request.getfixturevalue("monkeypatch").setenv("ELDGR_POOLS", str(request.getfixturevalue("pools_dir")))
        selectors.main([name])
    printed = capsys.readouterr().out.strip().partition("\n\n")[2]
    assert without_cpu(printed) == without_cpu(matrix.strip())


def without_cpu(matrix: str) -> list[list[str]]:
    rows = [line.split(" | ") for line in matrix.splitlines()]
    return [row[: CPU - 1] + row[CPU:] if len(row) == len(selectors.HEADERS) else row for row in rows]
