"""Print what derivations are worth at each level and under each rule: `python -m benchmarks.derivers [POOLS_DIR]`.

For each level: how many right derivations pass, how many of those that pass are right, and for each rule how many
answers of majority they fix and break. The derivations are the annotated solutions of
`benchmarks.derivation_levels`, and the recorded replies of a real deriver. A pool votes without the derivation's own
candidate:

* gsm8k-openai4: each candidate in turn derives; the three others vote, and are its further samples.
* svamp-codex8: the last four candidates derive, each with the other three as further samples; the first four vote.
* first-try/gsm8k-qwen15b-20: Qwen2.5-Coder-1.5B-Instruct derives once; its four candidates vote.

`unchecked` is `bounded` without its check: `traced`, and within reach.

POOLS_DIR defaults to ELDGR_POOLS, or else to the folder of pools next to the checkout. It takes about five minutes.
"""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from benchmarks._timing import pools_dir
from benchmarks.derivation_levels import POOLS, derivation_of
from eldgr_dspy.answer_types.answers import numeric_equal
from eldgr_dspy.decision import drive
from eldgr_dspy.derivation.reach import reach
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import open_pool
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation
from eldgr_dspy.rule.derivations import CheckResult, check_derivation
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.words import STRICTNESS

RULES: Final = ("eldgr", "support", "support(1)", "support(0)")
LEVELS: Final = (*STRICTNESS[:-1], "unchecked", "unchecked, agreed", "agreed")


class Trial(NamedTuple):
    """A derivation about a question, whose candidates vote without it."""

    question: Question
    gold: Sequence[str]
    derivation: Derivation


class AtLevel(Case):
    """A case at one of `LEVELS`, with checks that are made once for all cases."""

    level = ""
    cache: ClassVar[dict[tuple[Derivation, str], dict[str, CheckResult]]] = {}

    def check(self, derivation: Derivation) -> CheckResult:
        alone = self._levels(derivation)
        if not self.level.endswith("agreed"):
            return alone[self.level]
        base = "unchecked" if self.level.startswith("unchecked") else "bounded"
        others = [self._levels(other)[base] for other in derivation.others]
        agrees = any(other.passed and other.answer == alone[base].answer for other in others)
        return alone[base] if agrees else replace(alone[base], passed=False)

    def _levels(self, derivation: Derivation) -> dict[str, CheckResult]:
        plain, text = replace(derivation, others=()), self.question.text
        if (plain, text) not in self.cache:
            checks: dict[str, CheckResult] = {level: check_derivation(plain, text, level) for level in STRICTNESS[:-1]}
            result = checks["traced"]
            within = result.passed and (result.answer == 0 or result.answer in reach(text))
            self.cache[plain, text] = {**checks, "unchecked": replace(result, passed=within)}
        return self.cache[plain, text]


def from_pool(rows: Iterable[Row], name: str) -> Iterator[Trial]:
    """Yield the candidates of a pool that hold steps as derivations."""
    for row in rows:
        answers = [candidate.answer for candidate in row.candidates]
        steps = [POOLS[name](candidate.text) for candidate in row.candidates]
        derivations = {
            place: derivation_of(of, answers[place] or "", row.question) for place, of in enumerate(steps) if of
        }
        for place, derivation in derivations.items():
            if name == "gsm8k-openai4":
                voters = [other for other in range(len(answers)) if other != place]
                samples = [other for other in derivations if other != place]
            else:
                voters, samples = [*range(4)], [other for other in derivations if other >= 4 and other != place]
            if place >= 4 or name == "gsm8k-openai4":
                question = Question(row.question, "arithmetic", tuple(answers[voter] for voter in voters))
                others = tuple(derivations[sample] for sample in samples)
                yield Trial(question, row.gold, replace(derivation, others=others))


def from_recording(rows: Iterable[Row], replies: Path) -> Iterator[Trial]:
    """Yield the derivations of a recording; abstentions are left out."""
    by_id = {row.id: row for row in rows}
    with gzip.open(replies, "rt", encoding="utf-8") as lines:
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for entry in entries:
        reply = read_reply("deriver", entry.get("content") or {}, (), 0) if entry.get("role") == "deriver" else None
        if isinstance(reply, Derivation):
            row = by_id[entry["id"]]
            yield Trial(row.to_question(), row.gold, reply)


def measure(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a line for each level."""
    n_right = sum(numeric_equal(one.derivation.answer, one.gold) for one in trials)
    yield f"{len(trials):,} derivations, {n_right:,} of them right"
    for level in LEVELS:
        counts = Counter[str]()
        for one in trials:
            case = AtLevel(one.question)
            case.level = level
            right = numeric_equal(one.derivation.answer, one.gold)
            passes = case.check(one.derivation).passed
            counts.update(passed=passes, right=passes and right)
            if passes:
                before = numeric_equal(case.consensus, one.gold)
                for rule in RULES:
                    ships = drive(case.rule(rule)(case), {"deriver": one.derivation}.__getitem__).answer
                    after = numeric_equal(ships, one.gold)
                    counts[f"{rule} won"] += after > before
                    counts[f"{rule} lost"] += after < before
        percent = 100 * counts["right"] / max(n_right, 1)
        share = f"{100 * counts['right'] / counts['passed']:5.1f} %" if counts["passed"] else "    -  "
        flips = ", ".join(f"{rule} {counts[f'{rule} won']:,}-{counts[f'{rule} lost']:,}" for rule in RULES)
        yield f"  {level:16} {counts['passed']:>5,} pass; {percent:5.1f} % of the right; right {share}; {flips}"


def main(folder: Path) -> None:
    for name in POOLS:
        print(f"{name}: ", *measure([*from_pool(open_pool(folder / f"{name}.jsonl.gz").rows(), name)]), sep="\n")
    first = folder / "first-try" / "gsm8k-qwen15b-20.jsonl.gz"
    rows, replies = open_pool(first).rows(), first.with_name("gsm8k-qwen15b-20.replies.jsonl.gz")
    print("first-try/gsm8k-qwen15b-20: ", *measure([*from_recording(rows, replies)]), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else pools_dir())
