"""A case turns a question into classes, certificates and a whole decision."""

from collections.abc import Mapping
from typing import Any

import pytest

from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Decision
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.own_certificates import own_certificate
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import POLICIES, Role
from tests.case_tables import each_case
from tests.dates import TYPE_LIST
from tests.deciding import SILENT, decide_case
from tests.refusing import refuses
from tests.rule.keys import cases


def decide(case: Case, values: Mapping[Any, Reply], rule: str = "eldgr") -> Decision:
    return decide_case(case, values, rule)[0]


def retrieval(answers: list[str | None], *texts: str, **how: Any) -> Case:
    return Case(Question("?", "retrieval", tuple(answers), (), tuple(Passage("", t) for t in texts)), Settings(**how))


def test_a_certificate_belongs_to_a_class_whose_earliest_certified_spelling_ships() -> None:
    case = retrieval(["beatles", "The Beatles", "Lyon"], "Songs by The Beatles.", certificate="token")
    result = decide(case, SILENT)
    assert (result.answer, result.branch, result.certified) == ("The Beatles", "consensus", True)
    assert result.witness is not None
    assert result.witness.text == "The Beatles"
    case = retrieval(["beatles", "Lyon", "The Beatles"], "Songs by The Beatles.", certificate="token")
    assert [case.certified(one) for one in ("beatles", "The Beatles", "THE BEATLES", "Lyon")] == [True] * 3 + [False]
    assert decide(case, {}, "first").certified is True
    case = retrieval(["Lyon", "The Beatles", None], "The Beatles, or BEATLES.", certificate="token")
    witnesses = {answer: case.certificate(answer).witness for answer in ("BEATLES", "beatles", "Bonn", None)}
    expected = {"BEATLES": "BEATLES", "beatles": "The Beatles", "Bonn": None, None: None}
    assert {answer: one and one.text for answer, one in witnesses.items()} == expected
    # A certificate of one's own may hold of one spelling, not of another, and not apply to a third.
    marks: dict[str, bool | None] = {"a b": False, "A b": None, "a B": True, "A B": True}

    def spell(*answers: str) -> tuple[str | None, bool | None, str | None]:
        own = own_certificate(lambda answer, _: marks[answer])
        case = Case(Question("Q", "retrieval", answers), Settings(certificate=own))
        return case.consensus, case.certified(case.consensus), case.repaired(Repair(answers[0]))

    assert spell("a b", "A b", "a B", "A B") == ("a B", True, "a B")
    assert spell("A b", "a B") == ("a B", True, "A b")
    assert spell("a b", "A b") == ("a b", None, "a b")
    assert spell("a b") == ("a b", False, "a b")
    witness = retrieval(["the Beatles", "Beatles"], "By Beatles.", certificate="token").certificate("BEATLES").witness
    assert witness is not None and witness.level == "exact"


def test_the_witness_says_that_the_answer_stands_in_the_question() -> None:  # hazard 32
    question = Question("Is it Doha?", "retrieval", ("Doha",), (), (Passage("", "Doha it is"),))
    result = Case(question).certificate("Doha").witness
    assert result is not None and result.flags == ("in_question",) and result.as_json()["flags"] == ["in_question"]


@pytest.mark.parametrize(("task", "repair", "n", "roles"), cases("who is asked always"))
def test_who_is_asked_always(task: Any, repair: Any, n: int, roles: list[Role]) -> None:
    case = Case(Question("Q", task, ("16", "18")[:n]), Settings(consult="always", homogeneous=repair))
    assert case.roles() == decide(case, SILENT).consulted == tuple(roles)
    assert decide(case, SILENT, "majority").consulted == ()


def test_only_a_certified_preference_for_another_class_than_a_certified_one_overrides() -> None:
    case = retrieval(["Bern", "Bern", "Oslo", "Doha"], "Doha is the capital of Qatar.")
    result = decide(case, {**SILENT, "judge": Verdict(3)})
    assert (result.answer, result.branch) == ("Doha", "judge")
    case = retrieval(["Dubai", "Dubai", "doha"], "Doha is the capital of Qatar.", certificate="token")
    assert decide(case, {**SILENT, "judge": Verdict(2)}).branch == "consensus"
    folded = retrieval(["Dubai", "Dubai", "doha"], "Doha is the capital of Qatar.")
    result = decide(folded, {**SILENT, "judge": Verdict(2)})
    assert (result.answer, result.branch, result.reason) == ("doha", "judge", "preference_certified")
    assert result.witness is not None
    assert (result.witness.text, result.witness.level) == ("Doha", "folded")
    inputs: dict[Any, Reply] = {"judge": Verdict(2), "repairer": Repair("Bonn")}  # hazard 34
    result = decide(retrieval(["Paris", "Rome", "Bonn"], "Paris, Rome and Bonn were asked."), inputs)
    assert (result.answer, result.branch, result.consulted) == ("Paris", "consensus", ())
    assert "3 different answers are certified" in result.notes


