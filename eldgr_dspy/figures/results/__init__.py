"""The results of a run, each file's content defined once: `summary.json`, `record.json`, a line of `decisions.jsonl`.

They are plain values with types: what a run writes, what `evaluate` returns and what is read back. Percentages are
numbers from 0 to 100, differences are percentage points, and what is undefined is None. `SCHEMAS` publishes them.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.figures.results.record import Record
from eldgr_dspy.figures.results.summary import Summary

SUMMARY = TypeAdapter[Summary](Summary)
RECORD = TypeAdapter[Record](Record)
DECIDED = TypeAdapter[Decided](Decided)

SCHEMAS: Mapping[str, TypeAdapter[Any]] = {"summary": SUMMARY, "record": RECORD, "decision": DECIDED}
"""What is published as `artifacts/NAME.schema.json`."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a file's content, by its name in `SCHEMAS`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].json_schema()}
