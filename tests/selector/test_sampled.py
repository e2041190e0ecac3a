"""Any program, sampled: in parallel, apart under the cache, typed, with failing samples, and in DSPy's own tools."""

import asyncio
import itertools
import json
import logging
from concurrent.futures import Future
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from operator import mul
from threading import Barrier, Event
from typing import Any

import anyio
import dspy
import numpy as np
import pytest
from dspy.experimental import Noul
from pydantic import BaseModel, TypeAdapter

from eldgr_dspy import Sampled, Selector
from eldgr_dspy.answer_types import comparing
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs import sampled
from eldgr_dspy.programs.lms.rollouts import roomy_stream
from eldgr_dspy.programs.samples import question_of
from eldgr_dspy.programs.service.service_log import LOG
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm, text_of
from eldgr_dspy.programs.typed_answers import as_candidate, as_type, type_of
from eldgr_dspy.rule.stopping import Posterior
from tests.caching import cached_by_dspy
from tests.case_tables import each_case
from tests.modules import Announce, Answers, Does, Spans
from tests.refusing import refuses
from tests.scenes import SILENT, repair
from tests.selecting import evaluating, example_of, right

PASSAGES = ["Doha is the capital of Qatar.", "Dubai lies on the coast."]
QUESTION = {"question": "What is the capital of Qatar?", "context": PASSAGES}
ASK = "context: list[str], question -> answer"


def answering(answers: list[Any], *, roles: Any = None, **options: Any) -> ScriptedLM:
    """An LM whose samples have these answers, in order of arrival, again and again."""
    cycle = itertools.cycle(answers)

    def reply(request: Any) -> Any:
        if role_of(request) is not None:
            return SILENT if roles is None else roles
        answer = next(cycle)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return f"[[ ## reasoning ## ]]\nI say {text}\n\n[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"

    return scripted_lm(reply, **options)


def answers(*values: Any) -> list[dspy.Prediction]:
    return [dspy.Prediction(answer=value) for value in values]


async def later(*_: Any, **inputs: Any) -> dspy.Prediction:
    return dspy.Prediction(answer="Doha")


def program_of(**methods: Any) -> Any:
    return type("Made", (dspy.Module,), methods)()


def run(program: Sampled, lm: Any, way: str = "sync", **inputs: Any) -> dspy.Prediction:
    with dspy.context(lm=lm):
        values = inputs or QUESTION
        return program(**values) if way == "sync" else asyncio.run(program.acall(**values))


ways = pytest.mark.parametrize("way", ["sync", "async"])


@ways
def test_it_ships_what_the_selector_decides_and_a_second_call_under_the_cache_asks_nothing(way: str) -> None:
    lm = answering(["Dubai", "Doha", "Doha", "Doha", "doha."])
    pred: Any = run(Sampled(dspy.ChainOfThought(ASK)), lm, way)
    assert (pred.answer, pred.branch, pred.certified, pred.reasoning) == ("Doha", "consensus", True, "I say Doha")
    assert pred.votes == {"Doha": 4, "Dubai": 1}
    assert sorted(pred.completions.answer) == ["Doha", "Doha", "Doha", "Dubai", "doha."]
    assert (len(pred.completions), pred.failed_samples, len(lm.requests), len(lm.history)) == (5, [], 5, 5)
    assert pred.passages[pred.witness["passage"]] == PASSAGES[0]
    lm = answering(["Doha", "Doha", "Doha", "Dubai", "Nice"], cache=True)
    with cached_by_dspy():
        first: Any = run(Sampled(dspy.Predict(ASK)), lm, way)
        again: Any = run(Sampled(dspy.Predict(ASK)), lm, way)
    assert (len(lm.requests), first.completions.answer) == (5, again.completions.answer)
    assert sorted(first.completions.answer) == ["Doha", "Doha", "Doha", "Dubai", "Nice"]


