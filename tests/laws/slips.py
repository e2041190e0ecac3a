"""Rules and certificates with one slip each, as a user would write them: what the kit is to catch whatever the seed."""

import re
from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import pairwise
from typing import Any

from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.decision import Choice, Rule, Steps, evidence_locked
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import TASKS

Passages = tuple[Passage, ...]
Certifies = Callable[[str, Passages], bool | None]


def fold(text: str) -> str:
    """The words of a text, what surrounds an answer taken off."""
    words = re.findall(r"[^\W_]+", strip_answer(text).casefold())
    return f" {' '.join(words)} "


def stands(answer: str, passages: Passages) -> bool:
    """A certificate as users write it: the words of the answer, in one passage or title."""
    return any(fold(answer) in fold(part) for one in passages for part in (one.text, one.title))


def allows(answer: str, passages: Passages) -> bool | None:
    return certify(answer, passages).certified


def join(separator: str, passages: Passages) -> Passages:
    return (Passage("", separator.join(one.text for one in passages)),)


def joining(separator: str) -> Certifies:
    return lambda answer, passages: allows(answer, passages) or allows(answer, join(separator, passages))


def joins_neighbours(answer: str, passages: Passages) -> bool | None:
    return allows(answer, passages) or any(allows(answer, join(" ", pair)) for pair in pairwise(passages))


def joins_chunks_of_a_title(answer: str, passages: Passages) -> bool | None:
    pairs = (pair for pair in pairwise(passages) if pair[0].title and pair[0].title == pair[1].title)
    return allows(answer, passages) or any(allows(answer, join(" ", pair)) for pair in pairs)


def joins_by_a_bar(answer: str, passages: Passages) -> bool:
    return stands(answer, passages) or strip_answer(answer) in join(" | ", passages)[0].text


def joins_sentences(answer: str, passages: Passages) -> bool:
    return fold(answer) in fold(". ".join(one.text.rstrip(".") for one in passages))


def joins_titles(answer: str, passages: Passages) -> bool:
    return fold(answer) in fold(" ".join(f"{one.title} {one.text}" for one in passages))


def joining_where(holds: Callable[[str, Passages], bool]) -> Certifies:
    return lambda answer, passages: stands(answer, join(" ", passages) if holds(answer, passages) else passages)


def drops_by_default(answer: str, passages: Passages, most: int = 120) -> bool | None:
    return len(answer) < most and allows(answer, passages)


def dropping(most: int) -> Certifies:
    return lambda answer, passages: len(answer) <= most and allows(answer, passages)


def drops(answer: str, passages: Passages, *, most: int) -> bool | None:
    return len(answer) <= most and allows(answer, passages)


class Careful:
    most = 25

    def __call__(self, answer: str, passages: Passages) -> bool | None:
        return len(answer) < self.most and allows(answer, passages)


def vetoed_by(*denials: str) -> Certifies:
    """A certificate that one passage takes back; `{}` is the answer."""

    def certificate(answer: str, passages: Passages) -> bool:
        text = " ".join(one.text for one in passages).casefold()
        plain = strip_answer(answer).casefold()
        return stands(answer, passages) and not any(denial.replace("{}", plain) in text for denial in denials)

    return certificate


def vetoed_where(holds: Callable[[Passages], bool]) -> Certifies:
    return lambda answer, passages: stands(answer, passages) and not holds(passages)


LIMIT = 60
SHORT_ENOUGH = re.compile(r"(?s).{1,50}")
DENIAL = re.compile(r"\b(?:disproved|retracted)\b", re.I)

