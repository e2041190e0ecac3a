"""What a page tells of a question: the way of a rule in words, its passages, its consultations, and any text."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Decision, drive
from eldgr_dspy.formats.rows import PassageRow, Row
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.report.explanations import Piece, ShownPassage, passages, path
from eldgr_dspy.report.question_tables import RunQuestion, question_tables
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Consultation, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.reasons import REASONS
from eldgr_dspy.showing import is_printable, printable
from eldgr_dspy.tables.table import Table
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
                *("The repairer abstains: no span.", *["Nothing certified could replace consensus.", "“Dubai” ships."]),
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
        *("The certified class with most votes ships.", "“Doha” ships.")
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


def passages_shown(answers: tuple[str, ...], *texts: str, ships: str | None = None) -> tuple[list[ShownPassage], int]:
    """The passages of a question whose first rule ships an answer."""
    case = Case(Question("Where?", "retrieval", answers, passages=tuple(Passage("", text) for text in texts)))
    witness = case.certificate(ships).witness
    result = (
        None if witness is None else {name: getattr(witness, name) for name in ("passage", "field", "start", "end")}
    )
    decided: Any = {"rule": "eldgr", "witness": result}
    return passages([PassageRow(title="", text=text) for text in texts], case, [decided])


def joined(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


def test_what_ships_is_marked_and_other_certified_answers_are_marked_as_such() -> None:
    (first, second), left_out = passages_shown(("Doha", "Riga"), "It is in Doha, Qatar.", "Not Riga.", ships="Doha")
    assert first.text == ["It is in ", ("Doha", "witness of what ships by eldgr"), ", Qatar."]
    assert second.text == ["Not ", ("Riga", "witness of “Riga”"), "."]
    assert left_out == 0


def test_marks_that_overlap_are_cut_into_pieces_with_both_labels() -> None:
    (one,), _ = passages_shown(
        ("Sam Boyd Stadium", "Boyd Stadium in Nevada"), "At Sam Boyd Stadium in Nevada.", ships="Sam Boyd Stadium"
    )
    other = "witness of “Boyd Stadium in Nevada”"
    assert one.text == [
        "At ",
        ("Sam ", "witness of what ships by eldgr"),
        ("Boyd Stadium", f"witness of what ships by eldgr; {other}"),
        (" in Nevada", other),
        ".",
    ]


def test_a_passage_without_a_mark_is_cut_and_beyond_thirty_they_are_counted() -> None:
    result, left_out = passages_shown(("Oslo",), *(["x" * 500] * 42))
    assert len(result) == 30
    assert result[0].text == [f"{'x' * 400}… (100 more characters)"]
    assert left_out == 12


def test_a_long_passage_is_shown_around_its_mark_with_counts() -> None:
    (one,), _ = passages_shown(("Doha",), f"{'a ' * 8_000}Doha{' b' * 8_000}", ships="Doha")
    before, *pieces, after = one.text
    assert before == "(6,000 characters) …"
    assert after == "… (6,000 more characters)"
    assert len(joined(pieces)) == 20_004


def test_a_witness_in_a_title_is_marked_there() -> None:
    case = Case(Question("Where?", "retrieval", ("Doha",), passages=(Passage("Doha", "The capital."),)))
    (one,), _ = passages([PassageRow(title="Doha", text="The capital.")], case, [])
    assert one.title == [("Doha", "witness of “Doha”")]
    assert one.text == ["The capital."]


@given(
    st.lists(st.sampled_from(["ab", "b c", "c", "abc", "ca"]), min_size=1, max_size=4),
    st.text("abc \u202e", max_size=40),
)
def test_joined_together_the_pieces_are_the_passage(answers: list[str], text: str) -> None:
    (one,), _ = passages_shown(tuple(answers), text, ships=answers[0])
    assert joined(one.text) == text


def asked(**changes: Any) -> list[Table]:
    """The tables of what a certificate's consultation says, which is always taken into account."""
    row = Row.model_validate({"id": "q", "question": "Q?", "task": "retrieval", "candidates": [{"answer": "a"}]})
    consultation = Consultation("p", "q", "certificate", **{"outcome": "ok", **changes})
    tables = [*question_tables(RunQuestion("p", row, None, [], {"certificate": consultation}))]
    return tables[2:-2]


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({}, "no LM of DSPy's"),
        ({"recorded": True, "asked": "m"}, "recorded"),
        ({"asked": "m"}, "m"),
        ({"asked": "m", "served": "m"}, "m"),
        ({"asked": "m", "served": "n"}, "m, answered by n"),
    ],
    ids=["none", "recorded", "asked", "served", "another"],
)
def test_it_is_said_who_answered(changes: dict[str, Any], by: str) -> None:
    assert asked(**changes)[0].rows[0][2] == by


def test_it_is_said_what_it_took() -> None:
    amounts = {"calls": 2, "cached": 1, "attempt": 3, "seconds": 1.256, "prompt_tokens": 1_200, "completion_tokens": 0}
    took = "2 LM calls, 1 from the cache, attempt 3, 1.26 s, 1,200 tokens in, 0 tokens out, 0.0013 dollars"
    assert asked(**amounts, cost=0.00125)[0].rows[0][3] == took
    assert asked(calls=1)[0].rows[0][3] == "1 LM call"


def test_fields_are_text_and_lists_of_objects_are_tables() -> None:
    steps = [{"expression": "1 + 1", "value": "2"}, {"value": 0.333333333, "note": None, "more": {"a": [1]}}]
    result = asked(content={"preferred": 2, "judge_rationale": "because", "steps": steps, "none": [], "mixed": [1, {}]})
    reply = ("preferred: 2", "judge rationale: because", "none: []", "mixed: [1, {}]")
    assert result[0].notes == tuple(f"certificate, {one}" for one in reply)
    assert result[1].headers == ("", "expression", "value", "note", "more")
    assert result[1].rows == (("[0]", "1 + 1", "2", "—", "—"), ("[1]", "—", "0.3333", "—", '{"a": [1]}'))


def test_what_is_long_is_cut_with_a_count() -> None:
    rows = [{f"column {i}": "x" * 1_000 for i in range(40)}] * 100
    result = asked(outcome="abstained", reason="r" * 5_000, content={"text": "t" * 5_000, "rows": rows})
    assert [note.endswith("… (1,000 more characters)") for note in result[0].notes] == [True, True]
    assert (len(result[1].headers), len(result[1].rows), result[1].notes) == (17, 64, ("36 more rows.",))
    assert result[1].rows[0][1].endswith("… (700 more characters)")


def test_what_is_nested_beyond_measure_is_said_to_be() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert asked(content={"deep": deep})[0].notes == ("certificate, deep: nested too deeply to show",)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
        ("a\u202eb\u2066c", "a[U+202E]b[U+2066]c"),  # hazard 37
        ("\x00\x1b\x9f\ud800\uffff", "[U+0000][U+001B][U+009F][U+D800][U+FFFF]"),
        ("a\r\nb\rc", "a\r\nb[U+000D]c"),
    ],
    ids=["plain", "bidirectional", "control", "carriage return"],
)
def test_controls_are_made_visible(text: str, output: str) -> None:
    assert printable(text) == output


@given(st.text())
def test_what_is_printable_stays_as_it_is_and_all_that_is_shown_is(text: str) -> None:
    assert is_printable(text) == (printable(text) == text)
    assert is_printable(printable(text))
    printable(text).encode("utf-8")


def test_a_long_text_is_cut_with_a_count() -> None:
    assert clip("x" * 5, 5) == "xxxxx"
    assert clip("x" * 1_705, 5) == "xxxxx… (1,700 more characters)"
