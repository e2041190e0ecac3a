"""A judge that needs what a pool does not state has no result: dashes and the reason, however it is read."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.formatting import UNDEFINED
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.judges.counting_judges import OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.settling import decide_again
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.tables.judges import judges_table
from eldgr_dspy.tables.pool import paper_table
from tests.capitals import drop_times, row
from tests.finished_runs import finished_run
from tests.selecting import SILENT, selector_of

N = 12
LACKS = {"prm": "the pool states no score 'prm'", "drm": "the pool states no log-probabilities"}
FIT = ("cisc", "last", "bcrl", "part")


def last(votes: Ballot) -> int:
    return len(votes.answers) - 1


def judges(*names: str) -> dict[str, Any]:
    table: Mapping[str, Any] = {
        "cisc": WeightedVote("cisc:0.1"), "last": OwnSelector(last), "bcrl": WeightedVote("bcrl_max"),
        "part": WeightedVote("best_of_n:part"), "prm": WeightedVote("best_of_n:prm"), "drm": DimensionalSelector(),
    }  # fmt: skip
    return {name: table[name] for name in names or table}


def rows() -> Iterator[dict[str, Any]]:
    """Consensus is Nice, which is right on nine of twelve questions; the evidence certifies Paris alone.

    All candidates have confidences; `part` is stated of all on six questions, of one on one, and of none on the others.
    """
    for number in range(N):
        gold = ["Paris" if number % 4 == 3 else "Nice"]
        record = row(number, answers=("Nice", "Nice", "Oslo", "Paris"), gold=gold)
        for index, (candidate, share) in enumerate(zip(record["candidates"], (0.2, 0.1, 0.9, 0.3), strict=True)):
            has_score = number < 6 or (number == 6 and index == 0)
            candidate |= {"confidence": share} | ({"scores": {"part": share}} if has_score else {})
        yield record


def run(folder: Path, *names: str, selector: Selector | None = None, **plan: Any) -> Any:
    """The figures of a run of these judges, or of all."""
    plan = {"judges": judges(*names), **plan}
    out, _ = finished_run(folder, rows=rows(), selector=selector or selector_of(SILENT), **plan)
    return json.loads((out / "summary.json").read_text("utf-8"))["pools"]["capitals"]


@pytest.fixture(scope="module")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run of all judges, and its figures; tests only read it."""
    folder = tmp_path_factory.mktemp("inapplicable")
    return folder / "run", run(folder)


def test_every_figure_of_the_judge_is_undefined_and_the_reason_is_stated_in_each_place(
    full_run: tuple[Path, Any],
) -> None:
    directory, pool = full_run
    assert {name: one["lacks"] for name, one in pool["judges"].items()} == {**dict.fromkeys(FIT), **LACKS}
    assert pool["withheld"] == {f"{rule}[{name}]": {"judge": N} for rule in ("judge", "eldgr") for name in LACKS}
    assert not pool["withheld"].keys() & pool["rules"].keys()
    assert not any("judge[" in remark for remark in pool["remarks"])  # nor is it said that replies cannot be used
    for name in LACKS:
        judge = pool["judges"][name]
        assert (judge["asked"], judge["abstained"]) == (N, N)
        for figure in ("alone", "locked", "delta", "worst_alone", "worst_locked", "audit", "decided"):
            assert judge[figure] is None, figure
    labels = [f"{rule}[{name}]" for rule in ("judge", "eldgr") for name in LACKS]
    assert [one["against"] for one in pool["contrasts"]] == [f"judge[{name}]" for name in FIT]
    for figures in (pool["bounds"], pool["bounds_any_span"], pool["price"]):
        assert [figures[label] for label in labels if figures.get(label) is not None] == []
    assert pool["bounds"]["judge[cisc]"] is not None
    for name, why in LACKS.items():
        for use in pool["baselines"]["judges"][f"judge[{name}]"].values():
            assert (use["em"], use["useful"], use["reason"]) == (None, None, why)
    # It prefers Oslo where it prefers any, on 0 to 5, and abstains on six; consensus is right on 6, 8, 9 and 10.
    judge = pool["judges"]["part"]
    assert (judge["lacks"], judge["asked"], judge["abstained"], judge["failed"]) == (None, N, 6, 0)
    assert judge["alone"] == pytest.approx(100 * 4 / N)
    alone: Any = judges_table("capitals", pool)
    for name, why in LACKS.items():
        *figures, gold, logprobs = row_of(alone, name)[1:]
        assert set(figures) == {UNDEFINED}
        assert (gold, logprobs) == ("false", "true" if name == "drm" else "false")
        assert f"{name} does not apply: {why}." in alone.notes
        main = paper_table("capitals", pool)
        assert set(row_of(main, f"judge[{name}]")[1:]) == {UNDEFINED}
        assert f"judge[{name}] is not applicable: {why}." in main.notes
    assert UNDEFINED not in row_of(alone, "cisc")
    assert row_of(alone, "last")[-2:] == (UNDEFINED, UNDEFINED)
    assert "prm does not apply: the pool states no score" in (directory / "report.html").read_text()
    again: Any = decide_again(read_run(directory), ["near(2)"]).figures["capitals"]
    for name in (*FIT, *LACKS):
        assert {**again["judges"][name], "decided": None} == {**pool["judges"][name], "decided": None}
    assert again["withheld"].keys() == {*pool["withheld"], *(f"near(2)[{name}]" for name in LACKS)}
    assert [one["p_holm"] for one in again["contrasts"]] == [one["p_holm"] for one in pool["contrasts"]]


