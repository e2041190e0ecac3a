r"""Find code fences and LaTeX blocks in a text, which must not be cut and have no words.

It knows ``` and ~~~ fences, `\[...\]`, `\(...\)`, `$$...$$` and `\begin{x}...\end{x}`. An open fence runs to the end of
the text, as in Markdown; open LaTeX is not a block. Inline `$...$` is ignored: a dollar sign is money more often.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from itertools import chain

_TOKEN = re.compile(
    r"""^[ \t]{0,3}(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)
    | (?P<slashes> \\\\ )
    | (?P<dollars> \$\$ )
    | \\(?P<open> [\[(] ) | \\(?P<close> [\])] )
    | \\begin\{(?P<begin> [A-Za-z*]{1,30} )\} | \\end\{(?P<end> [A-Za-z*]{1,30} )\}""",
    re.VERBOSE | re.MULTILINE,
)
_CLOSES = {"[": "]", "(": ")"}


def blocks(text: str) -> list[tuple[int, int]]:
    """Return start and end of each block, in order and without overlap. Linear, apart from a binary search."""
    tokens = [match for match in _TOKEN.finditer(text) if match["slashes"] is None]
    closers: dict[str, list[int]] = defaultdict(list)  # closing sign -> its tokens
    for at, token in enumerate(tokens):
        for name in _closes(token):
            closers[name].append(at)
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        if (closer := _closer(token)) is None:
            continue
        places = closers[closer]
        if (following := bisect_left(places, at)) < len(places):
            spans.append((token.start(), tokens[places[following]].end()))
            at = places[following] + 1
        elif token["fence"]:
            spans.append((token.start(), len(text)))
            break
    return spans


def outside(text: str) -> list[str]:
    """Return the stretches of a text outside of its blocks, in order."""
    edges = [0, *chain.from_iterable(blocks(text)), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _closes(token: re.Match[str]) -> list[str]:
    """The signs that a token may close. A fence closes one of its own sign that is not longer."""
    if token["fence"]:
        return [token["fence"][0] * n for n in range(3, min(len(token["fence"]), 12) + 1)]
    if token["dollars"]:
        return ["$$"]
    return [token["close"]] if token["close"] else [f"end {token['end']}"] if token["end"] else []


def _closer(token: re.Match[str]) -> str | None:
    """The sign that closes the block that a token opens; None if it does not open one."""
    if token["fence"]:
        return token["fence"][:12]
    if token["dollars"]:
        return "$$"
    if token["open"]:
        return _CLOSES[token["open"]]
    return f"end {token['begin']}" if token["begin"] else None
