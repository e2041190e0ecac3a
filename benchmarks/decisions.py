"""Processor time of a decision: the rule alone, and the framework around a judged one.

Run: python -m benchmarks.decisions

The evidence is about 6 kB in ten passages, with four candidates. The first part makes no LM call. The second has a
scripted LM that answers at once; from its time, subtract that of a bare `dspy.Predict` with the same signature and
DSPy's JSON adapter. The third is a decision of each answer type on its demo pool, in which all roles abstain.
Mathematics is compared in another process, whose time is not counted. The
first line is the time of reading a sample for its answer.
"""

from functools import partial
from pathlib import Path

import dspy

from benchmarks._timing import cpu, line
from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import drive
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.engines.strict import STRICT
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.signatures import JudgeCandidates

FILLER = "The river rises in the hills, runs past the old mill and the market town, and reaches the sea at Port Alma. "
SILENT = Abstention("silent")


def question(number: int, answers: tuple[str, ...]) -> Question:
    """Return a question whose evidence has not been folded before."""
    passages = tuple(Passage(f"Passage {index}", f"Number {number}. {FILLER * 5}") for index in range(10))
    return Question(f"Where does river {number} reach the sea?", "retrieval", answers, (), passages)


def decide_all(questions: list[Question]) -> None:
    """Decide each question while all roles abstain."""
    for one in questions:
        case = Case(one)
        case.record(drive(case.rule("eldgr")(case), lambda role: SILENT), {})


def select_all(selector: Selector, questions: list[Question]) -> None:
    """Select for each question through the DSPy module."""
    for one in questions:
        selector(question=one.text, candidates=list(one.answers), evidence=[p.text for p in one.passages])


def print_types() -> None:
    """Print the time of a decision for each answer type, when its comparisons are known."""
    for kind, name in (("short", "retrieval"), ("number", "arithmetic"), ("choice", "choice"), ("math", "math")):
        questions = [row.to_question() for row in open_pool(Path(f"artifacts/demo-{name}.jsonl")).rows()]
        line(f"a decision of the type {kind}", cpu(partial(decide_all, questions)) / len(questions) * 1e3, "ms")


def print_samples() -> None:
    """Print the time that it takes to read a sample for its answer."""
    steps = "She sells 9 boxes at $2 each. " * 8
    samples = [
        f"{before}{steps}\n{end}" for before in ("", "<think>Maybe 17?</think>") for end in ("#### 18", "So it is 18.")
    ]
    seconds = cpu(lambda: [read_sample(one, "number") for one in samples * 100]) / 400
    line("reading a sample of 250 characters", seconds * 1e6, "us")


def main() -> None:
    print_samples()
    n = 500
    certified = [question(i, ("Port Alma", "Port Alma", "Mill Town", "Hillfoot")) for i in range(n)]
    disputes = [question(i, ("Mill Town", "Mill Town", "Port Alma", "Hillfoot")) for i in range(n)]
    size = sum(len(passage.text) for passage in certified[0].passages)
    print(f"evidence: {size:,} characters in 10 passages; 4 candidates; {n} questions; processor time, best of 5")
    line("a decision, consensus certified, folding included", cpu(lambda: decide_all(certified)) / n * 1e3, "ms", "0.1")
    line("a decision, contested, every certificate sought", cpu(lambda: decide_all(disputes)) / n * 1e3, "ms", "0.1")

    verdict = {"assessments": [], "preferred": 2, "judge_rationale": "it says so"}
    lm = scripted_lm(lambda request: verdict)
    n = 200
    few = disputes[:n]
    inputs = [one.role_inputs("judge") for one in few]
    bare, judge, selector = dspy.Predict(JudgeCandidates), Judge(), Selector()

    def ask(module: dspy.Module) -> None:
        for fields in inputs:
            module(**fields)

    with dspy.context(lm=lm, adapter=dspy.JSONAdapter(), disable_history=True):
        floor = cpu(lambda: ask(bare)) / n * 1e3
    with dspy.context(lm=lm, adapter=STRICT, disable_history=True):
        strict = cpu(lambda: ask(bare)) / n * 1e3
    with dspy.context(lm=lm, disable_history=True):
        role = cpu(lambda: ask(judge)) / n * 1e3
        whole = cpu(lambda: select_all(selector, few)) / n * 1e3
        silence = cpu(lambda: select_all(selector, certified[:n])) / n * 1e3
    line("bare dspy.Predict with DSPy's JSON adapter, a call", floor, "ms")
    line("bare dspy.Predict with our strict adapter, a call", strict, "ms")
    line("the judge's role, a call (fenced, parsed strictly)", role, "ms")
    line("Selector, one judged decision", whole, "ms")
    line("Selector, one judged decision, over the bare call with DSPy's adapter", whole - floor, "ms", "0.2")
    line("Selector, one judged decision, over the bare call with ours", whole - strict, "ms")
    line("Selector, one decision that asks nobody", silence, "ms")
    print_types()


if __name__ == "__main__":
    main()
