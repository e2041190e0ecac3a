"""Count what a free-text question asks an NLI model, and time everything but the model.

    python -m benchmarks.free_text

The questions are random words, shaped as in HotpotQA: ten passages of four sentences. Eight candidates give five
different answers of one to four sentences of the passages, and a repairer gives another. The model says nothing of use
at once, so the processor time is ours: windows, claims, hard keys, classes and certificates.
"""

from collections.abc import Sequence
from random import Random
from statistics import median
from time import process_time

from eldgr_dspy.answer_types.entailment.readings import Pair
from eldgr_dspy.answer_types.free_text import FreeText
from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Passage
from eldgr_dspy.questions import Question

QUESTIONS, PASSAGES, SENTENCES = 100, 10, 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Silent:
    """An NLI model that finds nothing in any pair but one of a text with itself; it counts what it is asked."""

    name = "silent"

    def __init__(self) -> None:
        """Start counting."""
        self.batches: list[int] = []

    def probabilities(self, pairs: Sequence[Pair]) -> list[tuple[float, float, float]]:
        """Return neutral, or entailment."""
        self.batches.append(len(pairs))
        return [(0.0, 0.0, 1.0) if premise == hypothesis else (0.0, 1.0, 0.0) for premise, hypothesis in pairs]


def sentence(drawn: Random) -> str:
    """Return a sentence with a name and sometimes a number."""
    words = ["".join(drawn.choices(LETTERS, k=drawn.randint(2, 9))) for _ in range(drawn.randint(8, 24))]
    words[drawn.randrange(1, len(words))] = "".join(drawn.choices(LETTERS, k=6)).title()
    if drawn.random() < 0.4:
        words[-1] = str(drawn.randint(1, 2020))
    return f"{' '.join(words).capitalize()}."


def asked(drawn: Random, kind: FreeText, passages: int = PASSAGES) -> tuple[Question, str]:
    """Return a question with its pool, and a repair."""
    evidence = [[sentence(drawn) for _ in range(SENTENCES)] for _ in range(passages)]
    told = [one for text in evidence for one in text]
    answers = [" ".join(drawn.sample(told, drawn.randint(1, 4))) for _ in range(6)]
    pool = tuple(drawn.choices(answers[:5], k=8))
    texts = tuple(Passage("A title", " ".join(text)) for text in evidence)
    return Question(f"Who {sentence(drawn)[:-1]}?", kind.name, pool, passages=texts, kind=kind), answers[5]


def decide(question: Question, repair: str) -> None:
    """Ask what a rule may ask of a case."""
    case = Case(question)
    for answer in (*question.answers, repair):
        case.certified(answer)
    case.rival()


def main() -> None:
    """Print the counts and the times of ordinary questions, and of one with 10,000 passages."""
    for name, n, passages in (("ten passages", QUESTIONS, PASSAGES), ("10,000 passages", 1, 10_000)):
        drawn, seconds, nli = Random(0), list[float](), Silent()
        calls = list[int]()
        for _ in range(n):
            question, repair = asked(drawn, FreeText(nli), passages)
            began, before = process_time(), len(nli.batches)
            decide(question, repair)
            seconds.append(process_time() - began)
            calls.append(len(nli.batches) - before)
        pool, second = median(nli.batches[::2]), median(nli.batches[1::2])
        print(
            f"{name:16} {max(calls)} calls at most, {pool:g} pairs for the pool and {second:g} for a repair (medians)"
        )
        print(f"{'':16} {1e3 * median(seconds):.1f} ms of processor a question apart from the model")


if __name__ == "__main__":
    main()
