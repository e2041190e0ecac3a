"""The pages say what is so: their examples run, their commands print what is shown, their tables list what there is.

A `python` block runs, and a `text` block right below it is its standard output. A `console` block is typed at a shell:
below `$ COMMAND` stands what both streams print. In what is shown, `...` stands for anything, on a line of its own for
any number of lines. `python -m tests.house.test_docs` writes the help of the command into its page.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import dspy
import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from eldgr_dspy.answer_types import BUILT_IN
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.decision import MARGINS, RULES, Case, Decision
from eldgr_dspy.figures import results
from eldgr_dspy.figures.results import field_texts
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.pools import schema
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.words import ABSTENTION_KINDS, POLICIES, STRICTNESS, Branch
from tests.commands.parisian import parisian
from tests.house.doc_blocks import ROOT, Block, blocks, column, name_of
from tests.house.field_tables import field_pages
from tests.ollama_server import ollama_server
from tests.scorers import trained_nli

COMMAND = ROOT / "docs" / "reference" / "command.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_LINKS = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "artifacts" / "README.md"]
REAL = "ELDGR_POOLS"
"""A block that names this variable needs the real pools."""


def agrees(text: str, output: str) -> bool:
    """Whether `output` is what is shown, white space at the ends of lines and around the whole aside."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    parts = [r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in lines]
    plain = "".join(f"{line.rstrip()}\n" for line in output.strip("\n").split("\n"))
    return re.fullmatch("".join(parts), plain) is not None


