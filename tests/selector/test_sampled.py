"""Any program, sampled: in parallel, apart under the cache, typed, with failing samples, and in DSPy's own tools."""

import asyncio
import itertools
import json
import logging
from threading import Barrier
from typing import Any, Literal

import dspy
import pytest
from dspy.utils import BaseCallback
from pydantic import BaseModel

from eldgr_dspy import Sampled, Selector
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.service.service_log import LOG
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm
from eldgr_dspy.rule.stopping import Posterior
from tests.caching import cached_by_dspy
from tests.refusing import refused
from tests.selecting import SILENT, Answers, evaluating, example_of, repair, right

PASSAGES = ["Doha is the capital of Qatar.", "Dubai lies on the coast."]
QUESTION = {"question": "What is the capital of Qatar?", "context": PASSAGES}
ASK = "context: list[str], question -> answer"


def answering(answers: list[Any], *, roles: Any = None, **options: Any) -> ScriptedLM:
    """An LM whose samples have these answers, in order of arrival, again and again."""
    left = itertools.cycle(answers)

    def reply(request: Any) -> Any:
        if role_of(request) is not None:
            return SILENT if roles is None else roles
        answer = next(left)
        if isinstance(answer, Exception):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return f"[[ ## reasoning ## ]]\nI say {text}\n\n[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"

    return scripted_lm(reply, **options)


def answers(*values: Any) -> list[dspy.Prediction]:
    return [dspy.Prediction(answer=value) for value in values]


SIGNATURE: Any = dspy.Signature


def called(program: Sampled, lm: Any, way: str = "sync", **inputs: Any) -> dspy.Prediction:
    with dspy.context(lm=lm):
        given = inputs or QUESTION
        return program(**given) if way == "sync" else asyncio.run(program.acall(**given))


ways = pytest.mark.parametrize("way", ["sync", "async"])


@ways
def test_it_ships_what_the_selector_decides_with_the_other_fields_of_that_sample(way: str) -> None:
    lm = answering(["Dubai", "Doha", "Doha", "Doha", "doha."])
    pred: Any = called(Sampled(dspy.ChainOfThought(ASK)), lm, way)
    assert (pred.answer, pred.branch, pred.certified, pred.reasoning) == ("Doha", "consensus", True, "I say Doha")
    assert pred.votes == {"Doha": 4, "Dubai": 1}
    assert sorted(pred.completions.answer) == ["Doha", "Doha", "Doha", "Dubai", "doha."]
    assert (len(pred.completions), pred.failed_samples, len(lm.requests), len(lm.history)) == (5, [], 5, 5)
    assert pred.passages[pred.witness["passage"]] == PASSAGES[0]


@ways
def test_all_samples_are_under_way_at_once(way: str) -> None:
    """Each waits for the four others, so a sample after another would never end."""
    threads, seen = Barrier(5, timeout=30), itertools.count()
    tasks: list[asyncio.Event] = []

    class Meeting(dspy.Module):
        def forward(self, **_: Any) -> dspy.Prediction:
            threads.wait()
            return dspy.Prediction(answer="Doha")

        async def aforward(self, **_: Any) -> dspy.Prediction:
            tasks[:] = tasks or [asyncio.Event()]
            if next(seen) == 4:
                tasks[0].set()
            await asyncio.wait_for(tasks[0].wait(), 30)
            return dspy.Prediction(answer="Doha")

    assert called(Sampled(Meeting()), None, way).votes == {"Doha": 5}


@ways
def test_num_threads_limits_the_samples_under_way(way: str) -> None:
    under_way, most = set[int](), [0]

    class Counted(dspy.Module):
        async def aforward(self, **_: Any) -> dspy.Prediction:
            number = len(most)
            under_way.add(number)
            most.append(len(under_way))
            await asyncio.sleep(0.001)
            under_way.discard(number)
            return dspy.Prediction(answer="Doha")

        def forward(self, **_: Any) -> dspy.Prediction:
            return asyncio.run(self.aforward())

    called(Sampled(Counted(), n=6, num_threads=2), None, way)
    assert max(most) <= 2