@ways
def test_all_samples_are_under_way_at_once_or_as_many_as_num_threads_says(way: str) -> None:
    """Each waits for the four others, so a sample after another would never end."""
    threads, numbers, tasks = Barrier(5, timeout=30), itertools.count(), list[asyncio.Event]()
    under_way, most = set[int](), [0]

    def meet(_: Any, **inputs: Any) -> dspy.Prediction:
        threads.wait()
        return dspy.Prediction(answer="Doha")

    async def meet_later(_: Any, **inputs: Any) -> dspy.Prediction:
        tasks[:] = tasks or [asyncio.Event()]
        if next(numbers) == 4:
            tasks[0].set()
        await asyncio.wait_for(tasks[0].wait(), 30)
        return await later()

    async def count(_: Any, **inputs: Any) -> dspy.Prediction:
        number = len(most)
        under_way.add(number)
        most.append(len(under_way))
        await asyncio.sleep(0.001)
        under_way.discard(number)
        return await later()

    assert run(Sampled(program_of(forward=meet, aforward=meet_later)), None, way).votes == {"Doha": 5}
    counting = program_of(forward=lambda self, **_: asyncio.run(self.aforward()), aforward=count)
    run(Sampled(counting, n=6, num_threads=2), None, way)
    assert max(most) <= 2


@pytest.mark.parametrize("bind", ["context", "own", "a list of predictors", "call"])
def test_a_bound_lm_is_sampled_like_that_of_the_settings(bind: str) -> None:
    lm, program, steps = answering(["Doha"], cache=True), dspy.Predict(ASK), [dspy.Predict(ASK), dspy.Predict(ASK)]
    if bind == "a list of predictors":
        program = Does(lambda me, **of: vars(me).update(new=1, my=me) or [a(**of) for a in me.steps][-1], steps=steps)
    if bind not in ("context", "call"):
        program.set_lm(lm)
    settings = {"lm": lm, "config": {"top_p": 0.5}} if bind == "call" else {}
    with cached_by_dspy(), dspy.context(lm=lm if bind == "context" else None, trace=[]):
        Sampled(program)(**QUESTION, **settings)
        assert question_of({"query": "What?", **settings}) == "What?"
        results = {id(predictor) for predictor, _, _ in dspy.settings.trace}
    assert len(lm.requests) == 5
    assert results == {id(predictor) for _, predictor in program.named_predictors()}
    assert question_of({"config": {"a": 1}}) == "config: {'a': 1}"
    assert "AAAA" not in question_of({"image": dspy.Image("data:image/png;base64,AAAA")})
    assert all(one.lm in (None, lm) for one in program.predictors())
    assert vars(program).keys() & {"new", "my"} == ({"new"} if "list" in bind else set())


def test_rollouts_and_sampling_within_sampling_stay_apart_and_a_temperature_replaces_that_of_the_lm() -> None:
    """None leaves it."""

    def thrice(self: Any, **inputs: Any) -> Any:
        first, *_ = [self.ask(**inputs, config={"rollout_id": number}) for number in range(3)]
        return first

    own = Does(thrice, ask=dspy.Predict(ASK))
    for program, requests in ((own, 6), (Sampled(dspy.Predict(ASK), n=3), 6), (Sampled(own, n=2), 12)):
        lm = answering(["Doha"], cache=True)
        with cached_by_dspy():
            run(Sampled(program, n=2), lm)
        assert len(lm.requests) == requests
    for temperature, value in ((None, 0.3), (0.9, 0.9)):
        lm = answering(["Doha"], temperature=0.3)
        run(Sampled(dspy.Predict(ASK), temperature=temperature), lm)
        run(Sampled(dspy.Predict(ASK, temperature=0.5), temperature=temperature), lm)
        assert [one.config.temperature for one in lm.requests] == [value] * 5 + [0.5] * 5
        assert lm.kwargs["temperature"] == 0.3


@ways
def test_context_usage_and_callbacks_reach_the_samples(way: str) -> None:
    class Calls(Spans):
        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.names[call_id] = "LM"

    with dspy.context(callbacks=[calls := Calls()], track_usage=True):
        pred: Any = run(Sampled(dspy.Predict(ASK)), answering(["Doha"]), way)
    assert [[*calls.names.values()].count(name) for name in ("LM", "Predict")] == [5, 5]
    assert pred.get_lm_usage()["scripted/lm"]["prompt_tokens"] >= 5 * 10


def test_the_trace_has_the_calls_of_the_sample_that_ships_and_of_the_roles() -> None:
    lm = answering(["Rome", "Rome", "Nice"], roles=repair("Doha"))
    program = Sampled(dspy.Predict(ASK), n=3, num_threads=1)
    with dspy.context(trace=[]):
        pred: Any = run(program, lm)
        assert (pred.answer, [one for one, *_ in dspy.settings.trace]) == ("Doha", [program.select.repairer.predict])
    with dspy.context(trace=[], max_trace_size=2):
        for _ in range(5):
            run(program, answering(["Doha"]))
        assert [(one, output.answer) for one, _, output in dspy.settings.trace] == [(program.program, "Doha")] * 2


