"""A run on several servers that die, hang, break and come back: as many rows out as in, and each question once."""

import json
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError, RunStoppedError
from eldgr_dspy.programs.balanced import PATIENCE, BalancedLM
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.servers import Server
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.run.locks import freeze
from eldgr_dspy.programs.selector import Selector
from tests.asking.transport import GOOD, WAYS, each_way, made, plan_of, selector_at
from tests.capitals import row, write_pool
from tests.lm_server import Answer, Asked, Behaviour, serving

QUESTIONS, WORKERS = 40, 6
NOBODY = "http://127.0.0.1:9/v1"
BROKEN = Answer(status=500)


@pytest.fixture(autouse=True)
def loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")


def good(asked: Asked) -> Answer:
    return GOOD


class Farm:
    """Servers of one model, one for each behaviour, and what they were asked."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours, self._held = behaviours, ExitStack()
        self.over = threading.Event()

    def __enter__(self) -> "Farm":
        self.servers = [self._held.enter_context(serving(one)) for one in self._behaviours]
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._held.close()

    @property
    def addresses(self) -> list[str]:
        return [one.address for one in self.servers]

    def answered(self) -> Counter[str]:
        """How often each question was answered."""
        return Counter(one.question for server in self.servers for one in server.log if one.status == 200)

    @property
    def received(self) -> int:
        return sum(len(server.log) for server in self.servers)


def selector_of(addresses: list[str], **options: Any) -> Selector:
    selector = Selector()
    options = {"api_key": "key", "cache": False, "num_retries": 0, **options}
    selector.set_lm(BalancedLM("openai/gpt-4o-mini", api_base=addresses, **options))
    return selector


def servers_of(selector: Selector) -> list[Server]:
    judge: Any = selector.judge
    found: list[Server] = judge.predict.lm.servers.all
    return found


def dying(after: int) -> Behaviour:
    """Answer so many requests, then cut every connection, as a killed process does."""
    lock, asked_before = threading.Lock(), iter(range(10**6))

    def behave(asked: Asked) -> Answer:
        with lock:
            return GOOD if next(asked_before) < after else Answer(status=0)

    return behave


def back_after(failures: int) -> Behaviour:
    lock, asked_before = threading.Lock(), iter(range(10**6))

    def behave(asked: Asked) -> Answer:
        with lock:
            return BROKEN if next(asked_before) < failures else GOOD

    return behave


def hanging(over: threading.Event) -> Behaviour:
    def behave(asked: Asked) -> Answer:
        over.wait(30)
        return BROKEN

    return behave


FAULTS: dict[str, Any] = {
    "dies": lambda over: dying(5),
    "is broken": lambda over: lambda asked: BROKEN,
    "hangs": hanging,
    "comes back": lambda over: back_after(4),
}


def check(farm: Farm, folder: Path, failed: int, rules: int = 2) -> None:
    """As many rows as questions, each answered once; what was asked twice is what a server failed."""
    said = made(folder)
    assert sorted(one.id for one in said) == sorted(f"q{number}" for number in range(QUESTIONS))
    assert {one.outcome for one in said} == {"ok"}
    decided = (folder / "run" / "decisions.jsonl").read_text().splitlines()
    assert Counter(json.loads(line)["id"] for line in decided) == {one.id: rules for one in said}
    assert set(farm.answered().values()) == {1} and len(farm.answered()) == QUESTIONS
    assert farm.received == QUESTIONS + failed
    assert sum(one.calls for one in said) == farm.received, "the journal counts what the servers were asked"


@each_way
@pytest.mark.parametrize("fault", FAULTS)
def test_each_question_is_answered_once_whatever_one_of_three_servers_does(
    way: str, fault: str, tmp_path: Path
) -> None:
    run, workers = WAYS[way]
    over = threading.Event()
    with Farm(FAULTS[fault](over), good, good) as farm:
        farm.over = over
        selector = selector_of(farm.addresses, **({"timeout": 1.0} if fault == "hangs" else {}))
        servers = servers_of(selector)
        run(selector, plan_of(tmp_path, workers, QUESTIONS))
        failed = servers[0].failed
        assert 1 <= failed <= 2 * workers + 4, "not a request for each question"
        over.set()
        check(farm, tmp_path, failed)


def test_a_run_ends_with_all_rows_if_all_of_these_happen_at_once(tmp_path: Path) -> None:
    over = threading.Event()
    with Farm(*(fault(over) for fault in FAULTS.values()), good) as farm:
        farm.over = over
        selector = selector_of([NOBODY, *farm.addresses], timeout=1.0)
        evaluate(selector, plan_of(tmp_path, WORKERS, QUESTIONS))
        servers = servers_of(selector)
        assert servers[0].failed and not servers[0].answered
        assert {one.under_way for one in servers} == {0}
        over.set()
        check(farm, tmp_path, sum(one.failed for one in servers[1:]))


def test_a_server_may_take_a_third_of_the_time_that_a_question_may_take(tmp_path: Path) -> None:
    limits = set[float]()

    class Noting(dspy.Module):
        def forward(self, **inputs: Any) -> Any:
            seconds: Any = dspy.settings.get(PATIENCE)
            limits.add(seconds)
            return dspy.Prediction(abstained="silent")

    selector = Selector()
    selector.judge = Noting()
    for way, (run, workers) in WAYS.items():
        if way != "async, in threads":
            (tmp_path / way).mkdir()
            run(selector, plan_of(tmp_path / way, workers, timeout=90.0))
    assert limits == {30.0}


def test_servers_share_the_work_evenly(tmp_path: Path) -> None:
    gate = threading.Barrier(WORKERS)

    def together(asked: Asked) -> Answer:
        gate.wait(20)
        return GOOD

    with Farm(together, together, together) as farm:
        evaluate(selector_of(farm.addresses), plan_of(tmp_path, WORKERS, 5 * WORKERS))
        assert [len(one.log) for one in farm.servers] == [5 * WORKERS // 3] * 3


def test_if_all_servers_are_away_the_run_stops_as_with_one(tmp_path: Path) -> None:
    said = []
    for number, selector in enumerate([selector_of([NOBODY, "http://127.0.0.1:10/v1"]), selector_of([NOBODY])]):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(RunStoppedError) as raised:
            evaluate(selector, plan_of(tmp_path / str(number), 1, QUESTIONS))
        said.append(str(raised.value).replace("127.0.0.1:10", "127.0.0.1:9"))
        assert {one.calls for one in made(tmp_path / str(number))} == {1}
    assert said[0] == said[1]
    assert said[0].startswith("16 calls in a row failed, so that the server seems to be away")


def test_a_limit_counts_requests_that_failed_but_not_refused_connections(tmp_path: Path) -> None:
    with Farm(lambda asked: BROKEN, good) as farm:
        plan = plan_of(tmp_path, 1, QUESTIONS, max_calls=7)
        with pytest.raises(RunStoppedError, match="--max-calls allows 7"):
            evaluate(selector_of([NOBODY, *farm.addresses]), plan)
        assert (farm.received, len(farm.answered())) == (7, 6)


def test_a_run_resumes_with_other_servers_and_asks_nothing_again(tmp_path: Path) -> None:
    with Farm(good, good, good, good) as farm:
        plan = plan_of(tmp_path, WORKERS, QUESTIONS)
        steps = [(farm.addresses[:3], 10), (farm.addresses[2:], 25), (farm.addresses[:1], None)]
        for addresses, limit in steps:
            try:
                evaluate(selector_of(addresses), replace(plan, max_calls=limit))
            except RunStoppedError:
                assert limit is not None
        check(farm, tmp_path, 0)
        prints = [one.fingerprint for one in made(tmp_path)]
        assert len(set(prints[:25])) == 1, "however many servers there are, a reply has one identity"
        served = evaluate(selector_of(farm.addresses), plan)
        replayed = replace(plan, out=tmp_path / "again", replay=tmp_path / "run" / "journal.jsonl", max_calls=1)
        again = evaluate(selector_of([NOBODY, "http://127.0.0.1:10/v1"]), replayed)
        scores = [[figures["em"] for figures in one["pools"]["p"]["rules"].values()] for one in (served, again)]
        assert scores[0] == scores[1]
        assert farm.received == QUESTIONS


def test_a_lock_holds_at_any_address(tmp_path: Path) -> None:
    with Farm(good, good, good) as farm:
        addresses = farm.addresses
        plan = plan_of(tmp_path, WORKERS, QUESTIONS)
        lock = freeze(selector_of(addresses[:2]), plan.rules, tmp_path / "several.lock.json").path
        for number, chosen in enumerate([addresses, addresses[1:], addresses[:1]]):
            evaluate(selector_of(chosen), replace(plan, lock=lock, out=tmp_path / str(number)))
        single = freeze(selector_at(farm.servers[0], num_retries=3), plan.rules, tmp_path / "one.lock.json").path
        evaluate(selector_of(addresses), replace(plan, lock=single, out=tmp_path / "some"))
        evaluate(selector_at(farm.servers[1]), replace(plan, lock=single, out=tmp_path / "other"))
        present: Any = selector_of(addresses).judge
        with dspy.context(lm=present.predict.lm):
            served = Selector.from_frozen(lock, rule="judge")
        assert [one.address for one in servers_of(served)] == addresses


def test_the_command_balances_and_says_which_server_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(QUESTIONS)))
    with Farm(lambda asked: BROKEN, good, good) as farm:
        words = [word for address in (NOBODY, *farm.addresses) for word in ("--api-base", address)]
        command = [
            "evaluate",
            str(pool),
            "--lm",
            "openai/m",
            *words,
            "--rules",
            "judge",
            "--out",
            str(tmp_path / "run"),
        ]
        assert main(command) == 0
        said = capsys.readouterr().err
        assert f"The server {farm.addresses[0]} failed" in said and f"The server {NOBODY} failed" in said
        assert "Servers that answered every request: 2 of 4." in said
        check(farm, tmp_path, len(farm.servers[0].log), rules=1)
        assert main([*command, "--quiet", "--fresh"]) == 0
        assert "server" not in capsys.readouterr().err


def test_the_command_freezes_several_servers_and_confirms_on_others(tmp_path: Path) -> None:
    pool, lock = write_pool(tmp_path / "p.jsonl", map(row, range(QUESTIONS))), tmp_path / "rule.lock.json"
    with Farm(good, good, good) as farm:
        words = [["--api-base", address] for address in farm.addresses]
        model = ["--lm", "vllm/m", "--rules", "judge"]
        assert main(["freeze", *model, *words[0], *words[1], "--out", str(lock)]) == 0
        with pytest.raises(ArgumentError, match="was frozen at an address of its own"):
            Selector.from_frozen(lock)
        served = Selector.from_frozen(lock, api_base=farm.addresses[:2])
        assert [one.address for one in servers_of(served)] == farm.addresses[:2]
        command = ["evaluate", str(pool), *model, "--lock", str(lock), "--quiet", "--out", str(tmp_path / "run")]
        assert main([*command, *words[2], *words[1], *words[0]]) == 0
        check(farm, tmp_path, 0, rules=1)