@ways
def test_samples_differ_under_the_cache_and_a_second_call_asks_nothing(way: str) -> None:
    lm = answering(["Doha", "Doha", "Doha", "Dubai", "Nice"], cache=True)
    with cached_by_dspy():
        first: Any = called(Sampled(dspy.Predict(ASK)), lm, way)
        again: Any = called(Sampled(dspy.Predict(ASK)), lm, way)
    assert len(lm.requests) == 5
    assert first.completions.answer == again.completions.answer
    assert sorted(first.completions.answer) == ["Doha", "Doha", "Doha", "Dubai", "Nice"]


@pytest.mark.parametrize("bind", ["context", "own", "a list of predictors"])
def test_a_bound_lm_is_sampled_like_that_of_the_settings(bind: str) -> None:
    class Two(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = [dspy.Predict(ASK), dspy.Predict(ASK)]

        def forward(self, **inputs: Any) -> dspy.Prediction:
            return [step(**inputs) for step in self.steps][-1]

    lm, program = answering(["Doha"], cache=True), Two() if bind == "a list of predictors" else dspy.Predict(ASK)
    if bind != "context":
        program.set_lm(lm)
    with cached_by_dspy(), dspy.context(lm=lm if bind == "context" else None, trace=[]):
        Sampled(program)(**QUESTION)
        results = {id(predictor) for predictor, _, _ in dspy.settings.trace}
    assert len(lm.requests) == 5
    assert results == {id(predictor) for _, predictor in program.named_predictors()}
    assert all(one.lm in (None, lm) for one in program.predictors())


def test_rollouts_of_the_program_and_sampling_within_sampling_stay_apart() -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = dspy.Predict(ASK)

        def forward(self, **inputs: Any) -> dspy.Prediction:
            replies = [self.ask(**inputs, config={"rollout_id": number}) for number in range(3)]
            return replies[0]

    for program, requests in ((Own(), 6), (Sampled(dspy.Predict(ASK), n=3), 6), (Sampled(Own(), n=2), 12)):
        lm = answering(["Doha"], cache=True)
        with cached_by_dspy():
            called(Sampled(program, n=2), lm)
        assert len(lm.requests) == requests


@pytest.mark.parametrize(("values", "sent"), [(None, 0.3), (0.9, 0.9)])
def test_a_temperature_replaces_that_of_the_lm_and_none_leaves_it(values: float | None, sent: float) -> None:
    lm = answering(["Doha"], temperature=0.3)
    called(Sampled(dspy.Predict(ASK), temperature=values), lm)
    called(Sampled(dspy.Predict(ASK, temperature=0.5), temperature=values), lm)
    assert [one.config.temperature for one in lm.requests] == [sent] * 5 + [0.5] * 5
    assert lm.kwargs["temperature"] == 0.3


@ways
def test_context_usage_and_callbacks_reach_the_samples(way: str) -> None:
    class Heard(BaseCallback):
        lms, parents = 0, 0

        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.lms += 1

        def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.parents += isinstance(instance, dspy.Predict)

    heard, lm = Heard(), answering(["Doha"])
    with dspy.context(callbacks=[heard], track_usage=True):
        pred: Any = called(Sampled(dspy.Predict(ASK)), lm, way)
    assert (heard.lms, heard.parents) == (5, 5)
    assert pred.get_lm_usage()["scripted/lm"]["prompt_tokens"] >= 5 * 10


def test_the_trace_has_the_calls_of_the_sample_that_ships_and_of_the_roles() -> None:
    lm = answering(["Rome", "Rome", "Nice"], roles=repair("Doha"))
    program = Sampled(dspy.Predict(ASK), n=3, num_threads=1)
    with dspy.context(trace=[]):
        pred: Any = called(program, lm)
        assert (pred.answer, [one for one, *_ in dspy.settings.trace]) == ("Doha", [program.select.repairer.predict])
    with dspy.context(trace=[], max_trace_size=2):
        for _ in range(5):
            called(program, answering(["Doha"]))
        assert [(one, said.answer) for one, _, said in dspy.settings.trace] == [(program.program, "Doha")] * 2


# -- typed answers ----------------------------------------------------------------------------------------------------
class City(BaseModel):
    name: str
    land: str | None = None


@pytest.mark.parametrize(
    ("kind", "reply", "shipped", "certified"),
    [
        (bool, [True, True, False], True, None),
        (int, [3, 3, 4], 3, False),
        (float, [4.0, 4, 3], 4.0, False),
        (Literal["Doha", "Dubai"], ["Doha", "Doha", "Dubai"], "Doha", True),
        (Literal[1, 2], [2, 2, 1], 2, False),
        (list[str], [["Doha", "Qatar"], ["Dubai"], ["doha", "Qatar"]], ["Doha", "Qatar"], True),
        (list[str], [["Doha", "Paris"], ["Doha", "Paris"], ["Nice"]], ["Doha", "Paris"], False),
        (City, [{"name": "Doha", "land": "Qatar"}] * 2, City(name="Doha", land="Qatar"), True),
        (City, [{"name": "Doha", "land": None}, {"name": "Nice", "land": None}], City(name="Doha"), None),
        (dict[str, int], [{"a": 1}, {"a": 1}, {"a": 2}], {"a": 1}, False),
    ],
    ids=str,
)
def test_a_typed_answer_comes_back_in_its_type(kind: Any, reply: Any, shipped: Any, certified: bool | None) -> None:
    signature: Any = SIGNATURE(ASK).with_updated_fields("answer", type_=kind)
    pred: Any = called(Sampled(dspy.Predict(signature), n=len(reply), num_threads=1), answering(reply))
    assert (pred.answer, type(pred.answer), pred.certified) == (shipped, type(shipped), certified)
    assert isinstance(pred.consensus, str)


@pytest.mark.parametrize(
    ("kind", "reply", "span", "shipped", "branch"),
    [
        (int, ["7", "7", "8"], "12", 12, "repair"),
        (int, ["7", "7", "8"], "Doha", 7, "consensus"),
        (Literal["Nice", "Doha"], ["Nice", "Nice"], "Doha", "Doha", "repair"),
        (Literal["Nice", "Rome"], ["Nice", "Rome"], "Doha", "Nice", "consensus"),
        (list[str], [["Nice"], ["Rome"]], "Doha", ["Nice"], "consensus"),
    ],
    ids=str,
)
def test_a_repair_of_another_type_is_an_abstention(kind: Any, reply: Any, span: str, shipped: Any, branch: str) -> None:
    signature: Any = SIGNATURE(ASK).with_updated_fields("answer", type_=kind)
    lm = answering(reply, roles={"repaired_answer": span, "repair_passage": 0})
    passages = [*PASSAGES, "There are 12 gates."]
    pred = called(Sampled(dspy.Predict(signature), n=len(reply), num_threads=1), lm, question="?", context=passages)
    assert (pred.answer, type(pred.answer), pred.branch) == (shipped, type(shipped), branch)
    assert ("repairer" in pred.abstentions) == (branch == "consensus")
    assert pred.certified is (branch == "repair")


def test_what_an_lm_wrote_is_not_evidence() -> None:
    """Else an answer would be certified by the quotation that was made up for it."""
    written = "[[ ## evidence ## ]]\nNice is the capital.\n\n[[ ## answer ## ]]\nNice\n\n[[ ## completed ## ]]"
    lm = scripted_lm(lambda request: SILENT if role_of(request) else written)
    pred: Any = called(Sampled(dspy.Predict("question -> evidence, answer"), n=2), lm, question="?")
    assert (pred.answer, pred.certified, pred.evidence) == ("Nice", False, "Nice is the capital.")


def test_passages_that_the_samples_retrieve_are_evidence_together() -> None:
    result = zip(["Nice", "Doha", "Doha"], [*PASSAGES, PASSAGES[0]], strict=True)
    replies = [dspy.Prediction(answer=answer, context=[passage]) for answer, passage in result]
    pred = Sampled(Answers(*replies), n=3, num_threads=1)(query="What?")
    assert (pred.answer, pred.certified, pred.passages) == ("Doha", True, PASSAGES)


def test_an_inner_input_that_is_named_as_evidence_and_is_none_is_not_taken_for_it() -> None:
    class Personal(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict("context: dict, question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            return self.answer(context={"user": "Ann"}, question=question)

    pred: Any = called(Sampled(Personal(), n=2), answering(["Nice"], roles=SILENT), question="?")
    assert (pred.answer, pred.certified) == ("Nice", False)


@pytest.mark.parametrize("stop", [None, "settled"])
def test_the_passages_of_a_sample_are_read_once(stop: Any) -> None:
    """A program may return an iterator."""
    replies = [dspy.Prediction(answer="Doha", context=iter(PASSAGES)) for _ in range(5)]
    pred: Any = Sampled(Answers(*replies), stop=stop, num_threads=1)(question="?")
    assert (pred.certified, pred.passages, len(pred.completions)) == (True, PASSAGES, 5 if stop is None else 3)


# -- stopping ---------------------------------------------------------------------------------------------------------
@ways
@pytest.mark.parametrize(
    ("texts", "stop", "n", "drawn"),
    [
        (["Doha"], "settled", 5, 3),
        (["Doha", "Dubai"], "settled", 4, 3),
        (["Nice"], "settled", 5, 5),
        (["Doha"], None, 5, 5),
        (["Nice"], Posterior(), 40, 4),
        (["Nice"], Posterior(0.99), 40, 6),
    ],
)
def test_it_stops_in_batches(texts: list[str], stop: Any, n: int, drawn: int, way: str) -> None:
    lm = answering(texts, roles=SILENT)
    pred: Any = called(Sampled(dspy.Predict(ASK), n=n, stop=stop, num_threads=1), lm, way)
    assert len(pred.completions) == sum(pred.votes.values()) == drawn


# -- failing samples, by number ---------------------------------------------------------------------------------------
@ways
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (KeyError("no such city"), "KeyError: 'no such city'"),
        (None, "UnfitProgramError: Answers must return a dspy.Prediction with 'answer'; got None."),
        ("Doha", "UnfitProgramError: Answers must return a dspy.Prediction with 'answer'; got 'Doha'."),
        (dspy.Prediction(response="Doha"), "has no field 'answer'; it has 'response'. Name the field that holds"),
        (dspy.Prediction(answer=float("inf")), "must be text, a finite number or None; got inf"),
        (dspy.Prediction(answer=[object()]), "An answer must be a text, a number, or a value that JSON can hold"),
        (dspy.Prediction(answer="x" * 500_001), "has 500,001 characters; give at most 500,000."),
    ],
    ids=["exception", "nothing", "text", "another field", "infinity", "object", "too long"],
)
def test_one_failing_sample_is_reported(bad: Any, reason: str, way: str, caplog: pytest.LogCaptureFixture) -> None:
    doha = answers(*["Doha"] * 4)
    program = Sampled(Answers(doha[0], bad, *doha[1:]), num_threads=1)
    LOG.kinds.clear()
    with caplog.at_level(logging.WARNING, "eldgr_dspy"):
        pred: Any = called(program, None, way)
    assert (pred.answer, pred.votes) == ("Doha", {"Doha": 4})
    (failed,) = pred.failed_samples
    assert failed["sample"] == 1
    assert reason in failed["error"]
    assert pred.completions.answer[1] is None
    assert "completions[1] of 5 failed" in caplog.text
    json.dumps(pred.toDict())


@ways
@pytest.mark.parametrize("on_failure", ["raise", "abstain"])
def test_a_program_that_fails_on_every_sample_raises_its_own_error(on_failure: Any, way: str) -> None:
    select = Selector(on_failure=on_failure)
    with pytest.raises(dspy.LMServerError, match="away") as raised:
        called(Sampled(Answers(*[dspy.LMServerError("away")] * 2), n=2, select=select, num_threads=1), None, way)
    assert raised.value.__notes__[0] == "Raised by completions[0], one of 2 samples of Answers."


AWAY = dspy.LMServerError("away")
OVERLONG = dspy.ContextWindowExceededError(message="too long")


@ways
@pytest.mark.parametrize(
    ("error", "on_failure", "on_error", "raises"),
    [
        (AWAY, "raise", "abstain", True),
        (AWAY, "abstain", "raise", False),
        (TimeoutError("late"), "raise", "abstain", True),
        (TimeoutError("late"), "abstain", "raise", False),
        (OVERLONG, "raise", "abstain", False),  # it came through, and cannot be answered
        (OVERLONG, "abstain", "raise", True),
        (KeyError("x"), "raise", "abstain", False),
        (KeyError("x"), "abstain", "raise", True),
    ],
    ids=str,
)
def test_on_failure_is_about_calls(error: Exception, on_failure: Any, on_error: Any, raises: bool, way: str) -> None:
    select = Selector(on_failure=on_failure, on_error=on_error)
    program = Sampled(Answers(*answers("Doha"), error, *answers("Doha")), n=3, select=select, num_threads=1)
    if raises:
        with pytest.raises(type(error)) as raised:
            called(program, None, way)
        assert "completions[1]" in raised.value.__notes__[-1]
        return
    pred: Any = called(program, None, way)
    assert (pred.answer, pred.votes, pred.completions.answer) == ("Doha", {"Doha": 2}, ["Doha", None, "Doha"])
    assert [one["sample"] for one in pred.failed_samples] == [1]


def test_a_failed_call_in_the_first_batch_asks_for_no_second_one() -> None:
    left = Answers(*answers("Doha", "Dubai"), AWAY, *answers("Doha", "Doha"))
    with pytest.raises(dspy.LMServerError):
        Sampled(left, stop="settled", num_threads=1)(**QUESTION)
    assert len([*left.left]) == 2


def test_evidence_that_cannot_be_used_is_refused_before_a_sample_is_drawn() -> None:
    left = Answers(*answers("Doha"))
    with pytest.raises(ArgumentError, match="evidence must be a list"):
        Sampled(left, n=1)(question="?", evidence=5)
    assert len([*left.left]) == 1


def test_a_program_without_the_answer_field_says_how_to_name_it() -> None:
    reply = dspy.Prediction(reasoning="So.", response="Doha")
    with pytest.raises(ArgumentError, match="has no field 'answer'; it has 'reasoning', 'response'"):
        Sampled(Answers(*[reply] * 5), num_threads=1)(question="?")
    pred = Sampled(Answers(*[reply] * 5), select=Selector(answer_field="response"))(question="?", evidence=PASSAGES)
    assert (pred.response, pred.answer, pred.reasoning) == ("Doha", "Doha", "So.")


def test_no_answer_at_all_ships_none() -> None:
    program = Sampled(Answers(*answers(None, " ", None)), n=3, num_threads=1)
    pred = called(program, answering([]), question="?", evidence=[])
    assert (pred.answer, pred.reason, pred.votes) == (None, "no_answers", {})


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("program", dspy.Predict, "program must be a dspy.Module"),
        ("program", len, "program must be a dspy.Module"),
        ("n", 0, "n must be a whole number from 1 to 1,000; got 0."),
        ("n", True, "n must be a whole number from 1 to 1,000; got True."),
        ("n", 1001, "n must be a whole number from 1 to 1,000; got 1001."),
        ("select", dspy.majority, "select must be a Selector"),
        ("stop", "beta", "stop must be None, 'settled' or a Posterior; got 'beta'."),
        ("temperature", 0, "temperature must be above 0, or all samples are the same; got 0."),
        ("temperature", float("nan"), "temperature must be above 0"),
        ("num_threads", 0, "num_threads must be a whole number of at least 1; got 0."),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(argument: str, value: Any, expected: str) -> None:
    options = {"program": dspy.Predict(ASK), argument: value}
    assert expected in refused(lambda: Sampled(**options))


# -- in DSPy ----------------------------------------------------------------------------------------------------------
def test_inputs_may_be_given_by_position_where_the_program_takes_them_so() -> None:
    class Echo(dspy.Module):
        def forward(self, question: str, *, evidence: Any = None) -> dspy.Prediction:
            return dspy.Prediction(answer=question)

    assert Sampled(Echo())("Doha", evidence=PASSAGES).certified
    for program in (Echo(), dspy.ChainOfThought(ASK), dspy.Predict(ASK)):
        with pytest.raises(TypeError, match="takes its inputs by name; got 2 by position"):
            Sampled(program)("a", "b")
    with pytest.raises(TypeError, match="Echo got 'question' by position and by name"):
        Sampled(Echo())("a", question="b")


def test_an_async_program_is_awaited_and_refused_in_a_call() -> None:
    class Slow(dspy.Module):
        async def aforward(self, **_: Any) -> dspy.Prediction:
            return dspy.Prediction(answer="Doha")

    class Wrong(dspy.Module):
        async def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(answer="Doha")

    assert called(Sampled(Slow()), None, "async", question="?", evidence=PASSAGES).votes == {"Doha": 5}
    with pytest.raises(ArgumentError, match="program is async"):
        Sampled(Wrong())(question="?")


def test_its_predictors_are_those_of_the_program_and_of_the_selector() -> None:
    program: Any = Sampled(dspy.ChainOfThought(ASK))
    parts = {part: getattr(program, part).named_predictors() for part in ("program", "select")}
    names = [f"{part}.{name}" for part, predictors in parts.items() for name, _ in predictors]
    assert [name for name, _ in program.named_predictors()] == names


@pytest.mark.parametrize("bound", [False, True])
def test_an_optimizer_reaches_the_program_with_the_sample_that_shipped(bound: bool) -> None:
    """Two of three samples are right; a demonstration of the wrong one would teach the wrong answer."""
    trainset = [example_of(QUESTION, number=str(number), gold="Doha") for number in range(2)]
    lm, program = answering(["Dubai", "Doha", "Doha"]), Sampled(dspy.Predict(ASK), n=3, num_threads=1)
    if bound:
        program.set_lm(lm)
    with dspy.context(lm=lm):
        optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=2, max_labeled_demos=0)
        compiled = optimizer.compile(program, trainset=trainset)
    assert [demo.answer for demo in compiled.program.demos] == ["Doha", "Doha"]


