"""Loading a model shows no progress bar, hides nobody else's, and keeps back no warning."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI

pytestmark = pytest.mark.slow


@pytest.fixture
def bars() -> Iterator[Any]:
    """The bars of transformers, shown as by default; the tests of other packages may have switched them off."""
    from transformers.utils import logging

    bars: Any = logging
    shown, before = bars.is_progress_bar_enabled(), bars.set_tqdm_hook(None)
    bars.enable_progress_bar()
    yield bars
    bars.set_tqdm_hook(before)
    if not shown:
        bars.disable_progress_bar()


def test_loading_shows_no_bar_and_leaves_those_of_others(
    nli_folder: Path, capfd: pytest.CaptureFixture[str], bars: Any
) -> None:
    CrossEncoderNLI(nli_folder)
    assert "Loading" not in capfd.readouterr().err
    list(bars.tqdm([1], desc="another's"))
    assert "another's: 100%" in capfd.readouterr().err


def test_a_bar_of_another_thread_is_shown_meanwhile_and_two_may_load_at_once(
    nli_folder: Path, capfd: pytest.CaptureFixture[str], bars: Any
) -> None:
    with ThreadPoolExecutor(3) as pool:
        loads = [pool.submit(CrossEncoderNLI, nli_folder) for _ in range(2)]
        pool.submit(lambda: [list(bars.tqdm([1], desc="another's")) for _ in range(50)]).result()
        assert len({load.result().name for load in loads}) == 1
    list(bars.tqdm([1], desc="afterwards"))
    said = capfd.readouterr().err
    assert said.count("another's: 100%") >= 50 and "afterwards: 100%" in said and "Loading" not in said


def test_what_hides_bars_otherwise_does_so_afterwards(nli_folder: Path, bars: Any) -> None:
    asked = list[str]()

    def hook(bar: Any, args: Any, kwargs: Any) -> Any:
        asked.append(kwargs["desc"])
        return bar(*args, **{**kwargs, "disable": True})

    bars.set_tqdm_hook(hook)
    CrossEncoderNLI(nli_folder)
    list(bars.tqdm([1], desc="another's"))
    assert asked == ["another's"]


def test_a_release_without_the_hook_loads_and_shows_what_it_shows(
    nli_folder: Path, bars: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(bars, "set_tqdm_hook")
    assert CrossEncoderNLI(nli_folder).folder == nli_folder


def test_what_transformers_warns_of_is_heard(
    nli_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Here that weights were left over."""
    shutil.copytree(nli_folder, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({**weights, "deberta.left_over": torch.zeros(1)}, tmp_path / "model.safetensors", {"format": "pt"})
    CrossEncoderNLI(tmp_path)
    assert "deberta.left_over" in caplog.text
