"""The rules decide as Eq. 3 and Eq. 4 say, ask only what matters, and are one screen of text."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import decision
from eldgr_dspy.decision import Choice, Decision, Rule, always, decide, drive, evidence_locked, scalar_judge
from eldgr_dspy.words import Role
from tests.rule.keys import cases

MARKS: Sequence[bool | None] = (True, False, None)


@dataclass
class Table:
    """A case over opaque answers: who is in whose class and who is certified is said outright."""

    m: Any
    marks: dict[Any, bool | None]
    classes: dict[Any, Any]
    pool: tuple[Any, ...] = ()
    task: Any = "retrieval"
    repairable: bool = True

    @property
    def first(self) -> Any:
        return self.pool[0]

    @property
    def consensus(self) -> Any:
        return self.m

    @property
    def contested(self) -> bool:
        return len({self.classes[one] for one in self.pool}) > 1

    @property
    def standings(self) -> list[tuple[Any, int]]:
        votes = Counter(self.classes[one] for one in self.pool)
        earliest = {self.classes[one]: one for one in reversed(self.pool)}
        return [(earliest[class_], n) for class_, n in votes.most_common()]

    def same(self, one: Any, other: Any) -> bool:
        return bool(self.classes[one] == self.classes[other])

    def certified(self, answer: Any) -> bool | None:
        return self.marks[answer]

    def rival(self) -> bool:
        return any(self.marks[one] is True and not self.same(one, self.m) for one in self.pool)

    def preferred(self, reply: Any) -> Any:
        return reply

    stated = repaired = derived = preferred


def eq3(m: bool | None, s: bool | None, r: bool | None) -> str:
    """Eq. 3 with the third value, written down once more from the paper: s and r are None for a silent role as well."""
    if m is not False:
        return "consensus"
    if s is True:
        return "judge"
    return "repair" if r is True else "consensus"


def asked_by(rule: Rule, case: Table, replies: Mapping[Role, Any]) -> tuple[Choice, list[Role]]:
    roles: list[Role] = []

    def ask(role: Role) -> Any:
        roles.append(role)
        return replies[role]

    return drive(rule(case), ask), roles


@pytest.mark.parametrize(("m", "s", "r"), list(itertools.product(MARKS, repeat=3)))
@pytest.mark.parametrize("silent", [(), ("judge",), ("repairer",), ("judge", "repairer")])
def test_the_lazy_rule_the_full_rule_and_the_table_agree_with_eq_3(
    m: bool | None, s: bool | None, r: bool | None, silent: tuple[Role, ...]
) -> None:
    marks = {"m": m, "s": s, "r": r}
    case = Table("m", marks, {"m": 1, "s": 2, "r": 3}, ("m", "s"))
    replies: dict[Role, Any] = {"judge": "s", "repairer": "r"}
    replies.update(dict.fromkeys(silent))
    expected = eq3(m, None if "judge" in silent else s, None if "repairer" in silent else r)
    table = decide("m", replies["judge"], replies["repairer"], marks.__getitem__)
    lazy, roles = asked_by(evidence_locked, case, replies)
    full, every = asked_by(always(evidence_locked, lambda c: ("judge", "repairer") if c is case else ()), case, replies)
    assert (table.branch, table.answer) == tuple(lazy) == tuple(full)
    assert lazy.branch == expected
    assert every == ["judge", "repairer"]
    assert "judge" not in roles or (m is False and s is True)
    assert "repairer" not in roles or (m is False and lazy.branch != "judge")


@pytest.mark.parametrize("marks", list(itertools.product(MARKS, repeat=2)))
def test_an_answer_of_consensus_own_class_never_overrides(marks: tuple[bool | None, bool | None]) -> None:
    """Not even if its own spelling were certified and consensus's were not."""
    case = Table("m", {"m": False, "s": marks[0], "r": marks[1]}, {"m": 1, "s": 1, "r": 1}, ("m", "s"))
    choice, _ = asked_by(evidence_locked, case, {"judge": "s", "repairer": "r"})
    assert choice == ("consensus", "m")


