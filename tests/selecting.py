"""What the tests of the selector share: questions, replies, an LM that gives them, and every way to call."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import dspy
import pytest
from dspy.utils import BaseCallback
from dspy.utils.callback import ACTIVE_CALL_ID
from hypothesis import strategies as st

from eldgr_dspy.certificates import certify
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import Policy
from tests.public_strategies import json_values, raw_contents

ASPECTS = ("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar")
SCORES = dict.fromkeys(ASPECTS, 0.5)
DERIVATION = {
    "derivation_steps": [{"expression": "3 * 12", "value": "36"}],
    "derived_answer": "36",
    "consistency_check": "36 / 12 = 3",
}
SILENT = {"repair_passage": -1, "repaired_answer": ""}
ABSTAINS = {"abstained": "?"}

# Consensus (Dubai) is uncertified and Doha is certified, so that judge and repairer both matter.
CONTESTED: dict[str, Any] = {
    "question": "What is the capital of the country that lies on the Qatar peninsula?",
    "candidates": ["Dubai", "Dubai", "Doha"],
    "evidence": ["Doha is the capital of Qatar.", "Qatar lies on the Persian Gulf."],
}
SETTLED: dict[str, Any] = {**CONTESTED, "candidates": ["Doha", "Doha", "Dubai"]}
PENS: dict[str, Any] = {
    "question": "Tom has 3 boxes of 12 pens. How many pens has he?",
    "candidates": ["35", "35", "36"],
    "answer": "number",
}


def verdict(preferred: Any, n: int = 3) -> dict[str, Any]:
    return {"judge_rationale": "Passage 0.", "assessments": [SCORES] * n, "preferred": preferred}


def repair(span: str, passage: int = 0) -> dict[str, Any]:
    return {"repair_passage": passage, "repaired_answer": span}


def in_style(request: Any, index: int, scalar: float, n: int = 0, span: str = "") -> dict[str, Any]:
    """A reply in whatever way a role is asked: this candidate, this score or this span; n candidates have scores."""
    properties = request.config.response_format["schema"]["properties"]
    if "better" in properties:
        return {"comparison_rationale": "", "better": index % 2}
    if "assessment" in properties:
        return {"candidate_rationale": "", "assessment": [5] * 7 + [round(10 * scalar)]}
    replies: dict[str, dict[str, Any]] = {
        "sound": {"slice_rationale": "", "sound": scalar >= 0.5},
        "checks": {"checks": ["It is a city."]},
        "passed": {"check_rationale": "", "passed": [scalar >= 0.5], "consistent": True},
    }
    if fitting := [reply for name, reply in replies.items() if name in properties]:
        return fitting[0]
    return verdict(index, n) if "preferred" in properties else repair(span, -1)


# What is consulted of whom, on which inputs: a branch each.
SAID: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "judge": (CONTESTED, {"judge": verdict(2)}),
    "repair": (CONTESTED, {"judge": verdict(0), "repairer": repair("Persian Gulf", 1)}),
    "consensus": (CONTESTED, {"judge": "no verdict", "repairer": repair("Manama")}),
    "nobody": (SETTLED, {}),
    "derivation": (PENS, {}),
}


def saying(judge: Any = "?", repairer: Any = SILENT, deriver: Any = DERIVATION, **options: Any) -> ScriptedLM:
    """An LM that gives each role its reply; a reply that is not a mapping is sent as it is."""
    replies: dict[Any, Any] = {"judge": judge, "repairer": repairer, "deriver": deriver}
    return scripted_lm(lambda request: replies[role_of(request)], **options)


def selected(lm: ScriptedLM, *, adapter: Any = None, inputs: Mapping[str, Any] = CONTESTED, **options: Any) -> Any:
    with dspy.context(lm=lm, adapter=adapter):
        return Selector(**options)(**inputs)


def asked(lm: ScriptedLM) -> list[Any]:
    return [role_of(request) for request in lm.requests]


def select_sync(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return select(**inputs)


def awaiting(call: Callable[..., Any]) -> Callable[..., Any]:
    async def awaited(**inputs: Any) -> Any:
        return await call(**inputs)

    return lambda **inputs: asyncio.run(awaited(**inputs))


def select_acall(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return awaiting(select.acall)(**inputs)


def select_asyncify(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return awaiting(dspy.asyncify(select))(**inputs)


def example_of(inputs: Mapping[str, Any], **labels: Any) -> dspy.Example:
    return dspy.Example(**inputs, **labels).with_inputs(*inputs)


def select_batch(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return select.batch([example_of(inputs)], num_threads=2, disable_progress_bar=True)[0]


def select_parallel(select: Selector, inputs: Mapping[str, Any]) -> Any:
    parallel: Any = dspy.Parallel(num_threads=2, disable_progress_bar=True)
    return parallel([(select, example_of(inputs).inputs())])[0]


def evaluating(metric: Callable[..., Any], devset: list[dspy.Example], **options: Any) -> dspy.Evaluate:
    return dspy.Evaluate(devset=devset, metric=metric, num_threads=2, display_progress=False, **options)


def select_evaluate(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return evaluating(lambda *_: 1.0, [example_of(inputs)])(select).results[0][1]


async def streamed(stream: Any, inputs: Mapping[str, Any]) -> list[Any]:
    return [piece async for piece in stream(**inputs)]


def select_streamify(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return asyncio.run(streamed(dspy.streamify(select), inputs))[-1]


def select_streamify_async(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return asyncio.run(streamed(dspy.streamify(select, is_async_program=True), inputs))[-1]


WAYS = [
    select_sync,
    select_acall,
    select_asyncify,
    select_batch,
    select_parallel,
    select_evaluate,
    select_streamify,
    select_streamify_async,
]
each_way = pytest.mark.parametrize("call", WAYS)
each_call = pytest.mark.parametrize("call", [select_sync, select_acall])


class Announce(dspy.streaming.StatusMessageProvider):
    """Tells in a stream which module is called."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str:
        return type(instance).__name__


