"""The evidence of one question as it certifies answers: by a policy, by a user's function, or as somebody has said.

Only retrieved text is evidence: a passage that repeats a candidate's own text does not certify that candidate's answer.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from eldgr_dspy.answer_types.base import AnswerType, Certifying, Grouping
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Certificate, Passage, Witness
from eldgr_dspy.errors import CertificateError
from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.rule.own_certificates import EMPTY, OwnCertificate, OwnEvidence, is_certificate
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import Policy


class CertifyingEvidence:
    """The evidence of a question. Each spelling of an answer is certified at most once."""

    def __init__(self, question: Question, kind: AnswerType, grouping: Grouping, by: Policy | OwnCertificate) -> None:
        self._question, self._type, self._grouping = question, kind, grouping
        self._by: Policy | OwnCertificate = by
        self.is_consulted = isinstance(by, OwnCertificate) and by.consulted
        self._whole = self._of(question.passages)
        self._certificates: dict[tuple[str | None, bool], Certificate] = {}
        self._replies: dict[str, Certificate] = {}

    def certify(self, answer: str | None, key: str | None) -> Certificate:
        """Return the certificate of a spelling, whose class is given."""
        if self.is_consulted:
            if key is None:
                return EMPTY
            if key not in self._replies:
                raise CertificateError(
                    f"The certificate {self._by} must be asked about {answer!r:.60} before a rule is: drive the rule "
                    "that `eldgr_dspy.rule.certifying.certifying` returns."
                )
            return self._replies[key]
        pair = answer, isinstance(answer, Structure)  # a list is not the text that spells it, though they are equal
        if pair not in self._certificates:
            certificate: object = self._apart_from(key).certify(answer, self._question.text)
            if not (is_certificate(certificate) and isinstance(certificate.witness, Witness | None)):
                raise CertificateError(
                    f"certify({answer!r:.60}) of what {self._type.name}.evidence(passages, policy) returns must be a "
                    f"Certificate of True, False or None, with a reason; got {certificate!r:.60}."
                )
            self._certificates[pair] = certificate
        return self._certificates[pair]

    def supply(self, key: str, certificate: Certificate) -> None:
        """Take the certificate of a class from a consulted certificate."""
        self._replies[key] = certificate

    def passages_for(self, key: str | None) -> tuple[Passage, ...]:
        """Return the passages that may certify a class: those that only repeat one of its candidates are blank."""
        return self._apart_from(key).passages

    @cached_property
    def own_texts(self) -> Mapping[str | None, frozenset[int]]:
        """By class, the passages that only repeat a candidate of it; they still certify other answers."""
        own: dict[str | None, frozenset[int]] = {}
        texts: dict[bytes, set[str]] = {}
        for text, class_ in zip(self._question.texts, self._grouping.classes, strict=False):
            if class_ is not None:
                texts.setdefault(_letters(text), set()).add(class_.key)
        for index, passage in enumerate(self._question.passages if texts else ()):
            for form in (passage.text, show_passage(passage.title, passage.text)):
                keys = texts.get(_letters(form), set())
                class_of_form = self._grouping.class_of(form.strip()) if keys else None
                for key in keys - {class_of_form and class_of_form.key}:
                    own[key] = own.get(key, frozenset()) | {index}
        return own

    def _apart_from(self, key: str | None) -> Certifying:
        apart = self.own_texts.get(key)
        if not apart:
            return self._whole
        passages = (Passage("", "") if i in apart else p for i, p in enumerate(self._question.passages))
        return self._of(tuple(passages))

    def _of(self, passages: Sequence[Passage]) -> Certifying:
        by: Policy | OwnCertificate = self._by
        evidence = OwnEvidence(passages, by) if isinstance(by, OwnCertificate) else self._type.evidence(passages, by)
        if not callable(getattr(evidence, "certify", None)):
            raise CertificateError(
                f"{self._type.name}.evidence(passages, policy) must return an object with certify(answer, question); "
                f"got {evidence!r:.60}."
            )
        return evidence


def _letters(text: str) -> bytes:
    """A text without what a copy may differ in: white space, Markdown's stars and final stops."""
    return text.encode(errors="surrogatepass").translate(None, b" \t\n\r\x0b\x0c*").rstrip(b".")
