"""A collected pool holds what a selector would be given in service, and is collected once, whatever interrupts it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eldgr_dspy import Sampled
from eldgr_dspy.errors import ArgumentError, EldgrError, PoolError, RunChangedError, RunStoppedError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.pools.devsets import DevQuestion
from eldgr_dspy.programs.pools.question_files import question_entry
from eldgr_dspy.programs.run.collecting import Collection, CollectionResult, collect
from eldgr_dspy.programs.testing import scripted_lm
from tests.case_tables import each_case
from tests.lm_server import Answer, serving
from tests.refusing import refusal, refuses

PASSAGES = [{"title": "Qatar", "text": "Its capital is Doha."}, {"title": "France", "text": "Its capital is Paris."}]
COLLECTING = ["--devset", f"{__name__}:DEVSET", "--out", "pool.jsonl"]
COMMAND_OF_RETURNING = ["collect", f"{__name__}:Returning", *COLLECTING]
DEVSET = [dspy.Example(question=f"Which, {n}?", answer="Doha", id=f"q{n}").with_inputs("question") for n in range(3)]
EMPTY: list[Any] = []
TEXTS = ["Which?"]
BARE = [dspy.Example(question="Which?")]
NOWHERE_ELSE = [dspy.Example(question="Which?", tag=object(), answer="Doha").with_inputs("question", "tag")]
IN_PAIRS = [dspy.Example(question="Which?", tag={(1, 2): 3}, answer="Doha").with_inputs("question", "tag")]


class Program(dspy.Module):  # retrieves, and answers
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.ChainOfThought("context, question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=PASSAGES, question=question)


class Returning(dspy.Module):
    """Returns or raises the next of `replies`, without an LM."""

    replies: tuple[Any, ...] = ()
    calls: list[str] = []  # noqa: RUF012 - shared by the copies that a collection calls

    def forward(self, question: str) -> Any:
        self.calls.append(question)
        reply = self.replies[(len(self.calls) - 1) % len(self.replies)]
        if isinstance(reply, Exception):
            raise reply
        return dspy.Prediction(**reply) if isinstance(reply, Mapping) else reply


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Returning, "calls", [])


@pytest.fixture
def returning(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *replies: monkeypatch.setattr(Returning, "replies", replies)


def gather(
    program: str = "Program", lm: Any = None, devset: str = f"{__name__}:DEVSET", **options: Any
) -> CollectionResult:
    inputs = {"out": "pool.jsonl", "n": 2, "workers": 1, **options}
    return collect(Collection(f"{__name__}:{program}", devset, **inputs), lm=lm)


def rows(path: str = "pool.jsonl") -> list[Row]:
    return list(open_pool(path).rows())


def answers() -> list[list[str | None]]:
    return [[one.answer for one in row.candidates] for row in rows()]


def answering(*replies: str, **options: Any) -> Any:
    reply = iter((replies or ("Doha",)) * 100)
    return scripted_lm(lambda request: _chat(reasoning="Because.", answer=next(reply)), **options)


def _chat(**fields: str) -> str:
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()), "[[ ## completed ## ]]"])


def write(*records: Any) -> str:
    Path("dev.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return "dev.jsonl"


def test_a_development_set_may_be_a_table() -> None:
    Path("dev.csv").write_text("id;question;gold;notes\n7;Which, then?;Doha;x\n;And?;nan;\n")
    assert gather(devset="dev.csv", lm=answering("Doha")).without_gold == 1
    assert [(one.question, one.gold) for one in rows()] == [("Which, then?", ["Doha"]), ("And?", [])]
    assert rows()[0].id == "7"
    Path("dev.csv").write_text("id,question,question\n7,Which?,What?\n")
    message = r"dev\.csv, row 1: the column 'question' occurs twice; rename one"
    refuses(PoolError, message, gather, devset="dev.csv", out="other.jsonl")


def test_a_row_has_answers_reasoning_passages_and_gold_answers() -> None:
    result = gather(lm=answering("Doha", "The answer is Paris."))
    assert (result.pool.n, result.unreadable, result.failures, result.bare) == (3, 0, 0, 0)
    samples = [("Doha", "Because.\nDoha", "sample 1"), ("Paris", "Because.\nThe answer is Paris.", "sample 2")]
    first = rows()[0]
    assert (first.id, first.question, first.gold) == ("q0", "Which, 0?", ["Doha"])
    assert [(one.answer, one.text, one.source) for one in first.candidates] == samples
    assert [passage.model_dump() for passage in first.evidence] == PASSAGES


_ANSWERS = st.sampled_from(["Doha", "Paris", "Lyon", "The answer is Doha.", "no", None, 7])
FIELDS = ("branch", "certified", "tie")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_ANSWERS, min_size=1, max_size=5))
def test_the_rule_decides_on_a_row_as_it_does_in_service(returning: Callable[..., None], answers: list[Any]) -> None:
    """The deployed program and the pool on which its rule was chosen are the same question."""
    returning(*({"answer": answer, "reasoning": "So.", "passages": PASSAGES} for answer in answers))
    Returning.calls.clear()
    gather("Returning", n=len(answers), limit=1, fresh=True)
    (row,) = rows()
    Returning.calls.clear()
    select = heuristic_selector()
    online = Sampled(Returning(), n=len(answers), select=select, num_threads=1)(question=row.question)
    candidates = [{"reasoning": one.text, "answer": one.answer} for one in row.candidates]
    evidence = [passage.model_dump() for passage in row.evidence]
    offline = select(question=row.question, candidates=candidates, evidence=evidence)
    assert str(offline.answer) == str(online.answer)  # which is typed as the program has it
    assert [offline[name] for name in FIELDS] == [online[name] for name in FIELDS]


class Hops(Program):  # asks twice, of other passages each time; the second hop is also told what an LM wrote
    def forward(self, question: str) -> Any:
        first = self.respond(context=PASSAGES[:1], question=question)
        return self.respond(context=[first.reasoning, *PASSAGES], question=question)


class Shows(Program):
    def forward(self, question: str) -> Any:
        return dspy.Prediction(answer="x", found=["Doha lies in Qatar."], context=["ignored"])


class Writes(dspy.Module):  # an LM writes the context
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("question -> context, answer")

    def forward(self, question: str) -> Any:
        return self.respond(question=question)


class Adds(dspy.Module):  # to the passages that it is given
    def forward(self, question: str, context: list[str]) -> Any:
        context.append("Doha, I say.")
        return dspy.Prediction(answer="Doha")


@each_case("run", "retrieved passages")
def test_passages_are_those_that_the_program_retrieved(program: str, field: str | None, texts: list[str]) -> None:
    gather(program, lm=answering(), passages=field)
    assert [[passage.text for passage in row.evidence] for row in rows()] == [texts] * 3


def test_what_an_lm_wrote_is_not_evidence() -> None:
    lm = scripted_lm(lambda request: _chat(context="Doha, I say.", answer="Doha"))
    assert gather("Writes", lm=lm).bare == 3
    gather("Adds", devset=write({"question": "Which?", "context": ["Qatar."], "answer": "Doha"}), out="adds.jsonl")
    assert [passage.text for passage in rows("adds.jsonl")[0].evidence] == ["Qatar."]
    message = r"^passages='context' must be a field that Writes retrieves: .* Name it "
    refuses(ArgumentError, message, gather, "Writes", lm=lm, passages="context", out="other.jsonl")


def test_samples_are_distinct_under_the_cache_of_dspy() -> None:
    gather(lm=answering("Doha", "Paris", "Lyon", cache=True, temperature=1.0), n=3, limit=1)
    assert answers() == [["Doha", "Paris", "Lyon"]]


def test_columns_are_kept_if_asked_for_and_those_of_another_kind_counted(returning: Callable[..., None]) -> None:
    """What is wrong with a column costs no sample; a program that has such fields by chance works as before."""
    chat = {"content": [{"token": "D", "logprob": -0.5}]}
    returning(
        {"answer": "Doha", "confidence": 0.9, "logprobs": chat, "tags": None},
        {"answer": "Paris", "confidence": "high", "scores": {"prm": 1}},
        {"answer": "Lyon", "confidence": 90, "tags": "cot"},
    )
    three = partial(gather, "Returning", n=3, limit=1)
    result = three(columns=True)
    assert (result.failures, result.unusable) == (0, 2)
    assert result.fault.startswith("confidence must be a number from 0 to 1; got 'high'. Divide a percentage by 100")
    assert [one.model_dump(exclude={"text", "source"}) for one in rows()[0].candidates] == [
        {"answer": "Doha", "confidence": 0.9, "logprobs": {"tokens": [-0.5]}},
        {"answer": "Paris", "scores": {"prm": 1.0}},
        {"answer": "Lyon"},
    ]
    assert result.pool.sha256 == three(columns=True).pool.sha256  # from the journal
    refuses(RunChangedError, "columns", three)
    without = three(out="bare.jsonl")
    assert (without.unusable, without.fault) == (0, "")
    assert [one.model_dump().keys() for one in rows("bare.jsonl")[0].candidates] == [{"text", "answer", "source"}] * 3


def test_a_reply_that_cannot_be_read_is_a_candidate_without_an_answer() -> None:
    replies = iter([_chat(reasoning="", answer="Doha"), "no fields", "no fields"] * 3)
    result = gather(lm=scripted_lm(lambda request: next(replies)))
    assert (result.unreadable, result.failures) == (3, 0)
    assert answers() == [["Doha", None]] * 3
    gather(lm=scripted_lm([]))  # and is not asked for again


class AsyncOnly(dspy.Module):
    async def aforward(self, question: str) -> Any:
        await asyncio.sleep(0)
        return dspy.Prediction(answer="Doha")


def make() -> dspy.Module:
    return Returning()


INSTANCE = Returning()


@pytest.mark.parametrize("program", ["Returning", "make", "INSTANCE", "AsyncOnly"])
def test_a_program_is_a_module_sync_or_async_or_what_makes_one(program: str, returning: Callable[..., None]) -> None:
    returning({"answer": "Doha"})
    gather(program)
    assert answers()[0][0] == "Doha"


def test_the_same_call_asks_nothing_and_more_samples_or_questions_add_what_is_missing() -> None:
    gather(lm=answering("Doha"), limit=2)
    before = Path("pool.jsonl").read_bytes()
    gather(lm=scripted_lm([]), limit=2)
    assert Path("pool.jsonl").read_bytes() == before
    gather(lm=(more := answering("Paris")), n=3)
    assert (answers(), len(more.requests)) == ([*[["Doha", "Doha", "Paris"]] * 2, ["Paris"] * 3], 5)


def test_the_command_stops_before_max_cost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    arguments = ["collect", f"{__name__}:Program", *COLLECTING, "--n", "2"]

    def costs() -> list[float]:
        return [one.cost or 0.0 for one in read_journal(Path("pool.collected/journal.jsonl"))]

    with serving(lambda request: Answer(_chat(reasoning="Because.", answer="Doha"))) as server:
        arguments += ["--workers", "1", "--lm", "openai/gpt-4o-mini", "--api-base", server.address]
        assert main([*arguments, "--max-calls", "1"]) == 3
        (price,) = costs()
        capsys.readouterr()
        for _ in range(2):
            assert main([*arguments, "--max-cost", f"{3.5 * price:.9f}"]) == 3
            assert "was spent and the dearest request took $0.0" in capsys.readouterr().err
            assert (len(server.log), len(costs()), Path("pool.jsonl").exists()) == (3, 3, False)
            assert 0 < sum(costs()) <= 3.5 * price
        assert main([*arguments, "--max-cost", f"{8 * price:.9f}"]) == 0
        assert len(server.log) == 6
    assert answers() == [["Doha", "Doha"]] * 3


class Careful(Program):  # has an answer for every failure
    def forward(self, question: str) -> Any:
        try:
            return super().forward(question)
        except Exception:  # noqa: BLE001
            return dspy.Prediction(answer="I do not know")


@pytest.mark.parametrize("program", ["Program", "Careful"])
def test_a_limit_stops_with_every_paid_sample_kept_and_no_answer_in_place_of_one(program: str) -> None:
    lm = answering("Doha")
    message = r"^4 requests were sent, and --max-calls allows 4; give a higher limit"
    refuses(RunStoppedError, message, gather, program, lm=lm, max_calls=4)
    assert not Path("pool.jsonl").exists()
    gather(program, lm=lm, max_calls=6)
    assert (len(lm.requests), answers()) == (6, [["Doha"] * 2] * 3)


SLOW = """
import dspy, os, time

