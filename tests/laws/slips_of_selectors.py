"""Selectors with one slip each, as a user would write them: most keep something from one call to the next.

    SELECTORS["reuses the last evidence"]()      what `check_selector` is given

`python -m benchmarks.kit` counts how many of twenty runs catch each.
"""

import copy
from collections.abc import Callable
from typing import Any

import dspy

from eldgr_dspy.programs.selector import Selector


class Wrapped(Selector):
    """A selector that changes what it is called with before it decides, and perhaps what it decided."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.last: Any = None
        self.found: dict[str, Any] = {}

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return call

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        """Change what it decided, or return another prediction."""

    def forward(
        self, question: str, candidates: Any, evidence: Any = None, answer: Any = None, options: Any = ()
    ) -> Any:
        call = self.before({"question": question, "candidates": candidates, "evidence": evidence, "answer": answer})
        pred = super().forward(**call)
        return self.after(call, pred) or pred

    async def aforward(
        self, question: str, candidates: Any, evidence: Any = None, answer: Any = None, options: Any = ()
    ) -> Any:
        call = self.before({"question": question, "candidates": candidates, "evidence": evidence, "answer": answer})
        pred = await super().aforward(**call)
        return self.after(call, pred) or pred


class ReusesEvidence(Wrapped):
    """Without evidence it uses that of the call before."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        self.last = call["evidence"] or self.last
        return {**call, "evidence": self.last}


class ReusesEvidenceNotGiven(Wrapped):
    """Where no evidence is given at all, that of the call before."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["evidence"] is None:
            return {**call, "evidence": self.last}
        self.last = call["evidence"]
        return call


class FillsInEvidence(Wrapped):
    """Evidence of its own in the place of an empty list."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return {**call, "evidence": ["Lyon, and then Rome."]} if call["evidence"] == [] else call


class OneBehind(Wrapped):
    """The evidence of the call before."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        own, evidence = call["evidence"], self.last
        self.last = own
        return {**call, "evidence": own if evidence is None else evidence}


class Gathers(Wrapped):
    """The evidence of all calls."""

    def key(self, call: dict[str, Any]) -> str:
        return ""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        result = self.found.setdefault(self.key(call), [])
        result += call["evidence"] or []
        return {**call, "evidence": list(result)}


class GathersOfAQuestion(Gathers):
    """The evidence of all calls with the same question."""

    def key(self, call: dict[str, Any]) -> str:
        return str(call["question"])


class ReusesEvidenceOfAQuestion(Wrapped):
    """The evidence with which a question was first asked."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        return {**call, "evidence": self.found.setdefault(call["question"], call["evidence"])}


class ReusesCandidates(Wrapped):
    """The candidates of the call before where they answer the same question."""

    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        if self.last is not None and self.last["question"] == call["question"]:
            call = {**call, "candidates": self.last["candidates"]}
        self.last = call
        return call


class Remembers(Wrapped):
    """Decides once for all calls that have the same key."""

    key: tuple[str, ...] = ()

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        return copy.deepcopy(self.found.setdefault(repr([call[name] for name in self.key]), pred))


class ByQuestion(Remembers):
    key = ("question",)


class ByQuestionAndCandidates(Remembers):
    key = ("question", "candidates")


class ByQuestionAndEvidence(Remembers):
    key = ("question", "evidence")


class ByCandidates(Remembers):
    key = ("candidates",)


class ByCandidatesAndEvidence(Remembers):
    key = ("candidates", "evidence")


class ByTheSetOfCandidates(Remembers):
    """Pools of the same answers, however many of each, are taken for one."""

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        answers = sorted({str(one) for one in call["candidates"]})
        return copy.deepcopy(self.found.setdefault(repr((call["question"], answers, call["evidence"])), pred))


class Repeats(Wrapped):
    """Ships the last decision where question and candidates are those of the call before."""

    def after(self, call: dict[str, Any], pred: Any) -> Any:
        key = call["question"], repr(call["candidates"])
        if self.last is None or self.last[0] != key:
            self.last = (key, pred)
        return self.last[1]


class KeepsWhatWasCertified(Wrapped):
    """Once certified, always certified."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.certified: set[str] = set()

    def after(self, call: dict[str, Any], pred: Any) -> None:
        if pred.certified:
            self.certified.add(pred.answer)
        elif pred.answer in self.certified:
            pred.certified = True


class TiresOfTheJudge(Wrapped):
    """After some overrides, consensus ships."""

    overrides = 0

    def after(self, call: dict[str, Any], pred: Any) -> None:
        self.overrides += pred.branch == "judge"
        if pred.branch == "judge" and self.overrides > 4:
            pred.answer, pred.branch = pred.consensus, "consensus"


class SortsInPlace(Wrapped):
    """Sorts the list that it is given, for itself and for its caller."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        call["candidates"].sort(key=lambda one: str(one["answer"]))


class EmptiesTheEvidence(Wrapped):
    """Takes the evidence from the list that it is given."""

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


class Seven(Wrapped):
    """Ships what the judge prefers where consensus has a seven."""

    def after(self, call: dict[str, Any], pred: Any) -> None:
        if "7" in str(pred.consensus) and pred.consulted == ["judge", "repairer"]:
            pred.branch = "judge"


class DropsNegative(Wrapped):
    """Ships consensus in the place of a negative sum."""

    def drops(self, answer: str) -> bool:
        return answer.startswith("-")

    def after(self, call: dict[str, Any], pred: Any) -> None:
        if pred.branch != "consensus" and self.drops(str(pred.answer)):
            pred.answer, pred.branch = pred.consensus, "consensus"


class ShortAnswersOnly(DropsNegative):
    """Ships consensus in the place of a long answer."""

    def drops(self, answer: str) -> bool:
        return len(answer) > 45


def with_a_grudge() -> Selector:
    select = Selector()
    select.judge = Grudge(select.judge)
    return select


SELECTORS: dict[str, Callable[[], Selector]] = {
    "reuses the last evidence": ReusesEvidence, "reuses the last evidence if not given": ReusesEvidenceNotGiven,
    "fills in evidence": FillsInEvidence, "one behind with the evidence": OneBehind, "gathers evidence": Gathers,
    "gathers evidence of a question": GathersOfAQuestion,
    "reuses the evidence of a question": ReusesEvidenceOfAQuestion,
    "reuses the candidates of a question": ReusesCandidates, "remembers by question": ByQuestion,
    "remembers by question and candidates": ByQuestionAndCandidates,
    "remembers by question and evidence": ByQuestionAndEvidence, "remembers by candidates": ByCandidates,
    "remembers by candidates and evidence": ByCandidatesAndEvidence,
    "remembers by the set of candidates": ByTheSetOfCandidates, "repeats the last decision": Repeats,
    "keeps what was certified": KeepsWhatWasCertified, "tires of the judge": TiresOfTheJudge,
    "sorts in place": SortsInPlace, "empties the evidence": EmptiesTheEvidence,
    "a judge with a grudge": with_a_grudge, "names the wrong branch at seven": Seven,
    "drops negative sums": lambda: DropsNegative(answer="number"), "ships short answers only": ShortAnswersOnly,
    "remembers sums by question": lambda: ByQuestion(answer="number"),
    "remembers sums by candidates": lambda: ByCandidates(answer="number"),
}  # fmt: skip
