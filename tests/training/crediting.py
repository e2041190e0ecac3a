"""A trainer of TRL that samples what a test says, and a scorer that knows which step is right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.channels.table import StepTable, score_steps
from eldgr_dspy.training import StepCreditGRPOTrainer, StepReward
from tests.training.calling import UNMEASURED
from tests.training.training_on import ROWS, trainer

RIGHT, WRONG = "The host was Qatar.", "The capital of Qatar is Dubai."
BOTH, TURNED = f"{RIGHT}\n{WRONG}\nA: Dubai", f"{WRONG}\n{RIGHT}\nA: Dubai"


class Knows:
    """A scorer that knows which step is right."""

    def __init__(self, unmeasured: bool = False) -> None:
        self.unmeasured = unmeasured

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        return [self._table(one.text) for one in reasonings]

    def _table(self, text: str) -> StepTable:
        spans = split_steps(text).spans
        right = [UNMEASURED if self.unmeasured else float("Dubai" not in text[slice(*span)]) for span in spans]
        return StepTable(text, spans, score_steps({"logic": right, "fact": right, "info": right}))


def toy(folder: Path, texts: Sequence[str], *, of: Any = StepCreditGRPOTrainer, **settings: Any) -> Any:
    """A trainer that samples these completions of one question, and has no other reward than that of the steps."""
    scorer = Knows(settings.pop("unmeasured", False))
    size = len(texts)
    arguments = {"num_generations": size, "per_device_train_batch_size": size, "max_steps": 1}
    made = trainer([StepReward(scorer, confidence=False)], folder, of=of, rows=ROWS[:1], **{**arguments, **settings})
    ids = [made.processing_class(text + made.processing_class.eos_token).input_ids for text in texts]
    made._generate_single_turn = lambda *_: (ids, None)
    made.model.train()
    made.current_gradient_accumulation_steps = 1  # which TRL sets as a training begins
    return made


def scored(made: Any, n: int) -> Any:
    return made._generate_and_score_completions([ROWS[0]] * n)
