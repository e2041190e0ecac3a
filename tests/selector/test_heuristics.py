"""The heuristic roles have the faces of the LM-backed ones, ask no LM, and return what the core accepts."""

import asyncio
import inspect
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, exact_match, numeric_equal
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.heuristics import ExtractiveRepairer, LexicalJudge, SilentDeriver
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.rule.consultations import Abstention, Repair, Verdict, show_candidate, show_passage
from eldgr_dspy.rule.replies import read_reply

QUESTION = "Which stadium hosted the 1998 final?"
EVIDENCE = [
    show_passage("Saint-Denis", "The Stade de France hosted the 1998 final."),
    show_passage("Wembley", "It was rebuilt in 2007."),
]
ASPECTS = {"logic", "fact", "epist", "info", "triang", "adv", "min", "scalar"}
texts = st.text(alphabet=st.characters(), max_size=40)


def texts_of(row: Row) -> tuple[list[str], list[str]]:
    evidence = [show_passage(passage.title, passage.text) for passage in row.evidence]
    return evidence, [show_candidate(candidate.text, candidate.answer) for candidate in row.candidates]


TWINS = {LexicalJudge: Judge, ExtractiveRepairer: Repairer, SilentDeriver: Deriver}


@pytest.mark.parametrize(("heuristic", "twin"), TWINS.items())
def test_an_heuristic_role_takes_what_its_twin_takes(heuristic: Any, twin: Any, monkeypatch: Any, caplog: Any) -> None:
    """No predictor, no state: there is nothing for an optimizer to change and nothing to save. And law 18 holds."""
    role = heuristic()
    signature = inspect.signature(role.forward)
    assert (signature, role.predictors(), role.dump_state()) == (inspect.signature(twin().forward), [], {})
    inputs: dict[str, Any] = {"question": QUESTION, "evidence": EVIDENCE, "candidates": ["Wembley", "Stade de France"]}
    fields = {name: inputs[name] for name in signature.parameters}
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)  # DSPy warns of a `forward` that is called
    caplog.clear()
    assert (asyncio.run(role.acall(**fields)).toDict(), caplog.text) == (role(**fields).toDict(), "")


answers = texts.filter(lambda text: answer_class(text, "retrieval") is not None)  # "\x1b" shows nothing


@given(texts, st.lists(texts, max_size=3), st.lists(answers, min_size=1, max_size=4))
def test_the_core_accepts_every_verdict_of_the_judge(question: str, evidence: list[str], candidates: list[str]) -> None:
    result = LexicalJudge()(question=question, evidence=evidence, candidates=candidates)
    reply = read_reply("judge", result.toDict(), candidates, len(evidence))
    if isinstance(reply, Verdict):
        assert reply.scores is not None
        assert reply.preferred == reply.scores.index(max(reply.scores))
    else:
        assert reply == Abstention("there is no evidence, and no candidate states an equation")


def test_the_judge_prefers_the_best_supported_candidate() -> None:  # hazards 68, 1: the earliest
    role: Any = LexicalJudge()
    judge = partial(role, question=QUESTION, evidence=EVIDENCE)
    for candidates, preferred in ((["Wembley", "Stade de France"], 1), (["Anfield", "Celtic Park"], 0)):
        result = judge(candidates=candidates)
        assert result.preferred == preferred and "no LM was asked" in result.judge_rationale
    assert judge(candidates=[]).toDict() == {"abstained": "there is no candidate to judge"}


@given(texts, st.lists(st.tuples(texts, texts), max_size=4))
def test_the_core_accepts_every_repair_and_it_is_in_its_passage(question: str, passages: list[tuple[str, str]]) -> None:
    result = ExtractiveRepairer()(question=question, evidence=[show_passage(*passage) for passage in passages])
    reply = read_reply("repairer", result.toDict(), [], len(passages))
    if isinstance(reply, Repair):
        assert reply.passage is not None
        text = show_passage(*passages[reply.passage])  # of which the first line may be that of a text
        assert reply.answer in text


def test_aspects_that_words_cannot_measure_are_none_and_a_repair_is_certified() -> None:
    repairer = ExtractiveRepairer()
    result = repairer(question=QUESTION, evidence=EVIDENCE)
    assert (result.repaired_answer, result.repair_passage) == ("Stade de France", 0)
    assert certify(result.repaired_answer, [Passage("", EVIDENCE[0])]).certified
    for question, why in (
        ("Is it old?", "no span answers a question for yes, no or one of its own words"),
        ("Who?", "no span of the shape asked for stands near words of the question"),
    ):
        assert repairer(question=question, evidence=EVIDENCE).toDict() == {"abstained": why}
    assert SilentDeriver()(question="1 + 1?").toDict() == {"abstained": "the heuristic deriver derives nothing"}
    [one] = LexicalJudge()(question=QUESTION, evidence=EVIDENCE, candidates=["Wembley"]).assessments
    assert set(one) == ASPECTS
    assert {name for name, value in one.items() if value is None} == {"logic", "epist", "info", "adv", "min"}
    [one] = LexicalJudge()(question="1 + 1?", evidence=[], candidates=["1 + 1 = 2\nFinal answer: 2"]).assessments
    assert {name for name, value in one.items() if value is not None} == {"logic", "scalar"}


def test_on_real_pools_the_judge_beats_the_first_candidate_and_repairs_are_verbatim(pools_dir: Path) -> None:
    judge, right, first, n = LexicalJudge(), 0, 0, 300
    for row in open_pool(pools_dir / "gsm8k-openai4.jsonl.gz").rows(n):
        _, candidates = texts_of(row)
        result = judge(question=row.question, evidence=[], candidates=candidates).toDict()
        right += numeric_equal(row.candidates[result.get("preferred", 0)].answer, row.gold)
        first += numeric_equal(row.candidates[0].answer, row.gold)
    assert right > first
    right = first = 0
    for row in open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz").rows():
        evidence, candidates = texts_of(row)
        preferred = LexicalJudge()(question=row.question, evidence=evidence, candidates=candidates).preferred
        right += exact_match(row.candidates[preferred].answer, row.gold)
        first += exact_match(row.candidates[0].answer, row.gold)
        repair = ExtractiveRepairer()(question=row.question, evidence=evidence).toDict()
        if "abstained" not in repair:
            assert repair["repaired_answer"] in row.evidence[repair["repair_passage"]].text
    assert right > first == 32
