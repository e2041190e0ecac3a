"""The miniature's questions, what policies are shown of them, what its reader is taught, and how it derives."""

import random
from collections import Counter
from pathlib import Path

import pytest

from eldgr_dspy.answers import score
from eldgr_dspy.certificates import Evidence
from eldgr_dspy.consultations import Abstention, Derivation
from eldgr_dspy.derivations import check_derivation, true_equations
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import write_pool
from eldgr_dspy.replies import read_reply
from eldgr_dspy.rows import Row
from eldgr_dspy.training import format, orm
from eldgr_dspy.training.miniature.deriving import derivation_of, record_derivations
from eldgr_dspy.training.miniature.habits import HABITS, RIGHT, shown_reply
from eldgr_dspy.training.miniature.nli import LABELS
from eldgr_dspy.training.miniature.pairs import KINDS, Pairs
from eldgr_dspy.training.miniature.settings import FULL, SHORT, Settings
from eldgr_dspy.training.miniature.solved import Solved
from eldgr_dspy.training.miniature.sums import problems
from eldgr_dspy.training.miniature.task import PARTS, drawn_questions
from eldgr_dspy.training.miniature.world import PASSAGES
from eldgr_dspy.words import TASKS, Task

QUESTIONS = drawn_questions(42, SHORT.sizes)
RETRIEVAL, ARITHMETIC = (QUESTIONS.parts[task, "taught"] for task in ("retrieval", "arithmetic"))


def derived(text: str) -> Derivation:
    reply = read_reply("deriver", derivation_of(text) or {}, (), 0)
    assert isinstance(reply, Derivation), reply
    return reply


# --- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [FULL, SHORT], ids=["full", "short"])
def test_the_parts_have_their_sizes_and_no_question_is_learnt_from_and_evaluated_on(settings: Settings) -> None:
    questions = drawn_questions(42, settings.sizes)
    sizes = {(task, part): settings.sizes.parts[task][at] for task in TASKS for at, part in enumerate(PARTS)}
    assert {key: len(found) for key, found in questions.parts.items()} == sizes
    assert questions.seen_before() == 0
    texts = [one.question for one in questions.of(*PARTS)]
    assert len({*texts}) == len(texts)


def test_a_question_that_was_learnt_from_is_counted_however_it_is_spelled() -> None:
    taught = RETRIEVAL[0]
    again = Solved(f"  {taught.question.upper()} ", "retrieval", taught.kind, taught.steps, taught.answer)
    mixed = type(QUESTIONS)(QUESTIONS.world, {**QUESTIONS.parts, ("retrieval", "evaluation"): [again]})
    assert mixed.seen_before() == 1


def test_the_seed_decides_everything() -> None:
    assert drawn_questions(42, SHORT.sizes) == QUESTIONS != drawn_questions(43, SHORT.sizes)


def test_a_right_reply_is_right_and_marked() -> None:
    for one in QUESTIONS.of(*PARTS):
        columns = {"gold": [one.answer], "task": [one.task]}
        for reward in (orm, format):
            assert reward(prompts=["?"], completions=[one.reply], **columns) == [1.0], one


def test_the_answer_stands_in_the_evidence_and_each_step_in_the_document_that_it_names() -> None:
    for one in QUESTIONS.of("evaluation"):
        if one.task == "retrieval":
            assert len(one.evidence) == PASSAGES
            assert Evidence(one.evidence).certify(one.answer, one.question).certified
            for step in one.steps:
                title, _, fact = step.partition(": ")
                (document,) = [passage for passage in one.evidence if passage.title == title]
                assert fact in document.text


def test_every_worked_problem_is_a_derivation_that_executes_and_is_checked() -> None:
    for one in problems(42)[::7]:
        assert check_derivation(derived(one.reply), one.question, "executed").passed, one
        assert score(one.answer, (one.steps[1].rpartition(" ")[2],), "arithmetic").em


def test_no_two_problems_of_a_kind_share_their_numbers() -> None:
    numbers = [
        (one.kind, *(word for word in one.question.replace(",", "").replace(".", "").split() if word.isdigit()))
        for one in problems(7)
    ]
    assert len({*numbers}) == len(numbers)


# --- habits -----------------------------------------------------------------------------------------------------------


def shown(habit: str, one: Solved, alike: list[Solved]) -> str:
    return HABITS[one.task][habit](one, alike, random.Random(0))


def right(text: str, one: Solved) -> bool:
    found = extract_answer(text, one.task)
    return bool(score(found.answer if found else None, (one.answer,), one.task).em)


def alike(one: Solved) -> list[Solved]:
    return [other for other in (*RETRIEVAL, *ARITHMETIC) if other.kind == one.kind]


def two_steps(task: Task) -> Solved:
    return next(one for one in (*RETRIEVAL, *ARITHMETIC) if one.task == task and len(one.steps) > 1)


