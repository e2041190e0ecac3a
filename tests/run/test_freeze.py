"""A frozen rule is evaluated as it was frozen or not at all."""

import itertools
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.decision import RULES, Choice, Steps
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.freezes import read_freeze, write_freeze
from eldgr_dspy.programs.selector import Selector
from tests.capitals import obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.refusing import refusal, refuses
from tests.run.freezing import TWO, command, demonstrate, hash_of, imported_anew, reword, rewrite, run
from tests.run.journals import json_of


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_pool(Path("capitals.jsonl"), map(row, range(6)))


@pytest.fixture
def freeze(pool: Path) -> Path:
    """A freeze of the heuristic roles under two rules."""
    return write_freeze(heuristic_selector(), TWO, Path("rule.freeze.json")).path


def test_the_same_rule_makes_the_same_file_which_is_never_overwritten(tmp_path: Path) -> None:
    """And what cannot be frozen makes none."""
    for rules, message in (
        ((), r"^rules must have at least one of .*; got \(\)"),
        (("best",), r"^rules='best' is not known; use one of"),
    ):
        refuses(ArgumentError, message, write_freeze, heuristic_selector(), rules, tmp_path / "a.json")
    sentence = r": No such file or directory\. Check the name, and that its folder is there\.$"
    refuses(ArgumentError, sentence, write_freeze, heuristic_selector(), TWO, tmp_path / "nowhere" / "a.json")
    assert list(tmp_path.iterdir()) == []
    one, other = (write_freeze(heuristic_selector(), TWO, tmp_path / name) for name in ("a.json", "b.json"))
    before = one.path.read_bytes()
    assert (before, read_freeze(one.path)) == (other.path.read_bytes(), one)
    content = json.loads(before)
    assert content.pop("sha256") == hash_of(content)
    write_freeze(heuristic_selector(), TWO, one.path)
    message = r"out='.*a\.json' holds another freeze, which is never overwritten"
    refuses(ArgumentError, message, write_freeze, heuristic_selector(), ("eldgr",), one.path)
    assert one.path.read_bytes() == before


def test_a_freeze_holds_prompts_demonstrations_models_settings_and_versions(tmp_path: Path) -> None:
    selector, _ = selector_with(obliging, certificate="token")
    for predictor in selector.judge.predictors():
        predictor.demos = [dspy.Example(question="Which, \ud83d?", preferred=1)]  # with half of a surrogate pair
    freeze = write_freeze(selector, tuple(RULES), tmp_path / "rule.freeze.json")
    content = read_freeze(freeze.path).content
    (judge,) = content["roles"]["judge"]["prompts"].values()
    assert judge["demos"] == [{"question": "Which, \ud83d?", "preferred": 1}]
    assert judge["signature"]["instructions"].startswith("Judge the candidate answers")
    assert [content["roles"][role]["lm"]["model"] for role in ("judge", "deriver", "repairer")] == ["scripted/lm"] * 3
    assert content["roles"]["judge"]["adapter"].endswith("StrictJSONAdapter")
    assert (freeze.rules, freeze.arguments({})["certificate"]) == (tuple(RULES), "token")
    versions = dict.fromkeys(("eldgr_dspy", "dspy", "pydantic", "python"), 2)
    assert {name: version.count(".") for name, version in content["versions"].items()} == versions


@each_case("run", "freezes that are made")
def test_what_is_said_to_be_heuristic_is_frozen_and_so_is_what_asks_nobody(pool: Path, words: str) -> None:
    """Where a rule may ask a heuristic role, the command line must say so: `test_command_refusals.py`."""
    assert (main(["freeze", *words.split()]), Path("rule.freeze.json").is_file()) == (0, True)


def needs_four(case: Any) -> Steps:
    """Fails on a pool of fewer than four candidates."""
    yield "judge"
    return Choice("first", case.question.answers[3])


def draws(case: Any) -> Steps:
    yield from ()
    return Choice("consensus", case.consensus if random.random() < 0.9 else case.first)


def counts(case: Any, calls: Iterator[int] = itertools.count()) -> Steps:  # noqa: B008 -- over all calls
    if next(calls) % 7 == 0:
        yield "judge"
    return Choice("consensus", case.consensus)


def test_a_rule_is_frozen_with_its_source_if_it_decides_the_same_twice_and_may_fail_on_some(tmp_path: Path) -> None:
    for rule in (f"{__name__}:draws", f"{__name__}:counts"):
        message = rf"^rules='{rule}' must decide the same each time; it "
        refuses(ArgumentError, message, write_freeze, heuristic_selector(), ("eldgr", rule), tmp_path / "freeze.json")
    assert not (tmp_path / "freeze.json").exists()
    name = f"{__name__}:needs_four"
    result = write_freeze(heuristic_selector(), (name,), tmp_path / "freeze.json").content
    assert result["code"].keys() == {"eldgr_dspy", __name__}
    hashes = [*result["code"].values(), result["rules"][name]["decisions"]]
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in hashes)