@ways
def test_answers_are_compared_once_and_within_the_timeout(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list[float | None]()

    def compare(*pair: Any, seconds: float, ends: float | None) -> comparing.Comparison:
        limits.append(ends)
        return comparing.Comparison(False, 0.0)

    monkeypatch.setattr(comparing, "compare", compare)
    select = Selector(answer="math", on_failure="abstain", timeout=60)
    run(Sampled(dspy.Predict(ASK), n=2, select=select), answering(["$x + 1$", "$x + 2$"]), way)
    assert [ends is not None for ends in limits] == [True]


# -- typed answers ----------------------------------------------------------------------------------------------------
class City(BaseModel):
    name: str
    land: str | None = None


def signature_of(kind: str) -> Any:
    signature: Any = dspy.Signature
    return signature(f"{ASK}: {kind}", custom_types={"City": City})


@each_case("selector", "typed answers")
def test_a_typed_answer_comes_back_in_its_type(kind: str, reply: Any, value: Any, certified: bool | None) -> None:
    signature = signature_of(kind)
    annotation: Any = signature.output_fields["answer"].annotation
    expected = TypeAdapter(annotation).validate_python(value)
    pred: Any = run(Sampled(dspy.Predict(signature), n=len(reply), num_threads=1), answering(reply))
    assert (pred.answer, type(pred.answer), pred.certified) == (expected, type(expected), certified)
    assert isinstance(pred.consensus, str)


@each_case("selector", "repairs of typed answers")
def test_a_repair_of_another_type_is_an_abstention(kind: str, reply: Any, span: str, value: Any, branch: str) -> None:
    lm = answering(reply, roles={"repaired_answer": span, "repair_passage": 0})
    passages = [*PASSAGES, "There are 12 gates, and Infinity is one."]
    program = Sampled(dspy.Predict(signature_of(kind)), n=len(reply), num_threads=1)
    pred = run(program, lm, question="?", context=passages)
    assert (pred.answer, type(pred.answer), pred.branch) == (value, type(value), branch)
    assert ("repairer" in pred.abstentions) == (branch == "consensus")
    assert pred.certified is (branch == "repair")
    program.select.uncertified = "abstain"
    assert run(program, lm, question="?", context=passages).answer == (value if branch == "repair" else None)


def test_a_number_is_no_date_and_equal_values_vote_together() -> None:
    for kind in (datetime, date, time, timedelta, Barrier):
        refuses(ValueError, "not a value of|validation error", as_type, "1854", kind)
    assert as_type("1862-01-01", date) == date(1862, 1, 1)
    refuses(ValueError, "not a value of", as_type, f"1{',000' * 110}.5", float)
    assert as_candidate([Decimal("1.50"), Decimal("9.00")]) == as_candidate([Decimal("1.5"), np.int64(9)])
    assert [type_of(one) for one in (np.float64(1.5), np.int64(9), np.str_("a"), 9)] == [float, int, str, int]
    assert {as_candidate(as_type(f'{{"value": true, "confidence": {sure}}}', Noul)) for sure in (0.5, 0.9)} == {"true"}


def test_passages_that_the_samples_retrieve_are_evidence_together_and_read_once() -> None:
    """A program may return an iterator."""
    result = zip(["Nice", "Doha", "Doha"], [*PASSAGES, PASSAGES[0]], strict=True)
    replies = [dspy.Prediction(answer=answer, context=[passage]) for answer, passage in result]
    pred: Any = Sampled(Answers(*replies), 3, num_threads=1)(query="What?")
    assert (pred.answer, pred.certified, pred.passages) == ("Doha", True, PASSAGES)
    stops: list[Any] = [(None, 5), ("settled", 3)]
    for stop, n in stops:
        replies = [dspy.Prediction(answer="Doha", context=iter(PASSAGES)) for _ in range(5)]
        pred = Sampled(Answers(*replies), stop=stop, num_threads=1)(question="?")
        assert (pred.certified, pred.passages, len(pred.completions)) == (True, PASSAGES, n)


# -- stopping ---------------------------------------------------------------------------------------------------------
@ways
@each_case("selector", "how many samples are drawn", Posterior=Posterior)
def test_it_stops_in_batches(texts: list[str], stop: Any, n: int, total: int, way: str) -> None:
    lm = answering(texts, roles=SILENT)
    pred: Any = run(Sampled(dspy.Predict(ASK), n=n, stop=stop, num_threads=1), lm, way)
    assert len(pred.completions) == sum(pred.votes.values()) == total


# -- failing samples, by number ---------------------------------------------------------------------------------------
@ways
@each_case("selector", "failing samples", Prediction=dspy.Prediction, KeyError=KeyError, object=object, times=mul)
def test_one_failing_sample_is_reported(bad: Any, reason: str, way: str, caplog: pytest.LogCaptureFixture) -> None:
    doha = answers(*["Doha"] * 4)
    program = Sampled(Answers(doha[0], bad, *doha[1:]), num_threads=1)
    LOG.kinds.clear()
    with caplog.at_level(logging.WARNING, "eldgr_dspy"):
        pred: Any = run(program, None, way)
    assert (pred.answer, pred.votes) == ("Doha", {"Doha": 4})
    (failure,) = pred.failed_samples
    assert failure["sample"] == 1 and reason in failure["error"]
    assert pred.completions.answer[1] is None
    assert "completions[1] of 5 failed" in caplog.text
    json.dumps(pred.toDict())


AWAY = dspy.LMServerError("away")
ERRORS: dict[str, Any] = {"away": AWAY, "late": TimeoutError("late"), "KeyError": KeyError("x")}
ERRORS["overlong"] = dspy.ContextWindowExceededError(message="too long")  # it came through, and cannot be answered


@ways
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("on_failure", "on_error"), [("raise", "abstain"), ("abstain", "raise")])
def test_on_failure_is_about_calls(error: str, on_failure: Any, on_error: Any, way: str) -> None:
    """A program that fails on every sample raises its own error."""
    select = Selector(on_failure=on_failure, on_error=on_error)
    failing = Answers(dspy.LMServerError("away"), dspy.LMServerError("away"))
    with pytest.raises(dspy.LMServerError, match="away") as info:
        run(Sampled(failing, n=2, select=Selector(on_failure=on_failure), num_threads=1), None, way)
    assert info.value.__notes__[0] == "Raised by completions[0], one of 2 samples of Answers."
    program = Sampled(Answers(*answers("Doha"), ERRORS[error], *answers("Doha")), n=3, select=select, num_threads=1)
    if (on_failure if error in ("away", "late") else on_error) == "raise":
        with pytest.raises(type(ERRORS[error])) as info:
            run(program, None, way)
        assert "completions[1]" in info.value.__notes__[-1]
        return
    pred: Any = run(program, None, way)
    assert (pred.answer, pred.votes, pred.completions.answer) == ("Doha", {"Doha": 2}, ["Doha", None, "Doha"])
    assert [one["sample"] for one in pred.failed_samples] == [1]


