"""The page of evidence shows rows that its commands print; needs the real pools."""

import re
from pathlib import Path

import pytest

from benchmarks import evidence_tables, selectors
from tests.evidence_page import PAGE, SHOWN, cells, column

COMPARED = re.findall(r"^`python -m benchmarks\.selectors (.+)`\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)


def test_each_table_of_results_has_a_command() -> None:
    assert len(SHOWN) + len(COMPARED) == PAGE.count("| majority |") == 4


@pytest.mark.slow
def test_the_command_prints_the_rows_of_its_table(
    pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one of the pools. For the others `test_pools_as_recorded.py` compares the figures of the same run."""
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    evidence_tables.main(["svamp-codex8"])
    printed = dict(row[:2] for row in cells(capsys.readouterr().out) if len(row) == 2)
    assert column("svamp-codex8").items() <= printed.items()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for names, _ in COMPARED for name in names.split()])
def test_a_command_prints_each_selector_alone_and_locked(
    name: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    selectors.main([name, "--untimed"])
    printed = {row[0]: row[1:3] for row in cells(capsys.readouterr().out) if len(row) == len(selectors.HEADERS)}
    (head, *rows) = cells(COMPARED[0][1])
    for row in rows:
        shown = row[head.index(name)]
        alone, locked = printed.get(row[0], ["", ""])
        assert shown == (f"{alone} → {locked}" if locked not in ("", "N/A") else alone), row[0]
