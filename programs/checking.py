"""Check a `Selector` against the laws, whatever an LM says: generated questions and replies, every way to call.

It needs Hypothesis, which the package does not install. Import `check_selector` from `eldgr_dspy.programs.testing`;
`docs/reference/testing.md` shows it at work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from string import ascii_lowercase
from typing import Any

import dspy
from hypothesis import strategies as st

from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import is_withheld, replies_in
from eldgr_dspy.consultations import Heard
from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError, CertificateError, ReplyError
from eldgr_dspy.falsifying import falsify
from eldgr_dspy.laws import LAW, LAWS, Law, LawBroken
from eldgr_dspy.laws.findings import Finding, first_broken, laws_left, require_laws
from eldgr_dspy.laws.invariances import is_stratified
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.of_types import kept
from eldgr_dspy.laws.situations import few_situations
from eldgr_dspy.laws.trials import SILENT, Outcome, Subject, Trial, told
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.invocations import (
    FIELDS,
    Came,
    Fresh,
    as_certified,
    awaited,
    batched,
    called,
    reply_apart,
    scripted,
)
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.programs.program_checks import Inputs, check_returned
from eldgr_dspy.programs.scenes import Scene, repeats, scenes, situated
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.questions import Question
from eldgr_dspy.rules import is_own
from eldgr_dspy.strategies import questions
from eldgr_dspy.words import ROLES, Consulted

_SAME = LAW["sync_equals_async_equals_batch_equals_replay"]
_SCORES = LAW["scores_never_cross_strata"]
_TEXT = LAW["no_lm_text_breaks_a_law"]
_OF_A_DECISION = tuple(law for law in LAWS if law.number <= 8)
_COUNTED = (*_OF_A_DECISION, _SAME, _TEXT)
_TRIED = tuple(law for law in LAWS if law in (*_COUNTED, _SCORES))
_TIMES = 8
"""How often a role is asked the same question again when a law is broken."""
_MOST_OWN, _MOST_OF_ONE_TEXT = 64, 16
_KEYS = {*FIELDS, "question", "candidates", "evidence", "text", "title"}
"""Names that every selector's code contains."""


