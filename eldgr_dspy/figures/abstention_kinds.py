"""Why a role said nothing, by kind: a few words for the sentences that a journal has.

A failed call is of the kind of its error, such as `LMTimeoutError`. An abstention is of one of the kinds below.
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
    "nothing to say",
)
"""Kinds of abstention: a reply that is not exactly the JSON asked for; one with a value that it may not have; one that
ended at its limit of tokens, or was ended by a filter; several where one was asked for; a prompt beyond the model's
window; orders that prefer different answers; and whatever a role says of itself."""

FAILED = "failed: "
"""How the reason of a role begins in a decision whose call did not come through; it is no abstention."""

_BEGINS = {
    "unparsable": "unreadable",
    **{kind: kind for kind in KINDS[2:-1]},
}
_INVALID = re.compile(
    "(?:preferred|repaired_answer|repair_passage|derived_answer|judge_rationale|consistency_check|expression|value)="
    r"|assessments(?:\[| are not )|derivation_steps are not |a derivation step is |no derived answer"
)
"""How `eldgr_dspy.replies` and `eldgr_dspy.cases` say that a reply was read and has what it may not have."""
_UNDECIDED = "the final is undecided: "  # of a knockout, before the reason of its last comparison


def kind_of(reason: str) -> str:
    """Return the kind of an abstention, of the reason that the journal gives for it."""
    said = reason.removeprefix(_UNDECIDED)
    kind = _BEGINS.get(said.partition(":")[0])
    if kind is not None:
        return kind
    return "invalid" if _INVALID.match(said) else KINDS[-1]


def error_of(reason: str) -> str:
    """Return the kind of a failed call: the name of its error."""
    return reason.removeprefix(FAILED).partition(":")[0]