class Slow(dspy.Module):
    def forward(self, question):
        with open("calls", "a") as calls:
            calls.write(question + "\\n")
        time.sleep(0.03)
        return dspy.Prediction(answer=question[::-1], passages=[question])
"""
COMMAND = "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"


def test_a_killed_collection_resumes_with_the_same_command_and_asks_for_nothing_twice() -> None:
    Path("slow_program.py").write_text(SLOW)
    write(*({"question": f"Which is it, {n}?", "gold": "x"} for n in range(20)))
    arguments = ["collect", "slow_program:Slow", "--devset", "dev.jsonl", "--n", "3", "--workers", "4", "--out"]
    kills, calls = 0, Path("calls")
    while not Path("killed.jsonl").exists():
        enough = 15 * (kills + 1) if kills < 2 else 10**6
        with subprocess.Popen([sys.executable, "-c", COMMAND, *arguments, "killed.jsonl"]) as process:
            while process.poll() is None and len(calls.read_text().splitlines() if calls.exists() else ()) < enough:
                time.sleep(0.01)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            assert process.wait() in (0, -signal.SIGKILL)
    assert kills == 2
    counts = Counter(calls.read_text().splitlines())
    assert 60 <= counts.total() <= 60 + 4 * kills  # those that were under way at a kill
    assert main([*arguments, "whole.jsonl"]) == 0
    assert Path("killed.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert not list(Path().glob(".*.tmp"))


def test_a_sample_of_five_that_raises_stops_the_collection_or_has_no_answer(returning: Callable[..., None]) -> None:
    """A question counts once, however many of its samples fail."""
    returning(*[{"answer": "Doha"}] * 2, ValueError("boom"), *[{"answer": "Doha"}] * 2)
    message = r"^1 question failed, more than the 0 that --max-failures allows; the last: ValueError: boom\. It was "
    refuses(RunStoppedError, message + r"sample 3 of the question 'q0'\.$", gather, "Returning", n=5)
    returning(ValueError("boom"), *[{"answer": "Doha"}] * 4)
    Returning.calls.clear()
    result = gather("Returning", n=5, max_failures=1, limit=1)
    assert (result.failures, answers()) == (1, [["Doha", "Doha", None, "Doha", "Doha"]])
    returning({"answer": "Paris"})
    assert gather("Returning", n=5, limit=1).failures == 0  # asked for again
    assert answers() == [["Doha", "Doha", "Paris", "Doha", "Doha"]]
    returning(ConnectionError("away"))
    Returning.calls.clear()
    message = r"^2 questions failed, more than the 1 that --max-failures allows"
    refuses(RunStoppedError, message, gather, "Returning", n=3, max_failures=1, out="away.jsonl")
    assert len(Returning.calls) == 4


@each_case("run", "unfit programs")
def test_an_unfit_program_is_refused_at_once(returning: Callable[..., None], reply: Any, message: str) -> None:
    returning(reply)
    assert (refusal(lambda: gather("Returning")), len(Returning.calls)) == (message, 1)


def test_one_sample_that_does_not_fit_is_a_failure_once_others_do(returning: Callable[..., None]) -> None:
    returning({"answer": "Doha"}, None)
    assert gather("Returning", max_failures="100%").failures == 3
    returning({"answer": "Doha"}, {"answer": "x" * 500_001})
    assert gather("Returning", max_failures=3, out="long.jsonl").failures == 3


def test_another_field_may_hold_the_answer_and_further_inputs_come_from_the_row(returning: Callable[..., None]) -> None:
    returning({"response": "Doha"})
    devset = write({"question": "Which?", "response": "Doha", "answer": "long"})
    gather("Returning", devset=devset, answer_field="response")
    assert (rows()[0].gold, answers()) == (["Doha"], [["Doha", "Doha"]])
    devset = write({"question": "Which?", "answer": "Doha", "context": ["Paris"]})
    gather("TakesMore", devset=devset, out="further.jsonl")
    (row,) = rows("further.jsonl")
    assert (row.candidates[0].answer, row.evidence[0].text) == ("Paris", "Paris")


class TakesMore(dspy.Module):
    def forward(self, question: str, context: list[str], k: int = 3) -> Any:
        return dspy.Prediction(answer=context[0])


class Needy(dspy.Module):
    def __init__(self, size: int) -> None:
        super().__init__()


@each_case("run", "bad collections")
def test_bad_input_is_refused_before_anything_is_asked_or_made(options: dict[str, Any], message: str) -> None:
    inputs = dict(options)
    if "rows" in inputs:
        file = Path(write(*inputs.pop("rows")))
        inputs["devset"] = str(file.rename(inputs.get("devset", file)))
    elif inputs.get("devset", "").startswith(":"):
        inputs["devset"] = __name__ + inputs["devset"]
    before = set(Path().iterdir())
    refuses(EldgrError, message, gather, **inputs)
    assert set(Path().iterdir()) == before


@each_case("run", "changed collections", answering=answering)
def test_a_pool_of_another_program_is_refused_with_the_difference(changes: dict[str, Any], line: str) -> None:
    gather(lm=answering())
    message = refusal(lambda: gather(**{"lm": answering(), **changes}), RunChangedError)
    assert f"\n  {line.replace('MODULE', __name__)}\n" in message
    assert message.startswith("pool.collected: this run was started with ")
    gather(**{"lm": answering(), **changes, "fresh": True})
    assert Path("pool.collected/journal.jsonl.1").exists()


def test_a_set_among_the_inputs_is_the_same_input_in_any_order() -> None:
    orders = [{8, 0}, {0, 8}]  # as another process may have it
    hashes = {DevQuestion(question_entry({"question": "Which?"}, "f"), {"tags": order}).hash for order in orders}
    assert (repr(orders), len(hashes)) == ("[{8, 0}, {0, 8}]", 1)


def test_a_pool_that_was_not_collected_or_with_other_inputs_under_an_id_is_refused(returning: Any) -> None:
    Path("pool.jsonl").write_text("mine")
    message = r"^pool\.jsonl exists and was not collected: pool\.collected is not next to"
    refuses(ArgumentError, message, gather, lm=answering())
    assert Path("pool.jsonl").read_text() == "mine"
    Path("pool.jsonl").unlink()
    returning({"answer": "Doha"})
    gather("Returning", devset=write({"question": "Which?", "answer": "Doha", "id": "one"}))
    message = r"^dev\.jsonl, line 1: the question 'one' was collected with other inputs"
    refuses(RunChangedError, message, gather, "Returning", devset=write({"question": "Where?", "id": "one"}))


def test_the_command_tells_of_a_collection(returning: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    returning({"answer": "Doha"}, None)
    devset = write(*({"id": f"q{n}", "question": f"Which, {n}?", "awnser": "Doha"} for n in range(3)))
    command = [*COMMAND_OF_RETURNING, "--devset", devset, "--n", "2", "--workers", "1"]
    assert main(command) == 3
    assert capsys.readouterr().err == (
        "Stopped: 1 question failed, more than the 0 that --max-failures allows; the last: UnfitProgramError: Returning"
        " must return a dspy.Prediction with 'answer'; got None. It was sample 2 of the question 'q0'.\n"
        "The replies so far are in the journal; run the same command to resume.\n"
    )
    assert main([*command, "--max-failures", "100%"]) == 0
    assert capsys.readouterr().err.splitlines()[-4:] == [
        "Samples without an answer, because they failed: 2. The same command asks for them again.",
        "Questions without passages: 3 of 3. Name their field with --passages.",
        "Questions without a gold answer: 3 of 3. Name its field gold.",
        "Written to pool.jsonl: 3 questions, 2 samples each.",
    ]
    for words in (["pool", "check", "pool.jsonl"], ["bound", "pool.jsonl"], ["evaluate", "pool.jsonl", "--quiet"]):
        assert main(words) == 0
    returning({"answer": "Doha", "confidence": 90})
    capsys.readouterr()
    assert main([*command, "--columns", "--fresh"]) == 0
    message = "a column that is left out: 6. The first: confidence must be a number from 0 to 1; got 90."
    assert f"Samples with {message}" in " ".join(capsys.readouterr().err.split())
