"""Preference pairs from a pool, in the formats of TRL: a certified answer is chosen, an uncertified one rejected.

Source: ours, after the paper's proposal to part candidates by their certificate.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, write_records
from eldgr_dspy.programs.pools.prompts import prompt_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.preferences import Outcome, Preferences, preferences, taken_apart
from eldgr_dspy.rule.questions import Settings, require_one_of
from eldgr_dspy.showing import encodable

Layout = Literal["dpo", "kto"]  # a row a pair with `chosen` and `rejected`; a row a text with `label`
Fate = Literal[Outcome, "no_gold", "no_score"]  # what became of a question of the pool


@dataclass(frozen=True, slots=True)
class Pairing:
    """How a pool becomes pairs."""

    layout: Layout = "dpo"
    most: int = 1  # pairs of a question
    gold: bool = False  # whether gold answers part the candidates and not certificates
    score: str | None = None  # a recorded score: a pair gets a `margin`, the chosen candidate's less the rejected one's
    messages: bool = False  # whether prompts and completions are messages, and not texts
    evidence: bool = False  # whether prompts show it
    ask: str | None = None  # see `prompt_of`

    def __post_init__(self) -> None:
        require_one_of("layout", self.layout, get_args(Layout))
        if type(self.most) is not int or self.most < 1:
            raise ArgumentError(
                f"most must be a whole number of at least 1; got {self.most!r:.80}. Give 1 for one pair."
            )
        if self.ask is not None and encodable(self.ask) != self.ask:
            raise ArgumentError(f"ask must be text that UTF-8 can hold; got {self.ask!r:.80}. Write it anew.")
        if self.score is not None and self.layout == "kto":
            raise ArgumentError(
                "score must be left out with layout='kto', whose rows have no margin. Drop one of them."
            )


def fates(gold: bool) -> dict[Fate, str]:
    """Return in words what may become of a question; `gold` as in `Pairing`."""
    return {
        "paired": "with a pair",
        "unanswered": "without any answer",
        "one_class": "with one class of answers",
        "no_gold": "without a gold answer",
        "no_chosen": "without a right answer" if gold else "without a certified answer",
        "no_rejected": "without a wrong answer" if gold else "without an uncertified answer",
        "against_gold": "whose pairs would reject a right answer for a wrong one",
        "no_score": "without the scores for a margin",
    }


@dataclass(slots=True)
class PairCounts:
    """What was written of a pool, and why some questions have no pair."""

    questions: Counter[Fate] = field(default_factory=Counter[Fate])
    pairs: int = 0
    rows: int = 0
    dropped: int = 0  # pairs that would reject a right answer for a wrong one
    checked: int = 0  # pairs of questions with a gold answer
    right_chosen: int = 0  # checked pairs whose chosen answer is right
    right_rejected: int = 0
    scores: set[str] = field(default_factory=set[str])  # the names of all that candidates state

    def add(self, fate: Fate, result: Preferences, right: Sequence[bool] | None) -> None:
        self.questions[fate] += 1
        self.pairs += len(result.pairs)
        self.dropped += result.dropped
        if right is not None:
            self.checked += len(result.pairs)
            self.right_chosen += sum(right[chosen] for chosen, _ in result.pairs)
            self.right_rejected += sum(right[rejected] for _, rejected in result.pairs)

    def figures(self) -> dict[str, Any]:
        """Return the counts as JSON has them."""
        names = ("pairs", "rows", "dropped", "checked", "right_chosen", "right_rejected")
        counts = {fate: self.questions[fate] for fate in fates(gold=False)}
        return {**{name: getattr(self, name) for name in names}, "questions": counts}


def write_pairs(
    pool: Pool, path: str | Path, settings: Settings | None = None, pairing: Pairing | None = None
) -> PairCounts:
    """Write the preference pairs of a pool, whole or not at all, and return their counts."""
    path, settings, pairing = Path(path), settings or Settings(), pairing or Pairing()
    kind = settings.type or answer_type(pool.task)
    if kind.way == "derivation" and not pairing.gold:
        raise ArgumentError(
            f"{pool.path} must have answers that evidence certifies; got answers of the type {kind.name!r}, which "
            "derivations certify. Choose right answers over wrong ones instead (--gold)."
        )
    if settings.own and settings.own.consulted:
        raise ArgumentError(
            f"certificate must be one that asks no LM; got {settings.own.name!r}. Give a policy or a plain function."
        )
    if path.resolve() == pool.path.resolve():
        raise ArgumentError(f"{path} must not be the pool itself. Give the pairs another name.")
    counts = PairCounts()
    write_records(path, _records(pool, settings, pairing, counts))
    return counts


def _records(pool: Pool, settings: Settings, pairing: Pairing, counts: PairCounts) -> Iterator[dict[str, Any]]:
    """Yield the rows to write and count them. If there are none, raise."""
    for row in pool.rows():
        with naming_question(pool.name, row.id):
            case = Case(row.to_question(), settings)
            right = [case.type.right(answer, row.gold) for answer in case.question.answers] if row.gold else None
            fate, result = _pairs(row, case, right, pairing)
        counts.scores.update(name for candidate in row.candidates for name in candidate.scores)
        counts.add(fate, result, right)
        for record in _rows(row, case, result, pairing, f"{pool.path}, id {row.id!r}"):
            counts.rows += 1
            yield record
    if pairing.score is not None and pairing.score not in counts.scores:
        scores = ", ".join(sorted(counts.scores)) or "no scores"
        raise PoolError(
            f"{pool.path}: score must be one that candidates state; got {pairing.score!r}, and they state {scores}. "
            "Give one of these, or leave it out."
        )
    if not counts.pairs:
        words_by_fate = fates(pairing.gold)
        why = ", ".join(f"{n:,} {words_by_fate[fate]}" for fate in words_by_fate if (n := counts.questions[fate]))
        raise PoolError(
            f"{pool.path}: no question gives a pair, so no file is written; of {questions(pool.n)}: {why}. Give more "
            "samples a question, evidence that certifies some of them, or gold answers with --gold."
        )


def _pairs(row: Row, case: Case, right: Sequence[bool] | None, pairing: Pairing) -> tuple[Fate, Preferences]:
    """Return what became of a question, with its pairs."""
    classes, texts, answers = case.vote.classes, case.question.texts, case.question.answers
    parts: list[bool | None]
    if pairing.gold:
        parts = [None] * len(classes) if right is None else [*right]
    else:
        pairs = zip(classes, answers, strict=True)
        parts = [None if key is None else case.certified(answer) for key, answer in pairs]
    result = preferences(classes, texts, parts, right, pairing.most)
    if pairing.gold and right is None and result.outcome == "no_chosen":
        return "no_gold", result
    if pairing.layout == "kto" and right is not None:
        result = taken_apart(result, right)
    if pairing.score is None or not result.pairs:
        return result.outcome, result
    usable = [part if pairing.score in one.scores else None for part, one in zip(parts, row.candidates, strict=True)]
    result = preferences(classes, texts, usable, right, pairing.most)
    return "no_score" if result.outcome in ("no_chosen", "no_rejected") else result.outcome, result


def _rows(row: Row, case: Case, result: Preferences, pairing: Pairing, where: str) -> Iterator[dict[str, Any]]:
    question = case.question
    evidence = question.passages if pairing.evidence else ()
    messages = prompt_of(case.type.shown_question(question), row.task, evidence, pairing.ask)
    # A text and its completion are read as one, so a line ends between them.
    prompt = messages if pairing.messages else f"{messages[0]['content']}\n"
    completions: list[Any] = [
        [{"role": "assistant", "content": text}] if pairing.messages else text for text in question.texts
    ]
    if pairing.layout == "kto":
        for label, indices in zip((True, False), zip(*result.pairs, strict=True), strict=False):
            for index in dict.fromkeys(indices):
                yield {"prompt": prompt, "completion": completions[index], "label": label}
        return
    for chosen, rejected in result.pairs:
        record: dict[str, Any] = {"prompt": prompt, "chosen": completions[chosen], "rejected": completions[rejected]}
        if pairing.score is not None:
            scores = [row.candidates[index].scores[pairing.score] for index in (chosen, rejected)]
            numbers = [score for score in scores if isinstance(score, float)]
            if len(numbers) < 2:
                raise PoolError(f"{where}: score must name one number a candidate; got one a step. Give another score.")
            record["margin"] = numbers[0] - numbers[1]
        yield record
