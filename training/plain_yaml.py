"""A recipe as its file looks: what YAML would read otherwise is refused with the line, before anything else reads it.

Version 1.1 of YAML, which TRL reads, takes `no` for false, 010 for 8, 1:30 for 90 and 2024-01-02 for a day; the later
of two equal fields replaces the earlier; and aliases make of 430 bytes a list of a billion.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.errors import ArgumentError, brief

LONGEST: Final = 2**20
"""Bytes of a recipe at most."""

_TAG: Final = "tag:yaml.org,2002:"


def require_plain(path: Path) -> None:
    """Refuse a file of YAML that says something else than it looks.

    Raises:
        ArgumentError: With the line, and what to write: it is no YAML, or too long; it has an alias or a tag; a field
            stands in it twice; or a value is no number, word or text of JSON and would be read as something else.
    """
    tokens, tree = _parsed(path)
    for token in tokens:
        if token.id == "<alias>":
            raise ArgumentError(f"{_place(path, token)}: *{token.value} stands for what is elsewhere; write it out.")
        if token.id == "<tag>":
            raise ArgumentError(f"{_place(path, token)}: ! begins a tag, which is never read; put it in quotes.")
    for node in _nodes(tree):
        _require_as_it_looks(path, node)


def _parsed(path: Path) -> tuple[list[Any], Any]:
    """The tokens of a file and the tree of its nodes, of which an alias is the node that it stands for."""
    import yaml

    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) <= LONGEST:
            text = data.decode("utf-8")
            return [*yaml.scan(text, Loader=yaml.SafeLoader)], yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise ArgumentError(f"{path}: cannot be read as YAML ({brief(said)}); mend it or give another file.") from error
    raise ArgumentError(f"{path}: is longer than {LONGEST:,} bytes, so that it is no recipe; give another file.")


def _nodes(tree: Any) -> Iterator[Any]:
    """Every node below the first, and that itself; there are no aliases any more, so that none comes twice."""
    left = [tree] if tree is not None else []
    while left:
        node = left.pop()
        yield node
        if node.id == "mapping":
            left += [one for pair in node.value for one in pair]
        elif node.id == "sequence":
            left += node.value


def _require_as_it_looks(path: Path, node: Any) -> None:
    if node.id == "mapping":
        names = set[str]()
        for name, _ in node.value:
            if str(name.value) in names:
                raise ArgumentError(f"{_place(path, name)}: {name.value!r:.80} stands here twice; keep one of them.")
            names.add(str(name.value))
    elif node.id == "scalar" and node.style is None and not _is_plain(node):
        raise ArgumentError(
            f"{_place(path, node)}: {node.value!s:.80} is read as {_read(node)!s:.80}; put it in quotes if it is text, "
            "else write it as JSON has it."
        )


def _is_plain(node: Any) -> bool:
    """Whether a scalar without quotes is the text that it looks, or what it is in JSON."""
    if node.tag == f"{_TAG}str" or (node.tag == f"{_TAG}null" and node.value in ("", "~", "null")):
        return True
    try:
        return bool(json.loads(node.value.lower()) == _read(node))
    except ValueError:
        return False


def _read(node: Any) -> Any:
    import yaml

    return yaml.safe_load(node.value)


def _place(path: Path, marked: Any) -> str:
    return f"{path}, line {marked.start_mark.line + 1}"