def test_a_repair_ships_in_its_spelling_or_as_the_evidence_writes_it() -> None:
    case = retrieval(["Dubai", "Dubai", "U.S.A"], "made in the U.S.A in 1990", certificate="token")
    result = decide(case, {**SILENT, "repairer": Repair("USA")})
    assert (result.answer, result.branch) == ("U.S.A", "repair")
    case = retrieval(["doha", "doha", "Dubai"], "Doha is the capital of Qatar.", certificate="token")
    result = decide(case, {**SILENT, "repairer": Repair("Doha")})
    assert (result.answer, result.branch, result.repair) == ("doha", "consensus", "Doha")
    case = retrieval(["Dubai", "Oslo", "oslo"], "Oslo, or OSLO.", certificate="token")
    assert case.repaired(Repair("OSLO")) == "OSLO"
    assert case.repaired(Repair("OsLo")) == "Oslo"
    assert [case.repaired(Repair(answer)) for answer in ("dubai", "Bonn")] == ["dubai", "Bonn"]
    case = retrieval(["Dubai"], "It is Oslo.")
    assert [case.repaired(Repair(answer)) for answer in ("[Oslo](a.b)", "**OSLO**", "Bonn.")] == [
        "Oslo", "OSLO", "Bonn.",
    ]  # fmt: skip
    case = retrieval([None, "Dubai"], "a \x00 b", certificate="substring")  # hazard 35
    result = decide(case, {**SILENT, "repairer": Repair("\x00")})
    assert (result.answer, result.branch) == ("Dubai", "consensus")


def test_scores_choose_and_rank_behind_certificates_and_consensus() -> None:
    case = retrieval(["Bern", "Bern", "Oslo", "Doha"], "Oslo and Doha", preference="stratum")
    answers = [decide(case, {**SILENT, "judge": Verdict(place, (0.1, 0.1, 0.5, 0.9))}).answer for place in (2, 0)]
    assert answers == ["Oslo", "Doha"]
    case = retrieval(["Oslo", "Doha", "Doha", "Rome", "Bonn", None], "Doha, Rome, Oslo")
    verdict: dict[Role, Reply] = {"judge": Verdict(0, (0.1, 0.2, 0.3, 0.9, 0.8, 1.0))}
    assert case.ranking({}) == (1, 2, 0, 3, 4, 5)
    assert case.ranking(verdict) == (2, 1, 3, 0, 5, 4)
    assert case.ranking(verdict, [None] * 6) == (2, 1, 3, 0, 5, 4)
    assert case.ranking(verdict, [None, None, 0.5, None, 0.1, None]) == (2, 1, 0, 3, 4, 5)
    question = Question("Q", "arithmetic", ("16", "18", "16"))
    own = own_certificate(lambda answer, _: answer == "18")
    assert Case(question, Settings(certificate=own)).ranking({}) == (0, 1, 2)


# hazards 1, 2, 5, 6
def test_small_pools_have_a_reason_and_ties_go_to_the_earliest() -> None:
    empty = decide(retrieval([]), {})
    assert (empty.answer, empty.reason, empty.consulted) == (None, "empty_pool", ())
    single = decide(retrieval(["Lyon"], "Paris"), SILENT)
    assert (single.answer, single.consulted) == ("Lyon", ("repairer",))
    assert decide(retrieval(["Lyon"], "Paris", homogeneous="skip"), {}).reason == "homogeneous"
    nothing = decide(retrieval([None, " ", ""], "Paris"), SILENT)
    assert (nothing.answer, nothing.reason, nothing.consulted) == (None, "no_answers", ("repairer",))
    repair = decide(retrieval([None, " "], "Paris"), {**SILENT, "repairer": Repair("Paris")})
    assert (repair.answer, repair.branch) == ("Paris", "repair")
    # hazards 8, 9
    result = decide(retrieval(["Lyon", "Paris", "paris", "lyon"]), SILENT)
    assert (result.answer, result.tie) == ("Lyon", True)
    assert decide(retrieval(["a b", "c d", "e f", "g h"]), SILENT).tie is True
    assert decide(retrieval(["a b", "c d", "c d", None, None, None]), SILENT).tie is False


def test_yes_and_no_are_final_and_never_override() -> None:
    case = retrieval(["Lyon", "Lyon", "yes"], "yes they said")
    assert decide(case, {**SILENT, "judge": Verdict(2), "repairer": Repair("yes")}).answer == "Lyon"
    final = decide(retrieval(["yes", "yes", "Paris"], "Paris"), {})
    assert (final.answer, final.reason, final.certified) == ("yes", "consensus_inapplicable", None)
    letter = retrieval(["Lyon", "Lyon", "yes"], "yes they said", certificate="substring")
    assert decide(letter, {**SILENT, "judge": Verdict(2)}).answer == "yes"


