"""`eldgr reproduce` and `eldgr ablation`: each format, each option, and the committed tables made again."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from eldgr_dspy.comparisons.ablation import ablate
from eldgr_dspy.comparisons.reproduction import reproduce
from eldgr_dspy.formatting import probability
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.output import Form
from eldgr_dspy.tables.formats import as_markdown
from eldgr_dspy.tables.reproduction import reproduction_tables
from eldgr_dspy.tables.table import record
from tests.finished_runs import finished_run

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "artifacts" / "results" / "paper"
README = RESULTS / "README.md"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    finished_run(tmp_path)
    return Path("run")


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main([*arguments]) == code
    return capsys.readouterr()


COMMANDS = {
    "reproduce": ["reproduce", "hotpotqa=run"],
    "ablation": ["ablation", "full=run", "mine=run"],
}


def test_without_a_run_the_papers_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, "reproduce")
    assert err == ""
    assert "GSM8K (tab:main_results): 500 questions in the paper" in out
    assert "│ First candidate │       55.4 │  +2.80 [1.20, 4.60] │   .0026 │" in out
    assert "Every Δ and every p is what is printed, to its last digit." in out


def test_json_is_the_figures_and_nothing_else(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, *COMMANDS["reproduce"], "--format", "json")
    assert (json.loads(out), err) == (reproduce(["hotpotqa=run"]), "")
    out, err = said(capsys, *COMMANDS["ablation"], "--format", "json")
    assert (json.loads(out), err) == (ablate(["full=run", "mine=run"]), "")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", get_args(Form))
def test_a_file_holds_what_would_be_printed(
    run: Path, capsys: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    printed, _ = said(capsys, *COMMANDS[command], "--format", form)
    assert said(capsys, *COMMANDS[command], "--format", form, "--out", "here") == ("", "Written to here.\n")
    assert Path("here").read_text(encoding="utf-8") == printed


def test_the_format_may_come_from_the_environment(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELDGR_REPRODUCE_FORMAT", "markdown")
    monkeypatch.setenv("ELDGR_ABLATION_FORMAT", "latex")
    assert said(capsys, *COMMANDS["reproduce"])[0].startswith("### GSM8K (tab:main")
    assert said(capsys, *COMMANDS["ablation"])[0].startswith("\\begin{table}")


def test_an_ablation_scores_the_rule_and_sets_against_what_is_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = said(capsys, "ablation", "a=run", "b=run", "--against", "b", "--rule", "eldgr")
    assert "eldgr on the pools of 2 policies: retrieval, 6 questions" in out
    assert "against b: 6 questions" in out
    assert "against a" not in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["reproduce", "run"], 1, "Error: 'run' does not name a run; give NAME=RUN, such as gsm8k=runs/NAME."),
        (["reproduce", "gsm8k=run"], 1, "gsm8k=run must be a run on a pool of task arithmetic"),
        (["reproduce", "hotpotqa=nowhere"], 1, "nowhere: no such directory"),
        (["reproduce", "--format", "html"], 2, "'html' is not one of 'text', 'markdown', 'latex', 'json'"),
        (["reproduce", "--out", "nowhere/there"], 1, "The tables could not be written:"),
        (["ablation"], 2, "Missing argument 'NAME=RUN[:POOL]...'"),
        (["ablation", "full=run"], 1, "An ablation needs two or more runs; got 1"),
        (["ablation", "a=run", "b=run"], 1, "No run is named full or grpo"),
        (["ablation", "a=run", "b=run", "--against", "c"], 1, "against must be one of a, b; got 'c'."),
        (["ablation", "full=run", "b=run", "--rule", "fluent"], 1, "has no result of rule 'fluent' on pool 'capitals'"),
    ],
)
def test_what_cannot_be_laid_out_is_said_in_a_sentence(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    out, err = said(capsys, *arguments, code=code)
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


# -- the committed tables ---------------------------------------------------------------------------------------------


def commands() -> Iterator[list[str]]:
    """The commands that the page of the results says they were made by."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for line in block.replace("\\\n", " ").splitlines():
        yield [os.path.expandvars(word) for word in shlex.split(line)]


