"""The reason of a decision: a code that names the case, see `eldgr_dspy.decision.Decision`."""

from collections.abc import Iterable, Mapping

from eldgr_dspy.decision import Case, Choice, NearChoice, TiedChoice

REASONS: Mapping[str, str] = {
    "empty_pool": "The pool has no candidates; only a `Selector` can be given such a pool.",
    "no_answers": "No candidate has an answer, and no repair was certified.",
    "first": "The first candidate ships.",
    "default": "Nothing replaced the uncertified consensus.",
    "homogeneous": "Nothing replaced the uncertified consensus, all candidates agree, and nobody was asked.",
    "consensus_certified": "Consensus carries a certificate.",
    "consensus_inapplicable": "No certificate applies to consensus, such as a yes or no, or a refusal.",
    "certified_majority": "The certified class with most votes ships.",
    "preference_certified": "The judge's preference ships, with its certificate.",
    "preference": "The judge's preference ships without a certificate, under the rule `judge`.",
    "preference_tied": "The judge's preference ships without one, with as many votes as consensus, under `near(K)`.",
    "preference_near": "The judge's preference ships without one, with up to K votes fewer, under `near(K)`.",
    "repair_certified": "The repairer's span ships.",
    "derivation_checked": "A checked derivation replaces consensus.",
    "derivation_agrees": "A checked derivation says what consensus says.",
}
REFUSAL_NOTE = "the derivation is not accepted: "  # how a note of a decision begins
_PREFERENCE = {NearChoice: "preference_near", TiedChoice: "preference_tied"}


def reason_of(case: Case, choice: Choice, certified: bool | None, *, empty: bool, with_roles: bool) -> str:
    """Return the reason of a choice, given the certificate of what ships, for a pool that may be `empty`."""
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
    return _of_consensus(case, certified, with_roles)


def refusal_of_derivation(notes: Iterable[str]) -> str:
    """Return why a derivation was not accepted, from the notes of a decision. Empty if there is no such note."""
    return next((note.removeprefix(REFUSAL_NOTE) for note in notes if note.startswith(REFUSAL_NOTE)), "")


def _of_consensus(case: Case, certified: bool | None, with_roles: bool) -> str:
    if case.consensus is None:
        return "no_answers"
    if case.task == "arithmetic" and certified:
        return "derivation_agrees"
    if certified is not False:
        return "consensus_certified" if certified else "consensus_inapplicable"
    return "default" if case.contested or with_roles else "homogeneous"
