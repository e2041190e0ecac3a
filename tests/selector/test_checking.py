"""A selector is held to the laws in one line: lawful ones pass, each way of breaking a law is found and named."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Rule, Steps, evidence_locked
from eldgr_dspy.errors import ArgumentError, CertificateError
from eldgr_dspy.laws import LAWS, LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, scripted_lm
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.signatures import JudgeCandidates
from tests.laws.slips_of_selectors import ByQuestion, Wrapped
from tests.selecting import CONTESTED, Returns, example_of, repair, right, saying, verdict, with_judge

SAME = "sync_equals_async_equals_batch_equals_replay"
TEXT = "no_lm_text_breaks_a_law"
OF_A_DECISION = [law.name for law in LAWS if law.number <= 8]


# -- lawful selectors -------------------------------------------------------------------------------------------------
class Best(dspy.Signature):
    """Name the best candidate."""

    question: str = dspy.InputField()
    evidence: list[str] = dspy.InputField()
    candidates: list[str] = dspy.InputField()
    sure: bool = dspy.OutputField()
    why: str = dspy.OutputField()
    best: int = dspy.OutputField()


class ByBest(dspy.Module):  # a judge with a signature of its own, that holds an LM of its own in a list
    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(Best)
        self.lms = [unreachable()]

    def forward(self, **inputs: Any) -> dspy.Prediction:
        with dspy.context(lm=self.lms[0]):
            return dspy.Prediction(preferred=self.predict(**inputs).best)


def unreachable() -> Any:
    return scripted_lm([])  # any request to it is one too many


def bound() -> Selector:
    select = Selector(certificate="token", answer_field="reply")
    select.set_lm(unreachable())
    return select


def compiled() -> Selector:
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=1, max_labeled_demos=1)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        select: Selector = optimizer.compile(Selector(consult="always"), trainset=[example_of(CONTESTED, gold="Doha")])
    return select


LAWFUL: dict[str, Callable[[], Selector]] = {
    "plain": Selector,
    "with LMs and a field of its own": bound,
    "compiled": compiled,
    "with a judge of its own": lambda: with_judge(ByBest()),
    "with a judge whose replies are unusable": lambda: with_judge(
        Returns({"preferred": True, "assessments": float("nan")})
    ),
}
"""`tests/laws/lawful.py` has more."""


@pytest.mark.law(SAME, "property")
@pytest.mark.law(TEXT, "property")
@pytest.mark.parametrize("make", LAWFUL.values(), ids=LAWFUL)
def test_a_lawful_selector_passes_and_each_law_is_counted(make: Callable[[], Selector]) -> None:
    tried = check_selector(make(), max_examples=10)
    assert list(tried) == [*OF_A_DECISION, SAME, TEXT]
    assert tried[SAME] == tried[TEXT] >= 40
    assert tried["default_is_consensus"] > 0


@pytest.mark.law(SAME, "property")
@pytest.mark.law(TEXT, "property")
@pytest.mark.slow
@pytest.mark.parametrize("adapter", [None, dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_each_law_has_something_to_say_of_some_decision_under_each_adapter_of_the_context(adapter: Any) -> None:
    with dspy.context(adapter=adapter):
        assert min(check_selector(Selector(), max_examples=0).values()) > 0


def test_a_law_that_is_left_out_is_not_tried() -> None:
    assert list(check_selector(Inventive(), without=[*OF_A_DECISION, SAME], max_examples=0)) == [TEXT]
    with pytest.raises(LawBroken, match=f", {SAME}, is broken"):
        check_selector(Inventive(), without=OF_A_DECISION, max_examples=0)


def test_questions_of_one_s_own_may_be_asked() -> None:
    questions = st.just(Question("Where?", "retrieval", ("Dubai", "Doha")))
    tried = check_selector(Selector(), questions=questions, max_examples=5)
    assert tried["override_needs_a_certificate"] == 0  # there is no evidence


def test_the_selector_and_its_lms_are_left_alone() -> None:
    """LMs that may not be asked, in a predictor and in the settings; and the state as it was."""
    select, lm = with_judge(dspy.ChainOfThought(JudgeCandidates)), unreachable()
    before = select.dump_state()
    select.set_lm(lm)
    with dspy.context(lm=lm):
        check_selector(select, max_examples=10)
    assert (lm.requests, lm.history, select.history, select.get_lm()) == ([], [], [], lm)
    cast("Any", select).set_lm(None)
    assert select.dump_state() == before


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (
            Selector,
            {},
            r"^selector must be a Selector; got <class .*Selector'>\. Make one with Selector\(\.\.\.\), or ",
        ),
        ("eldgr", {}, r"^selector must be a Selector; got 'eldgr'\. Make one with Selector\(\.\.\.\), or "),
        (Selector(), {"max_examples": -1}, r"^max_examples must be a whole number from 0; got -1\.$"),
        (
            Selector(),
            {"questions": st.just(CONTESTED), "max_examples": 0},
            r"^max_examples must be from 1 for questions of your own; got 0",
        ),
        (Selector(), {"without": SAME}, rf"^without must be a sequence of names; got '{SAME}'\. Put it in a list\.$"),
        (Selector(), {"without": ["lazy_equals_always"]}, r"^without: 'lazy_equals_always' is not a law that is tried"),
        (Selector(), {"without": [*OF_A_DECISION, SAME, TEXT]}, r"must leave at least one law to try"),
    ],
    ids=["class", "text", "none", "none of one's own", "one name", "a law about a rule", "every law"],
)
def test_what_cannot_be_checked_is_told_in_a_sentence(value: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check_selector(value, **options)


def test_it_may_be_called_within_a_loop() -> None:
    async def within() -> None:
        check_selector(Selector(), max_examples=2)

    asyncio.run(within())


def test_the_scripted_lm_does_not_load_hypothesis_and_where_it_is_missing_it_says_what_to_install() -> None:
    code = (
        "import sys; import eldgr_dspy.programs.testing; assert 'hypothesis' not in sys.modules; "
        "sys.modules['hypothesis'] = None; from eldgr_dspy.programs.testing import check_selector"
    )
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "run `pip install 'eldgr_dspy[testing]'`" in process.stderr


# -- selectors that break a law ---------------------------------------------------------------------------------------


class Trusting(Wrapped):
    """Ships what the judge prefers."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        if pred.preference is not None:
            pred.answer, pred.branch = call["candidates"][pred.preference]["answer"], "judge"


