"""After an upgrade a freeze is the same, or the frozen run shows that all is decided as before, or it is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.decision import RULES, Choice, Steps, evidence_locked
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.freezes import FreezeWarning, read_freeze, write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule import lexical
from tests.capitals import row, write_pool
from tests.run.freezing import TWO, command, hashed, rewrite, run

DEVSET = [dspy.Example(question=f"Which, {n}?", answer="Doha", id=f"q{n}").with_inputs("question") for n in range(2)]


class Answering(dspy.Module):  # answers from one passage
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context, question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=["Its capital is Doha."], question=question)


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_pool(Path("capitals.jsonl"), map(row, range(6)))


@pytest.fixture
def frozen_run(pool: Path) -> Path:
    """A freeze of the heuristic roles, with a run that they were chosen on."""
    evaluate(heuristic_selector(), Plan([pool], Path("first"), rules=TWO))
    return write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json"), run=Path("first")).path


def by_other_code(freeze: Path) -> None:
    """Make the freeze that other code of this package would have made, with another DSPy."""

    def change(content: dict[str, Any]) -> None:
        content["code"]["eldgr_dspy"], content["versions"]["dspy"] = "0" * 16, "3.0.0"

    rewrite(freeze, change)


def test_another_version_alone_is_the_same_freeze(frozen_run: Path, pool: Path) -> None:
    rewrite(frozen_run, lambda content: content["versions"].update(dspy="3.0.0", python="3.99.0"))
    run(pool, frozen_run, "out")  # warnings are errors here


def test_other_code_that_decides_the_frozen_run_as_before_is_a_warning(frozen_run: Path, pool: Path) -> None:
    run(pool, frozen_run, "same")
    by_other_code(frozen_run)
    note = (
        r"^rule\.freeze\.json: The code that decides has changed since it was frozen with dspy 3\.0\.0; this is dspy "
        r"\S+\. first is decided as before, 6 questions\. What a role is asked is in no recording\. To end this note, "
        r"freeze the current state in another file\.$"
    )
    with pytest.warns(FreezeWarning, match=note):
        run(pool, frozen_run, "out")


def test_code_that_decides_otherwise_is_refused(frozen_run: Path, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_other_code(frozen_run)

    def other(case: Any) -> Steps:
        choice = yield from evidence_locked(case)
        return Choice("first", case.first) if "number 4" in case.question.text else choice

    monkeypatch.setitem(RULES, "eldgr", other)
    named = (
        r"The frozen run is decided again: first is now decided otherwise on 1 of 6 questions \(capitals: q4\)\. Undo"
    )
    with pytest.raises(RunChangedError, match=named):
        run(pool, frozen_run, "out")
    with pytest.raises(RunChangedError, match=named):
        frozen_selector(frozen_run)
    with pytest.warns(FreezeWarning):
        frozen_selector(frozen_run, rule="majority")
    with pytest.raises(ArgumentError, match=r"^first: is now decided otherwise on 1 of 6 .* Evaluate its pools anew"):
        write_freeze(heuristic_selector(), TWO, Path("other.freeze.json"), run=Path("first"))


def test_other_code_without_a_run_to_decide_again_is_refused(pool: Path) -> None:
    freeze = write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json")).path
    by_other_code(freeze)
    with pytest.raises(
        RunChangedError, match=r"It states no run that could be decided again\. Install what it was fro"
    ):
        run(pool, freeze, "out")


def test_the_frozen_run_is_found_or_named(frozen_run: Path, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_other_code(frozen_run)
    here = Path.cwd()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    with pytest.warns(FreezeWarning):
        frozen_selector(here / frozen_run)
    moved = [shutil.move(here / name, here / "elsewhere") for name in ("first", pool)]
    with pytest.raises(RunChangedError, match=r"The frozen run is decided again: .*first: no such directory"):
        frozen_selector(here / frozen_run)
    with pytest.warns(FreezeWarning):
        frozen_selector(here / frozen_run, recordings=moved)


def test_a_run_whose_decisions_were_edited_is_not_the_frozen_one(frozen_run: Path, pool: Path) -> None:
    by_other_code(frozen_run)
    decisions = Path("first/decisions.jsonl")
    decisions.write_text(decisions.read_text().replace('"answer": "Nice"', '"answer": "Paris"', 1))
    with pytest.raises(RunChangedError, match=r"first: its decisions are not those that were frozen"):
        run(pool, frozen_run, "out")


def test_a_run_of_another_choice_is_not_frozen(pool: Path) -> None:
    evaluate(heuristic_selector(certificate="token"), Plan([pool], Path("first"), rules=["eldgr"]))
    for selector, message in (
        (
            heuristic_selector(),
            r'must be a run with the settings that are frozen; got certificate: "token" -> "folded"',
        ),
        (heuristic_selector(certificate="token"), r"has no decisions of majority on 'capitals'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            write_freeze(selector, TWO, Path("rule.freeze.json"), run=Path("first"))
    assert not Path("rule.freeze.json").exists()


def test_a_comment_is_no_change_and_a_digit_in_a_listed_module_is(frozen_run: Path, pool: Path, tmp_path: Path) -> None:
    """In a copy of the package, which a process of its own imports."""
    package = Path(shutil.copytree(Path(lexical.__file__).parents[1], tmp_path / "copy" / "eldgr_dspy"))
    evaluating = ("evaluate", str(pool), "--freeze", str(frozen_run))
    for name, more in (
        ("decision.py", "# One comment more."),
        ("report/page.py", "ADDED = 1"),
        ("programs/commands/bound.py", "ADDED = 1"),
    ):
        with (package / name).open("a") as file:
            file.write(f"\n{more}\n")
    same = command(*evaluating, "--out", "same", path=package.parent)
    assert (same.returncode, "Note:" in same.stderr) == (0, False)
    (package / "rule" / "lexical.py").write_text(
        (package / "rule" / "lexical.py").read_text().replace("SOURCES = 3", "SOURCES = 2")
    )
    noted = command(*evaluating, "--out", "noted", path=package.parent)
    assert noted.returncode == 0
    assert "Note: rule.freeze.json: The code that decides has changed since it was frozen. first is" in noted.stderr


def test_a_freeze_of_the_first_schema_is_read_and_refused_with_its_versions(frozen_run: Path, pool: Path) -> None:
    """Its hashes are of texts, so none of them is an identity."""
    content = dict(read_freeze(frozen_run).content)
    del content["recordings"]
    content |= {"schema": 1, "sources": content.pop("code"), "versions": {**content["versions"], "python": "3.11"}}
    content["sources"]["eldgr_dspy"] = "0" * 16
    frozen_run.write_text(json.dumps({**content, "sha256": hashed(content)}))
    assert read_freeze(frozen_run).rules == TWO
    with pytest.raises(
        RunChangedError, match=r"changed since it was frozen with python 3\.11; this is python \S+\. It "
    ):
        run(pool, frozen_run, "out")


def test_a_built_in_answer_type_is_frozen_if_it_is_chosen(tmp_path: Path) -> None:
    freeze = write_freeze(heuristic_selector(answer="number"), ["eldgr"], tmp_path / "rule.freeze.json").path
    assert frozen_selector(freeze).type.name == "number"
    with pytest.raises(RunChangedError, match=r'\n  answer: "number" -> "choice"'):
        frozen_selector(freeze, answer="choice")


# --- the program that samples -----------------------------------------------------------------------------------------
def sampled_by(lm: Any) -> Path:
    """A freeze with a run on samples of `Answering`."""
    collect(Collection(f"{__name__}:Answering", f"{__name__}:DEVSET", out="sampled.jsonl", n=2, workers=1), lm=lm)
    evaluate(heuristic_selector(), Plan(["sampled.jsonl"], Path("first"), rules=TWO))
    return write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json"), run=Path("first")).path


def test_prompts_and_models_of_the_program_that_samples_are_frozen(pool: Path) -> None:
    lm = scripted_lm(lambda _: "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]")
    freeze = sampled_by(lm)
    other = Answering()
    signature: Any = other.respond.signature
    other.respond.signature = signature.with_instructions("Guess.")
    warm = Answering()
    warm.set_lm(lm.copy(temperature=0.9))
    with dspy.context(lm=lm):
        assert frozen_selector(freeze, program=Answering()).rule == "eldgr"
        for program, line in (
            (other, r'program\.prompts\.respond\.signature\.instructions: .* -> "Guess\."'),
            (warm, r"program\.lm\.settings\.temperature: \S+ -> 0\.9"),
        ):
            with pytest.raises(RunChangedError, match=line):
                frozen_selector(freeze, program=program)
    with pytest.raises(ArgumentError, match=r"was frozen with a program that samples; give it: frozen_selector\("):
        frozen_selector(freeze)


def test_a_pool_under_a_freeze_is_sampled_by_its_program_or_says_nothing_of_it(pool: Path) -> None:
    lm = scripted_lm(lambda _: "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]")
    freeze = sampled_by(lm)
    run(Path("sampled.jsonl"), freeze, "same")
    with pytest.warns(FreezeWarning, match=r"nothing next to capitals\.jsonl states the program that sampled it"):
        run(pool, freeze, "bare")
    again = Collection(f"{__name__}:Answering", f"{__name__}:DEVSET", out="other.jsonl", n=2, workers=1)
    collect(again, lm=lm.copy(temperature=0.9))
    with pytest.raises(RunChangedError, match=r"other\.jsonl is not sampled as what was frozen:\n  program\.lm"):
        run(Path("other.jsonl"), freeze, "other")
