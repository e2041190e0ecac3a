"""One call of an NLI model makes tables of reasoning texts; what can't be measured says why."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS, PAPER, Channel, Score, Undefined
from eldgr_dspy.channels.counterfactuals import Counterfactual
from eldgr_dspy.channels.protocols import Hit, Reasoning
from eldgr_dspy.channels.step_table import StepScores, StepTable
from eldgr_dspy.channels.steps import StepInContext
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.group import EARLIER
from eldgr_dspy.programs.scoring.nli_scorer import NO_READING, NLIScorer
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.scoring.readers import Everything, Reader, Says

CUP = Passage("2022 FIFA World Cup", "The tournament was hosted by Qatar.")
CAPITAL = Passage("Doha", "Doha is the capital of Qatar.")
BREAD = Passage("Bread", "Bread is baked from flour.")
QUESTION = "What is the capital of the host?"
FIRST, SECOND = "The host was Qatar.", "The capital of Qatar is Dubai."
TEXT = f"Step 1: {FIRST}\nStep 2: {SECOND}"
GROUNDING: tuple[Channel, ...] = ("fact", "epist", "triang", "adv", "min")


def qatar(premise: str, hypothesis: str) -> Says:
    """What is so: hosted by Qatar, and Doha its capital."""
    if hypothesis == FIRST and "hosted by Qatar" in premise:
        return "entailment"
    return "contradiction" if "Dubai" in hypothesis and premise.startswith("Doha") else "neutral"


def steps_of(reader: Reader, reasoning: Reasoning, **settings: Any) -> tuple[StepScores, ...]:
    (table,) = NLIScorer(reader, **settings).score([reasoning])
    return table.scores


def one(text: str, *documents: Passage, says: Any = qatar, **settings: Any) -> StepScores:
    """The scores of a text of one step under documents that are all found."""
    (step,) = steps_of(Reader(says), Reasoning(text, QUESTION), retriever=Everything(*documents), **settings)
    return step


def reasons(step: StepScores) -> dict[Channel, str]:
    return {name: score.reason for name, score in step.channels.items() if isinstance(score, Undefined)}


# --- what is read -----------------------------------------------------------------------------------------------------
def test_a_text_becomes_a_table_that_says_which_passage_decided() -> None:
    reasoning = Reasoning(TEXT, QUESTION, (BREAD, CAPITAL, CUP), "Dubai", confidences=[0.9, 0.8])
    (table,) = NLIScorer(Reader(qatar)).score([reasoning])
    first, second = table.scores
    assert (table.text, table.spans) == (TEXT, ((0, 28), (28, len(TEXT))))
    assert (first.channels["fact"], first.document, first.contradicting) == (1, 2, None)
    assert (second.channels["fact"], second.document, second.contradicting, second.least) == (0.5, 2, 1, -1)
    assert first.channels["epist"] == pytest.approx(0.9) and second.channels["epist"] == pytest.approx(0.7)
    assert first.channels["triang"] == pytest.approx(1 / 3) and second.channels["triang"] == 0
    assert first.channels["adv"] == pytest.approx(1 / (1 + math.exp(-0.5)))
    assert first.channels["min"] == 1 and second.channels["min"] == pytest.approx(math.exp(-0.1))
    assert first.channels["logic"] == second.channels["logic"] == 0.5 and reasons(first) == reasons(second) == {}


def test_a_step_is_read_without_its_marker_and_reading_and_weighting_are_handed_on() -> None:
    reader = Reader()
    steps_of(reader, Reasoning(TEXT, QUESTION), retriever=Everything(CAPITAL, Passage("", "No title.")))
    under_documents = {("Doha\nDoha is the capital of Qatar.", FIRST), ("No title.", FIRST)}
    assert {pair for pair in reader.pairs if pair[1] == FIRST} == {(QUESTION, FIRST), *under_documents}
    assert (f"{QUESTION}\n{FIRST}", SECOND) in reader.pairs
    step = one(FIRST, CUP, reading="expected", weighting=PAPER.without("logic"))
    assert step.channels["fact"] == pytest.approx((1 + 0.97) / 2) and step.gate == step.channels["fact"]


def test_what_is_read_of_a_text_and_when_no_model_is_called() -> None:
    reader = Reader()
    documents = [Passage(f"Title {at}", f"Text {at}.") for at in range(9)]
    steps_of(reader, Reasoning(SECOND, QUESTION), retriever=Everything(*documents))
    assert len(reader.pairs) == 1 + 5 + 5
    reader = Reader()
    assert NLIScorer(reader).score([]) == []
    NLIScorer(reader).score([Reasoning(""), Reasoning("One", QUESTION, (BREAD,)), Reasoning(FIRST)])
    assert reader.calls == []


def test_a_shared_corpus_takes_the_place_of_a_texts_own_passages_and_each_query_is_searched_for_once() -> None:
    reader, corpus = Reader(qatar), Everything(BREAD, CUP)
    (step,) = steps_of(reader, Reasoning(FIRST, QUESTION, (CAPITAL,)), retriever=corpus)
    assert step.document == 1 and not any("Doha" in premise for premise, _ in reader.pairs)
    corpus = Everything(CUP)
    NLIScorer(Reader(), corpus).score([Reasoning(TEXT, QUESTION), Reasoning(TEXT, "Another?")])
    assert corpus.queries == [FIRST, SECOND]


def test_of_earlier_steps_the_latest_are_read_and_of_one_that_is_too_long_its_end() -> None:
    reader = Reader()
    lines = [f"Line number {at} says {'so ' * 60}" for at in range(30)]
    steps_of(reader, Reasoning("\n".join(lines), QUESTION))
    premises = [premise for premise, hypothesis in reader.pairs if hypothesis.startswith("Line number 29 ")]
    assert len(premises) == 1 and len(premises[0]) <= len(QUESTION) + EARLIER + len(lines)
    assert premises[0].startswith(f"{QUESTION}\nLine number 23 ") and premises[0].endswith(lines[28].strip())
    reader = Reader()
    steps_of(reader, Reasoning(f"1. So it was.\n2. {'x' * 100_000} end\n3. {FIRST}", QUESTION))
    (premise,) = [premise for premise, hypothesis in reader.pairs if hypothesis == FIRST]
    assert premise == f"{QUESTION}\n{'x' * (EARLIER - 4)} end"


# --- each channel -----------------------------------------------------------------------------------------------------
def test_contradicting_documents_are_not_hidden_and_those_that_entail_a_step_count_once_a_source() -> None:
    step = one(SECOND, CAPITAL, BREAD, says=lambda p, h: "entailment" if p.startswith("What") else qatar(p, h))
    assert (step.channels["fact"], step.channels["logic"], step.least, step.contradicting) == (0.5, 1, -1, 0)
    assert (step.conflated, step.conflated_not_neutral) == (False, True)
    copies = [CUP, Passage("Another title", CUP.text), Passage(CUP.title, "Another text, hosted by Qatar.")]
    others = [CUP, Passage("News", "It was hosted by Qatar in winter.")]
    triang = [one(FIRST, *passages).channels["triang"] for passages in (copies, others)]
    assert triang == pytest.approx([1 / 3, 2 / 3])


def test_each_claim_is_held_against_the_documents_once_and_channels_without_material_are_undefined() -> None:
    text = f"{FIRST} The bread was baked there. Bread is from Dubai."
    (step,) = steps_of(Reader(qatar), Reasoning(f"1. {text}\n2. {text}"), retriever=Everything(CUP, CAPITAL))[:1]
    assert step.channels["min"] == pytest.approx(math.exp(-0.2))
    first, second = steps_of(Reader(), Reasoning(f"{SECOND}\n{SECOND}"), retriever=Everything(BREAD))
    assert first.channels["min"] == pytest.approx(math.exp(-0.1)) and second.channels["min"] == 1
    reader = Reader()
    (step,) = steps_of(reader, Reasoning("nothing of the kind", QUESTION), retriever=Everything(CUP))
    assert reasons(step)["adv"] == "nothing in the step can be changed" and len(reader.pairs) == 2
    (step,) = steps_of(Reader(), Reasoning("It is Doha then.", "Which capital?", None, "Doha"))
    assert step.channels["info"] == pytest.approx((1 + 1 / 2) / 2)
    first, second = steps_of(Reader(), Reasoning(TEXT))
    assert first.channels["logic"] == Undefined("nothing stands before the step") and second.channels["logic"] == 0.5


class Stubborn:  # says one thing of every step, and keeps what it was asked
    def __init__(self, reply: Any) -> None:
        self.reply, self.steps = reply, list[StepInContext]()

    def __call__(self, steps: Sequence[StepInContext]) -> list[Any]:
        self.steps += steps
        return [self.reply] * len(steps)


def test_claims_and_changed_steps_come_from_whoever_is_given_and_may_be_abstentions() -> None:
    reader, claims = Reader(), Stubborn(("Somebody hosted it.",))
    changes = Stubborn(Counterfactual("Oman hosted it.", "entity"))
    scorer = NLIScorer(reader, Everything(CUP), claims=claims, counterfactuals=changes)
    scorer.score([Reasoning(FIRST, QUESTION), Reasoning(FIRST, QUESTION)])
    passage = f"{CUP.title}\n{CUP.text}"
    under_it = {hypothesis for premise, hypothesis in reader.pairs if premise == passage}
    assert under_it == {FIRST, "Somebody hosted it.", "Oman hosted it."}
    assert claims.steps == changes.steps == [StepInContext(FIRST, QUESTION, (), (passage,))]
    gave_up: Any = Stubborn(Undefined("the LM gave up"))
    step = one(FIRST, CUP, claims=gave_up, counterfactuals=gave_up)
    unsure: dict[Channel, str] = {"epist": "there are no token probabilities"}
    assert reasons(step) == {**unsure, "adv": "the LM gave up", "min": "the LM gave up"}
    assert reasons(one(FIRST, CUP)) == unsure
    values: list[Score] = [Undefined("the tokens were lost")]
    (step,) = steps_of(Reader(), Reasoning(FIRST, QUESTION, (CUP,), confidences=values))
    assert reasons(step) == {"epist": "the tokens were lost"}


# --- what can't be measured -------------------------------------------------------------------------------------------
def test_without_a_corpus_what_needs_documents_is_undefined_and_nobody_is_asked_for_claims() -> None:
    reader, nobody = Reader(), Stubborn(None)
    scorer: Any = NLIScorer(reader, claims=nobody, counterfactuals=nobody)
    (table,) = scorer.score([Reasoning(FIRST, QUESTION, None, confidences=[0.5])])
    (step,) = table.scores
    assert reasons(step) == dict.fromkeys(GROUNDING, "there is no corpus")
    assert step.least == step.conflated == Undefined("there is no corpus") and step.document is None
    assert reader.pairs == [(QUESTION, FIRST)] and nobody.steps == []
    assert step.gate == step.channels["logic"]


@pytest.mark.parametrize("passages", [(), (BREAD,)], ids=["no documents", "no document with such a word"])
def test_nothing_found_in_a_corpus_that_exists_is_neutral_and_still_gated(passages: tuple[Passage, ...]) -> None:
    (step,) = steps_of(Reader(), Reasoning(FIRST, QUESTION, passages, confidences=[0.5]))
    assert reasons(step) == {} and step.gate == 0.5 and step.document is None
    assert [step.channels[name] for name in GROUNDING] == [0.5, 1, 0, 0.5, pytest.approx(math.exp(-0.1))]
    assert step.conflated == Undefined("no document was retrieved") and step.least == 0


@each_case("scoring", "unscorable steps")
def test_a_step_that_cannot_be_scored_is_undefined_throughout_and_never_read(text: str, why: str) -> None:
    reader = Reader()
    for passages, confidences in (((CAPITAL,), [0.5]), (None, None)):
        (step,) = steps_of(reader, Reasoning(text, QUESTION, passages, confidences=confidences))
        assert reasons(step) == dict.fromkeys(CHANNELS, why) and reader.calls == []
    assert step.reward == Undefined("no channel that has a weight was measured")


def test_an_empty_text_has_a_table_without_steps_and_a_step_beside_unscorable_ones_is_scored_as_ever() -> None:
    (table,) = NLIScorer(Reader()).score([Reasoning("", QUESTION, (CAPITAL,), confidences=[])])
    assert table == StepTable("", (), ())
    steps = steps_of(Reader(qatar), Reasoning(f"1. {'x' * 100_000}\n2. Doha\n3. {FIRST}", QUESTION, (CUP,)))
    assert [step.channels["fact"] for step in steps[2:]] == [1]
    assert all(len(reasons(step)) == 7 for step in steps[:2])


def test_zero_width_characters_and_documents_beyond_k_change_no_pair() -> None:
    plain, other = Reader(), Reader()
    for reader, mark in ((plain, ""), (other, "\u200b")):
        passage = Passage("Doha", f"Doha{mark} is the capi{mark}tal of Qatar.")
        steps_of(reader, Reasoning(f"The capi{mark}tal of Qatar is Dubai.{mark}", f"{QUESTION}{mark}", (passage,)))
    assert plain.pairs == other.pairs != []

    class Lavish(Everything):
        def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
            return super().search(queries, 99)

    reader = Reader()
    (step,) = steps_of(reader, Reasoning(FIRST), retriever=Lavish(BREAD, CUP, CAPITAL), k=1)
    assert {premise for premise, _ in reader.pairs} == {f"{BREAD.title}\n{BREAD.text}"} and step.document == 0


@each_case("scoring", "other languages")
def test_a_text_that_is_not_english_is_found_and_read(text: str, passage: str) -> None:
    (step,) = steps_of(Reader(lambda *_: "entailment"), Reasoning(text, "?", (BREAD, Passage("", passage))))
    assert (step.channels["fact"], step.document) == (1, 1)


# --- an NLI model that fails ------------------------------------------------------------------------------------------
@each_case("scoring", "pairs that are lost")
def test_where_the_model_gave_no_number_its_channels_are_undefined(begins: list[str], channels: dict[Any, str]) -> None:
    reader = Reader(lambda *pair: "nothing" if all(map(str.startswith, pair, begins)) else "entailment")
    (step,) = steps_of(reader, Reasoning(SECOND, QUESTION, (BREAD, CAPITAL, CUP), confidences=[0.5]), k=2)
    assert reasons(step) == {name: f"the NLI model gave no number for {what}" for name, what in channels.items()}


def test_where_the_model_gave_no_number_for_a_claim_or_a_part_of_one_the_channel_is_undefined() -> None:
    reader = Reader(lambda _, hypothesis: "nothing" if hypothesis == "It was cold." else "neutral")
    (step,) = steps_of(reader, Reasoning(f"1. {FIRST} It was cold.\n2. It was over.", QUESTION, (CUP,)))[:1]
    assert reasons(step)["min"] == "the NLI model gave no number for 1 of 1 pairs"
    assert set(reasons(step)) == {"epist", "min"}
    (step,) = steps_of(Wrong([[math.nan, 0.5, 0.5]]), Reasoning(FIRST, QUESTION))
    assert reasons(step)["logic"] == NO_READING.reason


class Wrong(Reader):  # an NLI model that returns what its protocol does not allow
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        return np.array(self.result)


@pytest.mark.parametrize("passages", [None, (), (CUP,)], ids=["no corpus", "nothing found", "a document"])
def test_a_step_that_the_model_could_read_under_nothing_has_no_score(passages: tuple[Passage, ...] | None) -> None:
    """Neither neutral because nothing in its script was found, nor good because its words are new."""
    (table,) = NLIScorer(Reader(lambda *_: "nothing")).score([Reasoning(FIRST, QUESTION, passages, confidences=[0.5])])
    assert reasons(table.scores[0]) == dict.fromkeys(CHANNELS, NO_READING.reason)
    assert isinstance(table.reward, Undefined)


# --- mistakes of whoever calls ----------------------------------------------------------------------------------------
class Forgetful:  # answers everything but the last
    documents = (CUP,)

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        return [[] for _ in queries[1:]]

    def __call__(self, steps: Sequence[StepInContext]) -> list[Any]:
        return [() for _ in steps[1:]]


class Astray(Everything):  # returns a number that none of its documents has
    def __init__(self, number: int) -> None:
        super().__init__(CUP)
        self.number = number

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        return [[Hit(self.number, 1.0)] for _ in queries]


WORDS: dict[str, Callable[..., Any]] = {"Forgetful": Forgetful, "Astray": Astray, "float": float}
WORDS |= {"Stubborn": Stubborn, "Wrong": Wrong, "tuple": lambda *of: of}


@each_case("scoring", "what no protocol allows", **WORDS)
def test_what_no_protocol_allows_is_refused(settings: dict[str, Any], message: str) -> None:
    scorer = NLIScorer(**{"nli": Reader(), "retriever": Everything(CUP), **settings})
    refuses(ArgumentError, message, scorer.score, [Reasoning(TEXT, QUESTION)])
