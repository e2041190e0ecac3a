"""A judge that knows one answer."""

import json

from tests.ollama_server import Body, obedient

VERDICT = json.dumps({"judge_rationale": "Passage 1 says so.", "assessments": [], "preferred": 1})


def parisian(body: Body) -> str:
    """What an LM writes that is held to a schema and knows the capital of France."""
    asks = "judge_rationale" in json.dumps(body["format"]) and "France" in json.dumps(body["messages"])
    return VERDICT if asks else obedient(body)
