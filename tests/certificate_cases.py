"""What the tests of certificates share: short ways to ask for one, and texts in which answers do occur."""

from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate, Passage, Witness, certify
from eldgr_dspy.words import Policy

# Few letters, so that answers do occur; no word of theirs holds a sentence together.
DENSE = st.text("kb1,.-/ 中\u0301\u200be^%$๑二½\u200e\u202e", max_size=14)
ANSWERS = st.text("kb1,.- 中๑二$", min_size=1, max_size=4)

SPACE = st.sampled_from(("", "", " ", "\u00a0", "\u202f", "\t"))
NUMERALS = st.tuples(
    st.sampled_from(("", "", "-", "+", "\u2212")), st.sampled_from(("", "", "$", "€", "\\$")),
    st.sampled_from(("", "", "-")), SPACE, st.sampled_from(("1", "5", "12", "500", "1,000", "")), SPACE,
    st.sampled_from(("", "", ".", "/", "e", "e-", "½", "1/")), SPACE, st.sampled_from(("", "2", "05", "½")), SPACE,
    st.sampled_from(("", "", "%", "\\%", "%.", "$", "€", ".")),
).map(lambda parts: "".join(parts).strip())  # fmt: skip
"""Numbers in most spellings that are read, with every white space in every place; many of them are near misses."""


def value(answer: str | None, *texts: str, policy: Policy = "folded") -> bool | None:
    return certify(answer, [Passage("", text) for text in texts], policy).certified


def witness_in(certificate: Certificate) -> Witness:
    assert certificate.witness is not None
    return certificate.witness


def witness_of(answer: str, text: str, question: str = "") -> Witness:
    return witness_in(certify(answer, [Passage("", text)], question=question))
