"""What rules do, and what they stand on, as hashes over fixed examples: another hash is another behaviour.

A rule is driven over every small pool and over every reply that can lead it elsewhere; votes, scores, certificates,
derivations and the answers found in texts are tried on lists of cases that are easily got wrong. An equal hash says
that nothing has changed on these, and no more; which version of the package it was is stated beside it. Ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import pairwise, product
from typing import Any

from eldgr_dspy.answers import answer_class, score
from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Evidence, Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.decision import Rule, drive
from eldgr_dspy.derivations import check_derivation
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.programs.run.exchanges import exchanges
from eldgr_dspy.programs.run.ways import Ask, every_way
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.reach import reach
from eldgr_dspy.words import TASKS, Role, Task

_MOST_CANDIDATES = 3  # consensus, the judge's preference, and one that is neither
_QUESTION = "There are 3 large ships and 4 small ones. How many is that, and where do they lie?"
_PASSAGES = (Passage("Lyon", "The Rhone is there, and so is nothing else."), Passage("", "Oslo lies by the sea: 7."))
_ANSWERS: Mapping[Task, Sequence[str | None]] = {
    "retrieval": ("Lyon", "Oslo", "Nice", "yes", None),  # certified, certified, not, beyond certificates, no answer
    "arithmetic": ("7", "8", None),
}
_SPANS = ("Lyon", "the sea", "Rome")  # a candidate's, a certified one of its own, and one that is nowhere
_DERIVATIONS = (
    Derivation((Step("3 + 4", "7"),), "7", "7 - 4 = 3"),
    Derivation((Step("3 * 4", "12"),), "12", "12 / 4 = 3"),
    Derivation((Step("3 + 4", "8"),), "8", "8 - 4 = 3"),
    Derivation((Step("5 + 3", "8"),), "8", "8 - 3 = 5"),
    Derivation((Step("3 + 4", "7"),), "7", "3 + 4 = 7"),
    Derivation((Step("3 + 4", "7"),), "7", ""),
    Derivation((), "7", "7 - 4 = 3"),
    Derivation((Step("4 large", "4"),), "4", "four"),
)
_REACHED = (
    "3 ships and 4",
    "4 of 12 dozen for 3 weeks",
    "$20 and 15% of 40 cups",
    "2, 3, 5, 7, 11, 13, 17 and 19 ships",
)
_TEXTS = (
    *("Paris", "the Paris", "PARIS.", "-Paris", "St. Louis", "New York-based", "O'Brien", "“Paris”", "São Paulo"),
    *("Sa\u0303o Paulo", "straße", "STRASSE", "İstanbul", "ﬁne", "fine", "x\u00a0y", "x y", "Pa\u200bris", "Раris"),
    *("7", "-7", "- 7", "\u22127", "+7", "7.0", "07", ".7", "0,7", "7%", "7 %", "0.07", "$7", "US$ 7", "7$", "1,000"),
    *("1.000", "1000", "1 000", "1e3", "10^3", "3 1/2", "7/2", "½", "①", "٧", "7'", '7"', "<7", ">= 7", "7 ships"),
    *("A", "A-", "A+", "C", "C++", "C#", "a", "the", "...", "-", "", " ", "\u200b", "yes", "No.", "true", "noanswer"),
    *("#### 7", "The answer is 7.", "The answer is not 7", "It is 7 or 8", "Answer: Paris", r"so \boxed{7}", "3 + 4"),
    *("Finish[Paris]", "#### 7 ships\nThe answer is 8", "7 million", "#### ", "the final answer: the sea. Or Rome"),
)
_EVIDENCE = (
    Passage("Paris", "A party of 1942: 7 ships, 7.5 % of 1,000, and C++ by O\u2019Brien of Sa\u0303o Paulo."),
    Passage("", "In the Straße it is \u22127, ½, 3 1/2, 7%, $7 or 10^3; yes, ﬁne, x\u00a0y. A- is not А."),
)


def rule_behaviour(name: str, settings: Settings) -> dict[str, Any]:
    """Return what the rule of that name does under settings on every pool of up to three candidates and every reply.

    Returns:
        `asks`: for each task, the orders in which roles are asked, one for each way through the rule. `ways`: how many
        ways through it were tried. `sha256`: sixteen digits of a hash over all of them, with what each ships.
    """
    asks: dict[str, list[str]] = {}
    hashed, ways = sha256(), 0
    for task in TASKS:
        orders: set[tuple[Role, ...]] = set()
        for case in _cases(task, settings):
            run = partial(_shipped, case.rule(name), case)
            for replies, shipped in every_way(run, {}, _replies(len(case.question.answers))):
                hashed.update(f"{task} {case.question.answers} {list(replies.items())} {shipped}\n".encode())
                orders.add(tuple(replies))
                ways += 1
        asks[task] = [", ".join(order) or "nobody" for order in sorted(orders, key=lambda one: (len(one), one))]
    return {"asks": asks, "ways": ways, "sha256": hashed.hexdigest()[:16]}


def foundations(settings: Settings) -> dict[str, str]:
    """Return sixteen digits for each thing that rules stand on: what it says of the examples under these settings."""
    evidence = Evidence(_EVIDENCE, settings.certificate)
    said: dict[str, list[object]] = {
        "votes": [answer_class(text, task) for text, task in product(_TEXTS, TASKS)],
        "scores": [score(text, [gold], task) for (text, gold), task in product(pairwise(sorted(_TEXTS)), TASKS)],
        "answers_found": [extract_answer(text, task) for text, task in product(_TEXTS, TASKS)],
        "certificates": [evidence.certify(text) for text in _TEXTS],
        "derivations": [check_derivation(one, _QUESTION, settings.derivation) for one in _DERIVATIONS],
    }
    if settings.derivation == "bounded":
        said["derivations"] += [sorted(reach(question)) for question in _REACHED]
    hashed = {name: sha256(repr(found).encode()).hexdigest()[:16] for name, found in said.items()}
    return hashed | exchanges()


def _cases(task: Task, settings: Settings) -> Iterator[Case]:
    for n in range(_MOST_CANDIDATES + 1):
        for answers in product(_ANSWERS[task], repeat=n):
            yield Case(Question(_QUESTION, task, answers, passages=_PASSAGES), settings)


def _replies(n: int) -> Mapping[Role, Sequence[Reply]]:
    """What each role may reply about a pool of `n` candidates; a judge also with scores that rise and that fall."""
    rising = tuple((index + 1) / (n + 1) for index in range(n))
    silent: list[Reply] = [Abstention("silent")]
    return {
        "judge": [*silent, *(Verdict(one, scores) for one in range(n) for scores in (None, rising, rising[::-1]))],
        "repairer": [*silent, *map(Repair, _SPANS)],
        "deriver": [*silent, *_DERIVATIONS[:4]],
    }


def _shipped(rule: Rule, case: Case, ask: Ask) -> object:
    """What a rule ships; of one of the user's that fails here, as it would on such a question, the error's name."""
    try:
        return tuple(drive(rule(case), ask))
    except EldgrError as error:
        return type(error).__name__
