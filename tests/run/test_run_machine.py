"""Whole runs against a model of them: begun, stopped, cut at any byte, resumed, widened, refused and started anew."""

import shutil
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from eldgr_dspy.errors import RunChangedError, RunLockedError, RunStoppedError
from eldgr_dspy.journal import TornLineWarning, read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.run_directory import RunDirectory
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from tests.capitals import VERDICT, drop_times, row, write_pool
from tests.refusing import refuses

Key = tuple[str, str, str]
"""Pool, question id, role."""

Line = tuple[str, ...]
"""A line of a journal: a head's kind and name, or a consultation's key and outcome."""

POOLS = ("north", "south")
SPLIT, SURE = ("Nice", "Oslo", "Rome"), ("Nice", "Nice", "Paris")
ANSWERS = (SURE, SPLIT, ("Nice", "Paris", "Nice"), ("Paris", "Paris", "Paris"), SURE)
MUTE = 4  # the judge of this question says nothing that can be read
REPAIR = {"repaired_answer": "Paris", "repair_passage": 1}

PLANS = st.fixed_dictionaries(
    {
        "pools": st.sampled_from((("north",), ("south",), POOLS)),
        "rules": st.sampled_from((("majority",), ("majority", "judge"), ("eldgr",), ("majority", "judge", "eldgr"))),
        "limit": st.sampled_from((1, 3, None)),
    }
)
WORKERS = st.sampled_from((1, 3))
QUESTIONS = st.tuples(st.sampled_from(POOLS), st.sampled_from([f"q{number}" for number in range(len(ANSWERS))]))


def asking(pool: str, number: int) -> Any:
    return row(number, question=f"{pool}/q{number}: what is capital number {number}?", answers=ANSWERS[number])


def write_pools(folder: Path) -> None:
    for pool in POOLS:
        write_pool(folder / f"{pool}.jsonl", (asking(pool, number) for number in range(len(ANSWERS))))


def roles_of(number: int, rules: Sequence[str], judge_fails: bool = False) -> list[str]:
    """The roles that rules need on a question, in the order in which they need them."""
    if number == 3:  # all candidates agree
        return []
    judge = "judge" in rules or ("eldgr" in rules and ANSWERS[number] != SPLIT)
    repairer = "eldgr" in rules and (number != 0 or judge_fails)
    return ["judge"] * judge + ["repairer"] * repairer


class Script:  # answers by question and role, fails what it is told to fail, and keeps the key of every call
    def __init__(self, fails: Callable[[Key], bool] = lambda key: False) -> None:
        self.fails, self.calls = fails, list[Key]()
        self._lock = threading.Lock()

    def __call__(self, request: Any) -> Any:
        pool, question = next(
            (pool, f"q{number}")
            for pool in POOLS
            for number in range(len(ANSWERS))
            if f"{pool}/q{number}:" in text_of(request)
        )
        key = (pool, question, str(role_of(request)))
        with self._lock:
            self.calls.append(key)
        if self.fails(key):
            return dspy.LMServerError("the server is away")
        if key[2] == "judge":
            return "nothing that can be read" if question == f"q{MUTE}" else VERDICT
        return REPAIR


def selector_of(script: Script, *, model: str = "scripted/lm", **options: Any) -> Selector:
    selector = Selector(**options)
    selector.set_lm(scripted_lm(script, model=model))
    return selector


def plan_of(folder: Path, out: Path, plan: Mapping[str, Any], **more: Any) -> Plan:
    pools = [folder / f"{pool}.jsonl" for pool in plan["pools"]]
    return Plan(pools, out, rules=plan["rules"], limit=plan["limit"], **more)


