"""The judge's record, `record.json`: what a deployment should state about a judge that decides, as the paper asks."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from eldgr_dspy.figures.distinct import counts_by
from eldgr_dspy.figures.results.audit_fields import Decisions, RoleSums
from eldgr_dspy.figures.results.record_fields import Fingerprints, Model, OverrideRates, Record, Share, Silence
from eldgr_dspy.figures.results.summary_fields import PoolFigures, Summary
from eldgr_dspy.rule.consultations import Consultation, Outcome
from eldgr_dspy.rule.named_judges import Label, first_of, in_order, judge_in
from eldgr_dspy.words import Branch

_Amount = TypeVar("_Amount", int, float)
_Text = TypeVar("_Text", bound=str)
_OVERRIDING: tuple[Branch, ...] = ("judge", "repair")
_AMOUNTS = ("prompt_tokens", "completion_tokens", "cost")

_VERSION = re.compile(r"[-:@_.](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}|\d{3,8}|v\d+(?:[.:]\d+)*)$")
_FEWEST_TOKENS, _LONG = 1 / 8, 1_500
"""The fewest tokens a character that any tokenizer makes of text, and the length of prompts that are checked for it."""


class _Line(NamedTuple):
    """What the totals need of a line of a journal; `is_decided` says whether its question was."""

    label: Label
    outcome: str
    is_decided: bool
    is_final: bool
    reason: tuple[Outcome, str, str] | None = None
    model: str | None = None
    server_model: str | None = None
    calls: int = 0
    cached: int = 0
    is_cut: bool = False


class JournalTotals(NamedTuple):
    """The totals of a journal: roles and models of every attempt, other figures of decided questions alone."""

    roles: dict[Label, RoleSums]
    models: list[Model]
    parse_failures: dict[Label, Share]
    silences: list[Silence]
    remarks: list[str]


def journal_totals(
    consultations: Iterable[Consultation], is_decided: Callable[[str, str], bool] = lambda pool, question: True
) -> JournalTotals:
    """Return the totals of a journal; reasons and unreadable replies count where `is_decided` holds."""
    lines, amounts = Counter[_Line](), dict[tuple[Label, str], Fraction | int | None]()  # None where one is not known
    for one in consultations:
        lines[_line(one, is_decided(one.pool, one.id))] += 1
        if one.calls and not one.recorded:
            for name in _AMOUNTS:
                amount, before = getattr(one, name), amounts.get((one.label, name), 0)
                exact = Fraction(amount) if isinstance(amount, float) else amount
                amounts[one.label, name] = None if exact is None or before is None else before + exact
    models = _models(lines)
    return JournalTotals(
        {role: _role(role, lines, amounts) for role in in_order({line.label for line in lines})},
        models,
        _parse_failures(lines),
        _silences(lines),
        [*_on_models(models), *_on_lines(lines)],
    )


def _line(one: Consultation, is_decided: bool) -> _Line:
    why = one.abstention if one.reason else None
    reason = (one.outcome, why.kind, str(one.reason).split(":")[0][:80]) if why is not None else None
    if one.recorded:
        return _Line(one.label, "recorded", is_decided, one.settled, reason)
    models = (one.asked, one.served) if one.calls else (None, None)
    size, tokens = one.prompt_characters or 0, one.prompt_tokens
    is_cut = tokens is not None and size >= _LONG and tokens < size * _FEWEST_TOKENS
    return _Line(one.label, one.outcome, is_decided, one.settled, reason, *models, one.calls, one.cached, is_cut)


def _role(role: Label, lines: Counter[_Line], amounts: Mapping[tuple[Label, str], Fraction | int | None]) -> RoleSums:
    own = Counter({line: n for line, n in lines.items() if line.label == role})
    outcomes = counts_by(own, lambda line: line.outcome)
    prompt, completion, cost = (amounts.get((role, name)) for name in _AMOUNTS)
    return {
        "ok": outcomes["ok"],
        "abstained": outcomes["abstained"],
        "failed": outcomes["failed"],
        "recorded": outcomes["recorded"],
        "calls": sum(line.calls * n for line, n in own.items()),
        "cached": sum(line.cached * n for line, n in own.items()),
        "prompt_tokens": None if prompt is None else int(prompt),
        "completion_tokens": None if completion is None else int(completion),
        "cost": None if cost is None else float(cost),
    }


def _models(lines: Counter[_Line]) -> list[Model]:
    calls = Counter[tuple[Label, str | None, str | None]]()
    for line, n in lines.items():
        calls[line.label, line.model, line.server_model] += line.calls * n
    return [
        {"role": role, "asked": model, "served": server_model, "same": is_same_model(model, server_model), "calls": n}
        for (role, model, server_model), n in sorted(calls.items(), key=str)
        if n
    ]


def _parse_failures(lines: Counter[_Line]) -> dict[Label, Share]:
    of_run = Counter({line: n for line, n in lines.items() if line.is_decided})
    through = counts_by(of_run, lambda line: (line.label, line.is_final))
    failures = counts_by(of_run, lambda line: (line.label, line.reason is not None and line.reason[1] == "unreadable"))
    roles = in_order({line.label for line in of_run})
    return {role: share_of(failures[role, True], through[role, True]) for role in roles}


def _silences(lines: Counter[_Line]) -> list[Silence]:
    reasons = counts_by(lines, lambda line: (line.label, *line.reason) if line.reason and line.is_decided else None)
    return [
        {"role": role, "outcome": outcome, "kind": kind, "reason": reason, "consultations": n}
        for (role, outcome, kind, reason), n in sorted((of, n) for of, n in reasons.items() if of is not None)
    ]


def _on_models(models: Iterable[Model]) -> Iterator[str]:
    for of in models:
        if of["same"] is False:
            calls = f"{of['calls']} call{'' if of['calls'] == 1 else 's'}"
            yield f"The {of['role']} was asked of {of['asked']}, but {of['served']} answered ({calls})."


def _on_lines(lines: Counter[_Line]) -> Iterator[str]:
    for role, n in sorted(counts_by(lines, lambda line: line.label if line.is_cut else "").items()):
        if role:
            yield f"The {role}'s server counted far fewer tokens than {n} of its prompts have: it may have cut them."
    if elsewhere := counts_by(lines, lambda line: line.is_decided)[False]:
        yield (
            f"The run directory has seen other questions too: {elsewhere} of its consultations are about "
            "those. Their outcomes, calls, tokens and dollars are in the sums."
        )


def sums_of(roles: Mapping[Label, RoleSums]) -> RoleSums:
    """Return the consultations of all roles together, every attempt included."""
    sums: list[Any] = [*roles.values()]
    total: Any = {name: sum(role[name] for role in sums) for name in RoleSums.__annotations__ if name not in _AMOUNTS}
    return cast(RoleSums, total | {name: total_of([role[name] for role in sums if role["calls"]]) for name in _AMOUNTS})


def share_of(count: int, of: int) -> Share:
    return {"count": count, "of": of, "rate": 100.0 * count / of if of else None}


def total_of(amounts: Sequence[_Amount | None]) -> _Amount | None:
    """Return the sum of amounts, None if one is unknown."""
    numbers = [amount for amount in amounts if amount is not None]
    total: Any = sum(numbers)  # of the kind that the amounts are
    return total if len(numbers) == len(amounts) else None


def is_same_model(models: str | None, server_model: str | None) -> bool | None:
    """Return whether the model that answered is one that was asked for, joined by `+`; None if either is unknown."""
    if models is None or server_model is None:
        return None
    # Providers and dates aside: `gpt-4o-2024-08-06` is an `openai/gpt-4o`, and `gpt-4o-mini` is not.
    return any(_names(model) & _names(server_model) for model in models.split("+"))


def _names(model: str) -> set[str]:
    """The names of a model: with and without its provider, its options and its version."""
    parts = model.lower().split("#")[0].split("/")
    tails = {"/".join(parts[first:]) for first in range(len(parts))}
    return tails | {_VERSION.sub("", _VERSION.sub("", tail)) for tail in tails}


def judges_record(summary: Summary, heads: Sequence[Mapping[str, Any]], totals: JournalTotals) -> Record:
    """Return the record of a run: the rates of its summary, and the calls and dollars of all that is in its journal."""
    settings, pools, details = (
        {head["name"]: head["details"] for head in heads if head["kind"] == kind}
        for kind in ("settings", "pool", "role")
    )
    rule = settings.get("rule", {})
    roles = {role: details[role] for role in in_order(details) if role in details}
    return {
        "default": "consensus: majority vote over answer classes, ties to the earliest candidate",
        "certificate": {"retrieval": rule.get("certificate"), "arithmetic": rule.get("derivation")},
        "settings": rule,
        "override_rates": {name: _rates(pool) for name, pool in summary["pools"].items()},
        "models": totals.models,
        "fingerprints": {role: _fingerprints(of) for role, of in roles.items()},
        "parse_failures": totals.parse_failures,
        "cost": sums_of(totals.roles),
        "remarks": [*totals.remarks, *_on_addresses(heads), *_on_pools(summary)],
        "silences": totals.silences,
        "pools": {name: pools[name] for name in summary["pools"] if name in pools},
        "roles": roles,
        "confirmation": summary["confirmation"],
    }


def _on_addresses(heads: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each role that was stated again because its LM was asked at another address."""
    counts = Counter(head["name"] for head in heads if head["kind"] == "role")
    for role in in_order(counts):
        if counts[role] > 1:
            at = f"The {role} was asked at {counts[role]} addresses"
            yield f"{at}; one of them is stated here, and the journal states all."


