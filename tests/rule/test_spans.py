"""The heuristic repairer's span is always a slice of one line of the evidence, and of the shape that is asked for."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.rule.spans import Kind, best_span, kind_asked

BRIDGE = [
    show_passage(
        "Golden Gate Bridge", "The Golden Gate Bridge in San Francisco opened on May 27, 1937, with six lanes."
    ),
    show_passage("Joseph Strauss", "Joseph B. Strauss was the chief engineer of the Golden Gate Bridge."),
    show_passage("Bay Bridge", "The Bay Bridge opened in 1936. It has two decks."),
]

texts = st.text(alphabet=st.characters(), max_size=60)
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


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who was the chief engineer of the Golden Gate Bridge?", ("Joseph B. Strauss", 1)),
        ("When did the Golden Gate Bridge open in San Francisco?", ("May 27, 1937", 0)),
        ("In what year was the Bay Bridge opened?", ("1936", 2)),
        ("How many decks has the Bay Bridge?", ("two", 2)),
        ("Where is the Golden Gate Bridge?", ("San Francisco", 0)),
        ("In which city did the Golden Gate Bridge open?", ("San Francisco", 0)),
    ],
)
def test_the_span_has_the_shape_that_is_asked_for(question: str, expected: tuple[str, int]) -> None:
    span = best_span(question, BRIDGE)
    assert span is not None
    assert (span.text, span.passage) == expected


NOWHERE: list[tuple[str, list[str]]] = [
    (
        "In what show did Cynthia play a lawyer?",
        [show_passage("Sex and the City", "A comedy with Cynthia as a lawyer.")],
    ),
    ("In what year did Cynthia win?", [show_passage("The awards of 1998", "Cynthia won.")]),
    ("What is the Bay Bridge?", ["The Bay Bridge is old."]),
    ("What of discounts for a student?", ["A Student Discount for students is old."]),
    ("Is the Bay Bridge older?", BRIDGE),
    ("Which is older, the Bay Bridge or The Golden Gate Bridge?", BRIDGE),
    ("", BRIDGE),
    ("Who invented penicillin?", BRIDGE),
    ("Who invented penicillin?", []),
]


@pytest.mark.parametrize(("question", "evidence"), NOWHERE)
def test_no_title_no_word_of_the_question_and_nothing_beside_it_is_copied(question: str, evidence: list[str]) -> None:
    """A title names what its passage is about; and no span answers a yes-no question, a choice or nothing."""
    assert best_span(question, evidence) is None


@pytest.mark.parametrize(
    ("question", "evidence", "text"),
    [
        ("What is the capital of Qatar?", [show_passage("Doha", "Doha is the capital of Qatar.")], "Doha"),
        ("Which band wrote the anthem?", ["The Raconteurs's drummer wrote an anthem with his band."], "Raconteurs"),
        ("Who opened Wembley?", ["Wembley was opened by Ann Bell.", "Wembley was opened by Bob Cole."], "Ann Bell"),
    ],
)
def test_a_name_is_copied_without_article_and_possessive_from_the_earliest_passage(
    question: str, evidence: list[str], text: str
) -> None:
    span = best_span(question, evidence)
    assert span is not None and (span.text, span.passage) == (text, 0)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Was it opened in May?", "choice"), ("In what year did it open?", "year"),
        ("On which date did it open?", "date"), ("When did it open?", "date"), ("How many lanes has it?", "number"),
        ("Which American film actor opened it?", "person"), ("Who opened it?", "person"),
        ("In which European city is it?", "place"), ("Where is it?", "place"),
        ("What film shows it when it opens?", "name"), ("Name it.", "name"),
    ],
)  # fmt: skip
def test_the_question_word_and_the_noun_after_it_tell_the_kind(question: str, kind: Kind) -> None:
    assert kind_asked(question) == kind
