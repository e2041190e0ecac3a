"""The judge's record: what a deployment should state about a judge that decides (the paper's section on deployment).

It has the default that the judge must beat, the certificate that it needs, and how often it overrode, by outcome and by
certificate; also the models that were asked and that answered, unreadable replies and cost. It is written as
`record.json`; `eldgr_dspy.figures.results.Record` is its type.
"""

import hashlib
import json
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eldgr_dspy.figures.results.audit_results import Decisions, RoleSums
from eldgr_dspy.figures.results.record import (
    Fingerprints,
    Model,
    OverrideRates,
    Record,
    Share,
    Silence,
)
from eldgr_dspy.figures.results.summary import PoolFigures, Summary
from eldgr_dspy.rule.consultations import Consultation, Outcome
from eldgr_dspy.rule.named_judges import Asked, in_order
from eldgr_dspy.words import Branch

_Amount = TypeVar("_Amount", int, float)
_Text = TypeVar("_Text", bound=str)
_Key = TypeVar("_Key", bound=Hashable)
_OVERRIDING: tuple[Branch, ...] = ("judge", "repair")

_VERSION = re.compile(r"[-:@_.](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}|\d{3,8}|v\d+(?:[.:]\d+)*)$")
_FEWEST_TOKENS, _LONG = 1 / 8, 1_500
"""Tokens a character that no tokenizer goes below on text, and how long a prompt has to be to be held to that."""


class Questions:
    """Questions of pools: of some pools all, of others those that are added, remembered by eight bytes each."""

    def __init__(self, whole: Collection[str] = ()) -> None:
        """Take the names of the pools of which it has all questions."""
        self._whole = whole
        self._keys = array("q")
        self._is_rising = True

    def add(self, pool: str, question: str) -> None:
        """Remember a question by its id."""
        if pool not in self._whole:
            self._keys.append(hash((pool, question)))
            self._is_rising = False

    def has(self, pool: str, question: str) -> bool:
        """Return whether it has the question with this id."""
        if pool in self._whole:
            return True
        if not self._is_rising:
            np.asarray(self._keys).sort()  # in place
            self._is_rising = True
        key = hash((pool, question))
        place = bisect_left(self._keys, key)
        return place < len(self._keys) and self._keys[place] == key


class _Line(NamedTuple):
    """What the totals need of a line of a journal; `decided` says whether its question was."""

    label: Asked
    outcome: str
    decided: bool
    settled: bool
    reason: tuple[Outcome, str, str] | None
    asked: str | None
    served: str | None
    calls: int
    cached: int
    shortened: bool

    @property
    def kind(self) -> str:
        """The kind of its reason; empty without one."""
        return self.reason[1] if self.reason else ""