def _on_pools(summary: Summary) -> Iterator[str]:
    for name, pool in summary["pools"].items():
        if pool["audit"] and (rule := first_of("eldgr", pool["rules"])) != "eldgr":
            yield f"{name}: the override rates are those of {rule}; summary.json has the audit of each judge."
    yield from (f"{name}: {remark}" for name, pool in summary["pools"].items() for remark in pool["remarks"])


def _fingerprints(details: Mapping[str, Any]) -> Fingerprints:
    settings = {name: details.get(name) for name in ("lm", "adapter", "adapter_options")}
    return {"role": _digest(details), "prompts": _digest(details.get("prompts")), "settings": _digest(settings)}


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]


def _rates(pool: PoolFigures) -> OverrideRates | None:
    """The measured override rate, split by its effect on the answer; None if EL-DGR was not run."""
    if (audit := pool["audit"]) is None or not pool["n"]:
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


class JudgeFacts(TypedDict):
    """What is known of a judge besides its replies; `JudgeFigures` says what each means."""

    gold_in_training: bool
    logprobs: bool
    positioned: bool


def judge_facts(heads: Iterable[Mapping[str, Any]]) -> dict[str, JudgeFacts]:
    """Return the facts of each named judge, from the lines of a journal that state its roles."""
    details = {judge: of["details"] for of in heads if of["kind"] == "role" and (judge := judge_in(str(of["name"])))}
    return {judge: facts for judge, of in details.items() if (facts := _facts(of)) is not None}


def _facts(details: Mapping[str, Any]) -> JudgeFacts | None:
    own = details.get("facts")
    calls_function = any("source" in part for part in details.get("attributes", {}).values())
    # A user's module without `facts` has none, nor has a judge of ours that calls a user's function.
    if calls_function if str(details.get("module")).startswith("eldgr_dspy.programs.") else own is None:
        return None
    gold, logprobs, positioned = (bool((own or {}).get(name)) for name in JudgeFacts.__annotations__)
    has_demos = any(prompt.get("demos") for prompt in details.get("prompts", {}).values())
    return {"gold_in_training": gold or has_demos, "logprobs": logprobs, "positioned": positioned}
