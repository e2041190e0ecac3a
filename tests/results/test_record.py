"""The judge's record says what its run was made with, whatever else the journal has seen."""

from typing import Any

from eldgr_dspy.journal import Consultation
from eldgr_dspy.record import JournalTotals, judges_record
from eldgr_dspy.words import ROLES


def head(kind: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "details": {"of": name}}


def test_pools_and_roles_are_in_the_order_of_the_run_whatever_the_journal_s() -> None:
    summary = {"pools": {name: {"audit": None, "n": 0} for name in "ba"}}
    pools, roles = [head("pool", name) for name in "abc"], [head("role", name) for name in reversed(ROLES)]
    for heads in ([*pools, *roles], [*roles, *pools[::-1]]):
        record = judges_record(summary, heads, JournalTotals([]))
        assert list(record["pools"].items()) == [("b", {"of": "b"}), ("a", {"of": "a"})]
        assert list(record["roles"]) == list(ROLES)
    assert judges_record(summary, [], JournalTotals([]))["pools"] == {}


def test_totals_count_every_attempt_and_are_unknown_where_one_is() -> None:
    said = [
        Consultation("p", "q", "judge", "failed", "TimeoutError: late", calls=1, cost=0.25, prompt_tokens=3),
        Consultation("p", "q", "judge", "abstained", "unparsable: why", calls=2, cost=0.5, attempt=2),
        Consultation("p", "r", "judge", "ok", None, {}, recorded=True, calls=7, cost=7.0),
    ]
    totals = JournalTotals(said)
    counted = {"ok": 0, "abstained": 1, "failed": 1, "recorded": 1, "calls": 3, "cached": 0}
    amounts = {"prompt_tokens": None, "completion_tokens": None, "cost": 0.75}
    assert totals.roles()["judge"] == {**counted, **amounts}
    assert totals.roles()["deriver"]["calls"] == 0
    assert dict(totals.models) == {("judge", None, None): 3}
    assert totals.reasons == {("judge", "failed", "TimeoutError"): 1, ("judge", "abstained", "unparsable"): 1}
