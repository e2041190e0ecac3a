"""Prepare a group of reasoning texts: their steps, what each is compared with, and which pairs are read.

Documents are searched for once a step; its claims and its changed form are compared with the same ones. Nothing here
calls an NLI model.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.claims import Claims
from eldgr_dspy.channels.counterfactuals import Counterfactual, Counterfactuals
from eldgr_dspy.channels.protocols import Hit, Reasoning, Retriever
from eldgr_dspy.channels.steps import StepInContext, Steps, split_steps, unmeasurable
from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.errors import ArgumentError, settled
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.pairs import Asked, Row
from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.text.folding import drop_invisible

EARLIER = 1_200
"""Characters of the earlier steps that `logic` reads, the latest ones. An NLI model of 512 tokens can read them with a
question and a step. If they were longer, it would lose the end, and with it the step directly before."""

NO_CORPUS = Undefined("there is no corpus")
NO_CONFIDENCE = Undefined("there are no token probabilities")
NOTHING_BEFORE = Undefined("nothing stands before the step")
NOTHING_TO_CHANGE = Undefined("nothing in the step can be changed")

_Asked = TypeVar("_Asked", bound=Hashable)
_Reply = TypeVar("_Reply")


@dataclass(frozen=True, slots=True)
class Held:
    """A step, and the documents that it is compared with.

    Attributes:
        step: Without its marker and invisible characters; its passages are the documents as an NLI model reads them.
        documents: Number in the corpus -> document, best first; empty if nothing was retrieved.
        silent: Why the step can't be scored; None if it can.
        ungrounded: Why it is compared with no document: it can't be scored, or has no corpus; None if it has one.
    """

    step: StepInContext
    documents: Mapping[int, Passage]
    silent: Undefined | None
    ungrounded: Undefined | None


@dataclass(frozen=True, slots=True)
class Compared:
    """The pairs that an NLI model must read for a step, or why it can't.

    Attributes:
        before: The step under question and earlier steps.
        documents: The step under its documents.
        changed: The changed step under the same documents.
        claims: Each claim under the same documents.
    """

    before: Asked
    documents: Asked
    changed: Asked
    claims: tuple[Row, ...] | Undefined


@dataclass(frozen=True, slots=True)
class Group:
    """Texts, and the steps of all of them in one row.

    Attributes:
        reasonings: The texts as they were given.
        texts: The same, split.
        confidences: c_t of each step.
        steps: Each step with its documents.
        compared: The pairs to read for each step.
    """

    reasonings: tuple[Reasoning, ...]
    texts: tuple[Steps, ...]
    confidences: tuple[Score, ...]
    steps: tuple[Held, ...]
    compared: tuple[Compared, ...]

    def rows(self) -> Iterator[Asked]:
        """All pairs to read, step by step; a pair may occur several times."""
        for step in self.compared:
            yield from (step.before, step.documents, step.changed)
            yield from () if isinstance(step.claims, Undefined) else step.claims

    def slices(self) -> Iterator[slice]:
        """The range of each text's steps among all steps."""
        end = 0
        for text in self.texts:
            start, end = end, end + len(text.steps)
            yield slice(start, end)


def gather(
    reasonings: Sequence[Reasoning],
    retriever: Retriever | None,
    k: int,
    claims: Claims,
    counterfactuals: Counterfactuals,
) -> Group:
    """Split texts, find documents for their steps, and ask for their claims and changed forms, each kind at once.

    Args:
        reasonings: The texts.
        retriever: The corpus of all; None if each text is compared with its own passages.
        k: How many documents a step is compared with at most.
        claims: Who says what steps claim.
        counterfactuals: Who changes steps.

    Raises:
        ArgumentError: A text has another number of confidences than steps, or one that is not in [0, 1]; or one of the
            helpers did not give n answers for n questions, or gave one that its protocol does not allow.
    """
    texts = tuple(split_steps(reasoning.text) for reasoning in reasonings)
    confidences = [
        reasoning.confidences_of(len(text.steps), f"reasonings[{at}].confidences") or [NO_CONFIDENCE] * len(text.steps)
        for at, (reasoning, text) in enumerate(zip(reasonings, texts, strict=True))
    ]
    corpora = [retriever] * len(texts) if retriever is not None else _own(reasonings)
    steps = [step for pair in zip(reasonings, texts, strict=True) for step in _in_context(*pair)]
    searched = [corpus for corpus, text in zip(corpora, texts, strict=True) for _ in text.steps]
    with_documents = tuple(_with_documents(steps, searched, k))
    compared = tuple(_compared(with_documents, claims, counterfactuals))
    return Group(tuple(reasonings), texts, tuple(chain.from_iterable(confidences)), with_documents, compared)


def _own(reasonings: Sequence[Reasoning]) -> list[Retriever | None]:
    """An index of each text's own passages, the same one for equal passages."""
    corpora = [None if reasoning.passages is None else tuple(reasoning.passages) for reasoning in reasonings]
    indexed = {corpus: BM25(corpus) for corpus in dict.fromkeys(corpora) if corpus is not None}
    return [None if corpus is None else indexed[corpus] for corpus in corpora]


