"""Rules, certificates and selectors without a slip, as users write them; some have constants like those of a slip."""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.decision import Choice, Steps, evidence_locked
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.text.stripping import strip_answer
from tests.laws.slips import Certifies, Passages, allows, fold, stands
from tests.laws.slips_of_selectors import Wrapper, remembering


def in_words_of_its_own(case: Any) -> Steps:
    choice = Choice("consensus", case.consensus)
    is_open = case.task == "arithmetic" or case.certified(case.consensus) is False
    if is_open and case.task == "retrieval" and case.rival():
        preferred = case.preferred((yield "judge"))
        if preferred is not None and case.certified(preferred) and not case.same(preferred, case.consensus):
            return Choice("judge", preferred)
    if is_open and case.repairable:
        if case.task == "retrieval":
            repair = case.repaired((yield "repairer"))
            holds = repair is not None and case.certified(repair) is True
        else:
            repair = case.derived((yield "deriver"))
            holds = repair is not None
        if holds and not case.same(repair, case.consensus):
            choice = Choice("repair", repair)
    return choice


LOG: dict[str, int] = {}


def that_counts(case: Any) -> Steps:
    branch, answer = yield from evidence_locked(case)
    kind = "long" if answer and len(answer) > 40 else "negative" if answer and answer.startswith("-") else "other"
    LOG[kind] = LOG.get(kind, 0) + 1
    if answer and ("7" in answer or "not " in answer):
        LOG["odd"] = 1_000
    return Choice(branch, answer)


class ByAnObject:
    def __init__(self, most: int = 25, denial: str = "{} is not") -> None:
        self.most, self.denial, self.calls = most, denial, 0

    def __call__(self, case: Any) -> Steps:
        self.calls = min(self.calls + 1, self.most)
        return (yield from evidence_locked(case))


def of_a_judge_alone(case: Any) -> Steps:
    """The tutorial's, which asks no repairer."""
    if case.certified(case.consensus) is False and case.rival():
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is True:
            return Choice("judge", preference)
    return Choice("consensus", case.consensus)


RULES: dict[str, dict[str, Any]] = {
    "the shipped one": {"rule": evidence_locked}, "by its name": {"rule": "eldgr"},
    "in words of its own": {"rule": in_words_of_its_own}, "that counts": {"rule": that_counts},
    "an object": {"rule": ByAnObject()}, "a partial": {"rule": partial(evidence_locked)},
    "of retrieval": {"rule": in_words_of_its_own, "answer": "short"},
    "of arithmetic": {"rule": that_counts, "answer": "number"},
    "of a judge alone": {"rule": of_a_judge_alone, "answer": "short", "without": ["the_cases_partition"]},
    "over a certificate of its own": {"rule": in_words_of_its_own, "certificate": stands},
}  # fmt: skip


def by_letter(answer: str, passages: Passages) -> bool | None:
    return certify(answer, passages, "substring").certified


def where(holds: Callable[[Passage], bool]) -> Certifies:
    return lambda answer, passages: allows(answer, tuple(filter(holds, passages)))


def yes_and_no_apart(answer: str, passages: Passages) -> bool | None:
    return None if fold(answer).strip() in {"yes", "no"} else stands(answer, passages)


def by_boundaries(answer: str, passages: Passages) -> bool:
    pattern = re.escape(fold(answer).strip())
    return any(re.search(rf"(?<!\w){pattern}(?!\w)", fold(one.text)) for one in passages if pattern)


def passage_by_passage(answer: str, passages: Passages) -> bool:
    """A passage that denies the answer does not certify it; another may."""
    denial = f"not {strip_answer(answer)}"
    return any(stands(answer, (one,)) for one in passages if denial not in one.text and " isn't " not in one.text)


def of_sentences(answer: str, passages: Passages) -> bool:
    sentences = [part for one in passages for part in re.split(r"(?<=[.!?])\s+", one.text)]
    return any(fold(answer) in fold(part) for part in sentences)


def of_the_core(answer: str, passages: Passages) -> bool | None:
    """It drops the short and the long, by what the answer is and not by how it is spelled."""
    return 3 <= len(strip_answer(answer)) <= 60 and by_letter(strip_answer(answer), passages)


@lru_cache(maxsize=256)
def recall(answer: str, passages: Passages) -> bool:
    return stands(answer, passages)


CERTIFICATES: dict[str, dict[str, Any]] = {
    "the shipped one": {"certificate": allows},
    "by token": {"certificate": lambda answer, passages: certify(answer, passages, "token").certified},
    "by letter": {"certificate": by_letter, "without": ["spelling_does_not_decide"]},
    "of words": {"certificate": stands}, "yes and no apart": {"certificate": yes_and_no_apart},
    "by boundaries": {"certificate": by_boundaries}, "passage by passage": {"certificate": passage_by_passage},
    "of short passages": {"certificate": where(lambda one: len(one.text) < 2_000 and len(one.text.split()) <= 300)},
    "without errata": {"certificate": where(lambda one: one.title not in ("Errata", "Talk"))},
    "of sentences": {"certificate": of_sentences}, "of what is stripped": {"certificate": of_the_core},
    "remembered": {"certificate": recall},
}  # fmt: skip


class Annotates(Wrapper):
    calls = 0

    def after(self, call: dict[str, Any], pred: Any) -> None:
        self.calls += 1
        pred.remark = "long" if len(str(pred.answer)) > 45 else "with a 7" if "7" in str(pred.answer) else ""


class Copies(Wrapper):
    def before(self, call: dict[str, Any]) -> dict[str, Any]:
        texts = sorted(call["evidence"] or [], key=str)
        texts.clear()
        return {**call, "candidates": list(call["candidates"])}


def with_a_chain_of_thought() -> Selector:
    select = Selector()
    select.judge = dspy.ChainOfThought(JudgeCandidates)
    return select


SELECTORS: dict[str, Callable[[], Selector]] = {
    "plain": Selector, "arithmetic": lambda: Selector(answer="number"),
    "strict about replies": lambda: Selector(on_error="raise", preference="stratum"),
    "by token": lambda: Selector(certificate="token", answer_field="reply"),
    "asking always": lambda: Selector(consult="always"), "without an LM": heuristic_selector,
    "with a chain of thought": with_a_chain_of_thought,
    "that remembers all": remembering("question", "candidates", "evidence", "answer"),
    "that annotates": Annotates, "that copies": Copies,
    "that annotates sums": lambda: Annotates(answer="number", homogeneous="repair"),
}  # fmt: skip
