"""How long five samples take at an LM of 0.3 s, and how many samples stopping early spares on real pools.

Run: python -m benchmarks.early_stopping

The wall is the best of three calls of `Sampled` after a first one, in threads and in tasks. On a pool, the candidates
of a question are its samples in their order, and `n` is how many there are. Printed are the share of samples spared and
two counts of questions that ship another class than with all samples: while all roles abstain, and for some reply of
repairer or deriver. Each answer of the pool is tried as that reply, and a derivation counts as checked.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from timeit import repeat
from typing import Any

import dspy

from benchmarks._timing import line, pools_dir
from eldgr_dspy import Sampled
from eldgr_dspy.answer_types.answers import class_key
from eldgr_dspy.decision import drive
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.stopping import Posterior, Settled, Stop, next_batch

POOLS = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")
REPLY = "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]"
INPUTS = {"context": ["Doha is the capital of Qatar."], "question": "What is the capital of Qatar?"}


def walls() -> None:
    """Print the wall of a question with five samples, sync and async."""
    program = Sampled(dspy.Predict("context: list[str], question -> answer"), n=5)
    with dspy.context(lm=scripted_lm(lambda _: REPLY, delay=0.3)):
        calls: dict[str, Callable[[], Any]] = {
            "threads": lambda: program(**INPUTS),
            "tasks": lambda: asyncio.run(program.acall(**INPUTS)),
        }
        for way, call in calls.items():
            call()
            line(f"5 samples of 0.3 s in {way}", min(repeat(call, number=1, repeat=3)), "s", "under 0.45")


class AnyDerivation(Case):
    """A case in which whatever the deriver says is taken as checked."""

    def derived(self, reply: Reply) -> str | None:
        return reply.answer if isinstance(reply, Derivation) else None


def case_at_stop(stop: Stop, question: Question, settings: Settings) -> Case:
    """Return the samples that are drawn of a question under a rule for stopping."""
    n = len(question.answers)
    case = _first(question, 0, settings)
    while more := next_batch(stop, case, n):
        case = _first(question, len(case.question.answers) + more, settings)
        if len(case.question.answers) == n:
            break
    return case


def _first(question: Question, n: int, settings: Settings) -> Case:
    return AnyDerivation(replace(question, answers=question.answers[:n], texts=question.texts[:n]), settings)


SILENT: dict[str, Reply] = dict.fromkeys(("judge", "repairer", "deriver"), Abstention("nothing"))


def replies(question: Question) -> Iterator[dict[str, Reply]]:
    """Yield what the roles may say that ships something else: the repairer or deriver gives each answer of the pool."""
    for one in dict.fromkeys(answer for answer in question.answers if answer):
        yield SILENT | {"repairer": Repair(one), "deriver": Derivation((), one, "")}


def ships(case: Case, reply_of: dict[str, Reply]) -> str | None:
    return class_key(drive(case.rule("eldgr")(case), reply_of.__getitem__).answer, case.task)


def print_saving(name: str, stop: Stop, settings: Settings) -> None:
    """Print the share of samples that a rule spares on a pool, and how many questions then ship another class."""
    total = draws = changes = might = n = 0
    for row in open_pool(pools_dir() / f"{name}.jsonl.gz").rows():
        question = row.to_question()
        case, whole = case_at_stop(stop, question, settings), _first(question, len(question.answers), settings)
        n, total, draws = n + 1, total + len(question.answers), draws + len(case.question.answers)
        if len(case.question.answers) < len(question.answers):
            changes += ships(case, SILENT) != ships(whole, SILENT)
            might += any(ships(case, reply) != ships(whole, reply) for reply in replies(question))
    options = ", homogeneous=repair" if settings.homogeneous else ""
    line(f"{name}, {stop}{options}: {changes} + {might} of {n} change", 100 * (total - draws) / total, "%")


def main() -> None:
    walls()
    for name in POOLS:
        print_saving(name, Settled(), Settings())
        if name in ("gsm8k-openai4", "svamp-codex8"):
            print_saving(name, Settled(), Settings(homogeneous="repair"))
        print_saving(name, Posterior(), Settings())


if __name__ == "__main__":
    main()
