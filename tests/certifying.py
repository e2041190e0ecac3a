"""What the tests of certificates share: short ways to ask for one, and texts in which answers do occur."""

from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate, Passage, Witness, certify
from eldgr_dspy.words import Policy

# Few letters, so that answers do occur.
DENSE = st.text("ab1,.-/ 中\u0301\u200be^%$๑二½\u200e\u202e", max_size=14)
ANSWERS = st.text("ab1,.- 中๑二$", min_size=1, max_size=4)


def value(answer: str | None, *texts: str, policy: Policy = "folded") -> bool | None:
    return certify(answer, [Passage("", text) for text in texts], policy).certified


def found(certificate: Certificate) -> Witness:
    assert certificate.witness is not None
    return certificate.witness


def witness_of(answer: str, text: str, question: str = "") -> Witness:
    return found(certify(answer, [Passage("", text)], question=question))
