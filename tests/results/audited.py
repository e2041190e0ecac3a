"""Questions of which it is known what the audit says."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import DEFAULT_RULES, drive
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Consultation, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import Role, Task
from tests.case_tables import build, tables_of

Replies = Mapping[Role, Reply]

Entry = tuple[Case, list[str], Replies, Collection[Role]]
"""A question with its gold answers, what the roles would reply, and whose call fails."""

SILENT = Abstention("silent")
LATENESS = Abstention.failure(dspy.LMTimeoutError("late"))

EACH: dict[str, Any] = {"calls": 2, "prompt_tokens": 90, "completion_tokens": 10, "seconds": 0.5}


def outcome(case: Case, rule: str, replies: Replies, failures: Collection[Role] = ()) -> Outcome:
    """What a rule decides, where each consultation took two calls, a hundred tokens and half a second."""
    fields: dict[Role, Reply] = {}

    def ask(role: Role) -> Reply:
        fields[role] = LATENESS if role in failures else replies.get(role, SILENT)
        return fields[role]

    choice = drive(case.rule(rule)(case), ask)
    consultations = [_consult(role, reply) for role, reply in fields.items()]
    return Outcome(case.record(choice, fields), None, consultations)


def _consult(role: Role, reply: Reply) -> Consultation:
    """The consultation that gave a reply, as the journal has it."""
    if isinstance(reply, Abstention):
        fields: Any = {
            "outcome": "failed" if reply.failed else "abstained",
            "reason": reply.text if reply.failed else reply.reason,
        }
        return Consultation("p", "q", role, **fields, **EACH)
    return Consultation("p", "q", role, "ok", content={}, **EACH)


def rows_of(task: Task, questions: list[Entry], rules: tuple[str, ...] = DEFAULT_RULES) -> DecidedRows:
    rows = DecidedRows(task, rules)
    for number, (same, gold, replies, failures) in enumerate(questions):
        case = Case(replace(same.question, text=same.question.text + "?" * number), same.settings)  # each its own text
        rows.add(case, gold, {rule: outcome(case, rule, replies, failures) for rule in rules}, failures)
    return rows


def figures(task: Task, questions: list[Entry], rules: tuple[str, ...] = DEFAULT_RULES) -> Any:
    return pool_figures(rows_of(task, questions, rules))


def retrieval(answers: Sequence[str | None], text: str = "Doha is north of Lusail.", **settings: Any) -> Case:
    return Case(Question("Q?", "retrieval", tuple(answers), (), (Passage("", text),)), Settings(**settings))


def arithmetic(answers: Sequence[str | None], **settings: Any) -> Case:
    return Case(Question("There are 3 ships and 4 cars. How many?", "arithmetic", tuple(answers)), Settings(**settings))


SOUND = Derivation((Step("3 + 4", "7"),), "7", "7 - 4 = 3")
FAULTY = replace(SOUND, check="")
OPEN = ["Dubai", "Dubai", "Doha", "Lusail"]  # Dubai is nowhere, Doha and Lusail are

WORDS: dict[str, Any] = {"verdict": Verdict, "abstention": Abstention, "repair": Repair}
WORDS |= {"sound": lambda: SOUND, "faulty": lambda: FAULTY}


def entries(task: Task, case: Callable[[list[str | None]], Case]) -> list[Entry]:
    """The questions of a task in `cases.json`; in retrieval Dubai is nowhere in the evidence, Doha and Lusail are."""
    table = build(tables_of("results")[f"audited questions of {task}"]["cases"], WORDS)
    return [(case(answers), gold, replies, failures) for answers, gold, replies, failures in table.values()]


RETRIEVAL, ARITHMETIC = entries("retrieval", retrieval), entries("arithmetic", arithmetic)
NO_GOLD: list[Entry] = [(case, [], replies, failures) for case, _, replies, failures in RETRIEVAL]


def figures_word(task: Task, questions: list[Entry]) -> Callable[..., Any]:
    """A word of cases: the figures of these questions, under rules of one's own, with changes."""
    return lambda by=DEFAULT_RULES, **changes: figures(task, questions, tuple(by)) | changes


def tally(*questions: tuple[list[str | None], list[str]], by: Sequence[str] = DEFAULT_RULES) -> Any:
    """The figures of questions by their answers and gold answers, of which nobody was asked."""
    return figures("retrieval", [(retrieval(answers), gold, {}, ()) for answers, gold in questions], tuple(by))


POOLS = {"OPEN": figures_word("retrieval", RETRIEVAL), "SUMS": figures_word("arithmetic", ARITHMETIC)}
POOLS |= {"OPEN, UNSCORED": figures_word("retrieval", NO_GOLD), "ANSWERS": tally}
POOLS["OPEN, NOBODY ASKED"] = figures_word("retrieval", [(case, gold, {}, ()) for case, gold, *_ in RETRIEVAL])
