"""Steps rebuild their text, claims are slices of a step, a counterfactual differs in one thing; overlap is of words."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import Scores
from eldgr_dspy.channels.blocks import blocks
from eldgr_dspy.channels.claims import MOST as MOST_CLAIMS
from eldgr_dspy.channels.claims import claims_of, rule_claims
from eldgr_dspy.channels.counterfactuals import Counterfactual, counterfactual, rule_counterfactuals
from eldgr_dspy.channels.overlap import independent_sources, new_unsupported, novelty, progress, units
from eldgr_dspy.channels.steps import MOST, Step, StepInContext, Steps, split_steps, unmeasurable
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.text.folding import fold
from tests.case_tables import each_case, tables_of

TEXTS = tables_of("channels")["pieces"]
PIECES, CLAUSES, WORDS, HOSTILE = (TEXTS[name] for name in ("hard to take apart", "clauses", "words", "hostile"))
prose, claiming, changing = (
    st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=most).map("".join)
    for pieces, most in ((PIECES, 25), (PIECES + CLAUSES, 20), (PIECES + WORDS, 20))
)
phrases = st.lists(st.sampled_from("Qatar hosted cup Doha capital 2022 the of 多哈 Zoé".split()), max_size=6).map(
    " ".join
)
several = st.lists(phrases | st.text(max_size=12), max_size=6)


def rebuild(split: Steps) -> str:
    apart = [split.answer] if split.answer else list[Step]()
    tiles = sorted([*split.steps, *apart], key=lambda step: step.start)
    at = 0
    for tile in tiles:
        assert tile.start == at < tile.end and tile.text == split.text[tile.start : tile.end]
        at = tile.end
    return "".join(tile.text for tile in tiles)


@given(prose, st.integers(1, 30), st.integers(1, 5))
@example("\n#### 18\n", 1, 1)
@example("a\n\n\n", 1, 1)
@example("#### 1\na\nb", 5, 1)
def test_the_spans_rebuild_any_text(text: str, longest: int, most: int) -> None:
    assert rebuild(split_steps(text)) == text
    short = split_steps(text, longest, most)
    assert rebuild(short) == text and len(short.steps) <= max(most, 1)


@given(prose)
def test_no_step_but_of_a_blank_text_is_blank_and_no_block_is_cut(text: str) -> None:
    steps = split_steps(text).steps
    assert not text.strip() or all(step.text.strip() for step in steps)
    edges = {step.start for step in steps}
    assert not any(start < edge < end for start, end in blocks(text) for edge in edges)


def test_a_step_that_is_too_long_is_split_further_where_it_can_be() -> None:
    split = split_steps("Step 1: " + "It is so. " * 300 + "\nStep 2: Short.")
    assert split.by == "markers" and len(split.steps) == MOST and rebuild(split) == split.text
    (whole,) = split_steps("ab " * 34_000).steps
    assert isinstance(unmeasurable(whole.content), Undefined)


@given(claiming)
@example("0:0\x0c; ")
def test_claims_are_slices_in_order_of_two_words_or_more(step: str) -> None:
    at = 0
    for claim in claims_of(step):
        result = step.find(claim, at)
        assert result >= 0 and claim == claim.strip() and len(units(claim)) > 1
        at = result + len(claim)


def test_the_rule_finds_the_claims_of_each_step_and_no_more_than_are_scored() -> None:
    assert len(claims_of("It is so. " * 100)) == MOST_CLAIMS
    assert rule_claims([StepInContext("It is so."), StepInContext("Dubai")]) == [("It is so.",), ()]


@given(changing, st.lists(changing, max_size=2))
def test_the_changed_step_always_differs_and_the_same_step_changes_the_same_way(step: str, passages: list[str]) -> None:
    result = counterfactual(step, passages)
    assert result == counterfactual(step, passages)
    if result is not None:
        assert fold(result.text).text != fold(step).text


@given(changing)
def test_a_changed_number_keeps_its_format(step: str) -> None:
    result = counterfactual(step)
    if result is not None and result.kind == "number" and len(result.text) == len(step):
        shapes = (re.compile(r"\d"), "0"), (re.compile("[a-zA-Z]"), "")
        assert any(shape.sub(by, result.text) == shape.sub(by, step) for shape, by in shapes)


def test_the_rule_takes_entities_from_passages_then_question() -> None:
    step = StepInContext("It was Dubai there.", "Was it Paris?")
    steps = [replace(step, passages=("Doha is old.", "It is Doha.")), step, StepInContext("Nothing here")]
    expected = [Counterfactual("It was Doha there.", "entity"), Counterfactual("It was Paris there.", "entity"), None]
    assert rule_counterfactuals(steps) == expected


@pytest.mark.parametrize("read", [split_steps, claims_of, lambda text: counterfactual(text, [text])])
@pytest.mark.parametrize("piece", [*HOSTILE, "Aa ", "Aa Bb, ", "is", "1", "1.", "'"])
def test_a_hundred_kilobytes_of_anything_take_no_time_to_speak_of(piece: str, read: Callable[[str], object]) -> None:
    text, start = "x is " + piece * (100_000 // len(piece)) + " y is", time.monotonic()
    read(text)
    assert time.monotonic() - start < 20  # quadratic time would take minutes


@given(several)
def test_novelty_is_in_range_and_the_first_step_is_new(steps: list[str]) -> None:
    scores = novelty(steps)
    assert len(scores) == len(steps)
    assert all(isinstance(score, Undefined) or 0 <= score <= 1 for score in scores)
    assert not steps or isinstance(scores[0], Undefined) or scores[0] == 1


@given(several, st.data())
def test_a_step_said_again_is_not_new(steps: list[str], data: st.DataObject) -> None:
    if steps:
        again = data.draw(st.sampled_from(steps))
        (last,) = list(novelty([*steps, again]))[-1:]
        assert isinstance(last, Undefined) or last == 0


@given(several, phrases, phrases)
def test_progress_sums_to_at_most_one(steps: list[str], question: str, answer: str) -> None:
    scores = progress(steps, question, answer)
    numbers = [score for score in scores if not isinstance(score, Undefined)]
    assert len(scores) == len(steps) and sum(numbers) <= 1 + 1e-9 and all(score >= 0 for score in numbers)


def sources(*documents: tuple[str, str]) -> int:
    return independent_sources([Passage(title, text) for text, title in documents])


@each_case("channels", "independent sources")
def test_copies_and_documents_of_one_source_count_once(documents: list[tuple[str, str]], n: int) -> None:
    assert sources(*documents) == n


@given(st.lists(st.tuples(phrases, st.sampled_from(["", "A", "B"])), max_size=5), st.randoms(use_true_random=False))
@example([("a b c", "A"), ("a b c", "B"), ("x", "B")], Random(0))
def test_neither_order_nor_copies_change_the_sources(documents: list[tuple[str, str]], random: Random) -> None:
    count, other = sources(*documents), random.sample(documents, len(documents))
    copies = [(text, "C") for text, _ in documents[:1] if units(text)]
    assert sources(*other) == sources(*other, *copies) == count
    assert (count > 0) == bool(documents) and count <= len(documents)


@given(st.text(), st.text())
def test_two_texts_are_alike_in_either_order_and_a_text_with_words_is_like_itself(one: str, other: str) -> None:
    assert sources((one, ""), (other, "")) == sources((other, ""), (one, ""))
    assert sources((one, ""), (one, "")) == (1 if units(one) else 2)


@given(st.lists(several, max_size=4))
@example([["Qatar hosted the cup", "Qatar hosted the cup"], ["cup the hosted Qatar", "Qatar hosted the cup"]])
@example([["", ""], [""]])
def test_a_claim_is_new_unless_it_is_like_any_that_was_made_before(claims: list[list[str]]) -> None:
    counts = new_unsupported(claims, [Scores.of([0] * len(own)) for own in claims])
    every = [claim for own in claims for claim in own]
    fresh = iter(all(sources((one, ""), (old, "")) == 2 for old in every[:at]) for at, one in enumerate(every))
    for own, count in zip(claims, counts, strict=True):
        assert count == sum(islice(fresh, len(own))) if own else isinstance(count, Undefined)
