"""What ships without a certificate and by rules of one's own, and that stopping early never changes what ships."""

import json
from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from eldgr_dspy import Sampled
from eldgr_dspy.answer_types.answers import class_key
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.metrics import selection_feedback, selection_score
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.stopping import SETTLED_BY
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.words import HOMOGENEOUS, POLICIES
from tests.case_tables import each_case
from tests.modules import Answers, Does
from tests.public_strategies import questions
from tests.refusing import refusal, refuses, says
from tests.scenes import ABSTAINS, CONTESTED, DERIVATION, SETTLED, SILENT, WORDS, repair, verdict
from tests.selecting import each_call, each_way, evaluating, example_of, inputs_of, pick, roles_of, saying, selector_of


@each_way
@each_case("selector", "answers with and without a certificate", **WORDS)
def test_an_uncertified_answer_is_withheld(call: Any, inputs: Any, reply: Any, answer: str, ships: bool) -> None:
    with dspy.context(lm=saying(**reply)):
        result = call(Selector(uncertified="abstain", answer_field="response"), inputs).toDict()
        usual = call(Selector(answer_field="response"), inputs).toDict()
    assert (usual["answer"], usual["response"], usual["certified"] is False) == (answer, answer, not ships)
    value = answer if ships else None
    assert result == {**usual, "answer": value, "response": value}
    if inputs["candidates"] == ["36"] * 3:  # unless the deriver is asked about it
        assert pick(saying(), inputs=inputs, uncertified="abstain", homogeneous="repair").answer == answer


@settings(max_examples=50)
@given(questions(), st.sampled_from(("", "Paris", "1976")), st.integers(-1, 3), st.sampled_from((SILENT, DERIVATION)))
def test_withholding_alters_no_decision(question: Question, span: str, preferred: int, steps: dict[str, Any]) -> None:
    roles = {"preferred": preferred}, repair(span, -1), {**steps, "derived_answer": "36"}
    cautious = selector_of(*roles, uncertified="abstain")(**inputs_of(question)).toDict()
    plain = selector_of(*roles)(**inputs_of(question)).toDict()
    answer = None if plain["certified"] is False else plain["answer"]
    assert cautious == {**plain, "answer": answer}


@each_way
def test_an_answer_whose_certificate_could_not_be_had_is_withheld_and_votes_are_on_the_prediction(call: Any) -> None:
    """It is not one that no certificate applies to."""

    async def unreachable(answer: str, evidence: Any) -> bool:
        raise ConnectionError("refused")

    options: dict[str, Any] = {"certificate": unreachable, "on_failure": "abstain"}
    pred = call(Selector(**options, uncertified="abstain"), CONTESTED)
    assert (pred.answer, pred.certified, pred.branch, [*pred.failures]) == (None, None, "consensus", ["certificate"])
    assert call(Selector(**options), CONTESTED).answer == "Dubai"
    pred = call(selector_of(), {**SETTLED, "candidates": ["Doha", "dubai", "**Doha**", None, "Dubai.", "Doha"]})
    assert pred.votes == {"Doha": 3, "dubai": 2}


class Entails(dspy.Module):  # a certificate that asks an LM
    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict("answer: str, passages: list[str], question: str -> certified: bool")

    def forward(self, answer: str, evidence: Any, question: str) -> Any:
        return self.ask(answer=answer, passages=[passage.text for passage in evidence], question=question)

    async def aforward(self, answer: str, evidence: Any, question: str) -> Any:
        return await self.ask.acall(answer=answer, passages=[passage.text for passage in evidence], question=question)


@each_way
@pytest.mark.parametrize(("replies", "answer"), [("strict", "Dubai"), ("lenient", "Doha")])
def test_a_certificate_s_replies_are_read_as_the_roles_are(call: Any, replies: Any, answer: str) -> None:
    def reply(request: Any) -> Any:
        fields = request.config.response_format["schema"]["properties"]
        is_doha = "[[ ## answer ## ]]\nDoha" in (request.messages[-1].text or "")
        return "So: " + json.dumps({"certified": is_doha} if "certified" in fields else verdict(2))

    select = Selector(certificate=Entails(), replies=replies)
    with dspy.context(lm=scripted_lm(reply)):
        pred = call(select, CONTESTED)
    assert pred.answer == answer