class Repairing(Wrapped):
    """Ships a certified preference as if it were a repair."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        pred.branch = "repair" if pred.branch == "judge" else pred.branch


class Inventive(Wrapped):
    """Ships what nobody said."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        pred.answer = "Atlantis" if pred.branch == "consensus" else pred.answer


class Curious(Wrapped):
    """Says that it asked where nothing could change."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        pred.consulted = ["judge"]


class Hasty(Selector):  # asks nobody when awaited
    async def aforward(self, *args: Any, **inputs: Any) -> Any:
        pred = self.forward(*args, **inputs)
        pred.update(answer=pred.consensus, branch="consensus")
        return pred


class Unranked(Wrapped):
    """Lawful in what ships, and not the rule's account of it."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        pred.ranking = pred.ranking[::-1]


LOCK = "override_needs_a_certificate"
BROKEN: dict[str, tuple[Callable[[], Selector], str]] = {
    "trusting": (Trusting, LOCK),
    "inventive": (Inventive, LOCK),
    "of a judge alone": (lambda: Selector(rule="judge"), LOCK),
    "repairing": (Repairing, "certified_preference_outranks_repair"),
    "curious": (Curious, "certified_consensus_is_final"),
    "hasty": (Hasty, SAME),
    "unranked": (Unranked, SAME),
    "with a bug": (lambda: with_judge(Returns(KeyError("a bug"))), TEXT),
    "that times out": (lambda: with_judge(Returns(TimeoutError("late"))), TEXT),
}


