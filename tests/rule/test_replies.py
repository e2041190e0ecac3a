"""What roles are shown, and what is read of their replies: every value is checked, and what fails is an abstention."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate, Passage
from eldgr_dspy.errors import ReplyError
from eldgr_dspy.formats.journal_lines import is_readable
from eldgr_dspy.rule import consultations
from eldgr_dspy.rule.consultations import Abstention, Repair, Reply, Step, Verdict, show_candidate, show_passage
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import heard_from, journaled_reply, read_reply, read_scores, reply_to, require_reply
from eldgr_dspy.words import ROLES, Role
from tests.case_tables import each_case
from tests.public_strategies import FIELDS, json_values, raw_contents
from tests.refusing import refusal
from tests.rule.keys import cases

ANSWERS = ("Dubai", "Doha", None, " ")
SCORES = {"logic": 1, "fact": 1.0, "epist": 0.5, "info": 1, "triang": 0, "adv": 0.5, "min": 1, "scalar": 0.9}
DERIVATION = {"derivation_steps": [{"expression": "3*12", "value": "36"}], "derived_answer": " 36 "}


def nest(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def read(role: Role, **content: Any) -> Reply:
    return read_reply(role, content, ANSWERS, n_passages=2)


def reason(role: Role, **content: Any) -> str:
    result = read(role, **content)
    assert isinstance(result, Abstention)
    return result.reason


def remark(assessments: Any) -> str:
    """The remark on a verdict that counts all the same, without these scores."""
    result = read("judge", preferred=0, assessments=assessments)
    assert isinstance(result, Verdict) and result.scores is None
    return result.remark


def test_a_verdict_keeps_its_index_and_scores_and_each_assessment_is_an_object() -> None:
    assessments = [{**SCORES, "scalar": scalar} for scalar in (0, 1, 0.25, 0.5)]
    result = read("judge", preferred=1, assessments=assessments, judge_rationale="Passage 0.")
    assert result == Verdict(1, (0.0, 1.0, 0.25, 0.5), "Passage 0.")
    # hazard 64
    content = {"preferred": 1, "judge_rationale": "I prefer candidate 0; candidate 1 is wrong.", "assessments": []}
    reply = read_reply("judge", content, ("Dubai", "Doha"), 0)
    assert isinstance(reply, Verdict) and reply.preferred == 1
    # hazard 68, as ruled: `preferred` rules
    assert read("judge", preferred=1, assessments=[SCORES] * 4) == Verdict(1, (0.9,) * 4)
    assert remark([SCORES, 0.9, SCORES, SCORES]) == "assessments[1] is not an object"
    without: list[Any] = [None, [], [{**SCORES, "scalar": None}] * 4, [{}] * 4]
    for nothing in without:
        assert read("judge", preferred=0, assessments=nothing) == Verdict(0)


@pytest.mark.parametrize(
    "score", [150, -0.1, 1.000001, "90%", "0.9", True, [0.9], {}, math.nan, math.inf, -math.inf, 10**400]
)
@pytest.mark.parametrize("aspect", ["logic", "scalar", "confidence"])
def test_a_score_is_a_number_from_0_to_1(aspect: str, score: Any) -> None:  # hazards 59, 62 and 66
    assessments = [SCORES, SCORES, SCORES, {**SCORES, aspect: score}]
    assert remark(assessments).startswith(f"assessments[3].{aspect} is {score!r:.80}")


@pytest.mark.parametrize("assessments", [[SCORES] * 3, [SCORES] * 5, "good", {"scalar": 1}, 7, 0, False, ""])
def test_assessments_are_a_list_with_one_a_candidate(assessments: Any) -> None:
    assert remark(assessments) == "assessments are not a list of 4, one a candidate"


def test_a_repair_is_a_span_and_a_derivation_its_steps_with_at_most_15_further_samples() -> None:
    content = {"repaired_answer": " Doha\n", "repair_passage": 1}
    assert read("repairer", **content) == require_reply("repairer", content, ANSWERS, 2) == Repair("Doha", 1)
    steps = [{"expression": "3*12", "value": "36"}, {"expression": "36-1", "value": 35}]
    result = read("deriver", derivation_steps=steps, derived_answer=35, consistency_check="35+1 = 36")
    assert result == consultations.Derivation((Step("3*12", "36"), Step("36-1", "35")), "35", "35+1 = 36")
    for number in (10**74, -0.5):
        expected = consultations.Derivation((Step("3*12", "36"),), repr(number), "")
        assert read("deriver", **{**DERIVATION, "derived_answer": number}) == expected
    plain = read("deriver", **DERIVATION)
    assert isinstance(plain, consultations.Derivation)
    inner = {**DERIVATION, "other_derivations": [DERIVATION]}
    assert read("deriver", **DERIVATION, other_derivations=[inner] * 20) == replace(plain, others=(plain,) * 15)
    # Whether that is enough is for the level of strictness to say.
    assert read("deriver", **DERIVATION) == consultations.Derivation((Step("3*12", "36"),), "36", "")
    for passage in [None, -1]:  # It is certified against all passages, whatever the repairer says.
        assert read("repairer", repaired_answer="Doha", repair_passage=passage) == Repair("Doha")
    # It is what the repairer is asked to say where no passage holds the answer; it is not an error.
    for span in ["", " \n"]:
        content = {"repaired_answer": span, "repair_passage": -1}
        assert read_reply("repairer", content, ANSWERS, 2) == Abstention("no span")
        assert require_reply("repairer", content, ANSWERS, 2) == Abstention("no span")


@pytest.mark.parametrize("passage", [2, -2, 0.0, -1.0, True, "0", [0]])
def test_a_number_that_is_not_a_passage_s_is_remarked_on_and_the_span_counts(passage: Any) -> None:  # hazard 59
    expected = f"repair_passage={passage!r} is not a whole number from 0 to 1"
    assert read("repairer", repaired_answer="Doha", repair_passage=passage) == Repair("Doha", None, expected)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_abstains_by_its_own_word(role: Role) -> None:
    content = {"abstained": "nothing to go by", "preferred": 0, "repaired_answer": "Doha"}
    assert read_reply(role, content, ANSWERS, 2) == Abstention("nothing to go by")
    assert require_reply(role, content, ANSWERS, 2) == Abstention("nothing to go by")
    assert read(role, abstained=["no idea"]) == Abstention("['no idea']")


@pytest.mark.parametrize("value", [10**5000, nest(5000), "x" * 100_000], ids=["digits", "depth", "length"])
def test_a_reason_is_short_whatever_was_returned(value: Any) -> None:  # hazards 59 and 63
    """Python refuses to write down some values at all; that must not end a run."""
    for content in ({"preferred": value}, {"abstained": value if not isinstance(value, str) else [value]}):
        assert len(reason("judge", **content)) < 200
    assert len(reason("deriver", **{**DERIVATION, "derivation_steps": [value]})) < 200
    assert len(remark([{"scalar": value}] * 4)) < 200


@pytest.mark.parametrize(("value", "kind"), [(10**5000, "int"), (nest(5000), "list")], ids=["digits", "depth"])
def test_a_value_that_cannot_be_written_down_is_named_by_its_type(value: Any, kind: str) -> None:
    assert reason("judge", preferred=value).startswith(f"preferred={kind} that is too large to show is not ")


NO_INDEX = (-1, 4, 10**9, 3.7, 1.0, "1", "2.", True, False, None, math.nan, math.inf, [1], {"index": 1}, "Doha")


@pytest.mark.parametrize("index", NO_INDEX, ids=repr)
def test_a_verdict_names_a_candidate_by_its_number(index: Any) -> None:  # hazard 59
    assert reason("judge", preferred=index) == f"preferred={index!r} is not a whole number from 0 to 3"
    assert getattr(read("judge", preferred=index), "kind", None) == "invalid"


@each_case("rule", "unreliable replies", DERIVATION=lambda **changes: {**DERIVATION, **changes})
def test_what_cannot_be_relied_on_is_an_abstention_that_says_why(role: Role, content: Any, expected: str) -> None:
    assert reason(role, **content) == expected  # hazards 57, 59 and 67


@pytest.mark.parametrize("answer", ["\x1b", "\u200b", " \u00ad "])
def test_nothing_that_shows_nothing_can_be_preferred(answer: str) -> None:  # hazard 35
    result = read_reply("judge", {"preferred": 0}, (answer, "Doha"), n_passages=0)
    assert result == Abstention("preferred=0 is a candidate without an answer")
    result = read_reply("judge", {"preferred": 0}, (), n_passages=0)
    assert result == Abstention("preferred=0 points to a passage, but there are none")


QUESTION = Question("Which?", "retrieval", ANSWERS, passages=(Passage("", "Doha"), Passage("", "Dubai")))


@pytest.mark.parametrize(("role", "content"), cases("replies to a question"))
def test_a_reply_to_a_question_is_read_with_its_answers_and_its_passages(role: Role, content: dict[str, Any]) -> None:
    expected = read_reply(role, content, ANSWERS, 2)
    line = consultations.Consultation("pool", "q", role, "ok", content=content)
    assert reply_to(QUESTION, role, content) == expected
    assert heard_from(QUESTION, role, content) == expected
    assert journaled_reply(QUESTION, line) == expected


def test_a_certificate_s_reply_is_read_as_certificates_and_an_invalid_one_is_raised_as_a_sentence() -> None:
    content = {"answers": ["Doha"], "certified": [True], "reasons": ["so"]}
    expected = consultations.Certificates({"Doha": Certificate(True, "so")})
    assert heard_from(QUESTION, "certificate", content) == expected
    line = consultations.Consultation("pool", "q", "certificate", "ok", content=content)
    assert journaled_reply(QUESTION, line) == expected
    message = "The judge returned an invalid reply: preferred=7 is not a whole number from 0 to 3."
    assert refusal(lambda: require_reply("judge", {"preferred": 7}, ANSWERS, 2), ReplyError) == message


@pytest.mark.parametrize(("outcome", "why", "expected"), cases("calls without a reply"))
def test_a_call_without_a_reply_abstains_and_says_why(
    outcome: consultations.Outcome, why: str | None, expected: str
) -> None:
    assert journaled_reply(QUESTION, consultations.Consultation("pool", "q", "judge", outcome, why)) == Abstention(
        expected
    )


@pytest.mark.parametrize(("content", "in_reply", "in_line"), cases("kinds of abstentions"))
def test_an_abstention_is_of_the_kind_that_is_stated_or_in_a_line_by_whether_there_is_an_answer(
    content: dict[str, Any], in_reply: str, in_line: str
) -> None:
    line = consultations.Consultation("pool", "q", "judge", "abstained", content["abstained"], content)
    abstentions = read("judge", **content), journaled_reply(QUESTION, line)
    assert [one.kind for one in abstentions if isinstance(one, Abstention)] == [in_reply, in_line]


def test_an_abstention_names_its_kind_or_the_error_of_its_call() -> None:
    one, other = Abstention.of("cut off", "at 5 tokens"), Abstention.failure(TimeoutError("no server"))
    assert (one.reason, one.kind, one.failed) == ("cut off: at 5 tokens", "cut off", False)
    assert (other.reason, other.kind, other.failed) == ("failed: TimeoutError: no server", "TimeoutError", True)


def test_a_reply_may_be_as_large_as_a_line_of_a_journal_that_is_read() -> None:
    for content, larger in [
        ([0] * 498_996, [0] * 498_997), (nest(99), nest(100)), ("x" * (2**24 - 11), "x" * (2**24 - 10)),
    ]:  # fmt: skip
        assert (is_readable({"a": content}), is_readable({"a": larger})) == (True, False)


def lawful(result: Reply, answers: tuple[str | None, ...], n_passages: int) -> bool:
    """Whether a reply is one that a rule may rely on without looking."""
    match result:
        case Verdict(preferred, scores, rationale):
            has_scores = scores is None or (len(scores) == len(answers) and all(0 <= score <= 1 for score in scores))
            return (answers[preferred] or "").strip() != "" and has_scores and isinstance(rationale, str)
        case Repair(answer, passage):
            return answer.strip() != "" and (passage is None or 0 <= passage < n_passages)
        case consultations.Derivation(steps, answer, check):
            return all(isinstance(text, str) for step in steps for text in (step.expression, step.value, answer, check))
        case Abstention(why):
            return isinstance(why, str)


@given(
    content=raw_contents | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, json_values)),
    answers=st.lists(st.none() | st.sampled_from(("", " ", "Doha", "36")), max_size=3).map(tuple),
    n_passages=st.integers(0, 2),
    role=st.sampled_from(ROLES),
)
@example(content={"preferred": 0, "assessments": [{"scalar": 10**400}]}, answers=("a",), n_passages=0, role="judge")
@example(content={"preferred": 10**5000}, answers=("a",), n_passages=0, role="judge")
@example(content={"preferred": 0, "assessments": [{"scalar": math.nan}]}, answers=("a",), n_passages=0, role="judge")
@example(content={"abstained": None}, answers=(), n_passages=0, role="repairer")
def test_no_json_object_crashes_or_passes_unchecked(
    content: Mapping[str, Any], answers: tuple[str | None, ...], n_passages: int, role: Role
) -> None:
    """Law 19, `no_lm_text_breaks_a_law`, where replies are read."""
    result = read_reply(role, content, answers, n_passages)
    assert lawful(result, answers, n_passages)
    try:
        reply: Reply | None = require_reply(role, content, answers, n_passages)
    except ReplyError:
        reply = None
    assert reply == result or (reply is None and isinstance(result, Abstention))


@given(raw_contents)
def test_a_reply_is_the_same_after_a_journal(content: Mapping[str, Any]) -> None:
    """Law 18 for what is read back: a replayed reply is the reply."""
    again = json.loads(json.dumps(content))
    for role in ROLES:
        assert repr(read_reply(role, again, ANSWERS, 2)) == repr(read_reply(role, content, ANSWERS, 2))


def scores(*entries: object) -> object:
    """What is read of entries with the scores a and b of three steps."""
    result = read_scores({"steps": list(entries)}, "steps", 3, ["a", "b"])
    return result.reason if isinstance(result, Abstention) else result


def test_a_step_has_the_scores_of_the_one_entry_with_its_number() -> None:
    assert scores({"step": 2, "a": 0.5, "b": None, "c": 7}, {"step": 0, "b": 1}) == {2: [0.5, None], 0: [None, 1.0]}
    assert scores() == {}
    assert scores({"step": 1}, {"step": 1}) == "steps has two entries for step 1"
    result = read_scores({"steps": 5}, "steps", 1, [])
    assert isinstance(result, Abstention) and (result.reason, result.kind) == ("steps is 5, not a list", "invalid")
    assert read_scores({"abstained": "no idea", "steps": []}, "steps", 1, []) == Abstention("no idea")
    assert read_scores({"abstained": 5}, "steps", 1, []) == Abstention("5")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        *cases("entries that cannot be read"),
        ({"step": 0, "b": math.nan}, "steps[0].b is nan, not a number from 0 to 1"),
    ],
)
def test_an_entry_that_cannot_be_read_makes_the_whole_an_abstention(entry: object, reason: str) -> None:
    assert scores(entry, {"step": 1, "a": 0.5}) == reason


texts = st.lists(st.sampled_from(["Do", "Final answer:", "\n", "\nFinal answer: ", " ", "is"]), max_size=6).map("".join)


@pytest.mark.parametrize(("text", "answer", "output"), cases("shown candidates"))
def test_a_candidate_is_its_text_and_then_its_answer_if_they_differ(text: str, answer: str | None, output: str) -> None:
    assert show_candidate(text, answer) == output


@given(texts, st.none() | texts)
@example("So.\nFinal answer: Oslo", "Doha")
def test_the_answer_of_a_candidate_is_read_back_whatever_its_text_says(text: str, answer: str | None) -> None:
    read = consultations.split_candidate(show_candidate(text, answer))
    assert read[1].split() == (answer or "").split()
    assert read[0] == text


def test_a_passage_is_its_title_on_a_line_of_its_own_and_its_text() -> None:
    assert (show_passage("Qatar", "It is hot."), show_passage("", "It is hot.")) == ("Qatar\nIt is hot.", "It is hot.")
