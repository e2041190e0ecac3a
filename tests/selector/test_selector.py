"""The selector decides the same however it is called and asks nobody in vain; a scorer ranks inside a stratum alone."""

import asyncio
import copy
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Choices, Settings
from tests.case_tables import each_case
from tests.dates import TYPE_LIST
from tests.laws.slips_of_selectors import Wrapper
from tests.refusing import refuses
from tests.scenes import ABSTAINS, CONTESTED, PENS, SCORES, SCRIPTS, SETTLED, SILENT, WORDS, repair, verdict
from tests.scorers import AsyncRewards, Rewards, table_of
from tests.selecting import (
    each_way,
    evaluating,
    example_of,
    pick,
    right,
    roles_of,
    saying,
    select_acall,
    select_sync,
    selector_of,
)


def test_a_decision_comes_with_its_witness_and_always_asks_every_role_for_the_same() -> None:
    pred = pick(saying(verdict(2)))
    assert (pred.certified, pred.consensus, pred.preference, pred.repair) == (True, "Dubai", 2, None)
    assert (pred.witness["passage"], pred.witness["text"], pred.witness["start"]) == (0, "Doha", 0)
    assert (pred.tie, pred.consulted, pred.abstentions) == (False, ["judge"], {})
    assert (sorted(pred.ranking), pred.witness["flags"]) == ([0, 1, 2], [])
    pred = pick(saying(verdict(0)), inputs={**CONTESTED, "candidates": ["Dubai", "Manama", "Doha"]})
    assert (pred.answer, pred.tie) == ("Dubai", True)  # hazards 8 and 9: the earliest ships
    candidates = [dspy.Prediction(response=text) for text in CONTESTED["candidates"]]
    pred = pick(saying(verdict(2)), inputs={**CONTESTED, "candidates": candidates}, answer_field="response")
    assert pred.response == pred["response"] == pred.answer == "Doha"
    refuses(ValueError, "No LM is loaded", Selector(), **CONTESTED)
    for consult, roles in (("lazy", ["judge"]), ("always", ["judge", "repairer"])):
        lm = saying(verdict(2), repair("Persian Gulf"))
        pred = pick(lm, consult=consult)
        assert (pred.answer, pred.branch, roles_of(lm)) == ("Doha", "judge", roles)


@each_case("selector", "what ships, why, and who is asked", **WORDS)
def test_only_roles_that_matter_are_asked(inputs: Any, replies: Any, decision: list[Any], roles: list[str]) -> None:
    lm = saying(**replies)
    pred = pick(lm, inputs=inputs)
    assert [pred.answer, pred.branch, pred.reason, pred.certified] == decision
    assert pred.consulted == roles_of(lm) == roles


@each_case("selector", "nobody is asked", **WORDS)  # hazards 1 and 2
def test_nobody_is_asked_where_nothing_can_change(options: dict[str, Any], inputs: dict[str, Any], reason: str) -> None:
    lm = saying(verdict(2))
    pred = pick(lm, inputs=inputs, **options)
    assert lm.requests == []
    assert (pred.branch, pred.reason, pred.consulted, pred.answer) == ("consensus", reason, [], pred.consensus)
    assert pred.answer is not None or inputs["candidates"] == []


@pytest.mark.parametrize("candidates", [[None, None], ["", " "], [{"answer": None}, "\n"]])
def test_a_pool_without_answers_may_still_be_repaired(candidates: Any) -> None:  # hazard 5
    inputs = {**CONTESTED, "candidates": candidates}
    assert pick(saying(repairer=repair("Doha")), inputs=inputs).answer == "Doha"
    silent = pick(saying(), inputs=inputs)
    assert (silent.answer, silent.reason, silent.consensus) == (None, "no_answers", None)


@pytest.mark.parametrize("kind", ["short", "number"])
def test_the_answer_type_may_be_declared_for_one_call(kind: str) -> None:
    other = {"short": "number", "number": "short"}[kind]
    inputs = {**CONTESTED, "candidates": ["35", "35", "36"], "evidence": ["There are 36 pens."]}
    select, lm = Selector(answer=other), saying(verdict(0))
    with dspy.context(lm=lm):
        select(**inputs, answer=kind)
        select(**inputs)
    pair = ["judge", "repairer"]
    assert roles_of(lm) == ([*pair, "deriver"] if kind == "short" else ["deriver", *pair])


