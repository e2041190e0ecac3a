"""How a pool is shown to a role: what a role reads as a candidate's answer is that answer, whatever its text says."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.rule.consultations import show_candidate, show_passage, split_candidate

texts = st.lists(st.sampled_from(["Doha", "Final answer:", "\n", "\nFinal answer: ", " ", "is"]), max_size=6).map(
    "".join
)


@pytest.mark.parametrize(
    ("text", "answer", "output"),
    [
        ("It is hot there.", "Doha", "It is hot there.\nFinal answer: Doha"),
        ("It is hot there.", " Doha \n City", "It is hot there.\nFinal answer: Doha City"),
        ("Doha\n", " Doha", "Doha\n"),
        ("It is hot there.", None, "It is hot there.\nFinal answer: "),
        (" ", None, " "),
        ("", "Doha", "\nFinal answer: Doha"),
        ("So.\nFinal answer: Oslo", "Doha", "So.\nFinal answer: Oslo\nFinal answer: Doha"),
        (
            "So.\nFinal answer: Oslo",
            "So.\nFinal answer: Oslo",
            "So.\nFinal answer: Oslo\nFinal answer: So. Final answer: Oslo",
        ),
    ],
)
def test_a_candidate_is_its_text_and_then_its_answer_where_the_two_differ(
    text: str, answer: str | None, output: str
) -> None:
    assert show_candidate(text, answer) == output


@given(texts, st.none() | texts)
@example("So.\nFinal answer: Oslo", "Doha")
def test_the_answer_of_a_candidate_is_read_back_whatever_its_text_says(text: str, answer: str | None) -> None:
    read = split_candidate(show_candidate(text, answer))
    assert read[1].split() == (answer or "").split()
    assert read[0] == text


def test_a_passage_is_its_title_on_a_line_of_its_own_and_its_text() -> None:
    assert (show_passage("Qatar", "It is hot."), show_passage("", "It is hot.")) == ("Qatar\nIt is hot.", "It is hot.")
