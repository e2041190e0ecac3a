"""Novelty, progress, independence and new claims are counted by words, in any script, in any order of documents."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import Scores, Undefined
from eldgr_dspy.channels.overlap import independent_sources, new_unsupported, novelty, progress, units
from eldgr_dspy.errors import ArgumentError

words = st.lists(st.sampled_from("Qatar hosted cup Doha capital 2022 the of 多哈 Zoé".split()), max_size=6).map(
    " ".join
)
texts = st.lists(words | st.text(max_size=12), max_size=6)


def test_units_are_words_and_pairs_of_characters_where_words_have_no_gaps() -> None:
    assert units("The Cup, 2022!") == ["the", "cup", "2022"]
    assert units("北京是") == ["北京", "京是"] and units("京") == ["京"]
    assert units("GDP为3亿元") == ["gdp", "为", "3", "亿元"]
    assert units("Ze\u200bro") == units("zero") and units("Zoe\u0301") == units("Zoé")


@given(texts)
def test_novelty_is_in_range_and_the_first_step_is_new(steps: list[str]) -> None:
    scores = novelty(steps)
    assert len(scores) == len(steps)
    assert all(isinstance(score, Undefined) or 0 <= score <= 1 for score in scores)
    assert not steps or isinstance(scores[0], Undefined) or scores[0] == 1


@given(texts, st.data())
def test_a_step_said_again_is_not_new(steps: list[str], data: st.DataObject) -> None:
    if steps:
        again = data.draw(st.sampled_from(steps))
        (last,) = list(novelty([*steps, again]))[-1:]
        assert isinstance(last, Undefined) or last == 0


def test_novelty_is_one_less_the_greatest_share_of_common_words() -> None:
    assert list(novelty(["Qatar hosted cup", "Qatar hosted", "Doha", "of the"])) == [
        1,
        pytest.approx(1 / 3),
        1,
        Undefined("the step has only stop words"),
    ]


@given(texts, words, words)
def test_progress_sums_to_at_most_one(steps: list[str], question: str, answer: str) -> None:
    scores = progress(steps, question, answer)
    measured = [score for score in scores if not isinstance(score, Undefined)]
    assert len(scores) == len(steps) and sum(measured) <= 1 + 1e-9 and all(score >= 0 for score in measured)


def test_a_step_makes_progress_by_what_it_is_the_first_to_cover() -> None:
    steps = ["Qatar hosted the cup", "It was Qatar", "Its capital is Doha"]
    assert list(progress(steps, "What is the capital of the cup host Qatar?", "Doha")) == [0.4, 0, 0.4]
    assert isinstance(progress(steps, "who", "")[0], Undefined)


# --- sources ----------------------------------------------------------------------------------------------------------

LONG = "Doha is the capital and the largest city of the state of Qatar on the coast of the Persian Gulf"


def sources(*documents: tuple[str, str]) -> int:
    """n_indep of documents, each a text with its title."""
    return independent_sources([Passage(title, text) for text, title in documents])


@pytest.mark.parametrize(
    ("documents", "n"),
    [
        ([], 0),
        ([(LONG, "A"), (LONG.upper() + " .", "B")], 1),
        ([(LONG, "A"), ("Doha is the capital", " a")], 1),
        ([(LONG, "A"), ("Doha is the capital", "B")], 2),
        ([(LONG, ""), ("Doha is the capital", "")], 2),
        ([(LONG, "A"), (LONG, "B"), ("The city of Doha", "B")], 1),
        ([(f"{LONG} in 1990", ""), (f"{LONG} in 1991", "")], 1),
        ([(f"Doha had {n} million people in 199{n[-1]}", "") for n in ("1.2", "1.3")], 2),
    ],
    ids=["none", "copies", "one title", "two", "no titles", "a copy connects", "long ones", "short ones"],
)
def test_copies_and_documents_of_one_source_count_once(documents: list[tuple[str, str]], n: int) -> None:
    assert sources(*documents) == n


@given(st.lists(st.tuples(words, st.sampled_from(["", "A", "B"])), max_size=5), st.randoms(use_true_random=False))
@example([("a b c", "A"), ("a b c", "B"), ("x", "B")], Random(0))
def test_neither_order_nor_copies_change_the_sources(documents: list[tuple[str, str]], random: Random) -> None:
    count, shuffled = sources(*documents), random.sample(documents, len(documents))
    copies = [(text, "C") for text, _ in documents[:1] if units(text)]
    assert sources(*shuffled) == sources(*shuffled, *copies) == count
    assert (count > 0) == bool(documents) and count <= len(documents)


@given(st.text(), st.text())
def test_two_texts_are_alike_in_either_order_and_a_text_with_words_is_like_itself(one: str, other: str) -> None:
    assert sources((one, ""), (other, "")) == sources((other, ""), (one, ""))
    assert sources((one, ""), (one, "")) == (1 if units(one) else 2)


# --- claims -----------------------------------------------------------------------------------------------------------
def test_new_claims_that_no_document_entails_are_counted() -> None:
    claims = [("Qatar hosted the cup", "Dubai is its capital"), ("dubai is its capital.", "It is hot there"), ()]
    best = [Scores.of([1, 0]), Scores.of([0, -1]), Scores.of([])]
    assert list(new_unsupported(claims, best)) == [1, 1, Undefined("the step makes no claim")]


@given(st.lists(texts, max_size=4))
@example([["Qatar hosted the cup", "Qatar hosted the cup"], ["cup the hosted Qatar", "Qatar hosted the cup"]])
@example([["", ""], [""]])
def test_a_claim_is_new_unless_it_is_like_any_that_was_made_before(claims: list[list[str]]) -> None:
    counts = new_unsupported(claims, [Scores.of([0] * len(own)) for own in claims])
    made: list[str] = []
    for own, count in zip(claims, counts, strict=True):
        new = 0
        for claim in own:
            new += all(sources((claim, ""), (earlier, "")) == 2 for earlier in made)
            made.append(claim)
        assert count == new if own else isinstance(count, Undefined)


def test_a_step_whose_claims_or_support_are_undefined_has_no_count_but_its_claims_were_made() -> None:
    no_corpus = Undefined("there is no corpus")
    claims: list[Sequence[str] | Undefined] = [
        Undefined("the LM abstained"),
        ("It is hot there",),
        ("It is hot there",),
    ]
    best = [Scores.of([]), Scores.of([no_corpus]), Scores.of([0])]
    assert list(new_unsupported(claims, best)) == [Undefined("the LM abstained"), no_corpus, 0]


def test_claims_and_their_support_have_to_be_as_many() -> None:
    with pytest.raises(ArgumentError, match="Claims of 1 steps were given with 0 columns"):
        new_unsupported([("a b",)], [])
    with pytest.raises(ArgumentError, match="1 claims of a step were given with 2 scores"):
        new_unsupported([("a b",)], [Scores.of([1, 1])])
