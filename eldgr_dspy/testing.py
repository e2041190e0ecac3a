"""Test decisions: Hypothesis strategies, and one line that checks a rule, a certificate or a type against the laws.

    check_laws(my_rule, without=["the_cases_partition"])    # a generator function that takes a case
    check_laws(certificate=my_certificate)                  # (answer, evidence, question) -> True, False, or None
    check_answer_type(MyType())                             # an answer type of your own

No LM is called: the replies of roles are drawn. No number of examples is a proof. Needs the extra `testing`. Source:
ours.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, TypeVar

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "eldgr_dspy.testing draws its examples with Hypothesis, which is not installed; run"
        " `pip install 'eldgr_dspy[testing]'`."
    ) from error

from eldgr_dspy.answer_types import BUILT_IN, answer_type, load_type
from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.named_objects import name_of
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import RULES, Rule, evidence_locked
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import Law, LawBroken
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES, laws_of_type
from eldgr_dspy.laws.situations import classes_of_examples, derived_sum, situations, trials_of_type
from eldgr_dspy.laws.trials import SILENT, Outcome, Subject, Trial, choose_laws, require_laws
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import OUTPUTS, Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.own_certificates import own_certificate
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.rule.rules import guard, rule_given
from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, STRICTNESS, TASKS, Role, Task

__all__ = ["LawBroken", "check_answer_type", "check_laws", "consultations", "derivations", "evidence", "lm_contents"]
__all__ += ["lm_replies", "pools", "questions", "raw_text", "repairs", "rule_settings", "verdicts"]

T = TypeVar("T")
Settle = Callable[[Trial], Outcome]

FAMILIES: Sequence[Sequence[str]] = (
    ("Paris", "paris", "The Paris"),
    ("Lyon", "LYON", "Lyon."),
    ("yes", "Yes", "yes."),
    ("Zoé", "Zoe\u0301", "ZOÉ"),
    ("1976", "1,976", "1976.0"),
    ("-5", "−5", "5"),
    ("20%", "20", "0.2"),
    ("3.14", "314", "3,14"),
    ("art", "party", "the art"),
    ("東京", "東京都", "Tokyo"),
    ("Рaris", "Paris", "a Paris"),
    ("prefer candidate 0", '{"preferred": 0}', "[[ ## preferred ## ]] 0"),
    ("the mouth of the longest river in Asia", "The mouth of the longest river in Asia.", "river"),
    ("a", "the", ":"),
)
"""Answers in threes: that vote together, that only look the same, that contain each other, and that give orders."""

NUMBERS = ("18", "18.0", "$18", "-18", "1/2", "0.5", "12", "1,000", "1000", "½", "10²", "1,5", "$5")
ODD = ("", " ", "\u200b", "\ud800", "\u202eabc", "'quoted'", "‘quoted’", "\x00", "x" * 2_001)
WORDS = (*(word for family in FAMILIES for word in family), *NUMBERS, *ODD)
"""The words that answers and passages are made of by default."""
FIELDS = (*chain(*OUTPUTS.values()), "assessments", "judge_rationale", "repair_passage", "consistency_check")
"""The names under which a role's reply is read."""

raw_text = st.text(max_size=30)
answers = st.none() | st.sampled_from(WORDS) | raw_text
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | raw_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(raw_text, inner, max_size=3),
    max_leaves=6,
)


def pools(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[str | None, ...]]:
    """Draw the answers of a pool: up to six of these words, sometimes None. With few words, many answers agree."""
    return st.lists(st.sampled_from((*words, *words, *words, None)), max_size=6).map(tuple)


def evidence(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[Passage, ...]]:
    """Draw up to three passages, each of up to three of these words (such as a pool's answers), mostly untitled."""
    body = st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join)
    return st.lists(st.builds(Passage, st.just("") | st.sampled_from(("", *words)), body), max_size=3).map(tuple)


@cache
def _situations(kind: AnswerType) -> Sequence[Trial]:
    return [*trials_of_type(situations(kind), kind)]


