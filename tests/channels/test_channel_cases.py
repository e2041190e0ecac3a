"""What functions of channels and steps return, and what they refuse in which sentence; `cases.json` has the cases."""

from collections.abc import Callable
from typing import Any

from eldgr_dspy import channels
from eldgr_dspy.channels import CHANNELS, PAPER, Grounding, Scores, StepTable, Undefined, Weighting
from eldgr_dspy.channels.blocks import blocks
from eldgr_dspy.channels.claims import claims_of
from eldgr_dspy.channels.counterfactuals import counterfactual
from eldgr_dspy.channels.overlap import new_unsupported, novelty, progress, units
from eldgr_dspy.channels.steps import split_steps, unmeasurable
from eldgr_dspy.text.sentence_ends import sentence_starts, sentences
from eldgr_dspy.words import READINGS
from tests.case_tables import agrees, each_case
from tests.refusing import refusal, says


def spans(values: list[list[int]], steps: int) -> StepTable:
    of = channels.score_steps({"logic": [1] * steps})
    return StepTable("a text", tuple((start, end) for start, end in values), of)


CALLS: dict[str, Callable[..., Any]] = {
    **{name: getattr(channels, name) for name in ("conflated", "unsupported_rate", "f_nli", "triang", "minimality")},
    **{name: getattr(channels, name) for name in ("info", "step_reward", "completion_reward")},
    "variance_decomposition": channels.variance_decomposition,
    "Weighting": Weighting,
    "without": PAPER.without,
    "Grounding.of": Grounding.of,
    "renumber": lambda rows, documents: Grounding.of(rows).renumber(documents),
    "new_unsupported": new_unsupported,
    "split_steps": split_steps,
    "spans of a StepTable": spans,
}
STEPS: dict[str, Callable[..., Any]] = {
    "claims_of": claims_of,
    "counterfactual": lambda *inputs: (change := counterfactual(*inputs)) and (change.text, change.kind),
    "readings of f_nli": lambda row: [channels.f_nli([row], reading)[0] for reading in READINGS],
    "split_steps": lambda text: ((split := split_steps(text)).by, [step.content for step in split.steps]),
    "answer line": lambda text: (answer := split_steps(text).answer) and answer.text,
    "blocks": blocks, "sentences": sentences, "sentence_starts": sentence_starts, "unmeasurable": unmeasurable,
    "units": units, "novelty": novelty, "progress": progress, "unsupported_rate": channels.unsupported_rate,
}  # fmt: skip
STEPS |= {name: getattr(channels, name) for name in ("logic", "fact", "epist", "adv", "gate", "weighted_mean")}
WORDS: dict[str, Callable[..., Any]] = {"float": float, "Undefined": Undefined, "scores": lambda *of: Scores.of(of)}
WORDS |= {"grounding": lambda *of: Grounding.of(of)}
WORDS |= {"every channel": lambda *column: {key: [*column] for key in CHANNELS}}
WORDS |= {"and": lambda *parts: {name: column for part in parts for name, column in part.items()}}


@each_case("channels", "refusals", **WORDS)
def test_each_refusal_is_its_sentence(call: str, arguments: list[Any], sentence: str) -> None:
    assert says(sentence, refusal(lambda: CALLS[call](*arguments)))


@each_case("channels", "results", **WORDS)
def test_each_result_is_that_of_its_case(call: str, arguments: list[Any], result: Any) -> None:
    assert agrees((CALLS | STEPS)[call](*arguments), result)
