"""The way of a rule in words says what happened: every sentence agrees with the decision it is read off."""

from typing import Any

import pytest

from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.decision import drive
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.report.explanations import path
from eldgr_dspy.words import Role

EVIDENCE = (Passage("Doha", "Qatar Airways is based in Doha, Qatar."),)


def case(*answers: str | None, task: Any = "retrieval", question: str = "Where?", **settings: Any) -> Case:
    passages = EVIDENCE if task == "retrieval" else ()
    return Case(Question(question, task, answers, passages=passages), Settings(**settings))


def way(found: Case, rule: str, replies: dict[Role, Reply] | None = None) -> list[str]:
    """What is said of a rule that hears these replies."""
    heard: dict[Role, Reply] = {}

    def reply(role: Role) -> Reply:
        heard[role] = (replies or {})[role]
        return heard[role]

    decision = found.record(drive(found.rule(rule)(found), reply), heard)
    decided: Any = {"rule": rule, **plain(decision)}
    return list(path(found, decided))


DUBAI = "Consensus is “Dubai” with 2 of 3 votes."
OPEN = "It is uncertified: does not occur in the evidence."
ASKED = "Another answer is certified, so the judge is asked."
STILL = "It is still open, so the repairer is asked for a span of the evidence."
SHIPS = "Consensus ships."


@pytest.mark.parametrize(
    ("answers", "replies", "said"),
    [
        (
            ("Doha", "Doha", "Dubai"),
            {},
            [
                "Consensus is “Doha” with 2 of 3 votes.",
                "It is certified, so it is final: nothing that a role says can replace it.",
            ],
        ),
        (
            ("yes", "no"),
            {},
            [
                "Consensus is “yes” with 1 of 2 votes; others have as many, and its first vote comes earliest.",
                "It is a yes or no, to which a certificate does not apply, so it is final: nothing that a role says can"
                " replace it.",
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Verdict(2)},
            [DUBAI, OPEN, ASKED, "It prefers candidate [2], “Doha”, which is certified: that ships."],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Verdict(0), "repairer": Abstention("no span")},
            [
                *(DUBAI, OPEN, ASKED, "It prefers candidate [0], “Dubai”, which is consensus.", STILL),
                *("The repairer abstains: no span.", SHIPS),
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha", "Riga"),
            {"judge": Verdict(3), "repairer": Repair("Qatar Airways")},
            [
                *("Consensus is “Dubai” with 2 of 4 votes.", OPEN, ASKED),
                "It prefers candidate [3], “Riga”, which is uncertified and cannot override.",
                *(STILL, "It gives “Qatar Airways”, which is certified: that ships."),
            ],
        ),
        (
            ("Dubai", "Dubai", "Doha"),
            {"judge": Abstention("failed: ConnectionError: reset"), "repairer": Repair("Riga")},
            [
                *(DUBAI, OPEN, ASKED, "The judge's call failed: ConnectionError: reset.", STILL),
                *("It gives “Riga”, which is uncertified and cannot override.", SHIPS),
            ],
        ),
        (
            ("Dubai", "Dubai", "Riga"),
            {"repairer": Repair("dubai")},
            [
                *(DUBAI, OPEN, "No other answer of the pool is certified, so no preference of a judge could ship."),
                *(STILL, "It gives “dubai”, which is consensus.", SHIPS),
            ],
        ),
        (
            (None, ""),
            {"repairer": Abstention("no span")},
            [
                *("No candidate has an answer, so there is no consensus.", "It is uncertified: empty answer."),
                "No other answer of the pool is certified, so no preference of a judge could ship.",
                *(STILL, "The repairer abstains: no span.", "Nothing ships."),
            ],
        ),
    ],
    ids=["certified", "polar", "judge", "agrees", "repair", "failed", "echo", "nobody"],
)
def test_the_way_of_eldgr_in_retrieval(answers: Any, replies: Any, said: list[str]) -> None:
    assert way(case(*answers), "eldgr", replies) == said