def test_the_stratum_reading_falls_to_the_highest_scored_certified_candidate() -> None:
    answers: list[str | None] = ["Dubai", "Dubai", "Doha", "Qatar"]
    verdict = Verdict(0, (1.0, 0.9, 0.2, 0.4))
    text = "Doha is the capital of Qatar."
    assert decide(retrieval(answers, text), {**SILENT, "judge": verdict}).answer == "Dubai"
    result = decide(retrieval(answers, text, preference="stratum"), {**SILENT, "judge": verdict})
    assert (result.answer, result.preference) == ("Qatar", 3)
    assert decide(retrieval(answers, text, preference="stratum"), {**SILENT, "judge": Verdict(2)}).answer == "Doha"
    other = decide(retrieval(answers, text, preference="stratum"), {**SILENT, "judge": Verdict(0, (1, 0.9, 0.4, 0.2))})
    assert (other.answer, other.preference) == ("Doha", 2)
    for evidence in (text, "Oslo"):  # the scalar judge ships its own preference under either reading
        alone = decide(retrieval(answers, evidence, preference="stratum"), {"judge": verdict}, "judge")
        assert (alone.answer, alone.preference) == ("Dubai", 0)


@pytest.mark.parametrize("preference", ["global", "stratum"])
@pytest.mark.parametrize("preferred", [2, 4, -2])
def test_a_verdict_for_no_candidate_with_an_answer_is_an_abstention(preference: Any, preferred: int) -> None:
    """Hazards 59 and 67: no index from behind, and no fall to the highest score."""
    case = retrieval(["Dubai", "Dubai", None, "Doha"], "Doha is the capital of Qatar.", preference=preference)
    verdict = Verdict(preferred, (0.1, 0.1, 0.9, 0.8))
    for rule in ("eldgr", "judge"):
        result = decide(case, {**SILENT, "judge": verdict}, rule)
        assert (result.answer, result.branch, result.preference) == ("Dubai", "consensus", None)
        assert result.abstentions["judge"] == f"preferred={preferred} is not a candidate with an answer"
        assert result.ranking == decide(case, SILENT, rule).ranking


# hazard 42
def test_a_text_of_a_candidate_is_no_evidence_for_it_or_for_those_who_read_it_apart() -> None:
    text = "Dubai is the capital, hence Dubai"
    question = Question(
        "Q", "retrieval", ("Dubai", "Dubai", "Doha"), (text, text, "Doha"), (Passage("", text), Passage("", "Doha"))
    )
    result = decide(Case(question), {**SILENT, "judge": Verdict(2)})
    assert (result.answer, result.branch) == ("Doha", "judge")
    # hazard 42
    text = "Doha or Dubai, one of the two"
    question = Question("Q", "retrieval", ("Doha", "Dubai", "Oslo", "Oslo"), (text, text, "", ""), (Passage("", text),))
    for preferred in (0, 1):
        result = decide(Case(question), {**SILENT, "judge": Verdict(preferred)})
        assert (result.answer, result.branch) == ("Oslo", "consensus")
    # another passage certifies, where case does not matter
    passages = (Passage("", "XXXX is the capital"), Passage("", "They say xxxx."))
    question = Question("Q", "retrieval", ("XXXX",), ("XXXX is the capital",), passages)
    token, folded = (Case(question, Settings(policy)).certificate("XXXX") for policy in POLICIES[1:])
    assert (token.certified, token.witness) == (False, None)
    assert folded.certified is True and folded.witness is not None and folded.witness.passage == 1
    for title in ["", "Notes"]:  # hazard 42
        text = f"{title}\nDubai is the capital" if title else "Dubai is the capital"
        passages = (Passage(title, "Dubai is the capital\n"), Passage("", "Doha"))
        result = decide(Case(Question("Q", "retrieval", ("Dubai", "Doha"), (text, "Doha"), passages)), SILENT)
        assert (result.certified, result.ranking) == (False, (1, 0))
        assert "a passage is a candidate's own text and does not certify its answer" in result.notes


