"""Retrieve, sample, select: the program as a user would write it, sync and async."""

import asyncio
import gc
import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import BaseCallback

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.rag import RAG
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm, text_of

QUESTION = "What is the capital of Qatar?"
CORPUS = ["Doha is the capital of Qatar.", "Dubai is a city of the Emirates.", "The Nile is a river."]
SCORES = dict.fromkeys(("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar"), 0.5)
JUDGED = {"judge_rationale": "Passage 0.", "assessments": [SCORES] * 3, "preferred": 0}


def search(question: str) -> list[str]:
    """The passages that share most words with the question."""
    words = set(question.lower().split())
    return sorted(CORPUS, key=lambda passage: -len(words & set(passage.lower().split())))[:2]


async def search_later(question: str) -> list[str]:
    return search(question)


def sample(answer: str) -> str:
    return f"[[ ## reasoning ## ]]\nAs I know.\n\n[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]"


def answering(*answers: str, **options: Any) -> ScriptedLM:
    """An LM that answers each sample in turn, in whatever order they ask, and judges for the candidate of the last."""
    left = [sample(answer) for answer in answers]

    def reply(request: Any) -> Any:
        if role_of(request) != "judge":
            return left.pop(0)
        number = re.search(rf"<candidate (\d+) \w+>[^<]*{answers[-1]}", text_of(request).replace("\\n", "\n"))
        return {**JUDGED, "preferred": int(number[1]) if number else 0}

    return scripted_lm(reply, **options)


def sync(rag: RAG) -> dspy.Prediction:
    return rag(question=QUESTION)


def awaited(rag: RAG) -> dspy.Prediction:
    async def call() -> dspy.Prediction:
        return await rag.acall(question=QUESTION)

    return asyncio.run(call())


each_way = pytest.mark.parametrize("call", [sync, awaited])


@each_way
def test_it_retrieves_samples_and_selects(call: Any) -> None:
    lm = answering("Abu Dhabi", "Abu Dhabi", "Doha")
    with dspy.context(lm=lm):
        pred = call(RAG(search, samples=3))
    assert (pred.answer, pred.branch, pred.consensus) == ("Doha", "judge", "Abu Dhabi")
    assert pred.witness["text"] == "Doha"
    assert sorted(pred.pool) == ["Abu Dhabi", "Abu Dhabi", "Doha"]
    assert pred.passages == search(QUESTION)
    assert [role_of(request) for request in lm.requests] == [None, None, None, "judge"]
    assert json.loads(json.dumps(pred.toDict())) == pred.toDict()


@each_way
@pytest.mark.parametrize("samples", [1, 2, 7])
def test_the_pool_has_as_many_answers_as_were_asked_for(call: Any, samples: int) -> None:
    lm = answering(*["Doha"] * samples)
    with dspy.context(lm=lm):
        pred = call(RAG(search, samples=samples))
    assert pred.pool == ["Doha"] * samples
    assert (pred.answer, pred.reason) == ("Doha", "consensus_certified")
    assert len(lm.requests) == samples


class Sampled(BaseCallback):
    def __init__(self) -> None:
        self.configs: list[Any] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, dspy.ChainOfThought):
            self.configs.append(inputs["kwargs"]["config"])


@each_way
def test_each_sample_has_a_rollout_of_its_own(call: Any) -> None:
    """DSPy's cache keys on it, so that a cache does not make all samples the same."""
    sampled = Sampled()
    with dspy.context(lm=answering("Doha", "Doha"), callbacks=[sampled]):
        call(RAG(search, samples=2, temperature=0.7))
    assert sampled.configs == [{"rollout_id": number, "temperature": 0.7} for number in range(2)]


@each_way
@pytest.mark.parametrize(
    "found",
    [
        dspy.Prediction(passages=[{"title": "Qatar", "text": "Its capital is Doha."}]),
        [{"title": "Qatar", "long_text": "Its capital is Doha."}],
        "Qatar\nIts capital is Doha.",
    ],
)
def test_a_search_may_return_whatever_a_selector_takes(call: Any, found: Any) -> None:
    lm = answering("Doha")
    with dspy.context(lm=lm):
        pred = call(RAG(lambda _: found, samples=1))
    assert pred.passages == ["Qatar\nIts capital is Doha."]
    assert pred.certified is True
    assert "Its capital is Doha." in text_of(lm.requests[0])


class Later:
    """A search that only its call shows to be async."""

    async def __call__(self, question: str) -> list[str]:
        return search(question)


