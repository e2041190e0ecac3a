"""The baselines that a judge must beat: by hand, by enumeration, and on real pools."""

import gzip
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from operator import getitem
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import exact_match
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import RULES, drive
from eldgr_dspy.figures.baselines import HALVES, Chances, baselines_of, chances_of
from eldgr_dspy.figures.distinct import Column
from eldgr_dspy.figures.results.baseline_fields import BaselineName
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.splitting import is_confirmation
from eldgr_dspy.tables.judges import baselines_table, usefulness
from eldgr_dspy.words import Task
from tests.case_tables import agrees, each_case
from tests.results.audited import RETRIEVAL, arithmetic, figures, retrieval
from tests.results.demo_pools import ARTIFACTS

SILENT = Abstention("silent")
DUBAI = ("Dubai", "Dubai", "Doha", "Lusail")  # Dubai is nowhere in the evidence, Doha and Lusail are


def case_of(answers: Sequence[str | None], text: str = "Q?") -> Case:
    return Case(Question(text, "retrieval", tuple(answers), (), (Passage("", "Doha is north of Lusail."),)))


def figures_of(rows: Sequence[Any], task: Task = "retrieval", **how: Any) -> Any:
    """The baselines of questions, each a case, its gold answers, the sources, and what judges said."""
    golden = [row for row in rows if row[1]]
    chances: Column[Chances] = Column(chances_of(*row) for row in golden)
    return baselines_of(task, chances.units(np.arange(len(golden))), **how)  # each question by itself


def results_of(cases: Sequence[Any], sources: Sequence[str] = ()) -> Any:
    """The scores of the baselines on questions, each a case and its gold answer."""
    return figures_of([(case, [gold], sources, {}) for case, gold in cases])["scores"]


def scores(cases: Sequence[Any], sources: Sequence[str] = ()) -> Any:
    return {name: of["em"] for name, of in results_of(cases, sources).items()}


@each_case("results", "baselines by hand")
def test_a_baseline_scores_what_is_counted_by_hand(cases: list[Any], expected: dict[str, Any]) -> None:
    """Of Dubai (2 votes), Doha and Lusail, Doha is right. The lock lets Doha and Lusail ship, and not Dubai."""
    em = scores([(case_of(answers), gold) for answers, gold in cases])
    thirds = {name: pytest.approx(value) if value % 25 else value for name, value in expected.items()}
    assert {name: em[name] for name in expected} == thirds
    nobody = scores([(case_of([None, "  "]), "Doha")])
    assert {nobody[name] for name in {*get_args(BaselineName)} - {"best_source"}} == {0.0}


def in_half(half: bool, number: int) -> str:
    """A question of one of the two halves, and no other with the same number."""
    texts = (f"Question {number}.{attempt}?" for attempt in range(99))
    return next(text for text in texts if is_confirmation(text, share=0.5, seed=HALVES) is half)


def test_the_best_source_of_one_half_is_scored_on_the_other() -> None:
    # A is best on one half (2 of 2) and has 0 of 2 on the other, where B has 1 of 2; B has 0 of 2 on the first.
    rows = [(False, "A"), (False, "A"), (True, "B"), (True, "neither")]
    cases = [
        (case_of(["yes" if right == source else "no" for source in "AB"], in_half(half, number)), "yes")
        for number, (half, right) in enumerate(rows)
    ]
    of = results_of(cases, ["A", "B"])
    assert (of["best_source"]["em"], of["best_source"]["sources"]) == (0.0, ["A", "B"])
    cases = [(case_of(["Doha", "Rome"], text), "Doha") for text in ("Where is it?", "where  IS it?")]
    of = results_of(cases, ["A", "B"])
    assert (of["best_source"]["em"], of["best_source"]["reason"]) == (None, "all questions are in one half")
    halves = [(case_of(["Doha", "Rome", "Oslo"], in_half(half, 0)), "Doha") for half in (False, True)]
    assert scores(halves, sources=["A", "A", "B"])["best_source"] == 50.0


@each_case("results", "no best source")
def test_without_the_same_sources_on_every_question_there_is_no_best_one(sources: Any, reason: str) -> None:
    reply = figures_of([(case_of(["Doha", "Rome"]), ["Doha"], of, {}) for of in sources])["scores"]
    assert reply["best_source"]["reason"] == reason
    assert reply["majority"]["em"] == 100.0


def judge_all(questions: list[Any], times: int = 1, task: Task = "retrieval", **how: Any) -> Any:
    """The baselines of questions that stand so often, each with its answers, gold answer and replies."""
    cases = {"retrieval": case_of, "arithmetic": lambda answers, text: arithmetic(answers)}
    texts = [f"Q{number}?" for number in range(times)]
    rows = [(cases[task](answers, text), [gold], (), of) for text in texts for answers, gold, of in questions]
    return figures_of(rows, task, **how)


@each_case("results", "judges beside the baselines", verdict=Verdict, abstention=Abstention)
def test_a_judge_is_useful_if_it_knows_more_than_the_evidence_on_enough_questions_where_it_is_asked(
    pool: dict[str, Any], expected: dict[str, Any]
) -> None:
    figures: Any = {"task": pool.get("task", "retrieval"), "rules": {}, "baselines": judge_all(**pool)}
    notes = baselines_table("pool", figures).notes
    result = {**figures["baselines"], "usefulness": [*usefulness(figures)], "last note": [None, *notes][-1]}
    for path, value in expected.items():
        assert agrees(reduce(getitem, path.split("/"), result), value), path


def test_without_certificates_nothing_that_needs_them_is_scored() -> None:
    of = judge_all([(DUBAI, "Doha", {"judge": Verdict(2)})], withheld=True)
    names = {name for name, score in of["scores"].items() if score["reason"] and "certificates" in score["reason"]}
    assert names == {"certified", "random_candidate_locked", "random_class_locked"}


