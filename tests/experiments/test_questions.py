"""The experiment's questions: worlds and templates that are not shared, right replies that are right, alias traps."""

import random
import re
from collections import Counter
from dataclasses import replace
from operator import add, mul, sub

import pytest

from benchmarks.experiments.partition.arms import ARMS
from benchmarks.experiments.partition.deriving import content_of, derivation_in
from benchmarks.experiments.partition.policy_replies import is_true
from benchmarks.experiments.partition.problems import GREATEST, TEMPLATES, held_out, problems
from benchmarks.experiments.partition.reader_pairs import Pairs
from benchmarks.experiments.partition.sizes import SIZES, SMALL, SMOKE
from benchmarks.experiments.partition.task import HOLDOUTS, PARTS, Part, drawn_questions, fingerprint
from benchmarks.experiments.partition.worlds import FORMS, FULL, NAMES, questions
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.derivations import check_derivation, true_equations
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.words import TASKS

SIZE = replace(SMALL, warm=replace(SMALL.warm, questions=300, validated=100), trained=300, held=100, pooled=100)
QUESTIONS = drawn_questions(SIZE, 1)
HELD_OUT = [exercise for task in TASKS for exercise in QUESTIONS[task, "held"]]


def test_seed_and_part_determine_the_questions_and_parts_have_their_sizes_and_no_world_or_id_twice() -> None:
    prints = [fingerprint(drawn_questions(SMOKE, seed)) for seed in (1, 1, 2)]
    assert prints[0] == prints[1] != prints[2]
    assert [one.question for one in questions("a", 9, 1, 1)] != [one.question for one in questions("b", 9, 1, 1)]
    sizes = dict(zip(PARTS, (300, 100, 300, 100, 100), strict=True))
    lengths = {key: len(part) for key, part in QUESTIONS.items()}
    assert lengths == {(task, part): sizes[part] for task in TASKS for part in PARTS}
    ids = [exercise.id for part in QUESTIONS.values() for exercise in part]
    assert len({*ids}) == len(ids)
    worlds = [exercise.truths for part in PARTS for exercise in QUESTIONS["retrieval", part]]
    assert len({*worlds}) == len(worlds)


def test_a_fifth_of_the_templates_of_each_length_is_held_out_and_none_both_learnt_and_measured() -> None:
    lessons = {exercise.kind for part in PARTS if part not in HOLDOUTS for exercise in QUESTIONS["arithmetic", part]}
    tests = {exercise.kind for part in HOLDOUTS for exercise in QUESTIONS["arithmetic", part]}
    assert lessons.isdisjoint(held_out()) and tests <= held_out()
    assert lessons | tests <= {*TEMPLATES}
    whole, out = Counter(map(len, TEMPLATES)), Counter(map(len, held_out()))
    assert whole == {3: 26, 4: 72, 5: 192}  # of 3 ** length, those with at most two products
    assert out == {3: 5, 4: 14, 5: 38}
    assert Counter(len(exercise.kind) for exercise in problems("any", 30, 5, fresh=False)) == {3: 10, 4: 10, 5: 10}


@pytest.mark.parametrize("name", SIZES)
def test_every_size_has_every_arm_and_questions_in_every_part(name: str) -> None:
    size = SIZES[name]
    assert sorted(size.arms) == sorted(ARMS)
    assert len({*size.seeds}) == len(size.seeds)
    assert min(size.runs, size.trained, size.held, size.pooled, size.warm.questions, size.warm.validated) >= 1
    assert max(size.warm.batch) <= size.warm.questions
    least, most, _ = size.warm.varied
    assert size.warm.every <= least <= most


@pytest.mark.parametrize("people", [1, 3])
def test_a_world_has_a_passage_a_subject_with_a_name_of_its_own_and_every_fact_stands_in_one(people: int) -> None:
    names = [name for own in NAMES.values() for name in own]
    assert [sum(other.startswith(one) for other in names) for one in names] == [1] * len(names)  # none begins another
    for exercise in questions("any", 40, 1, people):
        kinds = Counter(next(kind for kind, own in NAMES.items() if one.title in own) for one in exercise.evidence)
        assert kinds == {"person": people, "town": people, "firm": people}
        facts = [line for one in exercise.evidence for line in one.text.split("\n")]
        assert len(facts) == 6 * people
        assert sorted(facts) == sorted(exercise.truths)


