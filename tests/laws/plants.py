"""Changes of the rule, each one exact replacement in the text of `eldgr_dspy.decision`, and what each breaks.

What is named is a law, or what else is claimed in `tests/laws/law_claims.py`. Most change what ships; those that change
only who is asked say so.
"""

import inspect
from dataclasses import dataclass
from types import ModuleType

from eldgr_dspy import decision

SOURCE = inspect.getsource(decision)


@dataclass(frozen=True)
class Plant:
    """One change: `old` stands in the source exactly once, and `new` in its place breaks `breaks`."""

    name: str
    old: str
    new: str
    breaks: str


def planted(plant: Plant) -> ModuleType:
    """The decision module with a change."""
    assert SOURCE.count(plant.old) == 1, f"{plant.name}: the text to change is not there, or not once"
    module = ModuleType("planted")
    exec(compile(SOURCE.replace(plant.old, plant.new), "planted", "exec"), module.__dict__)  # noqa: S102 -- our own text
    return module


ASK_THE_JUDGE = """    if case.rival():
        preference = case.preferred((yield "judge"))
        if _overrides(case, preference):
            return Choice("judge", preference)
"""
ASK_THE_REPAIRER = """    if case.repairable:
        repair = case.repaired((yield "repairer"))
        if _overrides(case, repair):
            return Choice("repair", repair)
"""
SHIP_A_FINAL_CONSENSUS = """    if case.certified(case.consensus) is not False:
        return Choice("consensus", case.consensus)
"""
OVERRIDES = "return answer is not None and case.certified(answer) is True and not case.same(answer, case.consensus)"
DERIVED = "derived is not None and not case.same(derived, case.consensus)"
STATED = "preference is not None and not case.same(preference, case.consensus)"
TRIES = "if _overrides(case, preference):"

SHIPPING = [
    Plant("the repairer before the judge", ASK_THE_JUDGE + ASK_THE_REPAIRER, ASK_THE_REPAIRER + ASK_THE_JUDGE,
        "certified_preference_outranks_repair"),
    Plant("the judge before a final consensus", SHIP_A_FINAL_CONSENSUS + ASK_THE_JUDGE,
        ASK_THE_JUDGE + SHIP_A_FINAL_CONSENSUS, "certified_consensus_is_final"),
    Plant("the judge let in where consensus is certified", SHIP_A_FINAL_CONSENSUS,
        SHIP_A_FINAL_CONSENSUS.replace("is not False", "is None"), "no_correct_certified_consensus_is_overridden"),
    Plant("the judge let in where consensus is inapplicable", SHIP_A_FINAL_CONSENSUS,
        SHIP_A_FINAL_CONSENSUS.replace(" is not False", ""), "inapplicable_consensus_is_final"),
    Plant("no consensus is final", SHIP_A_FINAL_CONSENSUS, "", "judges_differ_only_where_admissible"),
    Plant("an answer of consensus's class overrides", OVERRIDES,
        "return answer is not None and case.certified(answer) is True", "override_needs_a_certificate"),
    Plant("classes compared by spelling", OVERRIDES,
        "return answer is not None and case.certified(answer) is True and answer != case.consensus",
        "override_needs_a_certificate"),
    Plant("an inapplicable answer overrides", OVERRIDES, OVERRIDES.replace("is True", "is not False"),
        "default_is_consensus"),
    Plant("an uncertified answer overrides", OVERRIDES, OVERRIDES.replace("is True", "is False"), "is_eq3"),
    Plant("an uncertified preference overrides", TRIES, "if preference is not None:", "override_needs_a_certificate"),
    Plant("a silent judge ships nothing", TRIES, "if preference is None or _overrides(case, preference):",
        "failed_judge_equals_silent_judge"),
    Plant("an uncertified repair overrides", "if _overrides(case, repair):",
        "if repair is not None and not case.same(repair, case.consensus):",
        "a_regression_needs_a_certified_wrong_answer"),
    Plant("repair although it may not be asked", ASK_THE_REPAIRER,
        ASK_THE_REPAIRER.replace("case.repairable", "True"), "the_cases_partition"),
    Plant("the other reading of Eq. 3", "case.preferred((yield", "case.stated((yield", "is_eq3"),
    Plant("the repair in the judge's name", 'Choice("repair", repair)', 'Choice("judge", repair)',
        "answer_is_consensus_preference_or_repair"),
    Plant("consensus in the repair's place", 'Choice("repair", repair)', 'Choice("repair", case.consensus)',
        "repair_only_when_neither_is_certified"),
    Plant("the tasks exchanged", 'case.task == "arithmetic"', 'case.task != "arithmetic"',
        "unchecked_derivation_changes_nothing"),
    Plant("a derivation that agrees counts as repair", DERIVED, "derived is not None",
        "no_correct_certified_consensus_is_overridden"),
    Plant("a silent deriver ships nothing", DERIVED, "not case.same(derived, case.consensus)",
        "unchecked_derivation_changes_nothing"),
    Plant("the derivation in the judge's name", 'Choice("repair", derived)', 'Choice("judge", derived)',
        "answer_is_consensus_preference_or_repair"),
    Plant("the scalar judge overrides with its own class", STATED, "preference is not None", "is_the_scalar_judge"),
    Plant("the scalar judge reads the other preference", "case.stated((yield", "case.preferred((yield",
        "is_the_scalar_judge"),
    Plant("the first is consensus", 'Choice("first", case.first)', 'Choice("first", case.consensus)', "is_first"),
    Plant("asked always, the last role is forgotten", "in roles(case):", "in roles(case)[:-1]:", "lazy_equals_always"),
    Plant("decide prefers the repair", '(True, True, True): ("judge", preference,',
        '(True, True, True): ("repair", repair,', "certified_preference_outranks_repair"),
    Plant("decide overrides an inapplicable consensus", "table.get((m is False,", "table.get((not m,",
        "inapplicable_consensus_is_final"),
    Plant("decide lets an inapplicable preference override", "m is False, s is True,", "m is False, s is not False,",
        "override_needs_a_certificate"),
    Plant("decide certifies empty answers", "(marks.get(answer, False) for answer in",
        "(marks.get(answer, True) for answer in", "default_is_consensus"),
    Plant("decide asks for the certificate of empty answers", "fromkeys(three) if answer}",
        "fromkeys(three) if answer is not None}", "is_eq3"),
]  # fmt: skip

