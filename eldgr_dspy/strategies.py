"""Hypothesis strategies for what a rule sees: pools, evidence, questions, replies of an LM, whole trials.

Most draws are sensible (answers that vote together despite their spelling, numbers, spans of the evidence, texts that
give orders) and some are anything at all. Bounds are small, since a rule sees only classes and certificates: six
candidates of three classes reach every pattern of a larger pool. Import the strategies from `eldgr_dspy.testing`. Needs
the extra `testing`. Source: ours.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "eldgr_dspy.testing draws its examples with Hypothesis, which is not installed; run"
        " `pip install 'eldgr_dspy[testing]'`."
    ) from error

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.laws.answers import FAMILIES, NUMBERS, WORDS, Family, families_by_class
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.replies import read_reply
from eldgr_dspy.voting import Vote, majority
from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, STRICTNESS, TASKS, Role, Task

T = TypeVar("T")

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

MOST_CANDIDATES = 6
_PRODUCT = "A crate holds {} jars. How many jars do {} crates hold?"

raw_text = st.text(max_size=30)
answers = st.none() | st.sampled_from(WORDS) | raw_text
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | raw_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(raw_text, inner, max_size=3),
    max_leaves=6,
)

# Strategies are made once, and their draws get a meaning afterwards: making one for each example is slow.
_PLACE = st.integers(0, 2519)  # divisible by every number up to ten, and larger than the length of any list of words
_SCORE = st.sampled_from((0.5, 0.0, 1.0, 0.9, 0.1)) | st.floats(0, 1)


@st.composite
def _some(draw: st.DrawFn, strategy: st.SearchStrategy[T], *sizes: int) -> list[T]:
    """Draw a list of one of the sizes, each as likely as it is frequent in `sizes`; it shrinks to the first size."""
    return [draw(strategy) for _ in range(sizes[draw(_PLACE) % len(sizes)])]


def _taken(options: Sequence[T], place: int) -> T:
    return options[place % len(options)]


def _ordered(n: int, place: int) -> tuple[int, ...]:
    """An order of n things; 0 is their given order."""
    left, order = [*range(n)], list[int]()
    while left:
        place, at = divmod(place, len(left))
        order.append(left.pop(at))
    return tuple(order)


# -- what is asked -----------------------------------------------------------------------------------------------------

_TASKS: tuple[Task, ...] = (*TASKS, "retrieval")  # of which there is more to say
_POOL = _some(_PLACE, 0, 1, 2, 3, 3, 3, 4, 4, 4, 5, 5, MOST_CANDIDATES)
_PASSAGES = _some(st.tuples(_some(_PLACE, 0, 0, 0, 1), _some(_PLACE, 1, 1, 2, 3)), 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3)
_POLAR = tuple(family for family in FAMILIES if family[0] in ("yes", "no"))
_FAMILIES: st.SearchStrategy[list[Family]] = _some(st.sampled_from([*FAMILIES, *_POLAR]), 2, 3)
_REPEATED = _some(_PLACE, 0, 1, 2, 3)
_RAW = st.tuples(
    st.sampled_from(WORDS) | raw_text,
    st.lists(answers, max_size=MOST_CANDIDATES).map(tuple),
    st.lists(st.builds(Passage, raw_text, raw_text), max_size=3).map(tuple),
)


def pools(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[str | None, ...]]:
    """Draw the answers of a pool: up to six of these words, sometimes None. With few words, many answers agree."""
    options = (*words, *words, *words, None)
    return _POOL.map(lambda places: tuple(_taken(options, place) for place in places))


def evidence(words: Sequence[str] = WORDS) -> st.SearchStrategy[tuple[Passage, ...]]:
    """Draw up to three passages, each of up to three of these words; titles are mostly empty.

    Give it the answers of a pool, so that its evidence contains them.
    """

    def text(places: Sequence[int]) -> str:
        return " ".join(_taken(words, place) for place in places)

    return _PASSAGES.map(lambda drawn: tuple(Passage(text(title), text(body)) for title, body in drawn))


_KINDS = ("plain", *["open"] * 5, *["settled"] * 3, "shown", "texts", "copied", "apart", "anything")
"""Kinds of questions: in `open` a rival is in the evidence, in `settled` the consensus is too, and in `apart` one
passage has the beginning of a rival and the next one its end."""


@cache
def _families(kind: AnswerType) -> st.SearchStrategy[list[Family]]:
    """Draw two or three families of a type's examples; the usual ones for a type without examples."""
    spelled = families_by_class(kind)
    return _some(st.sampled_from(spelled), 2, 3) if spelled else _FAMILIES


