"""What a page tells of a question: the way of a rule in words, its passages, its consultations, and any text."""

import re
from typing import Any

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
from tests.case_tables import each_case

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


@each_case("results", "the way of eldgr in retrieval", verdict=Verdict, abstention=Abstention, repair=Repair)
def test_the_way_of_eldgr_in_retrieval(answers: Any, replies: Any, texts: list[str]) -> None:
    assert way(case(*answers), "eldgr", replies) == texts


QUESTION = "A crate holds 12 jars. Jo fills 5 crates and then breaks 8 of the jars. How many jars are whole?"


def derived(steps: Any, answer: str, check: str) -> Derivation:
    return Derivation(tuple(Step(*step) for step in steps), answer, check)


@each_case("results", "the way of eldgr in arithmetic", abstention=Abstention, derivation=derived)
def test_the_way_of_eldgr_in_arithmetic(answers: Any, reply: Reply, texts: list[str]) -> None:
    result = way(case(*answers, task="arithmetic", question=QUESTION), "eldgr", {"deriver": reply})
    assert [one.startswith(expected) for one, expected in zip(result[1:], texts, strict=False)] == [True] * len(texts)


def test_a_rule_that_asks_nobody_and_a_decision_without_its_case_have_their_sentences() -> None:
    tied = "Consensus is “yes” with 1 of 2 votes; others have as many, and its first vote comes earliest."
    assert way(case("yes", "no"), "majority")[0] == tied
    assert way(case("yes", None, "no", None), "majority")[0] == tied
    assert way(case("Dubai", "Doha"), "first")[-2:] == ["The first candidate ships.", "“Dubai” ships."]
    assert way(case("Dubai", "Dubai", "Doha"), "majority")[-2] == "Nothing replaced the uncertified consensus."
    assert way(case("Dubai", "Dubai", "Doha"), "certified")[-2:] == [
        *("The certified class with most votes ships.", "“Doha” ships.")
    ]
    result = case("Dubai", "Dubai", "Doha")
    decision = result.record(drive(result.rule("judge")(result), lambda _: Verdict(2)), {"judge": Verdict(2)})
    decided: Any = {"rule": "judge", **plain(decision)}
    assert [*path(None, decided)] == [
        *("Consensus is “Dubai”.", "The judge prefers candidate [2]."),
        *("The judge's preference ships, with its certificate.", "“Doha” ships."),
    ]
    assert [*path(None, decided | {"reason": "of_my_own", "branch": "judge"})][-2] == "What decides is judge."
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


def test_passages_are_cut_around_their_marks_which_say_whose_witness_they_are() -> None:
    (first, second), left_out = passages_shown(("Doha", "Riga"), "It is in Doha, Qatar.", "Not Riga.", ships="Doha")
    assert first.text == ["It is in ", ("Doha", "witness of what ships by eldgr"), ", Qatar."]
    assert second.text == ["Not ", ("Riga", "witness of “Riga”"), "."]
    assert left_out == 0
    (one,), _ = passages_shown(
        ("Sam Boyd Stadium", "Boyd Stadium in Nevada"), "At Sam Boyd Stadium in Nevada.", ships="Sam Boyd Stadium"
    )
    other = "witness of “Boyd Stadium in Nevada”"
    assert one.text == [
        "At ", ("Sam ", "witness of what ships by eldgr"), ("Boyd Stadium", f"witness of what ships by eldgr; {other}"),
        (" in Nevada", other), ".",
    ]  # fmt: skip
    result, left_out = passages_shown(("Oslo",), *(["x" * 500] * 42))
    assert len(result) == 30
    assert result[0].text == [f"{'x' * 400}… (100 more characters)"]
    assert left_out == 12
    (one,), _ = passages_shown(("Doha",), f"{'a ' * 8_000}Doha{' b' * 8_000}", ships="Doha")
    before, *pieces, after = one.text
    assert before == "(6,000 characters) …"
    assert after == "… (6,000 more characters)"
    assert len(joined(pieces)) == 20_004
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


@each_case("results", "who answered")
def test_it_is_said_who_answered(changes: dict[str, Any], by: str) -> None:
    assert asked(**changes)[0].rows[0][2] == by


def test_what_a_consultation_took_and_said_is_shown_within_bounds() -> None:
    amounts = {"calls": 2, "cached": 1, "attempt": 3, "seconds": 1.256, "prompt_tokens": 1_200, "completion_tokens": 0}
    took = "2 LM calls, 1 from the cache, attempt 3, 1.26 s, 1,200 tokens in, 0 tokens out, 0.0013 dollars"
    assert asked(**amounts, cost=0.00125)[0].rows[0][3] == took
    assert asked(calls=1)[0].rows[0][3] == "1 LM call"
    steps = [{"expression": "1 + 1", "value": "2"}, {"value": 0.333333333, "note": None, "more": {"a": [1]}}]
    result = asked(content={"preferred": 2, "judge_rationale": "because", "steps": steps, "none": [], "mixed": [1, {}]})
    reply = ("preferred: 2", "judge rationale: because", "none: []", "mixed: [1, {}]")
    assert result[0].notes == tuple(f"certificate, {one}" for one in reply)
    assert result[1].headers == ("", "expression", "value", "note", "more")
    assert result[1].rows == (("[0]", "1 + 1", "2", "—", "—"), ("[1]", "—", "0.3333", "—", '{"a": [1]}'))
    rows = [{f"column {i}": "x" * 1_000 for i in range(40)}] * 100
    result = asked(outcome="abstained", reason="r" * 5_000, content={"text": "t" * 5_000, "rows": rows})
    assert [note.endswith("… (1,000 more characters)") for note in result[0].notes] == [True, True]
    assert (len(result[1].headers), len(result[1].rows), result[1].notes) == (17, 64, ("36 more rows.",))
    assert result[1].rows[0][1].endswith("… (700 more characters)")
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert asked(content={"deep": deep})[0].notes == ("certificate, deep: nested too deeply to show",)
    assert clip("x" * 5, 5) == "xxxxx"
    assert clip("x" * 1_705, 5) == "xxxxx… (1,700 more characters)"


@each_case("results", "controls")
def test_controls_are_made_visible(text: str, output: str) -> None:  # hazard 37
    assert printable(text) == output


@given(st.text())
def test_what_is_printable_stays_as_it_is_and_all_that_is_shown_is(text: str) -> None:
    assert is_printable(text) == (printable(text) == text)
    assert is_printable(printable(text))
    printable(text).encode("utf-8")
