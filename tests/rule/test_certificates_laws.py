"""What holds of every certificate, whatever the answer and the evidence."""

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
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import POLICIES, Policy
from tests.certificate_cases import ANSWERS, DENSE, NUMERALS, value

SPITEFUL = "aAbß1205 .,-/'$−–’²½ée\u0301\u200b\u00ad\u00a0\n中文ก\u0e34ﬁİΣς_()\ud800\u202e"
TEXTS = st.text(st.sampled_from(SPITEFUL) | st.characters(exclude_categories=()), max_size=30)
PASSAGES = st.lists(st.builds(Passage, DENSE, DENSE), max_size=4)
POLICY = st.sampled_from(POLICIES)


@given(TEXTS, st.lists(st.builds(Passage, TEXTS, TEXTS), max_size=3), POLICY, TEXTS)
@example("\ud800", [Passage("", "\ud800 a")], "substring", "")
def test_no_text_raises_and_every_witness_holds(
    answer: str, passages: list[Passage], policy: Policy, question: str
) -> None:
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
    given = answer.strip() if policy == "substring" else strip_answer(answer)
    assert (witness.text == given) is (witness.level == "exact")
    if policy != "substring":
        assert answer_class(witness.text, "retrieval") == answer_class(answer, "retrieval")


@given(ANSWERS, PASSAGES, PASSAGES, POLICY)
def test_more_evidence_never_uncertifies(
    answer: str, passages: list[Passage], more: list[Passage], policy: Policy
) -> None:
    if certify(answer, passages, policy).certified:
        assert certify(answer, more + passages, policy).certified


@given(ANSWERS, PASSAGES.flatmap(lambda passages: st.tuples(st.just(passages), st.permutations(passages))), POLICY)
def test_evidence_order_and_duplicates_do_not_matter(
    answer: str, orders: tuple[list[Passage], list[Passage]], policy: Policy
) -> None:
    passages, permuted = orders
    assert certify(answer, passages, policy).certified == certify(answer, permuted + passages, policy).certified


@given(ANSWERS, PASSAGES)
def test_what_stands_as_written_the_letter_of_the_paper_admits(answer: str, passages: list[Passage]) -> None:
    witness = certify(answer, passages, "token").witness
    if witness and witness.level == "exact":
        assert certify(strip_answer(answer), passages, "substring").certified


@given(ANSWERS, PASSAGES)
def test_what_is_certified_with_its_case_is_certified_without(answer: str, passages: list[Passage]) -> None:
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
def test_spelling_variants_of_answer_or_evidence_do_not_matter(
    variant: Callable[[str], str], answer: str, text: str
) -> None:
    """But for the case of a function word, which tells a name."""
    result = answer_class(answer, "retrieval")
    assume(result is None or result.key not in FUNCTION_WORDS or variant not in (str.upper, str.swapcase))
    plain = value(answer, text)
    assert (
        value(variant(answer), text) == value(answer, variant(text)) == value(variant(answer), variant(text)) == plain
    )


def test_on_real_questions_no_right_answer_is_uncertified(pools_dir: Path) -> None:
    """On hotpotqa-reflexion12, of 336 uncertified answers none is right; 56 more say yes or no."""
    seen: Counter[tuple[bool | None, bool]] = Counter()
    with gzip.open(pools_dir / "hotpotqa-reflexion12.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        for row in map(json.loads, lines):
            evidence = Evidence([Passage(passage["title"], passage["text"]) for passage in row["evidence"]])
            answers = [candidate["answer"] for candidate in row["candidates"] if candidate["answer"] is not None]
            seen.update((evidence.certify(answer).certified, exact_match(answer, row["gold"])) for answer in answers)
    assert seen == {(True, True): 522, (True, False): 259, (False, False): 336, (None, True): 50, (None, False): 6}