@pytest.mark.parametrize("answer", ["", "trivia", [], 0, "retrieval", "arithmetic"])
def test_an_answer_type_has_one_name_and_another_is_refused(answer: Any) -> None:
    expected = f"^{re.escape(f'answer must be one of {TYPE_LIST}; got {answer!r}')}"
    refuses(ArgumentError, expected, Selector(), **{**SETTLED, "answer": answer})
    if isinstance(answer, str):
        refuses(ArgumentError, expected, Selector, answer=answer)


@each_way
@pytest.mark.parametrize(("inputs", "reply"), SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("timeout", [None, 60])
def test_every_way_to_call_decides_and_asks_the_same(call: Any, inputs: Any, reply: Any, timeout: Any) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(timeout=timeout), inputs).toDict()
    assert fields == pick(reference, inputs=inputs).toDict() == json.loads(json.dumps(fields))
    assert lm.requests == reference.requests


@pytest.mark.parametrize("in_threads", [True, False])
def test_questions_that_are_under_way_at_once_are_not_mixed_up(in_threads: bool) -> None:
    """The judge prefers Doha in odd questions and Dubai in even ones; a scorer goes by the length, which differs."""

    def by_number(request: Any) -> Any:
        odd = "number 1 or" in text_of(request)
        return verdict(2 if odd else 0) if role_of(request) == "judge" else SILENT

    async def in_tasks() -> Any:
        return await asyncio.gather(*(select.acall(**inputs) for inputs in questions))

    by_length: Any = SimpleNamespace(score=lambda texts: [table_of(one.text, len(one.question)) for one in texts])
    select: Any = Selector(scorers=by_length)
    questions = [{**CONTESTED, "question": f"number {n % 2} or not?{'?' * n}"} for n in range(40)]
    with dspy.context(lm=scripted_lm(by_number, delay=0.001)):
        if in_threads:
            preds = select.batch([*map(example_of, questions)], num_threads=8, disable_progress_bar=True)
        else:
            preds = asyncio.run(in_tasks())
    assert [pred.answer for pred in preds] == ["Dubai", "Doha"] * 20
    assert [pred.scores[2]["reward"] for pred in preds] == [float(len(one["question"])) for one in questions]


def test_an_evaluation_is_saved_as_json(tmp_path: Path) -> None:
    devset = [example_of(CONTESTED, gold="Doha"), example_of(SETTLED, gold="Dubai")]
    with dspy.context(lm=saying(verdict(2))):
        assert evaluating(right, devset, save_as_json=str(tmp_path / "rows.json"))(Selector()).score == 50.0
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["branch"], row["right"]) for row in rows] == [("judge", True), ("consensus", False)]


def test_a_role_uses_its_own_lm_and_one_lm_is_set_for_every_role_but_a_frozen_one() -> None:
    """Also for the deriver, since a call may be about answers of another type."""
    own, other, select = saying(verdict(0)), saying(), Selector()
    select.judge.set_lm(own)
    with dspy.context(lm=other):
        select(**CONTESTED)
    assert (roles_of(own), roles_of(other)) == (["judge"], ["repairer"])
    lm, own, idle = saying(verdict(0)), saying(), saying()
    select, static = Selector(), Selector()
    static.repairer.set_lm(own)
    static.repairer._compiled = True
    with dspy.context(lm=idle):
        for one in (select, static):
            one.set_lm(lm)
            one(**CONTESTED)
            one(**PENS)
    assert select.get_lm() is lm
    roles = [["judge", "repairer", "deriver", "judge", "deriver"], ["repairer"], []]
    assert [roles_of(one) for one in (lm, own, idle)] == roles


