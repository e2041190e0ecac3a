"""Find the claims of a step: its statements, each to be checked against the evidence separately.

`Claims` is what a channel scorer asks; `rule_claims` finds them by rule. A claim by rule is a slice of the step:
nothing is rewritten, no pronoun resolved, and a sentence that joins two facts without a conjunction stays one claim. A
claim may be false. Linear in the length of the step.
"""

import re
from collections.abc import Callable, Sequence

from eldgr_dspy.channels.blocks import outside
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.steps import StepInContext
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.text.sentence_ends import sentences

StepClaims = tuple[str, ...] | Undefined
"""The claims of one step, in order; empty if it claims nothing, undefined if that could not be determined."""

Claims = Callable[[Sequence[StepInContext]], Sequence[StepClaims]]
"""Finds the claims of each step, in order."""

MOST = 32
"""Claims a step, so that one step can't use up all pairs of a batch."""

_VERB = (
    "am|is|are|was|were|has|have|had|does|do|did|can|could|will|would|may|might|must|should|shall|became|becomes"
    "|costs?|equals?|gives?|gets?|got|makes?|made|means?|needs?|says?|said|sells?|sold|takes?|took|won|wrote|\\w{2,}ed"
)
_SUBJECT = "he|she|it|they|we|there|this|that|these|those|his|her|its|their|the|a|an|each|all|both|so|[A-Z0-9$]\\S*+"
# What is not part of a claim at its ends: white space of any kind, commas and semicolons.
_AROUND = "".join(filter(str.isspace, map(chr, range(0x3001)))) + ",;"
# Before a clause with its own subject and verb.
_CLAUSE = re.compile(
    rf""";\s++ | (?<=\s)(?:while|whereas)\s++(?=\S++\s)
    | ,\s++(?:and|but|so)\s++(?=(?:{_SUBJECT})\s++(?:\S++\s++){{0,3}}?(?:{_VERB})\b)""",
    re.VERBOSE,
)
# Plans, questions and announcements are not claims.
_PLAN = re.compile(
    r"""\W*+(?>(?:(?:first|next|now|then|so|thought\s[0-9]+:|thought:)\W++)*)
    (?: let(?:'s|’s|\sus|\sme)\b | (?:i|we)\s(?:(?:need|have|want)\sto|should|must|will)\b
      | to\s(?:find|solve|answer)\b | search\[ | lookup\[ | finish\[ | action\b )""",
    re.VERBOSE | re.IGNORECASE,
)


def rule_claims(steps: Sequence[StepInContext]) -> list[StepClaims]:
    """Return the claims of each step by rule, from the step alone: see `claims_of`."""
    return [claims_of(step.text) for step in steps]


def claims_of(step: str) -> tuple[str, ...]:
    """Return the sentences of a step, cut at semicolons and before further clauses; each is a slice of the step.

    It leaves out code, LaTeX blocks, questions, plans ("Let's ...", "I need to find ..."), and single words.
    """
    claims: list[str] = []
    for prose in outside(step):
        for sentence in sentences(prose):
            if not sentence.rstrip("\"'”’) ").endswith(("?", "？")) and not _PLAN.match(sentence):
                claims.extend(_clauses(sentence))
    return tuple(claims[:MOST])


def _clauses(sentence: str) -> list[str]:
    """A sentence cut into clauses; a part of less than two words stays with the clause before it."""
    cuts = [cut.span() for cut in _CLAUSE.finditer(sentence)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(sentence)]
    spans: list[tuple[int, int]] = []
    for start, end in zip(starts, ends, strict=True):
        small = len(units(sentence[start:end])) < 2
        spans.append((spans.pop()[0], end) if small and spans else (start, end))
    pieces = (sentence[start:end].strip(_AROUND) for start, end in spans)
    return [piece for piece in pieces if len(units(piece)) > 1]