@st.composite
def questions(draw: st.DrawFn, answer: Task | AnswerType | None = None) -> Question:
    """Draw a question with its pool and evidence: one in twelve from any text, the others from a few words.

    Args:
        answer: An answer type or its name; short text or numbers if it is not given.
    """
    chosen = answer_type(_taken(_TASKS, draw(_PLACE)) if answer is None else answer)
    kind, own = _taken(_KINDS, draw(_PLACE)), draw(_families(chosen))
    if kind == "anything":
        text, pool, passages = draw(_RAW)
        return Question(text, chosen.name, pool, (), passages, chosen.example_options, chosen)
    text = _PRODUCT.format(draw(_PLACE) % 8 + 2, draw(_PLACE) % 8 + 2) if chosen.way == "derivation" else "Which?"
    first, *others = filter(None, (_answers_to(text), *own))
    rare = [word for family in others for word in family]
    pool, rival = draw(pools([*first, *first, *rare])), _taken(rare, draw(_PLACE))
    if kind == "apart" and len(rival.split()) == 1:
        rival = (rival, f"{rival} Bay")[draw(_PLACE) % 2]
    if kind in ("open", "settled", "apart"):
        pool = (first[0], *pool[:3], rival, first[1])
    # Mostly the evidence has only the rarer answers, so that an override is possible.
    shown = [*first, *rare] if kind == "shown" else [answer for answer in pool if answer and answer not in first]
    passages = _apart(rival, draw(_PLACE)) if kind == "apart" else draw(evidence(shown or rare))
    if kind in ("open", "settled"):
        passages = (*passages, Passage("", rival if kind == "open" else f"{rival} {first[0]}"))
    texts = [f"So it is {answer}." for answer in pool] if kind in ("texts", "copied") else []
    if kind == "copied":
        texts = [_taken([own, *(passage.text for passage in passages)], draw(_PLACE)) for own in texts]
    return Question(text, chosen.name, pool, tuple(texts), passages, chosen.example_options, chosen)


def _apart(answer: str, place: int) -> tuple[Passage, Passage]:
    """Two passages that together have an answer, cut between words or, if it has only one word, within it."""
    cuts = [at for at, char in enumerate(answer) if at and char.isspace()] or [*range(1, len(answer))] or [0]
    cut = _taken(cuts, place)
    return Passage("", f"x {answer[:cut].strip()}"), Passage("", f"{answer[cut:].strip()} y")


