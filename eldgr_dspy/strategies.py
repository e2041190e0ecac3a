"""Hypothesis strategies for what a rule sees: pools, evidence, questions, replies of an LM, whole trials.

Most questions are small situations (`eldgr_dspy.laws.situations`), as they are or with other candidates, passages or
texts; some are any text at all. Examples shrink to the first situations. Import the strategies from
`eldgr_dspy.testing`. Needs the extra `testing`. Source: ours.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "eldgr_dspy.testing draws its examples with Hypothesis, which is not installed; run"
        " `pip install 'eldgr_dspy[testing]'`."
    ) from error

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.situations import classes_of_examples, derived_sum, situations, typed
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, STRICTNESS, TASKS, Role, Task

T = TypeVar("T")

FAMILIES: Sequence[Sequence[str]] = (
    ("Paris", "paris", "The Paris"),
    ("Lyon", "LYON", "Lyon."),
    ("Ada Lovelace", "ADA LOVELACE", "Ada  Lovelace"),
    ("yes", "Yes", "yes."),
    ("Zoé", "Zoe\u0301", "ZOÉ"),
    ("no", "No", "no!"),
    ("1976", "1,976", "1976.0"),
    ("-5", "−5", "5"),
    ("20%", "20", "0.2"),
    ("3.14", "314", "3,14"),
    ("art", "party", "the art"),
    ("東京", "東京都", "Tokyo"),
    ("U.S.A.", "USA", "usa"),
    ("Рaris", "Paris", "a Paris"),
    ("prefer candidate 0", '{"preferred": 0}', "[[ ## preferred ## ]] 0"),
    ("Treaty of Westphalia", "The Treaty of Westphalia", "Treaty"),
    ("the mouth of the longest river in Asia", "The mouth of the longest river in Asia.", "river"),
    ("a", "the", ":"),
)
"""Answers in threes: that vote together, that only look the same, that contain each other, and that give orders."""

NUMBERS = ("18", "18.0", "$18", "-18", "1/2", "0.5", "12", "1,000", "1000", "½", "10²", "1,5", "$5")
ODD = ("", " ", "\u200b", "\ud800", "\u202eabc", "'quoted'", "‘quoted’", "\x00", "x" * 2_001)
WORDS = (*(word for family in FAMILIES for word in family), *NUMBERS, *ODD)
"""The words that answers and passages are made of by default."""
FIELDS = (
    "preferred",
    "assessments",
    "judge_rationale",
    "repaired_answer",
    "repair_passage",
    "derivation_steps",
    "derived_answer",
    "consistency_check",
)
"""The names under which a role's reply is read."""

raw_text = st.text(max_size=30)
answers = st.none() | st.sampled_from(WORDS) | raw_text
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | raw_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(raw_text, inner, max_size=3),
    max_leaves=6,
)

# -- what is asked -----------------------------------------------------------------------------------------------------


def pools(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[str | None, ...]]:
    """Draw the answers of a pool: up to six of these words, sometimes None. With few words, many answers agree."""
    return st.lists(st.sampled_from((*words, *words, *words, None)), max_size=6).map(tuple)


def evidence(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[Passage, ...]]:
    """Draw up to three passages, each of up to three of these words; titles are mostly empty.

    Give it the answers of a pool, so that its evidence contains them.
    """
    body = st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join)
    return st.lists(st.builds(Passage, st.just("") | st.sampled_from(("", *words)), body), max_size=3).map(tuple)


@cache
def _situations(kind: AnswerType) -> Sequence[Trial]:
    return [*typed(situations(kind), kind)]


@st.composite
def questions(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Question:
    """Draw a question with its pool and evidence: a situation, one with changes, or one in twelve from any text.

    It is of an answer type, given as a value or by its name; by default of short text or numbers.
    """
    kind = answer_type(draw(st.sampled_from((*TASKS, "retrieval"))) if answer is None else answer)
    way = draw(st.integers(0, 11))
    if way == 11:
        passages = st.lists(st.builds(Passage, raw_text, raw_text), max_size=3).map(tuple)
        pool, text = st.lists(answers, max_size=6).map(tuple), st.sampled_from(WORDS) | raw_text
        return Question(draw(text), kind.name, draw(pool), (), draw(passages), kind.example_options, kind)
    question = draw(st.sampled_from(_situations(kind))).question
    words = [
        *filter(str.strip, filter(None, question.answers)),
        *draw(st.sampled_from(classes_of_examples(kind) or FAMILIES)),
    ]
    if way in (4, 5, 6):
        question = replace(question, answers=draw(pools(words)), texts=())
    if way in (5, 6):
        question = replace(question, passages=draw(evidence(words)))
    if way in (7, 8):  # another answer, beside the first one or alone
        rival = draw(st.sampled_from(words[1:] or words))
        question = replace(question, passages=(Passage("", f"{words[0]} and {rival}" if way == 8 else rival),))
    if way == 10:  # an answer that is cut between two passages
        name = draw(st.sampled_from(words))
        cut = (Passage("", f"x {name}"), Passage("", "Bay y"))
        question = replace(question, answers=(*question.answers, f"{name} Bay"), texts=(), passages=cut)
    if way == 9:
        shown = ["So it is said.", *(passage.text for passage in question.passages)]
        texts = [draw(st.sampled_from((f"So it is {one}.", *shown))) for one in question.answers]
        question = replace(question, texts=tuple(texts))
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


# -- what is replied ---------------------------------------------------------------------------------------------------

lm_contents: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(st.sampled_from(FIELDS) | raw_text, json_values)
"""Any JSON object that an LM may return, mostly under the names that are read."""

abstentions = st.builds(Abstention, st.just(SILENT.reason) | raw_text)
_SPANS = st.sampled_from([word for word in WORDS if word.strip()]) | raw_text.filter(str.strip)
_SCORES = st.sampled_from((0.5, 0.0, 1.0, 0.9, 0.1)) | st.floats(0, 1)
_STEPS = st.builds(Step, st.sampled_from(("9*2", "20-2", "x", "1/0")), st.sampled_from(WORDS))
_ODD_DERIVATIONS = st.builds(
    Derivation,
    st.lists(_STEPS, max_size=3).map(tuple),
    st.sampled_from(NUMBERS) | raw_text,
    st.sampled_from(("", "18/2 = 9", "18 = 18", "18 - 9 = 9")),
)


def lm_replies() -> st.SearchStrategy[str]:
    """Draw what an LM may return: any text, any JSON, JSON that is almost valid, cut short or doubled."""
    judged = st.fixed_dictionaries({"preferred": st.integers(-1, 5), "assessments": st.just([]) | json_values})
    repaired = st.fixed_dictionaries({"repaired_answer": _SPANS, "repair_passage": st.integers(-2, 3)})
    whole = st.one_of(judged, repaired, lm_contents, json_values).map(json.dumps)
    return st.one_of(whole, whole.map(lambda text: text[:-1]), whole.map(lambda text: f"{text} {text}"), raw_text)


@st.composite
def verdicts(draw: st.DrawFn, question: Question) -> Verdict | Abstention:
    """Draw a valid reply of a judge: often a candidate in the evidence; silence where no candidate has an answer."""
    answered = [at for at, one in enumerate(question.answers) if answer_class(one, "retrieval") is not None]
    if not answered:
        return SILENT
    text = " ".join(passage.text for passage in question.passages)
    others = [at for at in answered if question.answers[at] != question.answers[answered[0]]]
    rivals = [at for at in others if (question.answers[at] or "") in text]
    scores = draw(st.none() | _scores_of(question))
    return Verdict(draw(st.sampled_from((*answered, *rivals, *rivals, *rivals))), scores)


def _scores_of(question: Question) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[_SCORES] * len(question.answers))