CERTIFICATES: dict[str, Certifies] = {
    "joins by a space": joining(" "), "joins by lines": joining("\n"), "joins by nothing": joining(""),
    "joins neighbours": joins_neighbours, "joins chunks of a title": joins_chunks_of_a_title,
    "joins by a bar": joins_by_a_bar, "joins sentences": joins_sentences, "joins titles": joins_titles,
    "joins for long answers": joining_where(lambda answer, _: len(fold(answer)) > 30),
    "joins much": joining_where(lambda _, passages: len(passages) > 6),
    "joins for three words": joining_where(lambda answer, _: len(fold(answer).split()) >= 3),
    "drops over 40 characters": lambda answer, passages: False if len(answer) > 40 else allows(answer, passages),
    "drops over a limit of the module": lambda answer, passages: len(answer) <= LIMIT and allows(answer, passages),
    "drops over 8 words": lambda answer, passages: len(answer.split()) <= 8 and allows(answer, passages),
    "drops over a default": drops_by_default,
    "drops over what is closed over": dropping(33), "drops over a partial's": partial(drops, most=90),
    "drops by a pattern": lambda answer, passages: bool(SHORT_ENOUGH.fullmatch(answer)) and allows(answer, passages),
    "drops short ones": lambda answer, passages: len(answer) > 4 and allows(answer, passages),
    "drops by an attribute": Careful(),
    "vetoed by not X": lambda answer, passages: (
        stands(answer, passages) and not any(f"not {strip_answer(answer)}" in one.text for one in passages)
    ),
    "vetoed by X is not": vetoed_by("{} is not", "{} was not"),
    "vetoed by isn't": vetoed_by("it isn't {}", "{} isn't"), "vetoed by never": vetoed_by("never {}", "{} never"),
    "vetoed by no": vetoed_by(" no {}"), "vetoed by false": vetoed_by("{} is false", "{} is wrong"),
    "vetoed by contrary": vetoed_by("contrary to"), "vetoed by a word of its own": vetoed_by("debunked"),
    "vetoed by a pattern": vetoed_where(lambda passages: any(DENIAL.search(one.text) for one in passages)),
    "vetoed by a title": vetoed_where(lambda passages: any(one.title == "Errata" for one in passages)),
    "vetoed by much evidence": vetoed_where(lambda passages: sum(len(one.text) for one in passages) >= 2_000),
    "vetoed by many passages": lambda answer, passages: stands(answer, passages) and len(passages) <= 20,
    "vetoed by repetition": lambda answer, several: 0 < sum(fold(answer) in fold(one.text) for one in several) < 4,
}  # fmt: skip


def respelling(pick: Callable[[list[str]], str], branches: str = "consensus judge repair") -> Rule:
    def rule(case: Any) -> Steps:
        branch, answer = yield from evidence_locked(case)
        members = [one for one in case.question.answers if case.same(one, answer)]
        return Choice(branch, pick(members) if members and branch in branches.split() else answer)

    return rule


def ships_as_the_judge_spells(case: Any) -> Steps:
    if case.task == "arithmetic" or case.certified(case.consensus) is not False or not case.rival():
        return (yield from evidence_locked(case))
    verdict = yield "judge"
    preference = case.preferred(verdict)
    if preference is not None and case.certified(preference) is True and not case.same(preference, case.consensus):
        if case.settings.preference == "global":
            preference = case.question.answers[verdict.preferred]
        return Choice("judge", preference)
    return (yield from evidence_locked(case))


def ships_as_the_repairer_spells(case: Any) -> Steps:
    branch, answer = yield from evidence_locked(case)
    if branch == "repair" and case.task == "retrieval":
        answer = (yield "repairer").answer
    return Choice(branch, answer)


def shipping(change: Callable[[bool, str], str]) -> Rule:
    def rule(case: Any) -> Steps:
        branch, answer = yield from evidence_locked(case)
        return Choice(branch, answer and change(branch == "repair" and case.task == "arithmetic", answer))

    return rule


def trusting(holds: Callable[[Any, str], bool], tasks: Sequence[str] = TASKS) -> Rule:
    """The shipped rule, but that the judge has full authority where something holds of case and consensus."""

    def rule(case: Any) -> Steps:
        if case.task in tasks and case.contested and case.consensus and holds(case, case.consensus):
            preference = case.stated((yield "judge"))
            if preference is not None and not case.same(preference, case.consensus):
                return Choice("judge", preference)
        return (yield from evidence_locked(case))

    return rule


def with_a_shortcut(rule: Rule) -> Rule:
    """Full authority on one city, which only the decorator names."""

    @wraps(rule)
    def steps(case: Any) -> Steps:
        return (yield from (trusting(lambda *_: True) if "Zanzibar" in case.question.text else rule)(case))

    return steps


@with_a_shortcut
def ships_by_the_rule(case: Any) -> Steps:
    return (yield from evidence_locked(case))


YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
SMALL = {"zero", "none", "nobody"}