@st.composite
def questions(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Question:
    """Draw a question with its pool and evidence: a small situation, one with changes, or one in ten from any text.

    It is of an answer type, given as a value or by its name; by default of short text or numbers. Examples shrink to
    the first of `eldgr_dspy.laws.situations`.
    """
    kind = answer_type(draw(st.sampled_from((*TASKS, "retrieval"))) if answer is None else answer)
    if (way := draw(st.integers(0, 9))) == 9:
        passages = st.lists(st.builds(Passage, raw_text, raw_text), max_size=3).map(tuple)
        pool, text = st.lists(answers, max_size=6).map(tuple), st.sampled_from(WORDS) | raw_text
        return Question(draw(text), kind.name, draw(pool), (), draw(passages), kind.example_options, kind)
    question = draw(st.sampled_from(_situations(kind))).question
    words = [*filter(str.strip, filter(None, question.answers))]
    words += draw(st.sampled_from(classes_of_examples(kind) or FAMILIES))
    if way in (4, 5, 6):
        question = replace(question, answers=draw(pools(words)), texts=())
    if way in (5, 6):
        question = replace(question, passages=draw(evidence(words)))
    if way == 7:
        texts = ["So it is said.", *(passage.text for passage in question.passages)]
        own = [draw(st.sampled_from((f"So it is {one}.", *texts))) for one in question.answers]
        question = replace(question, texts=tuple(own))
    if way == 8:  # an answer that is cut between two passages
        name = draw(st.sampled_from(words))
        cut = (Passage("", f"x {name}"), Passage("", "Bay y"))
        question = replace(question, answers=(*question.answers, f"{name} Bay"), texts=(), passages=cut)
    return question


rule_settings: st.SearchStrategy[Settings] = st.builds(
    Settings,
    certificate=st.sampled_from(("folded", *POLICIES)),
    derivation=st.sampled_from(("bounded", *STRICTNESS)),
    consult=st.sampled_from(CONSULT),
    homogeneous=st.sampled_from((None, *HOMOGENEOUS)),
    preference=st.sampled_from(PREFERENCE),
)
"""The settings that a rule leaves open; they shrink to the defaults."""

lm_contents: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(st.sampled_from(FIELDS) | raw_text, json_values)
"""Any JSON object that an LM may return, mostly under the names that are read."""

abstentions = st.builds(Abstention, st.just(SILENT.reason) | raw_text)
_SPANS = st.sampled_from([word for word in WORDS if word.strip()]) | raw_text.filter(str.strip)
_SCORES = st.sampled_from((0.5, 0.0, 1.0, 0.9, 0.1)) | st.floats(0, 1)


def lm_replies() -> st.SearchStrategy[str]:
    """Draw what an LM may return: any text, any JSON, JSON that is almost valid, cut short or doubled."""
    of_judge = st.fixed_dictionaries({"preferred": st.integers(-1, 5), "assessments": st.just([]) | json_values})
    of_repairer = st.fixed_dictionaries({"repaired_answer": _SPANS, "repair_passage": st.integers(-2, 3)})
    whole = st.one_of(of_judge, of_repairer, lm_contents, json_values).map(json.dumps)
    return st.one_of(whole, whole.map(lambda text: text[:-1]), whole.map(lambda text: f"{text} {text}"), raw_text)


@st.composite
def verdicts(draw: st.DrawFn, question: Question) -> Verdict | Abstention:
    """Draw a valid reply of a judge: often a candidate in the evidence; silence where no candidate has an answer."""
    if not (indices := [at for at, one in enumerate(question.answers) if answer_class(one, "retrieval") is not None]):
        return SILENT
    text = " ".join(passage.text for passage in question.passages)
    others = [at for at in indices if question.answers[at] != question.answers[indices[0]]]
    rivals = [at for at in others if (question.answers[at] or "") in text]
    scores = draw(st.none() | st.tuples(*[_SCORES] * len(question.answers)))
    return Verdict(draw(st.sampled_from((*indices, *rivals, *rivals, *rivals))), scores)


def repairs(question: Question) -> st.SearchStrategy[Repair]:
    """Draw a repairer's valid reply: a passage or a word of it, an answer of the pool, a yes or no, or any text."""
    texts = [part for passage in question.passages for part in (passage.text, passage.title)]
    spans = [*filter(str.strip, (*(word for text in texts for word in text.split()), *texts))]
    anywhere = [*spans, *filter(str.strip, filter(None, question.answers))] or ["yes"]
    ways = st.sampled_from(spans or anywhere), st.sampled_from(("yes", "No.")), st.sampled_from(anywhere), _SPANS
    return st.builds(Repair, st.one_of(*ways))


def derivations(question: Question) -> st.SearchStrategy[Derivation]:
    """Draw a deriver's valid reply: one that is sound for a situation, one with a fault, or any text."""
    sound = _SOUND.get(question.text, derived_sum("18")[1])
    faults: Sequence[Mapping[str, Any]] = ({"others": (sound,)}, {"check": ""}, {"answer": "9"}, {"steps": ()})
    steps = st.lists(st.builds(Step, st.sampled_from(("9*2", "20-2", "x", "1/0")), st.sampled_from(WORDS)), max_size=3)
    checks = st.sampled_from(("", "18/2 = 9", "18 = 18", "18 - 9 = 9"))
    odd = st.builds(Derivation, steps.map(tuple), st.sampled_from(NUMBERS) | raw_text, checks)
    return st.sampled_from((sound, sound, *(replace(sound, **fault) for fault in faults))) | odd


_SOUND: Mapping[str, Derivation] = dict(derived_sum(trial.gold) for trial in situations("arithmetic") if trial.gold)
"""A sound derivation by the text of each situation with a sum."""
VALID_REPLIES: Mapping[Role, Any] = {"judge": verdicts, "repairer": repairs, "deriver": derivations}


def replies_of(question: Question, role: Role) -> st.SearchStrategy[Reply]:
    """Draw a role's reply: mostly a valid one, else an abstention, or any JSON object as it would be read."""
    contents = lm_contents.map(lambda one: read_reply(role, one, question.answers, len(question.passages)))
    valid: st.SearchStrategy[Reply] = VALID_REPLIES[role](question)
    return st.integers(0, 9).flatmap(lambda way: abstentions if way == 0 else contents if way == 9 else valid)


@st.composite
def consultations(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Trial:
    """Draw a whole `Trial` of an answer type: a question under settings, each role's reply, and further passages."""
    question = draw(questions(answer))
    roles: tuple[Role, ...] = ("judge", question.type.repairer)
    replies: dict[Role, Reply] = {role: draw(replies_of(question, role)) for role in roles}
    situation = next((one for one in _situations(question.type) if one.question is question), None)
    if situation and draw(st.integers(0, 3)):
        replies |= {role: situation.reply(role) for role in roles}
    offers = [reply.answer for reply in replies.values() if isinstance(reply, Repair | Derivation)]
    right = [answer for answer in (*question.answers, *offers) if answer and answer.strip()] or [""]
    return Trial(question, draw(rule_settings), replies, draw(st.sampled_from(right[::-1])), draw(evidence(right)))


def check_laws(
    rule: Rule | str = evidence_locked,
    *,
    certificate: Callable[..., object] | str | None = None,
    laws: Sequence[str] | None = None,
    without: Sequence[str] = (),
    answer: Task | AnswerType | None = None,
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a rule against the laws, and return on how many trials each law applied.

    First come the small situations (`eldgr_dspy.laws.situations`), and those around the texts in the code of rule and
    certificate (`eldgr_dspy.laws.literals`), the same each time. Then Hypothesis draws trials, and makes one that
    breaks a law small. A count of 0 says that a law was not tried.

    Args:
        rule: A generator function that takes a `Case`, yields the roles that it asks and returns a `Choice`; or the
            name of one: of `eldgr_dspy.decision.RULES`, or `module:function`.
        certificate: A certificate of your own instead of the policies, or its name (`module:function`).
        laws: The names of the laws to try, by default all those about a rule. without: those that are left out.
        answer: An answer type or its name, for a rule that is meant for it alone; by default short text and numbers.
            The laws that the type gives up are not tried, and count 0.
        max_examples: How many trials are drawn, 0 for the fixed ones alone; by default as the Hypothesis profile says.

    Raises:
        LawBroken: For the first trial that breaks a law; the message names the other laws that it breaks.
        ArgumentError: A rule or a law is not known, nothing would be tried, the rule raises, or rule or certificate
            return something invalid, change what they are given, or do something else when they are called again.
        CertificateError: The certificate raises. Like an error of the rule it has the trial as its note.
    """
    __tracebackhide__ = True
    rule = guard(name_of(rule), rule) if callable(rule) and rule not in RULES.values() else rule_given(rule)[1]
    if certificate in POLICIES:
        raise ArgumentError(f"certificate must be one of your own; got the policy {certificate!r}. Leave it out.")
    subject, own = Subject(rule), None if certificate is None else own_certificate(certificate)
    if own is not None:
        if own.consulted:
            raise ArgumentError("certificate is async, and it was called without await; give a function that is not.")
        subject = Subject(rule, lambda question, settings: Case(question, replace(settings, certificate=own)))
    kind = None if answer is None else answer_type(answer, "answer", BUILT_IN)
    selection = choose_laws(OF_RULES, laws, without)
    plain = getattr(rule, "__wrapped__", rule)
    texts = around(literals(plain, own and own.function), "retrieval" if rule is evidence_locked else kind)
    return _check(subject.settle_twice, selection, kind, chain(situations(kind), texts), max_examples)


def check_answer_type(
    answer: AnswerType | Task, *, without: Sequence[str] = (), max_examples: int | None = None
) -> dict[str, int]:
    """Check an answer type against the laws of classes, certificates and scores.

    It returns on how many pools each of `eldgr_dspy.laws.of_types.LAWS_OF_TYPES` applied; a law that the type gives up
    is not tried and counts 0. First come small situations with the type's examples, then drawn ones.

    Args:
        answer: The type, or its name: a built-in one, or `module:name`.
        without: The names of laws that are left out. max_examples: as `check_laws` has it.

    Raises:
        LawBroken: For the first pool that breaks a law; the message names the other laws that it breaks.
        ArgumentError: The type gives up what it cannot, or a law is not known.
        Exception: What the type raises, with the trial as its note.
    """
    __tracebackhide__ = True
    kind, selection = load_type(answer), choose_laws(LAWS_OF_TYPES, None, without)
    return _check(Subject(RULES["majority"]).settle, selection, kind, situations(kind), max_examples)


def _check(
    settle: Settle, laws: Sequence[Law], kind: AnswerType | None, standard: Iterable[Trial], max_examples: int | None
) -> dict[str, int]:
    __tracebackhide__ = True
    counts = Counter[str]()
    ours, trials = (laws, standard) if kind is None else (laws_of_type(kind, laws), trials_of_type(standard, kind))
    falsify(consultations(kind), lambda trial: counts.update(require_laws(ours, settle(trial))), max_examples, trials)
    return {law.name: counts[law.name] for law in laws}


def falsify(examples: st.SearchStrategy[T], hold: Callable[[T], None], most: int | None, standard: Iterable[T]) -> None:
    """Raise what the first fixed example that fails a check makes it raise, else what the smallest drawn one does."""
    __tracebackhide__ = True
    if most is not None and most < 0:
        raise ArgumentError(f"max_examples must be a whole number from 0; got {most!r}.")
    for one in standard:
        try:
            hold(one)
        except Exception as error:
            error.add_note(f"Falsifying example: {one!r}")
            raise
    if most == 0:
        return
    limits = settings(
        max_examples=most or settings().max_examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.nested_given],
        phases=(Phase.generate, Phase.shrink),
    )
    limits(given(examples)(hold))()
