"""Join the journals of runs on parts of a pool into the journal of one run on the whole pool.

The joined journal is resumed like any other: `eldgr evaluate` finds every reply in it, asks nobody, and writes what a
run in one piece would have written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.formats.journal_lines import record_of, seal
from eldgr_dspy.pools import Pool, open_pool, pool_name
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.run.settling import reopen
from eldgr_dspy.programs.service.file_locks import hold
from eldgr_dspy.rule.consultations import Key


def join(pool: Path, runs: Sequence[Path], out: Path, parts: Sequence[Path] = (), **own: object) -> Pool:
    """Write the journal of one run, and return its pool.

    Args:
        pool: The whole pool. runs: the directories of runs on parts of it. out: the directory of the joined run.
        parts: Where parts are now that have been moved.
        own: `certificate`, `refusals` and `answer` of the user's own that the runs were made with.

    Raises:
        ArgumentError: a run or a part cannot be read, a part has a question that the pool lacks, or `out` holds a run.
        RunChangedError: the runs differ in what they were made with, or two of them consulted a role differently on
            the same question. Nothing is written then.
        PoolError, JournalError: a file cannot be read.
    """
    whole, runs_read = open_pool(pool), [read_run(run, **own) for run in runs]
    digests = {row.id: row.digest() for row in whole.rows()}
    for run in runs_read:
        _require_part_of(whole, digests, run, [part for part in parts if pool_name(part) in run.heads_of("pool")])
    journal = out / "journal.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    with hold(out / ".lock", f"{out}: another process is writing to this run; wait for it, or give another --out."):
        if journal.exists():
            raise ArgumentError(f"out={str(out)!r} holds another run; give a new directory.")
        with replacing(journal) as file:
            _write(file, whole, runs_read)
    return whole


def _require_part_of(whole: Pool, digests: Mapping[str, bytes], run: RunRead, parts: Sequence[Path]) -> None:
    """Refuse a run on a question that the pool lacks, or has with another content."""
    for part in reopen(run, [*run.heads_of("pool")], parts, "eldgr pool join POOL RUN... --part FILE"):
        for row in part.rows():
            if digests.get(row.id) != row.digest():
                has = "has it with another content" if row.id in digests else "lacks it"
                raise ArgumentError(
                    f"{part.path}: each question must be one of {whole.path}, which {has}: {row.id!r:.80}. Give the "
                    "pool that it is a part of."
                )


def _write(file: IO[bytes], whole: Pool, runs: Sequence[RunRead]) -> None:
    heads = list[dict[str, Any]]()
    for run in runs:
        _require_alike(runs[0], run, heads)
        heads += [head for head in _heads(whole, run) if head not in heads]
    file.writelines(map(seal, heads))
    digests: dict[Key, bytes] = {}
    for run in runs:
        own: dict[Key, bytes] = {}
        for entry in run.consultations():
            consultation = replace(entry, pool=whole.name)
            record = record_of(consultation)
            content = seal({**record, "seconds": None})
            own[consultation.key] = sha256(own.get(consultation.key, b"") + content).digest()
            if consultation.key not in digests:
                file.write(seal({"kind": "consultation", **record}))
        for key, digest in own.items():
            if digests.setdefault(key, digest) != digest:
                raise RunChangedError(
                    f"{run.path}: the {key[2]} was consulted on question {key[1]!r:.80} in another run too, and not "
                    "with the same outcome. Give one of these runs."
                )


def _require_alike(first: RunRead, run: RunRead, heads: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a run that was made with something else than those before."""
    settings = [{name: head["details"] for name, head in one.heads_of("settings").items()} for one in (first, run)]
    roles = {head["name"]: head["details"] for head in heads if head["kind"] == "role"}
    changes = differences(*settings)
    for role, head in run.heads_of("role").items():
        others = roles.get(role, head["details"])
        changes += [f"{role}.{one}" for one in differences(without_address(others), without_address(head["details"]))]
    if changes:
        listing = "\n".join(f"  {line}" for line in changes)
        raise RunChangedError(
            f"{run.path}: must be made as {first.path} was; it differs:\n{listing}\n"
            "Give runs with the same settings and roles."
        )


def _heads(whole: Pool, run: RunRead) -> Iterator[dict[str, Any]]:
    """Yield what the joined journal states of a run: its pool is the whole one."""
    details = {"sha256": whole.sha256, "rows": whole.n, "task": whole.task}
    yield {"kind": "pool", "name": whole.name, "details": details, "path": str(whole.path)}
    for head in run.heads:
        if head["kind"] in ("settings", "role"):
            yield head
        elif head["kind"] == "comparisons":
            yield {**head, "name": whole.name}
