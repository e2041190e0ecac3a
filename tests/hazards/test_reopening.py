"""Whatever a role or a server returns, the directory of the run opens again, or all that was asked would be lost."""

import collections
import json
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import dspy
import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.ollama import ollama
from eldgr_dspy.programs.requests.metering import entry_of
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, text_of
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import NO_SPAN, drop_times, row, selector_with, write_pool
from tests.hazards.bad_pools import nest
from tests.lm_server import Answer, LMServer, Request, obliging, serving
from tests.ollama_server import Reply, ollama_server

pytestmark = [
    pytest.mark.slow,  # whole runs on whatever a role may return
    pytest.mark.usefixtures("collect"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RULES = ("majority", "judge", "eldgr")
COUNTS = (10**30, 2 * 10**15, 10**15 + 1, -1, 10**400, 1e300, 0.5, True, "12", None, [3], {"a": 1})
VALUES = ("9" * 5_000, "Infinity", "-Infinity", "NaN", "1e999", "[" * 100_000, "[" * 500 + "]" * 500, '"\\ud800"')
numbers = st.floats() | st.integers() | st.integers(min_value=10**900, max_value=10**1_100)
keys = st.text() | st.integers() | st.floats() | st.none() | st.tuples(st.integers(), st.text())


def number_in(text: str) -> int:
    return int(re.findall(r"\d+", text)[0])


def run_twice(selector: Selector, folder: Path, rows: int = 2) -> list[Consultation]:
    """Run, read with every command, and resume from the journal alone; return what the journal holds."""
    out = folder / "run"
    plan = Plan([write_pool(folder / "p.jsonl", map(row, range(rows)))], out, RULES, max_failures="100%")
    first = evaluate(selector, plan)
    journal = (out / "journal.jsonl").read_bytes()
    for command, *options in (
        ["report"],
        ["report", "--out", f"{folder}/r.html"],
        ["export", "--out", f"{folder}/d.csv"],
    ):
        assert main([command, str(out), *options]) == 0
    for name in ("decisions.jsonl", "summary.json", "record.json", "report.html"):
        (out / name).unlink()
    second = evaluate(selector, plan)
    if b'"failed"' not in journal:
        assert drop_times(second) == drop_times(first)
        assert (out / "journal.jsonl").read_bytes() == journal, "a consultation was asked for again"
    return list(read_journal(out / "journal.jsonl"))


def asking(server: LMServer, key: str = "k") -> Selector:
    selector = Selector()
    selector.set_lm(dspy.LM("openai/loopback", api_base=server.address, api_key=key, cache=False, num_retries=0))
    return selector


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "total_tokens"])
def test_a_count_that_cannot_be_true_is_unknown_and_the_run_stays_readable(name: str, tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        usage[name] = COUNTS[number_in(request.question)]  # type: ignore[assignment]  # what no server should send
        return Answer(obliging(request).text, changes={"usage": usage})

    with serving(answer) as server:
        entries = run_twice(asking(server), tmp_path, len(COUNTS))
    assert {number_in(one.id) for one in entries if one.calls} == set(range(len(COUNTS)))
    for count in (one for result in entries for one in (result.prompt_tokens, result.completion_tokens)):
        assert count is None or 0 <= count <= 10**15


def test_a_remark_says_which_counts_were_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: Request) -> Answer:
        usage = {"prompt_tokens": 10**30, "completion_tokens": 2 * 10**15, "total_tokens": 12}
        return Answer(obliging(request).text, changes={"usage": usage})

    with serving(answer) as server:
        entries = run_twice(asking(server), tmp_path)
    assert {one.implausible for one in entries if one.calls} == {
        "prompt_tokens over 10^15, completion_tokens over 10^15, cost over 10^15"
    }
    assert "reported counts that cannot be true" in " ".join(capsys.readouterr().out.split())
    assert "reported counts that cannot be true" in json.dumps(json.loads((tmp_path / "run/summary.json").read_text()))


@pytest.mark.parametrize(
    ("count", "message"), [(-5, "below 0"), (2.5, "2.5"), (math.nan, "nan"), (math.inf, "over 10^15"), (True, "True")]
)
def test_a_count_that_is_none_is_unknown_with_a_remark(count: Any, message: str) -> None:
    entry = entry_of({"usage": {"prompt_tokens": 10, "completion_tokens": count}, "cost": 0.1})
    assert (entry.prompt_tokens, entry.completion_tokens, entry.cost) == (10, None, 0.1)
    assert entry.implausible == f"completion_tokens {message}"


