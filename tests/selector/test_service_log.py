"""What goes wrong is logged once a minute and kind, with the count since, from any thread, without credentials."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.service_log import EVERY, LOG, MOST_KINDS, RareLog, log_silence
from eldgr_dspy.programs.testing import role_of
from eldgr_dspy.redaction import remember
from eldgr_dspy.rule.consultations import Abstention
from tests.capitals import NO_SPAN, row, selector_with, write_pool
from tests.lm_server import Answer, serving
from tests.selecting import CONTESTED, select_acall, select_sync, selector_of


@pytest.fixture(autouse=True)
def logged_anew() -> Iterator[None]:
    LOG.kinds.clear()
    yield
    LOG.kinds.clear()


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "eldgr_dspy")
    return caplog


def lines(heard: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    return [one for one in heard.record_tuples if one[0] == "eldgr_dspy"]


class Clock:  # a clock that stands still until it is moved
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


FIRST = "Further ones are logged at most once a minute."


def test_each_kind_of_reason_is_logged_once_a_role_and_minute(heard: pytest.LogCaptureFixture) -> None:
    log = RareLog(Clock())
    for _ in range(3):
        log_silence("judge", Abstention("unparsable: The reply is not JSON.", "unreadable"), log)
        log_silence("judge", Abstention("unparsable: it is another text", "unreadable"), log)
        log_silence("repairer", Abstention("unparsable: x", "unreadable"), log)
        log_silence("judge", Abstention.failure(dspy.LMTimeoutError("late")), log)
        log_silence("judge", Abstention.failure(dspy.LMTimeoutError("later")), log)
        log_silence("judge", Abstention.failure(ConnectionError("gone")), log)
        log_silence("repairer", Abstention("no span"), log)
    assert lines(heard) == [
        ("eldgr_dspy", logging.WARNING, message)
        for message in (
            f"The judge gave no usable reply (unreadable): unparsable: The reply is not JSON. {FIRST}",
            f"The repairer gave no usable reply (unreadable): unparsable: x. {FIRST}",
            f"A call of the judge failed: LMTimeoutError: late. {FIRST}",
            f"A call of the judge failed: ConnectionError: gone. {FIRST}",
        )
    ] + [("eldgr_dspy", logging.INFO, f"The repairer abstained: no span. {FIRST}")]


def test_an_outage_that_lasts_is_a_line_a_minute_with_the_count_since(heard: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RareLog(clock)
    for _ in range(3 * EVERY + 1):
        log_silence("judge", Abstention.failure(ConnectionError("gone")), log)
        clock.now += 1
    more = f"{EVERY - 1} more since the last line."
    assert [message for _, _, message in lines(heard)] == [
        f"A call of the judge failed: ConnectionError: gone. {note}" for note in (FIRST, more, more, more)
    ]
    clock.now += 10 * EVERY
    log_silence("judge", Abstention.failure(ConnectionError("gone")), log)
    assert lines(heard)[-1][2].endswith("gone. 0 more since the last line.")


def test_many_threads_log_a_kind_once_and_count_the_others(heard: pytest.LogCaptureFixture) -> None:
    log = RareLog(Clock())
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: log_silence("judge", Abstention(f"unparsable: {n}", "unreadable"), log), range(400)))
    assert len(lines(heard)) == 1
    assert [since for _, since in log.kinds.values()] == [399]


def test_errors_of_any_name_fill_neither_the_memory_nor_the_log(heard: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RareLog(clock)
    for number in range(3 * MOST_KINDS):
        log_silence("judge", Abstention(f"failed: Error{number}: x", f"Error{number}", failed=True), log)
    assert len(log.kinds) == len(lines(heard)) == MOST_KINDS + 1
    clock.now += EVERY
    log_silence("judge", Abstention("failed: AnotherError: x", "AnotherError", failed=True), log)
    assert lines(heard)[-1][2].endswith(f"{2 * MOST_KINDS - 1} more since the last line.")


def test_a_reason_is_one_short_line_without_credentials_or_control_characters(heard: pytest.LogCaptureFixture) -> None:
    remember("sk-91uZq7Yt55ab")
    reason = "failed: LMServerError: key sk-91uZq7Yt55ab\r\nINFO forged \x1b[31m" + "x" * 100_000
    log_silence("judge", Abstention(reason, "LMServerError", failed=True))
    ((_, _, said),) = lines(heard)
    assert "sk-91uZ" not in said
    assert "\n" not in said
    assert "\x1b" not in said
    assert len(said) < 500


def test_a_run_logs_what_its_roles_could_not_say(heard: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return NO_SPAN if role_of(request) == "repairer" else "I would take the third."

    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(4)))
    selector, _ = selector_with(reply)
    evaluate(selector, Plan([pool], tmp_path / "run", workers=3))
    assert [
        (level, message.partition(":")[0])
        for _, level, message in sorted(lines(heard), reverse=True, key=lambda x: x[1])
    ] == [(logging.WARNING, "The judge gave no usable reply (unreadable)"), (logging.INFO, "The repairer abstained")]
    selector, _ = selector_with(lambda request: dspy.LMServerError("away"))
    evaluate(selector, Plan([pool], tmp_path / "failing", max_failures="100%"))
    assert [message for _, _, message in lines(heard)[2:]] == [
        f"A call of the {role} failed: LMServerError: away. {FIRST}" for role in ("judge", "repairer")
    ]


async def unreachable(answer: str, evidence: Any) -> bool:
    raise ConnectionError("gone")


@pytest.mark.parametrize("call", [select_sync, select_acall])
def test_a_selector_logs_what_nobody_could_say(heard: pytest.LogCaptureFixture, call: Any) -> None:
    select = selector_of(ConnectionError("gone"), on_failure="abstain")
    for _ in range(3):
        call(select, CONTESTED)
    call(Selector(certificate=unreachable, on_failure="abstain"), CONTESTED)
    assert [message for _, _, message in lines(heard)] == [
        f"A call of the judge failed: ConnectionError: gone. {FIRST}",
        f"The repairer abstained: no span. {FIRST}",
        f"A call of the certificate failed: ConnectionError: gone. {FIRST}",
    ]


def test_by_default_a_warning_is_on_standard_error_and_the_command_leaves_it_to_its_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program that configures no logging
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    pool = write_pool(tmp_path / "p.jsonl", [row(0)])
    with serving(lambda asked: Answer("the third")) as server:
        arguments = ["--judge", "openai/m", "--api-base", server.address, "--rules", "judge"]
        assert main(["evaluate", str(pool), *arguments, "--out", str(tmp_path / "command"), "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    LOG.kinds.clear()
    evaluate(selector_with(lambda request: "the third")[0], Plan([pool], tmp_path / "program", ["judge"]))
    assert capsys.readouterr().err.startswith("The judge gave no usable reply (unreadable): unparsable: ")