@each_case("run", "files of a rule of one's own")
def test_a_rule_of_ones_own_that_changed_is_refused(pool: Path, file: str, place: str) -> None:
    """Also where what changed is in a module that it imports."""
    Path("my_rules.py").write_text(
        "from my_helpers import kept\nfrom eldgr_dspy.decision import Choice\n\n"
        "def mine(case):\n    yield from ()\n    return Choice('consensus', kept(case))\n"
    )
    Path("my_helpers.py").write_text("def kept(case):\n    return case.consensus\n")
    rules, evaluating = ("--rules", "my_rules:mine"), ("evaluate", str(pool), "--freeze", "mine.json")
    assert command("freeze", *rules, "--heuristic", "--out", "mine.json").returncode == 0
    before = Path(file).read_text()
    source = before.replace("return case.consensus", "return case.first").replace("'consensus'", "'first'")
    Path(file).write_text(source)
    result = command(*evaluating, *rules)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: mine.json: this is not what was frozen:\n")
    assert f'\n  {place}: "' in result.stderr
    Path(file).write_text(before)
    assert command(*evaluating, *rules, "--quiet").returncode == 0
    assert "it was frozen with the rule 'my_rules:mine'. Give it: --rules" in command(*evaluating).stderr


ROLE = """
from eldgr_dspy.programs.heuristics import LexicalJudge

def cut(text):
    return text

class Cutting(LexicalJudge):
    def forward(self, *, question, evidence, candidates):
        return super().forward(question=cut(question), evidence=evidence, candidates=candidates)
"""


@each_case("run", "changed roles")
def test_a_role_of_ones_own_that_changed_is_refused(
    pool: Path, monkeypatch: pytest.MonkeyPatch, was: str, now: str, lines: list[str]
) -> None:
    """Also where what changed is beside its class."""
    monkeypatch.syspath_prepend(str(Path.cwd()))

    def selector(text: str) -> Selector:
        Path("my_roles.py").write_text(text)
        result = heuristic_selector()
        result.judge = imported_anew(monkeypatch, "my_roles").Cutting()
        return result

    freeze = write_freeze(selector(ROLE), TWO, Path("rule.freeze.json")).path
    run(pool, freeze, "same", selector(ROLE))
    again = partial(run, pool, freeze, "other", selector(ROLE.replace(was, now)))
    sentence = refusal(again, RunChangedError) if lines else str(again())
    assert [line.split(": ")[0].strip() for line in sentence.splitlines() if line.startswith("  ")] == lines


