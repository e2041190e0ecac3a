"""What functions of judges and LMs return, refuse, and say of what is async or long; `cases.json` has the cases."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import dspy
import pytest

from eldgr_dspy import signatures
from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.errors import brief, describe_failure
from eldgr_dspy.programs.engines.local import local
from eldgr_dspy.programs.engines.ollama import ollama
from eldgr_dspy.programs.engines.reply_forms import counts_of
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.judges import Comparer, Panel, SliceJudge, SwapConsistent
from eldgr_dspy.programs.judges.gar import slices_of
from eldgr_dspy.programs.judges.named import judge_in_style
from eldgr_dspy.programs.lms.fencing import defuse
from eldgr_dspy.programs.lms.models import make_lm
from eldgr_dspy.programs.requests.limits import FailureBudget
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.retrieval import DSPyRetriever
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.testing import check_laws
from eldgr_dspy.training.steps_reward import StepReward
from tests.asking.judge_modules import assess
from tests.case_tables import agrees, each_case
from tests.memory import collect
from tests.refusing import refusal, says
from tests.scorers import table_of
from tests.scoring.readers import Reader
from tests.selecting import with_judge

CALLS: dict[str, Callable[..., Any]] = {one.__name__: one for one in (SliceJudge, Panel, judge_in_style, make_lm)} | {
    "SwapConsistent": partial(SwapConsistent, LexicalJudge()),
    "Comparer": partial(assess, Comparer()),
    "ollama": partial(ollama, "m"),
    "local": partial(local, "no.gguf"),
}
CITIES = {"question": "Which city?", "candidates": ["Dubai", "Dubai", "Doha"], "evidence": ["Doha is the capital."]}
_ASYNC = "is async, and it was called without await; "


@each_case("asking", "refusals", Judge=Judge, LexicalJudge=LexicalJudge, float=float, function={"len": len}.get)
def test_each_refusal_is_its_sentence(call: str, arguments: dict[str, Any], sentence: str) -> None:
    assert says(sentence, refusal(lambda: CALLS[call](**arguments)))


RESULTS: dict[str, Callable[..., Any]] = {
    "slices_of": slices_of,
    "brief": brief,
    "defuse": defuse,
    "counts_of": lambda signature, inputs: counts_of(getattr(signatures, signature), inputs),
    "host": lambda host: ollama("m", host=host).kwargs["metadata"]["host"],
    "modules of a style": lambda style, orders: modules_of(judge_in_style(Judge(), style, orders)),
}


def modules_of(judge: dspy.Module) -> list[str]:
    parts = [type(part).__name__ for _, part in judge.named_sub_modules(dspy.Module)]
    return [kind for kind in parts if kind != "Predict"]


@each_case("asking", "results")
def test_each_result_is_that_of_its_case(call: str, arguments: list[Any], result: Any) -> None:
    assert agrees(RESULTS[call](*arguments), result)


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


def table(**parts: Any) -> Any:
    reasoning = Reasoning("Doha is the capital.", "Which city?", (Passage("", "Doha is the capital."),), "Doha")
    return NLIScorer(**{"nli": Reader(), **parts}).score([reasoning])


scoring: Any = Scoring()
reward = StepReward(scoring, confidence=False)
_ROLE = "The role module Judging"
_SCORER = f"Scoring.score {_ASYNC}give a scorer whose score is not, or one with an async method ascore."
ASYNC: list[tuple[Callable[[], Any], str]] = [
    (lambda: with_judge(Judging())(**CITIES), f"{_ROLE} {_ASYNC}name its async method aforward and await"),
    (lambda: Selector(scorers=scoring, on_error="raise")(**{**CITIES, "candidates": ["Doha"]}), _SCORER),
    (lambda: DSPyRetriever(later).search(["capital"]), f"search {_ASYNC}give one that is not."),
    (lambda: table(nli=Reading()), f"{Reader().name}.probabilities {_ASYNC}give a model that is not."),
    (lambda: table(claims=later), f"later {_ASYNC}give one that is not."),
    (lambda: scripted_lm(cast(Any, later))("Which city?"), f"reply {_ASYNC}give a callable that is not."),
    (lambda: check_laws(cast(Any, later)), f"rule(case) {_ASYNC}a rule is a plain generator function."),
    (lambda: check_laws(cast(Any, yielding)), f"rule(case) {_ASYNC}a rule is a plain generator function."),
    (lambda: check_laws(certificate=later), f"certificate {_ASYNC}give a function that is not."),
    (lambda: reward(["?"], ["Doha."], question=["?"], task=["retrieval"], evidence=[["Doha."]]), _SCORER),
]


@pytest.mark.parametrize(("call", "message"), ASYNC, ids=[reason.partition(" is")[0] for _, reason in ASYNC])
def test_what_is_async_and_cannot_be_awaited_is_said_to_be(call: Callable[[], Any], message: str) -> None:
    with collect():  # a coroutine that was never awaited warns at the end, and a warning is an error
        assert message in refusal(call, Exception)


def test_a_role_whose_forward_is_async_is_awaited_where_the_selector_is() -> None:
    pred = asyncio.run(with_judge(Judging()).acall(**CITIES))
    assert (pred.answer, pred.branch) == ("Doha", "judge")


def test_a_long_refusal_of_a_key_is_told_up_to_a_whole_word() -> None:
    reply = "Incorrect API key provided: none. " + "Please ask whoever administers the account for another. " * 9
    text = describe_failure(dspy.LMAuthError(reply, model="openai/m"))
    head = text.removesuffix(" …")
    assert text != head and len(head) <= 320 and f"LMAuthError: [openai/m] {reply}".startswith(f"{head} ")
    budget = FailureBudget(0)
    budget.spend(("pool", "q", "judge"), dspy.LMAuthError(reply, model="openai/m"))
    assert f"{budget.reason}".startswith(f"The call can only fail again: {text} Mend its cause first; another model")