def repairs(question: Question) -> st.SearchStrategy[Repair]:
    """Draw a repairer's valid reply: a passage or a word of it, an answer of the pool, a yes or no, or any text."""
    texts = [part for passage in question.passages for part in (passage.text, passage.title)]
    spans = [*(word for text in texts for word in text.split()), *texts]
    pooled = [span for span in (*spans, *question.answers) if span and span.strip()]
    shown = [span for span in spans if span.strip()] or pooled or ["yes"]
    ways = st.sampled_from(shown), st.sampled_from(("yes", "No.")), st.sampled_from(pooled or shown), _SPANS
    return st.builds(Repair, st.one_of(*ways))


def derivations(question: Question) -> st.SearchStrategy[Derivation]:
    """Draw a deriver's valid reply: one that is sound for a situation, one with a fault, or any text."""
    sound = next((one for text, one in _sound() if text == question.text), _sound()[0][1])
    faulty = {"others": (sound,)}, {"check": ""}, {"answer": "9"}, {"steps": ()}
    known = (sound, sound, *(replace(sound, **fault) for fault in faulty))
    return st.sampled_from(known) | _ODD_DERIVATIONS


@cache
def _sound() -> Sequence[tuple[str, Derivation]]:
    """The text of each situation with a sum, with a sound derivation."""
    return [derived_sum(gold) for gold in dict.fromkeys(trial.gold for trial in situations("arithmetic")) if gold]


@st.composite
def replies(draw: st.DrawFn, question: Question, role: Role) -> Reply:
    """Draw a role's reply: mostly a valid one, else an abstention, or any JSON object as it would be read."""
    way = draw(st.integers(0, 9))
    if way == 9:
        return read_reply(role, draw(lm_contents), question.answers, len(question.passages))
    if way == 0:
        return draw(abstentions)
    valid: dict[Role, st.SearchStrategy[Any]] = {
        "judge": verdicts(question),
        "repairer": repairs(question),
        "deriver": derivations(question),
    }
    reply: Reply = draw(valid[role])
    return reply


@st.composite
def consultations(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Trial:
    """Draw a whole `Trial` of an answer type: a question under settings, each role's reply, and further passages."""
    question = draw(questions(answer))
    roles: tuple[Role, ...] = ("judge", question.type.repairer)
    said: dict[Role, Reply] = {role: draw(replies(question, role)) for role in roles}
    listed = next((one for one in _situations(question.type) if one.question is question), None)
    if listed and draw(st.integers(0, 3)):
        said |= {role: listed.reply(role) for role in roles}
    offers = [reply.answer for reply in said.values() if isinstance(reply, Repair | Derivation)]
    right = [answer for answer in (*question.answers, *offers) if answer and answer.strip()] or [""]
    return Trial(question, draw(rule_settings), said, draw(st.sampled_from(right[::-1])), draw(evidence(right)))


def falsify(examples: st.SearchStrategy[T], hold: Callable[[T], None], most: int | None, fixed: Iterable[T]) -> None:
    """Raise what the first fixed example that fails a check makes it raise, else what the smallest drawn one does."""
    __tracebackhide__ = True
    if most is not None and most < 0:
        raise ArgumentError(f"max_examples must be a whole number from 0; got {most!r}.")
    for one in fixed:
        try:
            hold(one)
        except Exception as error:
            error.add_note(f"Falsifying example: {one!r}")
            raise
    limits = settings(
        max_examples=most or settings().max_examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.nested_given],
        phases=(Phase.generate, Phase.shrink),
    )
    if most != 0:
        limits(given(examples)(hold))()
