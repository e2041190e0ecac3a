"""Count the answers of the real pools that are certified only by another spelling of a quantity.

Run: python -m benchmarks.quantity_spellings

Of each question every different answer counts once. Each is listed with the spelling that the evidence has, as right or
wrong.
"""

from collections import Counter

from benchmarks._timing import pools_dir
from eldgr_dspy.cases import Case
from eldgr_dspy.pools import open_pool
from eldgr_dspy.text_keys import read_answer, text_key

POOLS = ("hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")


def main() -> None:
    """Print the counts of each pool and the answers."""
    for name in POOLS:
        counts, lines = Counter[str](), list[str]()
        for row in open_pool(pools_dir() / f"{name}.jsonl.gz").rows():
            case = Case(row.to_question())
            for answer in dict.fromkeys(filter(None, case.question.answers)):
                counts["answers"] += 1
                witness = case.certificate(answer).witness
                if witness and text_key(read_answer(witness.text)) != text_key(read_answer(answer)):
                    verdict = "right" if case.type.right(answer, row.gold) else "wrong"
                    counts[verdict] += 1
                    lines.append(f"  {verdict}: {answer!r}, the evidence has {witness.text!r} ({row.question})")
        print(
            f"{name}: {counts['answers']:,} answers; newly certified {counts['right']} right, {counts['wrong']} wrong"
        )
        print(*sorted(lines), sep="\n")


if __name__ == "__main__":
    main()
