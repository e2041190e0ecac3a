"""Count what scoring on seven channels asks of an NLI model, and time the scorer's own work.

    python -m benchmarks.channel_times

Fixed workloads: at most five documents a step, claims and changed steps by rule, one question a group:

    hotpotqa-reflexion12    all 100 questions, 12 texts each, compared with the question's own ten paragraphs
    gsm8k-openai4           the first 100 questions, 4 texts each, compared with one shared corpus: the last candidate
                            of each of the 1,000 last questions, in place of training solutions

`naive` is one pair for each channel that looks at a document: fact, triang and conflation separately, adv and each
claim. The NLI model is a fake that answers at once, so the seconds are the scorer's own. Reads ELDGR_POOLS or
../shared/data.
"""

import gc
import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks._timing import line, pools_dir
from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.claims import rule_claims
from eldgr_dspy.channels.counterfactuals import rule_counterfactuals
from eldgr_dspy.channels.protocols import Reasoning, Retriever
from eldgr_dspy.channels.undefined import Floats, Undefined
from eldgr_dspy.pools import Row as PoolRow
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.group import StepPairs, gather
from eldgr_dspy.programs.scoring.nli_pairs import MaybeRow, Row
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.pair_reader import Pair

K = 5
DISTINCT = np.array([[0.1, 0.2, 0.7], [0.2, 0.6, 0.2], [0.7, 0.2, 0.1]])


class Instant:
    """An NLI model that answers at once, from the lengths of a pair, and counts the pairs it is asked about."""

    name = "instant"

    def __init__(self) -> None:
        self.calls, self.pairs = 0, 0

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return one of three distributions for each pair."""
        self.calls += 1
        self.pairs += len(pairs)
        return DISTINCT[[(len(premise) + len(hypothesis)) % 3 for premise, hypothesis in pairs]]


def reasonings(row: PoolRow) -> list[Reasoning]:
    passages = tuple(Passage(passage.title, passage.text) for passage in row.evidence) or None
    return [Reasoning(candidate.text, row.question, passages, candidate.answer or "") for candidate in row.candidates]


def naive(step: StepPairs) -> int:
    """Return how many pairs a step takes if every channel asks separately."""
    return (
        len(pairs(step.before)) + 3 * len(pairs(step.documents)) + len(pairs(step.change)) + len(pairs(*claims(step)))
    )


def together(step: StepPairs) -> int:
    """Return how many different pairs a step takes."""
    return len(set(pairs(step.before, step.documents, step.change, *claims(step))))


def pairs(*rows: MaybeRow) -> list[Pair]:
    """Return the pairs of rows, as often as they occur."""
    return [pair for row in rows if isinstance(row, Row) for pair in row.pairs]


def claims(step: StepPairs) -> tuple[Row, ...]:
    return () if isinstance(step.claims, Undefined) else step.claims


def measure(name: str, groups: Sequence[Sequence[Reasoning]], retriever: Retriever | None) -> None:
    """Print the results of one workload."""
    nli = Instant()
    scorer = NLIScorer(nli, retriever, K)
    seconds = [seconds_of(scorer, group) for group in groups]
    readings = [gather(group, retriever, K, rule_claims, rule_counterfactuals) for group in groups]
    steps = [step for group in readings for step in group.steps if isinstance(step.documents, Row)]
    five = [step for step in steps if len(pairs(step.documents)) == K]
    single = [step for step in five if claims(step) == (step.documents,)]
    print(f"\n{name}: {len(groups)} groups, {sum(map(len, groups)):,} texts, {len(steps):,} steps that can be scored")
    print(f"five documents were found for {len(five):,} of them; {len(single):,} of these are their only claim")
    line("pairs a step with five documents: a channel by itself", statistics.mean(map(naive, five)), "")
    line("  each pair within the step once", statistics.mean(map(together, five)), "", "at most 11")
    line("  the same where the step is its only claim, at most", max(map(together, single)), "", "at most 11")
    line("pairs a step, whatever was found: a channel by itself", statistics.mean(map(naive, steps)), "")
    line("  each pair within the step once", statistics.mean(map(together, steps)), "")
    line("  each pair within the group once, which is what is read", nli.pairs / len(steps), "", "at most 11")
    line("  saved by the group", 100 * (1 - nli.pairs / sum(map(together, steps))), "%")
    line("calls of the NLI model a group", nli.calls / len(groups), "", "1")
    line("the scorer's own processor time a group, median", 1e3 * statistics.median(seconds), "ms")
    line("  at most", 1e3 * max(seconds), "ms")


def seconds_of(scorer: NLIScorer, group: Sequence[Reasoning]) -> float:
    """Return the processor seconds of scoring a group, its index of own passages included."""
    gc.collect()
    start = time.process_time()
    scorer.score(group)
    return time.process_time() - start


def main() -> None:
    folder = pools_dir()
    if not (folder / "gsm8k-openai4.jsonl.gz").is_file():
        sys.exit(f"There are no pools in {folder}; set ELDGR_POOLS to the folder that holds them.")
    hotpot = [reasonings(row) for row in open_pool(folder / "hotpotqa-reflexion12.jsonl.gz").rows()]
    measure("hotpotqa-reflexion12", hotpot, None)
    gsm8k = list(open_pool(folder / "gsm8k-openai4.jsonl.gz").rows())
    corpus = BM25(Passage("", row.candidates[-1].text) for row in gsm8k[-1_000:])
    measure("gsm8k-openai4", [reasonings(row) for row in gsm8k[:100]], corpus)


if __name__ == "__main__":
    main()
