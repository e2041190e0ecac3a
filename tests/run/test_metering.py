"""A meter counts every request that was sent, answered or not, as the server itself counts them."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy import lm15

from eldgr_dspy.programs.lms.consulting import aask, ask
from eldgr_dspy.programs.requests.limits import Spending
from eldgr_dspy.programs.requests.metered_lms import metered_lm, with_meter
from eldgr_dspy.programs.requests.metering import Meter, metering
from eldgr_dspy.programs.requests.retrying import Retries
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from tests.lm_server import Answer, obliging, serving

INPUTS = {"question": "Who?", "evidence": ["A\nIt was A."], "candidates": ["A", "B"]}


def test_a_request_that_is_admitted_when_its_consultation_has_just_ended_is_not_sent() -> None:
    spending = Spending(max_calls=1)
    meter = Meter(spending=spending)
    assert spending.admit()
    meter.close()
    assert not meter.begin()
    assert (meter.calls, meter.under_way) == (0, [])
    assert spending.admit()  # the place is free again


def consult(module: dspy.Module) -> Meter:
    with metering() as meter:
        ask(module, INPUTS)
    return meter


def aconsult(module: dspy.Module) -> Meter:
    async def consulted() -> Meter:
        with metering() as meter:
            await aask(module, INPUTS)
        return meter

    return asyncio.run(consulted())


@pytest.mark.parametrize("consulted", [consult, aconsult])
@pytest.mark.parametrize("status", [429, 500])
def test_retries_are_counted(consulted: Callable[[dspy.Module], Meter], status: int) -> None:
    with serving(lambda request: Answer(status=status) if request.times <= 2 else obliging(request)) as server:
        module = Judge()
        module.set_lm(dspy.LM("openai/gpt-4o-mini", api_base=server.address, api_key="key", cache=False, num_retries=3))
        meter = consulted(with_meter(module))
        assert [entry.status for entry in server.log] == [status, status, 200]
    assert (meter.calls, meter.failed) == (3, 2)
    sums = meter.sums()
    assert sums["served"] == "gpt-4o-mini-2024-07-18"
    assert sums["completion_tokens"] > 0 and sums["cost"]


@pytest.mark.parametrize(("asked", "waited"), [(3600.0, 60.0), (59.0, 59.0), (0.0, 0.0), (None, 4.0), (-1.0, 4.0)])
def test_a_server_may_ask_for_a_minute_s_pause_and_no_more(asked: float | None, waited: float) -> None:  # hazard 79
    lm = metered_lm(scripted_lm([], num_retries=3))
    again = Retries(3)
    for _ in range(2):
        again.pause_after(dspy.LMRateLimitError("busy"))
    assert sum(lm._pauses(dspy.LMRateLimitError("busy", retry_after=asked), again)) == pytest.approx(waited)


def test_a_pause_ends_in_the_failure_where_the_run_stops_meanwhile() -> None:
    lm, stopped = metered_lm(scripted_lm([], num_retries=3)), list[bool]()
    failure = dspy.LMRateLimitError("busy", retry_after=60.0)
    with metering(Meter(stopped=lambda: bool(stopped))):
        pause = lm._pauses(failure, Retries(3))
        next(pause)
        stopped.append(True)
        with pytest.raises(dspy.LMRateLimitError) as caught:
            next(pause)
    assert caught.value is failure


class Bringing(dspy.Module):  # a role that sets an LM of its own when it is called
    def __init__(self, reach: Callable[[], Any]) -> None:
        super().__init__()
        self.judge, self.reach = Judge(), reach

    def forward(self, **inputs: Any) -> Any:
        with dspy.context(lm=self.reach()):
            return self.judge(**inputs)


def test_an_lm_that_a_role_brings_by_itself_is_not_counted_and_its_cut_reply_does_not_count_either() -> None:
    lm = scripted_lm([Line('{"judge_rationale": "", "assessments": [], "preferred": 0', cut=True)])
    with metering() as meter:
        reply = ask(with_meter(Bringing(lambda: lm)), INPUTS)
    assert (len(lm.requests), meter.calls) == (1, 0)
    assert reply.content["abstained"].startswith("cut off: ")


def test_what_was_never_sent_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    module = Judge()
    module.set_lm(dspy.LM("openai/gpt-4o-mini", cache=False))
    with metering() as meter, pytest.raises(dspy.LMConfigurationError):
        ask(with_meter(module), INPUTS)
    assert meter.calls == 0


def test_a_metered_lm_is_a_copy_and_the_original_keeps_its_retries_and_history() -> None:
    with serving() as server:
        lm = dspy.LM("openai/gpt-4o-mini", api_base=server.address, api_key="key", cache=False, num_retries=2)
        module = Judge()
        module.set_lm(lm)
        consult(with_meter(module))
        assert (lm.history, lm.num_retries, type(lm)) == ([], 2, dspy.LM)
        ask(module, INPUTS)
        assert len(lm.history) == 1


class Bound(dspy.Module):  # a module that is compiled, so that DSPy's own walk over parameters passes it by
    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.predict = dspy.Predict("question -> answer")
        self.predict.set_lm(lm)
        self._compiled = True


class Holding(dspy.Module):  # a role module of a user's that holds its LM somewhere and asks it eight times, in threads
    def __init__(self, held: Any, reach: Callable[[Any], Any]) -> None:
        super().__init__()
        self.held, self.reach = held, reach

    def forward(self, **_: Any) -> dspy.Prediction:
        parallel: Any = dspy.Parallel(num_threads=4, max_errors=99, disable_progress_bar=True)
        parallel([(self.once, {"number": number}) for number in range(8)])
        return dspy.Prediction(abstained="asked")

    def once(self, number: int) -> None:
        self.reach(self.held)(f"number {number}")


HELD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an attribute": (lambda lm: lm, lambda held: held),
    "a list": (lambda lm: [lm], lambda held: held[0]),
    "a tuple in a dict": (lambda lm: {"first": ("x", lm)}, lambda held: held["first"][1]),
    "a predictor": (lambda lm: Bound(lm).predict, lambda held: held.lm),
    "a compiled module": (Bound, lambda held: held.predict.lm),
    "a list of compiled modules": (lambda lm: [Bound(lm)], lambda held: held[0].predict.lm),
}


@pytest.mark.parametrize(("hold", "reach"), HELD.values(), ids=HELD)
def test_an_lm_is_metered_wherever_a_module_holds_it_in_threads_too(hold: Any, reach: Any) -> None:
    """The module itself is left as it was."""
    lm = scripted_lm(lambda request: lm15.ServerError("down") if "number 3" in text_of(request) else "hello")
    module = Holding(hold(lm), reach)
    with metering() as meter:
        assert ask(with_meter(module), INPUTS).content == {"abstained": "asked"}
    assert (len(lm.requests), meter.calls, meter.failed) == (8, 8, 1)
    assert reach(module.held) is lm


def test_one_lm_of_two_predictors_stays_one() -> None:
    module: Any = dspy.ChainOfThought("question -> answer")
    module.other = dspy.Predict("question -> answer")
    module.set_lm(scripted_lm([]))
    assert with_meter(module).get_lm() is not module.get_lm()


def test_a_consultation_is_held_for_as_long_as_all_of_it_waits_and_no_longer() -> None:
    now = time.monotonic()
    meter = Meter()
    meter.hold(now - 5.0)
    assert 5.0 <= meter.wait < 50.0
    before = meter.wait
    meter.hold(now - 5.0)  # another request of it that has waited as long
    assert before <= meter.wait < before + 45.0
    meter.begin()
    before = meter.wait
    meter.hold(now - 500.0)  # while one of it is under way, it waits for itself
    assert meter.wait == before


def test_failures_in_threads_are_all_counted() -> None:
    lm = scripted_lm(lambda _: lm15.ServerError("down"))
    with metering() as meter:
        ask(with_meter(Holding([lm], lambda held: held[0])), INPUTS)
    assert meter.failed == meter.calls == len(lm.requests) == 8
