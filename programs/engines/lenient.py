"""A JSON adapter that forgives a reply its form, and never its content.

It reads what `StrictJSONAdapter` reads, and also one object with prose around it or the end of a turn behind it, a
numeral in quotes where a number is asked for, and a reply without the fields that no rule needs. It still refuses
whatever leaves open which verdict was meant: a draft in a thinking block, a second object, one of its fields again in
the prose, the same key twice, an object that was cut. It does not understand the prose: if that speaks against the
object, the object counts.
"""

import re
from typing import Any

from eldgr_dspy.programs.engines.json_objects import UnreadableError, decoded_start, read_object, without_thought
from eldgr_dspy.programs.engines.strict import StrictJSONAdapter, typed_value

OPTIONAL: dict[str, Any] = {
    "assessments": [],
    "judge_rationale": "",
    "comparison_rationale": "",
    "candidate_rationale": "",
    "repair_passage": -1,
}
"""The fields that no rule needs, each with the value that a reply without it has."""
_NUMERAL = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
_MOST_FIELDS, _LONGEST_NAME = 50, 40  # more, or a longer one, is refused anyway
_TAG = re.compile(r"[<◁][/|]?[a-z]|\[/?think", re.IGNORECASE)
"""How a thinking block begins or ends, by whatever name."""
_END = re.compile(r"(?:<\|(?:im_end|eot_id|end|return|endoftext|end_of_text)\|>|</s>|<end_of_turn>)\s*\Z")
"""The token that ends a model's turn, which some servers send too."""


class LenientJSONAdapter(StrictJSONAdapter):
    """`StrictJSONAdapter` that forgives prose around the object, quoted numerals, and missing `OPTIONAL` fields."""

    def _read(self, reply: str) -> dict[str, Any]:
        try:
            return read_object(reply)
        except UnreadableError as strict:
            inner = _object_in_prose(without_thought(_END.sub("", reply).strip()))
            if inner is None:
                raise strict
            return inner

    def _field(self, signature: Any, name: str, annotation: Any, raw: Any) -> Any:
        try:
            return typed_value(signature, name, annotation, _unquote(raw))
        except (UnreadableError, RecursionError):
            return super()._field(signature, name, annotation, raw)

    def _fields(self, signature: Any, reply: dict[str, Any]) -> dict[str, Any]:
        usual = {name: value for name, value in OPTIONAL.items() if name in signature.output_fields}
        return super()._fields(signature, {**usual, **reply})


def _object_in_prose(text: str) -> dict[str, Any] | None:
    """Return the one object in a text; None unless the rest is only prose."""
    start = text.find("{")
    if start < 0:
        return None
    value, end = decoded_start(text[start:])
    around = text[:start] + text[start + end :]
    # A brace elsewhere would be a second object, or the rest of one that was cut; a tag may begin a draft.
    if not isinstance(value, dict) or "{" in around or "}" in around or _TAG.search(around):
        return None
    # A field of the object that is given again, such as `preferred: 1`, is another verdict.
    names = "|".join(re.escape(name) for name in [*value][:_MOST_FIELDS] if len(name) <= _LONGEST_NAME)
    return None if re.search(rf"\b({names})\b\W{{0,3}}[:=#]", around, re.IGNORECASE) else value


def _unquote(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unquote(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_unquote(inner) for inner in value]
    if isinstance(value, str) and _NUMERAL.fullmatch(value.strip()):
        return float(value) if "." in value else int(value)
    return value


LENIENT = LenientJSONAdapter()
"""The one instance that parses the roles' replies leniently."""
