"""The labels of a model are where its own configuration says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import LABELS, columns


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
