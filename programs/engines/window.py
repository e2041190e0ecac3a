"""Find out whether a server read the whole prompt from its counts: Ollama silently drops what does not fit.

Depending on its version, Ollama cuts a prompt that is too long down to `num_ctx` tokens, to one less, or to half of
them; drops the oldest messages; drops the first half while it writes; or refuses with an error. It counts what is left.

Each rule here is certain, so that there are no false alarms. Words are parts between white space that have a letter or
a digit; a tokenizer makes at least one token of each.

1. More words were sent than the window has tokens.
2. The server read as many tokens as the window holds, or one less: there was no room for a reply.
3. Prompt and reply together are more than the window, which llama.cpp makes a multiple of 256: it was shifted. Ollama
   gives some models a larger window than was asked for; see `largest_window`.
4. The server read fewer tokens than words were sent. This is not certain if a server does not count what it had
   cached, as Ollama did before 0.4 and in 0.30; see `counts_everything`.

If the server read more tokens than `num_ctx`, its window has another size, and rules 1 to 3 do not apply. Two things
stay unnoticed: a cut of fewer tokens than a prompt has more of than words, and most cuts of scripts without spaces.
"""

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.")
_PADDING = 256
_LEAST = 2048  # of a model that takes pictures; its name does not say so
_WIDE, _LEAST_OF_WIDE = re.compile(r"gpt-?oss|qwen3-?vl", re.IGNORECASE), 8192


def words_in(texts: Iterable[str]) -> int:
    """Return how many words the texts have; they have at least as many tokens."""
    return sum(1 for text in texts for part in text.split() if _WORD.search(part))


def largest_window(num_ctx: int, model: str) -> int:
    """Return the tokens of the largest window that Ollama gives a model when asked for `num_ctx`."""
    least = _LEAST_OF_WIDE if _WIDE.search(model) else _LEAST
    return max(least, -(-num_ctx // _PADDING) * _PADDING)


def overflow(words: int, num_ctx: int, read: int | None, written: int | None, model: str = "") -> str | None:
    """Return why part of a prompt was not read, by rules 1 to 3; None if no rule applies.

    Args:
        words: How many words were sent.
        num_ctx: How many tokens the window was asked to have.
        read: How many prompt tokens the server counts, None if it does not say.
        written: How many tokens it wrote, None if it does not say.
        model: The model's name at the server.
    """
    if read is not None and read > num_ctx:
        return None
    if words > num_ctx:
        return f"{words} words were sent, and num_ctx={num_ctx} tokens is less than that"
    if read is not None and read >= num_ctx - 1:
        return f"{read} tokens were read, which is all of num_ctx={num_ctx}"
    if read is not None and written is not None and read + written > largest_window(num_ctx, model):
        return f"{read} tokens were read and {written} written, which is more than num_ctx={num_ctx}"
    return None


def shortfall(words: int, read: int | None) -> str | None:
    """Return why part of a prompt was not read, by rule 4; None if it does not apply."""
    return f"{words} words were sent, and {read} tokens were read" if read and read < words else None


def counts_everything(version: str | None) -> bool:
    """Return whether an Ollama of this version counts cached prompt tokens with the others; False if unknown."""
    match = _VERSION.match(version or "")
    return match is not None and (number := (int(match[1]), int(match[2]))) >= (0, 4) and number != (0, 30)