@ways
@pytest.mark.parametrize("n", [None, 1])
def test_each_sample_has_the_selector_s_timeout_also_if_it_waits_for_a_thread(way: str, n: int | None) -> None:
    first, over = itertools.count(), Event()

    def hang(_: Any, **inputs: Any) -> Any:
        if next(first) == 0:
            over.wait(30)
        return dspy.Prediction(answer="Doha")

    program = Sampled(Does(hang), n=3, num_threads=n, select=Selector(on_failure="abstain", timeout=0.5))
    pred: Any = run(program, None, way)
    over.set()
    error = "TimeoutError: the program did not answer within the selector's timeout of 0.5 s"
    assert (pred.votes, [one["error"] for one in pred.failed_samples]) == ({"Doha": 2}, [error])
    slow = Does(lambda *_, **inputs: Event().wait(0.2) or dspy.Prediction(answer="Doha"))
    pred = run(Sampled(slow, n=3, num_threads=1, select=Selector(timeout=0.5)), None, way)
    assert (pred.votes, pred.failed_samples) == ({"Doha": 3}, [])


def test_a_sample_that_ends_while_it_is_looked_at_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(call: Any) -> Any:
        (future := Future[Any]()).set_result(call())
        vars(future)["done"] = itertools.cycle([False, True]).__next__
        return future

    monkeypatch.setattr(sampled, "start", start)
    assert run(Sampled(Answers(*answers(*["Doha"] * 3)), 3, num_threads=1), None).votes == {"Doha": 3}


