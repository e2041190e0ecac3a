"""A selector comes out of its freeze as it was frozen, or not at all; also after an upgrade."""

import json
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from pydantic import BaseModel

from eldgr_dspy import Selector
from eldgr_dspy.decision import RULES, Choice, Steps, evidence_locked
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.freezes import FreezeWarning, read_freeze, write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule import lexical
from eldgr_dspy.words import ROLES
from tests.capitals import EVIDENCE, NO_SPAN, VERDICT, obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.refusing import refusal, refuses
from tests.run.freezing import TWO, command, hash_of, imported_anew, rewrite, run

INPUTS = {"question": "Which?", "candidates": ["Nice", "Nice", "Paris"], "evidence": EVIDENCE}


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def freeze_of(select: Selector, *rules: str) -> str:
    return str(write_freeze(select, rules or ("eldgr",), Path("rule.freeze.json")).path)


def command_selector(**options: Any) -> Selector:
    """A selector as the command makes it."""
    defaults = {"lm": "openai/m", "judge_style": "listwise", "orders": 1, "structured": "auto", "replies": "strict"}
    names = ("judge", "deriver", "repairer", "api_base", "num_ctx")
    result: Selector = Models(**{**dict.fromkeys(names), **defaults, **options}).selector({})
    return result


# --- what comes back --------------------------------------------------------------------------------------------------
def test_rule_settings_and_roles_come_from_the_freeze_and_can_be_saved_and_loaded() -> None:
    before = heuristic_selector(preference="stratum", certificate="token")
    path = freeze_of(before, "majority", "eldgr")
    select = frozen_selector(path, answer="number", answer_field="response", on_failure="abstain", timeout=9)
    assert (select.rule, select.settings.to_json()) == ("eldgr", before.settings.to_json())
    kinds = [type(getattr(select, role)).__name__ for role in ROLES]
    assert kinds == ["LexicalJudge", "SilentDeriver", "ExtractiveRepairer"]
    options: list[Any] = [select.type.name, select.answer_field, select.on_failure, select.timeout]
    assert options == ["number", "response", "abstain", 9]
    again = frozen_selector(path, rule="majority")
    assert again.rule == "majority"
    again.save("select.json")
    frozen_selector(path, rule="majority").load("select.json")


@each_case("run", "roles with models")
def test_roles_with_models_come_back_with_the_same_description(values: dict[str, Any]) -> None:
    before = command_selector(**values)
    after = frozen_selector(freeze_of(before), api_base=values.get("api_base"))
    assert after.replies == before.replies
    assert [describe(getattr(after, role)) for role in ROLES] == [describe(getattr(before, role)) for role in ROLES]


def test_a_compiled_role_asks_in_the_same_words() -> None:
    """With another instruction, and with a demonstration as `BootstrapFewShot` keeps one: with models."""
    scores = {**VERDICT, "assessments": [[5] * 8] * 3}
    select, lm = selector_with(lambda request: scores if role_of(request) == "judge" else NO_SPAN)
    with dspy.context(trace=[]):
        select(**INPUTS)
        (judge, inputs, outputs), *_ = dspy.settings.trace
    predictor: Any = select.judge.predictors()[0]
    assert isinstance(judge, dspy.Predict)
    assert isinstance(outputs["assessments"][0], BaseModel)
    predictor.demos = [dspy.Example(augmented=True, **inputs, **outputs)]
    predictor.signature = predictor.signature.with_instructions("Choose.")
    again = frozen_selector(freeze_of(select), lm=lm)
    lm.requests.clear()
    results = [one(**INPUTS).toDict() for one in (select, again)]
    assert results[0] == results[1]
    first, second = [text_of(request) for request in lm.requests if "Choose." in text_of(request)]
    assert first == second and "augmented" not in first


def test_the_lm_of_the_settings_is_used_where_the_freeze_names_it() -> None:
    path = freeze_of(command_selector())
    lm = dspy.LM("openai/m", temperature=0.0, api_key="s3cret")
    other = dspy.LM("openai/m", temperature=0.0)
    with dspy.context(lm=other):
        assert frozen_selector(path).judge.get_lm() is other
    select = Selector()
    for name, one in (("secret.json", lm), ("address.json", lm.copy(api_base="https://me:s3cret@host/v1"))):
        select.set_lm(one)
        assert "s3cret" not in write_freeze(select, ("eldgr",), Path(name)).path.read_text()
    message = r'roles\.judge\.lm\.settings\.api_key: "\*\*\*" -> \(absent\)'
    refuses(RunChangedError, message, frozen_selector, "secret.json")
    assert frozen_selector("secret.json", lm=lm).judge.get_lm() is lm


