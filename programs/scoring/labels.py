"""Which column of a model's output has which label: read from the model's own configuration, never assumed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.file_limits import document, parsed_json

LABELS = ("contradiction", "neutral", "entailment")
"""The order of the columns of `NLI.probabilities`."""


def columns(id2label: Mapping[int, str], model: str) -> tuple[int, int, int]:
    """Return the columns of contradiction, neutral and entailment in the output of a model.

    Models differ in their order, so it is read from `config.id2label`; case does not matter.

    Args:
        id2label: Column -> label, as in the model's configuration.
        model: The name of the model in an error.

    Raises:
        ArgumentError: The labels are not exactly these three: one is absent, named twice, or there is another one.
    """
    named = {label.strip().casefold(): column for column, label in sorted(id2label.items(), reverse=True)}
    if len(id2label) != len(LABELS) or set(named) != set(LABELS):
        names = ", ".join(str(label) for _, label in sorted(id2label.items())) or "none"
        raise ArgumentError(
            f"model={model!r} must have exactly the labels contradiction, neutral and entailment; got {names}. "
            "Give a model trained on three-way NLI; if this is one, name its columns under id2label in "
            "its config.json."
        )
    contradiction, neutral, entailment = (named[label] for label in LABELS)
    return contradiction, neutral, entailment


def stated_columns(folder: Path, model: str) -> tuple[int, int, int]:
    """Return the columns of the three labels as the config.json of a model's folder states them.

    The file is read directly: a library makes up labels if it states none.

    Raises:
        ArgumentError: It is not JSON, does not say which column has which label, or names labels other than the three.
    """
    try:
        config = parsed_json(document(folder / "config.json"), str(folder / "config.json"))
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"model={model!r} could not be loaded from {str(folder)!r}: its config.json is not JSON ({error})."
        ) from error
    labels = config.get("id2label") if isinstance(config, dict) else None
    if not _names_columns(labels):
        has = f"has {labels!r:.80} as id2label" if labels else "has no id2label"
        raise ArgumentError(
            f"model={model!r} does not say which column of its output has which label: its config.json {has}, but "
            "must name contradiction, neutral and entailment. If it is a three-way NLI model, name its "
            'columns there in the order of its training, as "id2label": '
            '{"0": "contradiction", "1": "entailment", "2": "neutral"}.'
        )
    return columns({int(column): label for column, label in labels.items()}, model)


def _names_columns(labels: Any) -> TypeGuard[dict[str, str]]:
    """Return whether this is an object with a text for each column, counted from 0."""
    if not isinstance(labels, dict) or not labels or not all(isinstance(label, str) for label in labels.values()):
        return False
    return set(labels) == set(map(str, range(len(labels))))
