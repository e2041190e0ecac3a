"""What the tests of the selector share: an LM that gives replies, selectors made of them, and every way to call."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import dspy
import pytest
from hypothesis import strategies as st

from eldgr_dspy.certificates import certify
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import Policy
from tests.public_strategies import json_values, raw_contents
from tests.scenes import ASPECTS as ASPECTS
from tests.scenes import CONTESTED as CONTESTED
from tests.scenes import DERIVATION as DERIVATION
from tests.scenes import PENS as PENS
from tests.scenes import SCORES
from tests.scenes import SETTLED as SETTLED
from tests.scenes import SILENT as SILENT
from tests.scenes import in_style as in_style
from tests.scenes import repair as repair
from tests.scenes import verdict as verdict


def saying(judge: Any = "?", repairer: Any = SILENT, deriver: Any = DERIVATION, **options: Any) -> ScriptedLM:
    """An LM that gives each role its reply; a reply that is not a mapping is sent as it is."""
    replies: dict[Any, Any] = {"judge": judge, "repairer": repairer, "deriver": deriver}
    return scripted_lm(lambda request: replies[role_of(request)], **options)


def pick(lm: ScriptedLM, *, adapter: Any = None, inputs: Mapping[str, Any] = CONTESTED, **options: Any) -> Any:
    with dspy.context(lm=lm, adapter=adapter):
        return Selector(**options)(**inputs)


def roles_of(lm: ScriptedLM) -> list[Any]:
    return [role_of(request) for request in lm.requests]


def select_sync(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return select(**inputs)


def awaiting(call: Callable[..., Any]) -> Callable[..., Any]:
    async def run(**inputs: Any) -> Any:
        return await call(**inputs)

    return lambda **inputs: asyncio.run(run(**inputs))


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


async def pieces_of(stream: Any, inputs: Mapping[str, Any]) -> list[Any]:
    return [piece async for piece in stream(**inputs)]


def select_streamify(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return asyncio.run(pieces_of(dspy.streamify(select), inputs))[-1]


def select_streamify_async(select: Selector, inputs: Mapping[str, Any]) -> Any:
    return asyncio.run(pieces_of(dspy.streamify(select, is_async_program=True), inputs))[-1]


WAYS = [select_sync, select_acall, select_asyncify, select_batch, select_parallel, select_evaluate]
WAYS += [select_streamify, select_streamify_async]
each_way = pytest.mark.parametrize("call", WAYS)
each_call = pytest.mark.parametrize("call", [select_sync, select_acall])


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


def shipped_lawfully(pred: Any, question: Question, settings: Settings) -> None:
    """What holds of every decision, checked apart from the code that made it."""
    fields = pred.toDict()
    assert json.loads(json.dumps(fields)) == fields
    if pred.branch == "consensus":
        assert pred.answer == pred.consensus
    elif question.task == "retrieval":
        policy = cast(Policy, settings.certificate)
        assert certify(pred.answer, question.passages, policy, question.text).certified is pred.certified is True
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
