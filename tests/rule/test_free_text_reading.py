"""What free text reads by rule: hard keys, claims of an answer, and windows of passages."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.entailment.claims import claims_of, sentence_spans, token_count, windows_of
from eldgr_dspy.answer_types.entailment.hard_keys import hard_keys
from eldgr_dspy.certificates import Passage

TEXTS = st.text(st.sampled_from("Aab5 .?!\n-,9é多。'$%"), max_size=80)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Ada paid $1,000 on 3 May 1976.", {"1000$", "3", "month 5", "1976"}),
        ("It is \u22125 °C, at 5 km/h.", {"-5c", "5km"}),
        ("12.5 per cent of 3 million dollars", {"25/2%", "3000000$"}),
        ("twenty-one days, ٣ hours", {"21d", "3h"}),
        ("You may march in May.", set()),
        ("She came in 1900. Minutes later it was 5.", {"1900", "5"}),
        ("One of the best", set()),
        ("9" * 60, {"9" * 60}),
    ],
)
def test_numbers_are_read_with_their_units(text: str, numbers: set[str]) -> None:
    assert hard_keys(text).numbers == numbers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("According to the passage, Doha is it.", {"doha"}),
        ("Paul is a nurse.", {"paul"}),
        ("The U.S. base of Qatar's army; an iPhone", {"us", "qatar", "iphone"}),
        ("Doha", {"doha"}),
        ("In May it rains. She knows.", set()),
        ("卡塔尔的首都是多哈。", set()),
    ],
)
def test_names_have_a_capital_that_the_sentence_did_not_give_them(text: str, names: set[str]) -> None:
    assert hard_keys(text).names == names


@pytest.mark.parametrize(
    ("text", "moods"),
    [
        ("It isn't safe.", {"negated"}),
        ("Perhaps it is never safe.", {"negated", "possible"}),
        ("On 3 May 1976 it must be shown.", {"required"}),
        ("It may be. It was knotted.", {"possible"}),
        ("It is safe.", set()),
    ],
)
def test_negation_and_modality_are_moods(text: str, moods: set[str]) -> None:
    assert hard_keys(text).moods == moods


@given(TEXTS, TEXTS, TEXTS)
def test_hard_keys_agree_both_ways_or_not_at_all(one: str, other: str, question: str) -> None:
    first, second, asked = map(hard_keys, (one, other, question))
    assert first.agree(second, asked) is second.agree(first, asked)
    assert first.agree(first, asked)


@given(TEXTS, TEXTS)
def test_no_letter_and_no_digit_of_an_answer_is_left_out_of_its_claims(answer: str, question: str) -> None:
    spans = sentence_spans(answer)
    assert "".join(filter(str.isalnum, answer)) == "".join(
        filter(str.isalnum, "".join(answer[start:end] for start, end in spans))
    )
    claims = claims_of(answer, question)
    assert len(claims) == len(spans)
    assert all(answer[start:end].strip() in claim.hypothesis for (start, end), claim in zip(spans, claims, strict=True))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), st.integers(8, 40))
@example([("", "55\u591a555555")], 8)  # whose cut leaves out what lies between two parts
def test_windows_fit_and_no_sentence_that_fits_is_cut(given_passages: list[tuple[str, str]], tokens: int) -> None:
    passages = [Passage(title, text) for title, text in given_passages]
    windows = [*windows_of(passages, tokens)]
    assert all(token_count(window.premise) <= tokens for window in windows)
    assert len({window.premise for window in windows}) == len(windows)
    for passage in passages:
        room = tokens - token_count(passage.title) if 4 * token_count(passage.title) <= tokens else tokens
        spans = sentence_spans(passage.text)
        for (start, _), (_, end) in zip(spans, [*spans[1:], spans[-1]] if spans else [], strict=True):
            two = sum(token_count(passage.text[a:b]) for a, b in spans if start <= a < end)
            if two <= room:
                assert any(passage.text[start:end] in window.premise for window in windows)


def test_a_sentence_longer_than_a_window_is_cut_into_parts_that_overlap_by_half() -> None:
    text = " ".join(map(str, range(10, 40)))
    windows = [*windows_of([Passage("", text)], 8)]
    assert [window.premise.split()[0] for window in windows[:3]] == ["10", "12", "14"]
    assert windows[-1].premise.endswith("39")


def test_a_title_is_read_before_each_window_unless_it_is_long() -> None:
    assert [window.premise for window in windows_of([Passage("Oslo", "Ada lives.")], 40)] == ["Oslo\nAda lives."]
    assert [window.premise for window in windows_of([Passage("Oslo " * 20, "Ada lives.")], 40)] == ["Ada lives."]
    assert [window.premise for window in windows_of([Passage("Ada lives in Oslo", " ")], 40)] == ["Ada lives in Oslo"]
