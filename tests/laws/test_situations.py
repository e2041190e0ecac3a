"""The small situations are enough to catch a rule that errs in one place: no seed decides whether it is caught."""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from eldgr_dspy import decision
from eldgr_dspy.decision import Choice, Rule, evidence_locked
from eldgr_dspy.laws import LAW, LawBroken
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import Subject
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Repair, Verdict
from eldgr_dspy.testing import check_laws
from eldgr_dspy.words import TASKS, Task
from tests.laws.plants import LISTED, Plant, changed, planted, plants
from tests.laws.slips import CERTIFICATES

pytestmark = pytest.mark.slow  # the kit on each small situation

TUTORIAL = LISTED["blocks"]["tutorial"]
WANTED = ["certified_consensus_is_final", "inapplicable_consensus_is_final", "override_needs_a_certificate"]
WANTED += ["failed_judge_equals_silent_judge", "homogeneous_pools_consult_no_judge"]
NO_REPAIR = "the_cases_partition"
"""The one law that the tutorial's rule is not meant for."""

ABOUT_ONE_DECISION = [law.name for law in OF_RULES if law.number <= 8 or law.number in (15, 17)]
"""Those that try nothing else beside it, and the one of the tutorial's that does: quick, and enough here."""


def rule_of(text: str) -> Rule:
    names: dict[str, Any] = {"Choice": Choice, "evidence_locked": evidence_locked}
    exec(text, names)  # noqa: S102 -- our own text
    rule: Rule = names["rule"]
    return rule


SITUATIONS = cache(lambda task: list(situations(task)))
CASES = cache(Case)
"""The situations and their cases, which no rule changes: each class and certificate is found once for all mutants."""


def by_the_situations_alone(rule: Rule, laws: Sequence[str], answer: Task | None = "short") -> None:
    for trial in SITUATIONS(answer):
        outcome = Subject(rule, CASES).settle(trial)
        for law in laws:
            LAW[law].check(outcome)


@pytest.mark.parametrize("plant", plants("tutorial", "tutorial_otherwise"), ids=lambda plant: plant.name)
def test_a_slip_in_the_tutorial_s_rule_breaks_one_of_the_tutorial_s_laws_or_some_law(plant: Plant) -> None:
    laws = WANTED if plant in plants("tutorial") else [law for law in ABOUT_ONE_DECISION if law != NO_REPAIR]
    with pytest.raises(LawBroken):
        by_the_situations_alone(rule_of(changed(plant, TUTORIAL)), laws)


def test_the_tutorial_s_rule_itself_passes() -> None:
    tried = check_laws(rule_of(TUTORIAL), without=[NO_REPAIR], answer="short", max_examples=1)
    assert NO_REPAIR not in tried
    assert min(count for name, count in tried.items() if name not in OF_REPAIR_OR_SUMS) > 0


OF_REPAIR_OR_SUMS = ("repair_only_when_neither_is_certified", "unchecked_derivation_changes_nothing")
LOCKED = "".join(inspect.getsource(part) for part in (evidence_locked, decision._derive, decision._overrides))
LAWFUL = {"the judge asked in every contested pool"}
"""It asks too often, and no law about what ships forbids that."""
PLANTS = plants("shipping", "asking", "repairing")
PLANTS = [plant for plant in PLANTS if plant.was in LOCKED and plant.name not in LAWFUL]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "_"))
def test_a_slip_in_the_shipped_rule_breaks_some_law(plant: Plant) -> None:
    module = planted(plant)
    vars(module)["Choice"] = Choice  # the planted one is another class of the same name
    with pytest.raises(LawBroken):
        by_the_situations_alone(module.evidence_locked, ABOUT_ONE_DECISION, answer=None)


def with_authority(mark: str, before: str, after: str = "True") -> Rule:
    """The shipped rule, but that the judge has full authority where something holds before and after it is asked."""
    return rule_of(f"""
def rule(case):
    consensus = case.consensus or ""
    if case.contested and {mark} and {before}:
        preference = case.stated((yield "judge"))
        if preference and not case.same(preference, consensus) and {after}:
            return Choice("judge", preference)
    return (yield from evidence_locked(case))
""")


