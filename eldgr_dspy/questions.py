"""What is decided, and by which choices: a question with its frozen pool and evidence, and the settings of the rule."""

from collections.abc import Sequence
from dataclasses import dataclass

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import show_candidate, show_passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import (
    CONSULT,
    HOMOGENEOUS,
    POLICIES,
    PREFERENCE,
    STRICTNESS,
    TASKS,
    Consult,
    Homogeneous,
    Policy,
    Preference,
    Role,
    Strictness,
    Task,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices that a rule leaves open. Each has the name and the default of the selector's argument.

    Attributes:
        certificate: What counts as occurring in the evidence (retrieval).
        derivation: What counts as a checked derivation (arithmetic).
        consult: `lazy` asks only what can still change the outcome, `always` asks every role first; same answers.
        homogeneous: Whether a pool of one class is still repaired; None: `repair` for retrieval, `skip` for arithmetic.
        preference: `global`, Eq. 3's one preference; `stratum`, the paper's other reading (its figure caption): the
            preferred candidate if certified, else the highest-scored certified one.
    """

    certificate: Policy = "folded"
    derivation: Strictness = "bounded"
    consult: Consult = "lazy"
    homogeneous: Homogeneous | None = None
    preference: Preference = "global"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("certificate", self.certificate, POLICIES),
            ("derivation", self.derivation, STRICTNESS),
            ("consult", self.consult, CONSULT),
            ("homogeneous", self.homogeneous, (None, *HOMOGENEOUS)),
            ("preference", self.preference, PREFERENCE),
        ):
            require_one_of(name, value, allowed)


def require_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise an `ArgumentError` that names the argument, unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ArgumentError(f"{name}={value!r} is not known; use one of {', '.join(map(repr, allowed))}.")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its frozen pool and its evidence.

    Attributes:
        text: The question as asked.
        task: Declared, never guessed from the answers (Eq. 4).
        answers: One a candidate, in pool order; None where a candidate has none.
        texts: The candidates' full texts, in the same order; empty where there is nothing beyond the answers.
        passages: The evidence, in the order in which it was retrieved.
    """

    text: str
    task: Task
    answers: tuple[str | None, ...]
    texts: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()

    def __post_init__(self) -> None:
        require_one_of("task", self.task, TASKS)
        if self.texts and len(self.texts) != len(self.answers):
            raise ArgumentError(
                f"There are {len(self.texts)} texts for {len(self.answers)} answers; give one for each."
            )

    def role_inputs(self, role: Role) -> dict[str, object]:
        """Return what `role` is told, by the names of its signature's inputs. The gold answer is not among it."""
        inputs: dict[str, object] = {"question": self.text}
        if role != "deriver":
            inputs["evidence"] = [show_passage(passage.title, passage.text) for passage in self.passages]
        if role == "judge":
            texts = self.texts or tuple(answer or "" for answer in self.answers)
            inputs["candidates"] = [show_candidate(*pair) for pair in zip(texts, self.answers, strict=True)]
        return inputs
