"""A selector is held to the laws in one line: lawful ones pass, each way of breaking a law is found and named."""

import asyncio
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Rule, Steps, evidence_locked
from eldgr_dspy.errors import CertificateError
from eldgr_dspy.laws import LAWS, LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, scripted_lm
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.signatures import JudgeCandidates
from tests.laws.slips_of_selectors import ByQuestion, Wrapper
from tests.modules import Does
from tests.refusing import refuses
from tests.scenes import CONTESTED, repair, verdict
from tests.selecting import Returns, example_of, right, saying, with_judge

SAME = "sync_equals_async_equals_batch_equals_replay"
TEXT = "no_lm_text_breaks_a_law"
OF_A_DECISION = [law.name for law in LAWS if law.number <= 8]


# -- lawful selectors -------------------------------------------------------------------------------------------------
# Made with a text, as a user may.
FIELDS = "question, evidence: list[str], candidates: list[str] -> sure: bool, why, best: int"
Best: Any = dspy.Signature
BEST = Best(FIELDS, "Name the best candidate.")


def judge_by_best(self: Any, **inputs: Any) -> dspy.Prediction:
    with dspy.context(lm=self.lms[0]):
        return dspy.Prediction(preferred=self.predict(**inputs).best)


def unreachable() -> Any:
    return scripted_lm([])  # any request to it is one too many


def with_own_lms() -> Selector:
    select = Selector(certificate="token", answer_field="reply")
    select.set_lm(unreachable())
    return select


def optimize() -> Selector:
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=1, max_labeled_demos=1)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        select: Selector = optimizer.compile(Selector(consult="always"), trainset=[example_of(CONTESTED, gold="Doha")])
    return select


LAWFUL: dict[str, Callable[[], Selector]] = {
    "plain": Selector,
    "with LMs and a field of its own": with_own_lms,
    "compiled": optimize,
    "with a judge of its own signature that holds an LM in a list": lambda: with_judge(
        Does(judge_by_best, predict=dspy.Predict(BEST), lms=[unreachable()])
    ),
    "with a judge of unusable replies": lambda: with_judge(Returns({"preferred": True, "assessments": float("nan")})),
}
"""`tests/laws/lawful.py` has more."""


@pytest.mark.law(SAME, "property")
@pytest.mark.law(TEXT, "property")
@pytest.mark.parametrize("make", LAWFUL.values(), ids=LAWFUL)
def test_a_lawful_selector_passes_and_each_law_is_counted(make: Callable[[], Selector]) -> None:
    counts = check_selector(make(), max_examples=10)
    assert list(counts) == [*OF_A_DECISION, SAME, TEXT]
    assert counts[SAME] == counts[TEXT] >= 40
    assert counts["default_is_consensus"] > 0


