"""`Sampled(stop="settled")`: which selectors it takes, and that stopping never changes the class that ships."""

from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from eldgr_dspy import Sampled
from eldgr_dspy.answer_types.answers import class_key
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.stopping import SETTLED_BY
from eldgr_dspy.words import HOMOGENEOUS, POLICIES
from tests.selecting import DERIVATION, Answers, repair, selector_of, verdict

ANSWERS = ("Doha", "doha.", "**Doha**", "Dubai", "yes", "I don't know", "36", "36.0", "Nice", None, " ")
REASONS = ("", "Doha is the capital.", "The answer is Doha.", "A short one", "It says:")
CAPITAL, SAYS = "Doha is the capital.", "It says:\nDoha"
PASSAGES = (CAPITAL, "The answer is Doha.", SAYS, "A short one\nDubai", "Dubai. I don't know.")


def quoted(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    return any(answer in passage.text for passage in evidence)


def rare(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    """Certifies Doha while exactly one passage names it, and Dubai always."""
    return answer == "Dubai" or sum("Doha" in passage.text for passage in evidence) == 1


def fickle(answer: str, evidence: Sequence[Passage], question: str) -> bool | None:
    """The same, but it does not apply instead of certifying."""
    return rare(answer, evidence, question) and (answer == "Dubai" or None)


def ascii_alone(answer: str) -> bool:
    return "*" in answer or answer == "Dubai"


async def asked(answer: str, evidence: Sequence[Passage], question: str) -> bool:
    return True


class Asks(dspy.Module):
    async def aforward(self, **_: Any) -> Any:
        return dspy.Prediction(certified=True)


def own_rule(case: Any) -> Steps:
    yield from ()
    return Choice("consensus", case.consensus)


def prediction(answer: Any, reasoning: str, context: Sequence[str] | None) -> Any:
    retrieved = {} if context is None else {"context": [*context]}
    return dspy.Prediction(answer=answer, reasoning=reasoning, **retrieved)


class PrefersLast(dspy.Module):
    def forward(self, *, candidates: Sequence[str], **_: Any) -> Any:
        return verdict(len(candidates) - 1, len(candidates))


def shipped(
    texts: Sequence[Any], inputs: dict[str, Any], stop: Any, derives: bool = False, **options: Any
) -> tuple[Any, int]:
    """Return the class that ships and how many samples were drawn, with roles as hostile as they can be."""
    said_by = {"repairer": repair("Dubai"), "deriver": DERIVATION if derives else {"abstained": "no sum"}}
    select = selector_of(PrefersLast(), **said_by, **options)
    program = Sampled(Answers(*texts), n=len(texts), select=select, stop=stop, num_threads=1)
    pred: Any = program(question="Tom has 3 boxes of 12 pens. How many?", **inputs)
    return pred.answer if pred.answer is None else class_key(str(pred.answer), select.type), len(pred.completions)


chosen = st.fixed_dictionaries(
    {
        "rule": st.sampled_from(SETTLED_BY),
        "answer": st.sampled_from(("short", "number")),
        "certificate": st.sampled_from((*POLICIES, quoted, rare, fickle)),
        "uncertified": st.sampled_from(("consensus", "abstain")),
        "homogeneous": st.sampled_from((None, *HOMOGENEOUS)),
        "consult": st.sampled_from(("lazy", "always")),
        "derives": st.booleans(),
    }
)
refusing = st.sampled_from(
    (
        {},
        {"refusals": ()},
        {"refusals": ascii_alone},
        {"refusal": "no_answer"},
        {"refusal": "no_answer", "refusals": ("Dubai", "yes")},
    )
)
contexts = st.lists(st.sampled_from(PASSAGES), max_size=3, unique=True)
calls = st.tuples(st.sampled_from(ANSWERS), st.sampled_from(REASONS), contexts)
alike = st.tuples(st.sampled_from(("Doha", "yes", "36", "Dubai")), st.sampled_from(REASONS), contexts)
pools = st.builds(
    lambda one, n, others: [one] * n + others, alike, st.integers(0, 4), st.lists(calls, min_size=1, max_size=4)
)
OWN: dict[str, Any] = {
    "rule": "eldgr",
    "answer": "short",
    "certificate": rare,
    "uncertified": "consensus",
    "homogeneous": None,
    "consult": "lazy",
    "derives": False,
}
WITHHELD = {**OWN, "rule": "majority", "certificate": "folded", "uncertified": "abstain"}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools, chosen, refusing, st.none() | contexts, st.sets(st.integers(0, 6), max_size=2))
# A further passage takes the certificate away; so does a sample that repeats the passage, twice; a further passage
# gives a certificate; and the first sample has no answer.
@example([("Doha", "", [CAPITAL])] * 3 + [("Nice", "", ["The answer is Doha."])] * 2, OWN, {}, None, set())
@example([("Doha", "", [])] * 3 + [("Doha", "It says:", [])] * 2, OWN, {}, [SAYS], set())
@example([("Doha", "", [])] * 3 + [("Doha", "It says:", [])] * 2, {**OWN, "certificate": fickle}, {}, [SAYS], set())
@example([("Doha", "", [])] * 3 + [("Doha", "", [CAPITAL])] * 2, WITHHELD, {}, None, set())
@example([(None, "", []), ("Doha", "", []), ("Nice", "", [])], {**OWN, "rule": "first"}, {}, None, set())
def test_stopping_never_changes_the_class_that_ships(
    drawn: list[Any], options: dict[str, Any], refusals: dict[str, Any], evidence: list[str] | None, failing: set[int]
) -> None:
    """For every rule, certificate and refusal that "settled" takes; some samples fail, and the others decide."""
    assume(len(failing.intersection(range(len(drawn)))) < len(drawn))
    replies = [ValueError("no") if index in failing else prediction(*one) for index, one in enumerate(drawn)]
    inputs: dict[str, Any] = {} if evidence is None else {"evidence": evidence}
    every, _ = shipped(replies, inputs, None, **options, **refusals)
    early, n = shipped(replies, inputs, "settled", **options, **refusals)
    event(f"{options['rule']} {'stopped' if n < len(replies) else 'drew all'}")
    assert early == every


FIXED = {"evidence": [PASSAGES[0]]}


@pytest.mark.parametrize(
    ("options", "answer", "inputs", "drawn"),
    [
        ({}, "Doha", FIXED, 3),
        ({"rule": "majority"}, "Nice", FIXED, 3),
        ({"rule": "majority", "uncertified": "abstain"}, "Nice", FIXED, 5),
        ({"rule": "majority", "uncertified": "abstain"}, "Doha", FIXED, 3),
        ({"rule": "first"}, "Nice", FIXED, 1),
        ({"rule": "first"}, None, FIXED, 5),
        ({"rule": "first", "uncertified": "abstain"}, "Nice", FIXED, 5),
        ({"rule": "first", "uncertified": "abstain"}, "Doha", FIXED, 1),
        ({"certificate": quoted}, "Doha", FIXED, 3),
        ({"certificate": quoted}, "Nice", FIXED, 5),
        ({"certificate": quoted}, "Doha", {}, 5),  # a further sample may retrieve what takes the certificate away
        ({"certificate": asked, "answer": "number", "homogeneous": "repair"}, "35", {}, 3),
        ({"refusals": ascii_alone}, "Doha", FIXED, 3),
    ],
)
def test_how_many_samples_settle_it(options: dict[str, Any], answer: Any, inputs: dict[str, Any], drawn: int) -> None:
    assert shipped([prediction(answer, "", PASSAGES[:1])] * 5, inputs, "settled", **options)[1] == drawn


ELSE = "Give another, or use stop=None or a Posterior."
NOT_PROVED: list[tuple[dict[str, Any], str]] = [
    ({"rule": "judge"}, "rule must be one of 'eldgr', 'majority', 'first'; got 'judge'. "),
    ({"rule": own_rule}, f"rule must be one of 'eldgr', 'majority', 'first'; got '{__name__}:own_rule'. "),
    (
        {"certificate": asked},
        f"certificate must be a policy, or a function that is not awaited and asks no LM; got '{__name__}:asked'. ",
    ),
    ({"certificate": Asks()}, "certificate must be a policy, or a function that is not awaited and asks no LM; got '"),
    (
        {"refusals": ascii_alone, "refusal": "no_answer"},
        f"refusals must be phrases under refusal='no_answer'; got '{__name__}:ascii_alone'. ",
    ),
]


@pytest.mark.parametrize(("options", "message"), NOT_PROVED, ids=["judge", "rule", "awaited", "module", "refusals"])
def test_a_selector_for_which_it_is_not_proved_is_refused(options: dict[str, Any], message: str) -> None:
    make: Callable[..., Sampled] = lambda stop: Sampled(Answers(), select=selector_of(**options), stop=stop)  # noqa: E731
    with pytest.raises(ArgumentError) as raised:
        make("settled")
    assert str(raised.value).startswith(f"With stop='settled', select's {message}")
    assert str(raised.value).endswith(ELSE)
    assert make(None).stop is None