def test_settings_that_change_who_is_asked_are_named() -> None:
    always = case("Doha", "Doha", "Dubai", consult="always")
    assert way(always, "eldgr", {"judge": Verdict(0), "repairer": Abstention("no span")})[1] == (
        "Every role is asked, as consult=always says: judge and repairer."
    )
    assert way(case("Dubai", homogeneous="skip"), "eldgr")[-1] == (
        "All candidates agree, and homogeneous=skip leaves it at that. Consensus ships."
    )
    assert way(case("60", task="arithmetic"), "eldgr")[-1] == (
        "All candidates agree, so no derivation is asked for, as homogeneous=skip says. Consensus ships."
    )


QUESTION = "A crate holds 12 jars. Jo fills 5 crates and then breaks 8 of the jars. How many jars are whole?"
DERIVED = Derivation((Step("12 * 5", "60"), Step("60 - 8", "52")), "52", "(52 + 8) / 5 = 12")
DERIVER = "The deriver is asked: a derivation certifies answers of this type, and the judge never decides."


@pytest.mark.parametrize(
    ("answers", "reply", "said"),
    [
        (
            ("60", "60", "52"),
            DERIVED,
            ["Its derivation of “52” passes the check “bounded”.", "It differs from consensus and ships."],
        ),
        (
            ("52", "52", "60"),
            DERIVED,
            ["Its derivation of “52” passes the check “bounded”.", "It says what consensus says. Consensus ships."],
        ),
        (("60", "60", "52"), Abstention("silent"), ["The deriver abstains: silent.", SHIPS]),
    ],
    ids=["differs", "agrees", "silent"],
)
def test_the_way_of_eldgr_in_arithmetic(answers: Any, reply: Reply, said: list[str]) -> None:
    told = way(case(*answers, task="arithmetic", question=QUESTION), "eldgr", {"deriver": reply})
    assert told[1:] == [DERIVER, *said]


def test_a_derivation_that_is_not_accepted_is_given_with_the_reason() -> None:
    wrong = Derivation((Step("12 * 5", "61"),), "61")
    told = way(case("60", "60", "52", task="arithmetic", question=QUESTION), "eldgr", {"deriver": wrong})
    assert told[2].startswith("Its derivation of “61” does not pass the check “bounded”: ")
    assert told[3] == SHIPS


def test_the_ways_of_the_other_rules() -> None:
    found = case("Dubai", "Dubai", "Doha")
    assert way(found, "first") == ["The first candidate ships: “Dubai”."]
    assert way(case(None), "first") == ["The first candidate ships: no answer."]
    assert way(found, "majority") == [DUBAI, SHIPS]
    asked = "The candidates differ, so the judge is asked, with full authority."
    prefers = "It prefers candidate [2], “Doha”."
    assert way(found, "judge", {"judge": Verdict(2)}) == [DUBAI, asked, prefers, "That ships."]
    assert way(found, "judge", {"judge": Abstention("silent")}) == [DUBAI, asked, "The judge abstains: silent.", SHIPS]
    unread = Abstention("unparsable: The reply is empty.")  # a sentence already
    assert way(found, "judge", {"judge": unread})[2] == "The judge abstains: unparsable: The reply is empty."
    assert way(case("Dubai"), "judge")[-1] == (
        "There is nothing to choose between, so the judge is not asked. Consensus ships."
    )


def test_the_ways_of_certified_majority() -> None:
    leads = "Of the certified answers, “Doha” has most votes: that ships."
    assert way(case("Dubai", "Dubai", "Doha"), "certified") == [DUBAI, OPEN, leads]
    assert way(case("Dubai", "Dubai", "Riga"), "certified")[1:] == [f"No answer of the pool is certified. {SHIPS}"]
    assert way(case("Dubai"), "certified")[1:] == [SHIPS]
    assert way(case("Doha", "Dubai"), "certified")[1:] == [f"It is certified. {SHIPS}"]
    inapplicable = f"It is a refusal, to which a certificate does not apply. {SHIPS}"
    assert way(case("I don't know", "Doha"), "certified")[1:] == [inapplicable]
    arithmetic = f"The evidence certifies no answers of this type. {SHIPS}"
    assert way(case("1", "2", task="arithmetic"), "certified")[1:] == [arithmetic]


