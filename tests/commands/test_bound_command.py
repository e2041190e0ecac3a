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
from tests.commands.installed import COMMAND, Eldgr
from tests.results.demo_pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def test_it_says_between_what_and_what_each_rule_lies(eldgr: Eldgr) -> None:
    out, err = eldgr("bound", RETRIEVAL, ARITHMETIC)
    assert err == ""
    assert "demo-retrieval: retrieval, 50 questions: authority bounds, %" in out
    for line in (
        "│ judge     │  [8.00, 86.00] │       [8.00, 86.00] │            86.00 │                0.00 │       22 of 50",
        "│ eldgr     │ [48.00, 76.00] │      [46.00, 86.00] │            30.00 │               44.00 │        2 of 50",
        "2 of 50 │ at most 12.06 │",
        "│ eldgr     │ [50.00, 50.00] │          [2.50, 97.50] │             0.00 │              95.00 │",
        "│ judge     │  [2.50, 92.50] │          [2.50, 92.50] │            92.50 │               0.00 │",
    ):
        assert line in out, line
    assert out.count("each number that the check of derivations cannot exclude is taken for derivable") == 1
    pools = {"demo-retrieval": RETRIEVAL, "demo-arithmetic": ARITHMETIC}
    expected = {name: pool_authority((pool := open_pool(Path(path))).rows(), pool.task) for name, path in pools.items()}
    assert json.loads(eldgr("bound", RETRIEVAL, ARITHMETIC, "--json").out) == {"pools": expected}


def test_the_bounds_are_those_of_a_run(eldgr: Eldgr) -> None:
    for settings in (["--certificate", "substring"], ["--set", "homogeneous=skip"]):
        eldgr("evaluate", RETRIEVAL, "--out", "run", "--fresh", "--quiet", *settings)
        of_run = json.loads(Path("run/summary.json").read_text())["pools"]["demo-retrieval"]
        figures = json.loads(eldgr("bound", RETRIEVAL, "--json", *settings).out)["pools"]["demo-retrieval"]
        assert [figures[key] for key in ("bounds", "bounds_any_span")] == [
            of_run[key] for key in ("bounds", "bounds_any_span")
        ]


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
    line = "│ bounded_rules:late     │ [52.00, 52.00] │        not computed │             0.00 │                   — │"
    assert line in out
    assert "not computed: bounds over all spans are available only for the package's rules and certificates." in out
    assert "│ bounded_rules:late     │ [50.00, 50.00] │           not computed │" in out
    figures = json.loads(eldgr("bound", RETRIEVAL, *own, "--json").out)["pools"]["demo-retrieval"]
    assert figures["bounds_any_span"]["bounded_rules:late"] is None
    assert figures["can_change"]["bounded_rules:late"] == {"judge": 0.0, "repairer": None}
    for kind in ("bounds", "bounds_any_span", "can_change"):
        assert figures[kind]["bounded_rules:trusting"] == figures[kind]["judge"]


def test_without_gold_answers_it_says_what_can_be_changed(tmp_path: Path, eldgr: Eldgr) -> None:
    pool = write_pool(tmp_path / "none.jsonl", (row(number, gold=[]) for number in range(4)))
    out = eldgr("bound", str(pool)).out
    line = "│ eldgr     │         — │                   — │           100.00 │              100.00 │              — │"
    assert line in out
    assert "—: no question has a gold answer. What a role can change needs none." in out
    some = write_pool(tmp_path / "some.jsonl", (row(number, **({"gold": []} if number else {})) for number in range(4)))
    assert "or more; this pool has 0." in eldgr("bound", pool, "--worst", "50").out
    assert "Bounds are over the 1 question with a gold answer, of 4." in eldgr("bound", str(some)).out


def test_worst_names_the_widest_rule_that_passes_or_how_many_questions_it_needs(tmp_path: Path, eldgr: Eldgr) -> None:
    """On 60 questions that majority has right, only full authority lets a judge lose any."""
    right = [row(number, answers=("Paris", "Paris", "Nice")) for number in range(60)]
    pool = str(write_pool(tmp_path / "right.jsonl", right))
    out = eldgr("bound", pool, "--worst", "5").out
    passes = "The widest rule that passes is near(2): under it any judge costs at most 5 points on new questions, "
    assert f"{passes}with 95 % confidence." in out
    assert "Tested from narrow to wide: certified, eldgr, near(0), near(1), near(2), judge." in out
    out = eldgr("bound", pool, "--worst", "2").out
    assert "Use majority: no rule is shown to cost at most 2 points on new questions, with 95 % confidence." in out
    assert "passes with 149 distinct questions or more; this pool has 60." in out
    two = json.loads(eldgr("bound", pool, "--worst", "5", "--rules", "eldgr,first", "--json").out)["pools"]["right"]
    assert two["allowed"]["chains"] == [["eldgr"], ["first"]]
    assert (two["allowed"]["passing"], two["allowed"]["needed"]) == ([], 72)  # 60 do not pass at 2.5 %
    assert "Only majority was given" in eldgr("bound", pool, "--worst", "5", "--rules", "majority").out
    out = eldgr("bound", pool, "--worst", "20", "--rules", "majority,judge").out
    assert "Use majority" in out
    assert "The first rule of each chain loses too many questions to pass." in out
    assert "this pool has" not in out  # it is large enough


def test_it_says_how_many_questions_a_gain_needs(eldgr: Eldgr) -> None:
    out = eldgr("plan", "--gain", "2", "--discordant", "6").out
    assert "questions to see +2.00 with power 0.8 at alpha 0.05" in out
    assert "│ 6.00         │     1,244 │      0.8000 │                 50–25 │" in out
    figures = json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json").out)
    assert figures["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert figures["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (figures["wins"] - figures["losses"], figures["wins"] + figures["losses"]) == pytest.approx((24.88, 74.64))
    results = [
        json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json", *more).out)["questions"]
        for more in ((), ("--power", "0.9"), ("--power", "0.9", "--alpha", "0.0125"))
    ]
    assert results == sorted(set(results))  # a smaller alpha and more power need more
    assert eldgr("plan", "--gain", "8", "--discordant", "6.5", code=1).err == (
        "Error: gain=8 is more than discordant=6.5: wins minus losses can't be more than wins and losses together. "
        "Give both in percent of all questions.\n"
    )
    for gain in ("0", "-1", "101", "nan"):
        assert main(["plan", "--gain", gain, "--discordant", "100"]) != 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_plan_that_cannot_be_printed_is_an_error_and_a_closed_pipe_is_not() -> None:
    plan = [*COMMAND, "plan", "--gain", "2", "--discordant", "6"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(plan, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: The plan could not be written: Standard output: No space")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(plan, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