def test_a_run_under_a_freeze_is_what_was_frozen_with_its_lms(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--rules", "majority,eldgr", "--certificate", "token", "--set", "preference=stratum"]
    assert main(["freeze", *rules, "--heuristic", "--out", "mine.json"]) == 0
    assert re.fullmatch(r"mine\.json: majority, eldgr frozen as [0-9a-f]{16}\.\n", capsys.readouterr().out)
    for out, options in (("first", []), ("second", rules)):
        assert main(["evaluate", str(pool), "--freeze", "mine.json", "--out", out, "--quiet", *options]) == 0
    assert main(["evaluate", str(pool), "--out", "free", "--quiet", *rules]) == 0
    assert len({Path(out, "decisions.jsonl").read_bytes() for out in ("first", "second", "free")}) == 1
    assert list(json_of(Path("first/summary.json"))["pools"]["capitals"]["rules"]) == ["majority", "eldgr"]
    for models in ("--lm openai/m", "--judge openai/m --repairer openai/m"):
        assert main(["freeze", *models.split(), "--out", f"{models[2:4]}.json"]) == 0
        assert main(["evaluate", str(pool), "--freeze", f"{models[2:4]}.json"]) == 1
        assert capsys.readouterr().err.endswith(f"\nThe freeze states models. Give them again: {models}.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_freeze_that_cannot_be_told_of_is_frozen_all_the_same(tmp_path: Path) -> None:
    freezing = ("freeze", "--heuristic", "--out", str(tmp_path / "freeze"))
    with Path("/dev/full").open("w") as full:
        result = command(*freezing, stdout=full)
    expected = f"Error: The freeze is in {tmp_path / 'freeze'}, but this could not be printed: "
    assert (result.returncode, result.stderr.startswith(expected)) == (1, True)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        result = command(*freezing, stdout=pipe)
    assert (result.returncode, result.stderr) == (0, "")


@each_case("run", "options that contradict a freeze")
def test_an_option_that_contradicts_the_freeze_is_refused_with_the_difference(
    freeze: Path, pool: Path, values: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode in ([], ["--dry-run"]):
        assert main(["evaluate", str(pool), "--freeze", str(freeze), *mode, *values.split()]) == 1
        err = capsys.readouterr().err
        assert err.startswith("Error: rule.freeze.json: this is not what was frozen:\n  ") and f"\n  {line}" in err
        assert err.count("\n  ") == 1 or not line.startswith("settings")  # only what differs is told
        assert err.endswith("\nUndo the change, or freeze the current state in another file.\n")
    assert {path.name for path in Path().iterdir()} == {"capitals.jsonl", "rule.freeze.json"}


def test_a_variable_of_the_environment_is_an_option_and_an_adapter_of_the_surroundings_a_change(
    freeze: Path, pool: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELDGR_EVALUATE_SET", "preference=stratum")
    assert main(["evaluate", str(pool), "--freeze", str(freeze)]) == 1
    assert '\n  settings.preference: "global" -> "stratum"\n' in capsys.readouterr().err
    with dspy.context(adapter=dspy.ChatAdapter()):
        refuses(RunChangedError, r"roles\.judge\.adapter: .* -> \"dspy\..*ChatAdapter\"", run, pool, freeze, "out")


def test_another_prompt_or_setting_is_refused(pool: Path) -> None:
    def warm(selector: Any) -> None:
        selector.repairer.set_lm(selector.repairer.get_lm().copy(temperature=1.0))

    for change, difference in (
        (reword, r"roles\.judge\.prompts\.predict\.signature\.instructions: .* -> \"Choose\.\""),
        (demonstrate, r"roles\.judge\.prompts\.predict\.demos\[0\]\.preferred: \(absent\) -> 1"),
        (warm, r"roles\.repairer\.lm\.settings\.temperature: .* -> 1\.0"),
    ):
        selector, lm = selector_with(obliging)
        freeze = write_freeze(selector, TWO, Path(f"{change.__name__}.freeze.json")).path
        change(selector)
        refuses(RunChangedError, difference, run, pool, freeze, "out", selector)
        assert lm.requests == []


@each_case("run", "files that are not freezes")
def test_no_other_file_is_a_freeze(pool: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rule.freeze.json").write_text(text)
    assert main(["evaluate", str(pool), "--freeze", "rule.freeze.json"]) == 1
    assert re.fullmatch(rf"Error: rule\.freeze\.json: {message}\n", capsys.readouterr().err)


def test_a_freeze_that_was_made_by_hand_is_refused(freeze: Path) -> None:
    whole = freeze.read_bytes()
    changes: dict[str, Callable[[dict[str, Any]], object]] = {
        r"not a freeze \(it lacks roles\); restore it from a copy": lambda content: content.pop("roles"),
        r"not a freeze \(it lacks judge\); restore it from a copy": lambda content: content["roles"]["judge"].update(
            code=None
        ),
        r"not a freeze \(it lacks the run and the decisions in its recordings\)": lambda content: content.update(
            recordings={}
        ),
        "settings: .*unexpected keyword": lambda content: content.update(settings={"certificat": "best"}),
        "certificate='best' is": lambda content: content.update(settings={"certificate": "best"}),
    }
    for message, change in changes.items():
        freeze.write_bytes(whole)
        rewrite(freeze, change)
        refuses(ArgumentError, message, read_freeze, freeze)


def test_what_is_no_file_of_a_freeze_is_refused_and_so_is_a_recording_beside_one(freeze: Path, pool: Path) -> None:
    """A pipe is not waited for."""
    message = r"^none\.json: no such file; check the name, or make it with eldgr freeze\."
    refuses(ArgumentError, message, run, pool, Path("none.json"), "out")
    refuses(ArgumentError, r"^\.: Is a directory\. Give the name of a file\.", read_freeze, Path())
    os.mkfifo("pipe")
    refuses(ArgumentError, "pipe: is a pipe or a device; give a file", read_freeze, Path("pipe"))
    evaluate(heuristic_selector(), Plan([pool], Path("first")))
    message, replay = r"^replay='first/journal\.jsonl' would replace the roles that ar", Path("first/journal.jsonl")
    refuses(ArgumentError, message, run, pool, freeze, "out", replay=replay)
    assert not Path("out").exists()


def test_a_run_stays_under_the_freeze_that_it_began_under_and_states_it(freeze: Path, pool: Path) -> None:
    other = write_freeze(heuristic_selector(preference="stratum"), TWO, Path("other.freeze.json")).path
    assert run(pool, freeze, "frozen") == run(pool, freeze, "frozen") == {"lock": read_freeze(freeze).sha256}
    assert evaluate(heuristic_selector(), Plan([pool], Path("free"), rules=TWO))["confirmation"] is None
    message = r"^free: this run was started without a freeze; give another --out\."
    refuses(RunChangedError, message, run, pool, freeze, "free")
    with pytest.raises(RunChangedError, match=r"^frozen: this run was started under a freeze; give it with --freeze\."):
        evaluate(heuristic_selector(), Plan([pool], Path("frozen"), rules=TWO))
    with pytest.raises(RunChangedError, match=r"with another freeze:\n  sha256: \"[0-9a-f]{64}\" -> "):
        run(pool, other, "frozen", heuristic_selector(preference="stratum"))
