"""What an optimizer needs to compile a selector's roles: labelled examples, a score, and feedback in words.

The score is that of the answer that ships, so an optimizer gains nothing from a judge that is right where the rule
does not ask it. Feedback is read from the decision. It names the right answer, so it is for training alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dspy
from pydantic import BaseModel

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.programs.inputs import number_as_text, to_question
from eldgr_dspy.programs.typed_answers import as_candidate
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.reasons import REFUSAL_NOTE, refusal_of_derivation
from eldgr_dspy.words import ROLES, Role, Task, is_role


def examples_of(rows: Iterable[Row]) -> list[dspy.Example]:
    """Return the labelled rows of a pool as examples whose inputs are those of a `Selector`.

    Args:
        rows: Such as `open_pool(path).rows()`. Rows without a gold answer are left out.

    Returns:
        Examples with `question`, `candidates`, `evidence` and, if there are any, `options` as inputs, `gold`, `task`
        and `id` as labels. No label has the name of a role's output, so optimizers do not take it for a demonstration.
    """
    return [_example(row) for row in rows if row.gold]


def _example(row: Row) -> dspy.Example:
    options = {"options": list(row.options)} if row.options else {}
    return dspy.Example(
        question=row.question,
        candidates=[{**({"text": one.text} if one.text else {}), "answer": one.answer} for one in row.candidates],
        evidence=[{"title": passage.title, "text": passage.text} for passage in row.evidence],
        task=row.task,
        gold=list(row.gold),
        id=row.id,
        **options,
    ).with_inputs("question", "candidates", "evidence", *options)


def selection_score(gold: dspy.Example, pred: dspy.Prediction, trace: Any = None) -> bool:
    """Return whether the answer that shipped is right, by the official rule of the task.

    A metric for `dspy.Evaluate` and for optimizers that ask yes or no, such as `BootstrapFewShot`, which would take any
    prediction for a yes.

    Args:
        gold: An example with `gold`, an accepted answer, perhaps typed, or a list of them, and perhaps `task`, the
            answer type as rows state it (short text by default).
        pred: The selector's prediction. DSPy also gives a trace, which is not used.
    """
    return _is_right(pred.get("answer"), gold)


def selection_feedback(
    gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
) -> dspy.Prediction:
    """Score a selection as `selection_score` does, and explain the outcome in words. A metric for `dspy.GEPA`.

    Args:
        gold: As for `selection_score`. Its `candidates`, or else the samples of a program, tell whether the judge's
            preference was right.
        pred: The selector's prediction. From a program around it, one that keeps the fields of the decision.
        pred_name: The predictor that the feedback is for, such as `judge.predict` or `select.repairer.predict`; None
            for the program as a whole. The score is the same for all of them.

    Returns:
        A prediction with `score`, 0.0 or 1.0, and `feedback`, a few sentences.

    Raises:
        ArgumentError: the example has no `gold`.
    """
    roles = (role_of_predictor(pred_name),) if pred_name else ROLES
    sentences = [_outcome(gold, pred), *(sentence for role in roles if role for sentence in _on_role(role, gold, pred))]
    return dspy.Prediction(score=float(selection_score(gold, pred)), feedback=" ".join(sentences))


def role_of_predictor(name: str) -> Role | None:
    """Return the role that a predictor plays by its path, as `judge` in `select.judge.judge.predict`."""
    return next((part for part in name.split(".") if is_role(part)), None)


def _is_right(answer: Any, gold: dspy.Example) -> bool:
    golds = _gold_answers(gold)
    try:
        text = _text_of(answer)
    except ArgumentError:
        return False  # no value that could be an answer
    return _type(gold).right(text, golds)


def _text_of(answer: Any) -> str | None:
    """Return an answer, which may be typed, as it votes."""
    value = number_as_text(as_candidate(answer))
    return None if value is None else str(value)


def _gold_answers(gold: dspy.Example) -> Sequence[str]:
    answers: Any = gold.get("gold")
    is_one = isinstance(answers, str | Mapping | BaseModel) or not hasattr(answers, "__iter__")
    several = [answers] if is_one else answers
    texts = [text for text in map(_text_of, several) if text]
    if not texts:
        raise ArgumentError(
            f"gold of an example must be an answer or a list of answers, such as ['Doha']; got {answers!r}."
        )
    return texts


def _task(gold: dspy.Example) -> Task:
    task: Task = gold.get("task") or "short"
    return task


def _type(gold: dspy.Example) -> AnswerType:
    """Return the answer type as it reads the answers to the question of an example."""
    options = tuple(gold.get("options") or ())
    question = Question(gold.get("question") or "", _task(gold), (), options=options)
    return question.type.of(question)


def _outcome(gold: dspy.Example, pred: dspy.Prediction) -> str:
    answer, branch = pred.get("answer"), pred.get("branch")
    text = "No answer shipped" if answer is None else f"The answer {answer!r} shipped"
    support = {True: "certified", False: "uncertified", None: "to which no certificate applies"}[pred.get("certified")]
    how = f" (branch {branch}, {support})" if branch else ""
    if _is_right(answer, gold):
        return f"{text}{how}, and it is right."
    return f"{text}{how}, and it is wrong; the right answer is {' or '.join(map(repr, _gold_answers(gold)))}."


def _on_role(role: Role, gold: dspy.Example, pred: dspy.Prediction) -> Iterator[str]:
    """Return sentences on the role's reply. Nothing if the prediction does not say which roles were asked."""
    abstention, roles = (pred.get("abstentions") or {}).get(role), pred.get("consulted")
    if roles is None:
        return
    if role not in roles:
        yield f"The {role} was not asked: its reply could not have changed the answer."
    elif abstention is not None:
        yield f"The {role}'s reply did not count: {str(abstention).removesuffix('.')}."
    elif role == "judge":
        yield from _of_judge(gold, pred)
    else:
        yield from _of_repair(role, gold, pred)


