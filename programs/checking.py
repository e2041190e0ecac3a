"""Holding a `Selector` to the laws, whatever an LM says: generated questions and replies, and every way to call.

It needs Hypothesis, which the package does not install by itself. Import `check_selector` from
`eldgr_dspy.programs.testing`; `docs/how-to/test-your-program.md` shows it at work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from string import ascii_lowercase
from typing import Any

import dspy
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Reply
from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError, ReplyError
from eldgr_dspy.laws import LAW, LAWS, Law, LawBroken, laws_named
from eldgr_dspy.laws.constants import Constants, constants_of
from eldgr_dspy.laws.pointed import pointed
from eldgr_dspy.laws.situations import few_situations
from eldgr_dspy.laws.statements import Finding, is_stratified
from eldgr_dspy.laws.trials import SILENT, Outcome, Subject, Trial, told
from eldgr_dspy.programs.consulting import ask
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.invocations import FIELDS, Came, Fresh, awaited, batched, called, scripted
from eldgr_dspy.programs.scenes import Scene, asked_again, at_stake, scenes, situated
from eldgr_dspy.programs.selector import Selector, plain
from eldgr_dspy.questions import Question
from eldgr_dspy.replies import reply_to
from eldgr_dspy.strategies import exemplified, families_of
from eldgr_dspy.words import Role

_SAME = LAW["sync_equals_async_equals_batch_equals_replay"]
_SCORES = LAW["scores_never_cross_strata"]
_TEXT = LAW["no_lm_text_breaks_a_law"]
_OF_A_DECISION = tuple(law for law in LAWS if law.number <= 8)
_COUNTED = (*_OF_A_DECISION, _SAME, _TEXT)
_TRIED = tuple(law for law in LAWS if law in (*_COUNTED, _SCORES))
_CHECKS = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.nested_given)
_TIMES = 8
"""How often a role is asked the same once more, where a law is broken."""
_MOST_OWN, _OWN_PER_DRAWN, _MOST_OF_ONE_TEXT = 64, 3, 16
_KEYS = {*FIELDS, "question", "candidates", "evidence", "task", "text", "title"}
"""Names that a selector is written with in any case."""


def check_selector(
    selector: Selector,
    *,
    asked: st.SearchStrategy[Question] | None = None,
    without: Sequence[str] = (),
    max_examples: int | None = None,
) -> dict[str, int]:
    """Hold a selector to the laws, and say of how many decisions each law had something to say.

    First come small situations, the same each time, those around the numbers and texts that the selector's own class is
    written with, and one question over and over with other evidence and other pools. Then examples of two questions are
    drawn: of two texts, or of one text with two pools. A copy of the selector, its LMs replaced by a scripted one,
    decides each question alone, and another copy decides all of them: one after the other, all at once in one event
    loop, and in a batch. Each decision is held to the laws of the rule (1 to 8), all of them to law 18 (sync = async =
    batch = replay, a replay being the rule driven over the same roles), and what is raised to law 19: it is of a kind
    that `Selector.forward` names.

    The selector that is given is not called and not changed, nor is any LM. Roles, demonstrations, instructions,
    settings and an adapter of the surrounding context take part as they are.

    It samples: no count is a proof. It says nothing about how good a judge is, nor about certificates, which are taken
    at their word, nor about what a role does beside its LM: a tool or a file that it uses is used, and so is a scorer.
    LMs within an object that is no module are not found. A role that answers one request in two ways breaks a law, as
    it should.

    Args:
        selector: Any `Selector`, also compiled, derived from, or with roles of one's own.
        asked: Where the questions come from; by default the small situations of the selector's own task, and questions
            with something at stake in most of them.
        without: The names of laws that are left out.
        max_examples: How many examples are drawn; if it is not given, as many as the Hypothesis profile says, less one
            for every three situations around constants.

    Raises:
        LawBroken: With a situation, or with a question and replies that Hypothesis has made as small as it could.
        ArgumentError: What is given is not a selector, its prediction lacks a field, a law is not known, or no example
            would be tried.
    """
    if not isinstance(selector, Selector):
        raise ArgumentError(f"selector={selector!r:.80} is not a Selector; make one with Selector(...) and give that.")
    if max_examples is not None and max_examples < 1:
        raise ArgumentError(f"max_examples={max_examples!r} tries nothing; expected a whole number from 1.")
    held_to = _left(without)
    tried, own, constants = Counter({law.name: 0 for law in _COUNTED if law in held_to}), [], _constants(selector)
    if asked is None:
        own = situated(pointed(constants, selector.task, most=_MOST_OWN, added=False))
        tried.update(_check_situations(selector, own, held_to))
        asked = at_stake(selector.task, families_of(constants))
    usual = max(1, settings().max_examples - len(own) // _OWN_PER_DRAWN)
    tried.update(_check_drawn(selector, asked, usual if max_examples is None else max_examples, held_to))
    return dict(tried)


def _check_drawn(
    selector: Selector, asked: st.SearchStrategy[Question], examples: int, laws: Sequence[Law]
) -> Counter[str]:
    """Hold a selector to the laws in examples of two questions."""
    tried, broken = Counter[str](), list[LawBroken]()

    def hold(pair: tuple[Scene, Scene], one_text: bool) -> None:
        try:
            tried.update(check_scenes(selector, pair, one_text=one_text, laws=laws))
        except LawBroken as found:
            broken.append(found)
            raise

    drawn = scenes(asked)
    configured = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=_CHECKS,
        phases=(Phase.generate, Phase.shrink),
    )
    try:
        configured(given(st.tuples(drawn, drawn), st.booleans())(hold))()
    except FlakyFailure:  # what was broken once was not broken again
        raise broken[0] from None
    return tried


def _left(without: Sequence[str]) -> list[Law]:
    left_out = laws_named("without", without, _TRIED)
    left = [law for law in _TRIED if law not in left_out]
    if not any(law in _COUNTED for law in left):
        raise ArgumentError(f"without={without!r} leaves no law to be tried; name fewer.")
    return left


def _constants(selector: Selector) -> Constants:
    """The constants that a class of the user's own is written with."""
    found = exemplified(constants_of(selector))
    return replace(found, texts=tuple(text for text in found.texts if text not in _KEYS))


