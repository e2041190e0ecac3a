"""No pattern repeats a group possessively: Python 3.11.2 does not give back what a failing last round took.

An atomic group says the same in every version: `(?>(?:X)*)` for a group X, a star and a plus.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    file
    for room in ("eldgr_dspy", "programs", "training", "signatures")
    for file in sorted((ROOT / room).rglob("*.py"))
]
# A repetition of a group, not of a parenthesis in a class of characters or behind a backslash.
POSSESSIVE = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9]*,?[0-9]*\})\+")


def test_no_group_is_repeated_possessively() -> None:
    match = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in SOURCES
        for line in file.read_text(encoding="utf-8").splitlines()
        if POSSESSIVE.search(re.sub(r"\[[^]]*\]", "[]", line))
    ]
    assert len(SOURCES) > 300
    assert match == []