def _of_judge(gold: dspy.Example, pred: dspy.Prediction) -> Iterator[str]:
    candidates, options = gold.get("candidates"), gold.get("options") or ()
    samples: Any = pred.completions
    if samples is not None:  # the samples of a program are its candidates
        fields = [name for name, _ in samples.items() if name == "answer" or pred.get(name) == pred.answer is not None]
        field = "answer" if "answer" in fields else next(iter(fields), None)
        candidates = field and [{"answer": as_candidate(one)} for one in samples[field]]
    if candidates is None:
        return
    pool = to_question(gold.question, candidates, gold.get("evidence"), _task(gold), "answer", options)
    kind, answers = _type(gold), _gold_answers(gold)  # one type, and so one limit of time, for all candidates
    right = [index for index, answer in enumerate(pool.answers) if kind.right(answer, answers)]
    preferred: int = pred.preference
    if preferred in right:
        yield f"The judge preferred candidate {preferred}, which is right."
    else:
        better = f"candidate {' or '.join(map(str, right))} is" if right else "no candidate is"
        yield f"The judge preferred candidate {preferred}, which is wrong; {better} right."
    if pred.branch != "judge":
        yield f"It did not override: {_why_not(pool.answers[preferred], gold, pred)}."


def _of_repair(role: Role, gold: dspy.Example, pred: dspy.Prediction) -> Iterator[str]:
    yield f"The {role} gave {pred.repair!r}, which is {'right' if _is_right(pred.repair, gold) else 'wrong'}."
    if pred.branch != "repair":
        reason = refusal_of_derivation(pred.get("notes") or ())
        why = f"{REFUSAL_NOTE}{reason}" if reason else _why_not(pred.repair, gold, pred)
        yield f"It did not override: {why}."


def _why_not(answer: str | None, gold: dspy.Example, pred: dspy.Prediction) -> str:
    """Return why an answer that a role gave did not ship, as far as the decision tells."""
    kind = _type(gold)
    if kind.class_of(answer) == kind.class_of(pred.consensus):
        return "it is consensus's own"
    if pred.branch == "judge":
        return "a certified preference comes before it"
    if pred.branch == "consensus" and pred.certified is not False:
        return "consensus is certified" if pred.certified else "consensus is a yes or no or a refusal, and final"
    return "it carries no certificate"