class JournalTotals:
    """The totals of a journal's lines: every attempt, whether it succeeded or failed."""

    def __init__(self, consultations: Iterable[Consultation], decided: Questions | None = None) -> None:
        """Add up consultations.

        Args:
            consultations: All lines of a journal.
            decided: The questions that reasons and unreadable replies are counted of; all for None.
        """
        self._lines = Counter[_Line]()
        self._amounts: dict[tuple[Asked, str], Fraction | int | None] = {}  # None where one is not known
        for one in consultations:
            self._lines[_line(one, decided is None or decided.has(one.pool, one.id))] += 1
            if one.calls and not one.recorded:
                for name in ("calls", "prompt_tokens", "completion_tokens", "cost"):
                    amount, before = getattr(one, name), self._amounts.get((one.label, name), 0)
                    exact = amount if amount is None or isinstance(amount, int) else Fraction(amount)
                    self._amounts[one.label, name] = None if exact is None or before is None else before + exact

    def roles(self) -> dict[Asked, RoleSums]:
        """Return for each role how its consultations ended, calls, tokens and dollars (None where any is unknown)."""
        return {role: self._role(role) for role in in_order({line.label for line in self._lines})}

    def _role(self, role: Asked) -> RoleSums:
        outcomes = self._count(lambda line: (line.label, line.outcome))
        cost = self._amounts.get((role, "cost"))
        return {
            "ok": outcomes[role, "ok"],
            "abstained": outcomes[role, "abstained"],
            "failed": outcomes[role, "failed"],
            "recorded": outcomes[role, "recorded"],
            "calls": self._whole(role, "calls") or 0,
            "cached": sum(line.cached * n for line, n in self._lines.items() if line.label == role),
            "prompt_tokens": self._whole(role, "prompt_tokens"),
            "completion_tokens": self._whole(role, "completion_tokens"),
            "cost": None if cost is None else float(cost),
        }

    def _whole(self, role: Asked, name: str) -> int | None:
        amount = self._amounts.get((role, name))
        return None if amount is None else int(amount)

    def _count(self, of: Callable[[_Line], _Key]) -> Counter[_Key]:
        counts = Counter[_Key]()
        for line, n in self._lines.items():
            counts[of(line)] += n
        return counts

    def parse_failures(self) -> dict[Asked, Share]:
        """Return for each role how many of its successful replies could not be read, recorded ones included."""
        through = self._count(lambda line: (line.label, line.decided and line.settled))
        unread = self._count(lambda line: (line.label, line.decided and line.kind == "unreadable"))
        roles = in_order({line.label for line in self._lines if line.decided})
        return {role: share_of(unread[role, True], through[role, True]) for role in roles}

    def models(self) -> list[Model]:
        """Return the models that were asked and that answered, with their calls."""
        calls = Counter[tuple[Asked, str | None, str | None]]()
        for line, n in self._lines.items():
            if line.calls:
                calls[line.label, line.asked, line.served] += line.calls * n
        return [
            {"role": role, "asked": wanted, "served": served, "same": is_same_model(wanted, served), "calls": n}
            for (role, wanted, served), n in sorted(calls.items(), key=str)
        ]

    def silences(self) -> list[Silence]:
        """Return why roles abstained or failed on the questions that were decided."""
        reasons = self._count(lambda line: (line.label, *line.reason) if line.reason and line.decided else None)
        pairs = sorted((reason, n) for reason, n in reasons.items() if reason is not None)
        return [
            {"role": role, "outcome": outcome, "kind": kind, "reason": reason, "consultations": n}
            for (role, outcome, kind, reason), n in pairs
        ]

    def remarks(self) -> list[str]:
        """Return what a reader of the results should know about the models, a sentence each."""
        others = [
            f"The {of['role']} was asked of {of['asked']}, but {of['served']} answered "
            f"({of['calls']} call{'' if of['calls'] == 1 else 's'})."
            for of in self.models()
            if of["same"] is False
        ]
        cut = self._count(lambda line: line.label if line.shortened else "")
        shortened = [
            f"The {role}'s server counted far fewer tokens than {n} of its prompts have: it may have cut them."
            for role, n in sorted(cut.items())
            if role
        ]
        elsewhere = self._count(lambda line: line.decided)[False]
        outside = (
            f"The run directory has seen other questions too: {elsewhere} of its consultations are on none of "
            "these, and are among those whose outcomes, calls, tokens and dollars are added up."
        )
        return others + shortened + [outside] * bool(elsewhere)


def _line(one: Consultation, decided: bool) -> _Line:
    why = one.abstention if one.reason else None
    reason = (one.outcome, why.kind, str(one.reason).split(":")[0][:80]) if why is not None else None
    outcome = "recorded" if one.recorded else one.outcome
    if one.recorded:
        return _Line(one.label, outcome, decided, one.settled, reason, None, None, 0, 0, False)
    models = (one.asked, one.served) if one.calls else (None, None)
    return _Line(one.label, outcome, decided, one.settled, reason, *models, one.calls, one.cached, _was_shortened(one))


def sums_of(roles: Mapping[Asked, RoleSums]) -> RoleSums:
    """Return the consultations of all roles together, every attempt included."""
    sums, callers = roles.values(), [role for role in roles.values() if role["calls"]]
    return {
        "ok": sum(role["ok"] for role in sums),
        "abstained": sum(role["abstained"] for role in sums),
        "failed": sum(role["failed"] for role in sums),
        "recorded": sum(role["recorded"] for role in sums),
        "calls": sum(role["calls"] for role in sums),
        "cached": sum(role["cached"] for role in sums),
        "prompt_tokens": total_of([role["prompt_tokens"] for role in callers]),
        "completion_tokens": total_of([role["completion_tokens"] for role in callers]),
        "cost": total_of([role["cost"] for role in callers]),
    }


def share_of(count: int, of: int) -> Share:
    """Return a count out of a total, and the rate in percent; None if the total is 0."""
    return {"count": count, "of": of, "rate": 100.0 * count / of if of else None}


def total_of(amounts: Sequence[_Amount | None]) -> _Amount | None:
    """Return the sum of amounts, None if one is unknown."""
    numbers = [amount for amount in amounts if amount is not None]
    total: Any = sum(numbers)  # of the kind that the amounts are
    return total if len(numbers) == len(amounts) else None


def _was_shortened(consultation: Consultation) -> bool:
    """Whether a server reports so few tokens for a prompt that it cannot have read all of it."""
    size, tokens = consultation.prompt_characters, consultation.prompt_tokens
    return size is not None and tokens is not None and size >= _LONG and tokens < size * _FEWEST_TOKENS


