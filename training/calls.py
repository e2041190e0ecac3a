"""One call of a reward function: the completions as texts, with the dataset's columns beside them.

A trainer passes everything by keyword, one entry a completion. What is missing or of the wrong kind is refused in a
sentence that names the reward, the column and the remedy.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import Extraction, extract_answer
from eldgr_dspy.words import TASKS, Task

Message = Mapping[str, object]
Completion = str | Sequence[Message]

COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "task": "'retrieval' or 'arithmetic'",
        "gold": "the right answer, a list of accepted ones, or null",
        "question": "the question as text",
        "evidence": "the passages as strings or as {title, text}, or null where there is no corpus",
    }
)
"""The columns that rewards read beside `prompt`, and what each holds."""

_FALLBACKS: Final = frozenset({"last_number", "whole"})


@dataclass(frozen=True, slots=True)
class Call:
    """What a reward was called with.

    Attributes:
        reward: The name of the reward, for errors.
        prompts: One a completion: text, or messages.
        texts: What the model wrote, one a completion.
        columns: Everything else that was passed, by name.
        trainer: Who calls, where that can be told; None otherwise.
    """

    reward: str
    prompts: Sequence[object]
    texts: tuple[str, ...]
    columns: Mapping[str, object]
    trainer: Any = None

    @classmethod
    def of(
        cls, reward: str, prompts: Sequence[object], completions: Sequence[Completion], columns: Mapping[str, object]
    ) -> "Call":
        """Return the call as TRL made it; the trainer is whose method `log_metric` is, if that is one of TRL's.

        Raises:
            ArgumentError: A completion is neither text nor messages, or a message's content is not text.
        """
        owner = getattr(columns.get("log_metric"), "__self__", None)
        trainer = owner if hasattr(owner, "model") and hasattr(owner, "num_generations") else None
        return cls(reward, prompts, texts_of(completions), columns, trainer)

    def column(self, name: str) -> list[Any]:
        """Return a column of the dataset, one entry a completion.

        Args:
            name: Of `COLUMNS`.

        Raises:
            ArgumentError: There is no such column, or it has another length.
        """
        values = self.columns.get(name)
        if values is None:
            raise ArgumentError(missing_column(self.reward, name))
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(self.texts):
            size = f"{len(values)} entries" if isinstance(values, Sized) else repr(values)
            raise ArgumentError(
                f"The column {name!r} came to the reward {self.reward!r} as {size:.80} for {len(self.texts)} "
                "completions; give one entry for each."
            )
        return list(values)

    def strings(self, name: str) -> list[str]:
        """Return a column whose entries are text; raises what `column` raises, also for an entry that is not."""
        values = self.column(name)
        for at, value in enumerate(values):
            if not isinstance(value, str):
                raise ArgumentError(
                    f"{name}[{at}] is {value!r:.80}, but the reward {self.reward!r} expects {COLUMNS[name]}; mend the "
                    "row of the dataset."
                )
        return values

    def tasks(self, task: Task | None) -> list[Task]:
        """Return the task of each row: `task` where it is given, otherwise the dataset's column of that name.

        Raises:
            ArgumentError: A task is not one of the two; also as `strings`.
        """
        if task is not None:
            return [task] * len(self.texts)
        named = self.strings("task")
        found: dict[str, Task] = {one: one for one in TASKS}
        for at, one in enumerate(named):
            if one not in found:
                raise ArgumentError(
                    f"task[{at}]={one!r:.80} is not a task; give 'retrieval' or 'arithmetic' in the dataset's column "
                    "task."
                )
        return [found[one] for one in named]

    def answers(self, task: Task | None) -> list[Extraction | None]:
        """Return the final answer of each completion with its form; None for one that has none."""
        return [extract_answer(text, one) for text, one in zip(self.texts, self.tasks(task), strict=True)]

    def passages(self) -> list[tuple[Passage, ...] | None]:
        """Return the passages of each row; None for one that has no corpus, which is not the same as an empty one.

        Raises:
            ArgumentError: A row's evidence is not passages; also as `column`.
        """
        return [None if given is None else self._read(at, given) for at, given in enumerate(self.column("evidence"))]

    def _read(self, at: int, evidence: object) -> tuple[Passage, ...]:
        from eldgr_dspy.programs.inputs import to_passages  # DSPy stands behind it, which `orm` and `format` do without

        try:
            return to_passages(evidence)
        except ArgumentError as error:
            raise ArgumentError(
                f"evidence[{at}] cannot be used ({error}) The reward {self.reward!r} expects {COLUMNS['evidence']}; "
                "mend the row of the dataset."
            ) from error


def is_marked(found: Extraction | None) -> bool:
    """Whether an answer is stated as one, and not guessed from where it stands."""
    return found is not None and found.form not in _FALLBACKS


def missing_column(reward: str, name: str) -> str:
    """Return the sentence for a column that a reward needs and the dataset lacks."""
    return (
        f"The reward {reward!r} needs the column {name!r} ({COLUMNS[name]}), and it was not passed; add it to the "
        "dataset, and leave remove_unused_columns at False."
    )


def texts_of(completions: Sequence[Completion]) -> tuple[str, ...]:
    """Return what the model itself wrote: with tools, a completion also holds messages that it did not.

    Raises:
        ArgumentError: A completion is neither text nor messages, or a message's content is not text.
    """
    return tuple(_text(at, completion) for at, completion in enumerate(completions))


def _text(at: int, completion: object) -> str:
    if isinstance(completion, str):
        return completion
    messages: list[Any] = list(completion) if isinstance(completion, Sequence) else [None]
    if not all(isinstance(message, Mapping) for message in messages):
        raise ArgumentError(
            f"completions[{at}] is {completion!r:.80}, but text or a list of messages was expected; give what was "
            "written, '' where it is nothing."
        )
    return "\n".join(_content(message) for message in messages if message.get("role") == "assistant")


def _content(message: Message) -> str:
    content = message.get("content")
    if content is None:  # a message that only calls a tool
        return ""
    if isinstance(content, str):
        return content
    raise ArgumentError(
        f"completions: a message's content is {content!r:.80}, but text was expected; "
        "join the text parts of the message before it is rewarded."
    )
