"""Writes what the types of results say where it is published: python -m tests.house.field_tables.

These are the tables of fields in `docs/reference/run-directory.md`, each below a line that names its type, the reasons
of decisions in `docs/reference/rules.md`, and the JSON schemas in `artifacts/`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from eldgr_dspy.figures.results import SCHEMAS, field_texts, schema_of
from eldgr_dspy.rule.reasons import REASONS
from tests.house.package_files import ROOT

_TABLE = re.compile(r"(<!-- The \w+ of (\w+), by `make fields`. -->\n\n)(?:\|.*\n)*")


def published() -> Mapping[Path, str]:
    """Return the files, with the text that they should have."""
    pages = (ROOT / "docs" / "reference" / name for name in ("run-directory.md", "rules.md"))
    files = {
        page: _TABLE.sub(lambda match: match[1] + table(match[2]), page.read_text(encoding="utf-8")) for page in pages
    }
    schemas = {
        ROOT / "artifacts" / f"{name}.schema.json": f"{json.dumps(schema_of(name), indent=2)}\n" for name in SCHEMAS
    }
    return files | schemas


def table(kind: str) -> str:
    """Return the table of a type's fields, or of the reasons."""
    texts = field_texts().get(kind, REASONS)
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in texts.items())
    return f"| field | meaning |\n| --- | --- |\n{rows}"


if __name__ == "__main__":
    for path, text in published().items():
        path.write_text(text, encoding="utf-8")
