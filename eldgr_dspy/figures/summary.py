"""The figures of a pool: its part of `summary.json`, each figure a function of the table of decided questions."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from eldgr_dspy.figures.authority import bounds_of
from eldgr_dspy.figures.baselines import baselines_of
from eldgr_dspy.figures.decided_rows import DecidedRows, Marks, ReplyMarks
from eldgr_dspy.figures.distinct import counts_by
from eldgr_dspy.figures.record import JudgeFacts
from eldgr_dspy.figures.remarks import remarks_of
from eldgr_dspy.figures.results.audit_fields import AuditCounts, AuditInFull
from eldgr_dspy.figures.results.summary_fields import JudgeFigures, PoolFigures, RuleFigures
from eldgr_dspy.figures.scored import contrast_of, contrasts_of, flips_of, official_of, scores_of, shipping_of
from eldgr_dspy.rule.named_judges import asked_by, first_of, judge_in, label_of, role_of
from eldgr_dspy.words import CONSULTED, Consulted, roles_and


def pool_figures(rows: DecidedRows, facts: Mapping[str, JudgeFacts] | None = None) -> PoolFigures:
    """Return the pool's part of `summary.json`; `facts` are those of the named judges, see `judge_facts`."""
    facts, names, kind, n = facts or {}, [*rows.rules], rows.type, len(rows)
    whys = {name: _lacks(rows.roles[label_of("judge", name)].marks.counts()) for name in rows.judges}
    lacking = {name: why for name, why in whys.items() if why is not None}
    withheld = {name: lacks for name in names if (lacks := _missing(rows, name))}
    applicable = [name for name in names if judge_in(name) not in lacking]
    withheld |= {name: {"judge": n} for name in names if name not in applicable}
    whole = [name for name in names if name not in withheld]
    exempt = [name for name, of in facts.items() if of["positioned"]]
    counts, chances, n_gold = rows.facts.counts(), rows.units(rows.chances), int(rows.has_gold.sum())
    ends = bounds_of(rows.task, applicable, rows.units(rows.bounds), withheld=rows.withholds)
    audit, in_full = _audit(rows, first_of("eldgr", whole), whole)
    figures: PoolFigures = {
        "n": n,
        "n_scored": n_gold,
        "n_distinct": chances.total(),
        "n_failed": sum(times for of, times in counts.items() if of.has_failure),
        "ties": sum(times for of, times in counts.items() if of.tie),
        "candidates": {
            "fewest": min((of.candidates for of in counts), default=None),
            "most": max((of.candidates for of in counts), default=0),
            "without_answer": sum(of.blanks * times for of, times in counts.items()),
        },
        "conflicts": sum(times for of, times in counts.items() if of.conflict) if kind.way == "evidence" else None,
        "rules": {name: _rule_figures(rows, name) for name in whole},
        "withheld": withheld,
        "contrasts": contrasts_of(whole, rows.judges, partial(contrast_of, rows), exempt) if n_gold else [],
        "task": ends["task"],
        "bounds": ends["bounds"],
        "bounds_any_span": ends["bounds_any_span"],
        "price": ends["price"],
        "baselines": baselines_of(
            rows.task,
            chances,
            (label_of("judge", judge_in(name)) for name in names),
            withheld=rows.withholds,
            lacking={label_of("judge", name): why for name, why in lacking.items()},
        ),
        "audit": audit,
        "decided": in_full,
        "shipping": {name: shipping_of(rows, name) for name in whole},
        "remarks": remarks_of(rows),
    }
    if "bounds_any_deriver" in ends:
        figures["bounds_any_deriver"] = ends["bounds_any_deriver"]
    figures["remarks"] += _on_officials(figures["rules"])
    if kind.is_own:
        figures["answer_type"] = {"way": kind.way, "scores": [*kind.scores]}
    if rows.judges:
        figures["judges"] = {
            name: _judge_figures(rows, name, figures, facts.get(name), lacking.get(name)) for name in rows.judges
        }
    return figures


def _missing(rows: DecidedRows, rule: str) -> dict[Consulted, int]:
    """Return on how many questions each role was never asked where the rule needs it."""
    missing = counts_by(rows.rules[rule].counts(), lambda of: of.missing)
    return {role: missing[role] for role in CONSULTED if missing[role]}


