"""A question with its frozen pool and evidence, and the settings of the rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from eldgr_dspy.answer_types import answer_type, load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.named_objects import names_without_hash
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.ballots import Statement
from eldgr_dspy.rule.consultations import show_candidate, show_passage
from eldgr_dspy.rule.own_certificates import OwnCertificate, own_certificate, recorded_certificate
from eldgr_dspy.rule.refusals import REFUSALS, OwnRefusals, Refusals, own_refusals, refusals_of
from eldgr_dspy.words import (
    CONSULT,
    HOMOGENEOUS,
    POLICIES,
    PREFERENCE,
    REFUSAL,
    STRICTNESS,
    Consult,
    Homogeneous,
    Policy,
    Preference,
    Refusal,
    Role,
    Strictness,
    Task,
)

OWN: Mapping[str, Callable[[Any], Any]] = {
    "certificate": recorded_certificate,
    "refusals": own_refusals,
    "answer": load_type,
}
"""The settings that may be of the user's own, and how each is found from what a caller gives."""


class Choices(TypedDict, total=False):
    """Single settings by name, as a selector takes them. See `Settings`."""

    certificate: "Policy | str | Callable[..., Any]"
    derivation: Strictness
    consult: Consult
    homogeneous: Homogeneous | None
    preference: Preference
    refusals: Sequence[str] | Callable[[str], bool] | OwnRefusals
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices that a rule leaves open.

    Attributes:
        certificate: What counts as occurring in the evidence (retrieval): a policy, or a certificate of your own: a
            function `(answer, evidence, question)`, a coroutine function, a DSPy module, or `module:function`; see
            `eldgr_dspy.rule.own_certificates`.
        derivation: What counts as a checked derivation (arithmetic).
        consult: Under `eldgr`, `lazy` asks only roles that can matter, `always` asks every role first; same answers.
        homogeneous: Whether a pool of one class is still repaired; None: as the answer type says,
            `repair` for short text and `skip` for numbers.
        preference: `global`, Eq. 3's one preference; `stratum`, the paper's other reading (its figure caption): the
            preferred candidate if certified, else the highest-scored certified one.
        refusals: Answers such as "I don't know": phrases, or a function of your own `(answer) -> bool`, given as a
            function or as `module:function`; `()` for none. See `eldgr_dspy.rule.refusals`.
        refusal: What a refusal is. `inapplicable`: as a yes or no is, it is final as consensus and never overrides
            (retrieval, and not under `substring`). `no_answer`: a candidate without an answer, which does not vote.
        answer: The answer type that each question must have, as a value or a name, or None for any.
    """

    certificate: Policy | OwnCertificate = "folded"
    derivation: Strictness = "bounded"
    consult: Consult = "lazy"
    homogeneous: Homogeneous | None = None
    preference: Preference = "global"
    refusals: Refusals = REFUSALS
    refusal: Refusal = "inapplicable"
    answer: AnswerType | Task | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", None if self.answer is None else load_type(self.answer))
        certificate: object = self.certificate
        if callable(certificate) or (isinstance(certificate, str) and ":" in certificate):
            object.__setattr__(self, "certificate", own_certificate(certificate))
        object.__setattr__(self, "refusals", refusals_of(self.refusals))
        require_one_of("certificate", self.certificate, (*POLICIES, self.own) if self.own else POLICIES)
        require_one_of("derivation", self.derivation, STRICTNESS)
        require_one_of("consult", self.consult, CONSULT)
        require_one_of("homogeneous", self.homogeneous, (None, *HOMOGENEOUS))
        require_one_of("preference", self.preference, PREFERENCE)
        require_one_of("refusal", self.refusal, REFUSAL)

    @property
    def own(self) -> OwnCertificate | None:
        """The certificate of the user's own, None under a policy."""
        return self.certificate if isinstance(self.certificate, OwnCertificate) else None

    @property
    def type(self) -> AnswerType | None:
        """The answer type that each question must have, or None for any."""
        return self.answer if isinstance(self.answer, AnswerType) else None

    def type_of(self, question: "Question") -> AnswerType:
        """Return the answer type of a question: its own, but the one of the settings where it only states the name."""
        own = self.type
        if own is None or question.kind is not None or question.task != own.name_in_files:
            return question.type
        return own

    def arguments(self) -> dict[str, Any]:
        """Return the settings by name, as the selector takes them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def to_json(self) -> dict[str, Any]:
        """Return the settings by name, as files state them. A user's function by its name and a hash.

        `refusals=()` alone is not stated: it is what files from before this setting mean. Nor is an answer type of this
        package, because the question names it.
        """
        own = {
            "certificate": self.own.to_json() if self.own else self.certificate,
            "refusals": self.refusals.to_json() if isinstance(self.refusals, OwnRefusals) else [*self.refusals],
        }
        omissions = () if self.refusals or self.refusal != "inapplicable" else ("refusals", "refusal")
        settings = {name: value for name, value in {**self.arguments(), **own}.items() if name not in omissions}
        if (kind := settings.pop("answer", None)) is not None and kind.is_own:
            settings["answer"] = kind.to_json()
        return settings

    @classmethod
    def from_json(cls, settings: Mapping[str, Any], objects: Mapping[str, object] | None = None) -> "Settings":
        """Return the settings that a file states. A file without `refusals` decided without them, so there are none.

        A name in the file is compared with the caller's `objects`, by the names of `OWN`, and never looked up.

        Raises:
            ArgumentError: A setting is not known, or one of the user's own is not given or has been changed.
            TypeError: A name is not known.
        """
        require_hashes(settings)
        objects = {name: value for name, value in (objects or {}).items() if value is not None}
        own = {name: _same(name, settings[name], objects.pop(name, None)) for name in own_names(settings)}
        if objects:
            raise ArgumentError(f"{', '.join(objects)} must be left out, because the run states none of your own.")
        plain = {"refusals": (), **{name: value for name, value in settings.items() if name not in own}}
        if isinstance(plain["refusals"], str) or ":" in str(plain.get("certificate")) or "answer" in plain:
            raise ArgumentError(f"A name must be stated with the hash of its source; got {plain!r:.200}.")
        return cls(**plain | own)


def own_names(settings: Mapping[str, Any]) -> list[str]:
    """Return which of the settings in a file are of the user's own."""
    return [name for name in OWN if isinstance(settings.get(name), Mapping)]


