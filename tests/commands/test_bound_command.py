"""`eldgr bound`: a table a pool, or JSON, from the pool alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from tests.capitals import row, write_pool
from tests.results.pools import ARTIFACTS

RETRIEVAL, ARITHMETIC = (str(ARTIFACTS / f"demo-{task}.jsonl") for task in ("retrieval", "arithmetic"))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["bound", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_it_says_between_what_and_what_each_rule_lies(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, RETRIEVAL, ARITHMETIC)
    assert "demo-retrieval: retrieval, 50 questions: authority bounds, %" in out
    assert "│ eldgr    │ [48.00, 76.00] │      [46.00, 86.00] │            30.00 │               44.00 │" in out
    assert "│ judge    │  [8.00, 86.00] │       [8.00, 86.00] │            86.00 │                0.00 │" in out
    assert "│ eldgr    │ [50.00, 50.00] │              unbounded │             0.00 │              95.00 │" in out
    assert "│ judge    │  [2.50, 92.50] │          [2.50, 92.50] │            92.50 │               0.00 │" in out
    assert out.count("unbounded: a deriver's possible answers are not in the pool.") == 1


def test_json_has_the_figures_of_every_pool(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, RETRIEVAL, ARITHMETIC, "--json"))
    pools = {"demo-retrieval": RETRIEVAL, "demo-arithmetic": ARITHMETIC}
    expected = {name: pool_authority((pool := open_pool(Path(path))).rows(), pool.task) for name, path in pools.items()}
    assert found == {"pools": expected}


def test_the_bounds_are_those_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for settings in (["--certificate", "substring"], ["--homogeneous", "skip"]):
        assert main(["evaluate", RETRIEVAL, "--out", "run", "--fresh", "--quiet", *settings]) == 0
        of_run = json.loads(Path("run/summary.json").read_text())["pools"]["demo-retrieval"]
        found = json.loads(printed(capsys, RETRIEVAL, "--json", *settings))["pools"]["demo-retrieval"]
        assert [found[key] for key in ("bounds", "bounds_any_span")] == [
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


def test_a_rule_of_ones_own_is_bounded_over_all_judges_and_never_too_narrowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bounded_rules.py").write_text(LATE)
    monkeypatch.chdir(tmp_path)
    own = ("--rules", "judge,bounded_rules:late,bounded_rules:trusting")
    out = printed(capsys, RETRIEVAL, ARITHMETIC, *own)
    assert (
        "│ bounded_rules:late     │ [52.00, 52.00] │        not computed │             0.00 │                   — │"
        in out
    )
    assert "not computed: bounds over all spans are available only for the package's rules and certificates." in out
    assert "│ bounded_rules:late     │ [50.00, 50.00] │              unbounded │" in out
    found = json.loads(printed(capsys, RETRIEVAL, *own, "--json"))["pools"]["demo-retrieval"]
    assert found["bounds_any_span"]["bounded_rules:late"] is None
    assert found["can_change"]["bounded_rules:late"] == {"judge": 0.0, "repairer": None}
    for kind in ("bounds", "bounds_any_span", "can_change"):
        assert found[kind]["bounded_rules:trusting"] == found[kind]["judge"]


def test_without_gold_answers_it_says_what_can_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = write_pool(tmp_path / "none.jsonl", (row(number, gold=[]) for number in range(4)))
    out = printed(capsys, str(pool))
    assert "│ eldgr    │         — │                   — │           100.00 │              100.00 │" in out
    assert "—: no question has a gold answer. What a role can change needs none." in out
    some = write_pool(tmp_path / "some.jsonl", (row(number, **({"gold": []} if number else {})) for number in range(4)))
    assert "Bounds are over the 1 question with a gold answer, of 4." in printed(capsys, str(some))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Missing argument 'POOLS...'"),
        (["nowhere.jsonl"], 1, "nowhere.jsonl: no such file"),
        ([RETRIEVAL, RETRIEVAL], 1, "are both named 'demo-retrieval'; rename one of the files"),
        ([RETRIEVAL, "--certificate", "fuzzy"], 2, "'fuzzy' is not one of 'substring', 'token', 'folded'"),
        ([RETRIEVAL, "--rules", "vote"], 1, "rules='vote' is not known; use one of 'first', 'majority', 'judge'"),
        (
            [RETRIEVAL, "--rules", ","],
            2,
            "--rules must name at least one rule; got ','. Give one or more of first, majority, judge, eldgr",
        ),
    ],
    ids=["none", "nowhere", "twice", "fuzzy", "unknown-rule", "no-rule"],
)
def test_a_pool_that_cannot_be_read_is_said_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["bound", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_the_reference_values(pools_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, str(pools_dir / "hotpotqa-reflexion12.jsonl.gz"))
    assert "│ majority │ [58.00, 58.00] │      [58.00, 58.00] │             0.00 │                0.00 │" in out
    assert "│ judge    │ [14.00, 78.00] │      [14.00, 78.00] │            86.00 │                0.00 │" in out
    assert "│ eldgr    │ [58.00, 69.00] │      [58.00, 81.00] │            20.00 │               23.00 │" in out


def test_bounds_need_no_dspy() -> None:
    code = (
        "import sys; from eldgr_dspy.programs.commands import main; code = main(sys.argv[1:]); "
        "assert 'dspy' not in sys.modules; sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "bound", RETRIEVAL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
