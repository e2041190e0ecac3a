"""One Chromium for all tests of this folder, which are skipped without it, and the runs whose pages they open."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import BROWSER, Tab, browsing
from tests.finished_runs import finished_run
from tests.results.demo_pools import demo_run


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    if BROWSER is None:
        pytest.skip("no chromium on the path; install Debian's package chromium")
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser.tab()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_run(tmp_path_factory.mktemp("demo") / "run")


ATTACKS: list[str] = json.loads(Path(__file__).with_name("attacks.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [hostile_row(number, text) for number, text in enumerate((*ATTACKS, "x" * 200_000))]
    out, _ = finished_run(tmp_path_factory.mktemp("hostile"), rows=rows)
    return out


def hostile_row(number: int, text: str) -> dict[str, Any]:
    gold, evidence = f"Paris {text}", {"title": text, "text": f"It is Paris {text}, says {text}."}
    answers = [f"{text} {number}", f"{text} {number}", gold]
    candidates = [{"text": text, "answer": answer, "source": text} for answer in answers]
    common = {"id": f"{text[:200]}{number}", "question": text, "task": "retrieval"}
    return {**common, "candidates": candidates, "evidence": [evidence], "gold": [gold]}


def decisions(run: Path) -> list[dict[str, Any]]:
    lines = (run / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    return [one for one in map(json.loads, lines) if one["rule"] == "eldgr"]