@pytest.mark.parametrize("later", [search_later, lambda question: search_later(question), Later()])
def test_an_async_search_in_a_sync_call_is_said_to_be_async_and_leaves_nothing_to_be_awaited(later: Any) -> None:
    said = "search is async, and it was called without await; call await rag.acall(...), or give a search that is not"
    with dspy.context(lm=answering("Doha")), pytest.raises(ArgumentError, match=re.escape(said)):
        RAG(later, samples=1)(question=QUESTION)
    gc.collect()  # a coroutine that was never awaited warns here, and a warning is an error
    with dspy.context(lm=answering("Doha")):
        assert awaited(RAG(later, samples=1)).answer == "Doha"


def test_a_search_may_be_async_where_the_program_is_awaited() -> None:
    with dspy.context(lm=answering("Doha")):
        assert awaited(RAG(search_later, samples=1)).passages == search(QUESTION)


@each_way
def test_a_sample_that_cannot_be_parsed_is_a_candidate_without_an_answer(call: Any) -> None:
    """`dspy.ChatAdapter` asks once more, in JSON, before it gives up."""
    first, second = iter([sample("Doha"), sample("Doha"), "no field"]), "no JSON either"
    asks_again = "Outputs will be a JSON object"
    with dspy.context(lm=scripted_lm(lambda request: second if asks_again in text_of(request) else next(first))):
        pred = call(RAG(search, samples=3))
    assert (sorted(pred.pool, key=str), pred.answer) == (["Doha", "Doha", None], "Doha")


@each_way
def test_a_sample_that_cannot_be_parsed_is_raised_where_that_is_asked_for(call: Any) -> None:
    rag = RAG(search, samples=2, selector=Selector(on_error="raise"))
    with dspy.context(lm=scripted_lm(lambda _: "no field")), pytest.raises(dspy.AdapterParseError):
        call(rag)


@each_way
def test_a_failed_call_is_raised(call: Any) -> None:
    failing = scripted_lm(lambda _: lm15.AuthError("no such key"))
    with dspy.context(lm=failing), pytest.raises(dspy.LMAuthError):
        call(RAG(search, samples=2))


@each_way
def test_the_selector_s_answer_field_is_the_one_that_is_sampled(call: Any) -> None:
    reply = sample("Doha").replace("## answer ##", "## response ##")
    with dspy.context(lm=scripted_lm([reply, reply])):
        pred = call(RAG(search, samples=2, selector=Selector(answer_field="response")))
    assert pred.response == pred.answer == "Doha"
    assert pred.pool == ["Doha", "Doha"]


def test_its_parts_are_found_saved_and_loaded(tmp_path: Path) -> None:
    rag = RAG(search)
    assert [name for name, _ in rag.named_predictors()] == [
        "respond.predict",
        "select.judge.predict",
        "select.repairer.predict",
    ]
    predict: Any = rag.respond.predict
    predict.signature = predict.signature.with_instructions("Name a city.")
    rag.save(tmp_path / "rag.json")
    loaded = RAG(search, samples=1)
    loaded.load(tmp_path / "rag.json")
    lm = answering("Doha")
    with dspy.context(lm=lm):
        assert sync(loaded).answer == "Doha"
    assert "Name a city." in text_of(lm.requests[0])


@pytest.mark.parametrize("samples", [0, -1, 2.0, "5", None, True])
def test_samples_are_a_whole_number_from_1(samples: Any) -> None:
    with pytest.raises(
        ArgumentError, match=re.escape(f"samples must be a whole number of at least 1; got {samples!r}")
    ):
        RAG(search, samples=samples)


@pytest.mark.parametrize("temperature", [0, 0.0, -1.0, float("nan")])
def test_a_temperature_that_gives_equal_samples_is_refused(temperature: float) -> None:
    expected = f"temperature must be above 0, or all samples are the same; got {temperature!r}."
    with pytest.raises(ArgumentError, match=re.escape(expected)):
        RAG(search, temperature=temperature)


@pytest.mark.parametrize("given", [None, "corpus", CORPUS])
def test_a_search_is_something_to_call(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^search must be a function or module of the question; got "):
        RAG(given)


@each_way
@pytest.mark.parametrize("found", [7, {"text": "Doha."}, [None], dspy.Prediction(answer="Doha")])
def test_a_search_that_returns_no_evidence_is_refused_before_any_call(call: Any, found: Any) -> None:
    lm = answering()
    with dspy.context(lm=lm), pytest.raises(ArgumentError, match=r"^evidence"):
        call(RAG(lambda _: found))
    assert lm.requests == []
