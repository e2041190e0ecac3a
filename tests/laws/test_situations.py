"""The small situations are enough to catch a rule that errs in one place, so that no seed decides whether it is caught.

Each mutant is one exact replacement in a lawful rule: that of the tutorial, or the shipped one as `plants` has it.
"""

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
from tests.laws.plants import ASK_THE_JUDGE, ASKING, SHIPPING, Plant, planted
from tests.laws.slips import CERTIFICATES

pytestmark = pytest.mark.slow  # the kit on each small situation

TUTORIAL = """
def rule(case):
    if case.certified(case.consensus) is False and case.rival():
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is True:
            return Choice("judge", preference)
    return Choice("consensus", case.consensus)
"""
WANTED = [
    "certified_consensus_is_final",
    "inapplicable_consensus_is_final",
    "override_needs_a_certificate",
    "failed_judge_equals_silent_judge",
    "homogeneous_pools_consult_no_judge",
]
NO_REPAIR = "the_cases_partition"
"""The one law that the tutorial's rule is not meant for."""

ABOUT_ONE_DECISION = [law.name for law in OF_RULES if law.number <= 8 or law.number in (15, 17)]
"""Those that try nothing else beside it, and the one of the tutorial's that does: quick, and enough here."""

PREFERENCE, ASK = "case.certified(preference) is True", 'case.preferred((yield "judge"))'
OPEN = "case.certified(case.consensus) is False"


def rule_of(text: str) -> Rule:
    names: dict[str, Any] = {"Choice": Choice, "evidence_locked": evidence_locked}
    exec(text, names)  # noqa: S102 -- our own text
    rule: Rule = names["rule"]
    return rule


def mutant(old: str, new: str) -> Rule:
    assert TUTORIAL.count(old) == 1, old
    return rule_of(TUTORIAL.replace(old, new))


CAUGHT_BY_THE_WANTED = {
    "an inapplicable preference overrides": (PREFERENCE, "case.certified(preference) is not False"),
    "only an inapplicable preference overrides": (PREFERENCE, "case.certified(preference) is None"),
    "an uncertified preference overrides": (PREFERENCE, "case.certified(preference) is False"),
    "any preference overrides": (PREFERENCE, "preference is not None"),
    "silence overrides": (PREFERENCE, "True"),
    "an inapplicable consensus is open": (OPEN, "case.certified(case.consensus) is not True"),
    "only an inapplicable consensus is open": (OPEN, "case.certified(case.consensus) is None"),
    "a certified consensus is open": (OPEN, "case.certified(case.consensus) is not None"),
    "only a certified consensus is open": (OPEN, "case.certified(case.consensus) is True"),
    "every consensus is open": (f"{OPEN} and ", ""),
    "no rival is looked for": (" and case.rival()", ""),
    "a tie is taken for a contest": ("case.rival()", "not case.vote.tie"),
    "the first ships by default": ('"consensus", case.consensus', '"consensus", case.first'),
}
CAUGHT_BY_SOME_LAW = {
    "silence counts as the first candidate": (ASK, f"{ASK} or case.first"),
    "an abstention is index 0": (ASK, 'case.question.answers[getattr((yield "judge"), "preferred", 0)]'),
    "what the judge states, not what it stands for": (ASK, 'case.stated((yield "judge"))'),
    "the preference in the name of consensus": ('Choice("judge"', 'Choice("consensus"'),
    "ties are left alone": ("case.rival()", "case.rival() and not case.vote.tie"),
    "a preference for the first is not heard": (PREFERENCE, f"{PREFERENCE} and preference != case.first"),
    "consensus in the judge's name": ('"judge", preference', '"judge", case.consensus'),
}

SITUATIONS = cache(lambda task: list(situations(task)))
CASES = cache(Case)
"""The situations and their cases, which no rule changes: each class and certificate is found once for all mutants."""


def by_the_situations_alone(rule: Rule, laws: Sequence[str], answer: Task | None = "short") -> None:
    """Raises for the first law that is broken in one of them."""
    for trial in SITUATIONS(answer):
        outcome = Subject(rule, CASES).settle(trial)
        for law in laws:
            LAW[law].check(outcome)


@pytest.mark.parametrize("slip", CAUGHT_BY_THE_WANTED.values(), ids=CAUGHT_BY_THE_WANTED)
def test_a_slip_in_the_tutorial_s_rule_breaks_one_of_the_tutorial_s_laws(slip: tuple[str, str]) -> None:
    with pytest.raises(LawBroken):
        by_the_situations_alone(mutant(*slip), WANTED)


@pytest.mark.parametrize("slip", CAUGHT_BY_SOME_LAW.values(), ids=CAUGHT_BY_SOME_LAW)
def test_another_slip_in_the_tutorial_s_rule_breaks_some_law(slip: tuple[str, str]) -> None:
    with pytest.raises(LawBroken):
        by_the_situations_alone(mutant(*slip), [law for law in ABOUT_ONE_DECISION if law != NO_REPAIR])