def test_a_late_sample_that_cleans_up_is_not_waited_for() -> None:
    number, over = itertools.count(), asyncio.Event()

    async def clean_up(_: Any, **inputs: Any) -> dspy.Prediction:
        if next(number) == 0:
            try:
                await over.wait()
            finally:
                await over.wait()
        return await later()

    async def call() -> Any:
        select = Selector(on_failure="abstain", timeout=0.1)
        pred = await Sampled(program_of(aforward=clean_up), n=3, select=select).acall(**QUESTION)
        over.set()
        return pred

    with dspy.context(lm=scripted_lm(lambda _: SILENT)):
        assert asyncio.run(call()).votes == {"Doha": 2}


def test_no_sample_is_drawn_in_vain_and_a_program_without_the_answer_field_says_how_to_name_it() -> None:
    inner = Answers(*answers("Doha", "Dubai"), AWAY, *answers("Doha", "Doha"))
    refuses(dspy.LMServerError, "away", Sampled(inner, stop="settled", num_threads=1), **QUESTION)
    assert len([*inner.answers]) == 2
    inner = Answers(*answers("Doha"))
    refuses(ArgumentError, "evidence must be a list", Sampled(inner, n=1), question="?", evidence=5)
    assert len([*inner.answers]) == 1
    reply = dspy.Prediction(reasoning="So.", response="Doha")
    refuses(ArgumentError, "no field 'answer'; it has 'reasoning', 'res", Sampled(Answers(reply), n=1), question="?")
    pred: Any = Sampled(Answers(reply), n=1, select=Selector(answer_field="response"))(question="?", evidence=PASSAGES)
    assert (pred.response, pred.answer, pred.reasoning) == ("Doha", "Doha", "So.")
    pred = run(Sampled(Answers(*answers(None, " ")), n=2, num_threads=1), answering([]), question="?", evidence=[])
    assert (pred.answer, pred.reason, pred.votes) == (None, "no_answers", {})


# -- in DSPy ----------------------------------------------------------------------------------------------------------
def test_how_a_program_may_be_called_whose_its_predictors_are_and_which_outputs_it_may_have() -> None:
    """By position where it takes its inputs so; an async one is awaited. Inside a program any output may be."""
    roles = ["select.judge.predict", "select.repairer.predict"]
    assert [name for name, _ in Sampled(dspy.ChainOfThought(ASK)).named_predictors()] == ["program.predict", *roles]
    echo = program_of(forward=lambda self, question, *, evidence=None: dspy.Prediction(answer=question))
    assert Sampled(echo)("Doha", evidence=PASSAGES).certified
    for program in (echo, dspy.ChainOfThought(ASK), dspy.Predict(ASK)):
        refuses(TypeError, "takes its inputs by name; got 2 by position", Sampled(program), "a", "b")
    refuses(TypeError, "Made got 'question' by position and by name", Sampled(echo), "a", question="b")
    sampler = Sampled(program_of(aforward=later))
    assert run(sampler, None, "async", question="?", evidence=PASSAGES).votes == {"Doha": 5}
    refuses(ArgumentError, "program is async", Sampled(program_of(forward=later)), question="?")
    refuses(ArgumentError, "program is async", sampler, question="?")
    for kind in (dspy.Predict, dspy.ChainOfThought):
        program = kind("question -> answer, votes: int")
        refuses(ArgumentError, "^program must have no output 'votes' beside 'answer'", Sampled, program)
    inner = Does(later, draft=dspy.Predict("question -> answer, reason"))
    assert Sampled(inner).program is inner