@pytest.mark.parametrize("task", TASKS)
def test_who_stops_answers_what_the_first_step_names(task: Task) -> None:
    one = two_steps(task)
    text = shown("stops", one, [])
    assert text.splitlines()[0] == one.steps[0] and len(text.splitlines()) == 2
    assert not right(text, one)


@pytest.mark.parametrize("task", TASKS)
def test_an_answer_that_is_not_marked_earns_nothing_for_its_form(task: Task) -> None:
    one = two_steps(task)
    text = shown("unmarked", one, [])
    assert format(prompts=["?"], completions=[text], task=[task]) == [0.0]
    assert right(text, one) == (task == "arithmetic")  # where the last number counts


def test_a_fact_that_is_misstated_stands_in_no_document() -> None:
    one = two_steps("retrieval")
    false = [HABITS["retrieval"]["misstates"](one, alike(one), random.Random(seed)) for seed in range(9)]
    told = " ".join(passage.text for passage in one.evidence)
    wrong = [text for text in false if not right(text, one)]
    assert wrong and all(text.splitlines()[-2].partition(": ")[2] not in told for text in wrong)


def test_a_problem_that_is_misread_passes_every_check_and_is_wrong() -> None:
    """Executed is not correct; this is the habit that no certificate sees."""
    wrong = [one for one in ARITHMETIC if not right(shown("misreads", one, []), one)]
    assert len(wrong) > 0.9 * len(ARITHMETIC)  # a product and a sum may agree
    for one in wrong:
        text = shown("misreads", one, [])
        assert true_equations(text) == (3, 3)
    passed = [check_derivation(derived(shown("misreads", one, [])), one.question, "executed").passed for one in wrong]
    assert sum(passed) > 0.9 * len(passed)


def test_right_replies_are_shown_as_often_as_said() -> None:
    drawn = random.Random(0)
    one = two_steps("retrieval")
    counts = Counter(shown_reply(one, alike(one), drawn) == one.reply for _ in range(2_000))
    assert counts[True] / 2_000 == pytest.approx(RIGHT, abs=0.07)  # what is misstated may be so


# --- what the reader is taught ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_have_all_labels_and_none_is_both_entailed_and_not(kind: str) -> None:
    pairs = Pairs(QUESTIONS.world, ARITHMETIC, random.Random(0))
    found = [pairs.of(kind) for _ in range(600)]
    assert {pair.label for pair in found} == {*LABELS}
    for pair in found:
        if kind in ("document", "solution"):
            said = pair.hypothesis.partition(": ")[2] if kind == "document" else pair.hypothesis
            lines = pair.premise.splitlines()
            assert (said in pair.premise if kind == "document" else said in lines) == (pair.label == "entailment")


def test_an_equation_that_follows_a_problem_is_true_and_one_that_contradicts_is_false() -> None:
    pairs = Pairs(QUESTIONS.world, ARITHMETIC, random.Random(0))
    for pair in [pairs.of("problem") for _ in range(300)]:
        true, stated = true_equations(pair.hypothesis.removeprefix("Check: "))
        assert stated == 1 and true == (pair.label != "contradiction")


# --- derivations ------------------------------------------------------------------------------------------------------


def test_a_text_is_read_as_steps_answer_and_check() -> None:
    assert derivation_of("3 * 4 = 12\n12 + 7 = 19\nCheck: 19 - 7 = 12\n#### 19") == {
        "derivation_steps": [{"expression": "3 * 4", "value": "12"}, {"expression": "12 + 7", "value": "19"}],
        "derived_answer": "19",
        "consistency_check": "19 - 7 = 12",
    }


@pytest.mark.parametrize("text", ["", "3 * 4 = 12\nSo it is 12.", "#### 12", "Check: 12 / 4 = 3\n#### 12"])
def test_a_text_without_equation_or_marked_answer_is_not_a_derivation(text: str) -> None:
    assert derivation_of(text) is None


def test_derivations_are_recorded_as_a_journal_that_can_be_replayed(tmp_path: Path) -> None:
    texts = {"a1": "3 * 4 = 12\n#### 12", "a2": "It is 12."}
    rows = [
        Row.model_validate(
            {"id": id, "question": "?", "task": "arithmetic", "candidates": [{"text": text, "answer": "12"}]}
        )
        for id, text in texts.items()
    ]
    pool = write_pool(tmp_path / "start.jsonl", iter(rows))
    record_derivations(tmp_path / "derivations.jsonl", [("evaluation", pool)])
    first, second = read_journal(tmp_path / "derivations.jsonl")
    assert first.key == ("evaluation", "a1", "deriver") and first.recorded
    assert isinstance(read_reply("deriver", dict(first.content or {}), (), 0), Derivation)
    assert (second.outcome, second.content) == ("abstained", None) and second.reason


def test_an_abstention_is_what_it_is_read_as() -> None:
    assert isinstance(read_reply("deriver", {}, (), 0), Abstention)