def row_of(table: Any, name: str) -> tuple[str, ...]:
    return next(tuple(cells) for cells in table.rows if cells[0] == name)


def test_a_positioned_judge_has_a_p_and_is_not_in_the_family(full_run: tuple[Path, Any], tmp_path: Path) -> None:
    whole, without = (
        {one["against"]: (one["p"], one["p_holm"]) for one in of["contrasts"]}
        for of in (full_run[1], run(tmp_path, "cisc", "last", "part"))
    )
    # Alone, cisc loses the nine questions that consensus has right, and part five of them; last prefers what ships.
    assert without == {
        "judge[cisc]": (2 / 2**9, 3 * 2 / 2**9), "judge[part]": (2 / 2**5, 2 * 2 / 2**5), "judge[last]": (1.0, 1.0),
    }  # fmt: skip
    assert whole == without | {"judge[bcrl]": (2 / 2**9, None)}
    table: Any = judges_table("capitals", full_run[1])
    assert row_of(table, "bcrl")[4] == UNDEFINED
    assert any("not rerun" in note and "bcrl and drm" in note for note in table.notes)


def test_a_resumed_run_says_the_same_and_asks_nobody(full_run: tuple[Path, Any], tmp_path: Path) -> None:
    first = run(tmp_path)
    old = (tmp_path / "run" / "journal.jsonl").read_bytes()
    assert drop_times(run(tmp_path)) == drop_times(first) == drop_times(full_run[1])
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().count(b'"role": "judge"') == old.count(b'"role": "judge"')


def test_replayed_it_says_the_same_except_what_judges_are_made_of(full_run: tuple[Path, Any], tmp_path: Path) -> None:
    directory, before = full_run
    others = {name: Judge() for name in (*FIT, *LACKS)}
    again = run(tmp_path, judges=others, replay=directory / "journal.jsonl", selector=Selector())
    assert again["withheld"] == before["withheld"]
    for name in (*FIT, *LACKS):
        judge, was = again["judges"][name], before["judges"][name]
        assert [judge[fact] for fact in ("gold_in_training", "logprobs", "positioned")] == [None] * 3
        assert {k: judge[k] for k in ("lacks", "alone", "locked", "asked", "abstained")} == {
            k: was[k] for k in ("lacks", "alone", "locked", "asked", "abstained")
        }
    table: Any = judges_table("capitals", again)
    assert all(cells[-2:] == (UNDEFINED, UNDEFINED) for cells in table.rows)
    assert any("the run or the judge does not state it" in note for note in table.notes)


def test_a_judge_that_is_added_is_the_only_one_that_is_asked(tmp_path: Path) -> None:
    calls: list[str] = []

    def judge(name: str) -> OwnSelector:
        def choose(votes: Ballot) -> int:
            calls.append(name)
            return 0

        return OwnSelector(choose)

    first = {"one": judge("one"), **judges("prm")}
    run(tmp_path, judges=first)
    assert calls == ["one"] * N
    result = run(tmp_path, judges={**first, "two": judge("two"), **judges("drm")})
    assert calls == ["one"] * N + ["two"] * N
    assert {name: one["lacks"] for name, one in result["judges"].items()} == {"one": None, "two": None, **LACKS}


def test_it_does_not_count_as_an_unusable_reply(tmp_path: Path) -> None:
    result = run(tmp_path, "prm", "drm", max_abstentions=0)
    assert {name: one["lacks"] for name, one in result["judges"].items()} == LACKS
