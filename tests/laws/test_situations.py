"""The small situations are enough to catch a slip, so that no seed decides; nothing lawful is complained of."""

import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import dspy
import pytest

from eldgr_dspy import decision
from eldgr_dspy.decision import Choice, Rule, evidence_locked
from eldgr_dspy.laws import LAW, LawBroken
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.situations import derived_sum, situations
from eldgr_dspy.laws.trials import Subject, require_laws
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Repair, Verdict
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.testing import check_laws
from eldgr_dspy.words import STRICTNESS, TASKS, Task
from tests.laws import lawful, slips, slips_of_selectors
from tests.laws.plants import TABLE, Plant, apply, load, plants
from tests.refusing import refusal, says

pytestmark = pytest.mark.slow  # some two hundred runs of the whole kit, and the kit on each small situation

TUTORIAL = TABLE["blocks"]["tutorial"]
CORE_LAWS = ["certified_consensus_is_final", "inapplicable_consensus_is_final", "override_needs_a_certificate"]
CORE_LAWS += ["failed_judge_equals_silent_judge", "homogeneous_pools_consult_no_judge"]
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
        require_laws([LAW[law] for law in laws], Subject(rule, CASES).settle(trial))


@pytest.mark.parametrize("plant", plants("tutorial", "tutorial_otherwise"), ids=lambda plant: plant.name)
def test_a_slip_in_the_tutorial_s_rule_breaks_one_of_the_tutorial_s_laws_or_some_law(plant: Plant) -> None:
    laws = CORE_LAWS if plant in plants("tutorial") else [law for law in ABOUT_ONE_DECISION if law != NO_REPAIR]
    with pytest.raises(LawBroken):
        by_the_situations_alone(rule_of(apply(plant, TUTORIAL)), laws)


def test_the_tutorial_s_rule_itself_passes() -> None:
    counts = check_laws(rule_of(TUTORIAL), without=[NO_REPAIR], answer="short", max_examples=1)
    assert NO_REPAIR not in counts
    assert min(count for name, count in counts.items() if name not in OF_REPAIR_OR_SUMS) > 0


OF_REPAIR_OR_SUMS = ("repair_only_when_neither_is_certified", "unchecked_derivation_changes_nothing")
RULE_TEXT = "".join(inspect.getsource(part) for part in (evidence_locked, decision._derive, decision._overrides))
LAWFUL = {"the judge asked in every contested pool"}
"""It asks too often, and no law about what ships forbids that."""
PLANTS = plants("shipping", "asking", "repairing")
PLANTS = [plant for plant in PLANTS if plant.was in RULE_TEXT and plant.name not in LAWFUL]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "_"))
def test_a_slip_in_the_shipped_rule_breaks_some_law(plant: Plant) -> None:
    module = load(plant)
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


SURE, UNSURE = (f"case.task == 'retrieval' and case.certified(consensus) is {one}" for one in (True, False))
SUM = "case.task == 'arithmetic'"
LENGTHS = ("> 3", "> 5", "> 8", "> 12", "> 20", "> 40", "< 20", "< 12", "< 8", "< 5", "< 3")
OF_MUCH = ["len(case.question.answers) > 12", "len(case.question.passages) > 12", "len(case.question.text) > 300"]
OF_MUCH += ["any(len(text) > 150 for text in case.question.texts)"]
OF_LENGTHS = [f"len(preference) {length}" for length in LENGTHS]
OF_LENGTHS += ["len(preference) > len(consensus)", "len(preference) < len(consensus)"]
OF_WORDS = ["preference > consensus", "preference < consensus", "preference in consensus", "consensus in preference"]
OF_WORDS += ["preference.islower()", "preference.isdigit()", "not preference.isascii()"]
BIASES: list[tuple[str, str, str, Task | None]] = [
    *((mark, f"len(consensus) {length}", "True", None) for mark in (SURE, UNSURE, SUM) for length in LENGTHS),
    *((mark, much, "True", "short") for mark in (SURE, UNSURE) for much in OF_MUCH),
    *((UNSURE, f"{no}case.rival()", after, "short") for no in ("", "not ") for after in (*OF_LENGTHS, *OF_WORDS)),
    *((SUM, "True", after, "number") for after in OF_LENGTHS if after != "len(preference) < 3"),
]
"""Where consensus or the preference is long, short, above the other, or where there is much of something."""


@pytest.mark.parametrize(("mark", "before", "after", "answer"), BIASES)
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
    with pytest.raises(LawBroken, match=r"^Law 12, evidence_order_and_duplicates_do_not_matter") as info:
        check_laws(certificate=slips.CERTIFICATES["joins by a space"], max_examples=0)
    question = info.value.outcome.trial.question
    assert "fine art" in question.answers
    assert {"and this is a fine", "art can be seen"} <= {passage.text for passage in question.passages}


def test_the_shipped_rule_keeps_every_law_in_every_situation_and_each_has_something_to_say() -> None:
    counts = Counter[str]()
    for trial in situations():
        judge = trial.reply("judge")
        assert not isinstance(judge, Verdict) or judge.preferred < len(trial.question.answers)
        assert not isinstance(trial.reply("repairer"), Repair) or trial.question.task == "retrieval"
        counts.update(require_laws(OF_RULES, Subject(evidence_locked).settle(trial)))
    assert {*counts} == {law.name for law in OF_RULES}


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