def _check_situations(selector: Selector, own: Sequence[Scene], laws: Sequence[Law]) -> Counter[str]:
    """Hold a selector to the laws in the small situations, in those around its constants, and in some of one text."""
    several = [*situated(few_situations(selector.task)), *own]
    by_last_answer = {scene.question.answers[-1]: scene for scene in several if scene.question.answers}
    tried = check_scenes(selector, several, laws=laws)
    for of_one_text in ([*by_last_answer.values()][:_MOST_OF_ONE_TEXT], asked_again(selector.task)):
        tried += check_scenes(selector, of_one_text, one_text=True, laws=laws)
    return tried


def check_scenes(
    selector: Selector, several: Sequence[Scene], *, one_text: bool = False, laws: Sequence[Law] = _TRIED
) -> Counter[str]:
    """Hold a selector to the laws in a few scenes; returns and raises as `check_selector` does.

    Args:
        selector: The selector. several: the scenes.
        one_text: Whether all of them have the question's text and the replies of the first, over pools of their own.
        laws: Those that are tried.
    """
    asked = _of_one_text(several) if one_text else list(map(_marked, several, _marks()))
    calls = [scene.inputs(selector.answer_field) for scene in asked]
    with scripted(selector, asked) as fresh:
        try:
            settled = [held(fresh(), scene, laws, roles=fresh()) for scene in asked]
            if _SAME in laws:
                _require_the_same_in_every_way(fresh(), settled, calls)
        except LawBroken as found:
            if _SAME in laws:
                _require_roles_that_stand_by_their_word(fresh, found.outcome)
            raise
    everywhere = [law.name for law in (_SAME, _TEXT) if law in laws]
    return Counter(name for one in settled for name in (*one.tried, *everywhere))


@dataclass(frozen=True, slots=True)
class Held:
    """A scene as a rule sees it, what the call came to, and the laws that had something to say of it."""

    trial: Trial
    came: Came
    tried: tuple[str, ...] = ()


def held(select: Selector, scene: Scene, laws: Sequence[Law] = _TRIED, roles: Selector | None = None) -> Held:
    """Call a selector whose LM says what the scene says, and hold what comes of it to the laws 1 to 8 and 19.

    Args:
        select: The selector. scene: the scene. laws: those that are tried.
        roles: A copy whose roles are asked apart, to know what they say; the selector itself if it is not given.

    Raises:
        LawBroken: With the scene.
    """
    came = called(select, scene.inputs(select.answer_field))
    trial = _trial(roles or select, scene)
    if isinstance(came, dict):
        return Held(trial, came, _require_laws(trial, came, laws))
    if _TEXT in laws:
        _require_documented(select, scene, trial, came)
    return Held(trial, came)


# -- the ways to call -------------------------------------------------------------------------------------------------


def _require_the_same_in_every_way(select: Any, settled: Sequence[Held], calls: Sequence[Mapping[str, Any]]) -> None:
    """Hold law 18 against what calls came to, each on a copy of its own: one copy is to come to the same."""
    for one, call in zip(settled, calls, strict=True):
        _require_same("where others were decided before", one, called(select, call))
    for one, other in zip(settled, awaited(select, calls), strict=True):
        _require_same("awaited", one, other)
    kept = [index for index, one in enumerate(settled) if isinstance(one.came, dict)]
    for index, other in zip(kept, batched(select, [calls[index] for index in kept]), strict=True):
        _require_same("in a batch", settled[index], other)


