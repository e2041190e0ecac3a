"""What certifies an answer: retrieved text alone, asked once a spelling, and nothing that is not a certificate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Certificate, Passage
from eldgr_dspy.errors import CertificateError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Repair
from eldgr_dspy.rule.evidence import CertifyingEvidence
from eldgr_dspy.rule.own_certificates import own_certificate
from eldgr_dspy.rule.questions import Question, Settings
from tests.refusing import refusal

CAPITAL, QUOTE = "Doha is the capital.", "It is said: Doha"
QUESTION = Question(
    "Which is the capital?", "retrieval", ("Doha", "doha.", None, "Dubai", "Dubai"),
    (QUOTE, "It is Doha", "None", CAPITAL, "Dubai"),
    (Passage("", CAPITAL), Passage("", f" {QUOTE}\n"), Passage("It is said: Doha", ""), Passage("", "Dubai")),
)  # fmt: skip
BLANK = Passage("", "")


class Says(ShortText):
    """Short text whose evidence is what it was made with."""

    def __init__(self, evidence: Any) -> None:
        self.result = evidence

    def evidence(self, passages: Sequence[Passage], policy: Any) -> Any:
        return self.result


class Answering:
    """Evidence that says one thing of every answer, and counts how often."""

    def __init__(self, certificate: Any) -> None:
        self.certificate, self.calls = certificate, list[tuple[str | None, str]]()

    def certify(self, answer: str | None, question: str = "") -> Any:
        self.calls.append((answer, question))
        return self.certificate


def evidence_of(question: Question, by: Any = "folded", kind: ShortText | None = None) -> CertifyingEvidence:
    kind = kind or ShortText()
    return CertifyingEvidence(question, kind, kind.grouping(question.answers), by)


def test_a_passage_that_only_repeats_a_candidate_is_no_evidence_for_its_class_alone() -> None:
    result = evidence_of(QUESTION)  # Not so where the text is the answer itself, or where the candidate does not vote.
    whole = QUESTION.passages
    assert result.own_texts == {"doha": {1, 2}, "dubai": {0}}
    assert result.passages_for("doha") == (whole[0], BLANK, BLANK, whole[3])
    assert result.passages_for("dubai") == (BLANK, *whole[1:])
    assert result.passages_for("oslo") == result.passages_for(None) == whole
    own = replace(
        QUESTION,
        passages=(Passage("Qatar", CAPITAL), Passage("It is", "Doha")),
        texts=("", "It is\nDoha", "", CAPITAL, ""),
    )
    assert evidence_of(own).own_texts == {"doha": {1}, "dubai": {0}}
    copies = ("It\tis\r\nX\x0b\x0c  ", "**It is** X.", "It is X. \n")
    for copy, is_copy in (*((copy, True) for copy in copies), ("It is", False), ("It is \ud800", False)):
        question = replace(QUESTION, passages=(Passage("", copy),), texts=("It is  X", "", "", "", ""))
        assert evidence_of(question).own_texts == ({"doha": {0}} if is_copy else {})
    assert evidence_of(replace(QUESTION, passages=(BLANK,), texts=("",) * 5)).own_texts == {"doha": {0}, "dubai": {0}}
    assert evidence_of(replace(QUESTION, texts=())).own_texts == {}


def test_a_spelling_is_certified_once_also_by_a_function_of_ones_own_or_a_consulted_one() -> None:
    answering = Answering(Certificate(True, "so"))
    result = evidence_of(QUESTION, kind=Says(answering))
    structure = Structure(["Doha"])
    for answer in ("Oslo", "Oslo", structure, str(structure), "Oslo"):
        assert result.certify(answer, "oslo") == Certificate(True, "so")
    assert answering.calls == [(answer, QUESTION.text) for answer in ("Oslo", structure, str(structure))]
    answering = Answering(None)
    result = evidence_of(QUESTION, own_certificate(lambda _, evidence: bool(evidence)), Says(answering))
    assert (result.is_consulted, result.certify("Oslo", "oslo").certified, answering.calls) == (False, True, [])
    assert not evidence_of(QUESTION).is_consulted
    result = evidence_of(QUESTION, own_certificate(on_request))
    result.supply("doha", Certificate(True, "so"))
    assert result.is_consulted
    assert result.certify("DOHA", "doha") == Certificate(True, "so")
    assert result.certify(" ", None) == Certificate(False, "empty answer")
    assert refusal(lambda: result.certify("x" * 99, "x"), CertificateError) == (
        f"The certificate {__name__}:on_request must be asked about {'x' * 99!r:.60} before a rule is: drive the rule "
        "that `eldgr_dspy.rule.certifying.certifying` returns."
    )


def test_a_consulted_certificate_is_asked_once_a_class_and_about_a_repair_of_a_new_one() -> None:
    settings = Settings(certificate=own_certificate(on_request))
    case = Case(QUESTION, settings)
    assert case.to_certify() == ("Doha", "Dubai")
    replies = Repair("Oslo"), Repair("DOHA"), Repair(" "), Repair(""), Abstention("no")
    assert [case.to_certify(reply) for reply in replies] == [("Oslo",), (), (), (), ()]
    assert Case(replace(QUESTION, task="arithmetic"), settings).to_certify() == ()
    for answer in ("Oslo", " "):
        case.supply(answer, Certificate(True, "so"))
    assert [case.certified(answer) for answer in ("OSLO", " ")] == [True, False]
    assert case.passages_for("doha") == evidence_of(QUESTION).passages_for("doha")
    assert Case(replace(QUESTION, answers=("Dubai",) * 5), settings).consensus == "Dubai"  # nobody was asked


@pytest.mark.parametrize("reply", [True, Certificate("yes", "so"), Certificate(True, "so", "here")])  # type: ignore[arg-type]
def test_what_is_not_a_certificate_certifies_nothing(reply: Any) -> None:
    result = evidence_of(QUESTION, kind=Says(Answering(reply)))
    assert refusal(lambda: result.certify("x" * 99, None), CertificateError) == (
        f"certify({'x' * 99!r:.60}) of what short.evidence(passages, policy) returns must be a Certificate of "
        f"True, False or None, with a reason; got {reply!r:.60}."
    )


@pytest.mark.parametrize("evidence", [None, 7, ["a passage"] * 20])
def test_what_cannot_certify_is_no_evidence(evidence: Any) -> None:
    assert refusal(lambda: evidence_of(QUESTION, kind=Says(evidence)), CertificateError) == (
        f"short.evidence(passages, policy) must return an object with certify(answer, question); got {evidence!r:.60}."
    )


async def on_request(answer: str, evidence: Any) -> bool:
    return bool(evidence)