def value(answer: str | None) -> float:
    number = re.search(r"-?\d+(?:\.\d+)?", (answer or "").replace(",", "").replace("−", "-"))
    return float(number[0]) if number else 0.0


def deaf(drops: Callable[[str], bool], task: str = "arithmetic") -> Rule:
    def rule(case: Any) -> Steps:
        branch, answer = yield from evidence_locked(case)
        if case.task == task and branch != "consensus" and drops(answer):
            return Choice("consensus", case.consensus)
        return Choice(branch, answer)

    return rule


def forgets_zero(case: Any) -> Steps:
    if case.task == "arithmetic" and case.repairable:
        result = case.derived((yield "deriver"))
        if result is None or not value(result):
            return Choice("consensus", case.consensus)
    return (yield from evidence_locked(case))


RULES: dict[str, Rule] = {
    "ships as the judge spells": ships_as_the_judge_spells,
    "ships as the repairer spells": ships_as_the_repairer_spells,
    "ships the shortest spelling": respelling(lambda members: min(members, key=len)),
    "ships the longest spelling": respelling(lambda members: max(members, key=len)),
    "ships the first spelling": respelling(lambda members: members[0]),
    "ships the last spelling": respelling(lambda members: members[-1]),
    "ships the most frequent spelling": respelling(lambda members: max(members, key=members.count)),
    "ships the least spelling": respelling(min),
    "ships the greatest spelling": respelling(max),
    "ships a capitalised spelling": respelling(lambda members: max(members, key=lambda one: one[0].isupper())),
    "ships the judge's longest spelling": respelling(lambda members: max(members, key=len), "judge"),
    "ships the judge's shortest spelling": respelling(lambda members: min(members, key=len), "judge"),
    "ships the repair's first spelling": respelling(lambda members: members[0], "repair"),
    "ships the repair's shortest spelling": respelling(lambda members: min(members, key=len), "repair"),
    "ships the repair's longest spelling": respelling(lambda members: max(members, key=len), "repair"),
    "ships without an article": shipping(lambda _, answer: answer.removeprefix("The ")),
    "full authority where consensus contains a 7": trusting(lambda _, answer: "7" in answer),
    "full authority where consensus is a year": trusting(lambda _, answer: bool(YEAR.search(answer))),
    "full authority where consensus is listed": trusting(lambda _, answer: answer.lower() in SMALL),
    "full authority where consensus starts so": trusting(lambda _, answer: answer.startswith("Saint ")),
    "full authority where consensus ends so": trusting(lambda _, answer: answer.endswith("burg")),
    "full authority where consensus has a hyphen": trusting(lambda _, answer: "-" in answer),
    "full authority where consensus has 4 words": trusting(lambda _, answer: len(answer.split()) == 4),
    "full authority where the question asks who": trusting(lambda case, _: "who " in case.question.text.lower()),
    "full authority where a decorator says so": ships_by_the_rule,
    "full authority where a title says so": trusting(
        lambda case, _: any(one.title == "Encyclopedia" for one in case.question.passages)
    ),
    "full authority in pools of 9": trusting(lambda case, _: len(case.question.answers) == 9),
    "full authority over 25 passages": trusting(lambda case, _: len(case.question.passages) > 25),
    "full authority over 1,000 in sums": trusting(lambda _, answer: value(answer) > 1_000, ["arithmetic"]),
    "full authority where a sum ends in 00": trusting(lambda _, answer: answer.endswith("00"), ["arithmetic"]),
    "drops negative derivations": deaf(lambda answer: answer.startswith("-")),
    "drops derivations below 0": deaf(lambda answer: value(answer) < 0),
    "drops derivations that are not digits": deaf(lambda answer: not answer.isdigit()),
    "drops derivations with a point": deaf(lambda answer: "." in answer),
    "drops derivations over 500": deaf(lambda answer: value(answer) > 500),
    "drops derivations with a comma": deaf(lambda answer: "," in answer),
    "ships the absolute value": shipping(lambda result, answer: answer.lstrip("-") if result else answer),
    "forgets zero": forgets_zero,
    "deaf to certified answers over 200 characters": deaf(lambda answer: len(answer) > 200, "retrieval"),
    "deaf to certified answers over 12 words": deaf(lambda answer: len(answer.split()) > 12, "retrieval"),
}
