"""A selector is swapped, saved, loaded, compiled, copied and called in any order, and the laws hold after each step."""

import copy
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import dspy
import pytest
from dspy import lm15
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ReplyError
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.programs.checks.checking import check_scene
from eldgr_dspy.programs.heuristics import ExtractiveRepairer, LexicalJudge, SilentDeriver
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.scripted import reply_to
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.signatures import JudgeCandidates, RepairAnswer
from eldgr_dspy.testing import lm_replies, questions, rule_settings
from eldgr_dspy.words import ROLES, TASKS, Role
from tests.scenes import CONTESTED, DERIVATION, PENS, repair, verdict
from tests.selecting import Returns, example_of, inputs_of, select_acall, select_batch, select_parallel, select_sync

EVIDENCE = (Passage("", "Doha is the capital of Qatar."), Passage("", "Qatar lies on the Persian Gulf."))
QUESTIONS = (
    Question("Which city?", "retrieval", ("Dubai", "Dubai", "Doha"), (), EVIDENCE),
    Question("Which city?", "retrieval", ("Doha", "Doha", "Dubai"), (), EVIDENCE),
    Question(PENS["question"], "arithmetic", ("35", "35", "36")),
)

KINDS: dict[Role, tuple[Callable[[], Any], ...]] = {
    "judge": (Judge, lambda: dspy.ChainOfThought(JudgeCandidates), LexicalJudge, lambda: Returns({"preferred": 2}),
        lambda: Returns({"preferred": True, "assessments": "none"})),
    "repairer": (Repairer, lambda: dspy.ChainOfThought(RepairAnswer), ExtractiveRepairer,
        lambda: Returns({"repaired_answer": "Persian Gulf"})),
    "deriver": (Deriver, SilentDeriver, lambda: Returns(DERIVATION),
        lambda: Returns({"derivation_steps": [], "derived_answer": "36"})),
}  # fmt: skip
"""What a role may be played by: as the selector has it, with a further field, without an LM, right or wrong."""


@st.composite
def voices(draw: st.DrawFn) -> dict[Any, Any]:
    """What an LM says to each role: what may be right, or anything."""
    usual = {
        "judge": st.integers(-1, 3).map(lambda index: verdict(index, 0)),
        "repairer": st.sampled_from(("Doha", "Persian Gulf", "Manama", "")).map(repair),
        "deriver": st.just(DERIVATION),
    }
    return {role: draw(lm_replies() if draw(st.integers(0, 4)) == 4 else kind) for role, kind in usual.items()}


def speaking(voice: Any) -> Any:
    return scripted_lm(lambda request: reply_to(request, Trial(QUESTIONS[0], replies=voice)))


@contextmanager
def unbound(select: Selector) -> Iterator[list[Any]]:
    """The LMs of the predictors, taken from them meanwhile: connections are not saved."""
    result = [predictor.lm for predictor in predictors(select)]
    bind(select, [None] * len(result))
    yield result
    bind(select, result)


def bind(select: Selector, lms: list[Any]) -> None:
    for predictor, lm in zip(predictors(select), lms, strict=True):
        predictor.lm = lm


def predictors(select: Selector) -> list[Any]:
    """Also of the roles that are not asked in the selector's own task."""
    return [predictor for role in ROLES for predictor in getattr(select, role).predictors()]


class SelectorMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lm = speaking({})
        self.kinds: dict[Role, Callable[[], Any]] = {role: KINDS[role][0] for role in ROLES}
        self.select = Selector()

    def new_selector(self) -> Selector:
        """A selector as the user's code makes it, before anything is loaded into it."""
        select = Selector(answer=self.select.type, on_error=self.select.on_error)
        select.settings = self.select.settings
        for role, kind in self.kinds.items():
            setattr(select, role, kind())
        return select

    @contextmanager
    def context(self, lm: Any = None) -> Iterator[None]:
        with dspy.context(lm=lm or self.lm, disable_history=True, trace=None):
            yield

    @initialize(voice=voices(), options=rule_settings)
    def begin(self, voice: Any, options: Settings) -> None:
        self.lm, self.select.settings = speaking(voice), options

    # -- whose LM --
    @rule(voice=voices())
    def another_lm_in_the_context(self, voice: Any) -> None:
        self.lm = speaking(voice)

    @rule(voice=voices(), who=st.sampled_from(("", *ROLES)))
    def one_lm_for_all_roles_or_for_one(self, voice: Any, who: str) -> None:
        (getattr(self.select, who) if who else self.select).set_lm(speaking(voice))

    @rule()
    def an_lm_that_fails(self) -> None:
        with self.context(scripted_lm(lambda _: lm15.ServerError("down"))):
            for question in QUESTIONS:
                with suppress(dspy.DSPyError, ReplyError):
                    self.select(**inputs_of(question))

    # -- what it is made of --
    @rule(role=st.sampled_from(ROLES), data=st.data())
    def another_module_in_a_role(self, role: Role, data: st.DataObject) -> None:
        self.kinds[role] = KINDS[role][data.draw(st.integers(0, len(KINDS[role]) - 1))]
        setattr(self.select, role, self.kinds[role]())

    @rule(
        options=rule_settings,
        answer=st.sampled_from(("short", "number")),
        on_error=st.sampled_from(("abstain", "raise")),
    )
    def other_settings(self, options: Settings, answer: str, on_error: Any) -> None:
        self.select.settings, self.select.type, self.select.on_error = options, answer_type(answer), on_error

    @rule(role=st.sampled_from(ROLES), words=st.sampled_from(("Be brief.", "Ship what you prefer.", "{0.__class__}")))
    def other_instructions(self, role: Role, words: str) -> None:
        for predictor in getattr(self.select, role).predictors():
            predictor.signature = predictor.signature.with_instructions(words)

    @precondition(lambda self: not getattr(self.select, "_compiled", False))
    @rule(voice=voices(), accepts=st.booleans())
    def run_an_optimizer(self, voice: Any, accepts: bool) -> None:
        optimizer = dspy.BootstrapFewShot(metric=lambda *_: accepts, max_bootstrapped_demos=1, max_labeled_demos=1)
        teacher = self.select.deepcopy()
        teacher.set_lm(speaking(voice))
        teacher.on_error = "abstain"
        trainset = [example_of(CONTESTED), example_of(PENS)]
        with self.context():
            self.select = optimizer.compile(self.select, teacher=teacher, trainset=trainset)

    # -- copies and files --
    @rule()
    def save_and_load(self) -> None:
        twin = self.new_selector()
        with unbound(self.select) as lms, tempfile.TemporaryDirectory() as folder:
            self.select.save(Path(folder) / "select.json")
            twin.load(Path(folder) / "select.json")
            bind(twin, lms)
        self.select = twin

    @rule(copier=st.sampled_from((copy.deepcopy, Selector.deepcopy, Selector.reset_copy)))
    def make_a_copy(self, copier: Any) -> None:
        self.select = copier(self.select)

    @rule()
    def pickle_and_unpickle(self) -> None:
        with unbound(self.select) as lms:
            twin = cloudpickle.loads(cloudpickle.dumps(self.select))
            bind(twin, lms)
        self.select = twin

    # -- calls --
    @rule(
        call=st.sampled_from((select_sync, select_acall, select_batch, select_parallel)),
        question=st.sampled_from(TASKS).flatmap(questions),
    )
    def call_it(self, call: Any, question: Question) -> None:
        with self.context():
            outcome = check_scene(self.select, Trial(question)).output
            if isinstance(outcome, dict):
                assert call(self.select, inputs_of(question)).toDict() == outcome

    @invariant()
    def the_laws_hold(self) -> None:
        with self.context():
            for question in QUESTIONS:
                check_scene(self.select, Trial(question))


MOST = max(25, settings().max_examples // 20)
TestSelectorMachine = pytest.mark.law("no_optimizer_breaks_a_law", "property")(
    pytest.mark.slow(SelectorMachine.TestCase)
)
TestSelectorMachine.settings = settings(
    max_examples=MOST, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