def _rule_figures(rows: DecidedRows, rule: str) -> RuleFigures:
    roles = roles_and({role_of(label) for name in rows.rules for of in rows.rules[name] for label in of.labels})
    costs: dict[Consulted, tuple[int, int, int | None, float]] = {role: rows.asking(rule, role) for role in roles}
    return {
        **scores_of(rows, rule),
        "official": official_of(rows, rule),
        "calls": {role: calls for role, (_, calls, _, _) in costs.items()},
        "asked": {role: n for role, (n, _, _, _) in costs.items()},
        "tokens": {role: tokens for role, (_, _, tokens, _) in costs.items()},
        "seconds": round(sum(seconds for _, _, _, seconds in costs.values()), 3),
    }


def _on_officials(rules: Mapping[str, RuleFigures]) -> Iterator[str]:
    """A sentence if marks around answers would have changed a score."""
    if officials := {name: of["official"] for name, of in rules.items() if of["official"] is not None}:
        scores = ", ".join(
            f"{name} {official['em']:.2f}" + (f" (F1 {official['f1']:.2f})" if official["f1"] is not None else "")
            for name, official in officials.items()
        )
        yield (
            "Marks around an answer are taken off before it is scored."
            f" The official score of the raw texts differs: {scores}."
        )


def _audit(rows: DecidedRows, locked: str, whole: list[str]) -> tuple[AuditCounts | None, AuditInFull | None]:
    """The audit of `eldgr`, or of `eldgr[NAME]`, in short and in full; None without its result."""
    if locked not in whole:
        return None, None
    audits, has_gold, judge = rows.audits[locked].counts(), bool(rows.has_gold.any()), asked_by(locked, "judge")
    outcomes = counts_by(audits, lambda marks: (marks.branch, marks.level, marks.became))

    def count(holds: Callable[[Marks], object]) -> int:
        return sum(n for marks, n in audits.items() if holds(marks))

    counts: AuditCounts = {
        "preserved": count(lambda marks: marks.branch == "consensus"),
        "judge_overrides": count(lambda marks: marks.branch == "judge"),
        "repair_overrides": count(lambda marks: marks.branch == "repair"),
        "correct_to_incorrect": count(lambda marks: marks.became == "lost") if has_gold else None,
        "incorrect_to_correct": count(lambda marks: marks.became == "won") if has_gold else None,
        "abstentions": count(lambda marks: marks.abstains),
        "homogeneous": count(lambda marks: marks.homogeneous),
        "certified_consensus": count(lambda marks: marks.support),
    }
    return counts, {
        "outcomes": [
            {"branch": branch, "level": level, "outcome": outcome, "questions": n}
            for (branch, level, outcome), n in sorted(outcomes.items())
        ],
        "flips": {name: flips_of(rows, name, locked) for name in ("first", judge) if name in whole},
    }


def _judge_figures(
    rows: DecidedRows, name: str, pool: PoolFigures, facts: JudgeFacts | None, lacks: str | None
) -> JudgeFigures:
    alone, locked, rules = label_of("judge", name), label_of("eldgr", name), pool["rules"]
    delta = next((of for of in pool["contrasts"] if (of["rule"], of["against"]) == (locked, alone)), None)
    worst = {rule: ends[0] for rule, ends in pool["bounds"].items() if ends and lacks is None}
    outcomes = counts_by(rows.roles[alone].marks.counts(), lambda of: of.outcome)
    n, calls, tokens, _ = rows.roles[alone].sums()
    audit, in_full = _audit(rows, locked, [*rules])
    return {
        "alone": rules[alone]["em"] if alone in rules else None,
        "locked": rules[locked]["em"] if locked in rules else None,
        "delta": delta and {"delta": delta["delta"], "ci": delta["ci"]},
        "locked_against_alone": flips_of(rows, alone, locked) if {alone, locked} <= rules.keys() else None,
        "alone_against_majority": flips_of(rows, "majority", alone) if {"majority", alone} <= rules.keys() else None,
        "worst_alone": worst.get(alone),
        "worst_locked": worst.get(locked),
        "asked": n,
        "abstained": outcomes["abstained"],
        "failed": outcomes["failed"],
        "calls": calls,
        "tokens": tokens,
        "gold_in_training": facts and facts["gold_in_training"],
        "logprobs": facts and facts["logprobs"],
        "positioned": facts and facts["positioned"],
        "lacks": lacks,
        "audit": audit,
        "decided": in_full,
    }


def _lacks(marks: Mapping[ReplyMarks, int]) -> str | None:
    """Return why a judge applies to no question of the pool, the most frequent reason; None if it applies to any."""
    reasons = counts_by(marks, lambda of: of.lacks)
    return None if "" in reasons else min(reasons, key=lambda why: (-reasons[why], why), default=None)