@pytest.mark.parametrize(("make", "law"), BROKEN.values(), ids=BROKEN)
def test_the_broken_law_that_matters_most_is_named_with_a_small_example(make: Callable[[], Selector], law: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_selector(make(), max_examples=0)
    assert caught.value.law.name == law
    assert len(str(caught.value)) < 2_000
    for heading in ("question", "candidates", "consensus", "shipped", "demanded"):
        assert f"\n  {heading}" in str(caught.value)


class HearsAnything(Case):  # puts in EL-DGR's place the rule that takes an inapplicable certificate for one
    def rule(self, name: str) -> Rule:
        def slipped(case: Any) -> Steps:
            if case.certified(case.consensus) is False and case.rival():
                preference = case.preferred((yield "judge"))
                if preference is not None and case.certified(preference) is not False:
                    return Choice("judge", preference)
            return (yield from evidence_locked(case))

        return slipped


class Slipped(Selector):  # decides by that rule
    def _case(self, *given: Any, **named: Any) -> Case:
        case = super()._case(*given, **named)
        return HearsAnything(case.question, case.settings)


def test_a_slip_in_the_rule_is_caught_by_the_situations_and_not_by_luck() -> None:
    """Hence with one example, of which nothing depends."""
    with pytest.raises(LawBroken, match=r"^Law 3, override_needs_a_certificate") as caught:
        check_selector(Slipped(), max_examples=1)
    assert caught.value.outcome.case.certified(caught.value.outcome.decision.answer) is None


# -- what is kept from one question to the next -----------------------------------------------------------------------
class Counts(dspy.Module):  # a judge that prefers another candidate at each call
    calls = 0

    def forward(self, candidates: list[str], **_: Any) -> dspy.Prediction:
        self.calls += 1
        return dspy.Prediction(preferred=self.calls % len(candidates))


class CountsForAll(Counts):  # the same, over all copies
    def forward(self, candidates: list[str], **_: Any) -> dspy.Prediction:
        type(self).calls += 1
        return dspy.Prediction(preferred=self.calls % len(candidates))


ONE_REPLY = "demanded    one reply of the judge to one request; asked once more, it replies Verdict(preferred="
STATEFUL: dict[str, tuple[Callable[[], Selector], str]] = {
    "by question": (ByQuestion, "demanded    the same where others were decided before; answer, "),
    "a judge that counts": (lambda: with_judge(Counts()), ONE_REPLY),
    "judges that count together": (lambda: with_judge(CountsForAll()), ONE_REPLY),
}


@pytest.mark.parametrize(("make", "demanded"), STATEFUL.values(), ids=STATEFUL)
def test_what_is_kept_from_one_question_to_the_next_breaks_law_18(make: Callable[[], Selector], demanded: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_selector(make(), max_examples=0)
    assert (caught.value.law.name, demanded in str(caught.value)) == (SAME, True), str(caught.value)


class ReusesEvidenceOfAnotherText(Wrapped):
    """Without evidence it uses that of the call before, if that was another question."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        earlier, self.last = self.last, call
        if earlier is None or earlier["question"] == call["question"] or call["evidence"]:
            return call
        return {**call, "evidence": earlier["evidence"]}


POOLS = st.sampled_from((("Dubai", "Dubai", "Doha"), ("Oslo", "Oslo"), ("Doha",)))
CORPORA = st.sampled_from(((), (Passage("", "Doha"),)))
KEEPING: list[tuple[Callable[[], Selector], Any]] = [
    (ByQuestion, POOLS.map(lambda answers: Question("Where?", "retrieval", answers))),
    (
        ReusesEvidenceOfAnotherText,
        CORPORA.map(lambda one: Question("Where?", "retrieval", ("Oslo", "Doha", "Oslo"), passages=one)),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "questions"), KEEPING, ids=["question", "evidence"])
def test_what_is_kept_is_found_among_questions_of_one_s_own_too(make: Callable[[], Selector], questions: Any) -> None:
    """Two of one text and of other pools are decided in about every second example."""
    with pytest.raises(LawBroken) as caught:
        check_selector(make(), questions=questions)
    assert caught.value.law.name == SAME


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


async def said_in_full_later(answer: str, evidence: Any, question: str) -> bool:
    return said_in_full(answer, evidence, question)


def fails_on_doha(answer: str, evidence: Any, question: str) -> bool:
    raise KeyError(answer)


_NTH = iter(range(10**9))


def in_turns(answer: str, evidence: Any, question: str) -> bool:
    return next(_NTH) % 3 == 0


@pytest.mark.parametrize(
    "options", [{"rule": ships_consensus}, {"certificate": said_in_full}, {"uncertified": "abstain"}]
)
def test_a_selector_is_checked_as_the_rule_and_under_the_certificate_that_it_has(options: dict[str, Any]) -> None:
    # These two say that a certified preference ships, which a rule that ships consensus does not keep.
    without = ["certified_preference_outranks_repair", "the_cases_partition"] if "rule" in options else []
    assert check_selector(Selector(**options), without=without, max_examples=10)[SAME] > 100


def test_a_certificate_that_is_awaited_is_checked_too() -> None:
    few = check_selector(Selector(certificate=said_in_full_later), max_examples=3)
    assert few["certified_consensus_is_final"] > 0


def test_a_rule_with_full_authority_breaks_the_laws_and_is_replayed_as_it_is() -> None:
    with pytest.raises(LawBroken, match=r"Broken too: .*the_cases_partition") as broken:
        check_selector(Selector(rule=ships_any_preference), max_examples=0)
    assert broken.value.law.name == LOCK
    assert check_selector(Selector(rule=ships_any_preference), without=OF_A_DECISION, max_examples=0)[SAME] >= 100


def test_a_certificate_that_fails_is_named_and_one_that_decides_in_turns_breaks_a_law() -> None:
    with pytest.raises(CertificateError, match="fails_on_doha' failed on the answer"):
        check_selector(Selector(certificate=fails_on_doha), max_examples=3)
    with pytest.raises(LawBroken):
        check_selector(Selector(certificate=in_turns), max_examples=3)
