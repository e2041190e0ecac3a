"""The page of evidence shows what its commands print; needs the real pools."""

import re
from pathlib import Path

import pytest

from benchmarks import evidence

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`python -m benchmarks\.evidence (.+)`\n\n((?:[|*].*\n|\n)+)", PAGE, flags=re.MULTILINE)


def test_each_table_of_the_page_has_a_command() -> None:
    assert len(SHOWN) == PAGE.count("| first |") == 3


@pytest.mark.slow
@pytest.mark.parametrize(("pools", "table"), SHOWN, ids=[pools.replace(" ", "+") for pools, _ in SHOWN])
def test_a_command_prints_its_table(
    pools: str, table: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    evidence.main(pools.split())
    assert capsys.readouterr().out.strip() == table.strip()