@pytest.mark.parametrize("count", [10**30, 2 * 10**15, -1], ids=str)
def test_the_counts_of_an_ollama_server_are_held_to_the_same(count: int, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return Reply(json.dumps({"judge_rationale": "s", "assessments": [], "preferred": 2}), read=count, output=count)

    with ollama_server(answer) as server:
        selector = Selector()
        selector.set_lm(ollama("deepseek-r1:7b", host=server.address))
        for one in run_twice(selector, tmp_path):
            assert one.prompt_tokens is None
            assert one.completion_tokens is None


@pytest.mark.parametrize("name", ["preferred", "judge_rationale", "assessments", "confidence"])
def test_a_reply_with_such_a_value_is_not_lost_either(name: str, tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        value = VALUES[number_in(request.question)]
        fields = {"judge_rationale": '"seen"', "assessments": "[]", "preferred": "2", name: value}
        return Answer("{" + ", ".join(f'"{field}": {text}' for field, text in fields.items()) + "}")

    with serving(answer) as server:
        entries = run_twice(asking(server), tmp_path, len(VALUES))
    assert sum(one.role == "judge" for one in entries) == len(VALUES)
    assert all(one.outcome != "failed" for one in entries)


@pytest.mark.parametrize("model", ["m\ud800", "\udc00" * 9, "m" * 10**6], ids=["half", "halves", "long"])
def test_the_name_of_a_model_bricks_no_run(model: str, tmp_path: Path) -> None:
    with serving(lambda request: Answer(obliging(request).text, changes={"model": model})) as server:
        entries = run_twice(asking(server), tmp_path)
    assert all(len(one.served or "") <= 1_000 for one in entries)
    assert max(file.stat().st_size for file in (tmp_path / "run").iterdir()) < 10**6


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.ChatAdapter(), None], ids=["JSON", "chat", "strict"])
def test_halves_of_a_character_in_a_reply_brick_no_run(adapter: Any, tmp_path: Path) -> None:
    spans = ("a\ud800b", "\ud83d\ude00", "Lyon \udfff")

    def reply(request: Any) -> Any:
        if role_of(request) == "judge":
            return {"judge_rationale": spans[0], "assessments": [], "preferred": 2}
        return {"repaired_answer": spans[number_in(text_of(request)[text_of(request).index("number") :]) % 3]} | {
            "repair_passage": 0
        }

    selector, _ = selector_with(reply)
    with dspy.context(adapter=adapter):
        entries = run_twice(selector, tmp_path, 6)
    assert len(entries) >= 6 and all(one.outcome != "failed" for one in entries)
    assert all(str(one.content).isprintable() for one in entries), "half a character is replaced, or the role abstains"


@pytest.mark.parametrize("key", ["abstained", "repairer", "consultation", "fingerprint", "prompt_tokens", "preferred"])
def test_a_key_that_is_a_word_of_the_journal_bricks_no_run(key: str, tmp_path: Path) -> None:
    with serving(lambda request: Answer(f"{obliging(request).text}")) as server:
        entries = run_twice(asking(server, key), tmp_path, 4)
    assert entries and all(one.outcome != "failed" for one in entries)


def test_a_question_whose_id_holds_the_key_is_asked_once(tmp_path: Path) -> None:
    key = "zK8-4417-vQp0-77"
    pool = write_pool(tmp_path / "p.jsonl", [row(number, id=f"{key}-{number}") for number in range(3)])
    with serving() as server:
        selector = asking(server, key)
        for _ in range(2):
            evaluate(selector, Plan([pool], tmp_path / "run", RULES, max_failures="100%"))
        assert len(server.log) == sum(one.calls for one in read_journal(tmp_path / "run" / "journal.jsonl"))
        assert len(server.log) <= 6
        assert {one.id for one in read_journal(tmp_path / "run" / "journal.jsonl")} == {f"{key}-{n}" for n in range(3)}


class Returning(dspy.Module):  # a judge that returns on each question what was made for it, in a field of its reply
    def __init__(self, contents: Sequence[Any], name: str = "judge_rationale") -> None:
        super().__init__()
        self.value_of: Callable[[int], Any] = lambda number: contents[number]
        self.name = name

    def forward(self, question: str, **_: Any) -> dspy.Prediction:
        value = self.value_of(number_in(question))
        return dspy.Prediction(**{"judge_rationale": "seen", "assessments": [], "preferred": 2, self.name: value})


def with_judge(judge: dspy.Module) -> Selector:
    selector, _ = selector_with(lambda _: NO_SPAN)
    selector.judge = judge
    return selector