def test_settings_are_taken_whole_and_a_type_of_your_own_is_among_them_with_its_source() -> None:
    select = Selector(answer="tests.dates:YEARS")
    pred = select(question="When?", candidates=["in 1976", "1976", "1977"], evidence=["It was 1976."])
    assert (pred.answer, pred.certified, pred.consulted) == ("1976", True, [])
    choices = select.choices()
    assert (choices["task"], len(choices["answer"]["source"])) == ("tests.dates:YEARS", 16)
    assert "answer" not in Selector(answer="short").choices()
    assert [Selector(answer=answer).choices()["task"] for answer in ("short", "number")] == ["retrieval", "arithmetic"]
    settings = Settings(certificate="token", consult="always", answer="number")
    assert (whole := Selector(settings=settings)).settings == settings and whole.type is settings.type
    assert Selector(settings=settings, certificate="substring").settings == replace(settings, certificate="substring")
    assert Selector(certificate="token").settings == Settings(certificate="token")
    assert {*get_type_hints(Choices)} == {field.name for field in fields(Settings)} - {"answer"}
    refuses(TypeError, "Selector has no argument 'certificates'", Selector, certificates="token")


@each_way
def test_all_candidates_are_scored_in_one_call_and_each_has_a_table_as_plain_json(call: Callable[..., Any]) -> None:
    scorer, candidates = Rewards([0.5, None]), [{"reasoning": "It lies there.", "answer": "Doha"}, "Dubai", None]
    pred = call(Selector(scorers=scorer), {**SETTLED, "candidates": candidates})
    passages, question = tuple(Passage("", text) for text in SETTLED["evidence"]), SETTLED["question"]
    texts = [("It lies there.", "Doha"), ("Dubai", "Dubai"), ("", "")]
    assert scorer.inputs == [[Reasoning(text, question, passages, answer) for text, answer in texts]]
    fields = pred.toDict()
    assert json.loads(json.dumps(fields)) == fields
    assert pred.scores[:2] == [table_of("It lies there.", 0.5).to_json(), table_of("Dubai", None).to_json()]
    assert (pred.scores[1]["reward"], pred.scores[1]["undefined"]) == (None, "no step was measured")


@each_case("selector", "texts and their steps")
def test_an_answer_on_a_line_of_its_own_is_not_a_step(text: str, answer: str | None, output: str) -> None:
    candidates = [{"reasoning": text, "answer": answer}, "Doha"]
    selector_of(ABSTAINS, scorers=(scorer := Rewards([])))(**{**CONTESTED, "candidates": candidates})
    assert scorer.inputs[0][0].text == output


def test_a_pool_without_candidates_is_not_scored_and_without_a_scorer_there_are_no_scores() -> None:
    """Without evidence there is no corpus; empty evidence is a corpus without a hit."""
    scorer = Rewards([])
    pred = Selector(scorers=scorer)(**{**CONTESTED, "candidates": []})
    assert (pred.scores, pred.ranking, scorer.inputs) == ([], [], [])
    assert not any("scores" in Selector(scorers=nobody)(**SETTLED) for nobody in (None, list[Any]()))
    for evidence in (None, list[Any](), dspy.Prediction(passages=[])):
        selector_of(scorers=scorer)(**{**CONTESTED, "evidence": evidence})
    assert [[one.passages for one in texts] for texts in scorer.inputs] == [[None] * 3, [()] * 3, [()] * 3]


Plain: Any = type("Plain", (), {"score": lambda _, texts: [table_of(one.text, 0.5) for one in texts]})


@each_case("selector", "names of scorers")
def test_several_scorers_are_told_apart_by_name_and_the_first_ranks(names: list[Any], labels: list[str]) -> None:
    rewards = [[0.1, 0.2, 0.9], [0.9, 0.8, 0.1], [0.0, 0.0, 0.0]]
    scorers = [Rewards(own, name) if name else Plain() for own, name in zip(rewards, names, strict=False)]
    pred = Selector(scorers=scorers)(**SETTLED)
    assert list(pred.scores) == labels
    if names[0] is not None:
        assert [[one["reward"] for one in tables] for tables in pred.scores.values()] == rewards[: len(names)]
        assert pred.ranking == [1, 0, 2]


VERDICT = {**verdict(1), "assessments": [{**SCORES, "scalar": scalar} for scalar in (0.1, 0.2, 0.3, 0.4, 0.5)]}


