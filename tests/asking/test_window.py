"""A prompt that was cut is told from one that was read, and nothing is called cut that was not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy.programs.engines.window import counts_everything, overflow, shortfall, words_in


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ((), 0),
        (("",), 0),
        (("one two", " three "), 3),
        (("- - ** __",), 0),
        (("x=1, y=2",), 2),
        (("日本語 テスト",), 2),
    ],
)
def test_words_are_parts_with_a_letter_or_a_digit(texts: tuple[str, ...], words: int) -> None:
    assert words_in(texts) == words


@pytest.mark.parametrize(
    ("words", "num_ctx", "read", "written"),
    [
        (4097, 4096, 4096, 20),  # more words than tokens
        (4097, 4096, 2050, 20),  # cut to half, as Ollama 0.32 does
        (4097, 4096, None, None),  # and nothing is said of it
        (3000, 4096, 4096, 20),  # cut to the window
        (3000, 4096, 4095, 20),  # cut to one less
        (3000, 4096, 4096, None),
        (3000, 4096, 4000, 97),  # shifted while it wrote
        (700, 1000, 1000, 1),
    ],
)
def test_a_prompt_that_was_cut_is_seen(words: int, num_ctx: int, read: int | None, written: int | None) -> None:
    assert overflow(words, num_ctx, read, written) is not None  # hazard 82


@pytest.mark.parametrize(
    ("words", "num_ctx", "read", "written"),
    [
        (3000, 4096, 4000, 96),  # it just fits
        (3000, 4096, 12, 96),  # the rest was cached, and is not counted
        (3000, 4096, None, 500),  # all was cached
        (3000, 4096, None, None),
        (2000, 2100, 2090, 60),  # llama.cpp makes the window 2304
        (700, 1024, 900, 200),  # a model that takes pictures has 2048 at least
        (7000, 4096, 9100, 500),  # the server has a window of its own
    ],
)
def test_a_prompt_that_may_have_been_read_is_not_called_cut(
    words: int, num_ctx: int, read: int | None, written: int | None
) -> None:
    assert overflow(words, num_ctx, read, written) is None


@pytest.mark.parametrize(
    ("model", "cut"), [("gpt-oss:20b", False), ("hf.co/a/Qwen3-VL-8B-GGUF:Q4_K_M", False), ("deepseek-r1:7b", True)]
)
def test_a_model_that_ollama_gives_more_than_was_asked_for_is_not_called_cut(model: str, cut: bool) -> None:
    assert (overflow(2000, 4096, 3000, 2000, model) is not None) is cut


@given(st.integers(0, 9000), st.floats(1, 4), st.integers(1, 40).map(lambda n: n * 256), st.integers(0, 500), st.data())
def test_a_prompt_that_fits_is_never_called_cut(
    words: int, per_word: float, num_ctx: int, written: int, data: st.DataObject
) -> None:
    """Whatever share of it the server had cached, and whether or not it counts that."""
    tokens = int(words * per_word) + 8  # a template adds some
    assume(tokens + written <= num_ctx and tokens < num_ctx - 1)
    counted = tokens - data.draw(st.integers(0, tokens))
    assert overflow(words, num_ctx, counted or None, written) is None
    assert shortfall(words, tokens) is None


def test_fewer_tokens_than_words_are_a_shortfall_where_the_server_says_how_many() -> None:
    assert shortfall(900, 520) is not None  # messages were dropped, or the window is smaller than asked for
    assert shortfall(900, 900) is None
    assert shortfall(900, None) is None
    assert shortfall(900, 0) is None


@pytest.mark.parametrize("version", ["0.12.3", "v0.5.0", "0.31.0-rc1", "1.0.0"])
def test_most_versions_count_cached_tokens_with_the_others(version: str) -> None:
    assert counts_everything(version)


@pytest.mark.parametrize("version", ["0.30.2", "0.3.14", "0.0.0", "", None, "nightly"])
def test_versions_that_leave_cached_tokens_out_or_are_unknown_are_no_evidence(version: str | None) -> None:
    assert not counts_everything(version)
