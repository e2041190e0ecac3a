"""The page of evidence shows rows that its commands print; needs the real pools."""

import re
from pathlib import Path

import pytest

from benchmarks import evidence_tables, selectors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`python -m benchmarks\.evidence_tables (.+)`\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
COMPARED = re.findall(r"^`python -m benchmarks\.selectors (.+)`\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "---" not in line]


def test_each_table_of_results_has_a_command() -> None:
    assert len(SHOWN) + len(COMPARED) == PAGE.count("| majority |") == 4


@pytest.mark.slow
@pytest.mark.parametrize(("pools", "table"), SHOWN, ids=[pools.replace(" ", "+") for pools, _ in SHOWN])
def test_a_command_prints_the_rows_of_its_table(
    pools: str, table: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    evidence_tables.main(pools.split())
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line in table.splitlines()] == table.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for names, _ in COMPARED for name in names.split()])
def test_a_command_prints_each_selector_alone_and_locked(
    name: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    selectors.main([name])
    printed = {row[0]: row[1:3] for row in cells(capsys.readouterr().out) if len(row) == len(selectors.HEADERS)}
    (head, *rows) = cells(COMPARED[0][1])
    for row in rows:
        shown = row[head.index(name)]
        alone, locked = printed.get(row[0], ["", ""])
        assert shown == (f"{alone} → {locked}" if locked not in ("", "N/A") else alone), row[0]