def test_rules_ask_only_whose_reply_could_matter() -> None:
    case = Table("m", {}, {"m": 1, "s": 2}, ("s", "m", "m"))
    assert asked_by(decision.first_candidate, case, {}) == (Choice("first", "s"), [])
    assert asked_by(decision.majority_vote, case, {}) == (Choice("consensus", "m"), [])
    case = Table("m", {"m": False, "r": True}, {"m": 1, "r": 2}, ("m", "m"))
    assert asked_by(scalar_judge, case, {})[1] == []
    assert asked_by(evidence_locked, case, {"repairer": "r"}) == (("repair", "r"), ["repairer"])
    case = Table("m", {"m": False}, {"m": 1}, ("m",), repairable=False)
    assert asked_by(evidence_locked, case, {}) == (("consensus", "m"), [])
    case.task = "arithmetic"
    assert asked_by(evidence_locked, case, {}) == (("consensus", "m"), [])
    marks = {"m": False, "s": None, "t": True, "u": True}
    case = Table("m", marks, {one: one for one in "mstu"}, ("m", "s", "u", "t", "t", "s", "s", "m", "m", "m"))
    assert asked_by(decision.certified_majority, case, {}) == (("certified", "t"), [])
    keep = Choice("consensus", "m")
    case.task = "arithmetic"
    assert asked_by(decision.certified_majority, case, {}) == (keep, [])
    for preference, choice in (("s", Choice("judge", "s")), ("M", keep), (None, keep)):
        case = Table("m", {"m": True, "s": False}, {"m": 1, "M": 1, "s": 2}, ("m", "M", "s"))
        assert asked_by(scalar_judge, case, {"judge": preference}) == (choice, ["judge"])
    tie, close = decision.TiedChoice("judge", "s"), decision.NearChoice("judge", "s")
    for k, pool, mark, choice in [
        (0, "mms", False, keep),
        (1, "mms", False, close),
        (2, "ms", False, tie),
        (2, "ms", True, keep),
    ]:
        case = Table("m", {"m": mark, "s": False}, {"m": 1, "s": 2}, tuple(pool), repairable=False)
        near, roles = asked_by(decision.near(k), case, {"judge": "s"})
        assert (near, type(near), roles) == (choice, type(choice), [] if choice is keep else ["judge"])
    for answer, expected in [("r", ("repair", "r")), ("s", ("consensus", "m")), (None, ("consensus", "m"))]:
        case = Table("m", {"m": True}, {"m": 1, "s": 1, "r": 2}, ("m", "r"), task="arithmetic")
        assert asked_by(evidence_locked, case, {"deriver": answer}) == (expected, ["deriver"])


@pytest.mark.parametrize(("mark", "judge", "repair", "expected", "roles"), cases("locked, then certified"))
def test_certified_majority_follows_where_the_judge_abstains_and_no_repair_is_certified(
    mark: bool, judge: str | None, repair: str | None, expected: list[str], roles: list[str]
) -> None:
    classes = {one: one for one in ("m", "s", "r", None)}
    case = Table("m", {"m": mark, "s": True, "r": True}, classes, ("m", "m", "s"))
    replies: dict[Role, Any] = {"judge": judge, "repairer": repair}
    assert asked_by(decision.locked_then_certified, case, replies) == (tuple(expected), roles)


@pytest.mark.parametrize(("k", "pool", "answer", "expected"), cases("supported by a derivation"))
def test_a_derivation_supports_only_a_candidate_with_enough_votes(
    k: int | None, pool: str, answer: str, expected: str
) -> None:
    case = Table("m", {}, {one: one for one in ("m", "s", "r", "x", None)}, tuple(pool), task="arithmetic")
    choice, roles = asked_by(decision.support(k), case, {"deriver": answer})
    assert " ".join([*roles, *choice]) == expected


@pytest.mark.parametrize("consensus", [None, ""])
def test_an_empty_answer_is_uncertified_and_never_asked_about(consensus: str | None) -> None:
    questions: list[str] = []

    def certified(answer: str) -> bool:
        questions.append(answer)
        return True

    assert decide(consensus, None, "r", certified).branch == "repair"
    assert questions == ["r"]


@pytest.mark.parametrize(("marks", "answer", "branch", "reason"), cases("what ships and why"))
def test_decide_says_what_ships_and_why(marks: tuple[bool | None, ...], answer: str, branch: Any, reason: str) -> None:
    mark = dict(zip("msr", marks, strict=True))
    expected = Decision(answer, branch, reason, mark[answer], consensus="m", repair="r")
    assert decide("m", "s", "r", mark.__getitem__) == expected


@pytest.mark.parametrize("nothing", [None, ""])
def test_where_nobody_has_an_answer_nothing_ships_and_nothing_is_certified(nothing: str | None) -> None:
    expected = Decision(nothing, "consensus", "no_answers", certified=False, consensus=nothing, repair=nothing)
    assert decide(nothing, nothing, nothing, lambda _: True) == expected


def mark_of(answer: str) -> bool | None:
    """The shape of a certificate."""


@given(
    st.text(), st.text() | st.none(), st.text() | st.none(),
    st.functions(like=mark_of, returns=st.sampled_from(MARKS), pure=True),
)  # fmt: skip
def test_an_override_is_always_certified(m: str, s: str | None, r: str | None, certified: Any) -> None:
    result = decide(m, s, r, certified)
    assert isinstance(result, Decision)
    assert result.answer in (m, s, r)
    if result.branch != "consensus":
        assert certified(result.answer) is True
        assert not m or certified(m) is False


def raise_stop(role: Role) -> Any:
    raise StopIteration


def two_questions() -> Generator[str, int, tuple[int, int]]:
    """Something that asks twice, for whom the order matters."""
    first = yield "first"
    second = yield "second"
    return first, second


async def length(question: str) -> int:
    return len(question)


def test_the_drivers_send_each_reply_back_and_raise_what_a_role_raises() -> None:
    assert drive(two_questions(), len) == (5, 6)
    assert asyncio.run(decision.adrive(two_questions(), length)) == (5, 6)
    steps: list[Any] = []

    async def take(step: Any) -> Any:
        steps.append(step())
        return steps[-1]

    assert asyncio.run(decision.adrive(two_questions(), length, take)) == (5, 6)
    assert steps == [(False, "first"), (False, "second"), (True, (5, 6))]
    case = Table("m", {"m": False, "s": True}, {"m": 1, "s": 2}, ("m", "s"))
    with pytest.raises(StopIteration):
        drive(evidence_locked(case), raise_stop)
