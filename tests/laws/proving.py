"""What is claimed of the rules of a module, how it is proved, and what a failed proof says."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

import z3

from eldgr_dspy.words import ROLES
from tests.case_tables import tables_of
from tests.laws import law_claims
from tests.laws.law_claims import CASE_D, CASE_R, CASE_S, includes, lazy_equals_always

from tests.laws.symbolic import (  # isort: skip
    ARITHMETIC, BLANK, D2, IDENTICAL, NONE, OPINION, OPINION2, P2, PLAIN, R2, REPAIRABLE, STANDING, WORLD, D, J, K, M,
    Outcome, P, R, StandingCase, Term, Votes, mark, outcome_of, outcome_of_table, pool, same,
)  # fmt: skip

REPLIES = (P, P2, OPINION, OPINION2, R, R2, D, D2)
"""The answers that replies stand for, each a first and a second time."""

MARGINS = {f"{name}({k})": (name, k) for name in ("near", "support") for k in (J, K)}
ASKING_STANDINGS = ("certified", "support", "eldgr_certified", *MARGINS)
"""The rules that ask for the standings, of which things are proved for a bounded number of classes."""
CLAIMS = [(law, rule) for rules, laws in tables_of("laws")["claims"]["cases"] for law in laws for rule in rules]
"""What is claimed of which rule, for every k; `lazy_equals_always` is claimed of each."""


@dataclass(frozen=True)
class Claim:
    """One thing to prove: `law`, in words `says`, of the rule `rule`, which computes `outcome`, under `premises`."""

    law: str
    says: str
    rule: str
    outcome: Outcome
    term: Term
    premises: Sequence[Term]


class Rules:
    """What the rules of a decision module compute; the module is the shipped one or one with a planted change."""

    def __init__(self, module: ModuleType) -> None:
        self.module: Any = module

    @cache  # noqa: B019 -- the few modules of a test run stay anyway
    def outcome(self, rule: str) -> Outcome:
        """What a rule computes, asked lazily; `always(NAME)`: asked always; `decide`: the table."""
        if rule == "decide":
            return outcome_of_table(self.module.decide)
        name, full = (rule[7:-1], True) if rule.startswith("always(") else (rule, False)
        lazy: Any = self._with_margin(*MARGINS[name]) if name in MARGINS else self.module.RULES[name]
        roles: Any = (lambda case: case.roles()) if name == "eldgr" else (lambda _: ROLES)
        run = self.module.always(lazy, roles) if full else lazy
        return outcome_of(run, STANDING, StandingCase) if name in ASKING_STANDINGS else outcome_of(run)

    def _with_margin(self, name: str, k: Term) -> Any:
        return lambda case: getattr(self.module, name).__wrapped__(Votes(k, case.oracle))(case)

    def claims(self, law: str) -> Iterator[Claim]:
        yield from (self._claim(getattr(law_claims, law), rule) for name, rule in CLAIMS if name == law)
        for rule in (*self.module.RULES, "near(k)", "support(k)") if law == lazy_equals_always.__name__ else ():
            yield self._of_two(law, lazy_equals_always, rule, f"always({rule})", _world(rule))

    def _claim(self, of: Callable[[Outcome], Term], rule: str) -> Claim:
        outcome = self.outcome(rule)
        plain, term = rule == "decide", z3.And(total(outcome), of(outcome))
        if plain:
            term = z3.substitute_funs(term, (same, IDENTICAL))
        return Claim(of.__name__, str(of.__doc__), rule, outcome, term, PLAIN if plain else _world(rule))

    def at_most(self, narrow: str, wide: str, task: Term) -> Claim:
        """That judge and deriver can make the wide rule ship all that they can make the narrow one ship in a task."""
        return self._of_two(f"{narrow} <= {wide}", includes, narrow, wide, (*STANDING, task))

    def _of_two(
        self, law: str, of: Callable[[Outcome, Outcome], Term], rule: str, against: str, premises: Sequence[Term]
    ) -> Claim:
        one, other = self.outcome(rule), self.outcome(against)
        both = replace(one, paths=(*one.paths, *other.paths))
        term = z3.And(total(one), total(other), of(one, other))
        return Claim(law, str(of.__doc__), rule, both, term, premises)


def _world(rule: str) -> Sequence[Term]:
    return STANDING if rule in ASKING_STANDINGS else WORLD


def total(outcome: Outcome) -> Term:
    """That no question is left out by the runs of a rule."""
    return z3.Or(*(path.condition for path in outcome.paths))


def refute(one: Claim) -> str | None:
    """Return a counter-model of a claim in words, None where it is proved."""
    error = next((path.error for path in one.outcome.paths if path.error), None)
    if error is not None:
        return f"{one.rule} breaks {one.law}: it raises {type(error).__name__}: {error}"
    solver = z3.Solver()
    solver.set(timeout=20_000)
    solver.add(*one.premises, z3.Not(one.term))
    result = solver.check()
    if result == z3.unsat:
        return None
    return describe(solver.model(), one) if result == z3.sat else f"z3 cannot tell whether {one.rule} keeps {one.law}"


def describe(model: Any, one: Claim) -> str:
    view = View(model)
    roles = [role for role, term in one.outcome.asks.items() if view.holds(term)]
    branch = model.eval(one.outcome.branch, True)
    arithmetic = view.holds(ARITHMETIC)
    kinds = ["derivation"] if arithmetic else ["preference", "repair", "stated"]
    names = set(re.findall(r"\w+", one.term.sexpr()))
    answers = [term for term in REPLIES if str(term) in names and str(term).removeprefix("other_") in kinds]
    task = ("arithmetic" if arithmetic else "retrieval") + ("" if view.holds(REPAIRABLE) else ", not repairable")
    lines = [f"{one.rule} breaks {one.law}. {one.says.splitlines()[0]}", f"  task: {task}"]
    lines += [view.line(answer, in_pool=one.premises is WORLD) for answer in (M, *answers)]
    lines += [f"  shipped by {branch}: {view.name(one.outcome.answer)}; asked: {', '.join(roles) or 'nobody'}"]
    lines += [f"  Eq. 3 demands {view.demand()}"] if one.rule in ("eldgr", "always(eldgr)", "decide") else []
    return "\n".join(lines)


class View:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.names = {self._value(NONE): "none", self._value(BLANK): "the empty answer"}

    def _value(self, term: Term) -> str:
        return str(self.model.eval(term, True))

    def name(self, answer: Term) -> str:
        return self.names.setdefault(self._value(answer), f"answer {chr(ord('A') + len(self.names) - 2)}")

    def holds(self, condition: Term) -> bool:
        return bool(z3.is_true(self.model.eval(condition, True)))

    def line(self, answer: Term, *, in_pool: bool) -> str:
        title = str(answer).replace("_", " ")
        if self.name(answer) == "none":
            return f"  {title}: none"
        facts = [self._value(mark(answer))]
        if title != "consensus":
            facts.append("in consensus's class" if self.holds(same(answer, M)) else "of another class")
        if in_pool and self.holds(pool(answer)):
            facts.append("a candidate's")
        return f"  {title}: {self.name(answer)}, {', '.join(facts)}"

    def demand(self) -> str:
        for case, branch, answer in ((CASE_S, "judge", P), (CASE_R, "repair", R), (CASE_D, "repair", D)):
            if self.holds(case):
                return f"{branch}: {self.name(answer)}"
        return f"consensus: {self.name(M)}"