def differences(committed: Any, made: Any, place: str = "") -> Iterator[str]:
    """Yield where two results differ, in what both have; seconds are nobody's to repeat."""
    if isinstance(committed, Mapping) and isinstance(made, Mapping):
        for key in committed.keys() & made.keys():
            if not key.startswith("seconds"):
                yield from differences(committed[key], made[key], f"{place}/{key}")
    elif isinstance(committed, Sequence) and not isinstance(committed, str) and len(committed) == len(made):
        for index, pair in enumerate(zip(committed, made, strict=True)):
            yield from differences(*pair, f"{place}/{index}")
    elif committed != (pytest.approx(made, rel=1e-9) if isinstance(made, float) else made):
        yield f"{place}: {committed!r} is committed, and {made!r} is found"


@pytest.mark.slow
def test_the_committed_results_are_those_that_their_commands_give(
    pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number but seconds, by the commands as the page has them, in an empty folder."""
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    monkeypatch.chdir(tmp_path)
    folder = RESULTS.relative_to(ROOT)
    folder.mkdir(parents=True)
    for program, *arguments in commands():
        if program == "eldgr":
            said(capsys, *arguments)
        else:
            assert program == "cp"
            shutil.copy(*arguments)
    assert {path.name for path in folder.iterdir()} == {path.name for path in RESULTS.iterdir()} - {README.name}
    for path in folder.glob("*.json"):
        committed, made = (json.loads((where / path.name).read_text(encoding="utf-8")) for where in (RESULTS, folder))
        assert list(differences(committed, made, path.name)) == []


@pytest.mark.parametrize("name", sorted(path.stem for path in RESULTS.glob("*.md") if path != README))
def test_the_committed_pages_are_those_of_the_committed_figures(name: str) -> None:
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == as_markdown(reproduction_tables(found))


def test_the_committed_results_have_no_text_of_the_pools_and_no_place_of_one_machine(pools_dir: Path) -> None:
    from eldgr_dspy.pools import open_pools

    committed = "\n".join(path.read_text(encoding="utf-8") for path in RESULTS.iterdir())
    names = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12")
    for pool in open_pools([pools_dir / f"{name}.jsonl.gz" for name in names]):
        for row in pool.rows():
            assert row.question not in committed
            assert row.id not in committed
    assert str(pools_dir) not in committed


def test_the_page_of_the_results_says_what_the_figures_say() -> None:
    """Each figure of its text, from the files beside it."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    for name, expected in told().items():
        assert expected in text, name


def told() -> dict[str, str]:
    """Sentences of the page, with the figures of the files."""
    pools = json.loads((RESULTS / "defaults.summary.json").read_text(encoding="utf-8"))["pools"]
    gsm8k, svamp, hotpotqa = (pools[name] for name in ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12"))
    letter = json.loads((RESULTS / "letter.summary.json").read_text(encoding="utf-8"))["pools"]["hotpotqa-reflexion12"]
    spared, audit = lead(gsm8k, "eldgr", "judge"), hotpotqa["audit"]
    overrides = audit["judge_overrides"] + audit["repair_overrides"]
    return {
        "gsm8k": f"{gsm8k['rules']['judge']['em']:.2f} against {gsm8k['rules']['majority']['em']:.2f}",
        "gsm8k judge": f"{spared['wins']} questions won and {spared['losses']} lost",
        "svamp": f"all {svamp['audit']['abstentions']} questions of SVAMP",
        "hotpotqa": f"{hotpotqa['rules']['eldgr']['em']:.0f} against {hotpotqa['rules']['majority']['em']:.0f}",
        "hotpotqa majority": said_of(lead(hotpotqa, "eldgr", "majority")),
        "hotpotqa judge": said_of(lead(hotpotqa, "eldgr", "judge")),
        "authority": said_of(lead(hotpotqa, "judge", "majority")),
        "letter": f"EL-DGR has {letter['rules']['eldgr']['em']:.0f}, and leads",
        "letter majority": said_of(lead(letter, "eldgr", "majority")),
        "audit": f"Of {overrides} overrides {audit['incorrect_to_correct']} mended",
        "bounds": "EL-DGR on this pool lies between {:.0f} and {:.0f}".format(*hotpotqa["bounds"]["eldgr"]),
        "bounds of the judge": "full authority between {:.0f} and {:.0f}".format(*hotpotqa["bounds"]["judge"]),
    }


def lead(pool: Any, rule: str, against: str) -> Any:
    return next(one for one in pool["contrasts"] if (one["rule"], one["against"]) == (rule, against))


def said_of(contrast: Any) -> str:
    return f"{record(contrast)}, p = {probability(contrast['p'])}"