# -- what is held against an outcome ----------------------------------------------------------------------------------


def _trial(select: Selector, scene: Scene) -> Trial:
    """The scene as a rule sees it: what each role replies, asked here apart from the selector."""
    inputs = scene.inputs(select.answer_field)
    case = Case(to_question(**inputs, answer_field=select.answer_field), select.settings)
    replies: dict[Role, Reply] = {role: _reply(select, role, case.question) for role in case.roles()}
    return Trial(case.question, select.settings, replies, case.consensus or "")


def _reply(select: Selector, role: Role, question: Question) -> Reply:
    try:
        said = ask(getattr(select, role), question.role_inputs(role))
    except Exception:  # noqa: BLE001 - where the selector asks this role, it raises the same and is held to account
        return SILENT
    return reply_to(question, role, said.content)


def _require_laws(trial: Trial, fields: Mapping[str, Any], laws: Sequence[Law]) -> tuple[str, ...]:
    """Hold laws 1 to 8 against the fields of a prediction, and all of these against what the rule alone says."""
    found, replayed = _read(trial, fields), _replayed(trial)
    tried = tuple(law.name for law in laws if law in _OF_A_DECISION and law.check(found))
    different = [name for name, value in plain(replayed.decision).items() if fields[name] != value]
    if "scores" in fields and "ranking" in different:
        if _SCORES in laws and not is_stratified(found):
            raise LawBroken(_SCORES, found, Finding(False, f"a ranking by stratum, not {fields['ranking']}", replayed))
        different.remove("ranking")
    if different and _SAME in laws:
        demanded = f"the same from a replay; {', '.join(different)} differ"
        raise LawBroken(_SAME, found, Finding(False, demanded, replayed))
    return tried


def _require_roles_that_stand_by_their_word(fresh: Fresh, found: Outcome) -> None:
    """Hold law 18 against each role where a law is broken: who is asked the same says the same, or nothing follows."""
    for role, reply in found.trial.replies.items():
        select = fresh()
        for _ in range(_TIMES):
            again = _reply(select, role, found.trial.question)
            if again != reply:
                demanded = f"one reply of the {role} to one request; asked once more, it {told(again)}"
                raise LawBroken(_SAME, found, Finding(False, demanded)) from None


def _require_documented(select: Selector, scene: Scene, trial: Trial, error: Exception) -> None:
    """Let pass what `Selector.forward` says that it raises."""
    unread = isinstance(error, dspy.AdapterParseError | ReplyError) and select.on_error == "raise"
    failed = isinstance(error, dspy.LMError) and any(isinstance(said, Exception) for said in scene.said.values())
    if not unread and not failed:
        demanded = f"that from the selector, which raised {type(error).__name__}: {error}"
        raise LawBroken(_TEXT, _replayed(trial), Finding(False, demanded)) from error


def _require_same(way: str, one: Held, other: Came) -> None:
    """Hold law 18 against what one call came to in two ways."""
    trial, came = one.trial, one.came
    if isinstance(came, dict) and isinstance(other, dict):
        if came != other:
            demanded = f"the same {way}; {', '.join(name for name in came if other.get(name) != came[name])} differ"
            raise LawBroken(_SAME, _read(trial, came), Finding(False, demanded, _read(trial, other)))
    elif type(came) is not type(other):
        demanded = f"the same {way}, not {came!r:.300} and {other!r:.300}"
        raise LawBroken(_SAME, _replayed(trial), Finding(False, demanded))


def _replayed(trial: Trial) -> Outcome:
    """What the rule alone does, asking as the settings say."""
    return Subject(lambda case: case.rule("eldgr")(case)).settle(trial)


def _read(trial: Trial, fields: Mapping[str, Any]) -> Outcome:
    """What a prediction says, as an outcome of the rule; `always` asks beforehand, not for want of an answer."""
    replayed = _replayed(trial)
    asked = () if trial.settings.consult == "always" else tuple(fields["consulted"])
    said = Decision(**{name: fields[name] for name in plain(replayed.decision)})
    return replace(replayed, decision=said, asked=asked)


# -- what is asked ----------------------------------------------------------------------------------------------------


def _marks() -> Iterator[str]:
    """First words of questions, by which the script knows which of them is asked: letters, since a number counts."""
    return (f"q{one}{other}z" for one, other in product(ascii_lowercase, repeat=2))


def _marked(scene: Scene, mark: str) -> Scene:
    return replace(scene, question=replace(scene.question, text=f"{mark} {scene.question.text}"))


def _of_one_text(several: Sequence[Scene]) -> list[Scene]:
    """The scenes with the question's text and the replies of the first."""
    first = _marked(several[0], next(_marks()))
    asked = (replace(one.question, text=first.question.text) for one in several)
    return [replace(first, question=question, given=one.given) for question, one in zip(asked, several, strict=True)]
