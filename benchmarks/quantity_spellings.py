"""Count the answers that only the spelling of a quantity keeps from a certificate, right and wrong, on the real pools.

Run: python -m benchmarks.quantity_spellings

Of each question every different answer counts once. Those that the evidence has in another spelling are listed.
"""

from collections import Counter

from benchmarks._timing import pools_dir
from eldgr_dspy.cases import Case
from eldgr_dspy.pools import open_pool
from eldgr_dspy.spellings import other_spelling

POOLS = ("hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")


def main() -> None:
    """Print the counts of each pool and the answers."""
    for name in POOLS:
        counts, lines = Counter[str](), list[str]()
        for row in open_pool(pools_dir() / f"{name}.jsonl.gz").rows():
            case = Case(row.to_question())
            for answer in dict.fromkeys(filter(None, case.question.answers)):
                counts["answers"] += 1
                spelling = other_spelling(answer, case.question.passages)
                if spelling is None or case.certified(answer) is not False:
                    continue
                verdict = "right" if case.type.right(answer, row.gold) else "wrong"
                counts[verdict] += 1
                lines.append(f"  {verdict}: {answer!r}, the evidence has {spelling!r} ({row.question})")
        found = f"{counts['right']} right and {counts['wrong']} wrong uncertified for their spelling only"
        print(f"{name}: {counts['answers']:,} answers, {found}", *lines, sep="\n")


if __name__ == "__main__":
    main()
