"""A judge that plans checks from the question, then applies them to each candidate, in the style of SWIRL.

Source: Lu et al. 2025, "SWIRL" (arXiv 2508.20018): one role plans (Navigator) and another acts on the plan
(Interactor). Checks and their score are ours; `docs/reference/selectors.md` has what is lost.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import brief
from eldgr_dspy.programs.judges.frames import RepeatedCalls, Rounds, about_each, abstain, preferring, require_read
from eldgr_dspy.programs.lms.fencing import restore
from eldgr_dspy.programs.lms.one_call import OneCall, Request
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.signatures import CheckCandidate, PlanChecks

_MOST = 20


class PlanThenCheck(RepeatedCalls):
    """Prefers the candidate that passes the largest share of planned checks and agrees with itself.

        selector.judge = PlanThenCheck()

    One call plans checks from the question, before any candidate is seen. One call for each distinct candidate says
    which checks it passes, and whether its reasoning leads to its answer. The score is the share of checks passed, or 0
    if the reasoning leads elsewhere; ties are settled by `preferring`. Blank checks are dropped. With no check, more
    than 20, or a candidate without one verdict a check, it abstains.

    Attributes:
        navigator: (question) -> checks.
        interactor: (question, evidence, checks, candidate) -> passed, consistent, check_rationale.
    """

    facts: Mapping[str, bool] = {"gold_in_training": False, "logprobs": False, "positioned": True}

    def __init__(self) -> None:
        super().__init__()
        self.navigator: dspy.Module = OneCall(PlanChecks)
        self.interactor: dspy.Module = OneCall(CheckCandidate)

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Plan, then ask about each distinct candidate; the verdict has the `checks` as well."""
        plan = yield [Request(self.navigator, {"question": question})]
        require_read(plan)
        checks = _checks_of(plan[0].content)
        if isinstance(checks, Abstention):
            return abstain(checks)
        about = {"question": question, "evidence": evidence, "checks": checks}
        replies = yield from about_each(candidates, lambda one: [Request(self.interactor, {**about, "candidate": one})])
        return preferring(
            [_share(content, len(checks)) for (content,) in replies],
            candidates,
            lambda index: replies[index][0].get("check_rationale"),
            checks=checks,
        )

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return one for the plan and one for each distinct text."""
        return 1 + len(set(candidates)) if candidates else 0


def _checks_of(plan: Mapping[str, Any]) -> list[str] | Abstention:
    """Return the checks, without blank ones, or why they cannot be used."""
    if "abstained" in plan:
        return Abstention.from_content(brief(plan["abstained"]), plan)
    checks = plan.get("checks")
    if not isinstance(checks, list) or not all(isinstance(check, str) for check in checks):
        return Abstention("no plan: checks are not a list of texts", "invalid")
    plain = [restore(check) for check in checks if check.strip()]
    if not 0 < len(plain) <= _MOST:
        return Abstention(f"no plan: {len(plain)} checks, not 1 to {_MOST}", "invalid")
    return plain


def _share(content: Mapping[str, Any], n: int) -> float | Abstention:
    """Return the share of n checks that are passed, 0 if the candidate is not consistent, or why there is no score."""
    if "abstained" in content:
        return Abstention.from_content(brief(content["abstained"]), content)
    passed, consistent = content.get("passed"), content.get("consistent")
    if not (isinstance(passed, list) and isinstance(consistent, bool) and all(type(one) is bool for one in passed)):
        return Abstention("passed and consistent are not true or false", "invalid")
    if len(passed) != n:
        return Abstention(f"passed has {len(passed)} of {n} checks", "invalid")
    return sum(passed) / n * consistent