MINE = """
from eldgr_dspy.decision import Choice
from eldgr_dspy.programs.heuristics import LexicalJudge

def mine(case):
    yield from ()
    return Choice("consensus", case.consensus)

def quoted(answer, evidence, question):
    return any(answer in passage.text for passage in evidence)

class Mine(LexicalJudge):
    pass

class Cutting(LexicalJudge):
    def __init__(self, most):
        super().__init__()
        self.most = most
"""


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Any:
    Path("my_frozen_parts.py").write_text(MINE)
    return imported_anew(monkeypatch, "my_frozen_parts")


def test_a_rule_a_certificate_and_a_role_of_ones_own_come_back(mine: Any) -> None:
    select = heuristic_selector(certificate="my_frozen_parts:quoted")
    select.judge = mine.Mine()
    path = freeze_of(select, "my_frozen_parts:mine")
    own: dict[str, Any] = {"certificate": "my_frozen_parts:quoted", "judge": "my_frozen_parts:Mine"}
    message = r"frozen with certificate='my_frozen_parts:quoted'\. Give it: --cert"
    refuses(ArgumentError, message, frozen_selector, path, rule=mine.mine)
    assert isinstance(frozen_selector(path, rule=mine.mine, **own).judge, mine.Mine)
    again = frozen_selector(path, rule="my_frozen_parts:mine", **own)
    assert (again.rule, again.settings.certificate) == ("my_frozen_parts:mine", select.settings.certificate)
    assert type(again.judge) is mine.Mine
    assert again(**INPUTS).answer == "Nice"


def test_a_role_that_cannot_be_made_is_given(mine: Any) -> None:
    select = heuristic_selector()
    select.judge = mine.Cutting(3)
    path = freeze_of(select)
    message = refusal(lambda: frozen_selector(path), RunChangedError)
    assert '\n  roles.judge.module: "my_frozen_parts.Cutting" -> "eldgr_dspy.programs.' in message
    assert message.endswith(
        "A role that cannot be made from a freeze can be given: frozen_selector(..., judge=...). So can an LM with "
        "credentials, which no freeze holds: frozen_selector(..., lm=...)."
    )
    assert frozen_selector(path, judge=mine.Cutting(3)).judge.most == 3
    message = r"roles\.judge\.attributes\.self\.most: 3 -> 4"
    refuses(RunChangedError, message, frozen_selector, path, judge=mine.Cutting(4))


# --- what is refused --------------------------------------------------------------------------------------------------
@each_case("run", "frozen roles of others")
def test_another_role_or_model_is_refused_with_its_line(change: dict[str, Any], line: str) -> None:
    path = freeze_of(heuristic_selector())

    def changing(content: dict[str, Any]) -> None:
        judge = content["roles"]["judge"]
        judge.update({**change, "code": {**judge["code"], **change.get("code", {})}})

    rewrite(Path(path), changing)
    message = refusal(lambda: frozen_selector(path), RunChangedError)
    assert message.startswith("rule.freeze.json: this is not what was frozen:\n") and f"\n  {line}" in message


