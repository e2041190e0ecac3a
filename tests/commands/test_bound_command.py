"""`eldgr bound`: a table a pool, or JSON, from the pool alone."""

import json
from pathlib import Path

from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.pools import open_pool
from tests.capitals import row, write_pool
from tests.commands.installed import Eldgr
from tests.results.demo_pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def test_it_says_between_what_and_what_each_rule_lies(eldgr: Eldgr) -> None:
    out, err = eldgr("bound", RETRIEVAL, ARITHMETIC)
    assert err == ""
    assert "demo-retrieval: retrieval, 50 questions: authority bounds, %" in out
    assert (
        "│ eldgr     │ [48.00, 76.00] │      [46.00, 86.00] │            30.00 │               44.00 │        2 of 50 │"
        in out
    )
    assert (
        "│ judge     │  [8.00, 86.00] │       [8.00, 86.00] │            86.00 │                0.00 │       22 of 50 │"
        in out
    )
    assert "│ eldgr     │ [50.00, 50.00] │          [2.50, 97.50] │             0.00 │              95.00 │" in out
    assert "│ judge     │  [2.50, 92.50] │          [2.50, 92.50] │            92.50 │               0.00 │" in out
    assert out.count("each number that the check of derivations cannot exclude is taken for derivable") == 1


def test_json_has_the_figures_of_every_pool(eldgr: Eldgr) -> None:
    figures = json.loads(eldgr("bound", RETRIEVAL, ARITHMETIC, "--json").out)
    pools = {"demo-retrieval": RETRIEVAL, "demo-arithmetic": ARITHMETIC}
    expected = {name: pool_authority((pool := open_pool(Path(path))).rows(), pool.task) for name, path in pools.items()}
    assert figures == {"pools": expected}


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
    assert (
        "│ bounded_rules:late     │ [52.00, 52.00] │        not computed │             0.00 │                   — │"
        in out
    )
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
    assert (
        "│ eldgr     │         — │                   — │           100.00 │              100.00 │              — │"
        in out
    )
    assert "—: no question has a gold answer. What a role can change needs none." in out
    some = write_pool(tmp_path / "some.jsonl", (row(number, **({"gold": []} if number else {})) for number in range(4)))
    assert "or more; this pool has 0." in eldgr("bound", pool, "--worst", "50").out
    assert "Bounds are over the 1 question with a gold answer, of 4." in eldgr("bound", str(some)).out


def test_the_reference_values(pools_dir: Path, eldgr: Eldgr) -> None:
    out = eldgr("bound", str(pools_dir / "hotpotqa-reflexion12.jsonl.gz")).out
    assert (
        "│ majority  │ [58.00, 58.00] │      [58.00, 58.00] │             0.00 │                0.00 │       0 of 100 │"
        in out
    )
    assert (
        "│ judge     │ [14.00, 78.00] │      [14.00, 78.00] │            86.00 │                0.00 │      44 of 100 │"
        in out
    )
    assert (
        "│ eldgr     │ [58.00, 69.00] │      [58.00, 81.00] │            20.00 │               23.00 │       0 of 100 │"
        in out
    )
    assert "│ at most 2.95 │" in " ".join(out.split())


def test_worst_names_the_widest_rule_that_passes_or_how_many_questions_it_would_take(
    tmp_path: Path, eldgr: Eldgr
) -> None:
    """On 60 questions that majority has right, only full authority lets a judge lose any."""
    right = [row(number, answers=("Paris", "Paris", "Nice")) for number in range(60)]
    pool = str(write_pool(tmp_path / "right.jsonl", right))
    out = eldgr("bound", pool, "--worst", "5").out
    assert (
        "The widest rule that passes is near(2): under it any judge costs at most 5 points on new questions, "
        "with 95 % confidence." in out
    )
    assert "Tested from narrow to wide: certified, eldgr, near(0), near(1), near(2), judge." in out
    out = eldgr("bound", pool, "--worst", "2").out
    assert "Use majority: no rule is shown to cost at most 2 points on new questions, with 95 % confidence." in out
    assert "passes with 149 distinct questions or more; this pool has 60." in out
    two = json.loads(eldgr("bound", pool, "--worst", "5", "--rules", "eldgr,first", "--json").out)["pools"]["right"]
    assert two["allowed"]["chains"] == [["eldgr"], ["first"]]
    assert (two["allowed"]["passing"], two["allowed"]["needed"]) == ([], 72)  # 60 do not pass at 2.5 %
    assert "Only majority was given" in eldgr("bound", pool, "--worst", "5", "--rules", "majority").out


def test_a_pool_that_is_large_enough_and_loses_too_much_is_not_said_to_be_too_small(
    tmp_path: Path, eldgr: Eldgr
) -> None:
    lost = [row(number, answers=("Paris", "Paris", "Nice")) for number in range(60)]
    pool = str(write_pool(tmp_path / "lost.jsonl", lost))
    out = eldgr("bound", pool, "--worst", "20", "--rules", "majority,judge").out
    assert "Use majority" in out
    assert "The first rule of each chain loses too many questions to pass." in out
    assert "this pool has" not in out
