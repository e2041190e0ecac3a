"""Prepare a group of reasoning texts: their steps, what each is compared with, and which pairs are read.

Documents are searched for once a step; its claims and its changed form are compared with the same ones. Nothing here
calls an NLI model.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import TypeVar

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.claims import Claims
from eldgr_dspy.channels.counterfactuals import Counterfactual, Counterfactuals
from eldgr_dspy.channels.protocols import Hit, Reasoning, Retriever
from eldgr_dspy.channels.steps import StepInContext, Steps, split_steps, unmeasurable
from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.nli_pairs import MaybeRow, Row
from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.text.folding import drop_invisible

EARLIER = 1_200
"""Characters of the earlier steps that `logic` reads, the latest ones; 512 tokens have room for them and a question."""

NO_CORPUS = Undefined("there is no corpus")
NO_CONFIDENCE = Undefined("there are no token probabilities")
NOTHING_BEFORE = Undefined("nothing stands before the step")
NOTHING_TO_CHANGE = Undefined("nothing in the step can be changed")

_Question = TypeVar("_Question", bound=Hashable)
_Reply = TypeVar("_Reply")


@dataclass(frozen=True, slots=True)
class StepPairs:
    """A step, and the pairs that an NLI model must read for it, or why it can't be scored.

    Attributes:
        step: The step without its marker and invisible characters.
        silent: Why the step can't be scored; None if it can.
        hits: Number in the corpus -> document, best first; empty if nothing was retrieved.
        before: The step under question and earlier steps.
        documents, change, claims: The step, its changed form and each of its claims, each under the documents.
    """

    step: StepInContext
    silent: Undefined | None
    hits: Mapping[int, Passage]
    before: MaybeRow
    documents: MaybeRow
    change: MaybeRow
    claims: tuple[Row, ...] | Undefined


@dataclass(frozen=True, slots=True)
class Group:
    """Texts, the same split, c_t of each step, and the steps of all texts in one row."""

    reasonings: tuple[Reasoning, ...]
    texts: tuple[Steps, ...]
    confidences: tuple[Score, ...]
    steps: tuple[StepPairs, ...]

    def rows(self) -> Iterator[MaybeRow]:
        """All pairs to read, step by step; a pair may occur several times."""
        for step in self.steps:
            yield from (step.before, step.documents, step.change)
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
    """Split texts, find documents for their steps, and ask for their claims and changed forms, each kind at once."""
    texts = tuple(split_steps(reasoning.text) for reasoning in reasonings)
    confidences = [
        reasoning.confidences_of(len(text.steps), f"reasonings[{at}].confidences") or [NO_CONFIDENCE] * len(text.steps)
        for at, (reasoning, text) in enumerate(zip(reasonings, texts, strict=True))
    ]
    index = cache(BM25)  # one for equal passages
    corpora: list[Retriever | None] = [
        retriever if retriever is not None or one.passages is None else index(tuple(one.passages)) for one in reasonings
    ]
    steps = [step for pair in zip(reasonings, texts, strict=True) for step in _in_context(*pair)]
    step_corpora = [corpus for corpus, text in zip(corpora, texts, strict=True) for _ in text.steps]
    silent = [unmeasurable(step.text) for step in steps]
    pairs = _pairs_of_steps(steps, silent, list(_hits(steps, silent, step_corpora, k)), claims, counterfactuals)
    return Group(tuple(reasonings), texts, tuple(chain.from_iterable(confidences)), tuple(pairs))


def _in_context(reasoning: Reasoning, text: Steps) -> Iterator[StepInContext]:
    question = _visible(reasoning.question)
    contents = [_visible(step.content) for step in text.steps]
    for at, content in enumerate(contents):
        yield StepInContext(content, question, tuple(filter(None, contents[:at])))


def _visible(text: str) -> str:
    return drop_invisible(text).strip()


def _hits(
    steps: Sequence[StepInContext], silent: Sequence[Undefined | None], corpora: Sequence[Retriever | None], k: int
) -> Iterator[Mapping[int, Passage] | Undefined]:
    """Return the documents of each step, or why it has none; a corpus is searched once, for all its steps."""
    searches: dict[int, tuple[Retriever, dict[str, None]]] = {}
    for step, why, corpus in zip(steps, silent, corpora, strict=True):
        if corpus is not None and why is None:
            searches.setdefault(id(corpus), (corpus, {}))[1][step.text] = None
    hits = {at: _documents(corpus, list(queries), k) for at, (corpus, queries) in searches.items()}
    for step, why, corpus in zip(steps, silent, corpora, strict=True):
        yield why if why is not None else NO_CORPUS if corpus is None else hits[id(corpus)][step.text]


def _documents(corpus: Retriever, queries: list[str], k: int) -> dict[str, dict[int, Passage]]:
    need = "a list of Hit, each with the number of one of its documents"
    hits = _answers(corpus.search, queries, corpus.search(queries, k), partial(_are_hits, corpus), need)
    return {query: {hit.document: corpus.documents[hit.document] for hit in own[:k]} for query, own in hits.items()}


def _pairs_of_steps(
    steps: Sequence[StepInContext],
    silent: Sequence[Undefined | None],
    hits: Sequence[Mapping[int, Passage] | Undefined],
    claims: Claims,
    counterfactuals: Counterfactuals,
) -> Iterator[StepPairs]:
    with_passages = [replace(step, passages=_passages(documents)) for step, documents in zip(steps, hits, strict=True)]
    pairs = zip(with_passages, hits, strict=True)
    with_documents = list(dict.fromkeys(step for step, documents in pairs if not isinstance(documents, Undefined)))
    replies, changes = (claims(with_documents), counterfactuals(with_documents)) if with_documents else ((), ())
    claims_of = _answers(claims, with_documents, replies, _are_claims, "a tuple of texts, or Undefined")
    change_of = _answers(counterfactuals, with_documents, changes, _is_changed, "a Counterfactual, None or Undefined")
    for step, why, documents in zip(with_passages, silent, hits, strict=True):
        before = why if why is not None else _before(step)
        if isinstance(documents, Undefined):
            yield StepPairs(step, why, {}, before, documents, documents, documents)
            continue
        own, change, under = claims_of[step], change_of[step], partial(Row, premises=step.passages)
        change = NOTHING_TO_CHANGE if change is None else change
        other = under(change.text) if isinstance(change, Counterfactual) else change
        rows = own if isinstance(own, Undefined) else tuple(map(under, own))
        yield StepPairs(step, why, documents, before, under(step.text), other, rows)


def _passages(documents: Mapping[int, Passage] | Undefined) -> tuple[str, ...]:
    own = () if isinstance(documents, Undefined) else documents.values()
    return tuple(_visible(show_passage(document.title, document.text)) for document in own)


def _before(step: StepInContext) -> MaybeRow:
    """Return the step under the question and as many of the latest earlier steps as fit; a long one loses its start."""
    parts, room = list[str](), EARLIER
    for earlier in reversed(step.earlier):
        if parts and len(earlier) > room:
            break
        parts.append(earlier[-EARLIER:])
        room -= len(earlier)
    before = "\n".join(filter(None, [step.question, *reversed(parts)]))
    return Row(step.text, (before,)) if before else NOTHING_BEFORE


def _answers(
    whom: object,
    questions: Sequence[_Question],
    replies: Sequence[_Reply],
    is_valid: Callable[[object], bool],
    need: str,
) -> dict[_Question, _Reply]:
    """Return what a function or object of the user's answered to each question."""
    name = getattr(whom, "__qualname__", type(whom).__name__)
    replies = result_of(replies, name, "give one that is not")
    if len(replies) != len(questions):
        raise ArgumentError(f"{name} returned {len(replies)} answers for {len(questions)}; expected one for each.")
    for reply in replies:
        if not is_valid(reply):
            raise ArgumentError(f"{name} returned {reply!r:.200}; expected for each {need}.")
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
