"""Where a word or a number begins and ends, so that no part of one is an occurrence."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.matching.wholes import JOINTS, in_word, whole
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.reading import read
from eldgr_dspy.text.sentence_ends import sentence_ends
from eldgr_dspy.words import POLICIES, Policy
from tests.certificate_cases import ANSWERS, DENSE, value, witness_of


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("42", "in 1942"), ("๔๒", "ใน๑๙๔๒"), ("໔໒", "໑໙໔໒"), ("៤២", "១៩៤២"), ("၄၂", "၁၉၄၂"),  # hazard 29
        ("二", "十二"), ("三十", "三十二年"),  # hazard 29
        ("art", "the party"), ("7", "in 1976"), ("March 3", "on March 30"), ("foo", "foo_bar"),
        ("1", "paid 1,042.50"), ("50", "paid 1,042.50"), (",042", "paid 1,042.50"), ("3", "about 3.14"),
        ("3.", "about 3.14"), ("14", "about 3.14"), ("5", "about .5"), ("5", "about -.5"), ("5", "(-5)"), ("5", "-5"),
        ("5", "lost -$5 there"), ("$5", "lost -$5 there"), ("-5", "pages 3-5"), ("1", "about 1/2 of it"),
        ("2", "about 1\u20442 of it"), ("102", "10² m"), ("10", "10⁻⁵ m"), ("11/2", "1½ m"), ("e", "cafe\u0301 noir"),
        ("cafe", "cafe\u0301 noir"), ("con", "con\u00adtract"), ("bar", "foo\u200bbar"), ("ก", "ก\u0e34น"),
        ("-US$5", "the post-US$5 era"), ("5", "3÷5 of it"), ("5", "3\u22155 of it"),
        ("042", "paid 1,042.50"), ("000", "5 000 000 men"), ("5", "5 000 000 men"),  # hazard 30
        ("5 000", "5 000 000 men"), ("000", "5\u00a0000 men"), ("000", "5\u2009000 men"),  # hazard 30
        ("5", "it was -5 there"), ("5", "lost -US$5 there"), ("$5", "lost -US$5 there"),  # hazard 12
        ("US$5", "lost -US$5 there"), ("5", "lost -\\$5 there"),  # hazard 12
        ("5", "it cost $5."), ("$5", "it cost US$5."),  # hazard 18
        ("5", "it was \u22125 there"), ("5", "it was \u2212 5 there"), ("5", "\u2212 5 there"),  # hazard 20
        ("5", "it was \u2212\u00a05 there"), ("$5", "it was \u2212 $5 there"),  # hazard 20
        ("10", "10² m"), ("10", "10^2 m"), ("2", "10^2 m"), ("2", "10^-2 m"), ("-2", "10^-2 m"),  # hazard 22
        ("x", "n^x of it"),  # hazard 22
        ("1", "1½ m"), ("3", "3 ½ m"), ("½", "3 ½ m"), ("3", "3 1/2 m"), ("3", "3\t1/2 m"),  # hazard 23
        ("½", "it was -½ there"), ("½", "lost -$½ there"),  # hazards 12, 23
        ("½", "it was − ½ there"),  # hazards 12, 20, 23
        ("½", "½% of it"), ("½", "½ % of it"),  # hazards 17, 23
        ("art", "p\u200eart"), ("art", "p" + "\u200f" * 30 + "art"),  # hazard 35
        ("art", "p\u202eart"),  # hazard 37
        ("42", "19\u200e42"), ("42", "19\u061c42"), ("42", "19\u206442"),  # hazards 29, 35
        ("5", "5e-3 m"), ("3", "5e-3 m"), ("3", "5E-3 m"), ("-3", "5e-3 m"), ("3", "5e+3 m"),  # hazard 19
        ("5", "5% of it"), ("5", "5\u2030 of it"), ("5", "5  % of it"), ("5", "5\\% of it"),  # hazard 17
        ("5", "5 \\% of it"), ("5", "5 \u2030 of it"), ("5", "5 \uff05 of it"), ("5", "5 \ufe6a of it"),  # hazard 17
        ("5", "5 \u066a of it"), ("3.5", "3.5 % of it"),  # hazard 17
        ("5", "5 % of it"), ("5", "5\u00a0% of it"), ("5", "5\u202f% of it"),  # hazards 17, 29
        ("2", "1 / 2 of it"), ("1", "1/ 2 of it"),  # hazard 14
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["token", "folded"])
def test_part_of_a_word_or_number_is_not_an_occurrence(answer: str, text: str, policy: Policy) -> None:
    assert value(answer, text, policy=policy) is False


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("3", "there were 3."), ("1999", "Founded in 1999. % of voters: 5"), ("5", "printf 5 %d"),
        ("1989", "the 1989 / 1990 season"), ("17 May 1999", "from 17 May 1999 / 18 May 1999"),
        ("3", "there were 3, or so"), ("1945", "the war of 1939-1945"), ("1939", "the war of 1939\u20131945"),
        ("1939", "the war of 1939 - 1945"), ("2004", "(2004)"), ("$5", "it cost $5."), ("US$5", "it cost US$5."),
        (".5", "about 0.5"), ("-5", "it was -5 there"), (".5", "about .5 of it"), ("1,042.50", "paid 1,042.50."),
        ("10²", "10² m"), ("York", "a New York-based band"), ("Neill", "O'Neill"), ("C++", "written in C++."),
        ("5", "end of it.5"), ("5", "so--5 of them"), ("5", "f(2)-5"), ("5", "x[2]-5"), ("5", "{2}-5"),
        ("5", "at 20%-5"), ("5", "at 20\u00b0-5"), ("5", "no. 2.-5"), ("-based", "a New York-based band"),
        ("北京", "北京市"), ("Paris", "在Paris。"), ("2020", "2020年"), ("กรุงเทพ", "ในกรุงเทพมหานคร"),
        ("Paris", "\ufeffParis\u200b is"), ("Paris", "\u2067Paris\u2069\u200f, so"), ("๑๙๔๒", "ใน๑๙๔๒"),
        ("十二", "十二月"), ("四", "四川"), ("1999", "in 1999 200 people"), ("200", "in 1999 200 people"),
        ("5 000 000", "5 000 000 men"), ("12", "room 12 3000"), ("10^2", "10^2 m"), ("5e-3", "5e-3 m"),
        ("5%", "5% of it"), ("5", "5 percent"), ("5 %", "5 % of it"), ("5\u00a0%", "5\u00a0% of it"),
        ("5\\%", "5\\% of it"), ("1 / 2", "1 / 2 of it"), ("-\\$5", "lost -\\$5 there"),
        ("-US$5", "lost -US$5 there"), ("US$5", "the post-US$5 era"), ("5", "it was 10 \u2212 5 there"),
        ("1945", "the war of 1939 \u2212 1945"), ("5", "it was - 5 there"), ("3 ½", "3 ½ m"),
        ("-½", "it was -½ there"), ("½", "½ − ½ is nothing"), ("½", "pages 3-½"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["token", "folded"])
def test_a_whole_word_or_number_is_an_occurrence(answer: str, text: str, policy: Policy) -> None:
    assert value(answer, text, policy=policy) is True
    assert value(answer, text, policy="substring") is True


@pytest.mark.parametrize("mark", [*".,/:'^\u00b7\u00f7\u066b\u066c\u2044\u2215\uff0c\uff0e"])
def test_a_mark_that_may_join_two_digits_leaves_neither_number_standing(mark: str) -> None:  # hazard 30
    assert value("3", f"about 3{mark}5 of it", policy="token") is False
    assert value("5", f"about 3{mark}5 of it", policy="token") is False
    assert value(f"3{mark}5", f"about 3{mark}5 of it", policy="token") is True


@pytest.mark.parametrize("mark", [*";!?()|~=_ "])
def test_no_other_mark_joins_two_digits_but_the_low_line(mark: str) -> None:
    assert value("5", f"so 1999{mark}5 of it", policy="token") is (mark != "_")


# The first and the last letter of each block whose writing sets no spaces.
SPACELESS = "กຮကႎកឳ々〆ぁヿㇰㇿ㐀䶿一鿿ꧠꧾꩠꩺ豈龎𛀀𛅧𠀀𪛖"


@pytest.mark.parametrize("letter", SPACELESS)
def test_a_word_may_end_beside_a_letter_of_a_writing_without_spaces(letter: str) -> None:
    assert value(letter, f"a{letter}b", policy="token") is True
    assert value("ab", f"{letter}ab{letter}", policy="token") is True


@pytest.mark.parametrize("letter", [*"éßЖαא가ऀअᄀ"])
def test_no_word_ends_beside_a_letter_of_another_writing(letter: str) -> None:
    assert value("ab", f"{letter}ab", policy="token") is False
    assert value("ab", f"ab{letter}", policy="token") is False


def test_the_search_continues_behind_a_part_of_a_word() -> None:
    assert witness_of("art", "a party for art").start == 12
    assert witness_of("中a", "中ab中a").start == 3
    assert witness_of("art", "a party, art and art").start == 9


def test_an_occurrence_right_behind_a_part_of_a_character_is_found() -> None:
    """The square of four kana ends in one that also follows it."""
    assert value("ト", "㌀") is False
    witness = witness_of("ト", "㌀ト")
    assert (witness.start, witness.end) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "text", "certified"),
    [
        ("k", "kb " * 66_000, False), ("k", "kb " * 66_000 + "k", True), ("a", "a" * 200_000, False),
        ("a" * 1_999, "a" * 200_000, False), ("1,1", "0," + "1," * 100_000, False), ("f", "ﬁ " * 60_000, False),
        ("e", "e\u0301" * 100_000, False), ("5", "-$5 " * 50_000, False), ("5", "5% " * 50_000, False),
        ("5", "5 % " * 50_000, False), ("1", "1\u200e1 " * 20_000, False), ("二", "二" * 50_000, False),
    ],
)  # fmt: skip
def test_long_evidence_is_searched_to_its_end(answer: str, text: str, certified: bool) -> None:  # hazard 45
    assert value(answer, text) is certified


@given(ANSWERS, DENSE)
@example("1", "1,1 1")
@example("k", "中k")
@example("$1", "1$1")
def test_the_search_finds_an_occurrence_wherever_there_is_one(answer: str, text: str) -> None:
    """Every span is tried: of the answer's class, at the edges of words, and so is the whole around it."""
    key, plain = answer_class(answer, "retrieval"), read(text).text
    spans = [
        (start, end)
        for start in range(len(plain))
        for end in range(start + 1, len(plain) + 1)
        if plain[start].isalnum() and plain[end - 1].isalnum() and not in_word(plain, start) and not in_word(plain, end)
    ]
    found = [span for span in spans if answer_class(plain[slice(*whole(plain, *span))], "retrieval") == key]
    crossed = [span for span in found if BIDI_CONTROLS.isdisjoint(text) and not sentence_ends(plain[slice(*span)])]
    if any(map(str.isalnum, answer)) and len(crossed) == len(found):
        assert bool(value(answer, text)) is bool(found)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("answer", ["The A Team", "the The Band", "an A", "The An Other"])
def test_an_article_behind_the_article_at_the_head_belongs_to_the_name(answer: str, policy: Policy) -> None:
    found = certify(answer, [Passage("", f"Ask {answer} about it.")], policy)
    assert found.witness is not None
    assert found.witness.text == answer
    assert certify(answer, [Passage("", f"Ask {answer.split(' ', 1)[1]} about it.")], policy).certified is False


PIECES = (
    *" 0123456789.,/:'^-+eE$€£%°&½²₂⁺<≥±*_\")]({}\\x×kmMBazİıſÉ",
    *("usd ", "eur", " million", "thirty", "five", " and ", "half", " per ", "U.S", "\\times", "\\frac{", "{,}"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("3 ½")
@example("1 / 2")
@example("-usd.5")
@example("5 km per hour")
@example("twenty-five")
@example("x^{-y")
def test_a_text_that_holds_a_joint_passes_the_quick_test_of_its_kind(text: str) -> None:
    for may_hold, joints in JOINTS:
        assert may_hold(text) or not [*joints(text)]
