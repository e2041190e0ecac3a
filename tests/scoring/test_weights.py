"""A model is found where it lies or missed in one sentence; its labels are where its own configuration says."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import DEFAULT, LABELS, CrossEncoderNLI, stated_columns
from eldgr_dspy.programs.scoring.weights import commit_of, find_model, revision_of
from tests.case_tables import each_case
from tests.refusing import refusal, refuses

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def model_at(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names or ("config.json", "model.safetensors"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def is_one_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message and ". " not in message


def test_a_folder_is_found_by_its_path_and_a_digest_tells_files_apart_by_content_and_by_name(tmp_path: Path) -> None:
    folder = model_at(tmp_path / "nli")
    assert find_model(folder) == find_model(str(folder)) == folder
    before = revision_of(folder)
    assert before == revision_of(folder)
    (folder / "config.json").write_text("changed", encoding="utf-8")
    after = revision_of(folder)
    (folder / "config.json").rename(folder / "other.json")
    assert len({before, after, revision_of(folder)}) == 3


def no_network(*_: Any, **__: Any) -> None:
    raise AssertionError("the network was used")


def test_a_whole_model_in_the_cache_needs_no_network_and_a_part_is_fetched(cache: Path, monkeypatch: Any) -> None:
    """A network that accepts a call and never answers would stop the start of every run."""
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", no_network)
    here = cache / "models--some--model"
    folder = model_at(here / "snapshots" / COMMIT)
    (here / "refs").mkdir()
    (here / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    assert find_model("some/model") == folder
    assert revision_of(folder) == COMMIT[:12] and commit_of(folder) == COMMIT
    assert find_model("some/model", commit_of(folder)) == folder
    model_at(cache / "models--part--model" / "snapshots" / COMMIT, "config.json")
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_tree", no_network)
    refuses(AssertionError, "the network was used", find_model, "part/model", COMMIT)


def test_a_model_that_is_not_on_the_disk_is_missed_in_one_sentence_with_its_revision(cache: Path) -> None:
    message = refusal(CrossEncoderNLI)
    assert message == (
        f"model='{DEFAULT}' is not on this disk and could not be fetched; where there is a network, run `hf download "
        f"{DEFAULT} --exclude '*/*' --exclude '*.bin' --local-dir nli`, bring the folder nli here, and give its path."
    )
    assert is_one_sentence(message)
    refuses(ArgumentError, r"hf download some/model --revision v2 --exclude", find_model, "some/model", "v2")


@pytest.mark.parametrize("switch", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}], ids=str)
def test_without_a_network_the_sentence_comes_within_seconds(tmp_path: Path, switch: dict[str, str]) -> None:
    """The Hub's own retries are what could take long; a minute leaves room for a machine that is busy."""
    script = (
        "from eldgr_dspy.errors import ArgumentError\n"
        "from eldgr_dspy.programs.scoring.nli import load_nli\n"
        "try:\n    load_nli()\nexcept ArgumentError as error:\n    print(error)"
    )
    start = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env={"HF_HOME": str(tmp_path), "PATH": "", **switch},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert time.monotonic() - start < 60
    assert result.stdout.startswith(f"model='{DEFAULT}' is not on this disk") and is_one_sentence(result.stdout.strip())


@each_case("scoring", "partial models")
def test_a_folder_without_a_whole_model_is_refused(tmp_path: Path, names: list[str], lacking: str) -> None:
    """A .bin file is a pickle, which is not read."""
    folder = model_at(tmp_path / "nli", *names)
    refuses(ArgumentError, rf"which has no {lacking}; give a folder that holds a whole model", find_model, folder)


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


@each_case("scoring", "refused labels")
def test_a_model_without_exactly_the_three_labels_is_refused_with_what_to_write(config: Any, tmp_path: Path) -> None:
    """A library would fill in labels of its own, two of them, and find that the weights do not fit."""
    plain = json.loads(json.dumps(config))
    labels = plain.get("id2label") if isinstance(plain, dict) else None
    assert refusal(lambda: columns(config, tmp_path)) == (
        "model='some/model' must have exactly the labels contradiction, neutral and entailment; its config.json has "
        f"{labels!r:.120} as id2label. If it is a three-way NLI model, name its columns there in the order of its "
        'training, as "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}.'
    )


def test_what_the_sentence_says_to_write_is_read(tmp_path: Path) -> None:
    labels = refusal(lambda: columns([], tmp_path)).partition('"id2label": ')[2].removesuffix(".")
    assert columns({"id2label": json.loads(labels)}, tmp_path) == (0, 2, 1)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000], ids=["torn", "bytes", "deep"])
def test_a_configuration_that_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    message = r"^model='some/model' could not be loaded from '.*': its config\.json is not"
    refuses(ArgumentError, message, stated_columns, tmp_path, "some/model")