@pytest.mark.law(SAME, "property")
@pytest.mark.law(TEXT, "property")
@pytest.mark.slow
@pytest.mark.parametrize("adapter", [None, dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_each_law_has_something_to_say_of_some_decision_under_each_adapter_of_the_context(adapter: Any) -> None:
    with dspy.context(adapter=adapter):
        assert min(check_selector(Selector(), max_examples=0).values()) > 0


def test_laws_may_be_left_out_and_the_selector_and_its_lms_are_left_alone() -> None:
    """LMs that may not be asked, in a predictor and in the settings; and the state as it was."""
    select, lm = with_judge(dspy.ChainOfThought(JudgeCandidates)), unreachable()
    before = select.dump_state()
    select.set_lm(lm)
    with dspy.context(lm=lm):
        check_selector(select, max_examples=10)
    assert (lm.requests, lm.history, select.history, select.get_lm()) == ([], [], [], lm)
    cast("Any", select).set_lm(None)
    assert select.dump_state() == before

    async def within() -> int:
        questions = st.just(Question("Where?", "retrieval", ("Dubai", "Doha")))
        return check_selector(Selector(), questions=questions, max_examples=5)["override_needs_a_certificate"]

    assert asyncio.run(within()) == 0  # there is no evidence
    assert list(check_selector(Inventive(), without=[*OF_A_DECISION, SAME], max_examples=0)) == [TEXT]
    sentence = f", {SAME}, is broken"
    refuses(LawBroken, sentence, check_selector, Inventive(), without=OF_A_DECISION, max_examples=0)


def test_the_scripted_lm_does_not_load_hypothesis_and_where_it_is_missing_it_says_what_to_install() -> None:
    code = (
        "import sys; import eldgr_dspy.programs.testing; assert 'hypothesis' not in sys.modules; "
        "sys.modules['hypothesis'] = None; from eldgr_dspy.programs.testing import check_selector"
    )
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "run `pip install 'eldgr_dspy[testing]'`" in process.stderr


# -- selectors that break a law ---------------------------------------------------------------------------------------
def altering(change: Callable[[dict[str, Any], Any], dict[str, Any]]) -> Any:
    """A selector in whose prediction some fields are changed, by a function of the call and of it."""

    def after(self: Any, call: dict[str, Any], pred: Any) -> None:
        for name, value in change(call, pred).items():
            pred[name] = value

    return type("Altering", (Wrapper,), {"after": after})


Curious = altering(lambda call, pred: {"consulted": ["judge"]})
Repairing = altering(lambda call, pred: {"branch": "repair"} if pred.branch == "judge" else {})
Inventive = altering(lambda call, pred: {"answer": "Atlantis"} if pred.branch == "consensus" else {})


class Hasty(Selector):  # asks nobody when awaited
    async def aforward(self, *args: Any, **inputs: Any) -> Any:
        pred = self.forward(*args, **inputs)
        pred.answer, pred.branch = pred.consensus, "consensus"
        return pred


class Breaking(Selector):  # fails when awaited
    aforward: Any = Returns(KeyError("a bug")).aforward


def trust(call: dict[str, Any], pred: Any) -> dict[str, Any]:
    if pred.preference is None:
        return {}
    return {"answer": call["candidates"][pred.preference]["answer"], "branch": "judge"}


LOCK = "override_needs_a_certificate"
BREACHES: dict[str, tuple[Callable[[], Selector], str]] = {
    "ships what the judge prefers": (altering(trust), LOCK),
    "ships what nobody said": (Inventive, LOCK),
    "is of a judge alone": (lambda: Selector(rule="judge"), LOCK),
    "calls a preference a repair": (Repairing, "certified_preference_outranks_repair"),
    "says that it asked where nothing could change": (Curious, "certified_consensus_is_final"),
    "asks nobody when awaited": (Hasty, SAME),
    "fails when awaited": (Breaking, SAME),
    "ranks otherwise than the rule": (altering(lambda _, pred: {"ranking": pred.ranking[::-1]}), SAME),
    "has a bug": (lambda: with_judge(Returns(KeyError("a bug"))), TEXT),
    "times out": (lambda: with_judge(Returns(TimeoutError("late"))), TEXT),
}


@pytest.mark.parametrize(("make", "law"), BREACHES.values(), ids=BREACHES)
def test_the_broken_law_that_matters_most_is_named_with_a_small_example(make: Callable[[], Selector], law: str) -> None:
    with pytest.raises(LawBroken) as info:
        check_selector(make(), max_examples=0)
    assert info.value.law.name == law
    assert len(str(info.value)) < 2_000
    for heading in ("question", "candidates", "consensus", "shipped", "demanded"):
        assert f"\n  {heading}" in str(info.value)


class HearsAnything(Case):  # puts in EL-DGR's place the rule that takes an inapplicable certificate for one
    def rule(self, name: str) -> Rule:
        def slip(case: Any) -> Steps:
            if case.certified(case.consensus) is False and case.rival():
                preference = case.preferred((yield "judge"))
                if preference is not None and case.certified(preference) is not False:
                    return Choice("judge", preference)
            return (yield from evidence_locked(case))

        return slip


class Slips(Selector):  # decides by that rule
    def _case(self, *args: Any, **kwargs: Any) -> Case:
        case = super()._case(*args, **kwargs)
        return HearsAnything(case.question, case.settings)


def test_a_slip_in_the_rule_is_caught_by_the_situations_and_not_by_luck() -> None:
    """Hence with one example, of which nothing depends."""
    with pytest.raises(LawBroken, match=r"^Law 3, override_needs_a_certificate") as info:
        check_selector(Slips(), max_examples=1)
    assert info.value.outcome.case.certified(info.value.outcome.decision.answer) is None


# -- what is kept from one question to the next -----------------------------------------------------------------------
def count(self: Any, candidates: list[str], **_: Any) -> dspy.Prediction:
    self.calls += 1
    return dspy.Prediction(preferred=(next(CALLS) if self.is_shared else self.calls) % len(candidates))


CALLS = itertools.count(1)  # over all copies
ONE_REPLY = "demanded    one reply of the judge to one request; asked once more, it replies Verdict(preferred="
STATEFUL: dict[str, tuple[Callable[[], Selector], str]] = {
    "by question": (ByQuestion, "demanded    the same where others were decided before; answer, "),
    "a judge that counts": (lambda: with_judge(Does(count, calls=0, is_shared=False)), ONE_REPLY),
    "judges that count together": (lambda: with_judge(Does(count, calls=0, is_shared=True)), ONE_REPLY),
}


@pytest.mark.parametrize(("make", "text"), STATEFUL.values(), ids=STATEFUL)
def test_what_is_kept_from_one_question_to_the_next_breaks_law_18(make: Callable[[], Selector], text: str) -> None:
    refuses(LawBroken, rf"(?s), {SAME}, is broken.*{re.escape(text)}", check_selector, make(), max_examples=0)


class ReusesEvidenceOfAnotherText(Wrapper):
    """Without evidence it uses that of the call before, if that was another question."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        earlier, self.last = self.last, call
        if earlier is None or earlier["question"] == call["question"] or call["evidence"]:
            return call
        return {**call, "evidence": earlier["evidence"]}


POOLS = st.sampled_from((("Dubai", "Dubai", "Doha"), ("Oslo", "Oslo"), ("Doha",)))
CORPORA, OSLO = st.sampled_from(((), (Passage("", "Doha"),))), ("Oslo", "Doha", "Oslo")
KEEPING: list[tuple[Callable[[], Selector], Any]] = [
    (ByQuestion, POOLS.map(lambda answers: Question("Where?", "retrieval", answers))),
    (ReusesEvidenceOfAnotherText, CORPORA.map(lambda one: Question("Where?", "retrieval", OSLO, passages=one))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "questions"), KEEPING, ids=["question", "evidence"])
def test_what_is_kept_is_found_among_questions_of_one_s_own_too(make: Callable[[], Selector], questions: Any) -> None:
    """Two of one text and of other pools are decided in about every second example."""
    refuses(LawBroken, f", {SAME}, is broken", check_selector, make(), questions=questions)


# -- rules and certificates of the user's own -------------------------------------------------------------------------
def ships_any_preference(case: Any) -> Any:
    """Full authority, with a branch of its own."""
    preference = case.stated((yield "judge")) if case.contested else None
    differs = preference is not None and not case.same(preference, case.consensus)
    return Choice("judge", preference) if differs else Choice("consensus", case.consensus)


def ships_consensus(case: Any) -> Any:
    yield from ()
    return Choice("consensus", case.consensus)


def said_in_full(answer: str, evidence: Any, question: str) -> bool:
    return any(passage.text == answer for passage in evidence)


def fails_on_doha(answer: str, evidence: Any, question: str) -> bool:
    raise KeyError(answer)


OWN: list[dict[str, Any]] = [{"rule": ships_consensus}, {"certificate": said_in_full}, {"uncertified": "abstain"}]


@pytest.mark.parametrize("options", OWN)
def test_a_selector_is_checked_as_the_rule_and_under_the_certificate_that_it_has(options: dict[str, Any]) -> None:
    # These two say that a certified preference ships, which a rule that ships consensus does not keep.
    without = ["certified_preference_outranks_repair", "the_cases_partition"] if "rule" in options else []
    assert check_selector(Selector(**options), without=without, max_examples=10)[SAME] > 100


def test_a_rule_with_full_authority_breaks_the_laws_and_a_certificate_that_fails_is_named() -> None:
    """One that decides in turns breaks a law."""
    with pytest.raises(LawBroken, match=r"Broken too: .*the_cases_partition") as info:
        check_selector(Selector(rule=ships_any_preference), max_examples=0)
    assert info.value.law.name == LOCK
    assert check_selector(Selector(rule=ships_any_preference), without=OF_A_DECISION, max_examples=0)[SAME] >= 100

    async def said_in_full_later(answer: str, evidence: Any, question: str) -> bool:
        return said_in_full(answer, evidence, question)

    few = check_selector(Selector(certificate=said_in_full_later), max_examples=3)
    assert few["certified_consensus_is_final"] > 0
    message, select = "fails_on_doha' failed on the answer", Selector(certificate=fails_on_doha)
    refuses(CertificateError, message, check_selector, select, max_examples=3)
    turns = itertools.count()
    select = Selector(certificate=lambda answer, evidence, question: next(turns) % 3 == 0)
    refuses(LawBroken, "is broken", check_selector, select, max_examples=3)
