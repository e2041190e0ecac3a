"""Vote, certificate, yes/no and score see an answer through one function, so that spelling never decides."""

import gzip
import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, exact_match, is_polar, numeric_equal, official_score
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.decision import Decision
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.laws.of_rules import DECORATIONS, decorate
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import Policy
from tests.certificate_cases import value
from tests.deciding import SILENT, decide_case
from tests.rule.keys import cases, key

DOHA = (
    *("Doha", "Doha.", "Doha!", "Doha…", "Doha。", "**Doha**", '"Doha"', "“Doha”", "(Doha)", "the Doha", "`Doha`"),
    *(r"\boxed{Doha}", r"$\boxed{\text{Doha}}$.", "<b>Doha</b>", "<answer> Doha </answer>", "# Doha", "[Doha](x.org)"),
)


def decide(question: Question, preferred: int | None, policy: Policy = "folded") -> Decision:
    replies = SILENT if preferred is None else {**SILENT, "judge": Verdict(preferred)}
    return decide_case(Case(question, Settings(certificate=policy)), replies)[0]


@pytest.mark.parametrize("policy", ["token", "folded"])
@pytest.mark.parametrize("spelling", DOHA)
def test_a_right_consensus_stands_however_it_is_spelled(spelling: str, policy: Policy) -> None:
    question = Question("Capital?", "retrieval", (spelling, spelling, "Qatar"), (), (Passage("", "Doha is in Qatar"),))
    result = decide(question, 2, policy)
    assert (result.answer, result.branch, result.certified) == (spelling, "consensus", True)


@pytest.mark.parametrize("spelling", DOHA)
def test_each_spelling_is_one_answer_everywhere(spelling: str) -> None:
    assert key(spelling) == "doha"
    assert exact_match(spelling, ["Doha"]) and exact_match("Doha", [spelling])
    assert value(spelling, "in Doha now") is True and value(spelling, "in Dohan now") is False


@pytest.mark.parametrize("spelling", ["yes", r"\boxed{yes}", "**Yes.**", "“no”", "<b>True</b>", "ｙｅｓ", "(false)"])
def test_a_yes_or_no_is_inapplicable_in_any_wrapper(spelling: str) -> None:
    assert is_polar(spelling) and certify(spelling, []).certified is None


def test_numbers_are_stripped_too_and_the_official_score_of_the_raw_text_is_told_apart() -> None:
    spellings = ("18", "18.", "**18**", r"\boxed{18}", "“18”", "$18$", "<answer>18</answer>", "(18)", "18。")
    assert {answer_class(one, "arithmetic") for one in spellings} == {answer_class("18", "arithmetic")}
    assert all(numeric_equal(one, ["18"]) for one in spellings)
    assert exact_match(r"\boxed{Doha}", ["Doha"])
    assert not official_score(r"\boxed{Doha}", ["Doha"], "retrieval").em


@pytest.mark.parametrize(("text", "answer"), cases("stripped answers"))
def test_what_tells_answers_apart_stays(text: str, answer: str) -> None:
    assert strip_answer(text) == answer


@given(st.text("aZ5.,!?'\"*_`~#$%&()[]{}<>\\-+ “”…。「」/btex\u200b", max_size=12) | st.text(max_size=12))
def test_stripping_twice_changes_nothing(text: str) -> None:
    once = strip_answer(text)
    assert strip_answer(once) == once
    assert (
        key(once) == key(text)
        or "\u202e" in text
        or any(0x2066 <= ord(c) <= 0x2069 or 0x202A <= ord(c) <= 0x202E for c in text)
    )


@given(st.from_regex(r"[A-Za-z0-9é]{1,4}( [A-Za-z0-9]{1,4}){0,2}", fullmatch=True), st.sampled_from(DECORATIONS))
def test_every_decoration_is_taken_off_an_ordinary_answer(answer: str, decoration: str) -> None:
    assert key(decoration.replace("{}", answer, 1)) == key(answer)


@pytest.mark.parametrize(("one", "other"), cases("apart for a reader"))
def test_the_vote_keeps_apart_what_a_reader_does(one: str, other: str) -> None:
    assert key(one) != key(other)
    assert value(one, f"It is {other} here.") is False


@pytest.mark.parametrize(("answer", "text"), cases("occurrences of a name"))
def test_a_name_and_a_part_that_stands_for_itself_occur(answer: str, text: str) -> None:
    assert value(answer, text) is True


@pytest.mark.parametrize(("one", "other"), cases("read alike"))
def test_what_a_reader_calls_one_answer_votes_and_is_certified_as_one(one: str, other: str) -> None:
    assert key(one) == key(other)
    assert value(one, f"so {other} it is") is True and value(other, f"so {one} it is") is True


@pytest.mark.parametrize("nothing", ["<a>", "<b></b>", "<br>", "&nbsp;", "&shy;", "$ $"])
def test_markup_around_nothing_is_not_an_answer(nothing: str) -> None:
    assert answer_class(nothing, "retrieval") is None or nothing == "$ $"


@pytest.mark.parametrize("text", ["(" * 200_000 + "x", "x" + ")" * 200_000, "{" * 200_000, "*" * 200_000 + "x"])
def test_a_long_answer_is_stripped_to_no_more_than_it_was(text: str) -> None:
    assert len(strip_answer(text)) <= len(text)


def test_a_title_is_one_sentence_and_the_earliest_spelling_that_stands_as_written_ships() -> None:
    film = "Oh! What a Lovely War"
    assert certify(film, [Passage(film, "A film.")]).certified is True
    assert certify(film, [Passage("", f"He saw {film} there.")]).certified is False
    witness = certify("smith a", [Passage("", "by Smith (A)& others; then")]).witness
    assert witness is not None and ";" not in witness.text
    answers = ("doha.", "**Doha**", "Doha", "DOHA", "Qatar")
    assert decide(Question("?", "retrieval", answers, (), (Passage("", "In Doha now"),)), None).answer == "**Doha**"
    assert decide(Question("?", "retrieval", answers, (), (Passage("", "In DohA now"),)), None).answer == "doha."
    for answer, text in [("Café", "the Caf&eacute; is"), ("5½", "some 5&frac12; m")]:
        witness = certify(answer, [Passage("", text)]).witness
        assert witness is not None and witness.text == text[witness.start : witness.end] and witness.text.endswith(";")
    for answer, text in [("كتاب", "في الكتاب"), ("서울", "서울은 크다"), ("1000", "1 000 men")]:
        word = max(text.split(" "), key=len) if " 0" not in text else "1 000"
        assert key(answer) != key(word) and value(answer, text) is False


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), cases("real pools to decorate"))
def test_on_real_pools_no_decoration_changes_a_decision(pools_dir: Path, name: str, every: int) -> None:
    """Every judge's preference is tried; `python -m benchmarks.spelling` does it for whole pools."""
    with gzip.open(pools_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        rows = [Row.model_validate(json.loads(line)) for line in islice(lines, 0, None, every)]
    for row in rows:
        question = row.to_question()
        plain = outcomes(question)
        for decoration in DECORATIONS:
            forms = tuple(decorate(answer, decoration) for answer in question.answers)
            assert outcomes(Question(question.text, question.task, forms, question.texts, question.passages)) == plain


def outcomes(question: Question) -> Sequence[object]:
    """What ships under each judge: branch, certificate and class."""
    preferences = [None, *(index for index, answer in enumerate(question.answers) if answer and answer.strip())]
    results = [decide(question, preferred) for preferred in preferences]
    return [(one.branch, one.certified, answer_class(one.answer, question.task)) for one in results]
