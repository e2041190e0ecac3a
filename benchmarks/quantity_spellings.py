"""Count the answers of the real pools that are certified only by another spelling of a quantity, and those left out.

Run: python -m benchmarks.quantity_spellings

Of each question every different answer counts once. Each is listed with the spelling that the evidence has, as right or
wrong: first those that a class of spellings certifies, then those that are uncertified for their spelling only.
"""

from collections import Counter

from benchmarks._timing import pools_dir
from eldgr_dspy.matching.text_keys import read_answer, text_key
from eldgr_dspy.pools import open_pool
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.spellings import other_spelling

POOLS = ("hotpotqa-reflexion12", "nq-openqa10", "nq-openqa10-struck")


def main() -> None:
    for name in POOLS:
        counts, lines = Counter[str](), list[str]()
        for row in open_pool(pools_dir() / f"{name}.jsonl.gz").rows():
            case = Case(row.to_question())
            for answer in dict.fromkeys(filter(None, case.question.answers)):
                counts["answers"] += 1
                kind, spelling = _change(case, answer)
                if spelling:
                    verdict = "right" if case.type.right(answer, row.gold) else "wrong"
                    counts[f"{kind} {verdict}"] += 1
                    lines.append(f"  {kind}, {verdict}: {answer!r}, the evidence has {spelling!r} ({row.question})")
        print(f"{name}: {counts['answers']:,} answers")
        for kind in ("newly certified", "uncertified for its spelling only"):
            print(f"{kind}: {counts[f'{kind} right']} right, {counts[f'{kind} wrong']} wrong")
        print(*sorted(lines), sep="\n")


def _change(case: Case, answer: str) -> tuple[str, str | None]:
    """Return what became of an answer, and the spelling that the evidence has instead of its own."""
    certificate = case.certificate(answer)
    if certificate.certified is False:
        return "uncertified for its spelling only", other_spelling(answer, case.question.passages)
    witness = certificate.witness
    differs = witness and text_key(read_answer(witness.text)) != text_key(read_answer(answer))
    return "newly certified", witness.text if witness and differs else None


if __name__ == "__main__":
    main()
