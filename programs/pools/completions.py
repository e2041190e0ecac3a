"""Pools from DSPy: a program's several completions, with the example that they complete."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import dspy

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.columns import Columns
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.programs.inputs import columns_of, to_question
from eldgr_dspy.programs.pools.entries import Choices, Entry, plain_name
from eldgr_dspy.programs.pools.gold_answers import NAMES, gold_at
from eldgr_dspy.words import Task


def pool_from_completions(
    completed: Iterable[tuple[dspy.Example, dspy.Prediction]],
    task: Task,
    *,
    answer_field: str = "answer",
    columns: bool = False,
) -> Iterator[Row]:
    """Yield a row for each example and the prediction made for it, for `eldgr_dspy.pools.write_pool`.

    Args:
        completed: Pairs of an example and a prediction. The example has `question`. It may have `id` (by default made
            from the question), `gold` (or else `answer`: an accepted answer or a list of them; in a solution of GSM8K
            the part after `####`), and `evidence` and `options` of any kind that a `Selector` takes. The completions of
            the prediction are the candidates, in their order.
        task: The task of all questions.
        answer_field: The field of the completions that holds the answer.
        columns: Whether their fields `confidence`, `logprobs`, `scores` and `tags` become columns of the pool. They
            must then be as a pool has them, or None. `logprobs` may also be as DSPy returns them.

    Raises:
        ArgumentError: An item is not such a pair, or a `Selector` would not take its content.
        PoolError: A row does not fit the schema of a pool.
    """
    pair: Any
    for number, pair in enumerate(completed, start=1):
        where = f"question {number}"
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], dspy.Example)):
            line = " ".join(repr(pair).split())  # on one line, which a prediction's repr is not
            raise ArgumentError(f"{where}: must be a pair of an example and a prediction; got {line:.80}.")
        example, prediction = pair
        if not isinstance(prediction, dspy.Prediction):
            raise ArgumentError(f"{where}: the pair must end with a prediction; got {prediction!r:.80}.")
        text: Any = example.get("question")
        try:
            options = example.get("options", ()) if answer_type(task).needs_options else ()
            question = to_question(text, prediction, example.get("evidence"), task, answer_field, options)
            extras = columns_of(prediction, answer_field) if columns else [Columns()] * len(question.answers)
        except ArgumentError as error:
            raise ArgumentError(f"{where}: {error}") from error
        own_id = example.get("id")
        head = (where, None if own_id is None else str(own_id), question.text)
        entry = Entry(*head, evidence=question.passages, options=question.options)
        labels = {key: value for key, value in example.items() if key not in (example._input_keys or ())}
        if {name for name in labels if plain_name(name) in NAMES} == {"answer"}:
            labels.setdefault("gold", labels["answer"])
        gold = gold_at(labels, f"{where}, id {entry.name!r}", Choices(question.options))
        candidates = [
            {"text": text, "answer": answer, **one.model_dump()}
            for text, answer, one in zip(question.texts, question.answers, extras, strict=True)
        ]
        yield replace(entry, gold=gold).row(task, candidates)