SILENT: dict[Role, Reply] = {role: Abstention("no reply") for role in ("judge", "repairer", "deriver")}
NO_SPAN = "The repairer abstains: no reply."


def test_the_way_of_the_locked_rule_that_continues_with_certified_majority() -> None:
    found = case("Dubai", "Dubai", "Doha")
    asked = [DUBAI, OPEN, ASKED, "The judge abstains: no reply.", STILL]
    leads = "The judge is silent, so the certified answer with most votes ships: “Doha”."
    assert way(found, "eldgr_certified", SILENT) == [*asked, NO_SPAN, leads]
    certified = way(found, "eldgr_certified", {**SILENT, "repairer": Repair("Qatar")})
    assert certified == [*asked, "It gives “Qatar”, which is certified: that ships."]
    prefers = way(found, "eldgr_certified", {**SILENT, "judge": Verdict(0)})
    assert prefers[-4:] == ["It prefers candidate [0], “Dubai”, which is consensus.", STILL, NO_SPAN, SHIPS]


@pytest.mark.parametrize(
    ("answers", "rule", "preferred", "said"),
    [
        (
            ("Dubai", "Riga"),
            "near(0)",
            1,
            [
                "It prefers candidate [1], “Riga”, which is uncertified and has as many votes as consensus.",
                "Under near(0) that is enough to override an uncertified consensus: the preference ships.",
            ],
        ),
        (
            ("Dubai", "Dubai", "Riga"),
            "near(1)",
            2,
            [
                "It prefers candidate [2], “Riga”, which is uncertified and has 1 vote fewer than consensus.",
                "Under near(1) that is enough to override an uncertified consensus: the preference ships.",
            ],
        ),
        (
            ("Dubai", "Dubai", "Dubai", "Oslo", "Oslo", "Riga"),
            "near(1)",
            5,
            ["It prefers candidate [5], “Riga”, which is uncertified and has 2 votes fewer than consensus.", SHIPS],
        ),
        (("Dubai", "Riga"), "near(0)", 0, ["It prefers candidate [0], “Dubai”, which is consensus.", SHIPS]),
    ],
)
@pytest.mark.parametrize("task", ["retrieval", "arithmetic"])
def test_the_way_of_a_near_rule(task: str, answers: Any, rule: str, preferred: int, said: list[str]) -> None:
    told = way(case(*answers, task=task), rule, {**SILENT, "judge": Verdict(preferred)})
    nearly = "Another answer nearly won the vote, so the judge is asked."
    before = [OPEN, "No other answer of the pool is certified.", STILL, NO_SPAN]
    if task == "arithmetic":
        asked = "The deriver is asked: a derivation certifies answers of this type."
        before = [asked, "The deriver abstains: no reply."]
    assert told[1:] == [*before, nearly, *said]


def test_the_way_of_a_near_rule_whose_judge_prefers_what_no_certificate_applies_to() -> None:
    told = way(case("Dubai", "Riga", "yes"), "near(0)", {**SILENT, "judge": Verdict(2)})
    cannot = "to which a certificate does not apply, so it cannot override."
    assert told[-2:] == [f"It prefers candidate [2], “yes”, {cannot}", SHIPS]


def test_a_near_rule_that_has_asked_the_judge_does_not_ask_again() -> None:
    told = way(case("Dubai", "Riga", "Doha"), "near(0)", {**SILENT, "judge": Verdict(1)})
    assert told[1:] == [
        *(OPEN, ASKED, "It prefers candidate [1], “Riga”, which is uncertified and has as many votes as consensus."),
        *(STILL, NO_SPAN, "Under near(0) that is enough to override an uncertified consensus: the preference ships."),
    ]


def test_of_a_users_own_rule_it_is_said_whom_it_asked_and_what_decided() -> None:
    decided: Any = {"rule": "mine:rule", "consulted": ["judge", "repairer"], "abstentions": {"judge": "silent"}}
    decided |= {"branch": "repair", "answer": "Doha"}
    assert list(path(case("Dubai", "Dubai", "Doha"), decided))[1:] == [
        "The judge abstains: silent.",
        "The repairer was asked and answered.",
        "What decides is repair: “Doha” ships.",
    ]
