"""Free text: answers of sentences, compared and certified by what an NLI model reads. Experimental.

Two answers are alike if each entails the other, given the question, and their hard keys are equal. A class is what
these pairs connect; a class that holds a contradicted pair falls apart into single answers. An answer is certified if
each of its claims is entailed by some window of a passage, and the claims answer the question. An NLI model may be
wrong: until `eldgr calibrate` has measured how often it is right on your data, the type is experimental.

Sources: classes by entailment both ways, from semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024), but without
its greedy clustering, which depends on order; claims against the best window, from MiniCheck (Tang et al. 2024), with
sentences for the atomic facts of FActScore (Min et al. 2023) and the minimum for its mean; whether the answer answers
the question, as in RAGAS (Es et al. 2024) and Self-RAG (Asai et al. 2024), here as a hypothesis. Hard keys, bounds and
the two batches are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from eldgr_dspy.answer_types.base import Asked, Certifying, require_gold
from eldgr_dspy.answer_types.entailment.about import GOAL, About, wording
from eldgr_dspy.answer_types.entailment.calibration import Calibration, load_calibration
from eldgr_dspy.answer_types.entailment.readings import NLI, nli_of
from eldgr_dspy.answer_types.entailment.support import FreeTextEvidence
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, settled
from eldgr_dspy.named_objects import name_of, source_of
from eldgr_dspy.structured import Structured
from eldgr_dspy.text_keys import AnswerClass
from eldgr_dspy.words import Policy

THRESHOLD = 0.9
"""From this probability on, a window entails a claim, without a calibration."""

_WORDED = ("spelling_within_a_class_does_not_matter", "spelling_does_not_decide", "a_spelling_changes_no_certificate")
"""The laws that free text gives up: the model reads each wording for itself."""

Scorer = Callable[[str, Sequence[str]], bool]


class FreeText(Related):
    """Answers of sentences. A value; `of` returns the type for one question, which asks the model at most twice.

    The first call reads all that the pool needs: pairs of its answers, their claims with the windows of the passages,
    and whether they answer the question. The second reads the same of a repair. What was read is kept for the question
    alone; `load_nli` remembers more.

    Attributes:
        experimental: Whether the threshold is not calibrated.
    """

    name = "free_text"
    way = "evidence"
    scores = ("accuracy",)
    connects = True

    def __init__(
        self,
        nli: NLI | Callable[..., Any] | None = None,
        calibration: Calibration | Path | str | float | None = None,
        *,
        veto: bool = False,
        scorer: Scorer | None = None,
        goal: str = GOAL,
    ) -> None:
        """Make the type.

        Args:
            nli: An NLI model, or a function of (premise, hypothesis) pairs that returns contradiction, neutral and
                entailment. Without one, the type can be named, but not used.
            calibration: What `eldgr calibrate` wrote; or a threshold of your own.
            veto: Whether an answer that a passage contradicts is uncertified. Then more evidence may uncertify.
            scorer: Says whether an answer is right, given gold answers; by default it must be like one of them.
            goal: The hypothesis that an answer to the question entails, with the question as `{}`.

        Raises:
            ArgumentError: An argument is not what it must be, or the calibration is of another model.
        """
        self.nli = None if nli is None else nli_of(nli)
        self.calibration = load_calibration(calibration) if isinstance(calibration, Path | str) else calibration
        self.experimental = not isinstance(self.calibration, Calibration)
        self.threshold = self._threshold()
        self.veto, self.scorer, self.goal = veto, scorer, goal
        self.gives_up = (*_WORDED, "more_evidence_never_uncertifies") if veto else _WORDED
        if goal.count("{}") != 1:
            raise ArgumentError(f"goal must hold {{}} once, in the place of the question; got {goal!r:.80}.")
        if isinstance(self.calibration, Calibration) and self.calibration.model != self.reader:
            raise ArgumentError(
                f"calibration must be of the NLI model {self.reader!r}; got one of {self.calibration.model!r}. Run "
                "eldgr calibrate with this model."
            )
        self._about: About | None = None

    @property
    def reader(self) -> str:
        """What readings depend on: the name of the model, and a goal of your own."""
        return ("" if self.nli is None else self.nli.name) + ("" if self.goal == GOAL else f" goal={self.goal!r}")

    def of(self, question: Asked) -> "FreeText":
        """Return the type for a question."""
        bound = copy(self)
        bound._about = About(self._model, self.goal, question.text, question.answers, question.passages, question.texts)
        return bound

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of an answer by its wording alone, as short text has it."""
        return wording(answer)

    def alike(self, one: str, other: str) -> bool:
        """Return whether each of two answers entails the other, given the question, and their hard keys are equal.

        A list or an object is like no other answer.
        """
        return not isinstance(one, Structured) and not isinstance(other, Structured) and self.about.alike(one, other)

    def joins(self, answer: str, members: Sequence[str]) -> bool:
        """Return whether a later answer is like all members of a class."""
        return all(self.alike(answer, member) for member in members)

    def components(self, answers: Mapping[str, str]) -> list[list[str]]:
        """Return the classes; what pairs connect, unless a pair in it is contradicted."""
        classes: list[list[str]] = []
        for keys in super().components(answers):
            apart = self.about.any_contradicted([answers[key] for key in keys])
            classes.extend([key] for key in keys) if apart else classes.append(keys)
        return classes

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer is like a gold answer, or what the scorer says. The model may be asked once more.

        Raises:
            ArgumentError: The scorer returned something other than True or False.
        """
        require_gold(gold)
        if answer is None or (class_ := self.class_of(answer)) is None:
            return False
        if self.scorer is not None:
            said = settled(self.scorer(answer, gold), "scorer", "give a function that is not")
            if type(said) is not bool:
                raise ArgumentError(f"scorer({answer!r:.60}, ...) must be True or False; got {said!r:.60}.")
            return said
        return class_ in map(self.class_of, gold) or self.about.like_any(answer, gold)

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        """Return the passages as they certify; a policy for occurrences says nothing of entailment."""
        return self.free_text_evidence(passages)

    def free_text_evidence(self, passages: Sequence[Passage]) -> FreeTextEvidence:
        """Return the passages as they certify and support free text."""
        calibrated = not self.experimental
        return FreeTextEvidence(self.about, passages, self.threshold, veto=self.veto, calibrated=calibrated)

    @property
    def is_own(self) -> bool:
        """Whether files state the model: if there is one."""
        return self.nli is not None

    def to_json(self) -> dict[str, Any]:
        """Return the name, the source and all that decides."""
        measured = self.calibration.to_json() if isinstance(self.calibration, Calibration) else None
        scorer = None if self.scorer is None else {"name": name_of(self.scorer), "source": source_of(self.scorer)}
        settings = {"nli": self.reader, "threshold": self.threshold, "veto": self.veto, "goal": self.goal}
        return {**super().to_json(), **settings, "calibration": measured, "scorer": scorer}

    @property
    def about(self) -> About:
        """What is read of the question; of none, if the type is not that for a question."""
        return self._about or About(self._model, self.goal)

    @property
    def _model(self) -> NLI:
        if self.nli is None:
            raise ArgumentError(
                "free_text must have an NLI model; got none. Give Selector(answer=FreeText(load_nli(MODEL), "
                "CALIBRATION)), or name such an object of yours: --answer my_types:free_text."
            )
        return self.nli

    def _threshold(self) -> float:
        given: object = self.calibration
        given = given.threshold if isinstance(given, Calibration) else THRESHOLD if given is None else given
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0.5 < given <= 1:
            raise ArgumentError(
                f"calibration must be a Calibration, a file, or a threshold above 0.5 and at most 1; got {given!r}."
            )
        return float(given)
