"""The judge's record: what a deployment should state about a judge that decides (the paper's section on deployment).

It has the default that the judge must beat, the certificate that it needs, and how often it overrode, by outcome and by
certificate; also the models that were asked and that answered, unreadable replies, biases and cost. It is written as
`record.json`; `eldgr_dspy.figures.results.Record` is its type.
"""

import hashlib
import json
import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from eldgr_dspy.consultations import Consultation, Outcome
from eldgr_dspy.figures.abstention_kinds import error_of, kind_of
from eldgr_dspy.figures.results.record import Cost, Effects, Fingerprints, OverrideRates, Record, Share
from eldgr_dspy.figures.results.summary import Decisions, PoolFigures, RoleSums, Summary
from eldgr_dspy.named_judges import Asked, asked_in_order
from eldgr_dspy.words import Branch

_Amount = TypeVar("_Amount", int, float)
_Text = TypeVar("_Text", bound=str)
_OVERRIDING: tuple[Branch, ...] = ("judge", "repair")

_VERSION = re.compile(r"[-:@_.](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}|\d{3,8}|v\d+(?:[.:]\d+)*)$")
_FEWEST_TOKENS, _LONG = 1 / 8, 1_500
"""Tokens a character that no tokenizer goes below on text, and how long a prompt has to be to be held to that."""


@dataclass(slots=True)
class _Sum:
    """An exact sum of amounts, some of which may not be known."""

    total: Fraction | int = 0
    known: int = 0
    unknown: int = 0

    def add(self, amount: float | None) -> None:
        if amount is None:
            self.unknown += 1
        else:
            self.total += amount if isinstance(amount, int) else Fraction(amount)
            self.known += 1


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


class JournalTotals:
    """The totals of a journal's lines: every attempt, whether it succeeded or failed."""

    def __init__(self, consultations: Iterable[Consultation], decided: Questions | None = None) -> None:
        """Add up consultations.

        Args:
            consultations: All lines of a journal.
            decided: The questions that reasons and unreadable replies are counted of; all for None.
        """
        self.models: Counter[tuple[Asked, str | None, str | None]] = Counter()
        self.reasons: Counter[tuple[Asked, Outcome, str, str]] = Counter()
        self.through: Counter[Asked] = Counter()
        self.unreadable: Counter[Asked] = Counter()
        self._outcomes: Counter[tuple[Asked, str]] = Counter()
        self._amounts: dict[tuple[Asked, str], _Sum] = defaultdict(_Sum)
        self._cached: Counter[Asked] = Counter()
        self._shortened: Counter[Asked] = Counter()
        self._elsewhere = 0
        for consultation in consultations:
            self._take(consultation, decided)

    def _take(self, consultation: Consultation, decided: Questions | None) -> None:
        self._outcomes[consultation.label, "recorded" if consultation.recorded else consultation.outcome] += 1
        if decided is None or decided.has(consultation.pool, consultation.id):
            self._take_reading(consultation)
        else:
            self._elsewhere += 1
        if consultation.recorded:
            return
        self._cached[consultation.label] += consultation.cached
        self._shortened[consultation.label] += _was_shortened(consultation)
        if not consultation.calls:
            return
        self.models[consultation.label, consultation.asked, consultation.served] += consultation.calls
        for name in ("calls", "prompt_tokens", "completion_tokens", "cost"):
            self._amounts[consultation.label, name].add(getattr(consultation, name))

    def _take_reading(self, consultation: Consultation) -> None:
        self.through[consultation.label] += consultation.settled
        if consultation.reason:
            kind = error_of(consultation.reason) if consultation.outcome == "failed" else kind_of(consultation.reason)
            self.reasons[consultation.label, consultation.outcome, kind, consultation.reason.split(":")[0][:80]] += 1
            self.unreadable[consultation.label] += kind == "unreadable"

    def roles(self) -> dict[Asked, RoleSums]:
        """Return for each role how its consultations ended, calls, tokens and dollars (None where any is unknown)."""
        asked = {role for role, _ in self._outcomes}
        return {role: self._role(role) for role in asked_in_order(asked)}

    def _role(self, role: Asked) -> RoleSums:
        return {
            "ok": self._outcomes[role, "ok"],
            "abstained": self._outcomes[role, "abstained"],
            "failed": self._outcomes[role, "failed"],
            "recorded": self._outcomes[role, "recorded"],
            "calls": self._count(role, "calls") or 0,
            "cached": self._cached[role],
            "prompt_tokens": self._count(role, "prompt_tokens"),
            "completion_tokens": self._count(role, "completion_tokens"),
            "cost": None if (cost := self._sum(role, "cost")) is None else float(cost),
        }

    def parse_failures(self) -> dict[Asked, Share]:
        """Return for each role how many of its successful replies could not be read, recorded ones included."""
        return {role: _share(self.unreadable[role], self.through[role]) for role in asked_in_order(self.through)}

    def cost(self) -> Cost:
        """Return calls, tokens and dollars of all roles together, None where unknown for any call."""
        roles = [
            self._role(role)
            for role in asked_in_order({of for of, _ in self._amounts})
            if (role, "calls") in self._amounts
        ]
        return {
            "calls": sum(role["calls"] for role in roles),
            "prompt_tokens": total_of([role["prompt_tokens"] for role in roles]),
            "completion_tokens": total_of([role["completion_tokens"] for role in roles]),
            "cost": total_of([role["cost"] for role in roles]),
        }

    def remarks(self) -> list[str]:
        """Return what a reader of the results should know about the models, a sentence each."""
        others = [
            f"The {role} was asked of {asked}, but {served} answered ({n} call{'' if n == 1 else 's'})."
            for (role, asked, served), n in sorted(self.models.items(), key=str)
            if is_same_model(asked, served) is False
        ]
        shortened = [
            f"The {role}'s server counted far fewer tokens than {n} of its prompts have: it may have cut them."
            for role, n in sorted(self._shortened.items())
            if n
        ]
        elsewhere = [
            f"The run directory has seen other questions too: {self._elsewhere} of its consultations are on none of "
            "these, and are among those whose outcomes, calls, tokens and dollars are added up."
        ]
        return others + shortened + elsewhere * bool(self._elsewhere)

    def _count(self, role: Asked, name: str) -> int | None:
        total = self._sum(role, name)
        return None if total is None else int(total)

    def _sum(self, role: Asked, name: str) -> Fraction | int | None:
        of = self._amounts.get((role, name), _Sum())
        return of.total if of.known and not of.unknown else None