def test_the_tutorial_s_rule_itself_passes() -> None:
    tried = check_laws(rule_of(TUTORIAL), without=[NO_REPAIR], answer="short", max_examples=1)
    assert NO_REPAIR not in tried
    assert min(count for name, count in tried.items() if name not in OF_REPAIR_OR_SUMS) > 0


OF_REPAIR_OR_SUMS = ("repair_only_when_neither_is_certified", "unchecked_derivation_changes_nothing")
LOCKED = "".join(inspect.getsource(part) for part in (evidence_locked, decision._derive, decision._overrides))
MAY_REPAIR = "    if case.repairable:\n        repair"
INAPPLICABLE = "repair and case.certified(repair) is not False and not case.same(repair, case.consensus)"


def repairing_where(condition: str) -> str:
    return MAY_REPAIR.replace("if case.repairable", condition)


REPAIRING = [
    Plant("repair only where no judge was asked", MAY_REPAIR, repairing_where("elif case.repairable"), ""),
    Plant("repair only where there is a rival", MAY_REPAIR, repairing_where("if case.rival()"), ""),
    Plant("no repair of one class", MAY_REPAIR, repairing_where("if case.contested"), ""),
    Plant("no repair of no answers", MAY_REPAIR, repairing_where("if case.repairable and case.consensus"), ""),
    Plant("a yes or no as repair", "_overrides(case, repair)", INAPPLICABLE, ""),
    Plant("the repairer in the judge's place", ASK_THE_JUDGE, ASK_THE_JUDGE.replace('"judge"))', '"repairer"))'), ""),
    Plant("no judge", ASK_THE_JUDGE, "", ""),
    Plant("a judge of two classes at most", "case.rival()", "case.rival() and case.vote.n_classes == 2", ""),
]
LAWFUL = {"the judge asked in every contested pool"}
"""It asks too often, and no law about what ships forbids that."""


def of_the_locked_rule(plants: Sequence[Plant]) -> list[Plant]:
    return [plant for plant in plants if plant.old in LOCKED and plant.name not in LAWFUL]


@pytest.mark.parametrize(
    "plant", of_the_locked_rule([*SHIPPING, *ASKING, *REPAIRING]), ids=lambda plant: plant.name.replace(" ", "_")
)
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
OF_MUCH = ["len(case.question.answers) > 12", "len(case.question.passages) > 12", "len(case.question.text) > 300"]
OF_MUCH += ["any(len(text) > 150 for text in case.question.texts)"]


OF_LENGTHS = [f"len(preference) {length}" for length in LENGTHS]
OF_LENGTHS += ["len(preference) > len(consensus)", "len(preference) < len(consensus)"]
OF_WORDS = ["preference > consensus", "preference < consensus", "preference in consensus", "consensus in preference"]
OF_WORDS += ["preference.islower()", "preference.isdigit()", "not preference.isascii()"]


BIASED: list[tuple[str, str, str, Task | None]] = [
    *((mark, f"len(consensus) {length}", "True", None) for mark in (SETTLED, UNSETTLED, SUM) for length in LENGTHS),
    *((mark, much, "True", "short") for mark in (SETTLED, UNSETTLED) for much in OF_MUCH),
    *(
        (UNSETTLED, asked, after, "short")
        for asked in ("case.rival()", "not case.rival()")
        for after in (*OF_LENGTHS, *OF_WORDS)
    ),
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
            if (
                repair
                and len(repair) != len(case.consensus or "")
                and (len(repair) > len(case.consensus or "")) is longer
            ):
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
    counts = dict.fromkeys((law.name for law in OF_RULES), 0)
    for trial in situations():
        outcome = Subject(evidence_locked).settle(trial)
        for law in OF_RULES:
            counts[law.name] += law.check(outcome)
    assert min(counts.values()) > 0, counts


def test_the_situations_are_of_the_task_that_is_asked_for_and_some_eleven_hundred() -> None:
    by_task = {task: list(situations(task)) for task in TASKS}
    expected = {"retrieval": {"retrieval"}, "arithmetic": {"arithmetic"}}
    assert {task: {trial.question.task for trial in several} for task, several in by_task.items()} == expected
    assert list(situations()) == [*by_task["retrieval"], *by_task["arithmetic"]]
    assert 1_000 < len(list(situations())) < 1_200


def test_among_them_is_the_judge_s_yes_or_no_against_an_uncertified_consensus_where_another_is_certified() -> None:
    """What three hundred drawn trials met once in two hundred and fifty, and a rule with `is not False` gets wrong."""
    outcomes = map(Subject(evidence_locked).settle, situations("retrieval"))
    assert (
        sum(one.mark is False and one.case.rival() and one.case.certified(one.preference) is None for one in outcomes)
        == 14
    )


def test_in_each_situation_the_replies_fit_the_question() -> None:
    for trial in situations():
        judge = trial.reply("judge")
        assert not isinstance(judge, Verdict) or judge.preferred < len(trial.question.answers)
        assert not isinstance(trial.reply("repairer"), Repair) or trial.question.task == "retrieval"