def is_same_model(asked: str | None, served: str | None) -> bool | None:
    """Return whether the model that answered is one that was asked for; None if either is unknown.

    Providers and dates aside: `gpt-4o-2024-08-06` is an `openai/gpt-4o`, and `gpt-4o-mini` is not.

    Args:
        asked: As DSPy names it; several models of one role are joined by `+`. served: as the server names it.
    """
    if asked is None or served is None:
        return None
    return any(_names(model) & _names(served) for model in asked.split("+"))


def _names(model: str) -> set[str]:
    """The names of a model: with and without its provider, its options and its version."""
    name = model.lower().split("#")[0]
    parts = name.split("/")
    tails = {"/".join(parts[first:]) for first in range(len(parts))}
    return tails | {_VERSION.sub("", _VERSION.sub("", tail)) for tail in tails}


def judges_record(summary: Summary, heads: Sequence[Mapping[str, Any]], totals: JournalTotals) -> Record:
    """Return the record of a run: its rates, and the calls and dollars of all that its directory has seen.

    Args:
        summary: As written to `summary.json`.
        heads: The journal's statements of what the run is made with; a pool that is not in the summary is left out.
        totals: The totals of the journal's consultations.
    """
    statements: dict[str, dict[str, Any]] = {"settings": {}, "pool": {}, "role": {}}
    for head in heads:
        statements.setdefault(head["kind"], {})[head["name"]] = head["details"]
    settings = statements["settings"].get("rule", {})
    roles: dict[Asked, dict[str, Any]] = {
        role: statements["role"][role] for role in in_order(statements["role"]) if role in statements["role"]
    }
    return {
        "default": "consensus: majority vote over answer classes, ties to the earliest candidate",
        "certificate": {"retrieval": settings.get("certificate"), "arithmetic": settings.get("derivation")},
        "settings": settings,
        "override_rates": {name: _rates(pool) for name, pool in summary["pools"].items()},
        "models": totals.models(),
        "fingerprints": {role: _fingerprints(details) for role, details in roles.items()},
        "parse_failures": totals.parse_failures(),
        "cost": sums_of(totals.roles()),
        "remarks": [*totals.remarks(), *_on_addresses(heads), *_on_pools(summary)],
        "silences": totals.silences(),
        "pools": {name: statements["pool"][name] for name in summary["pools"] if name in statements["pool"]},
        "roles": roles,
        "confirmation": summary["confirmation"],
    }


def _on_addresses(heads: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each role that was stated again because its LM was asked at another address."""
    counts = Counter(head["name"] for head in heads if head["kind"] == "role")
    return [
        f"The {role} was asked at {counts[role]} addresses; one of them is stated here, and the journal states all."
        for role in in_order(counts)
        if counts[role] > 1
    ]


def _on_pools(summary: Summary) -> list[str]:
    return [f"{name}: {remark}" for name, pool in summary["pools"].items() for remark in pool["remarks"]]


def _fingerprints(details: Mapping[str, Any]) -> Fingerprints:
    """Fingerprints of a role: of all its details, as in the journal, of its prompts, and of its LM's settings."""
    settings = {name: details.get(name) for name in ("lm", "adapter", "adapter_options")}
    return {"role": _digest(details), "prompts": _digest(details.get("prompts")), "settings": _digest(settings)}


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]


def _rates(pool: PoolFigures) -> OverrideRates | None:
    """The measured override rate, split by its effect on the answer; None if EL-DGR was not run."""
    audit = pool["audit"]
    if audit is None or not pool["n"]:
        return None
    return {
        "questions": pool["n"],
        "by_judge": 100.0 * audit["judge_overrides"] / pool["n"],
        "by_repair": 100.0 * audit["repair_overrides"] / pool["n"],
        "by_outcome": {branch: _shares(pool, branch, lambda row: row["outcome"]) for branch in _OVERRIDING},
        "by_certificate": {branch: _shares(pool, branch, lambda row: row["level"]) for branch in _OVERRIDING},
    }


def _shares(pool: PoolFigures, branch: Branch, by: Callable[[Decisions], _Text]) -> dict[_Text, float]:
    """The overrides of a branch by outcome or by level, in percent of the questions."""
    counts = Counter[_Text]()
    for row in pool["decided"]["outcomes"] if pool["decided"] else ():
        if row["branch"] == branch:
            counts[by(row)] += row["questions"]
    return {name: 100.0 * n / pool["n"] for name, n in counts.items()}
