"""Certificates: what they say of an answer, and what the witness says."""

from dataclasses import replace
from hashlib import sha256
from string import printable
from typing import Any

import pytest

from eldgr_dspy.certificates import LONGEST_ANSWER, Certificate, Evidence, Passage, Witness, certify, holds
from eldgr_dspy.matching.occurrences import FUNCTION_WORDS
from eldgr_dspy.text.folding import fold
from eldgr_dspy.words import POLICIES, Policy
from tests.certificate_cases import value, witness_in, witness_of
from tests.refusing import refusal
from tests.rule.keys import cases

LONGEST = "a" * LONGEST_ANSWER
ABSENT, MIX = "does not occur in the evidence", "; mixed script: {!r} has letters that are {}"
LATIN_LIKE = {"а": "Cyrillic", "α": "Greek", "օ": "Armenian", "Ꭺ": "Cherokee"}
UNCERTIFIED: list[tuple[str | None, list[Passage], str]] = [
    *((answer, [Passage("a", "a b")], "empty answer") for answer in (None, "", " \n\t ")),
    ("\u200b\u00ad", [Passage("", "\u200b")], "empty answer"),
    ("?!", [Passage("", "Why ?!")], "the answer has no letter and no digit"),
    *(
        (f"Par{one}is", [Passage("", f"It is Par{one}is.")], "the answer holds a bidirectional control character")
        for one in "\u202a\u202e\u2066\u2069"
    ),
    *(("Paris", passages, "no evidence") for passages in ([], [Passage("", "")], [Passage(" ", "\n")])),
    (f"{LONGEST}a", [Passage("", f"{LONGEST}a")], "the answer is longer than 2,000 characters"),
    *(
        (f"P{letter}ris", [Passage("", "Paris")], ABSENT + MIX.format(f"P{letter}ris", " and ".join(sorted(scripts))))
        for letter, scripts in ((letter, ("Latin", script)) for letter, script in LATIN_LIKE.items())
    ),
    ("Пушкин-Pushkin", [Passage("", "Pushkin")], ABSENT),  # each word is of one script
    ("\U00017000\U00018800a", [Passage("", "a")], ABSENT),  # letters that have no name are of no script
]


@pytest.mark.parametrize(("answer", "passages", "reason"), UNCERTIFIED)
def test_an_uncertified_answer_has_a_reason(  # hazards 28, 35, 36, 37, 43 and 45
    answer: str | None, passages: list[Passage], reason: str
) -> None:
    assert certify(answer, passages) == Certificate(False, reason)
    if reason in ("empty answer", "no evidence") and answer != "\u200b\u00ad":
        assert {certify(answer, passages, policy).reason for policy in POLICIES} == {reason}


def test_yes_or_no_is_inapplicable_and_what_is_short_a_stop_word_or_in_the_question_is_flagged() -> None:
    assert value(LONGEST, LONGEST) is True  # hazard 45
    assert value(f"{LONGEST}a", f"{LONGEST}a", policy="substring") is True
    assert value("no", "Everyone knows", policy="substring") is True  # hazard 31
    assert value("no", "They left", policy="substring") is False
    assert value("No", "Everyone knows", policy="substring") is False
    assert value("art", "the party", policy="substring") is True
    alien: Any = "verbatim"
    assert refusal(lambda: Evidence([], alien)) == ("policy must be one of substring, token, folded; got 'verbatim'.")
    for answer in ["yes", "No", " TRUE.", "false", "ｙｅｓ"]:  # hazard 31
        evidence = [Passage("", f"They said {answer}, no man knows")]
        assert certify(answer, evidence).certified is None
        assert certify(answer, evidence).witness is None
        assert certify(answer, []).certified is None
    assert witness_of("7", "They won 7 cups.").flags == ("short",)  # hazard 28
    assert witness_of("LA", "born in LA").flags == ("short",)
    assert witness_of("Rom", "born in Rom").flags == ()
    assert value("...", "so ... it ended") is False
    assert value("?", "Why ?") is False
    assert witness_of("All", "It is all over").flags == ("stopword",)  # hazard 31
    assert value("all", "the ball") is False
    article = certify("The", [Passage("", "It is the end")])
    assert (article.certified, article.reason.partition(":")[0]) == (False, "does not occur in the evidence as a name")
    text = "Who wrote Dune? Dune was written by Herbert."  # hazard 32
    assert witness_of("dune", text, question="Who wrote Dune?").flags == ("in_question",)
    passages = [Passage("", ""), Passage("Rome? Paris", "")]
    result = certify("Rome? Paris", passages, question="Was it Rome? Paris it was.")
    assert witness_in(result).flags == ()  # a sentence ends within a text, not within a title
    assert witness_of("Herbert", text, question="Who wrote Dune?").flags == ()
    for answer in filter(str.isalnum, printable):
        assert witness_in(certify(answer, [Passage("", answer)], "substring")).flags[:1] == ("short",)
        assert "in_question" not in witness_in(Evidence([Passage("", answer)], "substring").certify(answer)).flags
        assert "in_question" not in witness_in(certify(answer, [Passage("", answer)], "substring")).flags
    # hazard 32
    assert certify("Dune", [Passage("", "A book by Herbert.")], question="Who wrote Dune?").certified is False


