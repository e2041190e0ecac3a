"""The paper's tables that are committed are those that their commands give."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper.paper_runs import runs_here
from benchmarks.paper.paper_tables import paper_tables
from eldgr_dspy.base.formatting import probability
from eldgr_dspy.pools import open_pools
from eldgr_dspy.programs.commands import main
from eldgr_dspy.tables.formats import as_markdown
from eldgr_dspy.tables.table import record

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "artifacts" / "results" / "paper"
README = RESULTS / "README.md"


def commands() -> Iterator[list[str]]:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for line in block.replace("\\\n", " ").splitlines():
        yield [os.path.expandvars(word) for word in shlex.split(line)]


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield where two results differ, in what both have; seconds are nobody's to repeat."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old.keys() & new.keys():
            if not key.startswith("seconds"):
                yield from differences(old[key], new[key], f"{place}/{key}")
    elif isinstance(old, Sequence) and not isinstance(old, str) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}/{index}")
    elif old != (pytest.approx(new, rel=1e-9) if isinstance(new, float) else new):
        yield f"{place}: {old!r} is committed, and {new!r} is found"


@pytest.mark.slow
def test_the_committed_results_are_those_that_their_commands_give(
    pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    monkeypatch.chdir(tmp_path)
    folder = RESULTS.relative_to(ROOT)
    folder.mkdir(parents=True)
    for program, *arguments in commands():
        if program == "eldgr":
            assert main(arguments) == 0
        elif program == "cp":
            shutil.copy(*arguments)
        else:
            assert [program, *arguments[:2], arguments[-2]] == ["python", "-m", "benchmarks.paper", ">"]
            tables = as_markdown(paper_tables(runs_here(arguments[2:-2])))
            Path(arguments[-1]).write_text(tables, encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {path.name for path in RESULTS.iterdir()} - {README.name}
    for path in folder.glob("*.json"):
        old, new = (json.loads((where / path.name).read_text(encoding="utf-8")) for where in (RESULTS, folder))
        assert list(differences(old, new, path.name)) == []
    for path in folder.glob("*.md"):
        lines = [(where / path.name).read_text(encoding="utf-8").splitlines() for where in (RESULTS, folder)]
        whose = partial(re.sub, r"^(\| [^|]*\|).* of .*$", r"\1")  # of a line of the cost, only whose it is
        assert [pair for pair in zip(*lines, strict=True) if len({*map(whose, pair)}) > 1] == []


def test_the_committed_results_have_no_text_of_the_pools_and_no_place_of_one_machine(pools_dir: Path) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in RESULTS.iterdir())
    names = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12")
    for pool in open_pools([pools_dir / f"{name}.jsonl.gz" for name in names]):
        for row in pool.rows():
            assert row.question not in text
            assert row.id not in text
    assert str(pools_dir) not in text


def test_the_page_of_the_results_says_what_the_figures_say() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    pools = json.loads((RESULTS / "defaults.summary.json").read_text(encoding="utf-8"))["pools"]
    gsm8k, svamp, hotpotqa = (pools[name] for name in ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12"))
    letter = json.loads((RESULTS / "letter.summary.json").read_text(encoding="utf-8"))["pools"]["hotpotqa-reflexion12"]
    margin, audit = lead(gsm8k, "eldgr", "judge"), hotpotqa["audit"]
    overrides = audit["judge_overrides"] + audit["repair_overrides"]
    expected = [
        f"{gsm8k['rules']['judge']['em']:.2f} against {gsm8k['rules']['majority']['em']:.2f}",
        f"{margin['wins']} questions won and {margin['losses']} lost",
        f"all {svamp['audit']['abstentions']} questions of SVAMP",
        f"{hotpotqa['rules']['eldgr']['em']:.0f} against {hotpotqa['rules']['majority']['em']:.0f}",
        said_of(lead(hotpotqa, "eldgr", "majority")),
        said_of(lead(hotpotqa, "eldgr", "judge")),
        said_of(lead(hotpotqa, "judge", "majority")),
        f"EL-DGR has {letter['rules']['eldgr']['em']:.0f}, and leads",
        said_of(lead(letter, "eldgr", "majority")),
        f"Of {overrides} overrides {audit['incorrect_to_correct']} mended",
        "EL-DGR on this pool lies between {:.0f} and {:.0f}".format(*hotpotqa["bounds"]["eldgr"]),
        "full authority between {:.0f} and {:.0f}".format(*hotpotqa["bounds"]["judge"]),
    ]
    assert [sentence for sentence in expected if sentence not in text] == []


def lead(pool: Any, rule: str, against: str) -> Any:
    return next(one for one in pool["contrasts"] if (one["rule"], one["against"]) == (rule, against))


def said_of(contrast: Any) -> str:
    return f"{record(contrast)}, p = {probability(contrast['p'])}"
