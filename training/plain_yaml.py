"""A recipe means what it looks like: TRL reads YAML 1.1, where `no` is false, 010 is 8, 1:30 is 90, a date is a day."""

import json
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError, brief


def require_plain(path: Path) -> None:
    """Refuse a recipe that YAML would read differently from its looks.

    Raises:
        ArgumentError: It is not YAML; it has an alias, an unknown tag, or a field twice; or a value without quotes is
            read as something other than text, and is not JSON. The message has the line.
    """
    import yaml

    class Strict(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise _marked(self.peek_event(), "an alias; write out what it stands for")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names: list[Any] = []
            for name, _ in node.value:
                if name.value in names:
                    raise _marked(name, f"{name.value!r:.80} is there twice; keep one of them")
                names.append(name.value)
            return super().construct_mapping(node, deep)

    for kind in ("bool", "int", "float", "timestamp"):
        Strict.add_constructor(f"tag:yaml.org,2002:{kind}", _as_json)
    try:
        yaml.load(path.read_text(encoding="utf-8"), Loader=Strict)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        mark, said = (
            getattr(error, "problem_mark", None),
            getattr(error, "problem", None) or " ".join(str(error).split()),
        )
        line = f", line {mark.line + 1}" if mark else ""
        raise ArgumentError(
            f"{path}{line}: cannot be read ({brief(said)}); fix the file or give another one."
        ) from error


def _as_json(_: Any, node: Any) -> Any:
    try:
        return json.loads(node.value.lower())
    except ValueError:
        raise _marked(node, f"{node.value!r:.80} is neither in quotes nor written as in JSON") from None


def _marked(node: Any, problem: str) -> Exception:
    import yaml

    error: Exception = yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return error
