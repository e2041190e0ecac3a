"""The reason of a decision: a code that names the case, see `eldgr_dspy.decision.Decision`."""

from eldgr_dspy.decision import Case, Choice, NearChoice, TiedChoice

_PREFERENCE = {NearChoice: "preference_near", TiedChoice: "preference_tied"}


def reason_of(case: Case, choice: Choice, certified: bool | None, *, empty: bool, asked: bool) -> str:
    """Return the reason of a choice, given the certificate of what ships.

    Args:
        case: The question. choice: what the rule returned. certified: the certificate of its answer.
        empty: Whether the pool has no candidate. asked: whether any role was asked.
    """
    if empty:
        return "empty_pool"
    if choice.branch == "first":
        return "first"
    if choice.branch == "certified":
        return "certified_majority"
    if choice.branch == "judge":
        return "preference_certified" if certified else _PREFERENCE.get(type(choice), "preference")
    if choice.branch == "repair":
        return "derivation_checked" if case.task == "arithmetic" else "repair_certified"
    return _of_consensus(case, certified, asked)


def _of_consensus(case: Case, certified: bool | None, asked: bool) -> str:
    if case.consensus is None:
        return "no_answers"
    if case.task == "arithmetic" and certified:
        return "derivation_agrees"
    if certified is not False:
        return "consensus_certified" if certified else "consensus_inapplicable"
    return "default" if case.contested or asked else "homogeneous"
