"""A selector comes out of its freeze as it was frozen, or not at all."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from pydantic import BaseModel

from eldgr_dspy import Selector
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.freezes import write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.testing import role_of, text_of
from eldgr_dspy.words import ROLES
from tests.capitals import EVIDENCE, NO_SPAN, VERDICT, obliging, selector_with
from tests.refusing import refused
from tests.run.freezing import rewrite

ASKED = {"question": "Which?", "candidates": ["Nice", "Nice", "Paris"], "evidence": EVIDENCE}


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def frozen(select: Selector, *rules: str) -> str:
    return str(write_freeze(select, rules or ("eldgr",), Path("rule.freeze.json")).path)


def modelled(**given: Any) -> Selector:
    """A selector as the command makes it."""
    defaults = {"lm": "openai/m", "judge_style": "listwise", "orders": 1, "structured": "auto", "replies": "strict"}
    names = ("judge", "deriver", "repairer", "api_base", "num_ctx")
    result: Selector = Models(**{**dict.fromkeys(names), **defaults, **given}).selector({})
    return result


# --- what comes back --------------------------------------------------------------------------------------------------
def test_rule_settings_and_roles_come_from_the_freeze() -> None:
    path = frozen(heuristic_selector(preference="stratum", certificate="token"), "majority", "eldgr")
    select = frozen_selector(path, answer="number", answer_field="response", on_failure="abstain", timeout=9)
    assert select.rule == "eldgr"
    assert select.settings.to_json() == heuristic_selector(preference="stratum", certificate="token").settings.to_json()
    kinds = [type(getattr(select, role)).__name__ for role in ROLES]
    assert kinds == ["LexicalJudge", "SilentDeriver", "ExtractiveRepairer"]
    options = {"field": select.answer_field, "on_failure": select.on_failure, "timeout": select.timeout}
    assert select.type.name == "number"
    assert options == {"field": "response", "on_failure": "abstain", "timeout": 9}
    assert frozen_selector(path, rule="majority").rule == "majority"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"judge_style": "pairwise", "orders": 3},
        {"judge_style": "pointwise", "judge": "anthropic/n"},
        {"orders": 2, "api_base": "http://localhost:1234/v1"},
        {"lm": "ollama/deepseek-r1:7b", "num_ctx": 4096, "api_base": "http://localhost:11434"},
        {"lm": None, "repairer": "openai/gpt-4o"},
        {"replies": "lenient"},
    ],
    ids=lambda given: " ".join(map(str, given.values())) or "defaults",
)
def test_roles_with_models_come_back_with_the_same_description(values: dict[str, Any]) -> None:
    before = modelled(**values)
    after = frozen_selector(frozen(before), api_base=values.get("api_base"))
    assert after.replies == before.replies
    assert [describe(getattr(after, role)) for role in ROLES] == [describe(getattr(before, role)) for role in ROLES]


def demonstrated() -> tuple[Selector, Any]:
    """A selector with another instruction, and with a demonstration as `BootstrapFewShot` keeps one: with models."""
    assessed = {**VERDICT, "assessments": [[5] * 8] * 3}
    select, lm = selector_with(lambda request: assessed if role_of(request) == "judge" else NO_SPAN)
    with dspy.context(trace=[]):
        select(**ASKED)
        (judge, inputs, outputs), *_ = dspy.settings.trace
    predictor: Any = select.judge.predictors()[0]
    assert isinstance(judge, dspy.Predict)
    assert isinstance(outputs["assessments"][0], BaseModel)
    predictor.demos = [dspy.Example(augmented=True, **inputs, **outputs)]
    predictor.signature = predictor.signature.with_instructions("Choose.")
    return select, lm


def test_a_compiled_role_asks_in_the_same_words() -> None:
    select, lm = demonstrated()
    again = frozen_selector(frozen(select), lm=lm)
    lm.requests.clear()
    shipped = [one(**ASKED).toDict() for one in (select, again)]
    assert shipped[0] == shipped[1]
    first, second = [text_of(request) for request in lm.requests if "Choose." in text_of(request)]
    assert first == second
    assert "augmented" not in first


def test_the_lm_of_the_settings_is_used_where_the_freeze_names_it() -> None:
    path = frozen(modelled())
    lm = dspy.LM("openai/m", temperature=0.0, api_key="s3cret")
    bound = dspy.LM("openai/m", temperature=0.0)
    with dspy.context(lm=bound):
        assert frozen_selector(path).judge.get_lm() is bound
    select = Selector()
    select.set_lm(lm)
    assert "s3cret" not in write_freeze(select, ("eldgr",), Path("secret.json")).path.read_text()
    with pytest.raises(RunChangedError, match=r'roles\.judge\.lm\.settings\.api_key: "\*\*\*" -> \(absent\)'):
        frozen_selector("secret.json")
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
    monkeypatch.delitem(sys.modules, "my_frozen_parts", raising=False)
    importlib.invalidate_caches()
    return importlib.import_module("my_frozen_parts")


def test_a_rule_a_certificate_and_a_role_of_ones_own_come_back(mine: Any) -> None:
    select = heuristic_selector(certificate="my_frozen_parts:quoted")
    select.judge = mine.Mine()
    path = frozen(select, "my_frozen_parts:mine")
    own: dict[str, Any] = {"certificate": "my_frozen_parts:quoted", "judge": "my_frozen_parts:Mine"}
    with pytest.raises(ArgumentError, match=r"frozen with certificate='my_frozen_parts:quoted'\. Give it: --cert"):
        frozen_selector(path, rule=mine.mine)
    assert isinstance(frozen_selector(path, rule=mine.mine, **own).judge, mine.Mine)
    again = frozen_selector(path, rule="my_frozen_parts:mine", **own)
    assert (again.rule, again.settings.certificate) == ("my_frozen_parts:mine", select.settings.certificate)
    assert type(again.judge) is mine.Mine
    assert again(**ASKED).answer == "Nice"


def test_a_role_that_cannot_be_made_is_given(mine: Any) -> None:
    select = heuristic_selector()
    select.judge = mine.Cutting(3)
    path = frozen(select)
    message = refused(lambda: frozen_selector(path), RunChangedError)
    assert '\n  roles.judge.module: "my_frozen_parts.Cutting" -> "eldgr_dspy.programs.' in message
    assert message.endswith(
        "A role that cannot be made from a freeze can be given: frozen_selector(..., judge=...). So can an LM with "
        "credentials, which no freeze holds: frozen_selector(..., lm=...)."
    )
    assert frozen_selector(path, judge=mine.Cutting(3)).judge.most == 3
    with pytest.raises(RunChangedError, match=r"roles\.judge\.attributes\.self\.most: 3 -> 4"):
        frozen_selector(path, judge=mine.Cutting(4))


# --- what is refused --------------------------------------------------------------------------------------------------
def model(content: dict[str, Any]) -> None:
    content["roles"]["judge"]["lm"] = {"model": "openai/m", "model_type": "chat", "settings": {}}


def lost(content: dict[str, Any]) -> None:
    content["roles"]["judge"]["module"] = "no_such_module.Judge"
    content["roles"]["judge"]["code"]["no_such_module.Judge"] = "0" * 16


@pytest.mark.parametrize(
    ("change", "line"),
    [(model, 'roles.judge.lm: {"model": "openai/m"'), (lost, 'roles.judge.module: "no_such_module.Judge" -> ')],
)
def test_another_role_or_model_is_refused_with_its_line(change: Callable[[dict[str, Any]], None], line: str) -> None:
    path = frozen(heuristic_selector())
    rewrite(Path(path), change)
    message = refused(lambda: frozen_selector(path), RunChangedError)
    assert message.startswith("rule.freeze.json: this is not what was frozen:\n")
    assert f"\n  {line}" in message


def test_edited_code_of_a_role_a_rule_or_a_certificate_is_refused(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    select = heuristic_selector()
    select.judge = mine.Mine()
    path = frozen(select)
    Path("my_frozen_parts.py").write_text(MINE.replace("    pass", "    edited = True"))
    monkeypatch.delitem(sys.modules, "my_frozen_parts")
    importlib.invalidate_caches()
    message = refused(lambda: frozen_selector(path, judge="my_frozen_parts:Mine"), RunChangedError)
    told = {line.split(": ")[0].strip() for line in message.splitlines() if line.startswith("  ")}
    assert told == {"code.my_frozen_parts"}


def test_what_the_freeze_holds_cannot_be_given_and_a_rule_must_be_in_it() -> None:
    path = frozen(heuristic_selector(), "majority", "judge")
    with pytest.raises(
        ArgumentError, match=r"^rule\.freeze\.json: certificate, consult must be as frozen; leave it out\.$"
    ):
        frozen_selector(path, rule="judge", certificate="token", consult="lazy")
    with pytest.raises(
        ArgumentError, match=r"^rule\.freeze\.json: rule must be one of majority, judge; got 'eldgr'\. Give one: "
    ):
        frozen_selector(path)


def test_a_demonstration_that_no_freeze_can_hold_is_refused() -> None:
    select, lm = selector_with(obliging)
    for predictor in select.judge.predictors():
        predictor.demos = [dspy.Example(question={1, 2}, preferred=0)]
    path = frozen(select)
    with pytest.raises(
        ArgumentError, match=r"^A demonstration of the judge has question='\{1, 2\}', which a freeze cannot"
    ):
        frozen_selector(path, lm=lm)
    assert frozen_selector(path, lm=lm, judge=select.judge).judge is select.judge


def test_a_selector_from_a_freeze_can_be_saved_and_loaded() -> None:
    select = frozen_selector(frozen(heuristic_selector()))
    select.save("select.json")
    frozen_selector("rule.freeze.json").load("select.json")