LAW_OF = {"joins": "evidence_order_and_duplicates_do_not_matter", "vetoed": "more_evidence_never_uncertifies"}
LAW_OF |= {"drops": "spelling_does_not_decide"}


@pytest.mark.parametrize("name", slips.CERTIFICATES)
def test_a_slip_of_a_certificate_is_caught_whatever_is_drawn(name: str) -> None:
    law = LAW_OF[name.partition(" ")[0]]
    with pytest.raises(LawBroken) as info:
        check_laws(certificate=slips.CERTIFICATES[name], laws=[law], max_examples=0)
    assert info.value.law.name == law


@pytest.mark.parametrize("name", slips.RULES)
def test_a_slip_of_a_rule_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_laws(slips.RULES[name], laws=["the_cases_partition"], max_examples=0)


@pytest.mark.parametrize("name", slips_of_selectors.SELECTORS)
def test_a_slip_of_a_selector_is_caught_whatever_is_drawn(name: str) -> None:
    with pytest.raises(LawBroken):
        check_selector(slips_of_selectors.SELECTORS[name](), max_examples=0)


@pytest.mark.parametrize("name", [*lawful.CERTIFICATES, *lawful.RULES])
def test_a_lawful_certificate_or_rule_passes_a_few_laws(name: str) -> None:
    options: dict[str, Any] = {**lawful.CERTIFICATES, **lawful.RULES}[name]
    few = [*LAW_OF.values()] if name in lawful.CERTIFICATES else ["default_is_consensus", "the_cases_partition"]
    laws = [law for law in few if law not in options.get("without", ())]
    assert min(check_laws(**{**options, "without": [], "laws": laws}, max_examples=3).values()) > 0


@pytest.mark.parametrize("name", lawful.SELECTORS)
def test_a_lawful_selector_passes(name: str) -> None:
    counts = check_selector(lawful.SELECTORS[name](), max_examples=1)
    assert counts["sync_equals_async_equals_batch_equals_replay"] > 40


DENIAL = slips.DENIAL


class WithAttributes:
    """Not read."""

    word = "Saint "

    def certify(self, answer: str, passages: slips.Passages) -> bool:
        """Not read either."""
        return self.word in answer and "not so" not in answer


def certificate(answer: str, passages: slips.Passages, prefix: str = "by ", *, word: str = "seven") -> bool:
    doubts = [one for one in passages if one.title.startswith("Doubtful")]
    return not doubts and prefix in answer and DENIAL.search(answer) is None and word not in answer


def test_literals_are_those_of_code_defaults_closures_globals_patterns_and_attributes_of_others() -> None:
    assert {"Doubtful", "seven", "by ", "disproved", "retracted"} <= {*literals(certificate)}
    assert "burg" in literals(partial(certificate, word="burg"))
    assert {"not so", "Saint "} <= {*literals(WithAttributes().certify)}
    assert "debunked" in literals(slips.vetoed_by("debunked"))
    assert not [text for text in literals(WithAttributes().certify) if text.startswith("Not read")]
    assert literals(Selector(), len, None) == []
    assert literals(lawful.RULES["the shipped one"]["rule"]) == []


def test_situations_around_a_text_have_it_as_an_answer_in_one_in_the_evidence_and_in_a_sum() -> None:
    trials = [*around(["7"])]
    answers = {answer or "" for trial in trials for answer in trial.question.answers}
    assert {"7", "7Kyoto7", "719", "197"} <= answers
    assert any("7 Paris" in passage.text for trial in trials for passage in trial.more)


@pytest.mark.parametrize("right", ["-5", "−5", "-1,200", "0", "0.5", "2.25", "7", "1,200", "1000000", "41", "-0.5"])
def test_a_derivation_that_the_situations_call_sound_is_checked_at_every_level(right: str) -> None:
    text, sound = derived_sum(right)
    for level in STRICTNESS:
        result = check_derivation(replace(sound, others=(sound,)), text, level)
        assert result.passed, result.reason


class Bare(Selector):
    def __init__(self, *absent: str) -> None:
        super().__init__()
        self.absent = absent

    def forward(self, *args: Any, **inputs: Any) -> Any:
        pred = super().forward(*args, **inputs)
        return dspy.Prediction(**{name: value for name, value in pred.items() if name not in self.absent})


class Silent(Selector):
    def forward(self, *args: Any, **inputs: Any) -> Any:
        super().forward(*args, **inputs)


def test_a_selector_whose_prediction_lacks_fields_is_told_which() -> None:
    must = "The selector's prediction must "
    advice = "Return the prediction of Selector.forward with your changes and additions."
    assert says(f"... without branch. {advice}", refusal(lambda: check_selector(Bare("branch"))))
    assert says(
        f"{must}... without reason, ranking. Return...", refusal(lambda: check_selector(Bare("reason", "ranking")))
    )
    assert says(f"{must}have all fields of a ...; got None with...", refusal(lambda: check_selector(Silent())))