@pytest.mark.parametrize("part", PARTS)
def test_one_question_of_five_asks_for_a_name_that_no_passage_has_and_others_of_every_kind(part: Part) -> None:
    """Its right answer has no certificate; the short name is wrong and has one. Any other right answer has one."""
    items = QUESTIONS["retrieval", part]
    aliases = [exercise for exercise in items if exercise.alias]
    assert len(aliases) == len(items) / 5
    assert {exercise.kind for exercise in items} == {*FORMS}
    for exercise in (*aliases[:100], *(one for one in items if not one.alias)):
        short = exercise.answer.removeprefix(FULL.format(""))
        case = Case(Question(exercise.question, "retrieval", (exercise.answer, short), passages=exercise.evidence))
        assert (case.certified(exercise.answer), case.certified(short)) == (not exercise.alias, True)
        assert score(short, [exercise.answer], "retrieval").em is not exercise.alias


def test_a_right_reply_is_an_exact_match_in_the_requested_form_and_its_steps_are_true_of_its_world() -> None:
    for exercise in HELD_OUT:
        reading = extract_answer(exercise.reply, exercise.task)
        assert reading is not None and score(reading.answer, [exercise.answer], exercise.task).em, exercise
        steps = [step.content for step in split_steps(exercise.reply).steps]
        assert steps == [*exercise.steps]
        assert all(is_true(exercise, step) for step in steps), exercise
    one, other = QUESTIONS["retrieval", "held"][:2]
    assert not [step for step in other.steps if is_true(one, step)]
    # A step of a word problem is true if it has equations and all hold.
    lines = ("2 + 3 = 5", "Check: 5 - 3 = 2", "2 + 3 = 6", "2 + 3 = 5, so 5 + 1 = 7", "There are five.")
    assert [is_true(QUESTIONS["arithmetic", "held"][0], step) for step in lines] == [True, True, False, False, False]


VERBS = {"buys": add, "finds": add, "loses": sub, "sells": sub, "swaps each for": mul}


def test_a_worked_problem_does_what_its_story_tells() -> None:
    """The words are read here, and not the template."""
    for exercise in QUESTIONS["arithmetic", "held"]:
        total, *sentences = exercise.question.split(". ")
        number = int(total.split()[2])
        for sentence in sentences[:-1]:
            operand = int("".join(filter(str.isdigit, sentence)))
            (does,) = (does for words, does in VERBS.items() if words in sentence)
            number = does(number, operand)
            assert 1 <= number <= GREATEST
        assert number == int(exercise.answer)
        assert true_equations(exercise.reply) == (len(sentences), len(sentences))


def test_a_right_reply_to_a_word_problem_is_a_derivation_that_passes_unless_its_answer_occurred_before() -> None:
    """An answer that the story or an earlier step has too may seem to be carried through, and not computed."""
    items = problems("derivations", 60, 1, fresh=True)
    derivations = [derivation_in(exercise.reply) or pytest.fail(exercise.reply) for exercise in items]
    checks = [check_derivation(one, exercise.question).passed for one, exercise in zip(derivations, items, strict=True)]
    assert sum(checks) >= 0.85 * len(checks)
    for passes, exercise in zip(checks, items, strict=True):
        assert passes or exercise.answer in re.findall(r"\d+", " ".join([exercise.question, *exercise.steps[:-2]]))


def test_a_text_is_read_as_steps_answer_and_check_and_without_them_is_no_derivation() -> None:
    result = derivation_in("3 * 4 = 12\n12 + 7 = 19\nCheck: 19 - 7 = 12\n#### 19")
    assert result is not None
    assert [(step.expression, step.value) for step in result.steps] == [("3 * 4", "12"), ("12 + 7", "19")]
    assert (result.answer, result.check) == ("19", "19 - 7 = 12")
    assert read_reply("deriver", content_of(result), (), 0) == result
    others = ("", "3 * 4 = 12\nSo it is 12.", "#### 12", "Check: 12 / 4 = 3\n#### 12")
    assert [*map(derivation_in, others)] == [None] * 4


def test_a_contradiction_is_a_false_equation_and_what_a_passage_entails_stands_in_it() -> None:
    first, other = (Pairs(QUESTIONS["arithmetic", "taught"], random.Random(0)) for _ in range(2))
    results = [first.of("problem") for _ in range(300)]
    assert len({pair.label for pair in results}) == 3
    assert all((true_equations(pair.hypothesis) == (1, 1)) == (pair.label != "contradiction") for pair in results)
    for pair in (other.of("passage") for _ in range(300)):
        assert (pair.hypothesis in pair.premise) == (pair.label == "entailment")
