"""The labels of a model are where its own configuration says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import LABELS, columns, stated_columns
from tests.refusing import refused


@pytest.mark.parametrize(
    ("id2label", "expected"),
    [
        pytest.param({0: "contradiction", 1: "entailment", 2: "neutral"}, (0, 2, 1), id="cross-encoder/nli-deberta-v3"),
        pytest.param({0: "entailment", 1: "neutral", 2: "contradiction"}, (2, 1, 0), id="MoritzLaurer/DeBERTa-v3"),
        pytest.param({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, (0, 1, 2), id="microsoft/deberta-mnli"),
    ],
)
def test_the_orders_that_are_about_are_all_read(id2label: dict[int, str], expected: tuple[int, int, int]) -> None:
    assert columns(id2label, "a model") == expected


@given(st.permutations(LABELS))
def test_any_order_is_read(order: list[str]) -> None:
    assert [order[column] for column in columns(dict(enumerate(order)), "a model")] == list(LABELS)


@pytest.mark.parametrize(
    ("labels", "stated"),
    [
        pytest.param(["LABEL_0", "LABEL_1", "LABEL_2"], "LABEL_0, LABEL_1, LABEL_2", id="no-names"),
        pytest.param(["entailment", "contradiction"], "entailment, contradiction", id="two-labels"),
        pytest.param(["entailment", "not_entailment"], "entailment, not_entailment", id="entailed-or-not"),
        pytest.param(["neutral", "entailment", "entailment"], "neutral, entailment, entailment", id="one-twice"),
        pytest.param([*LABELS, "other"], "contradiction, neutral, entailment, other", id="a-fourth"),
        pytest.param([*LABELS, "neutral"], "contradiction, neutral, entailment, neutral", id="a-fourth-that-repeats"),
        pytest.param([], "none", id="none"),
    ],
)
def test_a_model_without_exactly_the_three_labels_is_refused(labels: list[str], stated: str) -> None:
    expected = (
        rf"^model='some/model' must have exactly the labels contradiction, neutral and entailment; got {stated}\."
    )
    with pytest.raises(ArgumentError, match=expected):
        columns(dict(enumerate(labels)), "some/model")


@pytest.mark.parametrize(
    ("config", "has"),
    [
        pytest.param({"num_labels": 3}, "has no id2label", id="absent"),
        pytest.param({"label2id": {"neutral": 0}}, "has no id2label", id="the-other-way"),
        pytest.param({"id2label": None}, "has no id2label", id="null"),
        pytest.param({"id2label": {}}, "has no id2label", id="empty"),
        pytest.param([], "has no id2label", id="a-list-for-all"),
        pytest.param(
            {"id2label": list(LABELS)}, "has ['contradiction', 'neutral', 'entailment'] as id2label", id="list"
        ),
        pytest.param({"id2label": {"0": 1}}, "has {'0': 1} as id2label", id="numbers"),
        pytest.param({"id2label": {"a": "neutral"}}, "has {'a': 'neutral'} as id2label", id="no-column"),
        pytest.param({"id2label": {"1": "neutral"}}, "has {'1': 'neutral'} as id2label", id="no-first-column"),
    ],
)
def test_a_configuration_without_labels_is_refused_with_what_to_write_there(
    tmp_path: Path, config: Any, has: str
) -> None:
    """A library would fill in labels of its own, two of them, and find that the weights do not fit."""
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert refused(lambda: stated_columns(tmp_path, "some/model")) == (
        f"model='some/model' does not say which column of its output has which label: its config.json {has}, but "
        "must name contradiction, neutral and entailment. If it is a three-way NLI model, name its columns "
        'there in the order of its training, as "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}.'
    )


def test_what_the_sentence_tells_to_write_is_read(tmp_path: Path) -> None:
    text = '{"id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}}'
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert stated_columns(tmp_path, "some/model") == (0, 2, 1)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000], ids=["torn", "bytes", "deep"])
def test_a_configuration_that_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(
        ArgumentError, match=r"^model='some/model' could not be loaded from '.*': its config\.json is not"
    ):
        stated_columns(tmp_path, "some/model")
