"""The labels of a model are where its own configuration says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import LABELS, stated_columns
from tests.refusing import refused


def columns(config: Any, folder: Path) -> tuple[int, int, int]:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return stated_columns(folder, "some/model")


@given(order=st.permutations(LABELS), spelt=st.sampled_from((str.lower, str.upper)))
@example(order=["contradiction", "entailment", "neutral"], spelt=str.lower)  # cross-encoder/nli-deberta-v3
@example(order=["entailment", "neutral", "contradiction"], spelt=str.lower)  # MoritzLaurer/DeBERTa-v3
@example(order=["contradiction", "neutral", "entailment"], spelt=str.upper)  # microsoft/deberta-mnli
def test_any_order_is_read(order: list[str], spelt: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    result = columns({"id2label": dict(enumerate(map(spelt, order)))}, tmp_path_factory.getbasetemp())
    assert [order[column] for column in result] == list(LABELS)


@pytest.mark.parametrize(
    "config",
    [
        {"id2label": dict(enumerate(labels))}
        for labels in (
            ["LABEL_0", "LABEL_1", "LABEL_2"],
            ["entailment", "contradiction"],
            ["entailment", "not_entailment"],
            ["neutral", "entailment", "entailment"],
            [*LABELS, "other"],
            [*LABELS, "neutral"],
            [],
        )
    ]
    + [
        {"num_labels": 3},
        {"label2id": {"neutral": 0}},
        {"id2label": None},
        [],
        {"id2label": list(LABELS)},
        {"id2label": {"0": 1}},
        {"id2label": {"a": "neutral", "b": "entailment", "c": "contradiction"}},
        {"id2label": {"1": "neutral", "2": "entailment", "3": "contradiction"}},
    ],
    ids=repr,
)
def test_a_model_without_exactly_the_three_labels_is_refused_with_what_to_write(config: Any, tmp_path: Path) -> None:
    """A library would fill in labels of its own, two of them, and find that the weights do not fit."""
    plain = json.loads(json.dumps(config))
    stated = plain.get("id2label") if isinstance(plain, dict) else None
    assert refused(lambda: columns(config, tmp_path)) == (
        "model='some/model' must have exactly the labels contradiction, neutral and entailment; its config.json has "
        f"{stated!r:.120} as id2label. If it is a three-way NLI model, name its columns there in the order of its "
        'training, as "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}.'
    )


def test_what_the_sentence_says_to_write_is_read(tmp_path: Path) -> None:
    labels = refused(lambda: columns([], tmp_path)).partition('"id2label": ')[2].removesuffix(".")
    assert columns({"id2label": json.loads(labels)}, tmp_path) == (0, 2, 1)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000], ids=["torn", "bytes", "deep"])
def test_a_configuration_that_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(
        ArgumentError, match=r"^model='some/model' could not be loaded from '.*': its config\.json is not"
    ):
        stated_columns(tmp_path, "some/model")
