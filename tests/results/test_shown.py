"""What a page shows of a text: all of it or a part with a count, and nothing that acts unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.report.templates import clip
from eldgr_dspy.showing import is_printable, printable


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
        ("a\u202eb\u2066c", "a[U+202E]b[U+2066]c"),  # hazard 37
        ("\x00\x1b\x9f\ud800\uffff", "[U+0000][U+001B][U+009F][U+D800][U+FFFF]"),
        ("a\r\nb\rc", "a\r\nb[U+000D]c"),
    ],
    ids=["plain", "bidirectional", "control", "carriage return"],
)
def test_controls_are_made_visible(text: str, output: str) -> None:
    assert printable(text) == output


@given(st.text())
def test_what_is_printable_stays_as_it_is_and_all_that_is_shown_is(text: str) -> None:
    assert is_printable(text) == (printable(text) == text)
    assert is_printable(printable(text))
    printable(text).encode("utf-8")


def test_a_long_text_is_cut_with_a_count() -> None:
    assert clip("x" * 5, 5) == "xxxxx"
    assert clip("x" * 1_705, 5) == "xxxxx… (1,700 more characters)"
