"""The way of a rule in words says what happened: every sentence agrees with the decision it is read off."""

import re
from typing import Any

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Decision, drive
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.report.explanations import path
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.reasons import REASONS
from eldgr_dspy.words import Role

EVIDENCE = (Passage("Doha", "Qatar Airways is based in Doha, Qatar."),)


def case(*answers: str | None, task: Any = "retrieval", question: str = "Where?", **settings: Any) -> Case:
    passages = EVIDENCE if task == "retrieval" else ()
    return Case(Question(question, task, answers, passages=passages), Settings(**settings))


def way(result: Case, rule: str, replies: dict[Role, Reply] | None = None) -> list[str]:
    """What is said of a rule that hears these replies."""
    heard: dict[Role, Reply] = {}

    def reply(role: Role) -> Reply:
        heard[role] = (replies or {})[role]
        return heard[role]

    decision = result.record(drive(result.rule(rule)(result), reply), heard)
    decided: Any = {"rule": rule, **plain(decision)}
    return list(path(result, decided))


DUBAI = ["Consensus is “Dubai” with 2 of 3 votes.", "Its certificate: does not occur in the evidence."]
SHIPS = ["Nothing certified could replace consensus.", "“Dubai” ships."]


@pytest.mark.parametrize(
    ("answers", "replies", "texts"),
    [
        (
            ("Doha", "Doha", "Dubai"),
            {},
            [
                *("Consensus is “Doha” with 2 of 3 votes.", "Its certificate: occurs in the evidence as written."),
                *("Consensus carries a certificate.", "“Doha” ships."),
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Verdict(2)},
            [
                *(*DUBAI, "The judge prefers candidate [2], “Doha”: certified."),
                *("The judge's preference ships, with its certificate.", "“Doha” ships."),
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Verdict(0), "repairer": Abstention("no span")},
            [
                *(*DUBAI, "The judge prefers candidate [0], “Dubai”: uncertified."),
                *("The repairer abstains: no span.", *SHIPS),
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Abstention("failed: ConnectionError: reset"), "repairer": Repair("Qatar Airways")},
            [
                *(*DUBAI, "The judge's call failed: ConnectionError: reset.", "The repairer gives “Qatar Airways”."),
                *("The repairer's span ships.", "“Qatar Airways” ships."),
            ],
        ),
        (
            (None, ""),
            {"repairer": Abstention("no span")},
            [
                *("Consensus is no answer.", "The repairer abstains: no span."),
                *("No candidate has an answer, and no repair was certified.", "Nothing ships."),
            ],
        ),
    ],
    ids=["certified", "judge", "agrees", "repair", "nobody"],
)
def test_the_way_of_eldgr_in_retrieval(answers: Any, replies: Any, texts: list[str]) -> None:
    assert way(case(*answers), "eldgr", replies) == texts


QUESTION = "A crate holds 12 jars. Jo fills 5 crates and then breaks 8 of the jars. How many jars are whole?"
SOUND = Derivation((Step("12 * 5", "60"), Step("60 - 8", "52")), "52", "52 + 8 = 60")


@pytest.mark.parametrize(
    ("answers", "reply", "texts"),
    [
        (("60", "60", "52"), SOUND, ["The deriver gives “52”.", "A checked derivation replaces consensus."]),
        (("52", "52", "60"), SOUND, ["The deriver gives “52”.", "A checked derivation says what consensus says."]),
        (("60", "60", "52"), Abstention("cut off: x"), ["The deriver abstains: cut off: x."]),
        (
            ("60", "60", "52"),
            Derivation((Step("12 * 5", "61"),), "61", ""),
            ["The deriver gives “61”.", "The derivation is not accepted: "],
        ),
    ],
    ids=["differs", "agrees", "silent", "faulty"],
)
def test_the_way_of_eldgr_in_arithmetic(answers: Any, reply: Reply, texts: list[str]) -> None:
    result = way(case(*answers, task="arithmetic", question=QUESTION), "eldgr", {"deriver": reply})
    assert [one.startswith(expected) for one, expected in zip(result[1:], texts, strict=False)] == [True] * len(texts)


def test_a_tie_is_said_and_a_rule_that_asks_nobody_has_its_reason() -> None:
    tied = "Consensus is “yes” with 1 of 2 votes; others have as many, and its first vote comes earliest."
    assert way(case("yes", "no"), "majority")[0] == tied
    assert way(case("yes", None, "no", None), "majority")[0] == tied
    assert way(case("Dubai", "Doha"), "first")[-2:] == ["The first candidate ships.", "“Dubai” ships."]
    assert way(case("Dubai", "Dubai", "Doha"), "certified")[-2:] == [
        *("The certified class with most votes ships.", "“Doha” ships."),
    ]


def test_without_its_case_a_decision_is_told_from_what_was_recorded() -> None:
    result = case("Dubai", "Dubai", "Doha")
    decision = result.record(drive(result.rule("judge")(result), lambda _: Verdict(2)), {"judge": Verdict(2)})
    decided: Any = {"rule": "judge", **plain(decision)}
    assert [*path(None, decided)] == [
        *("Consensus is “Dubai”.", "The judge prefers candidate [2]."),
        *("The judge's preference ships, with its certificate.", "“Doha” ships."),
    ]
    assert [*path(None, decided | {"reason": "of_my_own", "branch": "judge"})][-2] == "What decides is judge."


def test_every_reason_that_a_decision_may_have_has_a_sentence() -> None:
    documented = re.findall(r"`(\w+)`", str(Decision.__doc__).partition("reason:")[2].partition("certified:")[0])
    assert [*REASONS] == documented