class Spans(BaseCallback):
    """Keeps which module called which, by the names of their classes."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.parents: dict[str, str | None] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.names[call_id], self.parents[call_id] = type(instance).__name__, ACTIVE_CALL_ID.get()

    def below(self, parent: str | None = None) -> list[Any]:
        """The spans below one, each with those below itself."""
        return [[self.names[one], *self.below(one)] for one, above in self.parents.items() if above == parent]


class Returns(dspy.Module):
    """A role that returns what it is given, or raises it."""

    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.outcome = outcome

    def forward(self, **_: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def aforward(self, **_: Any) -> Any:
        return self.forward()


def selector_of(judge: Any = SILENT, repairer: Any = SILENT, deriver: Any = SILENT, **options: Any) -> Selector:
    """A selector whose roles are these modules, or return these fields: the way around every adapter."""
    select = Selector(**options)
    roles = (one if isinstance(one, dspy.Module) else Returns(one) for one in (judge, repairer, deriver))
    select.judge, select.repairer, select.deriver = roles
    return select


def with_judge(judge: dspy.Module, **options: Any) -> Selector:
    select = Selector(**options)
    select.judge = judge
    return select


def right(example: Any, pred: Any, trace: Any = None) -> bool:
    return bool(pred.answer == example.gold)


class Program(dspy.Module):
    """A program that holds a selector, as a user has one."""

    def __init__(self) -> None:
        super().__init__()
        self.select = Selector(consult="always")

    def forward(self, **inputs: Any) -> Any:
        return self.select(**inputs)


def compiled_program() -> Program:
    """A program whose selector was taught two questions."""
    trainset = [example_of({**CONTESTED, "question": f"{number}. Which city?"}, gold="Doha") for number in range(3)]
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=2, max_labeled_demos=2)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        program: Program = optimizer.compile(Program(), trainset=trainset)
    return program


def shipped_lawfully(pred: Any, question: Question, chosen: Settings) -> None:
    """What holds of every decision, checked apart from the code that made it."""
    fields = pred.toDict()
    assert json.loads(json.dumps(fields)) == fields
    if pred.branch == "consensus":
        assert pred.answer == pred.consensus
    elif question.task == "retrieval":
        policy = cast(Policy, chosen.certificate)
        result = certify(pred.answer, question.passages, policy, question.text)
        assert result.certified is pred.certified is True
        assert certify(pred.consensus, question.passages, policy, question.text).certified is False
        assert (pred.preference if pred.branch == "judge" else pred.repair) is not None
    else:
        assert (pred.branch, pred.certified, pred.answer) == ("repair", True, pred.repair)
        assert "judge" not in pred.consulted


def inputs_of(question: Question) -> dict[str, Any]:
    """A question as a user gives it; an answer that is one already stays as it is."""
    candidates = [{"answer": answer} for answer in question.answers]
    evidence = [{"title": passage.title, "text": passage.text} for passage in question.passages]
    return {"question": question.text, "candidates": candidates, "evidence": evidence, "answer": question.type.name}


nearly = st.fixed_dictionaries(
    {"judge_rationale": st.text(max_size=5), "assessments": st.just([SCORES] * 2), "preferred": st.integers(-1, 3)}
) | st.builds(repair, st.sampled_from(("Paris", "Doha", "1976", "")), st.integers(-2, 3))
any_reply = st.text(max_size=40) | st.one_of(json_values, raw_contents, nearly).map(json.dumps)


class Answers(dspy.Module):
    """A program that returns or raises what it is given, call after call."""

    def __init__(self, *said: Any) -> None:
        super().__init__()
        self.left = iter(said)

    def forward(self, **_: Any) -> Any:
        reply = next(self.left)
        if isinstance(reply, Exception):
            raise reply
        return reply