LEADS = "if case.certified(answer) is True:\n                return"
SILENT_JUDGE = 'choice.branch == "consensus" and "judge" in replies and case.preferred(replies["judge"]) is None'
NEAR = "votes >= most - k and case.certified(answer) is False"
STILL_OPEN = 'if choice.branch == "consensus" and derived is None else []'
UNSETTLED = "case.consensus is None or case.certified(case.consensus) is not False"

AUTHORITY = [
    Plant("certified majority in arithmetic", 'case.task == "retrieval" and case.certified(case.consensus) is False',
        "case.certified(case.consensus) is False", "is_the_certified_majority"),
    Plant("certified majority over an inapplicable consensus", 'if case.task == "retrieval" and case.certified('
        "case.consensus) is False", 'if case.task == "retrieval" and not case.certified(case.consensus)',
        "inapplicable_consensus_is_final"),
    Plant("the certified class with fewest votes", "in case.standings:", "in reversed(case.standings):",
        "is_the_certified_majority"),
    Plant("an inapplicable class leads", LEADS, LEADS.replace("is True", "is not False"),
        "override_needs_a_certificate"),
    Plant("the leader in the judge's name", 'Choice("certified", answer)', 'Choice("judge", answer)',
        "is_the_certified_majority"),
    Plant("certified majority over an uncertified preference", SILENT_JUDGE, 'choice.branch == "consensus"',
        "is_eq3_then_the_certified_majority"),
    Plant("certified majority over a repair", SILENT_JUDGE,
        SILENT_JUDGE.removeprefix('choice.branch == "consensus" and '),
        "a_silent_judge_leaves_repair_and_certified_majority"),
    Plant("a class that lacks k votes is not near", NEAR, NEAR.replace(">=", ">"), "is_eq3_then_near"),
    Plant("a class that lacks any number of votes is near", NEAR, "case.certified(answer) is False",
        "an_uncertified_override_nearly_won"),
    Plant("an inapplicable preference overrides", NEAR, NEAR.replace("is False", "is not True"),
        "an_inapplicable_preference_never_overrides"),
    Plant("a near class over an inapplicable consensus", UNSETTLED, UNSETTLED.replace("is not False", "is True"),
        "inapplicable_consensus_is_final"),
    Plant("a near class over a derivation that agrees", STILL_OPEN, 'if choice.branch == "consensus" else []',
        "near_acts_only_without_a_derivation"),
    Plant("a near class over a repair", STILL_OPEN, "if derived is None else []", "the_near_case_is_apart"),
    Plant("the first near class instead of the preferred", "if case.same(preference, rival.answer)",
        "if preference is not None", "an_uncertified_override_nearly_won"),
    Plant("the near rule reads the statement", 'preference = case.preferred(replies["judge"] if', 'preference = '
        'case.stated(replies["judge"] if', "is_eq3_then_near"),
    Plant("the judge asked with no class near", "        if rivals:\n", "        if True:\n",
        "asks_the_judge_where_it_can_matter"),
    Plant("support brings the number of the derivation", 'Choice("repair", rival) for rival in rivals',
        'Choice("repair", answer) for rival in rivals', "a_derivation_brings_no_answer"),
    Plant("support of the first class instead of the derived", "for rival in rivals if case.same(answer, rival)",
        "for rival in rivals if answer is not None", "derivers_differ_only_where_a_candidate_is_derived"),
    Plant("support over more than half the votes", "if sum(votes for _, votes in standings[1:]) >= most:",
        "if most:", "a_consensus_of_more_than_half_is_final"),
    Plant("half the votes are final for support", "in standings[1:]) >= most:", "in standings[1:]) > most:",
        "is_eq3_and_support_within_k"),
    Plant("support of a class that lacks any number of votes", "if votes >= most - k]", "if votes >= 0]",
        "asks_the_deriver_about_rivals_within_k"),
    Plant("support of consensus", "[answer for answer, _ in standings[1:]]", "[answer for answer, _ in standings]",
        "is_eq3_and_support"),
    Plant("the deriver asked without a rival", '(yield "deriver")) if rivals else None', '(yield "deriver"))',
        "who_is_asked_can_matter"),
]  # fmt: skip
"""Changes of the rules between majority and full authority."""