def test_only_in_arithmetic_a_derivation_ships_and_no_evidence_or_judge_chooses_there() -> None:
    question = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("16", "16", "18"))
    good = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
    bad = Derivation((Step("2 * 9", "16"),), "16", "16 / 2 = 8")
    result = decide(Case(question), {"deriver": good})
    expected = ("18", "repair", "derivation_checked", True)
    assert (result.answer, result.branch, result.reason, result.certified) == expected
    failure = decide(Case(question), {"deriver": bad})
    assert (failure.answer, failure.branch, failure.certified, failure.repair) == ("16", "consensus", False, "16")
    agreement = decide(Case(Question(question.text, "arithmetic", ("18", "18.0", "16"))), {"deriver": good})
    assert (agreement.branch, agreement.reason) == ("consensus", "derivation_agrees")
    question = Question("Q", "arithmetic", ("x", "X"), (), (Passage("", "X marks it"),))
    assert decide(Case(question, Settings("token")), SILENT).answer == "x"
    case = Case(Question("Q", "arithmetic", ("16", "18")))
    assert decide(case, SILENT).consulted == ("deriver",)
    assert decide(case, {**SILENT, "judge": Verdict(1)}, "judge").answer == "18"
    for task, ranking in [("retrieval", (0, 1, 2)), ("arithmetic", (1, 0, 2))]:
        question = Question("Two boxes hold 9 pens each. How many pens?", task, ("16", "18", "20"))
        derivation = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
        result = Case(question).record(Choice("consensus", "16"), {"deriver": derivation})
        assert (result.certified, result.ranking) == (False, ranking)
    for consensus in [None, "nineteen"]:
        question = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", (consensus, consensus, ""))
        derivation = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
        result = decide(Case(question, Settings(homogeneous="repair")), {"deriver": derivation})
        assert (result.answer, result.branch, result.consensus) == ("18", "repair", consensus)


@each_case("rule", "reasons of cases", silent=lambda: SILENT, verdict=Verdict, repair=Repair)
def test_the_reason_names_the_case(answers: Any, texts: Any, values: dict[Any, Reply], rule: str, reason: str) -> None:
    assert decide(retrieval(answers, *texts), values, rule).reason == reason


def test_an_unknown_setting_is_a_sentence() -> None:
    message = r"certificate='fuzzy' is not known; use one of 'substring', 'token', 'folded'\."
    with pytest.raises(ArgumentError, match=message):
        Settings(certificate="fuzzy")  # type: ignore[arg-type]
    refuses(ArgumentError, rf"task must be one of {TYPE_LIST}; got 'trivia'\.", Question, "Q", "trivia", ())


@pytest.mark.parametrize(("consensus", "number"), [("0.2", "20%"), ("20", "20%"), ("20%", "0.2"), ("20%", "20")])
def test_a_derivation_that_differs_by_a_percent_sign_says_the_same_as_consensus(consensus: str, number: str) -> None:
    question = Question("10 of 50 pens are red. Which share?", "arithmetic", (consensus, consensus, "7"))
    value = "0.2" if number == "0.2" else number
    expression = "10/50" if number != "20" else "10/50*100"
    reply = Derivation((Step(expression, value),), number, "a check")
    result = decide(Case(question, Settings(derivation="stated")), {"deriver": reply})
    assert (result.answer, result.branch, result.reason) == (consensus, "consensus", "derivation_agrees")
    other = Derivation((Step(expression, value),), "30%", "a check")
    assert decide(Case(question, Settings(derivation="stated")), {"deriver": other}).branch == "repair"


def test_a_decision_notes_what_one_should_know_beside_it() -> None:  # hazards 3, 6, 16, 21, 33, 36
    result = decide(retrieval(["1,5", "1,5", None, "Doha", "Paris", "Рaris"], "Doha and Paris"), SILENT)
    notes = " | ".join(result.notes)
    assert "1 of 6 candidates have no answer" in notes
    assert "'1,5': ambiguous decimal comma" in notes
    assert "2 different answers are certified" in notes
    assert "consensus: does not occur in the evidence" in notes
    assert any("script" in note for note in decide(retrieval(["Рaris"], "Paris"), SILENT).notes)
    wrong = Derivation((Step("2*2", "5"),), "5", "5-2=3")
    rejection = decide(Case(Question("Q", "arithmetic", ("4", "6"))), {"deriver": wrong})
    assert any(note.startswith("the derivation is not accepted: ") for note in rejection.notes)
    sign = "'$18': currency sign dropped"
    for answers, text, expected in (
        (("16", "20"), "$18", (sign,)),
        (("16", "20"), "18", ()),
        (("16", "18"), "$18", ()),
    ):
        derivation = Derivation((Step("2 * 9", "18"),), text, "18 / 2 = 9")
        case = Case(Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", answers))
        assert decide(case, {"deriver": derivation}).notes == expected
    assert not Case(Question("Q", "arithmetic", ("I don't know",))).refuses("I don't know")


def test_a_list_and_the_text_that_spells_it_have_classes_and_certificates_of_their_own() -> None:
    structure, text = Structure(["Lyon", "Bonn"]), '["Lyon","Bonn"]'
    assert structure == text
    for answers in ([structure, text], [text, structure]):
        case = retrieval([*answers], "Lyon is in the south.", "Bonn lies on the Rhine.")
        assert [case.certified(answer) for answer in (structure, text, structure)] == [True, False, True]
        assert case.vote.n_classes == 2
        assert not case.same(structure, text)
