"""`eldgr pool` builds, looks at, splits and pairs; it says what it saw, and what is wrong in a sentence."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from eldgr_dspy.pools import open_pool, read_records
from tests.case_tables import tables_of
from tests.commands.installed import Eldgr, lacking
from tests.pools.layouts import predictions, questions, texts_of, write
from tests.results.demo_pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def test_build_writes_a_pool_and_says_what_it_holds(tmp_path: Path, eldgr: Eldgr) -> None:
    predictions(tmp_path / "a.jsonl", [0, 1], prediction="Finish[Doha]")
    predictions(tmp_path / "b.jsonl", [0, 1], prediction="Doha")
    questions(tmp_path / "q.jsonl", range(3))
    arguments = ["a.jsonl", "b.jsonl", "--questions", "q.jsonl", "--answer", "short", "--out", "pool.jsonl"]
    out, err = eldgr("pool", "build", *arguments)
    assert lacking(out, "lines of a built pool") == []
    assert err.splitlines() == tables_of("commands")["notes on a built pool"]["cases"]
    assert open_pool("pool.jsonl").n == 2
    predictions(tmp_path / "a.jsonl")
    out, _ = eldgr("pool", "build", "a.jsonl", "--answer", "short", "--out", "p.jsonl")
    assert "│ questions with a right candidate       │     — │  0 │      — │" in out  # undefined
    assert "With a gold answer: 0 questions of 4." in out and "Evidence a question" not in out


def test_build_takes_every_choice(tmp_path: Path, eldgr: Eldgr) -> None:
    predictions(tmp_path / "a.jsonl", prediction=[f"#### {number}" for number in range(6)])
    choices = ["--answer", "number", "--layout", "predictions", "--by", "question", "--evidence-from", "facts"]
    orders = set()
    for seed in ("1", "1", "2"):
        _, err = eldgr("pool", "build", "a.jsonl", "--out", "p.jsonl.gz", "--shuffle", seed, *choices)
        assert err == "Written to p.jsonl.gz, matched by question.\n"
        orders.add(json.dumps(texts_of(open_pool("p.jsonl.gz"))))
    assert len(orders) == 2


def test_check_has_a_table_a_pool_and_a_split_has_no_question_in_both_parts(eldgr: Eldgr) -> None:
    out, err = eldgr("pool", "check", RETRIEVAL, ARITHMETIC)
    assert (err, lacking(out, "lines of a check of pools")) == ("", [])
    figures = json.loads(eldgr("pool", "check", RETRIEVAL, ARITHMETIC, "--json").out)
    assert list(figures["pools"]) == ["demo-retrieval", "demo-arithmetic"]
    assert figures["shared"] == [{"pools": ["demo-retrieval", "demo-arithmetic"], "questions": 0}]
    assert figures["pools"]["demo-retrieval"]["sha256"] == open_pool(RETRIEVAL).sha256
    assert figures["pools"]["demo-arithmetic"]["any_correct"] == {"count": 37, "of": 40, "rate": 92.5}
    out, err = eldgr("pool", "split", RETRIEVAL, "--seed", "7", "--out-dev", "dev.jsonl", "--out-confirm", "c.jsonl")
    assert "dev and c have 0 questions in common." in out
    assert err == "Written to dev.jsonl for development and to c.jsonl for confirmation.\n"
    overlaps = json.loads(eldgr("pool", "check", "dev.jsonl", "c.jsonl", RETRIEVAL, "--json")[0])["shared"]
    sizes = {name: open_pool(f"{name}.jsonl").n for name in ("dev", "c")}
    assert sum(sizes.values()) == open_pool(RETRIEVAL).n
    assert [one["questions"] for one in overlaps] == [0, sizes["dev"], sizes["c"]]


def test_a_failed_log_is_refused_and_under_unfinished_reported_once(tmp_path: Path, eldgr: Eldgr) -> None:
    samples = [{"id": n, "epoch": 1, "input": f"{n}?", "target": "a", "output": {"completion": "a"}} for n in range(27)]
    about = {"dataset": {"samples": 66}, "config": {"epochs": 1}}
    (tmp_path / "log.json").write_text(json.dumps({"status": "error", "eval": about, "samples": samples}), "utf-8")
    arguments = ["build", "log.json", "--answer", "short", "--out", "p.jsonl"]
    message = "log.json: a log of status 'error', with 27 of 66 samples done."
    assert f"{message} " in eldgr("pool", *arguments, code=1).err and not Path("p.jsonl").exists()
    out, err = eldgr("pool", *arguments, "--unfinished")
    assert message not in " ".join(out.split()) and message in err.splitlines()
    assert "p: retrieval, 27 questions" in out


CSV = [
    ("id", "question", "prediction", "gold", "evidence"),
    ("1", "Which is it?", "Nice", "Nice", "Nice, as it is.\u2028And so on."),
    ("2", 'And "this"?', "It is Paris.\nFinal answer: Paris", "Paris", ""),
    ("1", "Which is it?", "Lyon", "Nice", "Nice, as it is.\u2028And so on."),
]


@pytest.fixture(params=[("a.csv", ",", "utf-8"), ("a b.tsv", "\t", "utf-8"), ("A.CSV", ",", "utf-8-sig")])
def table(eldgr: Eldgr, request: pytest.FixtureRequest) -> str:
    """The name of a file as spreadsheets write it: a row a candidate, a cell in several lines, perhaps with a mark."""
    name, mark, encoding = request.param
    with Path(name).open("w", encoding=encoding, newline="") as out:
        csv.writer(out, delimiter=mark).writerows(CSV)
    return str(name)


def answers_of(pool: str) -> list[tuple[str, list[str | None], list[str], int]]:
    rows = open_pool(pool).rows()
    return [(row.id, [one.answer for one in row.candidates], row.gold, len(row.evidence)) for row in rows]


@pytest.mark.parametrize("command", [("evaluate",), ("pool", "check")])
def test_the_remedy_for_csv_given_as_a_pool_makes_one(eldgr: Eldgr, table: str, command: tuple[str, ...]) -> None:
    error = eldgr(*command, table, code=1).err
    assert f"{table}: CSV is not read as a pool, since a cell holds no list." in error
    remedy = re.search(r"Make a pool of it: eldgr (pool build .*) \(or --answer number\)\.", error)
    assert remedy
    eldgr(*shlex.split(remedy[1]))
    assert answers_of("pool.jsonl") == [("1", ["Nice", "Lyon"], ["Nice"], 1), ("2", ["Paris"], ["Paris"], 0)]
    eldgr("pool", "check", "pool.jsonl")


def test_a_table_may_hold_the_questions_and_flags_name_its_columns(tmp_path: Path, eldgr: Eldgr) -> None:
    Path("q.csv").write_text("question,gold,evidence\nWhich?,Nice,It is Nice.\nAnd now?,Paris,\n", encoding="utf-8")
    rows = [{"question": "Which?", "prediction": "Nice"}, {"question": "And now?", "prediction": "Lyon"}]
    write(tmp_path / "a.jsonl", *rows)
    eldgr("pool", "build", "a.jsonl", "--answer", "short", "--out", "p.jsonl", "--questions", "q.csv")
    expected = [(["Nice"], ["Nice"], 1), (["Lyon"], ["Paris"], 0)]
    assert [(answers, gold, n) for _, answers, gold, n in answers_of("p.jsonl")] == expected

    Path("wide.csv").write_text("Key,Prompt,gpt,llama,Right\n1,Which?,Nice,Lyon,Nice\n2,And?,,Paris,Paris\n", "utf-8")
    arguments = ["build", "wide.csv", "--answer", "short", "--out", "p.jsonl"]
    columns = "id=Key question=Prompt prediction=gpt prediction=llama gold=Right".split()
    eldgr("pool", *arguments, *(word for one in columns for word in ("--column", one)))
    assert answers_of("p.jsonl") == [("1", ["Nice", "Lyon"], ["Nice"], 0), ("2", [None, "Paris"], ["Paris"], 0)]
    assert [one.source for one in next(open_pool("p.jsonl").rows()).candidates] == ["gpt", "llama"]


@pytest.mark.parametrize("name", ["array.jsonl", "array.json"])
def test_what_is_said_of_a_json_array_makes_a_pool_of_it(tmp_path: Path, eldgr: Eldgr, name: str) -> None:
    rows = [json.loads(line) for line in Path(RETRIEVAL).read_text("utf-8").splitlines()]
    Path(name).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    error = eldgr("evaluate", name, code=1).err
    assert "one JSON document of all rows is not read" in error
    code = error.partition("in Python: ")[2]
    exec(re.split(r"\. (?:The columns|Then) ", code)[0], {})  # noqa: S102 -- our own remedy
    assert json.loads(eldgr("pool", "check", "rows.jsonl", "--json")[0])["pools"]["rows"]["n"] == 50


def test_it_writes_pairs_and_counts_every_question_also_in_json(eldgr: Eldgr) -> None:
    out, err = eldgr("pool", "pairs", RETRIEVAL, "--out", "pairs.jsonl")
    assert err == "Written to pairs.jsonl.\n"
    assert lacking(out, "lines of pairs") == []
    records = [record for _, record in read_records(Path("pairs.jsonl"))]
    assert len(records) == 21 and {*records[0]} == {"prompt", "chosen", "rejected"}
    lines = [{**json.loads(line), "gold": []} for line in Path(RETRIEVAL).read_text(encoding="utf-8").splitlines()]
    out = eldgr("pool", "pairs", write(Path("bare.jsonl"), *lines), "--out", "pairs.jsonl").out
    assert "Pairs without a gold answer, so that right and wrong are not checked: 23 of 23." in " ".join(out.split())

    options = ["--layout", "kto", "--most", "2", "--gold", "--messages", "--ask", "Now.", "--json"]
    figures = json.loads(eldgr("pool", "pairs", ARITHMETIC, "--out", "rows.parquet", *options).out)
    assert figures["pool"] == "demo-arithmetic" and figures["layout"] == "kto"
    assert figures["sha256"] == open_pool(ARITHMETIC).sha256
    assert sum(figures["questions"].values()) == 40 and figures["questions"]["no_chosen"] == 1
    assert figures["pairs"] == figures["checked"] == figures["right_chosen"] > figures["questions"]["paired"]
    records = [record for _, record in read_records(Path("rows.parquet"))]
    assert len(records) == figures["rows"]
    assert records[0]["prompt"][0]["content"].endswith("\n\nNow.")