def test_metrics_count_a_withheld_answer_as_wrong_and_a_rule_is_chosen_by_name_also_afterwards() -> None:
    devset = [example_of(CONTESTED, gold=["Dubai"]), example_of(SETTLED, gold=["Doha"])]
    select = selector_of(ABSTAINS, uncertified="abstain")
    feedback = lambda gold, pred, _=None: selection_feedback(gold, pred).score  # noqa: E731
    for metric in (selection_score, feedback, lambda gold, pred, _=None: pred.answer in gold.gold):
        assert evaluating(metric, devset)(select).score == 50.0
    dubai = dspy.Prediction(answer="Dubai")
    select = selector_of(uncertified="abstain")
    pred = Sampled(Answers(dubai, dubai), 2, select, num_threads=1)(question="Where?", context=CONTESTED["evidence"])
    assert (pred.answer, pred.votes, pred.consensus) == (None, {"Dubai": 2}, "Dubai")
    lm, select = saying(verdict(2)), Selector()
    for rule, branch in (("first", "first"), ("majority", "consensus"), ("judge", "judge"), ("eldgr", "judge")):
        select.rule = rule
        with dspy.context(lm=lm):
            assert pick(lm, rule=rule).branch == select(**CONTESTED).branch == branch
    assert roles_of(lm) == ["judge"] * 4


@given(questions("retrieval"))
def test_each_candidate_with_an_answer_has_one_vote(question: Question) -> None:
    pred = selector_of(ABSTAINS, SILENT, ABSTAINS)(**inputs_of(question))
    classes = majority(question.answers, question.task).classes
    voters = [answer for answer, key in zip(question.answers, classes, strict=True) if key is not None]
    assert sum(pred.votes.values()) == len(voters)
    assert len(pred.votes) == len(set(classes) - {None})
    assert pred.votes.get(pred.consensus, 0) == max(pred.votes.values(), default=0)


def span_first(case: Any) -> Steps:
    """The repairer decides if its span is certified, else the judge if its preference is."""
    reply = yield "repairer"
    span = case.repaired(reply)
    if span is not None and case.certified(span):
        return Choice("repair", span)
    preferred = case.preferred((yield "judge"))
    if preferred is not None and case.certified(preferred):
        return Choice("judge", preferred)
    return Choice("consensus", case.consensus)


