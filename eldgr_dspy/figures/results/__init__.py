"""The results of a run, each file's content defined once: `summary.json`, `record.json`, a line of `decisions.jsonl`.

They are plain values with types: what a run writes, what `evaluate` returns and what is read back. Percentages are
numbers from 0 to 100, differences are percentage points, and what is undefined is None. The text below a field is its
documentation: the published schemas, the reference page and the tables have it from here.
"""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from typing_extensions import get_type_hints

from eldgr_dspy.figures.results import audit_fields, baseline_fields, decision_fields, record_fields, summary_fields
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.figures.results.record_fields import Record
from eldgr_dspy.figures.results.summary_fields import Summary

SUMMARY = TypeAdapter[Summary](Summary)
RECORD = TypeAdapter[Record](Record)
DECISION = TypeAdapter[Decided](Decided)

SCHEMAS: Mapping[str, TypeAdapter[Any]] = {"summary": SUMMARY, "record": RECORD, "decision": DECISION}
"""What is published as `artifacts/NAME.schema.json`."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a file's content, by its name in `SCHEMAS`, with the documentation of each field."""
    schema = SCHEMAS[name].json_schema()
    for title, part in {**schema["$defs"], schema["title"]: schema}.items():
        for field, text in field_texts().get(title, {}).items():
            part["properties"][field]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@cache
def field_texts() -> Mapping[str, Mapping[str, str]]:
    """Return the documentation of each field, by its type's name, in the order of the fields; bases are first."""
    texts: dict[str, dict[str, str]] = {}
    modules = (audit_fields, baseline_fields, summary_fields, record_fields, decision_fields)
    for node in (node for module in modules for node in ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.ClassDef):
            own = texts.setdefault(node.name, {})
            for base in node.bases:
                own |= texts.get(ast.unparse(base), {})
            for field, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    own[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(text.value)).split())
    return texts


@cache
def headings(kind: type) -> Mapping[str, str]:
    """Return the column heading of each field of a type: its title, or else its name in words."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _title(hint) or name.replace("_", " ") for name, hint in hints.items()}


def _title(hint: Any) -> str | None:
    own = [of.title for of in getattr(hint, "__metadata__", ()) if isinstance(of, FieldInfo)]
    return next(filter(None, [*own, *map(_title, getattr(hint, "__args__", ()))]), None)