def test_an_optimizer_gets_the_sample_that_shipped_and_many_threads_mix_nothing_up() -> None:
    """Two of three samples are right; a demonstration of the wrong one would teach the wrong answer."""
    trainset = [example_of(QUESTION, number=str(number), gold="Doha") for number in range(2)]
    for is_own in (False, True):
        lm, program = answering(["Dubai", "Doha", "Doha"]), Sampled(dspy.Predict(ASK), n=3, num_threads=1)
        if is_own:
            program.set_lm(lm)
        optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=2, max_labeled_demos=0)
        with dspy.context(lm=lm):
            result = optimizer.compile(program, trainset=trainset)
        assert [demo.answer for demo in result.program.demos] == ["Doha", "Doha"]
    program, lm = Sampled(dspy.Predict(ASK), stop="settled"), answering(["Doha"])
    devset, parallel = [example_of(QUESTION, gold="Doha")] * 12, dspy.Parallel(num_threads=4, disable_progress_bar=True)
    with dspy.context(lm=lm):
        assert evaluating(right, devset)(program).score == 100
        batch: Any = program.batch(devset, num_threads=4, disable_progress_bar=True)
        predictions: Any = [*batch, *parallel([(program, one) for one in devset])]
    assert [one.votes for one in predictions] == [{"Doha": 3}] * 24
    assert len(lm.requests) == 3 * 36


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_program_that_streams_is_sampled(is_async: bool, is_own: bool) -> None:
    """DSPy streams a program that is not async from one thread, and a listener hears one call at a time."""
    listener, pieces = dspy.streaming.StreamListener("answer", allow_reuse=True), list[Any]()
    for n, provider, listeners in ((2, None, [listener]), (20, Announce(), [])):
        lm, program = answering(["Doha", "Dubai"]), Sampled(dspy.Predict(ASK), n=n)
        program.program.set_lm(lm if is_own else None)
        stream: Any = dspy.streamify(program, provider, listeners, is_async_program=is_async, async_streaming=False)
        with dspy.context(lm=lm):
            pieces += stream(**QUESTION)
    assert "".join(getattr(piece, "chunk", "") for piece in pieces) == "DohaDubai"
    assert [getattr(piece, "message", "") for piece in pieces].count("Predict") == 20 and pieces[-1].answer == "Doha"


def test_what_was_streamed_before_a_failure_is_passed_on() -> None:
    async def stream() -> list[int]:
        send, receive = anyio.create_memory_object_stream[int](64)
        with suppress(KeyError), send, dspy.context(send_stream=send):
            async with roomy_stream():
                for n in range(40):
                    dspy.settings.send_stream.send_nowait(n)
                raise KeyError
        with receive:
            return [n async for n in receive]

    assert asyncio.run(stream()) == [*range(40)]


def test_what_is_evidence_and_what_is_not() -> None:
    """Not what an LM wrote: an answer would be certified by the quotation that was made up for it."""
    reply = "[[ ## evidence ## ]]\nNice is the capital.\n\n[[ ## answer ## ]]\nNice\n\n[[ ## completed ## ]]"
    lm = scripted_lm(lambda request: SILENT if role_of(request) else reply)
    pred: Any = run(Sampled(dspy.Predict("question -> evidence, answer"), n=2), lm, question="?")
    assert (pred.answer, pred.certified, pred.evidence) == ("Nice", False, "Nice is the capital.")
    # An inner input of that name that is not evidence does not count either.
    program = Does(lambda self, **of: self.ask(context=of, **of), ask=dspy.Predict("context: dict, question -> answer"))
    pred = run(Sampled(program, n=2), answering(["Nice"], roles=SILENT), question="?")
    assert (pred.answer, pred.certified) == ("Nice", False)
    # Nor do the items of a list that an LM wrote, but a passage does that an LM only copied.
    program = Does(
        lambda self, question: self.ask(context=self.notes(question=question).notes, question=question),
        notes=dspy.Predict("question -> notes: list[str]"),
        ask=dspy.Predict(ASK),
    )
    reply = '[[ ## notes ## ]]\n["Nice is the capital."]\n\n' + reply
    pred = run(Sampled(program, n=2), lm, question="?")
    assert (pred.answer, pred.certified, pred.passages) == ("Nice", False, [])
    program = Does(lambda self, question: self.ask(context=["Doha", "Qatar"], question=question), ask=dspy.Predict(ASK))
    assert run(Sampled(program, n=2), answering(["Doha"]), question="?").certified
    # Nor does what a program adds to the list that it is given, and no other sample sees it.
    notes = Does(lambda self, **of: of["context"].append("Nice is it.") or self.ask(**of), ask=dspy.Predict(ASK))
    lm = answering(["Nice"], roles=SILENT)
    pred = run(Sampled(notes, n=3, num_threads=1), lm, question="?", context=[PASSAGES[0]])
    assert (pred.certified, pred.passages) == (False, PASSAGES[:1])
    assert max(text_of(request).count("Nice is it.") for request in lm.requests) == 1
    assert run(Sampled(dspy.Predict(ASK), n=2), answering(["Doha"]), question="?", context=iter(PASSAGES)).certified
    # The passages that a program finds by itself certify, whether an optional input is left out or None, and untraced.
    program = Does(lambda self, question, context: self.ask(question=question, context=PASSAGES), ask=dspy.Predict(ASK))
    with dspy.context(max_trace_size=0):
        assert run(Sampled(program, n=2), answering(["Doha"]), question="?", context=None).certified
