"""Which law is established how: read from the markers of the tests, and written into `docs/laws.md`."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES

EVERY_LAW = tuple(dict.fromkeys((*LAWS, *LAWS_OF_TYPES)))
ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "laws.md"
BEGIN, END = "<!-- What follows is written by `make laws`. -->\n", "<!-- Up to here. -->\n"
UNITS = {"proved": "runs", "exhaustive": "patterns", "property": "examples", "differential": "comparisons"}
"""The ways to establish a law, surest first, and what each goes through."""

Marks = Mapping[tuple[str, str], int]
"""For each law and way how many were tried; 0 where the test was skipped, or nobody counted."""


def marks_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the laws that the markers in the text of a test module name, each with the way."""
    tree = ast.parse(source)
    nodes = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    texts = {ast.unparse(target): ast.literal_eval(node.value) for node in nodes for target in node.targets}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.law":
            law, how = (texts.get(a.id) if isinstance(a, ast.Name) else getattr(a, "value", None) for a in node.args)
            if not isinstance(law, str) or not isinstance(how, str):
                raise ValueError(f"line {node.lineno}: {ast.unparse(node)} does not name a law and a way as text.")
            yield from ((name, how) for name in law.split())


def marked_files() -> Mapping[Path, frozenset[tuple[str, str]]]:
    """The test modules that establish a law, with the laws and ways that they name."""
    pairs = {path: frozenset(marks_in(path.read_text("utf-8"))) for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    return {path: laws for path, laws in pairs.items() if laws}


def missing(marks: Marks) -> list[str]:
    """Sentences for the laws that no test establishes, and for markers that name no law or way."""
    laws = {law for law, _ in marks}
    names = {law.name for law in EVERY_LAW}
    return [
        *(f"Law {law.number}, {law.name}, has no test." for law in EVERY_LAW if law.name not in laws),
        *(f"A marker names a law {name!r} that there is not." for name in sorted(laws - names)),
        *(f"A marker names a way {how!r}; the ways are {', '.join(UNITS)}." for _, how in marks if how not in UNITS),
    ]


def ways(name: str, marks: Marks) -> list[tuple[str, int]]:
    return [(how, marks[name, how]) for how in UNITS if (name, how) in marks]


def lines(marks: Marks) -> Iterator[str]:
    width = max(len(law.name) for law in EVERY_LAW)
    for law in EVERY_LAW:
        pairs = ways(law.name, marks)
        hows, counts = ", ".join(how for how, _ in pairs), ", ".join(f"{n:,} {UNITS[how]}" for how, n in pairs)
        yield f"{law.number:2}  {law.name:{width}}  {hows:42}  {counts}"


def render(marks: Marks, text: str) -> str:
    """The part of the page that is written; what a law does not claim is the page's own, and stays."""
    limits = dict(re.findall(r"(?m)^\| \d+ `(\w+)` \| .* \| (.*) \| .* \|$", text))
    rows = ["| law | claims | does not claim | established |", "| --- | --- | --- | --- |"]
    for law in EVERY_LAW:
        hows = ", ".join(f"{how} ({n:,} {UNITS[how]})" if n else how for how, n in ways(law.name, marks))
        rows.append(f"| {law.number} `{law.name}` | {law.claim} | {limits[law.name]} | {hows} |")
    return "\n".join([*rows, ""])


def page(text: str, marks: Marks) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render(marks, text)}\n{END}{after}"


def without_counts(text: str) -> str:
    return re.sub(rf" \([\d,]+ ({'|'.join(UNITS.values())})\)", "", text)
