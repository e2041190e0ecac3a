"""The programs that answer: plain DSPy predictors, as a user would write them."""

import dspy


class AnswerFromPassages(dspy.Signature):
    """Answer the question from the passages with the shortest text that answers it in full."""

    passages: str = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField(desc="a name, a date, a number, yes, no, or a few words; no sentence")


class SolveProblem(dspy.Signature):
    """Solve the problem."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField(desc="a number only")


class Reader(dspy.Module):
    """Answers a question from its passages."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(AnswerFromPassages)

    def forward(self, question: str, evidence: list[dict[str, str]]) -> dspy.Prediction:
        """Answer once."""
        passages = "\n\n".join(f"[{i}] {part['title']}: {part['text']}" for i, part in enumerate(evidence))
        return self.predict(passages=passages, question=question)


class Solver(dspy.Module):
    """Solves a problem step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.solve = dspy.ChainOfThought(SolveProblem)

    def forward(self, question: str) -> dspy.Prediction:
        """Solve once."""
        return self.solve(question=question)
