"""A refusal is final as consensus and never overrides, or does not vote; a phrase names a class of answers."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.text_keys import AnswerClass
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.refusals import REFUSALS, OwnRefusals, Refusing
from tests.deciding import SILENT, decide_case
from tests.memory import collect
from tests.refusing import refuses
from tests.refusing_function import hedges
from tests.rule.keys import cases


@dataclass(frozen=True)
class Listing(ShortText):
    """Short text, with a list."""

    towns: list[str]


class Counting(ShortText):
    """Short text that tells which answers it read."""

    def __init__(self) -> None:
        self.reads = list[str]()

    def read(self, answer: str) -> AnswerClass | None:
        self.reads.append(answer)
        return super().read(answer)


CAPITAL = Question(
    "What is the capital of Qatar?", "retrieval", ("I don't know", "i don’t know.", "Doha"),
    passages=(Passage("", "Doha is the capital of Qatar. None of the others is; I don't know why."),),
)  # fmt: skip
REPLIES = {**SILENT, "judge": Verdict(2)}


def settle(answers: tuple[str | None, ...], replies: Any = REPLIES, **settings: Any) -> tuple[Any, ...]:
    """What ships, by which branch and for which reason, and who was asked."""
    decision, roles = decide_case(Case(replace(CAPITAL, answers=answers), Settings(**settings)), replies)
    return decision.answer, decision.branch, decision.reason, tuple(roles)


def test_a_refusing_consensus_is_final_and_one_that_does_not_vote_leaves_the_answer_to_others() -> None:
    # Found in use: two refusals and one certified answer let a judge override.
    result, roles = decide_case(Case(CAPITAL), REPLIES)
    assert (result.answer, result.branch, result.reason) == ("I don't know", "consensus", "consensus_inapplicable")
    assert (result.certified, roles) == (None, {})
    assert "consensus: the answer refuses, and an occurrence does not support a refusal" in result.notes
    assert Case(replace(CAPITAL, answers=("None", "Dubai", "yes", "Doha", "None"))).ranking({}) == (2, 3, 0, 1, 4)
    decision, roles = decide_case(Case(CAPITAL, Settings(refusal="no_answer")), REPLIES)
    assert (decision.answer, decision.branch, decision.reason) == ("Doha", "consensus", "consensus_certified")
    assert (decision.notes, roles) == (("2 of 3 candidates refuse and do not vote",), {})
    answers = ("Dubai", "Dubai", "Doha", "None")
    result, _ = decide_case(
        Case(replace(CAPITAL, answers=answers), Settings(refusal="no_answer")), {**SILENT, "judge": Verdict(3)}
    )
    assert (result.answer, result.abstentions["judge"]) == ("Dubai", "preferred=3 is not a candidate with an answer")
    refusing = ("None", "I don't know", None)
    off: Any = {"refusal": "no_answer"}
    assert settle(refusing, {**SILENT, "repairer": Repair("None")}, **off)[:3] == (None, "consensus", "no_answers")
    assert settle(refusing, {**SILENT, "repairer": Repair("Doha")}, **off)[:2] == ("Doha", "repair")
    notes = Case(replace(CAPITAL, answers=refusing), Settings(**off)).vote.notes
    assert notes == ("1 of 3 candidates have no answer", "2 of 3 candidates refuse and do not vote")
    pens = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("None", "None", "16"))
    sound = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
    silent = {"deriver": Abstention("silent")}
    assert decide_case(Case(pens), {"deriver": sound})[0].answer == "18"
    assert decide_case(Case(pens), silent)[0].answer == "None"
    assert decide_case(Case(pens, Settings(refusal="no_answer", homogeneous="repair")), silent)[0].answer == "16"


@pytest.mark.parametrize("settings", [{"refusals": ()}, {"certificate": "substring"}], ids=["none", "substring"])
def test_without_refusals_and_under_the_letter_of_the_paper_a_judge_overrides(settings: Any) -> None:
    answers = ("I do not know", "I do not know", "Doha")
    assert settle(answers, **settings) == ("Doha", "judge", "preference_certified", ("judge",))


@pytest.mark.parametrize("refusal", ["I don't know", "None", "**none.**"])
def test_a_refusal_that_occurs_in_the_evidence_never_overrides(refusal: str) -> None:
    case = Case(replace(CAPITAL, answers=("Dubai", "Dubai", refusal)))
    result, roles = decide_case(case, {**REPLIES, "repairer": Repair(refusal)})
    assert (result.answer, result.branch, [*roles]) == ("Dubai", "consensus", ["repairer"])
    answers = ("Dubai", "Dubai", refusal, "Doha")
    assert settle(answers, {**REPLIES, "repairer": Repair("None")})[:2] == ("Dubai", "consensus")


WHOLE = ("I don't know.", "i DON’T know!", "“I don't know”", r"\boxed{I don't know}", "none")
OTHERS = ("I don't know, perhaps Doha", "None of the above", "Na", "Unknown", "", " ", None, "no")


@pytest.mark.parametrize(("answer", "refuses"), [*((one, True) for one in WHOLE), *((one, False) for one in OTHERS)])
def test_a_phrase_is_a_whole_answer_in_every_spelling_of_its_class(answer: str | None, refuses: bool) -> None:
    assert Case(replace(CAPITAL, answers=(answer,))).refuses(answer) is refuses


def test_each_phrase_is_a_class_read_once_also_by_a_type_that_cannot_be_hashed() -> None:
    case = Case(CAPITAL, Settings(refusals=["pass", "k. A."]))  # type: ignore[arg-type]
    assert [case.refuses(one) for one in ("Pass.", "K.A.", "None")] == [True, True, False]
    assert len({one for one in REFUSALS if Refusing((one,), (), answer_type("short"))(one)}) == len(REFUSALS)
    for one in REFUSALS:
        others = tuple(other for other in REFUSALS if other != one)
        assert not Refusing(others, (), answer_type("short"))(one)
    kind = Listing(["Doha"])
    refuses(TypeError, "unhashable", hash, kind)
    assert [Refusing(REFUSALS, (), kind)(answer) for answer in ("none.", "Doha")] == [True, False]


def test_the_classes_of_the_phrases_are_read_once_and_no_answer_before_it_is_asked_about() -> None:
    kind = Counting()
    assert [Refusing(("None",), ("Doha", "Dubai"), kind)(answer) for answer in ("none.", "Doha")] == [True, False]
    assert kind.reads == ["None", "none.", "Doha"]


def test_what_a_type_of_one_question_says_is_forgotten_with_the_question() -> None:
    with collect():
        case = Case(Question("Which?", "choice", ("A",), options=("Pass", "Doha")), Settings(refusals=("A", "none")))
        assert [case.refuses(answer) for answer in ("pass", "a", "None", "B")] == [True, True, True, False]
        kind = weakref.ref(case.type)
        del case
    assert kind() is None


def test_a_function_finds_refusals_inside_answers_by_the_spellings_of_the_pool() -> None:
    calls: list[str] = []

    def find(answer: str) -> bool:
        calls.append(answer)
        return hedges(answer)

    answers = ("Sorry, I don't know", "Sorry, I don't know", "Sorry i don't know.", "Doha", None, "", " ")
    case = Case(replace(CAPITAL, answers=answers), Settings(refusals=find))  # type: ignore[arg-type]
    assert [case.refuses(one) for one in answers] == [True, True, True, False, False, False, False]
    assert decide_case(case, REPLIES)[0].answer == "Sorry, I don't know"
    assert calls == ["Sorry, I don't know", "Doha"]
    case = Case(replace(CAPITAL, answers=("i dont know", "I don't know", "Doha")), Settings(refusals=hedges))  # type: ignore[arg-type]
    assert case.refuses("i dont know") and case.refuses("I DONT KNOW")
    assert not Case(replace(CAPITAL, answers=("i dont know",)), case.settings).refuses("I don't know")
    assert Case(replace(CAPITAL, answers=()), case.settings).refuses("I don't know")  # as of a repair


def test_a_function_is_stated_by_its_name_and_what_is_unknown_or_changed_is_refused() -> None:
    result = Settings(refusals="os.path:isabs").refusals  # type: ignore[arg-type]
    assert isinstance(result, OwnRefusals)
    assert result.name == "os.path:isabs"
    before = {
        "certificate": "folded", "derivation": "bounded", "consult": "lazy", "homogeneous": None,
        "preference": "global",
    }  # fmt: skip
    assert Settings.from_json(before).refusals == ()
    assert Settings(refusals=()).to_json() == before
    entry = Settings(refusals=hedges).to_json()  # type: ignore[arg-type]
    assert entry["refusals"]["name"] == "tests.refusing_function:hedges"
    entry["refusals"]["source"] = "0" * 16
    message = r'^refusals=.* is not what the file states: source: "0000000000000000" -> "[0-9a-f]{16}"\.'
    refuses(ArgumentError, message, Settings.from_json, entry, {"refusals": hedges})
    with pytest.raises(ArgumentError, match=r"^refusal='drop' is not known; use one of 'inapplicable', 'no_answer'"):
        Settings(refusal="drop")  # type: ignore[arg-type]


async def awaits(answer: str) -> bool:
    return bool(answer)


def raising(answer: str) -> bool:
    raise ValueError(f"cannot read {answer}")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda _: "yes",
            r"^refusals\(.I don't know., \.\.\.\)|^refusals\(.* must be True or False; got 'yes'\. Change",
        ),
        (lambda _: None, "must be True or False; got None"),
        (awaits, "^refusals is async, and it was called without await; give a function that is not"),
        (
            raising,
            r"raising'.* failed on the answer .*: ValueError: cannot read I don't know \(.*test_refusals\.py, line",
        ),
    ],
    ids=["text", "none", "async", "raises"],
)
def test_a_function_that_fails_is_named_and_is_not_a_verdict(function: Callable[[str], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Case(CAPITAL, Settings(refusals=function))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *cases("what is not refusals"),
        (str, r"^refusals must be a function \(answer\) -> True or False; got <class 'str'>\.$"),
    ],
)
def test_what_is_not_refusals_is_refused(value: Any, message: str) -> None:
    refuses(ArgumentError, message, Settings, refusals=value)


def test_a_certificate_of_ones_own_is_not_asked_about_a_refusal() -> None:
    calls: list[str] = []

    def certificate(answer: str, evidence: Any) -> bool:
        calls.append(answer)
        return True

    async def on_request(answer: str, evidence: Any) -> bool:
        return certificate(answer, evidence)

    answers = ("Dubai", "I don't know", "Doha")
    case = Case(replace(CAPITAL, answers=answers), Settings(certificate=certificate))  # type: ignore[arg-type]
    assert [case.certified(answer) for answer in answers] == [True, None, True]
    assert calls == ["Dubai", "Doha"]
    case = Case(replace(CAPITAL, answers=answers), Settings(certificate=on_request))  # type: ignore[arg-type]
    assert case.to_certify() == ("Dubai", "Doha")
    assert case.to_certify(Repair("None")) == ()
    assert case.certified("None") is None


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(refusals=()),
        Settings(refusals=("pass",), refusal="no_answer"),
        Settings(refusals="tests.refusing_function:hedges"),  # type: ignore[arg-type]
    ],
    ids=["default", "none", "phrases", "function"],
)
def test_settings_read_back_from_a_file_as_they_were(settings: Settings) -> None:
    own = {"refusals": settings.refusals} if isinstance(settings.refusals, OwnRefusals) else {}
    assert Settings.from_json(settings.to_json(), own) == settings
