"""`eldgr bound` and `eldgr plan`: tables, or JSON, before anything is asked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.statistics import mcnemar_power, questions_needed
from tests.capitals import row, write_pool
from tests.case_tables import tables_of
from tests.commands.installed import COMMAND, Eldgr, lacking
from tests.results.demo_pools import ARTIFACTS

PLAN = ["plan", "--gain", "2", "--discordant", "6"]
RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def test_it_says_between_what_and_what_each_rule_lies(eldgr: Eldgr) -> None:
    out, err = eldgr("bound", RETRIEVAL, ARITHMETIC)
    assert (err, lacking(out, "lines of bounds")) == ("", [])
    assert out.count("each number that the check of derivations cannot exclude is taken for derivable") == 1
    pools = {"demo-retrieval": RETRIEVAL, "demo-arithmetic": ARITHMETIC}
    expected = {name: pool_authority((pool := open_pool(Path(path))).rows(), pool.task) for name, path in pools.items()}
    assert json.loads(eldgr("bound", RETRIEVAL, ARITHMETIC, "--json").out) == {"pools": expected}


def test_the_bounds_are_those_of_a_run(eldgr: Eldgr) -> None:
    for settings in (["--certificate", "substring"], ["--set", "homogeneous=skip"]):
        eldgr("evaluate", RETRIEVAL, "--out", "run", "--fresh", "--quiet", *settings)
        of_run = json.loads(Path("run/summary.json").read_text())["pools"]["demo-retrieval"]
        figures = json.loads(eldgr("bound", RETRIEVAL, "--json", *settings).out)["pools"]["demo-retrieval"]
        for kind in ("bounds", "bounds_any_span"):
            assert figures[kind] == of_run[kind]


LATE = """
from eldgr_dspy.decision import Choice
def late(case):  # asks the repairer only after a preference, and ships what it says, certified or not
    if case.preferred((yield "judge")) is not None:
        repair = case.repaired((yield "repairer"))
        if repair is not None:
            return Choice("repair", repair)
    return Choice("consensus", case.consensus)
def trusting(case):
    preference = case.stated((yield "judge"))
    return Choice("consensus", case.consensus) if preference is None else Choice("judge", preference)
"""


def test_a_rule_of_ones_own_is_bounded_over_all_judges_and_never_too_narrowly(tmp_path: Path, eldgr: Eldgr) -> None:
    (tmp_path / "bounded_rules.py").write_text(LATE)
    own = ("--rules", "judge,bounded_rules:late,bounded_rules:trusting")
    out = eldgr("bound", RETRIEVAL, ARITHMETIC, *own).out
    assert lacking(out, "lines of bounds of own rules") == []
    figures = json.loads(eldgr("bound", RETRIEVAL, *own, "--json").out)["pools"]["demo-retrieval"]
    late = [figures[kind]["bounded_rules:late"] for kind in ("bounds_any_span", "can_change")]
    assert late == [None, {"judge": 0.0, "repairer": None}]
    for kind in ("bounds", "bounds_any_span", "can_change"):
        assert figures[kind]["bounded_rules:trusting"] == figures[kind]["judge"]


def test_without_gold_answers_it_says_what_can_be_changed(tmp_path: Path, eldgr: Eldgr) -> None:
    pool = write_pool(tmp_path / "none.jsonl", (row(number, gold=[]) for number in range(4)))
    out = eldgr("bound", str(pool)).out
    line = "│ eldgr     │         — │                   — │           100.00 │              100.00 │              — │"
    assert line in out and "—: no question has a gold answer. What a role can change needs none." in out
    some = write_pool(tmp_path / "some.jsonl", (row(number, **({"gold": []} if number else {})) for number in range(4)))
    assert "or more; this pool has 0." in eldgr("bound", pool, "--worst", "50").out
    assert "Bounds are over the 1 question with a gold answer, of 4." in eldgr("bound", str(some)).out


def test_worst_names_the_widest_rule_that_passes_or_how_many_questions_it_needs(tmp_path: Path, eldgr: Eldgr) -> None:
    """On 60 questions that majority has right, only full authority lets a judge lose any."""
    right = [row(number, answers=("Paris", "Paris", "Nice")) for number in range(60)]
    pool = str(write_pool(tmp_path / "right.jsonl", right))
    out = ""
    for options, *texts in tables_of("commands")["widest rules"]["cases"]:
        out = eldgr("bound", pool, *options.split()).out
        assert [text for text in texts if text not in out] == [], options
    assert "this pool has" not in out  # for the last, it is large enough
    two = json.loads(eldgr("bound", pool, "--worst", "5", "--rules", "eldgr,first", "--json").out)["pools"]["right"]
    assert two["allowed"]["chains"] == [["eldgr"], ["first"]]
    assert (two["allowed"]["passing"], two["allowed"]["needed"]) == ([], 72)  # 60 do not pass at 2.5 %


def test_it_says_how_many_questions_a_gain_needs(eldgr: Eldgr) -> None:
    out = eldgr(*PLAN).out
    assert "questions to see +2.00 with power 0.8 at alpha 0.05" in out
    assert "│ 6.00         │     1,244 │      0.8000 │                 50–25 │" in out
    figures = json.loads(eldgr(*PLAN, "--json").out)
    assert figures["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert figures["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (figures["wins"] - figures["losses"], figures["wins"] + figures["losses"]) == pytest.approx((24.88, 74.64))
    options: list[tuple[str, ...]] = [(), ("--power", "0.9"), ("--power", "0.9", "--alpha", "0.0125")]
    results = [json.loads(eldgr(*PLAN, "--json", *more).out)["questions"] for more in options]
    assert results == sorted(set(results))  # a smaller alpha and more power need more
    assert 0 not in [main(["plan", "--gain", gain, "--discordant", "100"]) for gain in ("0", "-1", "101", "nan")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_plan_that_cannot_be_printed_is_an_error_and_a_closed_pipe_is_not() -> None:
    plan = [*COMMAND, *PLAN]
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(plan, stdout=full, stderr=subprocess.PIPE, check=False)
    error = b"Error: The plan could not be written: Standard output: No space"
    assert (result.returncode, result.stderr[: len(error)]) == (1, error)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        result = subprocess.run(plan, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