SETTLED, UNSETTLED = (f"case.task == 'retrieval' and case.certified(consensus) is {one}" for one in (True, False))
SUM = "case.task == 'arithmetic'"
LENGTHS = ("> 3", "> 5", "> 8", "> 12", "> 20", "> 40", "< 20", "< 12", "< 8", "< 5", "< 3")
RIVAL = ("case.rival()", "not case.rival()")
OF_MUCH = ["len(case.question.answers) > 12", "len(case.question.passages) > 12", "len(case.question.text) > 300"]
OF_MUCH += ["any(len(text) > 150 for text in case.question.texts)"]
OF_LENGTHS = [f"len(preference) {length}" for length in LENGTHS]
OF_LENGTHS += ["len(preference) > len(consensus)", "len(preference) < len(consensus)"]
OF_WORDS = ["preference > consensus", "preference < consensus", "preference in consensus", "consensus in preference"]
OF_WORDS += ["preference.islower()", "preference.isdigit()", "not preference.isascii()"]
BIASED: list[tuple[str, str, str, Task | None]] = [
    *((mark, f"len(consensus) {length}", "True", None) for mark in (SETTLED, UNSETTLED, SUM) for length in LENGTHS),
    *((mark, much, "True", "short") for mark in (SETTLED, UNSETTLED) for much in OF_MUCH),
    *((UNSETTLED, rival, after, "short") for rival in RIVAL for after in (*OF_LENGTHS, *OF_WORDS)),
    *((SUM, "True", after, "number") for after in OF_LENGTHS if after != "len(preference) < 3"),
]
"""Where consensus or the preference is long, short, above the other, or where there is much of something."""


@pytest.mark.parametrize(("mark", "before", "after", "answer"), BIASED)
def test_authority_by_lengths_or_words_breaks_some_law(mark: str, before: str, after: str, answer: Task | None) -> None:
    with pytest.raises(LawBroken):
        by_the_situations_alone(with_authority(mark, before, after), ABOUT_ONE_DECISION, answer=answer)


@pytest.mark.parametrize("n", [3, 5, 8, 12, 20, 40, 80])
@pytest.mark.parametrize("deaf", ["len(case.consensus) > {}", "len(case.consensus) <= {}"])
def test_a_rule_that_hears_nobody_where_consensus_is_long_or_short_breaks_some_law(deaf: str, n: int) -> None:
    def rule(case: Any) -> Any:
        if case.consensus and eval(deaf.format(n), {"case": case}):  # noqa: S307 -- our own text
            return Choice("consensus", case.consensus)
        return (yield from evidence_locked(case))

    with pytest.raises(LawBroken):
        by_the_situations_alone(rule, ABOUT_ONE_DECISION)


@pytest.mark.parametrize("longer", [True, False])
def test_a_repair_that_ships_for_its_length_breaks_some_law(longer: bool) -> None:
    def rule(case: Any) -> Any:
        choice = yield from evidence_locked(case)
        if case.task == "retrieval" and choice.branch == "consensus" and case.certified(case.consensus) is False:
            repair = case.repaired((yield "repairer")) if case.repairable else None
            surplus = len(repair or "") - len(case.consensus or "")
            if repair and surplus and (surplus > 0) is longer:
                return Choice("repair", repair)
        return choice

    with pytest.raises(LawBroken):
        by_the_situations_alone(rule, ABOUT_ONE_DECISION)


def test_a_certificate_that_joins_passages_is_shown_with_an_answer_in_two_of_them() -> None:
    with pytest.raises(LawBroken, match=r"^Law 12, evidence_order_and_duplicates_do_not_matter") as caught:
        check_laws(certificate=CERTIFICATES["joins by a space"], max_examples=0)
    question = caught.value.outcome.trial.question
    assert "fine art" in question.answers
    assert {"and this is a fine", "art can be seen"} <= {passage.text for passage in question.passages}


def test_the_shipped_rule_keeps_every_law_in_every_situation_and_each_has_something_to_say() -> None:
    subject = Subject(evidence_locked)
    counts = dict.fromkeys((law.name for law in OF_RULES), 0)
    for trial in situations():
        judge, outcome = trial.reply("judge"), subject.settle(trial)
        assert not isinstance(judge, Verdict) or judge.preferred < len(trial.question.answers)
        assert not isinstance(trial.reply("repairer"), Repair) or trial.question.task == "retrieval"
        for law in OF_RULES:
            counts[law.name] += law.check(outcome)
    assert min(counts.values()) > 0, counts


def test_the_situations_are_of_the_task_that_is_asked_for_and_some_eleven_hundred() -> None:
    by_task = {task: list(situations(task)) for task in TASKS}
    for task, several in by_task.items():
        assert {trial.question.task for trial in several} == {task}
    assert list(situations()) == [*by_task["retrieval"], *by_task["arithmetic"]]
    assert 1_000 < len(list(situations())) < 1_200


def test_among_them_is_the_judge_s_yes_or_no_against_an_uncertified_consensus_where_another_is_certified() -> None:
    """What three hundred drawn trials met once in two hundred and fifty, and a rule with `is not False` gets wrong."""
    outcomes = [one for one in map(Subject(evidence_locked).settle, situations("retrieval")) if one.mark is False]
    assert sum(one.case.rival() and one.case.certified(one.preference) is None for one in outcomes) == 14
