"""What a model thought aloud is told apart from what it answered, before anything reads the answer.

A draft inside a thinking block may hold another verdict than the answer, so text of which it is unclear whether it
was thought or answered is no answer at all: what comes of it is an abstention.
"""

import json
import re

_NAMES = "think|thinking|thought|reasoning"
_OPEN = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """Return what was thought, and what was answered.

    A text that is one JSON object is an answer, whatever tags its strings quote. Otherwise the answer is what stands
    after a closing tag: the first one that one JSON object follows to the end, else the last one. An opening tag was
    not needed for that. Where a block is opened and never closed, there is no answer: the empty string.
    """
    closings = [] if _is_object(text) else list(_CLOSE.finditer(text))
    for closing in closings:
        if _is_object(text[closing.end() :]):
            return _untagged(text[: closing.start()]), text[closing.end() :].strip()
    thought, answer = (text[: closings[-1].start()], text[closings[-1].end() :]) if closings else ("", text)
    if _OPEN.search(answer) and not _is_object(answer):
        return _untagged(text), ""
    return _untagged(thought), answer.strip() if closings else answer


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _untagged(text: str) -> str:
    return _CLOSE.sub("", _OPEN.sub("", text)).strip()
