"""The published figures: as the paper prints them, at one with each other, and what follows from their counts."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.paper import published
from benchmarks.paper.paper_tables import agrees, ends_apart, recompute
from benchmarks.paper.published import CORRECTION, LABELS, SELECTIONS, Lead, Selection
from eldgr_dspy.statistics import mcnemar
from eldgr_dspy.words import CHANNELS

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
LEADS = [(selection, against, lead) for selection in SELECTIONS.values() for against, lead in selection.leads.items()]
each_lead = pytest.mark.parametrize(("selection", "against", "lead"), LEADS)
each_selection = pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)


def right(selection: Selection, rule: str) -> int:
    return round(float(selection.scores[rule].em) * selection.n / 100)


@pytest.fixture(scope="module")
def paper() -> str:
    files = sorted(SEEDS.glob("*.txt"))
    if not files:
        pytest.skip(f"no text of the paper in {SEEDS}")
    text = files[0].read_text(encoding="utf-8")
    return re.sub(r"\\mathbf|\\textbf|\\[, ]|[${}\s]", "", text)


def test_the_nine_contrasts_follow_from_their_counts_to_every_printed_digit() -> None:
    leads = [(selection.n, lead) for selection in SELECTIONS.values() for lead in selection.leads.values()]
    results = [(recompute(lead, n), lead, n) for n, lead in leads]
    assert len(results) == 9
    assert all(agrees(again.delta, lead.delta) and agrees(again.p, lead.p) for again, lead, _ in results)
    assert sorted(end for one in results for end in ends_apart(*one)) == [0] * 17 + [1]  # one end of eighteen


@each_lead
def test_a_lead_is_the_difference_of_the_scores_and_no_other_counts_give_it(
    selection: Selection, against: str, lead: Lead
) -> None:
    assert right(selection, "eldgr") - right(selection, against) == lead.wins - lead.losses
    n = selection.n
    fitting = [
        (losses + ahead, losses)
        for ahead in range(n + 1)
        if agrees(100 * ahead / n, lead.delta)
        for losses in range((n - ahead) // 2 + 1)
        if agrees(mcnemar(losses + ahead, losses), lead.p)
    ]
    assert fitting == [(lead.wins, lead.losses)]


@each_selection
def test_every_score_is_a_whole_number_of_questions_and_full_authority_a_difference_of_scores(
    selection: Selection,
) -> None:
    assert selection.full_authority == selection.scores["judge"].em - selection.scores["majority"].em
    assert list(selection.scores) == list(LABELS)
    for rule, score in selection.scores.items():
        assert agrees(100 * right(selection, rule) / selection.n, score.em)
        assert (score.f1 is None) is (selection.task == "arithmetic")


def test_audit_seconds_ablations_and_legacy_drops_add_up() -> None:
    confirmation = SELECTIONS["confirmation"]
    audit, lead = confirmation.audit or {}, confirmation.leads["majority"]
    assert audit["preserved"] + audit["judge_overrides"] + audit["repair_overrides"] == confirmation.n
    assert (audit["incorrect_to_correct"], audit["correct_to_incorrect"]) == (lead.wins, lead.losses)
    assert [selection.audit for selection in SELECTIONS.values()] == [None, None, audit]
    judge, verifier, both = confirmation.seconds
    assert (judge or 0) + (verifier or 0) == both == Decimal("4.68")

    full, grpo, *_ = CORRECTION
    assert [*CORRECTION] == [full, grpo, *(f"without {channel}" for channel in CHANNELS)]
    for name, row in CORRECTION.items():
        over = [None if one == name else int(row.em - CORRECTION[one].em) for one in (full, grpo)]
        assert [row.over_full, row.over_grpo] == over
    first = SELECTIONS["gsm8k"].scores["first"].em  # the abstract calls the first candidate GRPO
    assert tuple(round(first - end) for end in reversed(published.LEGACY_DROPS)) == published.LEGACY_BELOW


@given(st.decimals(-100, 100, places=2))
def test_what_is_printed_agrees_with_itself_and_with_nothing_a_digit_away(figure: Decimal) -> None:
    value = abs(figure)
    assert agrees(float(value), value)
    assert not agrees(float(value) + 0.01, value)


@each_selection
def test_every_score_stands_in_the_paper(selection: Selection, paper: str) -> None:
    for score in selection.scores.values():
        sign = "&" if selection.n == 30 else "/"
        assert f"&{score.em}" + ("" if score.f1 is None else f"{sign}{score.f1}") in paper


@each_lead
def test_every_lead_stands_in_the_paper(selection: Selection, against: str, lead: Lead, paper: str) -> None:
    low, high = lead.interval
    if selection.n == 30:
        row = f"&{-lead.delta}[{-high},{-low}],p={lead.p}"
    else:
        row = f"&{lead.delta:+}[{low},{high}]&{str(lead.p).removeprefix('0')}"
    assert row in paper
    counts = {17: "17pairedwinsand3losses", 7: "sevenEMwinsandoneloss"}
    assert (lead.counts == "printed") is (counts.get(lead.wins, "no such words") in paper)


def test_every_other_figure_and_label_stands_in_the_paper(paper: str) -> None:
    replies = "+1.0ppon500GSM8K +0.34EMon300HotpotQA 10pointsbelowjudge-freemajority 1.77sand2.91s 4.68stotal".split()
    replies += ["1.36sperGSM8K", "4.99sperHotpotQA", "352of500homogeneous", "172of300HotpotQA", "44.6--47.4"]
    replies += ["(55.6\\%)", "8--11ppbelowGRPO", "p<3.4\\times10^-6"]
    replies += ["majorityansweron22", "judgechoiceon4", "repairon4", "addingtwoexactmatches", "deepseek-r1:7b"]
    assert [one for one in replies if one not in paper] == []
    others = {published.AUDIT, published.AUTHORITY, published.ABLATION, published.LEGACY}
    places = {selection.table for selection in SELECTIONS.values()} | others
    assert all(f"\\label{place}" in paper for place in places)
    for row in CORRECTION.values():
        over = (row.over_full, row.over_grpo)
        deltas = "&".join("," if delta is None else f"{delta:+}" if delta else "0" for delta in over)
        assert f"&{row.em}/{row.f1}&{deltas}" in paper