class Reader:
    """Does what a page says, block by block, in the working directory of this process."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "page"}
        self.output = ""
        self.code = 0

    def take(self, block: Block) -> None:
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, block.place, "exec"), self.names)  # noqa: S102 -- the page's own example
            self.output = out.getvalue()
        elif block.language == "console":
            for entry in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
                command, _, sample = entry.partition("\n")
                self.output = self.run(command)
                assert agrees(sample, self.output), f"{block.place}: {command}\n{self.output}"
        else:
            assert agrees(block.text, self.output), f"{block.place}:\n{self.output}"

    def run(self, command: str) -> str:
        """What a command prints: `eldgr` in this process, any other in a shell."""
        words = [os.path.expandvars(word) for word in shlex.split(command)]
        if words == ["echo", "$?"]:
            return f"{self.code}\n"
        if words[0] == "export":
            for name, _, value in (word.partition("=") for word in words[1:]):
                os.environ[name] = value
            return ""
        if words[0] == "eldgr":
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                self.code = main(words[1:])
            return out.getvalue()
        result = subprocess.run(command, shell=True, text=True, capture_output=True, check=False)
        return result.stdout + result.stderr


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[Reader]:
    """A reader in `folder`, at a terminal of 80 columns, whose shell finds the command by the name `eldgr`."""
    (folder / "artifacts").symlink_to(ROOT / "artifacts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.setattr(sys, "argv", ["eldgr"])
        patch.setitem(sys.modules, "__main__", ModuleType("eldgr"))
        patch.setattr(trace, "_TRACER_PROVIDER", None)  # so that what a page sets for a service is taken back
        patch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
        names = {"ELDGR_EVALUATE_LIMIT", "ELDGR_EVALUATE_RULES"}  # so that what a page exports is taken back
        for name in names | {name for name in os.environ if name.startswith("ELDGR_EVALUATE_")}:
            patch.setenv(name, "")
            patch.delenv(name)
        try:
            yield Reader()
        finally:
            dspy.configure(lm=None)


@contextlib.contextmanager
def standing_in(page: str, folder: Path) -> Iterator[None]:
    """For the pages that need one: a server in the place of Ollama, an NLI model, or what runs left."""
    with contextlib.ExitStack() as stack:
        if "choose-models" in page:
            server = stack.enter_context(ollama_server(parisian))
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("OLLAMA_HOST", server.address)
        if "inspect-reasoning" in page or "your-own-answer-type" in page:
            (folder / "models").mkdir()
            (folder / "models" / "nli").symlink_to(trained_nli())
        if "train-a-policy" in page:
            from tests.training.calling import keep, logs_of
            from tests.training.saved import saved_policy

            for name in ("orm", "ra_msd"):
                keep(folder / "runs" / name, logs_of(0.0, None, 1.0))
            (folder / "runs" / "grpo").symlink_to(saved_policy())
        yield


EXAMPLES = {
    page: [one for one in blocks(page) if one.language in ("python", "console") or one.follows] for page in PAGES
}


@pytest.mark.parametrize("page", [page for page, examples in EXAMPLES.items() if examples], ids=name_of)
def test_every_example_of_a_page_does_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    with standing_in(page.stem, tmp_path), desk(tmp_path) as reader:
        for block in EXAMPLES[page]:
            if REAL not in block.text:
                reader.take(block)


def test_figures_on_real_pools_are_as_printed(pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REAL, str(pools_dir))
    real = [block for page in PAGES for block in blocks(page) if block.language == "console" and REAL in block.text]
    assert real
    with desk(tmp_path) as reader:
        for block in real:
            reader.take(block)
        pools = json.loads(Path("runs/hotpotqa/summary.json").read_text(encoding="utf-8"))["pools"]
    pool = pools["hotpotqa-reflexion12"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for kind, rule in (("bounds", "judge"), ("bounds", "eldgr"), ("bounds_any_span", "eldgr")):
        assert "| {:.0f} to {:.0f} |".format(*pool[kind][rule]) in readme
    for rule in ("judge", "eldgr", "certified"):
        assert f"| at most {pool['price'][rule]['at_most']:.2f} |" in readme
    random = pool["baselines"]["scores"]["random_candidate_locked"]["em"]
    assert f"| a random judge under EL-DGR, expected | {random:.0f} |" in readme


def test_the_figures_of_the_demo_in_the_text_of_the_readme_are_those_of_a_run() -> None:
    pools = demo_run()["summary.json"]["pools"]
    bounds = pools["demo-retrieval"]["bounds"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    judge, eldgr = bounds["judge"][0], bounds["eldgr"][0]
    assert f"`judge` can fall to {judge:.0f} and `eldgr` to {eldgr:.0f}" in text
    assert f"{sum(pool['n'] for pool in pools.values())} questions in all" in text
    assert [pool["audit"]["correct_to_incorrect"] for pool in pools.values()] == [3, 1]
    assert "three times in the demo's retrieval pool, once in the arithmetic pool" in text
    ahead = next(one for one in pools["demo-retrieval"]["contrasts"] if one["against"] == "judge")
    assert ahead["losses"] - ahead["wins"] == 1
    assert "is ahead by one question" in text


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What can be linked to on a page: its headings, as they are made into anchors."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where each internal link of a page leads: a file, and an anchor in it or nothing."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", WITH_LINKS, ids=name_of)
def test_every_internal_link_leads_somewhere(page: Path) -> None:
    for other, anchor in links(page):
        assert other.exists() and (not anchor or anchor in anchors(other)), f"{name_of(page)}: {other}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    pages, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page.suffix == ".md" and page not in pages:
            pages.add(page)
            ahead += [other for other, _ in links(page)]
    assert set(PAGES) <= pages


@functools.cache
def demo_run() -> dict[str, Any]:
    """What the files of a run of the demo hold: for each its first object, with the keys that any line of it has."""
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder)) as reader:
        pools = "artifacts/demo-retrieval.jsonl artifacts/demo-arithmetic.jsonl"
        reader.run(f"eldgr evaluate {pools} --replay artifacts/demo-replay.jsonl --out run --quiet")
        run = Path("run")
        decisions = [json.loads(line) for line in (run / "decisions.jsonl").read_text("utf-8").splitlines()]
        result = {name: json.loads((run / name).read_text("utf-8")) for name in ("summary.json", "record.json")}
        return {**result, "decisions.jsonl": decisions, "files": sorted(path.name for path in run.iterdir())}


@pytest.mark.parametrize("path", field_pages(), ids=lambda path: path.name)
def test_the_fields_of_results_are_published_as_their_types_document_them(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == field_pages()[path], f"Run make fields to write {path.name}."


def test_every_field_of_a_type_of_results_is_documented_and_a_decision_has_those_of_the_rule_s_own() -> None:
    ours = ["pool", "id", "question", "gold", "rule", "em", "f1", "majority_em"]
    assert {*Decided.__annotations__} == {*ours, *(field.name for field in dataclasses.fields(Decision))}
    for part in "audit baseline decision record summary".split():
        module = importlib.import_module(f"{results.__name__}.{part}_fields")
        for name, kind in vars(module).items():
            if getattr(kind, "__module__", "") == module.__name__ and isinstance(kind, type):
                assert [*field_texts()[name]] == [*kind.__annotations__], name


def test_the_fields_of_a_freeze_are_those_that_the_page_lists() -> None:
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder)) as reader:
        reader.run("eldgr freeze --rules majority")
        freeze = json.loads(Path("rule.freeze.json").read_text("utf-8"))
    assert column("../how-to/freeze-and-confirm.md", "Freeze") == list(freeze)


def test_the_tables_of_the_reference_list_what_there_is() -> None:
    tables: dict[tuple[str, str], Iterable[str]] = {
        ("rules.md", "Rules"): [*RULES, *(f"{name}(K)" for name in MARGINS)],
        ("rules.md", "Branches"): get_args(Branch),
        ("certificates.md", "Policies"): POLICIES,
        ("certificates.md", "Levels of strictness"): STRICTNESS,
        ("pools.md", "Fields of a row"): schema()["properties"],
        ("answer-types.md", "Built-in types"): BUILT_IN,
        ("run-directory.md", "A consultation"): ["kind", *(one.name for one in dataclasses.fields(Consultation))],
        ("run-directory.md", "Kinds of abstention"): ABSTENTION_KINDS,
        ("run-directory.md", "Files of a run directory"): demo_run()["files"],
    }
    assert {table: sorted(column(*table)) for table in tables} == {table: sorted(own) for table, own in tables.items()}


def test_the_reference_lists_what_a_rule_may_ask_and_the_reasons_that_a_decision_may_have() -> None:
    names = [name.partition("(")[0] for name in column("rules.md", "What a rule may ask")]
    assert names == [name for name in vars(Case) if not name.startswith("_")]
    assert all(vars(Case)[name].__doc__ for name in names)
    reasons = re.findall(r"`(\w+)`", str(Decision.__doc__).partition("reason:")[2].partition("certified:")[0])
    assert column("rules.md", "Reasons") == reasons
    assert {row["reason"] for row in demo_run()["decisions.jsonl"]} <= set(reasons)


def test_the_reference_lists_what_an_answer_type_must_have_and_nothing_that_it_has_not() -> None:
    names = {name.partition("(")[0] for name in column("answer-types.md", "Your own")}
    assert {"way", "scores"} | AnswerType.__abstractmethods__ <= names
    assert names <= {*dir(AnswerType), *AnswerType.__annotations__}


def test_the_site_has_every_page_of_docs_and_the_api_of_every_module_that_the_pages_import() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    names = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]}
    assert names == set(re.findall(r"- ((?:tutorials|how-to|reference)/[\w-]+\.md|\w+\.md)$", nav, flags=re.MULTILINE))
    api = set(re.findall(r"- api/([\w.]+)\.md$", nav, flags=re.MULTILINE))
    assert {name for name in api if importlib.util.find_spec(name) is None} == set()
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"^\s*from (eldgr_dspy[\w.]*) import", text, flags=re.MULTILINE)) <= api


HELP = re.compile(r"^```console\n\$ (eldgr[^\n]*--help)\n.*?^```$", re.DOTALL | re.MULTILINE)
SUBCOMMANDS = "evaluate freeze report show compare decide export doctor inspect plan bound collect pool".split()
OF_POOLS = "build check split join pairs".split()
HELPS = ["eldgr", *(f"eldgr {name}" for name in SUBCOMMANDS), *(f"eldgr pool {name}" for name in OF_POOLS)]


def command_page(reader: Reader) -> str:
    text, earlier = COMMAND.read_text(encoding="utf-8"), set[str]()
    assert sorted(HELP.findall(text)) == sorted(f"{one} --help" for one in HELPS)
    return HELP.sub(
        lambda block: f"```console\n$ {block[1]}\n{without_repeats(reader.run(block[1]), earlier)}```", text
    )


def without_repeats(text: str, earlier: set[str]) -> str:
    """A help with `...` for each option and paragraph that an earlier one has in the same words."""
    parts = list[str]()
    for part in re.split(r"^(?=  -|\n)", text, flags=re.MULTILINE):
        words = " ".join(part.split())
        if words not in earlier or words.endswith(":"):
            parts.append(part)
        elif not parts[-1].endswith("...\n"):
            parts.append("\n...\n" if part.startswith("\n") else "...\n")
        earlier.add(words)
    return "".join(parts)


def test_the_help_of_the_command_is_on_its_page(tmp_path: Path) -> None:
    """Otherwise: python -m tests.house.test_docs."""
    with desk(tmp_path) as reader:
        assert command_page(reader) == COMMAND.read_text(encoding="utf-8")


def test_dots_stand_for_anything() -> None:
    assert agrees("a\n...\nd\n", "a  \nb\nc\nd\n") and agrees("a ... c\n", "a b c\n") and agrees("", "")
    assert not agrees("a\n...\n", "b\n") and not agrees("a\n", "a\nb\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, desk(Path(name)) as writer:
        COMMAND.write_text(command_page(writer), encoding="utf-8")
