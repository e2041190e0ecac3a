"""What is said of an async callable that is not awaited, and where a message ends that quotes another."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.errors import brief, describe_failure
from eldgr_dspy.programs.requests.limits import FailureBudget
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.retrieval import DSPyRetriever
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.testing import check_laws
from eldgr_dspy.training.steps_reward import StepReward
from tests.memory import collected
from tests.refusing import refused
from tests.scorers import table_of
from tests.scoring.readers import Reader

POOL = {"question": "Which city?", "candidates": ["Dubai", "Dubai", "Doha"], "evidence": ["Doha is the capital."]}


class Judging(dspy.Module):  # a judge with a `forward` that is async, and no `aforward`
    async def forward(self, **inputs: Any) -> dspy.Prediction:
        return dspy.Prediction(preferred=2)


class Scoring:
    async def score(self, reasonings: Sequence[Reasoning]) -> list[Any]:
        return [table_of(one.text, 0.5) for one in reasonings]


class Reading(Reader):
    async def probabilities(self, pairs: Any) -> Any:  # type: ignore[override]
        return super().probabilities(pairs)


async def later(*_: Any) -> list[str]:
    return ["Doha"]


async def yielding(case: Any) -> Any:
    yield "judge"


def judged(judge: dspy.Module) -> Selector:
    select = Selector()
    select.judge = judge
    return select


def table(**parts: Any) -> Any:
    reasoning = Reasoning("Doha is the capital.", "Which city?", (Passage("", "Doha is the capital."),), "Doha")
    return NLIScorer(**{"nli": Reader(), **parts}).score([reasoning])


_ASYNC = "is async, and it was called without await; "
CALLED: list[tuple[Callable[[], Any], str]] = [
    (lambda: judged(Judging())(**POOL), f"The role module Judging {_ASYNC}name its async method aforward and await"),
    (
        lambda: Selector(scorers=Scoring(), on_error="raise")(**{**POOL, "candidates": ["Doha"]}),  # type: ignore[arg-type]
        f"Scoring.score {_ASYNC}give a scorer whose score is not, or one with an async method ascore.",
    ),
    (lambda: DSPyRetriever(later).search(["capital"]), f"search {_ASYNC}give one that is not."),
    (lambda: table(nli=Reading()), f"{Reader().name}.probabilities {_ASYNC}give a model that is not."),
    (lambda: table(claims=later), f"later {_ASYNC}give one that is not."),
    (lambda: scripted_lm(cast(Any, later))("Which city?"), f"reply {_ASYNC}give a callable that is not."),
    (lambda: check_laws(cast(Any, later)), f"rule(case) {_ASYNC}a rule is a plain generator function."),
    (lambda: check_laws(cast(Any, yielding)), f"rule(case) {_ASYNC}a rule is a plain generator function."),
    (lambda: check_laws(certificate=later), f"certificate {_ASYNC}give a function that is not."),
    (
        lambda: StepReward(Scoring(), confidence=False)(  # type: ignore[arg-type]
            ["?"], ["Doha."], question=["?"], task=["retrieval"], evidence=[["Doha."]]
        ),
        f"Scoring.score {_ASYNC}give a scorer whose score is not, or one with an async method ascore.",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLED, ids=[said.partition(" is")[0] for _, said in CALLED])
def test_what_is_async_and_cannot_be_awaited_is_said_to_be(call: Callable[[], Any], message: str) -> None:
    with collected():  # a coroutine that was never awaited warns at the end, and a warning is an error
        assert message in refused(call, Exception)


def test_a_role_whose_forward_is_async_is_awaited_where_the_selector_is() -> None:
    pred = asyncio.run(judged(Judging()).acall(**POOL))
    assert (pred.answer, pred.branch) == ("Doha", "judge")


# -- what a message quotes --
@pytest.mark.parametrize(
    ("text", "longest", "output"),
    [
        ("as it is", 8, "as it is"),
        ("as it was", 8, "as it …"),
        ("as it was", 5, "as it …"),
        ("Donaudampfschiff", 5, "Donau …"),
        ("", 5, ""),
    ],
)
def test_a_long_quotation_ends_at_a_word_with_an_ellipsis(text: str, longest: int, output: str) -> None:
    assert brief(text, longest) == output


def test_a_long_refusal_of_a_key_is_told_up_to_a_whole_word() -> None:
    reply = "Incorrect API key provided: none. " + "Please ask whoever administers the account for another. " * 9
    told = describe_failure(dspy.LMAuthError(reply, model="openai/m"))
    kept = told.removesuffix(" …")
    assert told != kept and len(kept) <= 320 and f"LMAuthError: [openai/m] {reply}".startswith(f"{kept} ")
    budget = FailureBudget(0)
    budget.spend(("pool", "q", "judge"), dspy.LMAuthError(reply, model="openai/m"))
    assert budget.stopped == f"The call can only fail again: {told}"
