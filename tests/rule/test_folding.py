"""Folding: what is made alike, what is kept apart, and the way back to the original characters."""

from unicodedata import category, normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.text.folding import BIDI_CONTROLS, DASHES, INVISIBLE, drop_invisible, fold
from tests.rule.keys import cases

SPITEFUL = (
    "aAeÉß\u0301\u0323İıςΣﬁǅ\u0345²½㎡㏠①ª¨´ʼ\u200b\u00ad\u00a0 \t\n\u2003–−’`“"
    "가\u1100\u1161\u11a8ｶﾞ中ก\u0e34\ud800\ufdfa5."
)
# The bound keeps runs of marks below the length at which a cluster is cut.
TEXTS = st.text(st.sampled_from(SPITEFUL) | st.characters(exclude_categories=()), max_size=30)


# hazards 35, 38, 39 and 40
@pytest.mark.parametrize(("source", "folded"), cases("folded texts"))
def test_what_is_alike_to_a_reader_folds_to_the_same(source: str, folded: str) -> None:
    assert fold(source).text == folded


@pytest.mark.parametrize("text", ["10²", "x₂", "10⁻⁵", "1½", "1⁄2", "①", "5㎡", "2㏠", "5ª", "a¨b", "㊀"])
def test_superscripts_fractions_and_signs_that_hold_a_digit_are_left_alone(text: str) -> None:  # hazards 22, 23
    assert fold(text).text == text


@given(TEXTS)
@example(" \u0301")
@example("´\u1ffd\u1fef")
@example("\u1100\u1161\u11a8")
def test_canonically_equivalent_texts_fold_to_the_same(text: str) -> None:
    assert fold(normalize("NFC", text)).text == fold(normalize("NFD", text)).text == fold(text).text


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text).text).text == fold(text).text


@given(st.text("aZ5'`-. \t\n\x1f", max_size=30))
@example("a  b")
@example(" \n ")
def test_the_fast_path_equals_the_general_path(text: str) -> None:
    """A text of ASCII takes the fast path; the same with one foreign letter behind it does not."""
    assert fold(text + "é").text == fold(text).text + "é"


@given(st.text("abZÉéßİΣσςᾳΐǰﬁⅧＡ５Яжא가𝒜℃ſ", max_size=30))
def test_letters_fold_as_the_compatibility_caseless_form_of_the_whole_text(text: str) -> None:
    assert fold(text).text == normalize("NFKC", normalize("NFKC", text).casefold())


@given(st.text("aAbéÉßΣσςᾳΐﬁ-' ", max_size=30), st.sampled_from(sorted(DASHES)), st.sampled_from("'’‘´`"))
def test_case_dashes_and_quotes_do_not_matter(text: str, dash: str, quote: str) -> None:
    other = text.replace("-", dash).replace("'", quote)
    assert fold(other).text == fold(other.upper()).text == fold(text).text


@given(TEXTS, st.integers(0, 30), st.sampled_from(sorted(INVISIBLE)))
@example(" \u0301", 1, "\u200b")
def test_invisible_characters_do_not_matter(text: str, at: int, invisible: str) -> None:
    assert fold(text[:at] + invisible + text[at:]).text == fold(text).text


@given(TEXTS, st.data())
@example("ﬁ\u200b  a\u0301", None)
@example("a ﬁ \u00a0\u200b b", None)
def test_a_slice_of_the_source_folds_to_its_slice_of_the_folded_text(text: str, data: st.DataObject | None) -> None:
    folded = fold(text)
    size = len(folded.text)
    edges = [(start, end) for start in range(size) for end in range(start + 1, size + 1)]
    if data is not None and edges:
        edges = [data.draw(st.sampled_from(edges)), (0, size)]
    for start, end in edges:
        span = folded.span(start, end)
        assert span is not None or (start, end) != (0, size)
        if span is not None:
            assert fold(text[slice(*span)]).text == folded.text[start:end]


def test_offsets_survive_all_that_folds_and_the_invisible_orders_nothing() -> None:
    folded = fold("a ﬁ")
    assert folded.text == "a fi"
    assert folded.span(2, 4) == (2, 3)
    assert folded.span(2, 3) is None
    assert folded.span(3, 4) is None
    source = "İİ  ß \u00a0 Straße\u00ad in Rom"  # hazard 40
    folded = fold(source)
    start = folded.text.index("strasse")
    span = folded.span(start, start + len("strasse"))
    assert span is not None
    assert source[slice(*span)] == "Straße"
    marks = "\u0301\u0323" * 50_000
    assert len(fold("a" + marks).text) > 90_000
    assert {category(character) for character in INVISIBLE | BIDI_CONTROLS} == {"Cf"}  # hazards 35, 37
    assert INVISIBLE.isdisjoint(BIDI_CONTROLS)
    assert drop_invisible("Par\u200b\u200eis\u202e") == "Paris\u202e" == fold("Paris\u202e").source
