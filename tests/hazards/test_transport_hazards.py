"""A bad day: every fault that does not stop a run, at once, on a run that is given again until it is whole."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import RunStoppedError
from tests.asking.transport import FAULTS, WAYS, answer_of, log_of, number_of, plan_of, selector_at, verdict
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.lm_server import Answer, Request, serving

NAMES = sorted(name for name, fault in FAULTS.items() if fault.outcome != "fatal")
ROWS = 2 * len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_nor_made_up(tmp_path: Path, seed: int) -> None:  # hazards 79, 81, 82, 84, 85, and 86
    day = random.Random(seed)
    faults = [FAULTS[name] for name in NAMES * 2]
    day.shuffle(faults)
    patience = [day.randrange(1, 3) for _ in faults]

    def behave(request: Request) -> Answer:
        number = number_of(request)
        fault = faults[number]
        if fault.outcome != "ok" and request.times <= patience[number]:
            return Answer(fault.answer.text, delay=30) if number == 7 else fault.answer
        text = verdict(number % 3, judge_rationale=f"of {number}")  # no two neighbours have the same
        return Answer(text, copies=2 if number % 5 == 0 else 1)

    run, workers = WAYS["threads"]
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(ROWS)))
    plan = plan_of(tmp_path, workers, ROWS, timeout=1.0)
    assert plan.pools == [pool]
    with serving(behave) as server:
        for _ in range(6):
            with suppress(RunStoppedError):  # sixteen in a row may fail on such a day
                run(selector_at(server), plan)
        result = run(selector_at(server), plan)["pools"]["p"]
        assert len(server.log) <= sum(one.calls for one in log_of(tmp_path))  # some were cut before they arrived
    by_id = {one.id: one for one in log_of(tmp_path) if one.settled}
    assert len(by_id) == sum(one.settled for one in log_of(tmp_path)) == result["n"] == ROWS
    assert result["n_failed"] == 0
    for number, fault in enumerate(faults):
        one = by_id[f"q{number}"]
        if one.outcome == "abstained":
            assert fault.outcome == "abstained"
        else:
            assert one.content is not None
            assert (one.content["preferred"], one.content["judge_rationale"]) == (number % 3, f"of {number}")


@each_case("hazards", "spoiled answers")
def test_a_failure_under_a_short_timeout_is_reported_as_what_it_was(  # hazard 79
    tmp_path: Path, answer: dict[str, Any], sentence: str
) -> None:
    """The timeout ends the pause before the second request; the first did fail, and says why."""
    with serving(lambda request: answer_of(**answer)) as server, suppress(RunStoppedError):
        WAYS["sync"][0](selector_at(server, num_retries=2), plan_of(tmp_path, 1, 1, timeout=0.5))
    (one,) = log_of(tmp_path)
    reason = one.reason or ""
    begins = "TimeoutError: no reply could be used within 0.5 s; a longer --timeout waits longer (the last"
    assert reason.startswith(begins)
    assert sentence in reason and "nothing was said" not in reason
