"""Passages on the page: a witness is marked where it stands, and joined together the pieces are the passage."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.formats.rows import PassageRow
from eldgr_dspy.report.explanations import Piece, ShownPassage, passages
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question


def shown(answers: tuple[str, ...], *texts: str, ships: str | None = None) -> tuple[list[ShownPassage], int]:
    """The passages of a question whose first rule ships an answer."""
    case = Case(Question("Where?", "retrieval", answers, passages=tuple(Passage("", text) for text in texts)))
    witness = case.certificate(ships).witness
    result = (
        None if witness is None else {name: getattr(witness, name) for name in ("passage", "field", "start", "end")}
    )
    decided: Any = {"rule": "eldgr", "witness": result}
    return passages([PassageRow(title="", text=text) for text in texts], case, [decided])


def joined(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


def test_what_ships_is_marked_and_other_certified_answers_are_marked_as_such() -> None:
    (first, second), left_out = shown(("Doha", "Riga"), "It is in Doha, Qatar.", "Not Riga.", ships="Doha")
    assert first.text == ["It is in ", ("Doha", "witness of what ships by eldgr"), ", Qatar."]
    assert second.text == ["Not ", ("Riga", "witness of “Riga”"), "."]
    assert left_out == 0


def test_marks_that_overlap_are_cut_into_pieces_with_both_labels() -> None:
    (one,), _ = shown(
        ("Sam Boyd Stadium", "Boyd Stadium in Nevada"), "At Sam Boyd Stadium in Nevada.", ships="Sam Boyd Stadium"
    )
    other = "witness of “Boyd Stadium in Nevada”"
    assert one.text == [
        "At ",
        ("Sam ", "witness of what ships by eldgr"),
        ("Boyd Stadium", f"witness of what ships by eldgr; {other}"),
        (" in Nevada", other),
        ".",
    ]


def test_a_passage_without_a_mark_is_cut_and_beyond_thirty_they_are_counted() -> None:
    result, left_out = shown(("Oslo",), *(["x" * 500] * 42))
    assert len(result) == 30
    assert result[0].text == [f"{'x' * 400}… (100 more characters)"]
    assert left_out == 12


def test_a_long_passage_is_shown_around_its_mark_with_counts() -> None:
    (one,), _ = shown(("Doha",), f"{'a ' * 8_000}Doha{' b' * 8_000}", ships="Doha")
    before, *pieces, after = one.text
    assert before == "(6,000 characters) …"
    assert after == "… (6,000 more characters)"
    assert len(joined(pieces)) == 20_004


def test_a_witness_in_a_title_is_marked_there() -> None:
    case = Case(Question("Where?", "retrieval", ("Doha",), passages=(Passage("Doha", "The capital."),)))
    (one,), _ = passages([PassageRow(title="Doha", text="The capital.")], case, [])
    assert one.title == [("Doha", "witness of “Doha”")]
    assert one.text == ["The capital."]


@given(
    st.lists(st.sampled_from(["ab", "b c", "c", "abc", "ca"]), min_size=1, max_size=4),
    st.text("abc \u202e", max_size=40),
)
def test_joined_together_the_pieces_are_the_passage(answers: list[str], text: str) -> None:
    (one,), _ = shown(tuple(answers), text, ships=answers[0])
    assert joined(one.text) == text
