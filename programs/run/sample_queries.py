"""Ask a program for one sample of its answer to one question: metered, journaled and counted, as a role is asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

import dspy

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.errors import ArgumentError, RunStoppedError, brief, describe_failure, result_of
from eldgr_dspy.formats.columns import COLUMNS, read_columns
from eldgr_dspy.formats.journal_lines import PROGRAM, TOO_LARGE, is_readable
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.consulting import is_too_long
from eldgr_dspy.programs.lms.lms import holds_lm
from eldgr_dspy.programs.lms.rollouts import rollout
from eldgr_dspy.programs.pools.devsets import DevQuestion
from eldgr_dspy.programs.run.plan import Collection
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.role_queries import Books, Query
from eldgr_dspy.programs.samples import UnfitProgramError, candidate_of, passages_of_sample, require_prediction
from eldgr_dspy.programs.typed_answers import outputs
from eldgr_dspy.redaction import redacted_value
from eldgr_dspy.rule.consultations import Key
from eldgr_dspy.showing import encodable


def sample_key(id: str, number: int) -> Key:
    """Return the key of a sample in the journal."""
    return str(number), id, PROGRAM


class SampleQuery(Query):
    """A sample about to be asked for.

    Attributes:
        came: Whether any sample of the collection came through. The list is shared by all queries.
    """

    failures = (Exception,)

    def __init__(
        self, question: DevQuestion, number: int, collection: Collection, call: RoleCall, books: Books, came: list[None]
    ) -> None:
        super().__init__(sample_key(question.entry.name, number), call, books)
        self.came = came
        self._question, self._number, self._collection = question, number, collection

    def _ask(self) -> Mapping[str, Any]:
        how, inputs, module = self._collection, dict(self._question.inputs), self.call.module
        sampled = rollout(module, self._number - 1, how.n, how.temperature, bound=holds_lm(module))
        with sampled as (program, trace):
            try:
                prediction = (
                    program(**inputs) if hasattr(type(program), "forward") else asyncio.run(program.acall(**inputs))
                )
                prediction = result_of(
                    prediction, "program", "give it a forward that is not async, or none besides aforward"
                )
            except (dspy.AdapterParseError, dspy.LMError) as error:
                if not isinstance(error, dspy.AdapterParseError) and not is_too_long(error):
                    raise
                return {"unread": describe_failure(error)}
        hint = "Name the field of the answer with --answer-field."
        prediction = require_prediction(prediction, self._name, how.answer_field, hint)
        candidate = candidate_of(prediction, how.answer_field)
        passages = passages_of_sample(outputs(module), inputs, prediction, trace, how.passages)
        if passages is None and how.passages is not None:
            raise UnfitProgramError(
                f"passages={how.passages!r} must be a field that {self._name} retrieves: of its inputs or its "
                "prediction, or an input of one of its predictors that no LM writes. Name it with --passages."
            )
        options = self._question.entry.options if answer_type(how.task).needs_options else ()
        question = to_question("", [candidate], None, how.task, how.answer_field, options)
        return {
            "text": encodable(question.texts[0]),
            "answer": None if (answer := question.answers[0]) is None else encodable(str(answer)),
            "passages": [[encodable(one.title), encodable(one.text)] for one in passages or ()],
            **(_usable_columns(prediction) if how.columns else {}),
        }

    @property
    def _name(self) -> str:
        return type(self.call.module).__name__.removeprefix("Metered")

    def _read(self, result: Mapping[str, Any] | Exception) -> dict[str, Any]:
        if isinstance(result, Exception):
            return {"outcome": "failed", "reason": describe_failure(result)}
        inputs = {"inputs": self._question.hash}
        content = redacted_value(result) | inputs
        if not is_readable(content):
            return {"outcome": "abstained", "reason": TOO_LARGE, "content": inputs}
        if "unread" in result:
            return {"outcome": "abstained", "reason": content.pop("unread"), "content": content}
        return {"outcome": "ok", "content": content}

    def _count(self, result: Mapping[str, Any] | Exception) -> None:
        """Count a failure to its question. A program that never fits is refused at once."""
        budget = self._books.budget
        if not isinstance(result, Exception):
            self.came.append(None)
            budget.earn()
            return
        if isinstance(result, UnfitProgramError) and not self.came:
            raise result
        if not isinstance(result, RunStoppedError):
            running = budget.stopped is None
            budget.spend(("", self._key[1], self._key[2]), result)
            if running and budget.stopped:
                budget.stopped += f" It was sample {self._number} of the question {self._question.entry.name!r:.80}."
        budget.check()


def _usable_columns(prediction: dspy.Prediction) -> dict[str, Any]:
    """Return the columns of a prediction, `columns`; and of those that cannot be used what is wrong, `unusable`."""
    columns, unusable = dict[str, Any](), list[str]()
    for name in COLUMNS:
        try:
            columns |= read_columns({name: prediction.get(name)}).model_dump(exclude_defaults=True)
        except ArgumentError as error:
            unusable.append(brief(error))
    return {"columns": columns, "unusable": unusable}