def option_of(name: str) -> str:
    """Return how the command is given a setting of the user's own."""
    return "--set refusals=MODULE:NAME" if name == "refusals" else f"--{name} MODULE:NAME"


def require_hashes(settings: Mapping[str, Any]) -> None:
    """Refuse settings in a file that state one of the user's own without its source's hash: nothing could differ."""
    for name in own_names(settings):
        if not isinstance(settings[name].get("source"), str) or any(names_without_hash(settings[name])):
            raise ArgumentError(
                f"{name}={settings[name].get('name')!r:.80} is stated without a hash of its source, so a change of it "
                "would not be noticed. Write it in a module, and start anew."
            )


def _same(name: str, setting: Mapping[str, Any], value: object) -> Any:
    if value is None:
        raise ArgumentError(
            f"{name}={setting.get('loaded_as', setting.get('name'))!r:.80} is of your own, and a file imports nothing. "
            f"Give it: {option_of(name)}, or {name}= in Python."
        )
    own = OWN[name](value)
    if changes := differences(dict(setting), own.to_json()):
        raise ArgumentError(f"{name}={value!r:.80} is not what the file states: {'; '.join(changes)}. Undo the change.")
    return own


def require_one_of(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise an `ArgumentError` that names the argument, unless `value` is one of `choices`."""
    if value not in choices:
        raise ArgumentError(f"{name}={value!r} is not known; use one of {', '.join(map(repr, choices))}.")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its frozen pool and its evidence.

    Attributes:
        text: The question as asked.
        task: The answer type as files state it. It is declared, never guessed from the answers (Eq. 4).
        answers: One a candidate, in pool order, or None where a candidate has none.
        texts: The candidates' full texts, in the same order. Empty if only the answers are known.
        passages: The evidence, in the order in which it was retrieved.
        options: What there is to choose from, for a type that needs options.
        kind: The answer type itself, where no name finds it, or None for the one of that name.
        states: Returns `stated`. It is called only for a judge that counts.
        comparisons: The time for comparing its answers, and what a run recorded of that, or None for a new start.
    """

    text: str
    task: Task
    answers: tuple[str | None, ...]
    texts: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    options: tuple[str, ...] = ()
    kind: AnswerType | None = field(default=None, repr=False, compare=False)
    states: Callable[[], tuple[Statement, ...]] = field(default=tuple, repr=False, compare=False)
    comparisons: Comparisons | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", self.type.name_in_files)
        if self.texts and len(self.texts) != len(self.answers):
            raise ArgumentError(
                f"texts must have one entry per answer; got {len(self.texts)} texts for {len(self.answers)} answers."
            )

    @property
    def type(self) -> AnswerType:
        """The answer type."""
        return self.kind or answer_type(self.task, "task")

    @property
    def stated(self) -> tuple[Statement, ...]:
        """What the pool states of each candidate besides, in the same order. Empty if it states nothing."""
        return self.states()

    def role_inputs(self, role: Role) -> dict[str, object]:
        """Return the inputs of `role`, by the names of its signature's fields. The gold answer is not among them."""
        text: object = self.type.shown_question(self)
        if not isinstance(text, str):
            raise ArgumentError(f"{self.type.name}.shown_question(question) must return text; got {text!r:.60}.")
        inputs: dict[str, object] = {"question": text}
        if role != "deriver":
            inputs["evidence"] = [show_passage(passage.title, passage.text) for passage in self.passages]
        if role == "judge":
            texts = self.texts or tuple(answer or "" for answer in self.answers)
            inputs["candidates"] = [show_candidate(*pair) for pair in zip(texts, self.answers, strict=True)]
        return inputs
