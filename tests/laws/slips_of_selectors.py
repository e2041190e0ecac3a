"""Selectors with one slip each, as a user would write them: most keep something from one call to the next."""

import copy
from collections.abc import Callable
from typing import Any

import dspy

from eldgr_dspy.programs.selector import Selector


class Wrapper(Selector):
    """A selector that changes what it is called with before it decides, and perhaps what it decided."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.last: Any = None
        self.memory: dict[str, Any] = {}

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return call

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        """Change what it decided, or return another prediction."""

    def call_of(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return self.before({name: inputs.get(name) for name in ("question", "candidates", "evidence", "answer")})

    def forward(self, *_: Any, **inputs: Any) -> Any:
        call = self.call_of(inputs)
        pred = super().forward(**call)
        return self.after(call, pred) or pred

    async def aforward(self, *_: Any, **inputs: Any) -> Any:
        call = self.call_of(inputs)
        pred = await super().aforward(**call)
        return self.after(call, pred) or pred


class ReusesEvidence(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        self.last = call["evidence"] or self.last
        return {**call, "evidence": self.last}


class ReusesEvidenceIfNone(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        self.last = self.last if call["evidence"] is None else call["evidence"]
        return {**call, "evidence": self.last}


class FillsInEvidence(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return {**call, "evidence": ["Lyon, and then Rome."]} if call["evidence"] == [] else call


class OneBehind(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        own, evidence = call["evidence"], self.last
        self.last = own
        return {**call, "evidence": own if evidence is None else evidence}


class Gathers(Wrapper):
    key = ""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        result = self.memory.setdefault(call[self.key] if self.key else "", [])
        result += call["evidence"] or []
        return {**call, "evidence": list(result)}


class ReusesEvidenceOfAQuestion(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return {**call, "evidence": self.memory.setdefault(call["question"], call["evidence"])}


class ReusesCandidates(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        if self.last is not None and self.last["question"] == call["question"]:
            call = {**call, "candidates": self.last["candidates"]}
        self.last = call
        return call


class Remembers(Wrapper):
    """Decides once for all calls that have the same key."""

    key: tuple[str, ...] = ()

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        return copy.deepcopy(self.memory.setdefault(repr([call[name] for name in self.key]), pred))


class ByQuestion(Remembers):
    key = ("question",)


def remembering(*key: str, **options: Any) -> Callable[[], Selector]:
    kind: Any = type("ByKey", (Remembers,), {"key": key})
    return lambda: kind(**options)


class ByTheSetOfCandidates(Remembers):
    def after(self, call: dict[str, Any], pred: Any) -> Any:
        answers = sorted({str(one) for one in call["candidates"]})
        return copy.deepcopy(self.memory.setdefault(repr((call["question"], answers, call["evidence"])), pred))


class Repeats(Wrapper):
    def after(self, call: dict[str, Any], pred: Any) -> Any:
        key = call["question"], repr(call["candidates"])
        if self.last is None or self.last[0] != key:
            self.last = (key, pred)
        return self.last[1]


class KeepsItsMark(Wrapper):
    def after(self, call: dict[str, Any], pred: Any) -> None:
        if pred.certified:
            self.memory[pred.answer] = True
        elif pred.answer in self.memory:
            pred.certified = True


class TiresOfTheJudge(Wrapper):
    overrides = 0

    def after(self, call: dict[str, Any], pred: Any) -> None:
        self.overrides += pred.branch == "judge"
        if pred.branch == "judge" and self.overrides > 4:
            pred.answer, pred.branch = pred.consensus, "consensus"


class SortsInPlace(Wrapper):
    def after(self, call: dict[str, Any], pred: Any) -> None:
        call["candidates"].sort(key=lambda one: str(one["answer"]))


class EmptiesTheEvidence(Wrapper):
    def after(self, call: dict[str, Any], pred: Any) -> None:
        call["evidence"].clear()


class Grudge(dspy.Module):
    """A judge that prefers what it preferred the last time, if that is a candidate."""

    def __init__(self, judge: dspy.Module) -> None:
        super().__init__()
        self.judge, self.last = judge, ""

    def forward(self, **inputs: Any) -> dspy.Prediction:
        answers = [str(one) for one in inputs["candidates"]]
        if self.last in answers:
            return dspy.Prediction(preferred=answers.index(self.last))
        reply = self.judge(**inputs)
        if isinstance(reply.preferred, int) and 0 <= reply.preferred < len(answers):
            self.last = answers[reply.preferred]
        return reply


class Seven(Wrapper):
    def after(self, call: dict[str, Any], pred: Any) -> None:
        if "7" in str(pred.consensus) and pred.consulted == ["judge", "repairer"]:
            pred.branch = "judge"


class DropsNegative(Wrapper):
    def drops(self, answer: str) -> bool:
        return answer.startswith("-")

    def after(self, call: dict[str, Any], pred: Any) -> None:
        if pred.branch != "consensus" and self.drops(str(pred.answer)):
            pred.answer, pred.branch = pred.consensus, "consensus"


class ShortAnswersOnly(DropsNegative):
    def drops(self, answer: str) -> bool:
        return len(answer) > 45


def with_a_grudge() -> Selector:
    select = Selector()
    select.judge = Grudge(select.judge)
    return select


SELECTORS: dict[str, Callable[[], Selector]] = {
    "reuses the last evidence": ReusesEvidence, "reuses the last evidence if not given": ReusesEvidenceIfNone,
    "fills in evidence": FillsInEvidence, "one behind with the evidence": OneBehind, "gathers evidence": Gathers,
    "gathers evidence of a question": type("GathersOfAQuestion", (Gathers,), {"key": "question"}),
    "reuses the evidence of a question": ReusesEvidenceOfAQuestion,
    "reuses the candidates of a question": ReusesCandidates, "remembers by question": ByQuestion,
    "remembers by question and candidates": remembering("question", "candidates"),
    "remembers by question and evidence": remembering("question", "evidence"),
    "remembers by candidates": remembering("candidates"),
    "remembers by candidates and evidence": remembering("candidates", "evidence"),
    "remembers by the set of candidates": ByTheSetOfCandidates, "repeats the last decision": Repeats,
    "keeps what was certified": KeepsItsMark, "tires of the judge": TiresOfTheJudge,
    "sorts in place": SortsInPlace, "empties the evidence": EmptiesTheEvidence,
    "a judge with a grudge": with_a_grudge, "names the wrong branch at seven": Seven,
    "drops negative sums": lambda: DropsNegative(answer="number"), "ships short answers only": ShortAnswersOnly,
    "remembers sums by question": remembering("question", answer="number"),
    "remembers sums by candidates": remembering("candidates", answer="number"),
}  # fmt: skip