def total_of(amounts: Sequence[_Amount | None]) -> _Amount | None:
    """Return the sum of amounts, None if one is unknown."""
    known = [amount for amount in amounts if amount is not None]
    total: Any = sum(known)  # of the kind that the amounts are
    return total if len(known) == len(amounts) else None


def _was_shortened(consultation: Consultation) -> bool:
    """Whether a server reports so few tokens for a prompt that it cannot have read all of it."""
    sent, read = consultation.prompt_characters, consultation.prompt_tokens
    return sent is not None and read is not None and sent >= _LONG and read < sent * _FEWEST_TOKENS


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


def judges_record(
    summary: Summary, heads: Sequence[Mapping[str, Any]], totals: JournalTotals, effects: Mapping[str, Effects]
) -> Record:
    """Return the record of a run: its rates, and the calls and dollars of all that its directory has seen.

    Args:
        summary: As written to `summary.json`.
        heads: The journal's statements of what the run is made with; a pool that is not in the summary is left out.
        totals: The totals of the journal's consultations.
        effects: The judge's biases on each pool, or `POOL[NAME]` for a judge with a name; see
            `eldgr_dspy.figures.effects`.
    """
    stated: dict[str, dict[str, Any]] = {"settings": {}, "pool": {}, "role": {}}
    for head in heads:
        stated.setdefault(head["kind"], {})[head["name"]] = head["details"]
    settings = stated["settings"].get("rule", {})
    roles: dict[Asked, dict[str, Any]] = {
        role: stated["role"][role] for role in asked_in_order(stated["role"]) if role in stated["role"]
    }
    return {
        "default": "consensus: majority vote over answer classes, ties to the earliest candidate",
        "certificate": {"retrieval": settings.get("certificate"), "arithmetic": settings.get("derivation")},
        "settings": settings,
        "override_rates": {name: _rates(pool) for name, pool in summary["pools"].items()},
        "judge_effects": {**dict.fromkeys(summary["pools"]), **effects} if effects else {},
        "models": [
            {"role": role, "asked": asked, "served": served, "same": is_same_model(asked, served), "calls": n}
            for (role, asked, served), n in sorted(totals.models.items(), key=str)
        ],
        "fingerprints": {role: _fingerprints(details) for role, details in roles.items()},
        "parse_failures": totals.parse_failures(),
        "cost": totals.cost(),
        "consultations": totals.roles(),
        "remarks": [*totals.remarks(), *_on_addresses(heads), *_on_pools(summary)],
        "silences": [
            {"role": role, "outcome": outcome, "kind": kind, "reason": reason, "consultations": n}
            for (role, outcome, kind, reason), n in sorted(totals.reasons.items())
        ],
        "pools": {name: stated["pool"][name] for name in summary["pools"] if name in stated["pool"]},
        "roles": roles,
        "confirmation": summary["confirmation"],
    }


def _on_addresses(heads: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each role that was stated again because its LM was asked at another address."""
    stated = Counter(head["name"] for head in heads if head["kind"] == "role")
    return [
        f"The {role} was asked at {stated[role]} addresses; one of them is stated here, and the journal states all."
        for role in asked_in_order(stated)
        if stated[role] > 1
    ]


def _on_pools(summary: Summary) -> list[str]:
    return [f"{name}: {remark}" for name, pool in summary["pools"].items() for remark in pool["remarks"]]


def _fingerprints(details: Mapping[str, Any]) -> Fingerprints:
    """Fingerprints of a role: of all its details, as in the journal, of its prompts, and of its LM's settings."""
    settings = {name: details.get(name) for name in ("lm", "adapter", "adapter_options")}
    return {"role": _digest(details), "prompts": _digest(details.get("prompts")), "settings": _digest(settings)}


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]


def _share(count: int, of: int) -> Share:
    return {"count": count, "of": of, "rate": 100.0 * count / of if of else None}


def _rates(pool: PoolFigures) -> OverrideRates | None:
    """The measured override rate, split by its effect on the answer; None if EL-DGR was not run."""
    audit = pool["audit"]
    if audit is None or not pool["n"]:
        return None
    overrides = audit["judge_overrides"] + audit["repair_overrides"]
    gained, lost = audit["incorrect_to_correct"], audit["correct_to_incorrect"]
    return {
        "questions": pool["n"],
        "by_judge": 100.0 * audit["judge_overrides"] / pool["n"],
        "by_repair": 100.0 * audit["repair_overrides"] / pool["n"],
        "overrides": overrides,
        "incorrect_to_correct": gained,
        "correct_to_incorrect": lost,
        "neither": None
        if gained is None or lost is None or pool["n_scored"] < pool["n"]
        else overrides - gained - lost,
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