def _in_context(reasoning: Reasoning, text: Steps) -> Iterator[StepInContext]:
    question = _visible(reasoning.question)
    contents = [_visible(step.content) for step in text.steps]
    for at, content in enumerate(contents):
        yield StepInContext(content, question, tuple(filter(None, contents[:at])))


def _visible(text: str) -> str:
    return drop_invisible(text).strip()


def _with_documents(steps: Sequence[StepInContext], corpora: Sequence[Retriever | None], k: int) -> Iterator[Held]:
    """Return each step with its documents; a corpus is searched once, for all steps that are compared with it."""
    triples = [(step, corpus, unmeasurable(step.text)) for step, corpus in zip(steps, corpora, strict=True)]
    sought: dict[int, tuple[Retriever, dict[str, None]]] = {}
    for step, corpus, silent in triples:
        if corpus is not None and silent is None:
            sought.setdefault(id(corpus), (corpus, {}))[1][step.text] = None
    hits = {at: _documents(corpus, list(queries), k) for at, (corpus, queries) in sought.items()}
    for step, corpus, silent in triples:
        ungrounded = NO_CORPUS if silent is None and corpus is None else silent
        documents = hits[id(corpus)][step.text] if ungrounded is None else {}
        texts = tuple(_visible(show_passage(document.title, document.text)) for document in documents.values())
        yield Held(replace(step, passages=texts), documents, silent, ungrounded)


def _documents(corpus: Retriever, queries: list[str], k: int) -> dict[str, dict[int, Passage]]:
    """Return the documents found for each query, by their numbers."""
    hits = _answers("search", corpus, queries, corpus.search(queries, k), partial(_are_hits, corpus))
    return {query: {hit.document: corpus.documents[hit.document] for hit in own[:k]} for query, own in hits.items()}


def _compared(items: Sequence[Held], claims: Claims, counterfactuals: Counterfactuals) -> Iterator[Compared]:
    steps = list(dict.fromkeys(item.step for item in items if item.ungrounded is None))
    claimed = _answers("find", claims, steps, claims.find(steps) if steps else [], _are_claims)
    answers = counterfactuals.change(steps) if steps else []
    changed = _answers("change", counterfactuals, steps, answers, _is_changed)
    for item in items:
        before = item.silent if item.silent is not None else _before(item.step)
        if item.ungrounded is not None:
            yield Compared(before, item.ungrounded, item.ungrounded, item.ungrounded)
            continue
        documents, own = item.step.passages, claimed[item.step]
        change = changed[item.step]
        other = NOTHING_TO_CHANGE if change is None else change
        yield Compared(
            before,
            Row(item.step.text, documents),
            Row(other.text, documents) if isinstance(other, Counterfactual) else other,
            own if isinstance(own, Undefined) else tuple(Row(claim, documents) for claim in own),
        )


def _before(step: StepInContext) -> Asked:
    """Return the step under the question and as many of the latest earlier steps as fit; of a long one, its end."""
    parts, room = list[str](), EARLIER
    for earlier in reversed(step.earlier):
        if parts and len(earlier) > room:
            break
        parts.append(earlier[-EARLIER:])
        room -= len(earlier)
    before = "\n".join(filter(None, [step.question, *reversed(parts)]))
    return Row(step.text, (before,)) if before else NOTHING_BEFORE


# --- what was answered ------------------------------------------------------------------------------------------------

_EXPECTED = {
    "search": "a list of Hit, each with the number of one of its documents",
    "find": "a tuple of texts, or Undefined",
    "change": "a Counterfactual, None or Undefined",
}


def _answers(
    method: str,
    whom: object,
    questions: Sequence[_Asked],
    replies: Sequence[_Reply],
    allowed: Callable[[object], bool],
) -> dict[_Asked, _Reply]:
    """Return what was answered to each."""
    name = f"{type(whom).__name__}.{method}"
    replies = settled(replies, name, "give one that is not")
    if len(replies) != len(questions):
        raise ArgumentError(f"{name} returned {len(replies)} answers for {len(questions)}; expected one for each.")
    for reply in replies:
        if not allowed(reply):
            raise ArgumentError(f"{name} returned {reply!r:.200}; expected for each {_EXPECTED[method]}.")
    return dict(zip(questions, replies, strict=True))


def _are_hits(corpus: Retriever, reply: object) -> bool:
    numbers = range(len(corpus.documents))
    return isinstance(reply, list | tuple) and all(isinstance(hit, Hit) and hit.document in numbers for hit in reply)


def _are_claims(reply: object) -> bool:
    return isinstance(reply, Undefined) or (
        isinstance(reply, list | tuple) and all(isinstance(claim, str) for claim in reply)
    )


def _is_changed(reply: object) -> bool:
    return reply is None or isinstance(reply, Undefined | Counterfactual)