@pytest.mark.parametrize("value", [math.inf, math.nan, -math.inf], ids=repr)
def test_a_number_that_json_has_no_word_for_is_written_as_text(value: float, tmp_path: Path) -> None:
    judge: Any = Returning(["seen"] * 2)
    judge.limits = {"seconds": [value]}
    run_twice(with_judge(judge), tmp_path)
    heads = map(json.loads, (tmp_path / "run/journal.jsonl").read_text(encoding="utf-8").splitlines())
    entry = next(head["details"] for head in heads if (head["kind"], head.get("name")) == ("role", "judge"))
    assert entry["attributes"]["self"]["limits"] == {"seconds": [str(value)]}


def holding_itself() -> list[Any]:
    results: list[Any] = []
    results.append(results)
    return results


def mapping_itself() -> dict[str, Any]:
    result: dict[str, Any] = {}
    result["again"] = result
    return result


class Node(BaseModel):
    inner: "Node | None" = None
    number: float = 0.0


def model_of_itself() -> Node:
    node = Node()
    node.inner = node
    return node


class Anything(BaseModel):
    content: Any = None


class Raising(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("nothing here")


class Lying(int):
    def bit_length(self) -> int:
        return 1


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("I have no words")


@dataclass
class Holder:
    deque: Any = field(default_factory=lambda: collections.deque([nest(100_000)]))


HOSTILE: dict[str, Callable[[], Any]] = {
    "infinity": lambda: math.inf,
    "minus infinity within": lambda: {"scores": [0.5, -math.inf]},
    "NaN": lambda: math.nan,
    "5,000 digits": lambda: 10**5_000,
    "a key of 5,000 digits": lambda: {10**5_000: 1},
    "a list that holds itself": holding_itself,
    "a mapping that holds itself": mapping_itself,
    "100,000 deep": lambda: nest(100_000),
    "a model that holds itself": model_of_itself,
    "a model with infinity": lambda: Node(number=math.inf),
    "NaN in a model's field of any type": lambda: Anything(content=math.nan),
    "NaN of NumPy": lambda: numpy.float32("nan"),
    "an infinite decimal": lambda: Decimal("-Infinity"),
    "a mapping that raises": Raising,
    "a number that lies of its length": lambda: Lying(10**5_000),
    "what cannot be printed": Unprintable,
    "a key that cannot be printed": lambda: {Unprintable(): 1},
    "an object that holds what is too deep": Holder,
}


@pytest.mark.parametrize("name", ["judge_rationale", "preferred", "assessments", "confidence"])
def test_what_cannot_be_written_is_an_abstention_first_and_on_resume(name: str, tmp_path: Path) -> None:
    results = [make() for make in HOSTILE.values()]
    entries = run_twice(with_judge(Returning(results, name)), tmp_path, len(results))
    verdicts = {one.id: one for one in entries if one.role == "judge"}
    assert len(verdicts) == len(results)
    for one, hostile in zip(verdicts.values(), HOSTILE, strict=True):
        assert one.outcome == "abstained", hostile
        assert (one.reason or "").startswith(f"unreadable: {name} holds "), hostile
        assert len(one.reason or "") < 200, hostile


@pytest.mark.parametrize("value", ["a\ud800b", "\ud83d\ude00"], ids=["half", "pair"])
def test_a_reason_with_halves_of_a_character_bricks_no_run(value: str, tmp_path: Path) -> None:
    entries = run_twice(with_judge(Returning([value] * 2, "abstained")), tmp_path)
    assert {one.reason for one in entries if one.role == "judge"} == {{"a\ud800b": "a\ufffdb"}.get(value, "😀")}


@pytest.mark.parametrize("hostile", HOSTILE, ids=str)
def test_a_program_gets_the_same_abstention(hostile: str) -> None:
    select = with_judge(Returning([HOSTILE[hostile]()]))
    result = select(question="Number 0?", candidates=["Nice", "Nice", "Paris"], evidence=["Paris is the capital."])
    assert result.answer == "Nice"
    assert any("unreadable: judge_rationale holds " in one for one in result.abstentions.values())


leaves = (
    st.none()
    | st.booleans()
    | numbers
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.sampled_from(["\ud800", "\x00", "\u2028", holding_itself(), mapping_itself(), model_of_itself(), object])
)
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=8)


@settings(max_examples=8)
@given(st.lists(values, min_size=1, max_size=30), st.sampled_from(["judge_rationale", "preferred", "extra"]))
@example([{(1, "a"): 2}, "\ud800", {"a": {None: [1e300]}}], "judge_rationale")
def test_whatever_a_role_returns_the_run_opens_again(results: list[Any], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = run_twice(with_judge(Returning(results, name)), Path(folder), len(results))
        assert sum(one.role == "judge" for one in entries) == len(results)
