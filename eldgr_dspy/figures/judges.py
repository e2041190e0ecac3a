"""The named judges of a run side by side: the accuracy of each alone and under the lock, and how it judges.

The tests, locked minus alone for each judge, are in `contrasts` of `summary.json`. Everything here is descriptive. An
undefined value is None, never 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from eldgr_dspy.ballots import INAPPLICABLE
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation, Reply, Verdict
from eldgr_dspy.figures.effects import flips, showings
from eldgr_dspy.figures.judge_facts import JudgeFacts
from eldgr_dspy.figures.results.summary import Flips, JudgeFigures, Measured, PoolFigures
from eldgr_dspy.named_judges import judge_in, labelled
from eldgr_dspy.statistics import contrast_of_units, proportion_upper_bound

_TAIL = 0.975


@dataclass(slots=True)
class _Count:
    """How often something holds, and out of how many."""

    count: int = 0
    of: int = 0

    def add(self, holds: bool) -> None:
        self.count += holds
        self.of += 1

    def figures(self) -> Measured | None:
        """The share in percent with its exact interval of 95 %; None if there is nothing to count."""
        if not self.of:
            return None
        most = proportion_upper_bound(self.of, self.count, level=_TAIL)
        least = 1.0 - proportion_upper_bound(self.of, self.of - self.count, level=_TAIL)
        return {"value": 100.0 * self.count / self.of, "ci": [100.0 * least, 100.0 * most], "of": self.of}


@dataclass(slots=True)
class _Judge:
    """One judge: counts, also of how well it tells a right candidate of a question from a wrong one."""

    asked: int = 0
    abstained: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int | None = 0
    inapplicable: Counter[str] = field(default_factory=Counter)
    recovered: _Count = field(default_factory=_Count)
    tied: _Count = field(default_factory=_Count)
    moved: _Count = field(default_factory=_Count)
    discriminated: Counter[float] = field(default_factory=Counter)

    def take(
        self, case: Case, entry: Consultation, verdict: Reply | None, right: Callable[[str | None], bool] | None
    ) -> None:
        """Take a consultation and its reply; `right` says whether an answer is right, None without a gold answer."""
        self.asked += 1
        self.failed += entry.outcome == "failed"
        self.calls += entry.calls
        if entry.calls:
            spent = (entry.prompt_tokens, entry.completion_tokens)
            self.tokens = None if self.tokens is None or None in spent else self.tokens + sum(filter(None, spent))
        question, classes = case.question, case.vote.classes
        for moved in flips(showings(entry.content or {}, question.answers, len(question.passages)), classes):
            self.moved.add(moved)
        if not isinstance(verdict, Verdict):
            self.abstained += entry.outcome != "failed"
            if (reason := entry.reason or "").startswith(INAPPLICABLE):
                self.inapplicable[reason.removeprefix(INAPPLICABLE)] += 1
        elif verdict.scores is not None:
            scored = [(score, key) for score, key in zip(verdict.scores, classes, strict=True) if key is not None]
            highest = max(score for score, _ in scored)
            self.tied.add(len({key for score, key in scored if score == highest}) > 1)
            if right is not None:
                self._discriminate(
                    verdict.scores,
                    [None if key is None else right(a) for a, key in zip(question.answers, classes, strict=True)],
                )

    @property
    def lacks(self) -> str | None:
        """Why it applies to no question of the pool, the most frequent reason; None if it applies to any."""
        never = self.asked > 0 and self.inapplicable.total() == self.asked
        return min(self.inapplicable, key=lambda why: (-self.inapplicable[why], why)) if never else None

    def _discriminate(self, scores: Sequence[float], right: Sequence[bool | None]) -> None:
        """Take how often a right candidate of the question scores above a wrong one; equal scores count half."""
        groups = [
            [score for score, is_right in zip(scores, right, strict=True) if is_right is of] for of in (True, False)
        ]
        pairs = [(above > below) + (above == below) / 2 for above in groups[0] for below in groups[1]]
        if pairs:
            self.discriminated[sum(pairs) / len(pairs)] += 1

    def discrimination(self) -> Measured | None:
        """The mean over questions with its bootstrap interval of 95 %."""
        n = self.discriminated.total()
        if not n:
            return None
        interval = contrast_of_units({((share, 0.0),): times for share, times in self.discriminated.items()}).interval
        total = sum(Fraction(share) * times for share, times in self.discriminated.items())
        return {"value": float(total / n), "ci": list(interval), "of": n}


class Judges:
    """The named judges of a pool, taken question by question; false if there are none."""

    def __init__(self, rules: Iterable[str]) -> None:
        named = (judge for rule in rules if (judge := judge_in(rule)) is not None)
        self._judges: dict[str, _Judge] = {judge: _Judge() for judge in dict.fromkeys(named)}

    def __len__(self) -> int:
        return len(self._judges)

    def __iter__(self) -> Iterator[str]:
        return iter(self._judges)

    def add(
        self,
        case: Case,
        entries: Iterable[Consultation],
        replies: Mapping[str, Reply],
        right: Callable[[str | None], bool] | None,
    ) -> None:
        """Take a question, the consultations that its rules used, and what each judge said, by its label.

        `right` is as in `_Judge.take`.
        """
        recoverable = right is not None and not right(case.consensus) and any(map(right, case.question.answers))
        used = {entry.judge: entry for entry in entries if entry.judge is not None}
        for name, judge in self._judges.items():
            entry, reply = used.get(name), replies.get(labelled("judge", name))
            if entry is not None:
                judge.take(case, entry, reply, right)
            if recoverable and right is not None:
                judge.recovered.add(right(case.stated(reply) if isinstance(reply, Verdict) else None))

    def lacking(self) -> dict[str, str]:
        """Return the judges to which the pool does not apply, with the reason: their rules have no result."""
        return {name: judge.lacks for name, judge in self._judges.items() if judge.lacks is not None}

    def figures(
        self, pool: PoolFigures, flips_of: Callable[[str, str], Flips | None], facts: Mapping[str, JudgeFacts]
    ) -> dict[str, JudgeFigures]:
        """Return the section `judges` of a pool.

        Args:
            pool: Its other figures. flips_of: how many answers of a rule were lost and fixed by another one.
            facts: What is known of the judges.
        """
        return {name: self._figures(name, pool, flips_of, facts.get(name)) for name in self._judges}

    def _figures(
        self, name: str, pool: PoolFigures, flips_of: Callable[[str, str], Flips | None], facts: JudgeFacts | None
    ) -> JudgeFigures:
        judge, rules = self._judges[name], pool["rules"]
        alone, locked = labelled("judge", name), labelled("eldgr", name)
        delta = next((of for of in pool["contrasts"] if (of["rule"], of["against"]) == (locked, alone)), None)
        worst = {rule: ends[0] for rule, ends in pool["bounds"].items() if ends and judge.lacks is None}
        return {
            "alone": rules[alone]["em"] if alone in rules else None,
            "locked": rules[locked]["em"] if locked in rules else None,
            "delta": delta and {"delta": delta["delta"], "ci": delta["ci"]},
            "locked_against_alone": flips_of(alone, locked),
            "alone_against_majority": flips_of("majority", alone),
            "worst_alone": worst.get(alone),
            "worst_locked": worst.get(locked),
            "asked": judge.asked,
            "abstained": judge.abstained,
            "failed": judge.failed,
            "calls": judge.calls,
            "tokens": judge.tokens,
            "recovery": judge.recovered.figures() if alone in rules else None,
            "discrimination": judge.discrimination(),
            "score_ties": judge.tied.figures(),
            "order_effect": judge.moved.figures(),
            "gold_in_training": facts and facts["gold_in_training"],
            "logprobs": facts and facts["logprobs"],
            "positioned": facts and facts["positioned"],
            "lacks": judge.lacks,
        }