@each_case("selector", "rewards and the ranking", ConnectionError=ConnectionError)
def test_rewards_order_inside_strata_only(rewards: Any, is_judged: bool, candidates: Any, ranking: list[int]) -> None:
    """An undefined reward is last, ties go by position; the judge's scalars rank where no reward is defined."""
    scorers = None if rewards is None else Rewards(rewards)
    select = selector_of(VERDICT if is_judged else ABSTAINS, scorers=scorers)
    assert select(**{**CONTESTED, "candidates": candidates}).ranking == ranking


@pytest.mark.parametrize("call", [select_sync, select_acall])
@each_case("selector", "what a scorer may do", KeyError=KeyError, ConnectionError=ConnectionError)
@pytest.mark.parametrize(("inputs", "reply"), SCRIPTS.values(), ids=SCRIPTS)
def test_no_scorer_changes_what_ships_or_what_is_asked(call: Any, inputs: Any, reply: Any, outcome: Any) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(scorers=Rewards(outcome)), inputs).toDict()
    expected = pick(reference, inputs=inputs).toDict()
    assert len(fields.pop("scores")) == len(inputs["candidates"])
    assert sorted(fields.pop("ranking")) == sorted(expected.pop("ranking"))
    assert (fields, lm.requests) == (expected, reference.requests)


@each_way
@each_case("selector", "scorers that fail", ConnectionError=ConnectionError)
def test_what_a_scorer_raises_is_raised_or_the_reason_why(call: Callable[..., Any], outcome: Any, reason: str) -> None:
    inputs, scorers = {**SETTLED, "candidates": ["Doha", "Dubai"]}, [Rewards(outcome, "one"), Rewards([0.5] * 2, "two")]
    pred = call(Selector(scorers=scorers), inputs)
    table: dict[str, Any] = {"reward": None, "undefined": f"the scorer failed: {reason}", "steps": []}
    assert (pred.scores["one"], pred.answer) == ([table, table], "Doha")
    assert [other["reward"] for other in pred.scores["two"]] == [0.5] * 2
    strict, message = Selector(scorers=scorers, on_error="raise"), re.escape(reason.partition(": ")[2])
    for each in (select_sync, select_acall):
        refuses((ArgumentError, ConnectionError), message, each, strict, inputs)


class Slow(Rewards):
    """A scorer that waits until something else has been done in the loop, and remembers the LM of the settings."""

    def __init__(self) -> None:
        super().__init__([])
        self.free, self.lms = threading.Event(), list[Any]()

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        assert self.free.wait(20), "the loop was blocked"
        self.lms.append(dspy.settings.lm)
        return super().score(reasonings)


def test_a_scorer_that_can_be_awaited_is_and_any_other_does_not_block_the_loop_and_is_shared_by_copies() -> None:
    """It finds the settings in its thread, and may hold what cannot be copied."""
    scores = select_acall(Selector(scorers=AsyncRewards([0.5] * 3)), SETTLED).scores
    assert [table["reward"] for table in scores] == [0.5] * 3
    scorer, lm = Slow(), saying()

    async def both() -> Any:
        selecting = asyncio.ensure_future(Selector(scorers=scorer).acall(**SETTLED))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, scorer.free.set)
        return await selecting

    with dspy.context(lm=lm):
        assert asyncio.run(both()).answer == "Doha"
    assert scorer.lms == [lm]
    for duplicate in (copy.deepcopy, Selector.deepcopy, Selector.reset_copy):
        for select in (Selector(scorers=scorer), Selector(scorers=[scorer])):
            twin: Any = duplicate(select)
            assert twin.scorers[0] is scorer and twin.scorers is not select.scorers


def test_a_reward_does_not_pass_a_checked_derivation_nor_cross_strata() -> None:
    class RanksAcrossStrata(Wrapper):  # a selector that ranks by reward alone
        def after(self, call: dict[str, Any], pred: Any) -> None:
            pred.ranking = sorted(pred.ranking, key=lambda index: -(pred.scores[index]["reward"] or 0.0))

    unlawful = RanksAcrossStrata(scorers=Rewards([0.1, 0.9, 0.5]))
    refuses(LawBroken, r"^Law 13, scores_never_cross_strata, is broken", check_selector, unlawful)
    pred = pick(saying(), inputs=PENS, scorers=Rewards([0.8, 0.9, 0.0]))
    assert (pred.answer, pred.ranking) == ("36", [2, 1, 0])
