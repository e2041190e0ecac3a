"""Separate what a model thought aloud from what it answered, before anything reads the answer.

A draft inside a thinking block may hold another verdict than the answer. If it is unclear whether a text was thought
or answered, it does not count as an answer, and the role abstains. So a closing tag without an opening one is left in
the text, where an adapter refuses it: a candidate that quotes the tag could otherwise write a verdict.
"""

import json
import re

_NAMES = "think|thinking|thought|reasoning"
_OPEN = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking and the answer.

    A text that is one JSON object is an answer, whatever tags its strings quote. Otherwise the answer is the text after
    a closing tag: the first one that one JSON object follows to the end, else the last one. If a block is opened and
    never closed, there is no answer: the empty string. If one is closed that was not opened, the text is left whole.
    """
    if is_unopened(text):
        return "", text
    closings = [] if _is_object(text) else list(_CLOSE.finditer(text))
    for closing in closings:
        if _is_object(text[closing.end() :]):
            return _untagged(text[: closing.start()]), text[closing.end() :].strip()
    thought, answer = (text[: closings[-1].start()], text[closings[-1].end() :]) if closings else ("", text)
    if _OPEN.search(answer) and not _is_object(answer):
        return _untagged(text), ""
    return _untagged(thought), answer.strip() if closings else answer


def is_unopened(text: str) -> bool:
    """Return whether the first tag of a text closes a thinking block that it did not open."""
    closing = _CLOSE.search(text)
    return closing is not None and not _OPEN.search(text, 0, closing.start())


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _untagged(text: str) -> str:
    return _CLOSE.sub("", _OPEN.sub("", text)).strip()