def _factors(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(_PRODUCT.replace("?", r"\?").format(r"(\d)", r"(\d)"), text)
    return (int(match[1]), int(match[2])) if match else None


def _answers_to(text: str) -> list[str]:
    factors = _factors(text)
    if factors is None:
        return []
    value = factors[0] * factors[1]
    return [str(sum(factors)), str(value), f"{value}.0", f"${value}", f"{value}%"]


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
_FAILURES = st.builds(Abstention, st.just("the call timed out") | raw_text)
_SPANS = st.sampled_from([word for word in WORDS if word.strip()]) | raw_text.filter(str.strip)
_ODD_DERIVATIONS = st.builds(
    Derivation,
    st.lists(st.builds(Step, st.sampled_from(("9*2", "20-2", "x", "1/0")), st.sampled_from(WORDS)), max_size=3).map(
        tuple
    ),
    st.sampled_from(NUMBERS) | raw_text,
    st.sampled_from(("", "18/2 = 9", "18 = 18", "18 - 9 = 9")),
)


def lm_replies() -> st.SearchStrategy[str]:
    """Draw what an LM may return: any text, any JSON, JSON that is almost valid, cut short or doubled."""
    judged = st.fixed_dictionaries({"preferred": st.integers(-1, 5), "assessments": st.just([]) | json_values})
    repaired = st.fixed_dictionaries({"repaired_answer": _SPANS, "repair_passage": st.integers(-2, 3)})
    whole = st.one_of(judged, repaired, lm_contents, json_values).map(json.dumps)
    return st.one_of(whole, whole.map(lambda text: text[:-1]), whole.map(lambda text: f"{text} {text}"), raw_text)


def _vote(question: Question) -> Vote:
    """The vote; without voters if the type of the question raises, which a check of the trial then shows."""
    try:
        return majority(question.answers, question.type.of(question))
    except Exception:  # noqa: BLE001 - a user's own type, and a strategy has no trial to show
        return Vote((None,) * len(question.answers), None, tie=False)


@st.composite
def verdicts(draw: st.DrawFn, question: Question) -> Verdict | Abstention:
    """Draw a judge's valid reply: a candidate with an answer, often a rival that is in the evidence."""
    vote, text = _vote(question), " ".join(passage.text for passage in question.passages)
    answered = [index for index, key in enumerate(vote.classes) if key is not None]
    if not answered:
        return SILENT
    rivals = [at for at in answered if vote.classes[at] != vote.winner and (question.answers[at] or "") in text]
    place = draw(_PLACE)
    preferred = _taken((rivals if rivals and place % 4 else answered)[::-1], place // 4)
    scored = draw(_PLACE) % 3
    return Verdict(preferred, tuple(draw(_SCORE) for _ in question.answers) if scored else None)


@st.composite
def repairs(draw: st.DrawFn, question: Question) -> Repair:
    """Draw a repairer's valid reply: words of the evidence, a whole passage, an answer of the pool, or any text."""
    texts = [part for passage in question.passages for part in (passage.text, passage.title) if part.strip()]
    said = [*(word for text in texts for word in text.split()), *texts]
    place = draw(_PLACE)
    pooled = [answer for answer in question.answers if answer and answer.strip()]
    options = (said, said, said, said, ("yes",), ("No.",), pooled, ())[place % 8]
    return Repair(_taken(options, place // 8) if options else draw(_SPANS))


@st.composite
def derivations(draw: st.DrawFn, question: Question) -> Derivation:
    """Draw a deriver's valid reply: a sound derivation if the question has one, one with a fault, or any text."""
    factors, place = _factors(question.text), draw(_PLACE) % 10
    if factors is None or place > 7:
        return draw(_ODD_DERIVATIONS)
    first, second = factors
    value = str(first * second)
    sound = Derivation((Step(f"{first} * {second}", value),), value, f"{value} / {second} = {first}")
    faulty = (replace(sound, check=""), replace(sound, answer=str(first + second)), replace(sound, steps=()))
    return _taken((sound, replace(sound, others=(sound,)), sound, *faulty), place)


@st.composite
def replies(draw: st.DrawFn, question: Question, role: Role) -> Reply:
    """Draw a role's reply: mostly a valid one, else an abstention, or any JSON object as it would be read."""
    kind = draw(_PLACE) % 10
    if kind > 8:
        return read_reply(role, draw(lm_contents), question.answers, len(question.passages))
    if kind == 0:
        return draw(abstentions)
    valid: dict[Role, Callable[[Question], st.SearchStrategy[Any]]] = {
        "judge": verdicts,
        "repairer": repairs,
        "deriver": derivations,
    }
    reply: Reply = draw(valid[role](question))
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
    answers = [*question.answers, *(reply.answer for reply in said.values() if isinstance(reply, Repair | Derivation))]
    right = [answer for answer in answers if answer and answer.strip()] or [""]
    vote = _vote(question)
    right += [text for text, key in zip(question.answers, vote.classes, strict=True) if text and key == vote.winner] * 4
    scored = any(isinstance(reply, Verdict) and reply.scores for reply in said.values())
    places = _ordered(len(question.passages), draw(_PLACE))
    repeated = [_taken(places, place) for place in draw(_REPEATED)] if places else []
    return Trial(
        question,
        draw(rule_settings),
        said,
        gold=_taken(right, draw(_PLACE)),
        other_judge=draw(replies(question, "judge")),
        failure=draw(_FAILURES),
        other_scores=tuple(draw(_SCORE) for _ in question.answers) if scored else (),
        more=draw(evidence(right)),
        evidence_order=(*repeated, *places),
        pool_order=_ordered(len(question.answers), draw(_PLACE)),
    )
