"""What holds of every certificate, and where a word or a number begins and ends, so that no part is an occurrence."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, exact_match
from eldgr_dspy.certificates import Evidence, Passage, Witness, certify, holds
from eldgr_dspy.matching.occurrences import FUNCTION_WORDS
from eldgr_dspy.matching.wholes import JOINTS, in_word, whole
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.text.reading import read
from eldgr_dspy.text.sentence_ends import sentence_ends
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import POLICIES, Policy
from tests.certificate_cases import ANSWERS, DENSE, NUMERALS, value, witness_of
from tests.rule.keys import cases


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *cases("parts of words and numbers"),
        *cases("occurrences of another class"),
        ("art", "p" + "\u200f" * 30 + "art"),
    ],  # hazards 12, 14, 17, 18, 19, 20, 22, 23, 29, 30, 35 and 37
)
@pytest.mark.parametrize("policy", ["token", "folded"])
def test_part_of_a_word_or_number_is_not_an_occurrence(answer: str, text: str, policy: Policy) -> None:
    assert value(answer, text, policy=policy) is False


@pytest.mark.parametrize(("answer", "text"), cases("whole words and numbers"))
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


def test_the_search_continues_behind_a_part_of_a_word_or_of_a_character() -> None:
    assert witness_of("art", "a party for art").start == 12
    assert witness_of("中a", "中ab中a").start == 3
    assert witness_of("art", "a party, art and art").start == 9
    assert value("ト", "㌀") is False  # The square of four kana ends in one that also follows it.
    witness = witness_of("ト", "㌀ト")
    assert (witness.start, witness.end) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "text", "certified"),
    [
        ("k", "kb " * 30_000, False), ("k", "kb " * 30_000 + "k", True), ("a", "a" * 60_000, False),
        ("a" * 1_999, "a" * 60_000, False), ("1,1", "0," + "1," * 20_000, False), ("f", "ﬁ " * 30_000, False),
        ("e", "e\u0301" * 100_000, False), ("5", "-$5 " * 20_000, False), ("5", "5% " * 20_000, False),
        ("5", "5 % " * 20_000, False), ("1", "1\u200e1 " * 20_000, False), ("二", "二" * 50_000, False),
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
    results = [span for span in spans if answer_class(plain[slice(*whole(plain, *span))], "retrieval") == key]
    rest = [span for span in results if BIDI_CONTROLS.isdisjoint(text) and not sentence_ends(plain[slice(*span)])]
    if any(map(str.isalnum, answer)) and len(rest) == len(results):
        assert bool(value(answer, text)) is bool(results)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("answer", ["The A Team", "the The Band", "an A", "The An Other"])
def test_an_article_behind_the_article_at_the_head_belongs_to_the_name(answer: str, policy: Policy) -> None:
    result = certify(answer, [Passage("", f"Ask {answer} about it.")], policy)
    assert result.witness is not None
    assert result.witness.text == answer
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


SPITEFUL = "aAbß1205 .,-/'$−–’²½ée\u0301\u200b\u00ad\u00a0\n中文ก\u0e34ﬁİΣς_()\ud800\u202e"
TEXTS = st.text(st.sampled_from(SPITEFUL) | st.characters(exclude_categories=()), max_size=30)
PASSAGES = st.lists(st.builds(Passage, DENSE, DENSE), max_size=4)
POLICY = st.sampled_from(POLICIES)


@given(TEXTS, st.lists(st.builds(Passage, TEXTS, TEXTS), max_size=3), POLICY, TEXTS)
@example("\ud800", [Passage("", "\ud800 a")], "substring", "")
def test_no_text_raises_and_witnesses_hold(answer: str, passages: list[Passage], policy: Policy, question: str) -> None:
    certificate = certify(answer, passages, policy, question)
    assert (certificate.witness is not None) is (certificate.certified is True)
    if certificate.witness is not None:
        check_witness(certificate.witness, answer, passages, policy)


@given(ANSWERS, PASSAGES, POLICY)
@example("1", [Passage("", "a\u200b 1")], "folded")
def test_a_witness_of_a_certified_answer_is_that_answer(answer: str, passages: list[Passage], policy: Policy) -> None:
    certificate = certify(answer, passages, policy)
    if certificate.witness is not None:
        check_witness(certificate.witness, answer, passages, policy)


def check_witness(witness: Witness, answer: str, passages: list[Passage], policy: Policy) -> None:
    assert holds(witness, passages)
    assert policy != "substring" or witness.level == "exact"
    own = answer.strip() if policy == "substring" else strip_answer(answer)
    assert (witness.text == own) is (witness.level == "exact")
    if policy != "substring":
        assert answer_class(witness.text, "retrieval") == answer_class(answer, "retrieval")


@given(ANSWERS, PASSAGES, PASSAGES, POLICY)
def test_more_evidence_is_no_worse(answer: str, passages: list[Passage], more: list[Passage], policy: Policy) -> None:
    if certify(answer, passages, policy).certified:
        assert certify(answer, more + passages, policy).certified


@given(ANSWERS, PASSAGES.flatmap(lambda passages: st.tuples(st.just(passages), st.permutations(passages))), POLICY)
def test_order_and_copies_change_nothing(
    answer: str, orders: tuple[list[Passage], list[Passage]], policy: Policy
) -> None:
    passages, other = orders
    assert certify(answer, passages, policy).certified == certify(answer, other + passages, policy).certified


@given(ANSWERS, PASSAGES)
def test_what_stands_as_written_is_certified_by_the_letter_of_the_paper_and_without_its_case(
    answer: str, passages: list[Passage]
) -> None:
    witness = certify(answer, passages, "token").witness
    if witness and witness.level == "exact":
        assert certify(strip_answer(answer), passages, "substring").certified
    if certify(answer, passages, "token").certified:
        assert certify(answer, passages, "folded").certified


@given(NUMERALS, st.data(), st.sampled_from(("token", "folded")), st.sampled_from(("{}", "it was {}, so", "({})")))
def test_no_number_certifies_a_part_of_it_that_is_another(  # hazards 12, 17, 29
    text: str, data: st.DataObject, policy: Policy, frame: str
) -> None:
    """What would vote apart from a number in arithmetic is not an occurrence within it."""
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    whole, other = parse_number(text), parse_number(part)
    if whole is not None and other is not None and whole != other:
        assert value(part, frame.format(text), policy=policy) is False


@pytest.mark.parametrize("policy", ["token", "folded"])
@pytest.mark.parametrize("percent", ["5%", "5 %", "5\u00a0%", "5\u202f%", "5\u2009%", "5\\%", "5 \\%", "5.%", "5  %"])
def test_a_percentage_certifies_no_number_that_votes_apart_from_it(percent: str, policy: Policy) -> None:  # hazard 17
    assert answer_class("5", "retrieval") != answer_class(percent, "retrieval") == answer_class("5%", "retrieval")
    assert value("5", f"Turnout fell to {percent} there.", policy=policy) is False
    assert value("5", f"Turnout fell to {percent} in the 5 districts.", policy=policy) is True
    assert value("5", f"Turnout fell to {percent} there.", policy="substring") is True


VARIANTS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "swapped case": str.swapcase,
    "decomposed": lambda text: normalize("NFD", text),
    "composed": lambda text: normalize("NFC", text),
    "en dash": lambda text: text.replace("-", "\u2013"),
    # Set apart by a space, a minus is a sign and a hyphen is not.
    "minus": lambda text: re.sub(r"-(?! )", "\u2212", text),
    "curly quote": lambda text: text.replace("'", "\u2019"),
    "no-break space": lambda text: text.replace(" ", "\u00a0"),
    "soft hyphen": lambda text: text.replace("a", "a\u00ad"),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
@example(answer="ß", text="a.ß")
@example(answer="a-.5", text="a-.5")
@given(answer=st.text("aéßΣ05-' .", max_size=4), text=st.text("aéßΣ05-' .", max_size=16))
def test_variants_of_answer_or_evidence_do_not_matter(variant: Callable[[str], str], answer: str, text: str) -> None:
    """But for the case of a function word, which tells a name."""
    result = answer_class(answer, "retrieval")
    assume(result is None or result.key not in FUNCTION_WORDS or variant not in (str.upper, str.swapcase))
    plain = value(answer, text)
    assert (
        value(variant(answer), text) == value(answer, variant(text)) == value(variant(answer), variant(text)) == plain
    )


def test_on_real_questions_no_right_answer_is_uncertified(pools_dir: Path) -> None:
    """On hotpotqa-reflexion12, of 336 uncertified answers none is right; 56 more say yes or no."""
    counts: Counter[tuple[bool | None, bool]] = Counter()
    with gzip.open(pools_dir / "hotpotqa-reflexion12.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        for row in map(json.loads, lines):
            evidence = Evidence([Passage(passage["title"], passage["text"]) for passage in row["evidence"]])
            answers = [candidate["answer"] for candidate in row["candidates"] if candidate["answer"] is not None]
            counts.update((evidence.certify(answer).certified, exact_match(answer, row["gold"])) for answer in answers)
    assert counts == {(True, True): 522, (True, False): 259, (False, False): 336, (None, True): 50, (None, False): 6}