def test_edited_code_of_a_role_a_rule_or_a_certificate_is_refused(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    select = heuristic_selector()
    select.judge = mine.Mine()
    path = freeze_of(select)
    Path("my_frozen_parts.py").write_text(MINE.replace("    pass", "    edited = True"))
    imported_anew(monkeypatch, "my_frozen_parts")
    message = refusal(lambda: frozen_selector(path, judge="my_frozen_parts:Mine"), RunChangedError)
    assert [line.split(": ")[0] for line in message.splitlines() if line.startswith("  ")] == ["  code.my_frozen_parts"]


def test_what_the_freeze_holds_cannot_be_given_and_a_rule_must_be_in_it() -> None:
    """A built-in answer type is held if it is chosen."""
    file = freeze_of(heuristic_selector(answer="number"))
    assert frozen_selector(file).type.name == "number"
    refuses(RunChangedError, r'\n  answer: "number" -> "choice"', frozen_selector, file, answer="choice")
    Path(file).unlink()
    path = freeze_of(heuristic_selector(), "majority", "judge")
    message = r"^rule\.freeze\.json: certificate, consult must be as frozen; leave it out\.$"
    refuses(ArgumentError, message, frozen_selector, path, rule="judge", certificate="token", consult="lazy")
    message = r"^rule\.freeze\.json: rule must be one of majority, judge; got 'eldgr'\. Give one: "
    refuses(ArgumentError, message, frozen_selector, path)


def test_a_demonstration_that_no_freeze_can_hold_is_refused() -> None:
    select, lm = selector_with(obliging)
    for predictor in select.judge.predictors():
        predictor.demos = [dspy.Example(question={1, 2}, preferred=0)]
    path = freeze_of(select)
    message = r"^A demonstration of the judge has question='\{1, 2\}', which a freeze cannot"
    refuses(ArgumentError, message, frozen_selector, path, lm=lm)
    assert frozen_selector(path, lm=lm, judge=select.judge).judge is select.judge

    def number(content: dict[str, Any]) -> None:
        for prompt in content["roles"]["judge"]["prompts"].values():
            prompt["signature"]["instructions"] = 5

    rewrite(Path(path), number)
    message = r"^The instructions of the judge must be text; got 5\. Freeze it anew\.$"
    refuses(ArgumentError, message, frozen_selector, path, lm=lm)


# -- after an upgrade: the same, or the frozen run shows that all is decided as before, or refused --
class Answering(dspy.Module):  # answers from one passage
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context, question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=["Its capital is Doha."], question=question)


DEVSET = [dspy.Example(question=f"Which, {n}?", answer="Doha", id=f"q{n}").with_inputs("question") for n in range(2)]


@pytest.fixture
def pool() -> Path:
    return write_pool(Path("capitals.jsonl"), map(row, range(6)))


@pytest.fixture
def frozen_run(pool: Path) -> Path:
    """A freeze of the heuristic roles, with a run that they were chosen on."""
    evaluate(heuristic_selector(), Plan([pool], Path("first"), rules=TWO))
    return write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json"), run=Path("first")).path


def by_other_code(freeze: Path) -> None:
    """Make the freeze that other code of this package would have made, with another DSPy."""
    rewrite(freeze, lambda content: content["code"].update(eldgr_dspy="0" * 16))
    rewrite(freeze, lambda content: content["versions"].update(dspy="3.0.0"))


def test_another_version_alone_is_the_same_freeze_and_other_code_that_decides_as_before_a_warning(
    frozen_run: Path, pool: Path
) -> None:
    run(pool, frozen_run, "same")
    rewrite(frozen_run, lambda content: content["versions"].update(dspy="3.0.0", python="3.99.0"))
    run(pool, frozen_run, "versions")  # warnings are errors here
    rewrite(frozen_run, lambda content: content["versions"].update(python=platform.python_version()))
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
    sentence = (
        r"The frozen run is decided again: first is now decided otherwise on 1 of 6 questions \(capitals: q4\)\. Undo"
    )
    refuses(RunChangedError, sentence, run, pool, frozen_run, "out")
    refuses(RunChangedError, sentence, frozen_selector, frozen_run)
    with pytest.warns(FreezeWarning):
        frozen_selector(frozen_run, rule="majority")
    message, other_file = r"^first: is now decided otherwise on 1 of 6 .* Evaluate its pools anew", Path("other.freeze")
    refuses(ArgumentError, message, write_freeze, heuristic_selector(), TWO, other_file, run=Path("first"))


def test_other_code_without_the_frozen_run_to_decide_again_is_refused(frozen_run: Path, pool: Path) -> None:
    without = write_freeze(heuristic_selector(), TWO, Path("without.json")).path
    decisions = Path("first/decisions.jsonl")
    decisions.write_text(decisions.read_text().replace('"answer": "Nice"', '"answer": "Paris"', 1))
    for freeze, message in (
        (without, r"It states no run that could be decided again\. Install what it was fro"),
        (frozen_run, r"first: its decisions are not those that were frozen"),
    ):
        by_other_code(freeze)
        refuses(RunChangedError, message, run, pool, freeze, "out")


