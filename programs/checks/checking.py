"""Check a `Selector` against the laws, whatever an LM says: generated questions and replies, every way to call.

It needs Hypothesis, which the package does not install. Import `check_selector` from `eldgr_dspy.programs.testing`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias

import dspy
from dspy import lm15
from dspy.lm15 import Request
from hypothesis import strategies as st

from eldgr_dspy.decision import Decision, always, drive, majority_vote
from eldgr_dspy.errors import ArgumentError, CertificateError, ReplyError
from eldgr_dspy.laws import LAW, LAWS, Law, LawBroken
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.of_rules import is_stratified
from eldgr_dspy.laws.of_types import laws_of_type
from eldgr_dspy.laws.situations import repeats, situations, trials_of_type
from eldgr_dspy.laws.trials import SILENT, Finding, Outcome, Subject, Trial, as_code, choose_laws, require_laws, weight
from eldgr_dspy.programs.calls import Calls
from eldgr_dspy.programs.checks.program_checks import Inputs, check_return
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.lms import with_lms
from eldgr_dspy.programs.plain_decisions import FIELDS, plain
from eldgr_dspy.programs.scripted import ALONE, ScriptedReply, reply_to, scripted_lm, text_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.threads import in_own_loop
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certifying, is_withheld, replies_in
from eldgr_dspy.rule.consultations import Heard
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.rules import is_own
from eldgr_dspy.testing import VALID_REPLIES, falsify, lm_replies
from eldgr_dspy.testing import questions as questions_of
from eldgr_dspy.words import ROLES, Consulted, Role

Output: TypeAlias = "dict[str, Any] | Exception"
"""The outcome of a call: the fields of its prediction, or what it raised."""

_SAME = LAW["sync_equals_async_equals_batch_equals_replay"]
_TEXT = LAW["no_lm_text_breaks_a_law"]
_OF_A_DECISION = tuple(law for law in LAWS if law.number <= 8)
_LAWS = (*_OF_A_DECISION, _SAME, _TEXT)
_MOST_OWN, _TIMES = 64, 8
_KEYS = {*FIELDS, "question", "candidates", "evidence", "text", "title"}
"""Names that every selector's code contains."""
_FAILURES = st.sampled_from((lm15.ServerError("down"), lm15.RateLimitError("slow down"), lm15.TimeoutError("late")))


