"""Tokens of each role's prompt beside a plain `dspy.Predict` on the same material: `python -m benchmarks.tokens`.

Reads the first twelve questions of the pools `first-try/` in the folder that ELDGR_POOLS names, with the tokenizer of
the GGUF file that ELDGR_GGUF names; needs the extra `local`. A plain predictor has DSPy's own adapter and no
instructions: a judge's fields are rationale and preferred, a repairer's answer, a deriver's those of `DeriveAnswer`.
"""

import gzip
import json
import os
import statistics
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import httpx

import eldgr_dspy
from eldgr_dspy.programs.engines.strict import STRICT
from eldgr_dspy.programs.lms.fencing import fence
from eldgr_dspy.signatures import DeriveAnswer, JudgeCandidates, RepairAnswer
from eldgr_dspy.signatures.deriver import DerivationStep

QUESTIONS = 12
PLAIN: dict[str, Any] = {
    "judge": dspy.make_signature("question, evidence: list[str], candidates: list[str] -> rationale, preferred: int"),
    "repairer": dspy.make_signature("question, evidence: list[str] -> answer"),
    "deriver": dspy.make_signature(
        "question -> derivation_steps: list[DerivationStep], derived_answer, consistency_check",
        custom_types={"DerivationStep": DerivationStep},
    ),
}
OURS: dict[str, Any] = {"judge": JudgeCandidates, "repairer": RepairAnswer, "deriver": DeriveAnswer}
POOLS = {"judge": "hotpot5-qwen15b-24", "repairer": "hotpot5-qwen15b-24", "deriver": "gsm8k-qwen15b-20"}


def main() -> None:
    model, pools = os.environ.get("ELDGR_GGUF"), os.environ.get("ELDGR_POOLS")
    if model is None or pools is None:
        sys.stdout.write("ELDGR_GGUF must name a GGUF file, and ELDGR_POOLS the folder of the pools.\n")
        return
    lm = eldgr_dspy.local(model, threads=1, context=512, parallel=1)
    verdict = {"judge_rationale": "The passage on the Qatar peninsula names Doha.", "assessments": [[7] * 8] * 4}
    reply = json.dumps({**verdict, "preferred": 2})
    sys.stdout.write(f"a judge's reply on four candidates: {_tokens(lm, reply)} tokens\n")
    for role, signature in OURS.items():
        with gzip.open(Path(pools) / "first-try" / f"{POOLS[role]}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in islice(lines, QUESTIONS)]
        ours = [_prompt(lm, STRICT, signature, _fenced(row)) for row in rows]
        plain = [_prompt(lm, dspy.ChatAdapter(), PLAIN[role], _bare(row)) for row in rows]
        ratio = statistics.median(one / other for one, other in zip(ours, plain, strict=True))
        medians = f"{statistics.median(ours):.0f} tokens, plain {statistics.median(plain):.0f}"
        sys.stdout.write(f"{role}: {medians}, ratio {ratio:.2f}\n")


def _bare(row: dict[str, Any]) -> dict[str, Any]:
    texts = {
        "evidence": [one["text"] for one in row["evidence"]],
        "candidates": [one["text"] for one in row["candidates"]],
    }
    return {"question": row["question"], **texts}


def _fenced(row: dict[str, Any]) -> dict[str, Any]:
    fenced = fence(**_bare(row))
    return {"question": fenced.question, "evidence": fenced.evidence, "candidates": fenced.candidates}


def _prompt(lm: Any, adapter: Any, signature: Any, inputs: dict[str, Any]) -> int:
    values = {name: inputs[name] for name in signature.input_fields}
    return sum(_tokens(lm, message["content"]) for message in adapter.format(signature, [], values))


def _tokens(lm: Any, text: str) -> int:
    address, key = lm.kwargs["api_base"].removesuffix("/v1"), lm.kwargs["api_key"]
    answer = httpx.post(f"{address}/tokenize", json={"content": text}, headers={"Authorization": f"Bearer {key}"})
    return len(answer.json()["tokens"])


if __name__ == "__main__":
    main()