answers = st.lists(st.sampled_from(["Dubai", "dubai", "Doha", "Lusail", "Rome", "yes", None]), min_size=1, max_size=6)
golds = st.sampled_from(["Dubai", "Doha", "Lusail", "yes"])


def right(case: Case, rule: str, judge: Any, gold: str) -> bool:
    answer = drive(RULES[rule](case), lambda role: judge if role == "judge" else SILENT).answer
    return exact_match(answer, [gold])


@given(answers, golds)
def test_a_random_judge_is_the_mean_of_all_judges(pool: list[str | None], gold: str) -> None:
    case, em = case_of(pool), scores([(case_of(pool), gold)])
    voters = [index for index, key in enumerate(case.vote.classes) if key is not None]
    firsts = [index for index in voters if case.vote.classes.index(case.vote.classes[index]) == index]
    for rule, suffix in (("judge", ""), ("eldgr", "_locked")):
        for kind, indices in (("random_candidate", voters), ("random_class", firsts)):
            every = [right(case, rule, Verdict(index), gold) for index in indices] or [right(case, rule, SILENT, gold)]
            assert em[kind + suffix] == float(100 * Fraction(sum(every), len(every)))


@given(st.lists(st.sampled_from(["Dubai", "Doha", "Rome"]), min_size=1, max_size=5), golds)
def test_uniform_ties_are_the_mean_over_all_orders(pool: list[str], gold: str) -> None:
    orders = [right(case_of(order), "majority", SILENT, gold) for order in permutations(pool)]
    assert scores([(case_of(pool), gold)])["majority_uniform_ties"] == float(100 * Fraction(sum(orders), len(orders)))


@given(st.data(), answers, golds)
def test_the_order_of_candidates_does_not_matter_to_uniform_draws(data: Any, pool: list[Any], gold: str) -> None:
    one, other = scores([(case_of(pool), gold)]), scores([(case_of(data.draw(st.permutations(pool))), gold)])
    names = ("majority_uniform_ties", "random_candidate", "random_class")
    assert [one[name] for name in names] == [other[name] for name in names]


def test_the_table_has_the_baselines_that_are_no_rule_of_the_run_and_dashes_without_gold_answers() -> None:
    pool = figures("retrieval", RETRIEVAL)
    table = baselines_table("p", pool)
    assert (table.title, table.headers) == ("p: what a judge must beat", ("baseline", "EM %"))
    assert [row[0] for row in table.rows][:2] == ["best single source", "majority, ties drawn uniformly"]
    alone = baselines_table("p", figures("retrieval", RETRIEVAL, ("eldgr",)))
    assert {"first", "majority", "certified"} <= {row[0] for row in alone.rows}
    table = baselines_table("p", figures("retrieval", [(retrieval(DUBAI), [], {}, ())]))
    assert {row[1] for row in table.rows} == {"—"}
    assert table.notes[0] == "—: no question has a gold answer."
    figures_ = figures_of([(case_of(DUBAI), [], (), {"judge": Verdict(2)})])
    assert {(of["em"], of["reason"]) for of in figures_["scores"].values()} == {(None, "no question has a gold answer")}
    assert figures_["judges"] == {}


def test_a_run_prints_them_and_its_files_hold_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(ARTIFACTS / "demo-retrieval.jsonl"), "--out", str(tmp_path / "run")]) == 0
    assert "demo-retrieval: what a judge must beat" in capsys.readouterr().out
    of = json.loads((tmp_path / "run/summary.json").read_text("utf-8"))["pools"]["demo-retrieval"]
    assert of["baselines"]["scores"]["certified"]["em"] == of["rules"]["certified"]["em"]
    assert of["baselines"]["judges"]["judge"]["alone"]["em"] == of["rules"]["judge"]["em"]
    page = (tmp_path / "run/report.html").read_text("utf-8")
    assert "what a judge must beat" in page
    assert "random judge locked" in page
    for form in ("markdown", "latex", "json"):
        assert main(["report", str(tmp_path / "run"), "--format", form]) == 0
        assert ("random judge locked" if form != "json" else "random_class_locked") in capsys.readouterr().out


def test_real_judges_that_never_saw_the_candidates_are_not_useful(pools_dir: Path, tmp_path: Path) -> None:
    """nq-openqa10 with GPT-4's closed-book answers: certified majority is better, with or without the lock."""
    recording = tmp_path / "gpt4.jsonl"
    recording.write_bytes(gzip.decompress((pools_dir / "judges/nq-openqa10.gpt4.jsonl.gz").read_bytes()))
    reply = {entry.id: entry for entry in read_journal(recording) if entry.role == "judge"}
    rows = []
    for row in open_pool(pools_dir / "nq-openqa10.jsonl.gz").rows():
        case, sources = Case(row.to_question()), [candidate.source for candidate in row.candidates]
        rows.append((case, row.gold, sources, {"judge": journaled_reply(case.question, reply[row.id])}))
    of = figures_of(rows)
    em = {name: score["em"] for name, score in of["scores"].items()}
    assert em["majority"] == pytest.approx(59.09, abs=0.005)
    assert em["certified"] == pytest.approx(67.6, abs=0.3)
    assert 61 <= em["random_candidate_locked"] <= em["random_class_locked"] <= 64
    use = of["judges"]["judge"]
    assert use["alone"]["em"] == pytest.approx(62.40, abs=0.005)
    assert (use["alone"]["useful"], use["locked"]["useful"]) == (False, False)
    assert use["locked"]["over_certified"]["ci"][1] < 0 < use["locked"]["over_random"]["ci"][0]