@each_way
@pytest.mark.parametrize("rule", [span_first, f"{__name__}:span_first"])
def test_a_rule_of_one_s_own_decides_in_every_way_to_call(call: Any, rule: Any) -> None:
    lm = saying(verdict(2), repair("Persian Gulf", 1))
    with dspy.context(lm=lm):
        pred = call(Selector(rule=rule), CONTESTED)
    assert (pred.answer, pred.branch, pred.certified, roles_of(lm)) == ("Persian Gulf", "repair", True, ["repairer"])
    with dspy.context(lm=saying(verdict(2), lm15.AuthError("no key"))):
        pred = call(Selector(rule=rule, on_failure="abstain", timeout=60), CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Doha", "judge", ["repairer", "judge"])


@each_call
def test_a_rule_that_fails_is_named(call: Any) -> None:
    def fails(case: Any) -> Steps:
        yield from ()
        raise KeyError("a slip")

    message = rf"^The rule '{__name__}:\S+\.fails' has failed: KeyError: 'a slip'"
    refuses(ArgumentError, message, call, selector_of(rule=fails, on_error="abstain", on_failure="abstain"), CONTESTED)


ANSWERS = ("Doha", "doha.", "**Doha**", "Dubai", "yes", "I don't know", "36", "36.0", "Nice", None, " ")
REASONS = ("", "Doha is the capital.", "The answer is Doha.", "A short one", "It says:")
CAPITAL, SAYS = "Doha is the capital.", "It says:\nDoha"
PASSAGES = (CAPITAL, "The answer is Doha.", SAYS, "A short one\nDubai", "Dubai. I don't know.")


def quotes(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    return any(answer in passage.text for passage in evidence)


def rare(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    """Certifies Doha while exactly one passage names it, and Dubai always."""
    return answer == "Dubai" or sum("Doha" in passage.text for passage in evidence) == 1


def fickle(answer: str, evidence: Sequence[Passage], question: str) -> bool | None:
    """The same, but it does not apply instead of certifying."""
    return rare(answer, evidence, question) and (answer == "Dubai" or None)


def ascii_alone(answer: str) -> bool:
    return "*" in answer or answer == "Dubai"


async def confirm(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    return True


def own_rule(case: Any) -> Steps:
    yield from ()
    return Choice("consensus", case.consensus)


def prediction(answer: Any, reasoning: str, context: Sequence[str] | None) -> Any:
    further = {} if context is None else {"context": [*context]}
    return dspy.Prediction(answer=answer, reasoning=reasoning, **further)


def prefer_last(_: Any, candidates: Sequence[str], **inputs: Any) -> Any:
    return verdict(len(candidates) - 1, len(candidates))


def ship(
    texts: Sequence[Any], inputs: dict[str, Any], stop: Any, derives: bool = False, **options: Any
) -> tuple[Any, int]:
    """Return the class that ships and how many samples were drawn, with roles as hostile as they can be."""
    deriver = DERIVATION if derives else {"abstained": "no sum"}
    select = selector_of(Does(prefer_last), repair("Dubai"), deriver, **options)
    program = Sampled(Answers(*texts), n=len(texts), select=select, stop=stop, num_threads=1)
    pred: Any = program(question="Tom has 3 boxes of 12 pens. How many?", **inputs)
    return pred.answer if pred.answer is None else class_key(str(pred.answer), select.type), len(pred.completions)


option_sets = st.fixed_dictionaries({
    "rule": st.sampled_from(SETTLED_BY), "answer": st.sampled_from(("short", "number")),
    "certificate": st.sampled_from((*POLICIES, quotes, rare, fickle)), "derives": st.booleans(),
    "uncertified": st.sampled_from(("consensus", "abstain")), "consult": st.sampled_from(("lazy", "always")),
    "homogeneous": st.sampled_from((None, *HOMOGENEOUS)),
})  # fmt: skip
WAYS: list[dict[str, Any]] = [{}, {"refusals": ()}, {"refusals": ascii_alone}, {"refusal": "no_answer"}]
refusing = st.sampled_from([*WAYS, {"refusal": "no_answer", "refusals": ("Dubai", "yes")}])
contexts = st.lists(st.sampled_from(PASSAGES), max_size=3, unique=True)
calls = st.tuples(st.sampled_from(ANSWERS), st.sampled_from(REASONS), contexts)
alike = st.tuples(st.sampled_from(("Doha", "yes", "36", "Dubai")), st.sampled_from(REASONS), contexts)
pools = st.builds(
    lambda one, n, others: [one] * n + others, alike, st.integers(0, 4), st.lists(calls, min_size=1, max_size=4)
)
OWN: dict[str, Any] = {"rule": "eldgr", "answer": "short", "certificate": rare, "uncertified": "consensus"}
OWN |= {"homogeneous": None, "consult": "lazy", "derives": False}
CAUTIOUS = {**OWN, "rule": "majority", "certificate": "folded", "uncertified": "abstain"}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools, option_sets, refusing, st.none() | contexts, st.sets(st.integers(0, 6), max_size=2))
# A further passage takes the certificate away; so does a sample that repeats the passage, twice; a further passage
# gives a certificate; and the first sample has no answer.
@example([("Doha", "", [CAPITAL])] * 3 + [("Nice", "", ["The answer is Doha."])] * 2, OWN, {}, None, set())
@example([("Doha", "", [])] * 3 + [("Doha", "It says:", [])] * 2, OWN, {}, [SAYS], set())
@example([("Doha", "", [])] * 3 + [("Doha", "It says:", [])] * 2, {**OWN, "certificate": fickle}, {}, [SAYS], set())
@example([("Doha", "", [])] * 3 + [("Doha", "", [CAPITAL])] * 2, CAUTIOUS, {}, None, set())
@example([(None, "", []), ("Doha", "", []), ("Nice", "", [])], {**OWN, "rule": "first"}, {}, None, set())
def test_stopping_never_changes_what_ships(
    samples: Any, options: Any, refusals: Any, evidence: Any, failing: set[int]
) -> None:
    """For every rule, certificate and refusal that "settled" takes; some samples fail, and the others decide."""
    assume(len(failing.intersection(range(len(samples)))) < len(samples))
    replies = [ValueError("no") if index in failing else prediction(*one) for index, one in enumerate(samples)]
    inputs: dict[str, Any] = {} if evidence is None else {"evidence": evidence}
    every, _ = ship(replies, inputs, None, **options, **refusals)
    early, n = ship(replies, inputs, "settled", **options, **refusals)
    event(f"{options['rule']} {'stopped' if n < len(replies) else 'drew all'}")
    assert early == every


FUNCTIONS = {
    "quotes": quotes,
    "confirm": confirm,
    "ascii_alone": ascii_alone,
    "own_rule": own_rule,
    "Asks": Does(prefer_last),
}


@each_case("selector", "how many samples settle it", name=FUNCTIONS.get)
def test_how_many_samples_settle_it(options: dict[str, Any], answer: Any, is_given: bool, total: int) -> None:
    """What is not given may be retrieved by a further sample, and take the certificate away."""
    inputs = {"evidence": [PASSAGES[0]]} if is_given else {}
    assert ship([prediction(answer, "", PASSAGES[:1])] * 5, inputs, "settled", **options)[1] == total


@each_case("selector", "selectors that do not settle", name=FUNCTIONS.get)
def test_a_selector_for_which_it_is_not_proved_is_refused(options: dict[str, Any], sentence: str) -> None:
    select = selector_of(**options)
    message = refusal(lambda: Sampled(Answers(), select=select, stop="settled"))
    assert says(f"With stop='settled', select's {sentence} Give another, or use stop=None or a Posterior.", message)
    assert Sampled(Answers(), select=select).stop is None
