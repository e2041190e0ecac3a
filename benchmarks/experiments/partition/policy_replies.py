"""What greedy replies to held-out questions are worth, by what the generator of the questions knows."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.experiments.partition.arms import START
from benchmarks.experiments.partition.deriving import derivation_in
from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.task import Questions
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.files import replacing
from eldgr_dspy.channels.conflation import DELTA
from eldgr_dspy.channels.protocols import Reasoning, Scorer
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.derivations import check_derivation, true_equations
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.sampling import sample_pool
from eldgr_dspy.training.steps_reward import StepReward
from eldgr_dspy.words import TASKS

GREEDY: Final = 1e-6
"""The top-p that leaves the likeliest token alone."""

MEASURES: Final = ("exact_match", "certified", "true_steps", "conflated", "step_reward")
"""What is measured of a reply: see `measure`."""


def greedy(folder: Path, policy: str, questions: Questions, size: Size) -> None:
    """Ask a policy the held-out questions, and write a line of measures for each reply to `POLICY.replies.jsonl`."""
    sampling = Sampling(seed=0, temperature=1.0, top_p=GREEDY, max_new_tokens=size.reply)
    exercises, texts = list[Exercise](), list[str]()
    (folder / "greedy").mkdir(exist_ok=True)
    for task in TASKS:
        part = questions[task, "held"]
        pool = sample_pool(
            folder / "greedy" / f"{policy}-{task}.jsonl",
            [question.row() for question in part],
            {policy: folder / policy},
            sampling,
            base=folder / START,
            batch_size=size.sampled,
            device=size.device,
        )
        exercises += part
        texts += [row.candidates[0].text or "" for row in pool.rows()]
    scorer = NLIScorer(CrossEncoderNLI(folder / "reader", device=size.device, dtype=size.nli_dtype, batch_size=256))
    with replacing(folder / f"{policy}.replies.jsonl") as out:
        for question, values in zip(exercises, measure(exercises, texts, scorer), strict=True):
            out.write(json.dumps({"id": question.id, "task": question.task, **values}).encode("ascii") + b"\n")


def measure(exercises: Sequence[Exercise], texts: Sequence[str], scorer: Scorer) -> Iterator[dict[str, float | None]]:
    """Yield the measures of each reply, in percent; None where a measure is undefined.

    * `exact_match`: whether its answer is right.
    * `certified`: whether the evidence has the answer, or its own derivation passes and gives the answer.
    * `true_steps`: the share of its steps that state a fact of the world, or a true equation; undefined without steps.
    * `conflated`: the share of its steps that are false although the reader takes them to follow from the question and
      the steps before (`logic` of at least 0.85): Eq. 1, with what the generator knows in the place of documents.
      Undefined without steps.
    * `step_reward`: what the step reward gives for it, without token confidence, as a trainer gets it.
    """
    reasonings = [
        Reasoning(text, question.question, question.evidence or None, _answer(question, text) or "")
        for question, text in zip(exercises, texts, strict=True)
    ]
    rewards = StepReward(scorer, confidence=False)(
        [question.messages for question in exercises],
        texts,
        question=[question.question for question in exercises],
        task=[question.task for question in exercises],
        evidence=[question.row()["evidence"] for question in exercises],
    )
    for question, text, table, reward in zip(exercises, texts, scorer.score(reasonings), rewards, strict=True):
        truths = [is_true(question, text[start:end].strip()) for start, end in table.spans]
        logics = [scores.channels["logic"] for scores in table.scores]
        conflations = [
            not true and not isinstance(logic, Undefined) and logic >= DELTA
            for true, logic in zip(truths, logics, strict=True)
        ]
        answer = _answer(question, text)
        yield {
            "exact_match": 100 * bool(score(answer, [question.answer], question.task).em),
            "certified": 100 * _is_certified(question, text, answer),
            "true_steps": _share(truths),
            "conflated": _share(conflations),
            "step_reward": 100 * reward,
        }


def is_true(question: Exercise, step: str) -> bool:
    """Return whether a step states a fact of the question's world, or true equations and nothing false."""
    if question.task == "retrieval":
        return step in question.truths
    true, total = true_equations(step)
    return 0 < total == true


def _answer(question: Exercise, text: str) -> str | None:
    extraction = extract_answer(text, question.task)
    return extraction.answer if extraction else None


def _is_certified(question: Exercise, text: str, answer: str | None) -> bool:
    if question.task == "retrieval":
        one = Question(question.question, "retrieval", (answer,), passages=question.evidence)
        return Case(one).certified(answer) is True
    derivation = derivation_in(text)
    return derivation is not None and check_derivation(derivation, question.question).passed


def _share(flags: Sequence[bool]) -> float | None:
    return 100 * sum(flags) / len(flags) if flags else None
