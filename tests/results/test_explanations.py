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
from tests.case_tables import agrees, each_case, tables_of
from tests.results.page_reader import place

EVIDENCE = (Passage("Doha", "Qatar Airways is based in Doha, Qatar."),)


def case(*answers: str | None, task: Any = "retrieval", question: str = "Where?", **settings: Any) -> Case:
    passages = EVIDENCE if task == "retrieval" else ()
    return Case(Question(question, task, answers, passages=passages), Settings(**settings))


def way(result: Case, rule: str, replies: dict[Role, Reply] | None = None) -> list[str]:
    """What is said of a rule that hears these replies."""
    roles: dict[Role, Reply] = {}

    def reply(role: Role) -> Reply:
        roles[role] = (replies or {})[role]
        return roles[role]

    decision = result.record(drive(result.rule(rule)(result), reply), roles)
    line: Any = {"rule": rule, **plain(decision)}
    return list(path(result, line))


@each_case("results", "ways in retrieval", verdict=Verdict, abstention=Abstention, repair=Repair)
def test_the_way_of_a_rule_in_retrieval(rule: str, answers: Any, replies: Any, texts: list[str]) -> None:
    assert way(case(*answers), rule, replies) == texts


QUESTION = "A crate holds 12 jars. Jo fills 5 crates and then breaks 8 of the jars. How many jars are whole?"


def derive(steps: Any, answer: str, check: str) -> Derivation:
    return Derivation(tuple(Step(*step) for step in steps), answer, check)


@each_case("results", "the way of eldgr in arithmetic", abstention=Abstention, derivation=derive)
def test_the_way_of_eldgr_in_arithmetic(answers: Any, reply: Reply, texts: list[str]) -> None:
    result = way(case(*answers, task="arithmetic", question=QUESTION), "eldgr", {"deriver": reply})
    assert [one.startswith(expected) for one, expected in zip(result[1:], texts, strict=False)] == [True] * len(texts)


def test_a_decision_without_its_case_has_its_sentences_and_each_reason_is_documented() -> None:
    result = case("Dubai", "Dubai", "Doha")
    decision = result.record(drive(result.rule("judge")(result), lambda _: Verdict(2)), {"judge": Verdict(2)})
    line: Any = {"rule": "judge", **plain(decision)}
    assert [*path(None, line)] == [
        *("Consensus is “Dubai”.", "The judge prefers candidate [2]."),
        *("The judge's preference ships, with its certificate.", "“Doha” ships."),
    ]
    assert [*path(None, line | {"reason": "of_my_own", "branch": "judge"})][-2] == "What decides is judge."
    names = re.findall(r"`(\w+)`", str(Decision.__doc__).partition("reason:")[2].partition("certified:")[0])
    assert [*REASONS] == names


def shown_passages(answers: tuple[str, ...], *texts: str, ships: str | None = None) -> tuple[list[ShownPassage], int]:
    """The passages of a question whose first rule ships an answer."""
    case = Case(Question("Where?", "retrieval", answers, passages=tuple(Passage("", text) for text in texts)))
    line: Any = {"rule": "eldgr", "witness": place(case.certificate(ships))}
    return passages([PassageRow(title="", text=text) for text in texts], case, [line])


def join(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


@each_case("results", "marked passages")
def test_marks_say_whose_witness_they_are(answers: Any, texts: list[str], ships: str, expected: Any) -> None:
    result, left_out = shown_passages(tuple(answers), *texts, ships=ships)
    assert agrees([one.text for one in result], expected)
    assert left_out == 0


def test_passages_are_cut_around_their_marks() -> None:
    result, left_out = shown_passages(("Oslo",), *(["x" * 500] * 42))
    assert len(result) == 30
    assert (result[0].text, left_out) == ([f"{'x' * 400}… (100 more characters)"], 12)
    (one,), _ = shown_passages(("Doha",), f"{'a ' * 8_000}Doha{' b' * 8_000}", ships="Doha")
    before, *pieces, after = one.text
    assert (before, after) == ("(6,000 characters) …", "… (6,000 more characters)")
    assert len(join(pieces)) == 20_004
    case = Case(Question("Where?", "retrieval", ("Doha",), passages=(Passage("Doha", "The capital."),)))
    (one,), _ = passages([PassageRow(title="Doha", text="The capital.")], case, [])
    assert (one.title, one.text) == ([("Doha", "witness of “Doha”")], ["The capital."])


spellings = st.lists(st.sampled_from(["ab", "b c", "c", "abc", "ca"]), min_size=1, max_size=4)


@given(spellings, st.text("abc \u202e", max_size=40))
def test_joined_together_the_pieces_are_the_passage(answers: list[str], text: str) -> None:
    (one,), _ = shown_passages(tuple(answers), text, ships=answers[0])
    assert join(one.text) == text


def certificate_tables(**changes: Any) -> list[Table]:
    """The tables of what a certificate's consultation says, which is always taken into account."""
    row = Row.model_validate({"id": "q", "question": "Q?", "task": "retrieval", "candidates": [{"answer": "a"}]})
    consultation = Consultation("p", "q", "certificate", **{"outcome": "ok", **changes})
    tables = [*question_tables(RunQuestion("p", row, None, [], {"certificate": consultation}))]
    return tables[2:-2]


@each_case("results", "consultations shown")
def test_it_is_said_who_answered_and_what_it_took(changes: dict[str, Any], column: int, text: str) -> None:
    assert certificate_tables(**changes)[0].rows[0][column] == text


def test_what_a_consultation_said_is_shown_within_bounds() -> None:
    content, *expected = tables_of("results")["a reply and its tables"].values()
    result = certificate_tables(content=content)
    assert agrees([result[0].notes, result[1].headers, result[1].rows], expected)
    rows = [{f"column {i}": "x" * 1_000 for i in range(40)}] * 100
    result = certificate_tables(outcome="abstained", reason="r" * 5_000, content={"text": "t" * 5_000, "rows": rows})
    assert [note.endswith("… (1,000 more characters)") for note in result[0].notes] == [True, True]
    assert (len(result[1].headers), len(result[1].rows), result[1].notes) == (17, 64, ("36 more rows.",))
    assert result[1].rows[0][1].endswith("… (700 more characters)")
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert certificate_tables(content={"deep": deep})[0].notes == ("certificate, deep: nested too deeply to show",)
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
