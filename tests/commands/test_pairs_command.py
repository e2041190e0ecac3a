"""`eldgr pool pairs` writes what training reads, counts every question with its reason, and refuses in a sentence."""

import json
from pathlib import Path

import pytest

from eldgr_dspy.pools import open_pool, read_records
from eldgr_dspy.programs.commands import main
from tests.results.demo_pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_writes_pairs_and_counts_every_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", "pairs", RETRIEVAL, "--out", "pairs.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert err == "Written to pairs.jsonl.\n"
    assert "demo-retrieval: pairs of 50 questions" in out
    assert "│ with a pair                                             │    21 │" in out
    assert "│ whose pairs would reject a right answer for a wrong one │     2 │" in out
    assert "Pairs: 21. Rows written: 21." in out
    assert "Pairs dropped, because they would reject a right answer for a wrong one: 6." in out
    assert "Of 21 pairs with a gold answer, the chosen answer is right in 18, the rejected one in 0." in out
    records = [record for _, record in read_records(Path("pairs.jsonl"))]
    assert len(records) == 21 and {*records[0]} == {"prompt", "chosen", "rejected"}


def test_json_has_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--layout", "kto", "--most", "2", "--gold", "--messages", "--ask", "Now.", "--json"]
    assert main(["pool", "pairs", ARITHMETIC, "--out", "rows.parquet", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pool"] == "demo-arithmetic" and found["layout"] == "kto"
    assert found["sha256"] == open_pool(ARITHMETIC).sha256
    assert sum(found["questions"].values()) == 40 and found["questions"]["no_chosen"] == 1
    assert found["pairs"] == found["checked"] == found["right_chosen"] > found["questions"]["paired"]
    records = [record for _, record in read_records(Path("rows.parquet"))]
    assert len(records) == found["rows"]
    assert records[0]["prompt"][0]["content"].endswith("\n\nNow.")


def test_without_gold_answers_it_says_that_nothing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path(RETRIEVAL).read_text(encoding="utf-8").splitlines()
    bare = [json.dumps({**json.loads(line), "gold": []}) + "\n" for line in lines]
    Path("bare.jsonl").write_text("".join(bare), encoding="utf-8")
    assert main(["pool", "pairs", "bare.jsonl", "--out", "pairs.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "Pairs without a gold answer, so that right and wrong are not checked: 23 of 23." in " ".join(out.split())
