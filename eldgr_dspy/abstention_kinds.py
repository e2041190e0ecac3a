"""The kinds of reasons why a role abstained or its call failed, and the one place that reads a kind from a text.

A failed call is of the kind of its error, such as `LMTimeoutError`. An abstention is of one of the kinds below.
Journals and decisions state the reason alone, and a module in a role may give any, so an `Abstention` without a kind
has the one that its reason states. Nothing else looks at the words of a reason.
"""

import re

KINDS = (
    "unreadable",
    "invalid",
    "cut off",
    "withheld",
    "several answers",
    "prompt too long",
    "inconsistent",
    "not applicable",
    "nothing to say",
)
"""Kinds of abstention: a reply that is not exactly the expected JSON; an invalid value; a reply that ended at its limit
of tokens, or was stopped by a filter; several replies instead of one; a prompt beyond the model's window; orders that
prefer different answers; a pool that lacks what a judge needs; and a reason that the role states itself."""

FAILED = "failed: "
"""The prefix of a role's reason in a decision if its call failed, which is not an abstention."""

INAPPLICABLE = "not applicable: "
"""The prefix of the reason of a judge to which a pool does not apply."""

DECLARED = KINDS[-3:]
"""The kinds that a role states itself; every other abstention is a reply that cannot be used."""

_BEGINS = {"unparsable": "unreadable", **{kind: kind for kind in KINDS}}
_INVALID = re.compile(
    "(?:preferred|repaired_answer|repair_passage|derived_answer|judge_rationale|consistency_check|expression|value)="
    r"|assessments(?:\[| are not )|derivation_steps are not |a derivation step is |no derived answer"
    r"|sound=|passed has |passed and consistent are not |no plan: "
)
"""The messages of `eldgr_dspy.replies`, of `eldgr_dspy.cases` and of judges for a reply with an invalid value."""
_UNDECIDED = "the final is undecided: "  # of a knockout, before the reason of its last comparison


def kind_of(reason: str) -> str:
    """Return the kind that a reason states: of an abstention, or the error of a failed call."""
    if reason.startswith(FAILED):
        return reason.removeprefix(FAILED).partition(":")[0]
    said = reason.removeprefix(_UNDECIDED)
    kind = _BEGINS.get(said.partition(":")[0])
    if kind is not None:
        return kind
    return "invalid" if _INVALID.match(said) else KINDS[-1]
