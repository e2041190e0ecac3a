"""A server at an address of the user's is sent a JSON schema until it refuses one; then it is asked without."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Literal

import dspy
import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.reply_forms import refuses_schema
from eldgr_dspy.programs.engines.strict import STRICT
from eldgr_dspy.programs.lms.models import make_lm
from eldgr_dspy.programs.run.fingerprints import describe_lm
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.signatures import JudgeCandidates, RepairAnswer
from tests.asking.judge_modules import each_call
from tests.asking.transport import lm_at
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.loopback import openai_server
from tests.refusing import refuses

REPAIR = json.dumps({"repair_passage": 0, "repaired_answer": "e"})
VERDICT = {"judge_rationale": "r", "assessments": [], "preferred": 0}


class Server:  # what a server answers, and the response format of each request
    def __init__(self, without: Any, with_one: Any) -> None:
        self.formats: list[Any] = []
        self._answers = (without, with_one)

    @property
    def flags(self) -> list[bool]:
        return [one is not None for one in self.formats]

    def __call__(self, body: dict[str, Any]) -> Any:
        self.formats.append(body.get("response_format"))
        return self._answers[self.flags[-1]]


def ask(lm: Any, signature: Any = RepairAnswer, call: Any = lambda module: module, **inputs: Any) -> Any:
    with dspy.context(lm=lm, adapter=STRICT):
        return call(dspy.Predict(signature))(**(inputs or {"question": "q", "evidence": ["e"]}))


def test_a_server_of_the_user_s_is_sent_a_schema_which_it_refuses_only_if_it_takes_the_request_without() -> None:
    with openai_server(server := Server((400, "no"), REPAIR)) as address:
        assert ask(lm_at(address, "openai/local")).repaired_answer == "e"
    assert server.flags == [True]
    for status, kind in ((400, dspy.LMInvalidRequestError), (401, dspy.LMAuthError)):
        with openai_server(server := Server((status, "no"), (400, "no schema"))) as address:
            refuses(kind, "no\n|no$", ask, lm_at(address, "openai/local"))
            assert not refuses_schema(lm_at(address, "openai/local"))
        assert server.flags == [True, False]


@each_case("asking", "refusals of a schema")
@each_call
def test_a_server_that_refuses_a_schema_is_asked_without_once_and_from_then_on(refusal: Any, call: Any) -> None:
    with openai_server(server := Server(REPAIR, refusal)) as address:
        assert [ask(lm_at(address, "openai/local"), call=call).repaired_answer for _ in range(2)] == ["e", "e"]
        assert refuses_schema(lm_at(address, "openai/local"))
    assert server.flags == [True, False, False]


def test_requests_at_once_that_a_server_refuses_are_all_sent_again_without_a_schema() -> None:
    together = Barrier(4)

    class Slow(Server):
        def __call__(self, body: dict[str, Any]) -> Any:
            if body.get("response_format") is not None:
                together.wait(30)  # all are under way before the first is refused
            return super().__call__(body)

    with openai_server(server := Slow(REPAIR, (400, "json_schema is not supported"))) as address:
        lm = lm_at(address, "openai/local")
        with ThreadPoolExecutor(4) as threads:
            replies = [*threads.map(lambda _: ask(lm).repaired_answer, range(4))]
    assert (replies, sorted(server.flags)) == (["e"] * 4, [False] * 4 + [True] * 4)


@pytest.mark.parametrize("refusal", [(500, "out of memory"), (404, "no such model"), (400, "context is too long")])
def test_a_server_that_refuses_for_another_reason_is_not_asked_without(refusal: Any) -> None:
    with openai_server(server := Server(REPAIR, refusal)) as address:
        refuses(dspy.LMError, refusal[1], ask, lm_at(address, "openai/local"))
    assert server.flags == [True]


@pytest.mark.parametrize(("setting", "flag"), [("on", True), ("off", False)])
def test_who_sets_it_decides(setting: str, flag: bool) -> None:
    with openai_server(server := Server(REPAIR, REPAIR)) as address:
        lm = lm_at(address, "openai/local")
        lm.structured = setting
        ask(lm.copy(temperature=0.5))
    assert server.flags == [flag]


def test_a_provider_is_sent_no_schema_for_an_unlisted_model_and_no_limit_of_characters_which_it_would_refuse() -> None:
    lm = scripted_lm([REPAIR])
    lm.script.supports_response_schema, lm.script.supported_params = False, frozenset()
    ask(lm)
    assert lm.requests[0].config.response_format is None
    lm = scripted_lm([json.dumps(VERDICT)])
    lm.script.supports_response_schema, lm.script.supported_params = True, frozenset({"response_format"})
    ask(lm, JudgeCandidates, question="q", evidence=["e"], candidates=["c"])
    assert "maxItems" in (schema := json.dumps(lm.requests[0].config.response_format)) and "maxLength" not in schema


def test_only_a_reason_that_is_text_and_counts_of_lists_and_whole_numbers_have_limits() -> None:
    class Own(dspy.Signature):
        """Judge."""

        candidates: list[str] = dspy.InputField()
        own_rationale: str | None = dspy.OutputField()
        list_rationale: list[str] = dspy.OutputField()
        better: Literal["first", "second"] = dspy.OutputField()
        preferred: float = dspy.OutputField()

    reply = json.dumps({"own_rationale": None, "list_rationale": [], "better": "first", "preferred": 0.0})
    with openai_server(server := Server(None, reply)) as address:
        assert ask(lm_at(address, "openai/local"), Own, candidates=["a", "b"]).better == "first"
    assert not any(limit in json.dumps(server.formats) for limit in ("maxLength", "maxItems", "maximum"))


def test_the_schema_has_a_row_for_each_candidate_and_their_numbers_so_that_a_weak_model_cannot_go_astray() -> None:
    numbers, inputs = (2, 4, 2), {"question": "q", "evidence": ["e"]}
    with openai_server(server := Server(None, json.dumps(VERDICT))) as address:
        for number in numbers:
            ask(lm_at(address, "openai/local"), JudgeCandidates, **inputs, candidates=["c"] * number)
    for number, form in zip(numbers, server.formats, strict=True):
        reason, rows, preferred = (form["json_schema"]["schema"]["properties"][name] for name in VERDICT)
        assert (rows["minItems"], rows["maxItems"], reason["maxLength"]) == (number, number, 600)
        assert (preferred["minimum"], preferred["maximum"]) == (0, number - 1)


@pytest.mark.parametrize(("setting", "formats"), [("off", {False}), ("on", {True}), ("auto", {True})])
def test_a_command_may_send_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, formats: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pool = write_pool(tmp_path / "pool.jsonl", map(row, range(2)))
    with openai_server(server := Server(json.dumps(VERDICT), json.dumps(VERDICT))) as address:
        asking = ["--judge", "openai/m", "--api-base", address, "--set", f"structured={setting}", "--rules", "judge"]
        assert main(["evaluate", str(pool), "--out", str(tmp_path / "run"), "--quiet", *asking]) == 0
    assert set(server.flags) == formats


def test_whether_a_schema_is_sent_is_part_of_what_a_role_is() -> None:
    lms = {use: make_lm("openai/m", "http://127.0.0.1:9/v1", structured=use) for use in ("on", "off", "auto")}
    forms = {use: (describe_lm(lm) or {}).get("structured") for use, lm in lms.items()}
    assert forms == {"on": "on", "off": "off", "auto": None}