def test_the_frozen_run_is_found_or_named(frozen_run: Path, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_other_code(frozen_run)
    here = Path.cwd()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    with pytest.warns(FreezeWarning):
        frozen_selector(here / frozen_run)
    files = [shutil.move(here / name, here / "elsewhere") for name in ("first", pool)]
    with pytest.raises(RunChangedError, match=r"The frozen run is decided again: .*first: no such directory"):
        frozen_selector(here / frozen_run)
    with pytest.warns(FreezeWarning):
        frozen_selector(here / frozen_run, recordings=files)


def test_a_run_of_another_choice_is_not_frozen(pool: Path) -> None:
    evaluate(heuristic_selector(certificate="token"), Plan([pool], Path("first"), rules=["eldgr"]))
    for selector, rules, message in (
        (heuristic_selector(certificate="folded"), TWO, 'that are frozen; got certificate: "token" -> "folded"'),
        (heuristic_selector(certificate="token"), TWO, "has no decisions of majority on 'capitals'"),
        (selector_with(obliging, certificate="token")[0], ["eldgr"], "that the frozen roles made; got judge.lm: "),
    ):
        refuses(ArgumentError, message, write_freeze, selector, rules, Path("rule.freeze.json"), run=Path("first"))
    assert not Path("rule.freeze.json").exists()


def test_a_comment_is_no_change_and_a_digit_in_a_listed_module_is(frozen_run: Path, pool: Path, tmp_path: Path) -> None:
    """In a copy of the package, which a process of its own imports."""
    package = Path(shutil.copytree(Path(lexical.__file__).parents[1], tmp_path / "copy" / "eldgr_dspy"))
    evaluating = ("evaluate", str(pool), "--freeze", str(frozen_run))
    for name in ("decision", "report/page", "programs/commands/bound"):
        with (package / f"{name}.py").open("a") as file:
            file.write("\n# One comment more.\n" if name == "decision" else "\nADDED = 1\n")
    same = command(*evaluating, "--out", "same", path=package.parent)
    assert (same.returncode, "Note:" in same.stderr) == (0, False)
    module = package / "rule" / "lexical.py"
    module.write_text(module.read_text().replace("SOURCES = 3", "SOURCES = 2"))
    output = command(*evaluating, "--out", "noted", path=package.parent)
    assert output.returncode == 0
    assert "Note: rule.freeze.json: The code that decides has changed since it was frozen. first is" in output.stderr


def test_a_freeze_of_the_first_schema_is_read_and_refused_with_its_versions(frozen_run: Path, pool: Path) -> None:
    """Its hashes are of texts, so none of them is an identity."""
    content = dict(read_freeze(frozen_run).content)
    del content["recordings"]
    content |= {"schema": 1, "sources": content.pop("code"), "versions": {**content["versions"], "python": "3.11"}}
    content["sources"]["eldgr_dspy"] = "0" * 16
    frozen_run.write_text(json.dumps({**content, "sha256": hash_of(content)}))
    assert read_freeze(frozen_run).rules == TWO
    message = r"changed since it was frozen with python 3\.11; this is python \S+\. It "
    refuses(RunChangedError, message, run, pool, frozen_run, "out")


# --- the program that samples -----------------------------------------------------------------------------------------
def test_prompts_and_models_of_the_program_that_samples_are_frozen_and_pools_must_be_of_it(pool: Path) -> None:
    lm = scripted_lm(lambda _: "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]")
    sampling = Collection(f"{__name__}:Answering", f"{__name__}:DEVSET", out="sampled.jsonl", n=2, workers=1)
    collect(sampling, lm=lm)
    evaluate(heuristic_selector(), Plan(["sampled.jsonl"], Path("first"), rules=TWO))
    freeze = write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json"), run=Path("first")).path
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
            refuses(RunChangedError, line, frozen_selector, freeze, program=program)
    message = r"was frozen with a program that samples; give it: frozen_selector\("
    refuses(ArgumentError, message, frozen_selector, freeze)
    run(Path("sampled.jsonl"), freeze, "same")
    with pytest.warns(FreezeWarning, match=r"nothing next to capitals\.jsonl states the program that sampled it"):
        run(pool, freeze, "bare")
    collect(replace(sampling, out="other.jsonl"), lm=lm.copy(temperature=0.9))
    message = r"other\.jsonl is not sampled as what was frozen:\n  program\.lm"
    refuses(RunChangedError, message, run, Path("other.jsonl"), freeze, "other")
