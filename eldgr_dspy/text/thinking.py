"""Separate what a model thought aloud from what it answered, before anything reads the answer.

A draft in the thinking may be another answer or another verdict. The tags are those of the families in use, in any
case. A template may have put the opening one in the prompt, so that only the closing one is in the text. Thinking that
never ends leaves no answer. A tag in backticks is mentioned, not used.
"""

import json
import re
from typing import NamedTuple

_NAMES = "think(?:ing)?|thoughts?|analysis|reason(?:ing)?|reflection|scratchpad|inner_monologue|antthinking|seed:think"
_CHANNEL = r"<\|channel\|>\s*+(?:{})\b[^<>]{{0,80}}+(?:<\|constrain\|>\s*+\w++\s*+)?<\|message\|>"
_TAG = re.compile(
    rf"""(?P<open> (?:\\?<\|?|&lt;)(?:{_NAMES})(?:\s[^<>]{{0,200}})?(?<!/)(?:\|?\\?>|&gt;)
      | \[(?:think(?:ing)?|reasoning)\] | ◁think▷
      | <\|begin_of_thought\|> | <\|START_THINKING\|> | <\|channel>thought\b | <unused94>(?:thought\b)?
      | {_CHANNEL.format("analysis|commentary")} | (?-i:\Aanalysis(?=[A-Z])) | \AHere\ is\ my\ thought\ process: )
    | (?:\\?<\|?|&lt;)/\s?(?:{_NAMES})\s*+(?:\|?\\?>|&gt;) | \[/(?:think(?:ing)?|reasoning)\] | ◁/think▷
    | <\|end_of_thought\|> | <\|END_THINKING\|> | <channel\|> | <unused95>
    | {_CHANNEL.format("final")} | (?-i:assistantfinal(?=\S)) | \bHere\ is\ my\ response:""",
    re.VERBOSE | re.IGNORECASE,
)
_MAY_THINK = re.compile(r"[<\[◁&](?:(?<=<)[/|A-Za-z]|(?<=\[)/?(?:[Tt][Hh]|[Rr][Ee])|(?<=&)lt|(?<=◁))").search


class Thinking(NamedTuple):
    """The places of a text's tags and of its `parts` that are not thinking; `is_open` if the thinking never ends."""

    tags: list[tuple[int, int]]
    parts: list[tuple[int, int]]
    is_open: bool


def may_think(text: str) -> bool:
    """Return whether a text may have a tag. This is a quick test."""
    return _MAY_THINK(text) is not None or text.startswith(("analysis", "Here is my thought"))


def find_thinking(text: str, *, inside: bool = False) -> Thinking:
    """Return where a text thinks; `inside` says that the prompt has opened the thinking."""
    # A text that is one JSON object does not think, whatever tags its strings quote, nor does one at the end of a text,
    # behind a closing tag.
    tags, parts, start, is_open = list[tuple[int, int]](), list[tuple[int, int]](), 0, inside
    for tag in _TAG.finditer(text) if may_think(text) and not _is_object(text) else ():
        if text[tag.start() - 1 : tag.start()] == text[tag.end() : tag.end() + 1] == "`":
            continue
        if tag["open"] and not is_open and text[start : tag.start()].strip():
            parts.append((start, tag.start()))
        elif not tag["open"] and not is_open:
            parts.clear()  # the thinking began before the text
        tags.append(tag.span())
        is_open, start = tag["open"] is not None, tag.end()
        if not is_open and _is_object(text[start:]):
            break
    if not is_open and text[start:].strip():
        parts.append((start, len(text)))
    return Thinking(tags, parts, is_open)


def split_thinking(text: str) -> tuple[str, str]:
    """Return a reply's thinking, without tags, and the answer after the last tag, '' if the thinking never ends."""
    tags, _, is_open = find_thinking(text)
    # A text whose first tag closes what it did not open is left as it is, and adapters refuse it: a candidate that
    # quotes the tag could otherwise write a verdict.
    if not tags or is_unopened(text):
        return "", text
    end = len(text) if is_open else tags[-1][1]
    edges = [0, *(edge for tag in tags for edge in tag), end]
    thought = "".join(text[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))
    return thought.strip(), text[end:].strip()


def is_unopened(text: str) -> bool:
    """Return whether the first tag of a text closes thinking that it did not open."""
    tags = () if _is_object(text) else _TAG.finditer(text)
    first = next((tag for tag in tags if tag["open"] or "/" in tag[0]), None)
    return first is not None and first["open"] is None


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