@cache
def whole_run(pools: tuple[str, ...], rules: tuple[str, ...], limit: int | None, failures: frozenset[Key]) -> Any:
    """The summary of a plan that runs in a new directory, with just these calls failing, and its journal's lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pools(folder)
        plan = plan_of(folder, folder / "run", {"pools": pools, "rules": rules, "limit": limit}, max_failures="100%")
        summary = evaluate(selector_of(Script(failures.__contains__)), plan)
        return summary, lines_of(folder / "run" / "journal.jsonl")


def lines_of(journal: Path) -> list[Line]:
    heads: list[Any] = []
    results = [(*one.key, one.outcome) for one in read_journal(journal, heads)]
    return [*((head["kind"], head["name"]) for head in heads), *results]


@contextmanager
def warned_of_a_line(tear: bool) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            assert [one.category for one in notes] == [TornLineWarning] * tear


class RunMachine(RuleBasedStateMachine):
    """A run directory against the lines that its journal must hold.

    The lines come from what the runs were given and from the calls that the LM received, never from the library. Only
    their order, where workers race, is taken from the file.
    """

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.out = self.folder / "run"
        self.journal = self.out / "journal.jsonl"
        self.heads: set[tuple[str, str]] = set()
        self.ends: dict[Key, str] = {}
        self.failures: Counter[Key] = Counter()
        self.aside: list[bytes] = []
        self.tear = False
        write_pools(self.folder)

    # -- the model --

    def needs(self, plan: Mapping[str, Any], failing: tuple[str, str] | None = None) -> list[Key]:
        """What a plan has to ask, in order, where every call for the question `failing` fails."""
        results: list[Key] = []
        for pool in plan["pools"]:
            for number in range(min(len(ANSWERS), plan["limit"] or len(ANSWERS))):
                question = f"q{number}"
                judge_fails = failing == (pool, question) and (pool, question, "judge") not in self.ends
                keys = [(pool, question, role) for role in roles_of(number, plan["rules"], judge_fails)]
                results += [key for key in keys if key not in self.ends]
        return results

    def take(self, plan: Mapping[str, Any], script: Script) -> None:
        """Add the heads of a run that was let begin, and the lines of the calls that it made."""
        self.heads |= {("settings", "rule"), *(("pool", pool) for pool in plan["pools"])}
        for key in script.calls:
            self.heads.add(("role", key[2]))
            if script.fails(key):
                self.failures[key] += 1
            else:
                assert key not in self.ends, "asked again"
                self.ends[key] = "abstained" if key[1:] == (f"q{MUTE}", "judge") else "ok"
        self.tear = False

    @property
    def lines(self) -> Counter[Line]:
        outcomes = Counter((*key, outcome) for key, outcome in self.ends.items())
        failures = Counter({(*key, "failed"): times for key, times in self.failures.items()})
        return Counter[Line](self.heads) + Counter[Line](outcomes) + Counter[Line](failures)

    # -- the library --

    def evaluate(self, script: Script, plan: Mapping[str, Any], **more: Any) -> Any:
        with warned_of_a_line(self.tear and not more.get("fresh")):
            return evaluate(selector_of(script), plan_of(self.folder, self.out, plan, **more))

    def run_through(self, script: Script, plan: Mapping[str, Any], expected: list[Key], **more: Any) -> None:
        summary = self.evaluate(script, plan, **more)
        assert sorted(script.calls) == sorted(expected)
        self.take(plan, script)
        self.finish(script, plan, summary)

    def finish(self, script: Script, plan: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        """Compare a finished run's summary with an undisturbed run's."""
        failures = frozenset(key for key in script.calls if script.fails(key))
        expected, lines = whole_run(plan["pools"], plan["rules"], plan["limit"], failures)
        assert drop_times(summary["pools"]) == drop_times(expected["pools"])
        if Counter(lines) == self.lines:
            assert drop_times(summary) == drop_times(expected)
        for role, counts in summary["consultations"].items():
            assert counts["calls"] == sum(n for line, n in self.lines.items() if len(line) == 4 and line[2] == role)

    # -- the rules --

    @rule(plan=PLANS, workers=WORKERS)
    def run_to_the_end(self, plan: dict[str, Any], workers: int) -> None:
        """Begin, resume or widen: another set of rules, another limit or another pool is accepted."""
        self.run_through(Script(), plan, self.needs(plan), workers=workers)

    @rule(plan=PLANS, workers=WORKERS, question=QUESTIONS)
    def run_and_allow_failures(self, plan: dict[str, Any], workers: int, question: tuple[str, str]) -> None:
        script = Script(lambda key: key[:2] == question)
        self.run_through(script, plan, self.needs(plan, question), workers=workers, max_failures="100%")

    @rule(plan=PLANS, workers=WORKERS, question=QUESTIONS)
    def run_that_a_failure_stops(self, plan: dict[str, Any], workers: int, question: tuple[str, str]) -> None:
        script, expected = Script(lambda key: key[:2] == question), self.needs(plan)
        stopping = next((key for key in expected if script.fails(key)), None)
        if stopping is None:
            self.run_to_the_end(plan, workers)
            return
        refuses(RunStoppedError, "1 question failed", self.evaluate, script, plan, workers=workers)
        if workers == 1:
            assert script.calls == expected[: expected.index(stopping) + 1]
        assert [key for key in script.calls if script.fails(key)] == [stopping]
        assert not Counter(script.calls) - Counter(expected)
        self.take(plan, script)

    @precondition(lambda self: self.journal.exists())
    @rule(byte=st.integers(1, 99_999))
    def cut_anywhere(self, byte: int) -> None:  # hazard 88
        """A crash that loses the end of the journal, from any byte on."""
        whole = self.journal.read_bytes()
        cut = whole[: byte % (len(whole) + 1)]
        n_whole = cut.count(b"\n")
        note(f"cut after {len(cut)} of {len(whole)} bytes: {n_whole} whole lines are left")
        self.journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:n_whole]))
        lines = lines_of(self.journal)
        self.journal.write_bytes(cut)
        self.heads = {(line[0], line[1]) for line in lines if len(line) == 2}
        self.ends = {(line[0], line[1], line[2]): line[3] for line in lines if line[3:] in (("ok",), ("abstained",))}
        self.failures = Counter((line[0], line[1], line[2]) for line in lines if line[3:] == ("failed",))
        self.tear = not cut.endswith(b"\n") and cut != b""

    @rule(plan=PLANS)
    def open_it_twice(self, plan: dict[str, Any]) -> None:  # hazard 90
        script = Script()
        with warned_of_a_line(self.tear), RunDirectory(self.out):
            before, self.tear = self.journal.read_bytes(), False
            refuses(RunLockedError, "another process is writing to this run", self.evaluate, script, plan)
        assert (script.calls, self.journal.read_bytes()) == ([], before)

    @precondition(lambda self: ("settings", "rule") in self.heads)
    @rule(plan=PLANS)
    def change_a_setting(self, plan: dict[str, Any]) -> None:  # hazard 91
        self.expect_refusal(plan, Selector(certificate="token"), "other settings of the rule")

    @precondition(lambda self: {("role", "judge"), ("role", "repairer")} & self.heads)
    @rule(plan=PLANS)
    def change_the_model(self, plan: dict[str, Any]) -> None:  # hazard 91
        self.expect_refusal(self.resumed_plan(plan), Selector(), "another role .*\n  lm.model", model="scripted/other")

    @precondition(lambda self: ("role", "judge") in self.heads)
    @rule(plan=PLANS)
    def change_a_prompt(self, plan: dict[str, Any]) -> None:  # hazard 91
        selector = Selector()
        predict: Any = selector.judge.named_predictors()[0][1]
        predict.signature = predict.signature.with_instructions("Prefer the last.")
        self.expect_refusal(self.resumed_plan(plan), selector, "another role 'judge':\n.*instructions")

    @precondition(lambda self: any(kind == "pool" for kind, _ in self.heads))
    @rule(plan=PLANS)
    def change_a_pool(self, plan: dict[str, Any]) -> None:  # hazard 91
        plan = self.resumed_plan(plan)
        pool = plan["pools"][-1]
        rows = [asking(pool, number) for number in range(len(ANSWERS))]
        write_pool(self.folder / f"{pool}.jsonl", [*rows[:-1], rows[-1] | {"question": "Another?"}])
        self.expect_refusal(plan, Selector(), f"another pool '{pool}'")
        write_pools(self.folder)

    def resumed_plan(self, plan: dict[str, Any]) -> Any:
        """The plan, on the pools that the run has been begun with: only what has changed is then new."""
        return plan | {"pools": tuple(pool for pool in POOLS if ("pool", pool) in self.heads)}

    def expect_refusal(self, plan: dict[str, Any], selector: Selector, why: str, model: str = "scripted/lm") -> None:
        """Expect a refusal that makes no call and leaves every whole line as it was."""
        script, before = Script(), self.journal.read_bytes()
        selector.set_lm(scripted_lm(script, model=model))
        with warned_of_a_line(self.tear):
            refuses(RunChangedError, why, evaluate, selector, plan_of(self.folder, self.out, plan))
        assert (script.calls, self.journal.read_bytes()) == ([], before[: before.rfind(b"\n") + 1])
        self.tear = False

    @precondition(lambda self: self.journal.exists())
    @rule(plan=PLANS, workers=WORKERS)
    def start_anew(self, plan: dict[str, Any], workers: int) -> None:
        self.aside.append(self.journal.read_bytes())
        self.heads, self.ends, self.failures = set(), {}, Counter()
        self.run_through(Script(), plan, self.needs(plan), workers=workers, fresh=True)

    # -- what always holds --

    @invariant()
    def the_journal_holds_the_models_lines(self) -> None:
        if self.journal.exists() and not self.tear:
            assert Counter(lines_of(self.journal)) == self.lines

    @invariant()
    def what_was_set_aside_stays(self) -> None:
        contents = [(self.out / f"journal.jsonl.{number}").read_bytes() for number in range(1, len(self.aside) + 1)]
        assert contents == self.aside

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


TestRunMachine = pytest.mark.slow(RunMachine.TestCase)
TestRunMachine.settings = settings(
    max_examples=20, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