def check_selector(
    selector: Selector | dspy.Module,
    inputs: Inputs | None = None,
    *,
    answer_field: str = "answer",
    asked: st.SearchStrategy[Question] | None = None,
    without: Sequence[str] = (),
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a selector against the laws, and return how many decisions each law applied to.

    First come small situations, the same each time; then those around the texts in the selector's own class; then one
    question repeated with other evidence and other pools. After that, examples of two questions are drawn: two texts,
    or one text with two pools. A copy of the selector, its LMs replaced by a scripted one, decides each question alone.
    Another copy decides all of them: one after the other, all at once in one event loop, and in a batch. Each decision
    is checked against the laws of the rule (1 to 8), and all of them against law 18 (sync = async = batch = replay,
    where a replay is the rule driven over the same roles). Whatever is raised is checked against law 19: it must be of
    a kind that `Selector.forward` names.

    Given a program and `inputs`, it calls a copy of the program, with every LM scripted, and requires that the program
    returns what its selector ships. Then it checks no law; check the selector in it by itself.

    The given selector or program is not called and not changed, nor is any LM. Roles, demonstrations, instructions,
    settings and an adapter of the surrounding context are used as they are.

    A rule of your own is held to the same laws and replayed as it is, and a certificate of your own counts as the one
    that there is. What either raises is raised here. A consulted certificate is asked through the scripted LM.

    The laws that the selector's answer type gives up are not tried, and count 0.

    It samples, so no count is a proof. It does not judge how good a judge is. It does not check certificates, which it
    trusts. It does not replace what a role uses apart from its LM: tools, files and scorers are really used. It does
    not find LMs inside an object that is not a module. A role that answers one request in two ways breaks a law, as it
    should.

    Args:
        selector: Any `Selector`, including compiled ones, subclasses, and ones with your own roles; or a program that
            has one among its modules.
        inputs: What a program is called with: a mapping of arguments, or several.
        answer_field: The field of the program's prediction that holds the answer; it may return the answer itself.
        asked: Where a selector's questions come from; by default the small situations of its own type, and then what
            `questions` draws.
        without: The names of laws to leave out.
        max_examples: How many examples are drawn, 0 for the fixed ones alone; by default, as many as the Hypothesis
            profile says.

    Raises:
        LawBroken: With a situation, or with a question and replies that Hypothesis has made as small as it could. Of
            several broken laws it is the one that matters most; the message names the others.
        AssertionError: The program returns something else than its selector ships.
        ArgumentError: The argument is not a selector, its prediction lacks a field, a law is not known, no example
            would be tried, or a program never calls a selector.
    """
    __tracebackhide__ = True
    if max_examples is not None and max_examples < (asked is not None):
        raise ArgumentError(
            f"max_examples must be a whole number from 0, or from 1 for questions of your own; got {max_examples!r}."
        )
    if inputs is not None:
        return check_returned(selector, inputs, answer_field, max_examples)
    if not isinstance(selector, Selector):
        raise ArgumentError(
            f"selector must be a Selector; got {selector!r:.80}. Make one with Selector(...), or give the inputs of a"
            " program that has one."
        )
    wanted = laws_left(_TRIED, None, without)
    if wanted == [_SCORES]:
        raise ArgumentError(f"without must leave a law besides {_SCORES.name}; got {without!r}. Name fewer.")
    laws, tried = [*kept(selector.type, wanted)], Counter[str]()
    if asked is None:
        tried.update(_check_situations(selector, laws))
        asked = questions(selector.type)
    strategy = scenes(asked)

    def hold(example: tuple[tuple[Scene, Scene], bool]) -> None:
        tried.update(check_scenes(selector, example[0], one_text=example[1], laws=laws))

    falsify(st.tuples(st.tuples(strategy, strategy), st.booleans()), hold, max_examples)
    return {law.name: tried[law.name] for law in wanted if law in _COUNTED}


def _check_situations(selector: Selector, laws: Sequence[Law]) -> Counter[str]:
    """Check a selector in the small situations, in those around its own texts, and in some of one text."""
    texts = [text for text in literals(selector) if text not in _KEYS]
    own = islice(around(texts, selector.type, added=False), _MOST_OWN)
    several = situated(chain(few_situations(selector.type), own), selector.type)
    by_last_answer = {scene.question.answers[-1]: scene for scene in several if scene.question.answers}
    tried = check_scenes(selector, several, laws=laws)
    for of_one_text in ([*by_last_answer.values()][:_MOST_OF_ONE_TEXT], repeats(selector.type)):
        tried += check_scenes(selector, of_one_text, one_text=True, laws=laws)
    return tried


def check_scenes(
    selector: Selector, several: Sequence[Scene], *, one_text: bool = False, laws: Sequence[Law] = _TRIED
) -> Counter[str]:
    """Check a selector against the laws in a few scenes; returns and raises as `check_selector` does.

    Args:
        selector: The selector. several: the scenes.
        one_text: Whether all of them have the question's text and the replies of the first, over pools of their own.
        laws: Those that are tried.
    """
    marked = _of_one_text(several) if one_text else list(map(_marked, several, _marks()))
    calls = [scene.inputs(selector.answer_field) for scene in marked]
    settled, broken = list[Held](), list[LawBroken]()
    with scripted(selector, marked) as fresh:
        for scene in marked:
            try:
                settled.append(held_scene(fresh(), scene, laws, roles=fresh()))
            except LawBroken as error:
                broken.append(error)
        try:
            if broken:
                raise first_broken(broken)
            if _SAME in laws:
                _require_the_same_in_every_way(fresh(), settled, calls)
        except LawBroken as error:
            if _SAME in laws:
                _require_roles_that_stand_by_their_word(fresh, error.outcome)
            raise
    everywhere = [law.name for law in (_SAME, _TEXT) if law in laws]
    return Counter(name for result in settled for name in (*result.tried, *everywhere))


@dataclass(frozen=True, slots=True)
class Held:
    """A scene as a rule sees it, the outcome of the call, and the laws that applied to it."""

    trial: Trial
    came: Came
    select: Selector
    tried: tuple[str, ...] = ()


def held_scene(select: Selector, scene: Scene, laws: Sequence[Law] = _TRIED, roles: Selector | None = None) -> Held:
    """Call a selector whose LM says what the scene says, and check the outcome against the laws 1 to 8 and 19.

    Args:
        select: The selector. scene: the scene. laws: those that are tried.
        roles: A copy whose roles are asked separately, to learn what they say; by default the selector itself.

    Raises:
        LawBroken: With the scene.
    """
    came = called(select, scene.inputs(select.answer_field))
    if isinstance(came, CertificateError) or (isinstance(came, ArgumentError) and is_own(select.rule)):
        raise came  # of the user's own code, which it names
    question = to_question(**scene.inputs(select.answer_field), answer_field=select.answer_field)
    trial = trial_of(roles or select, question)
    if isinstance(came, dict):
        return Held(trial, came, select, _require_decision(select, trial, came, laws))
    if _TEXT in laws:
        _require_documented(select, scene, trial, came)
    return Held(trial, came, select)


# -- the ways to call -------------------------------------------------------------------------------------------------


def _require_the_same_in_every_way(select: Any, settled: Sequence[Held], calls: Sequence[Mapping[str, Any]]) -> None:
    """Check the outcomes of calls against law 18, each call on its own copy: one copy must give the same."""
    for result, call in zip(settled, calls, strict=True):
        _require_same("where others were decided before", result, called(select, call))
    for result, other in zip(settled, awaited(select, calls), strict=True):
        _require_same("awaited", result, other)
    decided = [index for index, result in enumerate(settled) if isinstance(result.came, dict)]
    for index, other in zip(decided, batched(select, [calls[index] for index in decided]), strict=True):
        _require_same("in a batch", settled[index], other)


# -- what an outcome is checked against -------------------------------------------------------------------------------


def trial_of(select: Selector, question: Question) -> Trial:
    """Return a question as a rule sees it: each role's reply, asked here apart from the selector."""
    case, replies = Case(question, select.settings), dict[Consulted, Heard]()
    roles = case.roles() if select.rule == "eldgr" else ROLES
    names: tuple[Consulted, ...] = ("certificate", *roles) if case.to_certify() else roles
    for name in names:
        replies[name] = reply_apart(select, name, case, replies)
    if case.to_certify(replies.get("repairer", SILENT)):
        replies["repair_certificate"] = reply_apart(select, "repair_certificate", case, replies)
    return Trial(case.question, as_certified(case, replies), replies_in(replies), case.consensus or "")


def _require_decision(
    select: Selector, trial: Trial, fields: Mapping[str, Any], laws: Sequence[Law]
) -> tuple[str, ...]:
    """Check the fields of a prediction against laws 1 to 8, and all of them against what the rule alone says."""
    replayed = _replayed(select, trial)
    expected = plain(replayed.decision)
    if select.uncertified == "abstain" and fields["answer"] is None and is_withheld(replayed.case, replayed.decision):
        fields = {**fields, "answer": expected["answer"]}  # as it should be
    outcome = outcome_of(select, trial, fields)
    tried = require_laws([law for law in laws if law in _OF_A_DECISION], outcome)
    different = [name for name, value in expected.items() if fields[name] != value]
    if "scores" in fields and "ranking" in different:
        if _SCORES in laws and not is_stratified(outcome):
            raise LawBroken(
                _SCORES, outcome, Finding(False, f"a ranking by stratum, not {fields['ranking']}", replayed)
            )
        different.remove("ranking")
    if different and _SAME in laws:
        demanded = f"the same from a replay; {', '.join(different)} differ"
        raise LawBroken(_SAME, outcome, Finding(False, demanded, replayed))
    return tuple(tried)


def _require_roles_that_stand_by_their_word(fresh: Fresh, outcome: Outcome) -> None:
    """Check each role against law 18 when a law is broken: one request must get one reply, or nothing follows."""
    for role, reply in outcome.trial.replies.items():
        select, case = fresh(), Case(outcome.trial.question)
        for _ in range(_TIMES):
            again: Any = reply_apart(select, role, case, {})
            if again != reply:
                demanded = f"one reply of the {role} to one request; asked once more, it {told(again)}"
                raise LawBroken(_SAME, outcome, Finding(False, demanded)) from None


def _require_documented(select: Selector, scene: Scene, trial: Trial, error: Exception) -> None:
    """Let pass what `Selector.forward` says that it raises."""
    unread = isinstance(error, dspy.AdapterParseError | ReplyError) and select.on_error == "raise"
    failed = isinstance(error, dspy.LMError) and any(isinstance(reply, Exception) for reply in scene.replies.values())
    if not unread and not failed:
        demanded = f"that from the selector, which raised {type(error).__name__}: {error}"
        raise LawBroken(_TEXT, _replayed(select, trial), Finding(False, demanded)) from error


def _require_same(way: str, result: Held, other: Came) -> None:
    """Check against law 18 that one call gave the same outcome in two ways."""
    select, trial, came = result.select, result.trial, result.came
    if isinstance(came, dict) and isinstance(other, dict):
        if came != other:
            demanded = f"the same {way}; {', '.join(name for name in came if other.get(name) != came[name])} differ"
            outcomes = outcome_of(select, trial, came), outcome_of(select, trial, other)
            raise LawBroken(_SAME, outcomes[0], Finding(False, demanded, outcomes[1]))
    elif type(came) is not type(other):
        demanded = f"the same {way}, not {came!r:.300} and {other!r:.300}"
        raise LawBroken(_SAME, _replayed(select, trial), Finding(False, demanded))


def _replayed(select: Selector, trial: Trial) -> Outcome:
    """Return what the selector's rule alone does, asking as the settings say."""
    return Subject(lambda case: select.rule_on(case)(case)).settle(trial)


def outcome_of(select: Selector, trial: Trial, fields: Mapping[str, Any]) -> Outcome:
    """Return a prediction as an outcome of the rule; `always` asks beforehand, not for lack of an answer."""
    replayed = _replayed(select, trial)
    roles = () if trial.settings.consult == "always" and select.rule == "eldgr" else tuple(fields["consulted"])
    decision = Decision(**{name: fields[name] for name in plain(replayed.decision)})
    return replace(replayed, decision=decision, asked=roles)


# -- what is asked ----------------------------------------------------------------------------------------------------


def _marks() -> Iterator[str]:
    """First words of questions, by which the script knows which of them is asked: letters, since a number counts."""
    return (f"q{first}{second}z" for first, second in product(ascii_lowercase, repeat=2))


def _marked(scene: Scene, mark: str) -> Scene:
    return replace(scene, question=replace(scene.question, text=f"{mark} {scene.question.text}"))


def _of_one_text(several: Sequence[Scene]) -> list[Scene]:
    """The scenes with the question's text and the replies of the first."""
    first = _marked(several[0], next(_marks()))
    same_text = (replace(scene.question, text=first.question.text) for scene in several)
    return [
        replace(first, question=question, has_evidence=scene.has_evidence)
        for question, scene in zip(same_text, several, strict=True)
    ]
