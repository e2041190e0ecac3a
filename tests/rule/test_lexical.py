"""The heuristic judge has bounded scores that rise with what words can show; the heuristic repairer copies a span."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.rule.consultations import show_candidate, show_passage
from eldgr_dspy.rule.lexical import Support, is_yes_no, offers_a_choice, sentences_of, support, words_of
from eldgr_dspy.rule.spans import Kind, best_span, kind_of_answer
from tests.case_tables import each_case
from tests.rule.keys import cases

QUESTION = "Which stadium hosted the 1998 final?"
EVIDENCE = [
    show_passage("Stade de France", "The Stade de France hosted the 1998 final. It stands in Saint-Denis."),
    show_passage("Wembley", "Wembley stands in London. It was rebuilt in 2007."),
    show_passage("Saint-Denis", "Saint-Denis is a town north of Paris. Stade de France is its best known building."),
]
SUM = "What is 16 - 3 + 4?"

texts = st.text(alphabet=st.characters(), max_size=60)


def scalars(question: str, evidence: list[str], candidates: list[str]) -> list[float]:
    result = support(question, evidence, candidates)
    assert result is not None
    return [one.scalar for one in result]


@given(texts, st.lists(texts, max_size=4), st.lists(texts, max_size=4))
@example("", ["a"], ["\nFinal answer: "])
@example("İ", ["İstanbul"], ["x\nFinal answer: İstanbul"])
@example("9" * 5_000, [], ["1+1=2 and 2+2=" + "9" * 5_000 + "\nFinal answer: " + "9" * 5_000])
@example("\ud800", ["\ud800"], ["\ud800"])
def test_any_text_has_bounded_support_or_none_at_all(question: str, evidence: list[str], candidates: list[str]) -> None:
    result = support(question, evidence, candidates)
    if result is None:
        return
    assert len(result) == len(candidates)
    for one in result:
        values = (one.scalar, one.logic, one.fact, one.triang)
        assert all(value is None or 0 <= value <= 1 for value in values)


@given(texts, st.lists(texts, max_size=3), st.lists(texts, min_size=1, max_size=3))
def test_identical_candidates_share_their_support(question: str, evidence: list[str], candidates: list[str]) -> None:
    result = support(question, evidence, candidates + candidates)  # hazard 11
    assert result is None or result[: len(candidates)] == result[len(candidates) :]


@given(st.permutations(EVIDENCE), st.lists(st.sampled_from(EVIDENCE), max_size=3))
def test_the_order_of_the_passages_and_their_copies_do_not_matter(order: list[str], copies: list[str]) -> None:
    candidates = ["Stade de France", "Wembley", "Paris"]
    assert support(QUESTION, order + copies, candidates) == support(QUESTION, EVIDENCE, candidates)


@each_case("rule", "answers with less support")
def test_a_supported_answer_beats(question: str | None, evidence: list[str] | None, candidates: list[str]) -> None:
    """Where no question or evidence is stated, it is that of the stadium."""
    scores = scalars(question or QUESTION, EVIDENCE if evidence is None else evidence, candidates)
    assert scores == sorted(set(scores), reverse=True)


@pytest.mark.parametrize(("evidence", "answer"), cases("what does not occur"))
def test_a_part_of_a_word_and_what_crosses_from_title_to_text_do_not_occur(evidence: str, answer: str) -> None:
    result = support("What is it?", [evidence], [answer])  # hazard 29
    assert result is not None and result[0].triang == 0.0


def test_support_is_measured_by_passages_reasoning_and_equations() -> None:
    result = support(QUESTION, EVIDENCE, ["Stade de France", "Wembley", "Old Trafford"])
    assert result is not None
    assert [one.triang for one in result] == [pytest.approx(2 / 3), pytest.approx(1 / 3), 0.0]
    # 'no' stands in most English text; only the reasoning speaks for or against a yes or a no.
    candidate = show_candidate("Saint-Denis is north of Paris", "no")
    result = support("Is Wembley in Paris?", EVIDENCE, [candidate, "no"])  # hazard 31
    assert result is not None
    assert result[0] == Support(scalar=1.0, fact=1.0)
    assert result[1].triang is None
    assert scalars(QUESTION, EVIDENCE, [show_candidate("It was played in London.", "")]) == [0.0]
    result = support(SUM, [], ["16 - 3 = 13\n13 + 4 = 18\nFinal answer: 18", "no equation"])
    assert result is not None
    assert result[0].logic == 0.5
    assert result[1] == Support(scalar=0.0)
    assert (result[0].fact, result[0].triang) == (None, None)
    assert support(QUESTION, [], ["Wembley", "Stade de France"]) is None
    assert support(QUESTION, [" \n "], ["Wembley"]) is None


@given(texts)
def test_sentences_lose_no_word_and_cross_no_line(text: str) -> None:
    sentences = list(sentences_of(text))
    assert [word for sentence in sentences for word in words_of(sentence)] == words_of(text)
    assert not any("\n" in sentence for sentence in sentences)


def test_initials_and_abbreviations_end_no_sentence() -> None:
    text = "J. R. R. Tolkien met Dr. No in St. Louis. They talked. and left."
    assert list(sentences_of(text)) == ["J. R. R. Tolkien met Dr. No in St. Louis.", "They talked. and left."]


@pytest.mark.parametrize(("question", "yes_no", "choice"), cases("yes-no questions and choices"))
def test_questions_for_yes_or_no_or_for_one_of_two_are_known(question: str, yes_no: bool, choice: bool) -> None:
    assert (is_yes_no(question), offers_a_choice(question)) == (yes_no, choice)


BRIDGE = [
    show_passage(
        "Golden Gate Bridge", "The Golden Gate Bridge in San Francisco opened on May 27, 1937, with six lanes."
    ),
    show_passage("Joseph Strauss", "Joseph B. Strauss was the chief engineer of the Golden Gate Bridge."),
    show_passage("Bay Bridge", "The Bay Bridge opened in 1936. It has two decks."),
]

sentences = st.lists(
    st.sampled_from(
        ["The", "the", "Bay", "Bridge", "opened", "of", "J.", "1936", "May 27", "two", "“Up”", ".", "\n", "'s"]
    ),
    max_size=14,
).map(" ".join)


@given(texts | sentences, st.lists(texts | sentences, max_size=4))
@example("", [])
@example("what opened?", ["opened The 's"])
@example("When did it open?", ["It opened in May"])
@example("What is \ud800?", ["\ud800 A"])
def test_a_span_is_a_slice_of_one_line_of_its_passage(question: str, evidence: list[str]) -> None:
    span = best_span(question, evidence)
    if span is not None:
        assert span.text.strip()
        assert any(span.text in line for line in evidence[span.passage].split("\n"))
        assert span.score > 0


@pytest.mark.parametrize(("question", "expected"), cases("shapes of spans"))
def test_the_span_has_the_shape_that_is_asked_for(question: str, expected: list[object]) -> None:
    span = best_span(question, BRIDGE)
    assert span is not None and [span.text, span.passage] == expected


@pytest.mark.parametrize(("question", "evidence"), cases("nothing to copy"))
def test_no_title_no_word_of_the_question_and_nothing_beside_it_is_copied(question: str, evidence: Any) -> None:
    """A title names what its passage is about; and no span answers a yes-no question, a choice or nothing."""
    assert best_span(question, BRIDGE if evidence == "BRIDGE" else evidence) is None


@pytest.mark.parametrize(("question", "evidence", "text"), cases("copied names"))
def test_a_name_is_copied_without_article_from_the_first_passage(question: str, evidence: list[str], text: str) -> None:
    span = best_span(question, evidence)
    assert span is not None and (span.text, span.passage) == (text, 0)


@pytest.mark.parametrize(("question", "kind"), cases("kinds of questions"))
def test_the_question_word_and_the_noun_after_it_tell_the_kind(question: str, kind: Kind) -> None:
    assert kind_of_answer(question) == kind