def test_many_threads_may_call_it_and_mix_nothing_up() -> None:
    program, lm = Sampled(dspy.Predict(ASK), stop="settled"), answering(["Doha"])
    devset, parallel = [example_of(QUESTION, gold="Doha")] * 12, dspy.Parallel(num_threads=4, disable_progress_bar=True)
    with dspy.context(lm=lm):
        assert evaluating(right, devset)(program).score == 100
        predictions: Any = [
            *program.batch(devset, num_threads=4, disable_progress_bar=True),
            *parallel([(program, one) for one in devset]),
        ]
    assert [one.votes for one in predictions] == [{"Doha": 3}] * 24
    assert len(lm.requests) == 3 * 36


def test_a_program_that_streams_is_sampled() -> None:
    """DSPy streams a program that is not async from one thread alone, so samples are drawn there, in turn."""
    sampled: Any = dspy.streamify(Sampled(dspy.Predict(ASK), n=2), async_streaming=False)
    with dspy.context(lm=answering(["Doha", "Dubai"])):
        *_, last = sampled(**QUESTION)
    assert last.answer == "Doha"


def test_evidence_that_is_none_is_not_given() -> None:
    """The passages that a program finds by itself certify, whether an optional input is left out or None."""

    class Finds(dspy.Module):
        def __init__(self) -> None:
            self.predict = dspy.Predict(ASK)

        def forward(self, question: str, context: Any = None) -> dspy.Prediction:
            return self.predict(question=question, context=PASSAGES)

    prediction = called(Sampled(Finds(), n=2), answering(["Doha"]), question=QUESTION["question"], context=None)
    assert prediction.certified