def check_selector(
    selector: Selector | dspy.Module,
    inputs: Inputs | None = None,
    *,
    answer_field: str = "answer",
    questions: st.SearchStrategy[Question] | None = None,
    without: Sequence[str] = (),
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a selector against the laws, and return how many decisions each law applied to.

    Copies of the selector, their LMs replaced by a scripted one, decide fixed questions and then drawn ones: each
    alone, and all by one copy in turn, at once in one event loop, and in a batch. Laws 1 to 8 must hold of each
    decision, and law 18 of all of them (a replay is the rule driven over the same roles). By law 19, whatever is raised
    must be of a kind that `Selector.forward` names.

    Given a program and `inputs`, it calls a copy of the program, with every LM scripted, and requires that the program
    returns what its selector ships. Then it checks no law; check the selector in it by itself.

    The given selector or program is not called and not changed, nor is any LM. Roles, demonstrations, instructions,
    settings and an adapter of the surrounding context are used as they are; tools, files and scorers of a role are
    really used, and so is an LM inside an object that is not a module. The laws that the selector's answer type gives
    up are not tried, and count 0. No count is a proof.

    Args:
        selector: Any `Selector` (compiled, a subclass, with your own roles), or a program with one among its modules.
        inputs: What a program is called with: a mapping of arguments, or several.
        answer_field: The field of the program's prediction that holds the answer; it may return the answer itself.
        questions: A strategy of questions of your own, in the place of the fixed and the drawn ones.
        without: The names of laws to leave out. max_examples: as `check_laws` has it.

    Raises:
        LawBroken: With a situation, or with a question and replies that Hypothesis has made as small as it could. Of
            several broken laws it is the one that matters most; the message names others.
        AssertionError: The program returns something else than its selector ships.
        ArgumentError: No selector is given or called, its prediction lacks a field, or a law is not known.
        Exception: What a rule or certificate of your own raises.
    """
    __tracebackhide__ = True
    if inputs is not None:
        return check_return(selector, inputs, answer_field, max_examples)
    if not isinstance(selector, Selector):
        raise ArgumentError(
            f"selector must be a Selector; got {selector!r:.80}. Make one with Selector(...), or give the inputs of a"
            " program that has one."
        )
    if questions is not None and max_examples == 0:
        raise ArgumentError("max_examples must be from 1 for questions of your own; got 0, so nothing would be tried.")
    choice = choose_laws(_LAWS, None, without)
    laws, counts = laws_of_type(selector.type, choice), Counter[str]()
    pairs = scenes(questions_of(selector.type) if questions is None else questions)
    standard = _standard(selector) if questions is None else ()
    falsify(pairs, lambda several: counts.update(check_scenes(selector, several, laws)), max_examples, standard)
    return {law.name: counts[law.name] for law in choice}


def _standard(selector: Selector) -> Iterator[Sequence[Trial]]:
    """Yield some hundred situations and those around a selector's own texts; then one question, again and again."""
    several = [*situations(selector.type)]
    texts = [text for text in literals(selector) if text not in _KEYS]
    trials = chain(several[:: len(several) // 90], islice(around(texts, selector.type), _MOST_OWN))
    yield [  # the script knows a question by its first word: letters, since a number counts
        trial.about(text=f"q{chr(97 + n // 26)}{chr(97 + n % 26)}z {trial.question.text}")
        for n, trial in enumerate(trials_of_type(trials, selector.type))
    ]
    yield repeats(selector.type)


@st.composite
def scenes(draw: st.DrawFn, questions: st.SearchStrategy[Question]) -> Sequence[Trial]:
    """Draw two of the questions, of two texts or of one, with a reply of each role: typed in most cases, else raw."""

    def trial(mark: str) -> Trial:  # the script knows a question by its first word: letters, since a number counts
        question, replies = draw(questions), dict[Role, Any]()
        for role in ("judge", question.type.repairer):
            is_odd = draw(st.integers(0, 4)) == 4
            replies[role] = draw(lm_replies() | _FAILURES if is_odd else VALID_REPLIES[role](question))
        return Trial(replace(question, text=f"{mark} {question.text}"), replies=replies)

    one, other = trial("qaaz"), trial("qabz")
    has_one_text = draw(st.booleans())
    return [one, replace(one, question=replace(other.question, text=one.question.text)) if has_one_text else other]


def inputs_of(trial: Trial, answer_field: str) -> dict[str, Any]:
    """Return a question as a user gives it, in new lists. No evidence is None, or [] for an even number of answers."""
    question = trial.question
    candidates = [{answer_field: answer} for answer in question.answers]
    evidence = [asdict(passage) for passage in question.passages] or (None if len(candidates) % 2 else [])
    answer = question.type if question.type.is_own else question.type.name
    options = {"options": [*question.options]} if question.options else {}
    return {"question": question.text, "candidates": candidates, "evidence": evidence, "answer": answer, **options}


def check_scenes(selector: Selector, several: Sequence[Trial], laws: Sequence[Law]) -> Counter[str]:
    """Check a selector against laws in scenes; those whose questions have the same first word have the same replies."""

    def reply(request: Request) -> ScriptedReply:
        text = text_of(request)
        named = (scene for scene in several if scene.question.text.partition(" ")[0] in text)
        return reply_to(request, next(named, several[0]))

    lm, results, breaches = scripted_lm(reply), list[Result](), list[LawBroken]()
    fresh: Callable[[], Any] = partial(with_lms, selector, lambda _: lm)
    with dspy.context(lm=lm, callbacks=[], **ALONE):
        for scene in several:
            try:
                results.append(check_scene(fresh(), scene, laws, roles=fresh()))
            except LawBroken as error:
                breaches.append(error)
        try:
            if breaches:
                raise min(breaches, key=lambda error: weight(error.law))
            if _SAME in laws:
                calls = [inputs_of(scene, selector.answer_field) for scene in several]
                _require_the_same_in_every_way(fresh(), results, calls)
        except LawBroken as error:
            if _SAME in laws:
                _require_steady_roles(fresh, error.outcome)
            raise
    everywhere = [law.name for law in (_SAME, _TEXT) if law in laws]
    return Counter(name for result in results for name in (*result.laws, *everywhere))


@dataclass(frozen=True, slots=True)
class Result:
    """A scene as a rule sees it, the outcome of the call, and the laws that applied to it."""

    trial: Trial
    output: Output
    laws: Sequence[str] = ()


def check_scene(select: Selector, scene: Trial, laws: Sequence[Law] = _LAWS, roles: Selector | None = None) -> Result:
    """Call a selector whose LM says what a scene says, and check laws 1 to 8 and 19; `roles` is asked what they say."""
    inputs = inputs_of(scene, select.answer_field)
    output = _fields_of(_call(select, inputs))
    if isinstance(output, CertificateError) or (isinstance(output, ArgumentError) and is_own(select.rule)):
        raise output  # of the user's own code, which it names
    trial = _trial_of(roles or select, to_question(**inputs, answer_field=select.answer_field))
    if isinstance(output, dict):
        return Result(trial, output, _check_decision(select, trial, output, laws))
    unreadable = isinstance(output, dspy.AdapterParseError | ReplyError) and select.on_error == "raise"
    failure = isinstance(output, dspy.LMError) and any(isinstance(reply, Exception) for reply in scene.replies.values())
    if _TEXT in laws and not unreadable and not failure:
        demand = f"that from the selector, which raised {type(output).__name__}: {output}"
        raise LawBroken(_TEXT, _replay(select, trial), Finding(False, demand)) from output
    return Result(trial, output)


def _call(select: Selector, inputs: Mapping[str, Any]) -> Any:
    try:
        return select(**inputs)
    except Exception as error:  # noqa: BLE001 - what is raised is the outcome
        return error


def _fields_of(prediction: Any) -> Output:
    if isinstance(prediction, Exception):
        return prediction
    values: dict[str, Any] = prediction.toDict() if isinstance(prediction, dspy.Prediction) else {}
    if missing := [name for name in FIELDS if name not in values]:
        raise ArgumentError(
            f"The selector's prediction must have all fields of a decision; got {prediction!r:.80} without"
            f" {', '.join(missing)}. Return the prediction of Selector.forward with your changes and additions."
        )
    return values


def _require_the_same_in_every_way(select: Any, results: Sequence[Result], calls: Sequence[Mapping[str, Any]]) -> None:
    """Check the outcomes of calls against law 18, each call on its own copy: one copy must give the same."""

    async def gather() -> list[Any]:
        return await asyncio.gather(*(select.acall(**call) for call in calls), return_exceptions=True)

    pairs = [pair for pair in zip(results, calls, strict=True) if isinstance(pair[0].output, dict)]

    def ways() -> Iterator[tuple[str, Sequence[Result], Iterable[Any]]]:
        yield "where others were decided before", results, (_call(select, call) for call in calls)
        yield "awaited", results, in_own_loop(gather())
        if pairs:
            examples = [dspy.Example(**call).with_inputs(*call) for _, call in pairs]
            outputs = select.batch(examples, num_threads=2, disable_progress_bar=True)
            yield "in a batch", [result for result, _ in pairs], outputs

    for way, several, outputs in ways():
        for result, output in zip(several, outputs, strict=True):
            first, again = result.output, _fields_of(output or RuntimeError("no prediction"))
            if isinstance(first, dict) and isinstance(again, dict):
                same, different = first == again, [name for name in first if again.get(name) != first[name]]
                demand = f"the same {way}; {', '.join(different)} differ"
            else:
                same, demand = type(first) is type(again), f"the same {way}, not {first!r:.300} and {again!r:.300}"
            if not same:
                raise LawBroken(_SAME, _replay(select, result.trial), Finding(False, demand))


def _require_steady_roles(fresh: Callable[[], Selector], outcome: Outcome) -> None:
    """Check each role against law 18 when a law is broken: one request must get one reply, or nothing follows."""
    for role, reply in outcome.trial.replies.items():
        select, case = fresh(), Case(outcome.trial.question)
        for _ in range(_TIMES):
            again: Any = _reply_apart(select, role, case, {})
            if again != reply:
                demand = f"one reply of the {role} to one request; asked once more, it replies {as_code(again)}"
                raise LawBroken(_SAME, outcome, Finding(False, demand)) from None


def _trial_of(select: Selector, question: Question) -> Trial:
    """Return a question as a rule sees it: each role's reply, asked here apart from the selector."""
    case, replies = Case(question, select.settings), dict[Consulted, Heard]()
    roles = case.roles() if select.rule == "eldgr" else ROLES
    steps = certifying(always(majority_vote, lambda _: roles))(case)
    drive(steps, lambda name: replies.setdefault(name, _reply_apart(select, name, case, replies)))
    settings, own = case.settings, case.settings.own
    if own is not None and own.consulted:  # one that repeats what it said
        repeat = replace(own, function=lambda answer, evidence, question: case.certificate(answer), consulted=False)
        settings = replace(settings, certificate=repeat)
    return Trial(case.question, settings, replies_in(replies), case.consensus or "")


def _reply_apart(select: Selector, name: Consulted, case: Case, replies: Mapping[Consulted, Heard]) -> Heard:
    calls = Calls(select.on_failure, None)
    try:
        with select.reading():
            output = calls.ask(name, *select.asking(case, name, replies))
        return select.reply_of(name, output, case)
    except Exception:  # noqa: BLE001 - where the selector asks this role, it raises the same and is checked there
        return SILENT


def _check_decision(select: Selector, trial: Trial, fields: Mapping[str, Any], laws: Sequence[Law]) -> Sequence[str]:
    """Check the fields of a prediction against laws 1 to 8, and all of them against what the rule alone says."""
    replay = _replay(select, trial)
    own = plain(replay.decision)
    if select.uncertified == "abstain" and fields["answer"] is None and is_withheld(replay.case, replay.decision):
        fields = {**fields, "answer": own["answer"]}  # as it should be
    # `always` asks beforehand, not for lack of an answer.
    roles = () if trial.settings.consult == "always" and select.rule == "eldgr" else tuple(fields["consulted"])
    outcome = replace(replay, decision=Decision(**{name: fields[name] for name in own}), roles=roles)
    applicable = require_laws([law for law in laws if law in _OF_A_DECISION], outcome)
    different = [name for name, value in own.items() if fields[name] != value]
    if "scores" in fields and "ranking" in different:
        if not is_stratified(outcome):
            demand = f"a ranking by stratum, not {fields['ranking']}"
            raise LawBroken(LAW["scores_never_cross_strata"], outcome, Finding(False, demand, replay))
        different.remove("ranking")
    if different and _SAME in laws:
        demand = f"the same from a replay; {', '.join(different)} differ"
        raise LawBroken(_SAME, outcome, Finding(False, demand, replay))
    return applicable


def _replay(select: Selector, trial: Trial) -> Outcome:
    return Subject(lambda case: select.rule_on(case)(case)).settle(trial)