def test_a_witness_names_its_place_and_holds_nowhere_else() -> None:
    evidence = Evidence([Passage("", "Paris, Rome and Bonn were asked.")])  # hazard 34
    certificates = [evidence.certify(answer) for answer in ("Paris", "Rome", "Bonn")]
    assert [certificate.certified for certificate in certificates] == [True, True, True]
    assert [witness_in(certificate).text for certificate in certificates] == ["Paris", "Rome", "Bonn"]
    passages = [Passage("Dune", "A book."), Passage("Arrakis", "A planet in Dune."), Passage("", "Dune")]
    certificate = certify(" Dune ", passages)
    assert certificate.reason == "occurs in the evidence as written"
    digest = sha256(b"Dune").hexdigest()
    assert witness_in(certificate) == Witness(0, "title", 0, 4, "Dune", "exact", (), digest)
    assert witness_in(certify("planet", passages)).field == "text"
    passages = [Passage("", "It is Paris.")]  # hazard 42
    witness = witness_of("Paris", "It is Paris.")
    assert holds(witness, passages)
    assert not holds(replace(witness, passage=1), passages)
    assert not holds(replace(witness, passage=-1), passages)
    assert not holds(replace(witness, field="title"), passages)
    assert not holds(replace(witness, start=-6), passages)
    assert not holds(replace(witness, start=witness.start - 1), passages)
    assert not holds(replace(witness, text="", end=witness.start), passages)
    witness = witness_of("Paris", "It is Paris.")  # hazard 44
    assert not holds(witness, [Passage("", "It is Paris!")])
    assert not holds(witness, [Passage("", "It is Parma.")])
    assert not holds(witness, [])
    assert holds(witness, [Passage("Another title", "It is Paris."), Passage("", "more")])
    assert value("Paris", "It is not Paris.") is True  # hazard 33


@pytest.mark.parametrize("invisible", [*"\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u061c\u2064"])
def test_invisible_characters_are_dropped_and_those_of_the_evidence_are_said(invisible: str) -> None:  # hazard 35
    assert witness_of(f"Par{invisible}is", "It is Paris.").level == "exact"
    witness = witness_of("Paris", f"It is Par{invisible}is{invisible}.")
    assert (witness.text, witness.level) == (f"Par{invisible}is", "folded")


# hazards 38, 39 and 40
@pytest.mark.parametrize(("answer", "text", "slice_"), cases("folded witnesses"))
def test_a_folded_witness_is_a_slice_of_the_original(answer: str, text: str, slice_: str) -> None:
    witness = witness_of(answer, text)
    assert (witness.text, witness.level) == (slice_, "folded")
    assert text[witness.start : witness.end] == slice_
    same_case = fold(answer, keep_case=True).text in fold(text, keep_case=True).text
    assert value(answer, text, policy="token") is same_case


@pytest.mark.parametrize("policy", POLICIES)
def test_the_witness_is_the_first_occurrence_and_none_crosses_a_seam(policy: Policy) -> None:
    passages = [Passage("k b", "c d c"), Passage("b", "b k b k"), Passage("", "k b k")]
    first = witness_in(certify("k", passages, policy))
    assert (first.passage, first.field) == (0, "title")
    assert witness_in(certify("c", passages, policy)).start == 0
    assert witness_in(certify("b", passages[1:], policy)).field == "text"
    assert certify("New York", [Passage("", "in New"), Passage("", "York")], policy).certified is False  # hazard 41
    assert certify("New York", [Passage("New", "York")], policy).certified is False


def test_each_field_is_read_once_however_many_answers_are_asked_about_and_not_before() -> None:
    read: list[str] = []

    class Watcher:
        title = ""

        def __init__(self, text: str) -> None:
            self._text = text

        @property
        def text(self) -> str:
            read.append(self._text)
            return self._text

    passages: Any = [Watcher("Paris and Rome"), Watcher("Bonn")]
    evidence = Evidence(passages)
    assert read == []
    assert evidence.certify("Paris").certified and evidence.certify("Rome").certified
    assert read == ["Paris and Rome"]
    assert evidence.certify("Bonn").certified and evidence.certify("Paris").certified
    assert read == ["Paris and Rome", "Bonn"]


@pytest.mark.parametrize("policy", ["token", "folded"])
def test_a_function_word_in_small_letters_is_never_a_name(policy: Any) -> None:
    for word in sorted(FUNCTION_WORDS):
        text = f"The {word} they saw, {word}-like, and ({word}); so {word}."
        assert certify(word, [Passage(text, text)], policy).certified is False, word
    assert certify("US", [Passage("", "They let us go. The US let us go.")], policy).certified is True
