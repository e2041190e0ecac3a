"""`eldgr pool pairs` writes what training reads, counts every question with its reason, and refuses in a sentence."""

import json
from pathlib import Path

from eldgr_dspy.pools import open_pool, read_records
from tests.commands.installed import Eldgr
from tests.results.demo_pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def test_it_writes_pairs_and_counts_every_question(eldgr: Eldgr) -> None:
    out, err = eldgr("pool", "pairs", RETRIEVAL, "--out", "pairs.jsonl")
    assert err == "Written to pairs.jsonl.\n"
    assert "demo-retrieval: pairs of 50 questions" in out
    assert "│ with a pair                                             │    21 │" in out
    assert "│ whose pairs would reject a right answer for a wrong one │     2 │" in out
    assert "Pairs: 21. Rows written: 21." in out
    assert "Pairs dropped, because they would reject a right answer for a wrong one: 6." in out
    assert "Of 21 pairs with a gold answer, the chosen answer is right in 18, the rejected one in 0." in out
    records = [record for _, record in read_records(Path("pairs.jsonl"))]
    assert len(records) == 21 and {*records[0]} == {"prompt", "chosen", "rejected"}


def test_json_has_the_counts(eldgr: Eldgr) -> None:
    options = ["--layout", "kto", "--most", "2", "--gold", "--messages", "--ask", "Now.", "--json"]
    figures = json.loads(eldgr("pool", "pairs", ARITHMETIC, "--out", "rows.parquet", *options).out)
    assert figures["pool"] == "demo-arithmetic" and figures["layout"] == "kto"
    assert figures["sha256"] == open_pool(ARITHMETIC).sha256
    assert sum(figures["questions"].values()) == 40 and figures["questions"]["no_chosen"] == 1
    assert figures["pairs"] == figures["checked"] == figures["right_chosen"] > figures["questions"]["paired"]
    records = [record for _, record in read_records(Path("rows.parquet"))]
    assert len(records) == figures["rows"]
    assert records[0]["prompt"][0]["content"].endswith("\n\nNow.")


def test_without_gold_answers_it_says_that_nothing_is_checked(eldgr: Eldgr) -> None:
    lines = Path(RETRIEVAL).read_text(encoding="utf-8").splitlines()
    bare = [json.dumps({**json.loads(line), "gold": []}) + "\n" for line in lines]
    Path("bare.jsonl").write_text("".join(bare), encoding="utf-8")
    out = eldgr("pool", "pairs", "bare.jsonl", "--out", "pairs.jsonl").out
    assert "Pairs without a gold answer, so that right and wrong are not checked: 23 of 23." in " ".join(out.split())
