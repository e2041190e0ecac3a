"""One call of a reward function: what each completion says, and the dataset's columns.

A trainer passes everything by keyword, one entry a completion. If something is missing or of the wrong kind, the error
names the reward, the column and the remedy.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from eldgr_dspy.answer_types import BUILT_IN, IN_FILES
from eldgr_dspy.answer_types.extraction import Extraction, extract_answer
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.training.model_outputs import Completion, Output, outputs_of
from eldgr_dspy.words import Task

WITHOUT_OPTIONS: Final = {name: kind for name, kind in BUILT_IN.items() if not kind.needs_options}
COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "task": f"one of {', '.join(map(repr, WITHOUT_OPTIONS))}",
        "gold": "the right answer, a list of accepted ones, or null",
        "question": "the question as text",
        "evidence": "the passages as strings or as {title, text}, or null where there is no corpus",
    }
)
"""The columns that rewards read besides `prompt`, and the content of each."""

_FALLBACKS: Final = frozenset({"last_number", "whole"})


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call of a reward.

    Attributes:
        reward: The name of the reward, for errors.
        prompts: One a completion: text, or messages.
        outputs: What the model wrote, one a completion.
        columns: Everything else that was passed, by name.
        trainer: Who calls, if known; None otherwise.
    """

    reward: str
    prompts: Sequence[object]
    outputs: tuple[Output, ...]
    columns: Mapping[str, object]
    trainer: Any = None

    @classmethod
    def of(
        cls, reward: str, prompts: Sequence[object], completions: Sequence[Completion], columns: Mapping[str, object]
    ) -> "Call":
        """Return the call as TRL made it; the trainer owns `log_metric`, if that is a method of one of TRL's."""
        owner = getattr(columns.get("log_metric"), "__self__", None)
        trainer = owner if hasattr(owner, "model") and hasattr(owner, "num_generations") else None
        ids: Any = columns.get("completion_ids") or ()
        return cls(reward, prompts, outputs_of(completions, prompts, trainer, ids), columns, trainer)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model wrote, thinking included, with white space in place of the tags around it."""
        return tuple(output.reasoning for output in self.outputs)

    def column(self, name: str) -> list[Any]:
        """Return a column of `COLUMNS`; raise an `ArgumentError` if it is missing, or of another length."""
        values = self.columns.get(name)
        if values is None:
            raise ArgumentError(missing_column(self.reward, name))
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(self.outputs):
            size = f"{len(values)} entries" if isinstance(values, Sized) else repr(values)
            raise ArgumentError(
                f"The column {name!r} for the reward {self.reward!r} must have one entry for each of "
                f"{len(self.outputs)} completions; got {size:.80}."
            )
        return list(values)

    def strings(self, name: str) -> list[str]:
        """Return a column whose entries are text; raises what `column` raises, also for an entry that is not."""
        values = self.column(name)
        for at, value in enumerate(values):
            if not isinstance(value, str):
                raise ArgumentError(
                    f"{name}[{at}] must be {COLUMNS[name]} for the reward {self.reward!r}; got {value!r:.80}. Fix the "
                    "row of the dataset."
                )
        return values

    def tasks(self) -> list[Task]:
        """Return the task of each row; raises what `strings` raises, also for a task that is not known."""
        names = self.strings("task")
        for at, name in enumerate(names):
            if name not in IN_FILES or IN_FILES[name].needs_options:  # no column has the options
                raise ArgumentError(
                    f"task[{at}] must be {COLUMNS['task']}, in the dataset's column task; got {name!r:.80}."
                )
        return names

    def answers(self) -> list[Extraction | None]:
        """Return the final answer of each completion with its form; None if it has none, or its thinking never ends."""
        rows = zip(self.outputs, self.tasks(), strict=True)
        return [extract_answer(output.final, row_task) for output, row_task in rows]

    def passages(self) -> list[tuple[Passage, ...] | None]:
        """Return the passages of each row; None for one without a corpus, which differs from an empty corpus."""
        return [None if row is None else self._parse(at, row) for at, row in enumerate(self.column("evidence"))]

    def require_passages(self) -> None:
        """Raise an `ArgumentError` if no row has passages, as a reward that reads them would be another one then."""
        if not any(self.column("evidence")):
            raise ArgumentError(
                f"The reward {self.reward!r} reads passages, but no row of the dataset has any in the column "
                "'evidence'; add them as strings or as {title, text}, or give all rows one corpus, by the field corpus "
                "of a recipe or by StepReward(NLIScorer(nli, retriever=...), evidence=False)."
            )

    def _parse(self, at: int, evidence: object) -> tuple[Passage, ...]:
        try:
            return to_passages(evidence)
        except ArgumentError as error:
            raise ArgumentError(
                f"evidence[{at}] cannot be used ({error}) The reward {self.reward!r} expects {COLUMNS['evidence']}; "
                "fix the row of the dataset."
            ) from error


def is_marked(extraction: Extraction | None) -> bool:
    """Return whether an answer is stated as one, and not guessed from its place."""
    return extraction is not None and extraction.form not in _FALLBACKS


def missing_column(reward: str, name: str) -> str:
    """Return the sentence about a column that a reward needs and the dataset lacks."""
    return (
        f"The reward {reward!r} needs the column {name!r} ({COLUMNS[name]}), but it was not passed; add it to the "
        "dataset, and leave remove_unused_columns at False."
    )
