"""Changes of the rule, each one exact replacement in the text of `eldgr_dspy.decision`, which `plants.toml` lists."""

import inspect
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from eldgr_dspy import decision

SOURCE = inspect.getsource(decision)
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@dataclass(frozen=True)
class Plant:
    """One change: `was` stands in the source exactly once, and what `becomes` of it breaks `breaks`."""

    name: str
    was: str
    becomes: str
    breaks: str = ""


def plants(*groups: str) -> list[Plant]:
    return [
        Plant(**{key: _whole(text) for key, text in one.items()}) for name in groups for one in TABLE["plants"][name]
    ]


def _whole(text: str) -> str:
    for name, block in TABLE["blocks"].items():
        text = text.replace(f"<{name}>", block)
    return text


def apply(plant: Plant, source: str = SOURCE) -> str:
    assert source.count(plant.was) == 1, f"{plant.name}: the text to change is not there, or not once"
    return source.replace(plant.was, plant.becomes)


def load(plant: Plant) -> ModuleType:
    module = ModuleType("planted")
    exec(compile(apply(plant), "planted", "exec"), module.__dict__)  # noqa: S102 -- our own text
    return module
