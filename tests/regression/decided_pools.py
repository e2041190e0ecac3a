"""Decides the demo pools and the real pools, and sums up what was decided in digests that a commit can hold."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, NamedTuple, Self

from eldgr_dspy.programs.commands import main
from tests.house.doc_blocks import ROOT

DIGESTS: Final = Path(__file__).with_name("digests.json")
RULES: Final = "first,majority,certified,judge,eldgr,eldgr_certified,near(0),near(1)"
DIGITS, A_LINE = 4, 25
"""Hexadecimal digits of a question's digest, and questions whose digests are in one line of the file."""

JUDGES: Final = ("gpt4", "chatgpt", "davinci003", "bing")
SELECTORS: Final = (
    "words=heuristic,orm=best_of_n:orm,prm=weighted_best_of_n:prm:min,borda=borda:self_certainty,cisc=cisc,soft=soft_sc,"
    "bcrl=bcrl_vote,drm=drm"
)
DEMOS: Final[Mapping[str, Sequence[str]]] = {
    "demo-retrieval": (),
    "demo-arithmetic": ("--replay", str(ROOT / "artifacts" / "demo-replay.jsonl")),
    "demo-choice": (),
    "demo-math": ("--replay", str(ROOT / "artifacts" / "demo-math-replay.jsonl")),
    "demo-selectors": ("--judges", SELECTORS),
}
"""The demo pools, with the options of `eldgr evaluate` that each is decided with."""

REAL: Final[Mapping[str, int]] = {
    "hotpotqa-reflexion12": 100, "gsm8k-openai4": 1_319, "svamp-codex8": 999, "nq-openqa10": 2_298,
    "nq-openqa10-struck": 2_298,
}  # fmt: skip
"""The real pools, with how many questions each has. They run with every judge that was recorded for them."""


class Digests(NamedTuple):
    """SHA-256 of `decisions.jsonl`; a few digits for each question, and for each part of the figures by its key."""

    decisions: str
    questions: Sequence[str]
    numbers: Mapping[str, str]

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        return cls(record["decisions"], wrap("".join(record["questions"]), DIGITS), record["numbers"])

    def record(self) -> Mapping[str, Any]:
        questions = wrap("".join(self.questions), DIGITS * A_LINE)
        return {"decisions": self.decisions, "questions": questions, "numbers": self.numbers}

    @property
    def name(self) -> str:
        """Eight digits that name all of it, by which the list of changes refers to it."""
        return _digest(json.dumps(self.record()).encode(), 8)


class Pool(NamedTuple):
    ids: Sequence[str]
    digests: Digests


def missing(name: str, data: Path) -> str | None:
    if name == "demo-math" and find_spec("math_verify") is None:
        return "math_verify is not installed; the extra `test` has it"
    if name in REAL and not (data / f"{name}.jsonl.gz").is_file():
        return f"no {name}.jsonl.gz in {data}; set ELDGR_POOLS to the folder that holds it"
    return None


def decide(name: str, data: Path, out: Path, *options: str) -> Pool:
    """Decide a pool in a new run directory below `out`. The real pools and their recordings are in `data`."""
    pool = data / f"{name}.jsonl.gz" if name in REAL else ROOT / "artifacts" / f"{name}.jsonl"
    arguments = [*DEMOS.get(name, ()), *options]
    recordings = {judge: data / "judges" / f"{name}.{judge}.jsonl.gz" for judge in JUDGES}
    if name in REAL and all(file.is_file() for file in recordings.values()):
        arguments += ["--judges", ",".join(recordings)]
        arguments += [word for judge, file in recordings.items() for word in ("--replay", f"{judge}={file}")]
    run = out / name
    code = main(["evaluate", str(pool), "--rules", RULES, "--out", str(run), "--quiet", *arguments])
    assert code == 0, f"eldgr evaluate {pool} ended with exit code {code}"
    return _pool(name, run)


def _pool(name: str, run: Path) -> Pool:
    decisions = (run / "decisions.jsonl").read_bytes()
    lines = dict[str, bytes]()
    for line in decisions.splitlines(keepends=True):
        question = json.loads(line)["id"]
        lines[question] = lines.get(question, b"") + line
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    figures = {**summary["pools"][name], "consultations": summary["consultations"]}
    numbers = {part: [*_numbers(part, value)] for part, value in sorted(figures.items())}
    questions = [_digest(text, DIGITS) for text in lines.values()]
    parts = {part: _digest("\n".join(result).encode(), 8) for part, result in numbers.items() if result}
    return Pool([*lines], Digests(_digest(decisions, 64), questions, parts))


def _numbers(path: str, value: Any) -> Iterator[str]:
    """Yield each number below a value with the path to it; a key that speaks of seconds is left out, and so is text."""
    if isinstance(value, dict):
        for key in sorted(value):
            if "seconds" not in key:
                yield from _numbers(f"{path}/{key}", value[key])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(f"{path}/{index}", item)
    elif not isinstance(value, str):
        yield f"{path} {value:.9g}" if isinstance(value, float) else f"{path} {json.dumps(value)}"


def _digest(text: bytes, digits: int) -> str:
    return hashlib.sha256(text).hexdigest()[:digits]


def read_digests() -> dict[str, Digests]:
    records = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.is_file() else {}
    return {name: Digests.read(record) for name, record in records.items()}


def differences(before: Digests | None, pool: Pool, *, part: bool = False) -> list[str]:
    """Return what differs from the digests before. Of a part of a pool, its first questions, numbers do not count."""
    if before is None:
        return [f"all {len(pool.ids):,} questions", "all numbers"]
    now, results = pool.digests, list[str]()
    old = before.questions[: len(now.questions)] if part else before.questions
    pairs = zip_longest(pool.ids, now.questions, old, fillvalue="")
    ids = [question or "one that is gone" for question, new, was in pairs if new != was]
    if ids:
        which = "all" if ids == pool.ids else f"{len(ids):,} of"
        names = "" if ids == pool.ids else f": {', '.join(ids)}"
        results.append(f"{which} {len(old):,} questions{names}")
    elif not part and now.decisions != before.decisions:
        results.append("the order or the form of decisions.jsonl")
    if not part and now.numbers != before.numbers:
        keys = {key for key, _ in now.numbers.items() ^ before.numbers.items()}
        results.append(f"numbers of {', '.join(sorted(keys))}")
    return results
