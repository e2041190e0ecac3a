"""The demo pool of choices is what `artifacts/README.md` says of it, row by row, and runs with the heuristic roles."""

import json
from pathlib import Path

import pytest

from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.cases import Case
from tests.house.doc_blocks import demo_rows

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"
POOL = ARTIFACTS / "demo-choice.jsonl"
ROWS = {row.id: row for row in open_pool(POOL).rows()}

# One mark a candidate: y certified, n not, ? inapplicable. Then the candidate whose class is consensus, from 0, `tie`
# where another class has as many votes, and whether consensus is right.
CHOICES = {
    "c01": "nnyn 0 wrong",
    "c02": "yyyy 0 right",
    "c03": "yyyy 0 wrong",
    "c04": "nnnn 0 right",
    "c05": "??y? 0 right",
    "c06": "??y? 0 wrong",
    "c07": "???? 0 right",
    "c08": "??y? 0 right",
    "c09": "nnyn 0 wrong",
    "c10": "yyyn 0 right",
    "c11": "nyny 0 tie wrong",
    "c12": "nnnn 0 wrong",
}


def described(row: Row) -> str:
    """Return what CHOICES says of a row."""
    case = Case(row.to_question())
    marks = (case.certified(candidate.answer) for candidate in row.candidates)
    verdict = "right" if case.type.is_right(case.consensus, row.gold) else "wrong"
    winner = case.vote.classes.index(case.vote.winner)
    return f"{''.join({True: 'y', False: 'n', None: '?'}[mark] for mark in marks)} {winner} " + (
        f"tie {verdict}" if case.vote.tie else verdict
    )


def test_each_row_has_the_votes_and_certificates_that_it_is_meant_to_have() -> None:
    assert {row_id: described(row) for row_id, row in ROWS.items()} == CHOICES


def test_the_readme_says_of_each_consensus_what_is_meant() -> None:
    words = {"y": "certified", "n": "uncertified", "?": "n/a"}
    meant = [(row_id, *_meant(marks)) for row_id, marks in CHOICES.items()]
    assert [*demo_rows("c").items()] == [(row_id, [f"{words[mark]}, {verdict}"]) for row_id, mark, verdict in meant]


def _meant(description: str) -> tuple[str, str]:
    """Return the mark of consensus, and whether it is right."""
    marks, winner, *_, verdict = description.split()
    return marks[int(winner)], verdict


def test_every_row_has_four_candidates_three_passages_and_one_right_option() -> None:
    for row in ROWS.values():
        kind = Case(row.to_question()).type
        assert [candidate.source for candidate in row.candidates] == [f"sample-{n}" for n in (1, 2, 3, 4)]
        assert len(row.evidence) == 3
        assert sum(kind.is_right(option, row.gold) for option in row.options) == 1, row.id


def test_the_heuristic_roles_run_on_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(POOL), "--out", "run", "--quiet"]) == 0
    pool = json.loads(Path("run/summary.json").read_text("utf-8"))["pools"]["demo-choice"]
    assert {rule: round(figures["em"] * 12 / 100) for rule, figures in pool["rules"].items()} == {
        "first": 6, "majority": 6, "certified": 9, "judge": 5, "eldgr": 10,
    }  # fmt: skip
    assert pool["bounds"]["eldgr"] == [50.0, 75.0]
    assert set(pool["bounds_any_span"].values()) == {None}
    shipped = {row["id"]: row for row in map(json.loads, Path("run/decisions.jsonl").read_text("utf-8").splitlines())}
    assert (shipped["c12"]["answer"], shipped["c12"]["branch"]) == ("1854", "repair")
    assert shipped["c06"]["branch"] == "consensus"
