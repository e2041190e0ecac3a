"""Derivations for the deriver: a policy's solution of a word problem, read as steps, answer and check.

The deriver of a miniature is the policy before rewards, asked each question once more, separately from the pool. It
sees no candidate. But the policies of the pool were trained from it, so their errors are not independent of its errors.
Its output is recorded in the journal's format, for `--replay`; the rule decides whether a derivation certifies.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.files import replacing
from eldgr_dspy.pools import Pool
from eldgr_dspy.training.calls import is_marked

_CHECK: Final = "Check: "
_NOTHING: Final = "the text has no step with an answer that is marked"


def derivation_of(text: str) -> dict[str, Any] | None:
    """Return the derivation in a text: each equation a step, the line marked as one the check.

    Returns:
        The fields of the deriver's signature; None if the text has no equation or no marked answer.
    """
    extraction = extract_answer(text, "arithmetic")
    lines = [line for line in text.splitlines() if "=" in line]
    checks = [line.removeprefix(_CHECK) for line in lines if line.startswith(_CHECK)]
    parts = [line.rpartition("=") for line in lines if not line.startswith(_CHECK)]
    if extraction is None or not is_marked(extraction) or not parts:
        return None
    return {
        "derivation_steps": [{"expression": left.strip(), "value": value.strip()} for left, _, value in parts],
        "derived_answer": extraction.answer,
        "consistency_check": checks[-1] if checks else "",
    }


def record_derivations(path: Path, samples: Iterable[tuple[str, Pool]]) -> None:
    """Write the derivations that pools hold as a recording: of each question's first candidate.

    Args:
        path: The file.
        samples: For each pool to replay into, its name and the pool with the texts.
    """
    records = [_consultation(name, row.id, row.candidates[0].text) for name, pool in samples for row in pool.rows()]
    with replacing(path) as out:
        out.writelines(
            json.dumps({"kind": "consultation", **asdict(record)}).encode("ascii") + b"\n" for record in records
        )


def _consultation(pool: str, id: str, text: str | None) -> Consultation:
    content = derivation_of(text or "")
    if content is None:
        return Consultation(pool, id, "deriver", "abstained", _NOTHING, recorded=True)
    return Consultation(pool, id, "deriver", "ok", content=content, recorded=True)
