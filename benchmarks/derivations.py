"""How often a chain of true equations is right: `python -m benchmarks.derivations [POOLS_DIR]`.

Every candidate of gsm8k-openai4 that annotates its arithmetic as `<<expression=value>>` is read as a derivation and
checked at `chained` and at `traced`; then its answer is compared with gold. The pool holds no independent checks, so
`executed` cannot be measured on it: its chains are these, and a check besides.

POOLS_DIR defaults to ELDGR_POOLS, or else to the folder of pools beside the checkout.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

from eldgr_dspy.answers import numeric_equal
from eldgr_dspy.consultations import Derivation, Step
from eldgr_dspy.derivations import check_derivation
from eldgr_dspy.pools import open_pool
from eldgr_dspy.words import Strictness

LEVELS: dict[Strictness, str] = {
    "chained": "all annotated equations true, and the answer computed by them",
    "traced": "and every number traces, one of them to a number that the question states",
}
_ANNOTATION = re.compile(r"<<([^<>]*)=([^<>=]*)>>")
_UNREAD = "levels below `executed` ask that a check is given and do not read it"


def derivation_of(text: str, answer: str) -> Derivation:
    """Return the annotated equations of a candidate as the steps of a derivation."""
    return Derivation(tuple(Step(*parts) for parts in _ANNOTATION.findall(text)), answer, _UNREAD)


def main(folder: Path) -> None:
    """Print, for each level, how many chains pass and how many of those are right."""
    passed: Counter[Strictness] = Counter()
    right: Counter[Strictness] = Counter()
    chains = 0
    for row in open_pool(folder / "gsm8k-openai4.jsonl.gz").rows():
        for candidate in row.candidates:
            derivation = derivation_of(candidate.text, candidate.answer or "")
            chains += bool(derivation.steps)
            for level in LEVELS:
                if check_derivation(derivation, row.question, level).passed:
                    passed[level] += 1
                    right[level] += numeric_equal(candidate.answer, row.gold)
    print(f"gsm8k-openai4: {chains:,} candidates with annotated equations")
    for level, meaning in LEVELS.items():
        share = 100 * right[level] / passed[level]
        print(f"  {level:8} {passed[level]:>5,} pass, {right[level]:>5,} of them right ({share:.1f} %): {meaning}")


if __name__ == "__main__":
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    main(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ELDGR_POOLS", beside)))
