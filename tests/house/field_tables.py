"""Writes tables of fields and reasons into `docs/reference`, and schemas into `artifacts`: `make fields`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from eldgr_dspy.figures.results import SCHEMAS, field_texts, schema_of
from eldgr_dspy.rule.reasons import REASONS
from tests.house.package_files import ROOT

_TABLE = re.compile(r"(<!-- The \w+ of (\w+), by `make fields`. -->\n\n)(?:\|.*\n)*")


def field_pages() -> Mapping[Path, str]:
    texts = dict[Path, str]()
    for page in (ROOT / "docs" / "reference" / name for name in ("run-directory.md", "rules.md")):
        texts[page] = _TABLE.sub(lambda match: match[1] + table(match[2]), page.read_text(encoding="utf-8"))
    for name in SCHEMAS:
        texts[ROOT / "artifacts" / f"{name}.schema.json"] = f"{json.dumps(schema_of(name), indent=2)}\n"
    return texts


def table(kind: str) -> str:
    texts = field_texts().get(kind, REASONS)
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in texts.items())
    return f"| field | meaning |\n| --- | --- |\n{rows}"


if __name__ == "__main__":
    for path, text in field_pages().items():
        path.write_text(text, encoding="utf-8")
