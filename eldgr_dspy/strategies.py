"""Hypothesis strategies for what a rule sees: pools, evidence, questions, replies of an LM, whole trials.

Most questions are small situations (`eldgr_dspy.laws.situations`), as they are or with other candidates, passages or
texts; some are any text at all. Examples shrink to the first situations. Import the strategies from
`eldgr_dspy.testing`. Needs the extra `testing`. Source: ours.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "eldgr_dspy.testing draws its examples with Hypothesis, which is not installed; run"
        " `pip install 'eldgr_dspy[testing]'`."
    ) from error

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answers import answer_class
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.laws.answers import FAMILIES, NUMBERS, WORDS, Family, families_by_class
from eldgr_dspy.laws.making import SOUND
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.laws.typed import typed
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.replies import read_reply
from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, STRICTNESS, TASKS, Role, Task

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


@cache
def _families(kind: AnswerType) -> Sequence[Family]:
    return families_by_class(kind) or FAMILIES


@st.composite
def questions(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Question:
    """Draw a question with its pool and evidence: a situation, one with changes, or one in twelve from any text.

    Args:
        answer: An answer type or its name; short text or numbers if it is not given.
    """
    kind = answer_type(draw(st.sampled_from((*TASKS, "retrieval"))) if answer is None else answer)
    way = draw(st.integers(0, 11))
    if way == 11:
        pool, passages = (
            draw(st.lists(answers, max_size=6)),
            draw(st.lists(st.builds(Passage, raw_text, raw_text), max_size=3)),
        )
        text = draw(st.sampled_from(WORDS) | raw_text)
        return Question(text, kind.name, tuple(pool), (), tuple(passages), kind.example_options, kind)
    question = draw(st.sampled_from(_situations(kind))).question
    words = [*filter(str.strip, filter(None, question.answers)), *draw(st.sampled_from(_families(kind)))]
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
    sound = _sound().get(question.text, SOUND)
    known = (
        sound,
        replace(sound, others=(sound,)),
        replace(sound, check=""),
        replace(sound, answer="9"),
        replace(sound, steps=()),
    )
    return st.sampled_from((sound, *known)) | _ODD_DERIVATIONS


@cache
def _sound() -> Mapping[str, Derivation]:
    """A sound derivation for the text of each situation with a sum."""
    replied = ((trial.question.text, trial.reply("deriver")) for trial in situations("arithmetic"))
    return {text: reply for text, reply in replied if isinstance(reply, Derivation) and reply.check}


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
    """Draw a whole `Trial`: a question under settings, each role's reply, and the changes that laws try.

    Args:
        answer: As `questions` takes it.
    """
    question = draw(questions(answer))
    roles: tuple[Role, ...] = ("judge", question.type.repairer)
    said: dict[Role, Reply] = {role: draw(replies(question, role)) for role in roles}
    listed = next((one for one in _situations(question.type) if one.question is question), None)
    if listed and draw(st.integers(0, 3)):
        said |= {role: listed.reply(role) for role in roles}
    offers = [reply.answer for reply in said.values() if isinstance(reply, Repair | Derivation)]
    right = [answer for answer in (*question.answers, *offers) if answer and answer.strip()] or [""]
    verdict, passages = said["judge"], range(len(question.passages))
    return Trial(
        question,
        draw(rule_settings),
        said,
        gold=draw(st.sampled_from(right[::-1])),
        other_judge=draw(replies(question, "judge")),
        failure=draw(st.builds(Abstention, st.just("the call timed out") | raw_text)),
        other_scores=draw(_scores_of(question)) if isinstance(verdict, Verdict) and verdict.scores else (),
        more=draw(evidence(right)),
        evidence_order=(*draw(st.permutations(passages)), *draw(st.lists(st.sampled_from(passages), max_size=3)))
        if passages
        else (),
        pool_order=tuple(draw(st.permutations(range(len(question.answers))))),
    )