SEEN_BY_THE_TABLES = [
    Plant("a near class is called tied", "if votes == most else", "if votes >= most - k else", "nothing"),
    Plant("the judge asked twice",
        'replies["judge"] if "judge" in replies else (yield "judge")', '(yield "judge")', "nothing"),
]  # fmt: skip
"""Changes of the reason of `near(1)`, and of how often a role is asked: only the tables have these."""

ASKING = [
    Plant("the judge asked without a rival", "case.rival()", "True", "who_is_asked_can_matter"),
    Plant("the judge asked in every contested pool", "case.rival()", "case.contested", "asks_who_can_matter"),
    Plant("the judge asked of one class", ASK_THE_JUDGE, ASK_THE_JUDGE.replace("case.rival()", "True"),
        "homogeneous_pools_consult_no_judge"),
    Plant("the judge asked in arithmetic", 'derived = case.derived((yield "deriver"))',
        'yield "judge"\n        derived = case.derived((yield "deriver"))', "asks_who_can_matter"),
    Plant("the scalar judge asked of one class", "if case.contested:", "if True:",
        "homogeneous_pools_consult_no_judge"),
    Plant("the majority asks", '"""Ship consensus."""\n    yield from ()', 'yield "judge"',
        "homogeneous_pools_consult_no_judge"),
]  # fmt: skip

UNSEEN_BY_THE_TABLES = [
    Plant(
        "a rule that looks into a reply",
        'case.preferred((yield "judge"))',
        'case.preferred((yield "judge") or {"judge": None})',
        "failed_judge_equals_silent_judge",
    )
]
"""Only the proof has replies that refuse to be looked at."""

EQUIVALENT = [
    Plant("any true certificate", OVERRIDES, OVERRIDES.replace(" is True", ""), "nothing"),
    Plant("a rival where it is contested", "case.rival()", "case.contested and case.rival()", "nothing"),
    Plant("no preference is asked about twice", TRIES, "if preference is not None and _overrides(case, preference):",
        "nothing"),
]  # fmt: skip
"""No changes at all: a certificate has three values, and where there is a rival there are two classes."""
