"""Which column of a model's output is which label: taken from the model's own configuration, never assumed."""

from collections.abc import Mapping

from eldgr_dspy.errors import ArgumentError

LABELS = ("contradiction", "neutral", "entailment")
"""The order of the columns of `NLI.probabilities`."""


def columns(id2label: Mapping[int, str], model: str) -> tuple[int, int, int]:
    """Return the columns of contradiction, neutral and entailment in the output of a model.

    Models differ in their order, so it is read from `config.id2label`; case does not matter.

    Args:
        id2label: Column -> label, as the model's configuration has it.
        model: What the model is called in an error.

    Raises:
        ArgumentError: The labels are not exactly these three: one is absent, named twice, or a further one is there.
    """
    named = {label.strip().casefold(): column for column, label in sorted(id2label.items(), reverse=True)}
    if len(id2label) != len(LABELS) or set(named) != set(LABELS):
        stated = ", ".join(str(label) for _, label in sorted(id2label.items())) or "none"
        raise ArgumentError(
            f"model={model!r} has the labels {stated}, but exactly contradiction, neutral and entailment were "
            "expected; give a model trained on three-way NLI, and if this is one, name its columns under id2label in "
            "its config.json."
        )
    contradiction, neutral, entailment = (named[label] for label in LABELS)
    return contradiction, neutral, entailment
