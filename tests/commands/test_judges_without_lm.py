"""`--judges` and `--replay NAME=FILE`: formulas, trained selectors, own judges and recordings, run, frozen, refused."""

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.named_objects import load_object
from eldgr_dspy.errors import RunChangedError
from eldgr_dspy.programs.judges.counting_judges import OwnSelector, WeightedVote
from eldgr_dspy.programs.run.frozen import frozen_selector
from tests.capitals import recording, row, write_pool
from tests.case_tables import each_case
from tests.commands.installed import Eldgr
from tests.lm_server import Answer, serving
from tests.refusing import refuses
from tests.run.freezing import rewrite

MODULE = '''
import dspy
from eldgr_dspy.programs.roles import Judge

def last(ballot):
    """Prefer the last candidate."""
    return len(ballot.answers) - 1

class MyJudge(Judge):
    """The judge of the package under another name."""

class Fixed(dspy.Module):
    def forward(self, question, evidence, candidates):
        return dspy.Prediction(preferred=len(candidates) - 1)
'''
WORDS = {
    "cisc": "cisc:0.5",
    "prm": "best_of_n:prm:min",
    "drm": "drm",
    "policy": "autodspy:train.jsonl",
    "own": "command_judges:last",
    "fixed": "command_judges:Fixed",
}


def with_values(one: dict[str, Any]) -> dict[str, Any]:
    """A row whose last candidate, Paris, has the highest of all values."""
    for index, candidate in enumerate(one["candidates"]):
        high = 0.9 if index == 2 else 0.1
        candidate |= {"confidence": high, "tags": ["cot" if index == 2 else "direct"]}
        candidate["scores"] = {"prm": [0.95, high], "relevance": high, "coherence": high}
        candidate["logprobs"] = {"reasoning": -1 + high, "answer": -1 + high}
    return one


@pytest.fixture(autouse=True)
def _files(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Path("command_judges.py").write_text(MODULE)
    write_pool(Path("capitals.jsonl"), (with_values(row(number)) for number in range(4)))
    write_pool(Path("train.jsonl"), (with_values(row(number)) for number in range(50, 54)))
    for name in ("a.jsonl", "b.jsonl"):
        recording(Path(name), [f"q{number}" for number in range(4)])


def judges(*names: str) -> list[str]:
    return ["--judges", ",".join(f"{name}={WORDS[name]}" for name in names or WORDS)]


FREEZING = ["freeze", "--heuristic", *judges("cisc", "own"), "--rules", "majority,eldgr", "--out", "freeze.json"]
CONFIRMING = ["evaluate", "capitals.jsonl", "--freeze", "freeze.json", "--quiet", "--out", "run"]


def result_of(eldgr: Eldgr, *words: str | Path, pool: str = "capitals") -> Any:
    return json.loads(eldgr(*words, "--json").out)["pools"][pool]


def test_each_word_names_its_judge(eldgr: Eldgr) -> None:
    run = ["evaluate", "capitals.jsonl", *judges(), "--quiet", "--out", "run"]
    pool = result_of(eldgr, *run)
    assert list(pool["judges"]) == [*WORDS]
    for name, judge in pool["judges"].items():
        assert (judge["alone"], judge["locked"], judge["calls"], judge["lacks"]) == (100.0, 100.0, 0, None), name
    facts = {name: (of["gold_in_training"], of["logprobs"], of["positioned"]) for name, of in pool["judges"].items()}
    plain, own = (False, False, False), (None, None, None)
    assert [*facts.values()] == [plain, plain, (False, True, True), (True, False, True), own, own]
    again = result_of(eldgr, "decide", "run", "--rules", "eldgr")
    assert {name: of["alone"] for name, of in again["judges"].items()} == dict.fromkeys(WORDS, 100.0)


def test_a_judge_that_the_pool_lacks_the_values_of_is_na_in_what_is_printed(eldgr: Eldgr) -> None:
    write_pool(Path("bare.jsonl"), map(row, range(4)))
    eldgr("evaluate", "bare.jsonl", *judges("cisc", "own"), "--quiet", "--out", "run", "--max-abstentions", "0")
    for command in (["report", "run", "--format", "text"], ["decide", "run", "--rules", "eldgr"]):
        reply = " ".join(eldgr(*command).out.split())
        assert "the pool states no confidence" in reply and "gave no usable reply" not in reply
    journal = ["evaluate", "bare.jsonl", "--judges", "cisc,own", "--replay", "run/journal.jsonl", "--quiet"]
    figures = result_of(eldgr, *journal, "--out", "again", pool="bare")
    expected = {"cisc": "the pool states no confidence", "own": None}
    assert {k: v["lacks"] for k, v in figures["judges"].items()} == expected


def test_a_judge_class_of_a_module_asks_the_model_of_the_judge(eldgr: Eldgr) -> None:
    reply = Answer(json.dumps({"judge_rationale": "", "assessments": [], "preferred": 2}))
    with serving(lambda _: reply) as server:
        models = ["--judge", "openai/served", "--api-base", server.address]
        run = ["evaluate", "capitals.jsonl", "--judges", "mine=command_judges:MyJudge", *models, "--quiet"]
        pool = result_of(eldgr, *run, "--out", "run")
        assert (pool["judges"]["mine"]["alone"], pool["judges"]["mine"]["calls"]) == (100.0, 4)
        assert [(entry.model, entry.role) for entry in server.log] == [("served", "judge")] * 4


MODELS = {"listwise:openai/m": 1, "panel:openai/m+openai/n": 2, "cisc:0.5": 0, "drm": 0}


@pytest.mark.parametrize(("word", "calls"), MODELS.items())
def test_candidates_stand_in_each_order(word: str, calls: int, eldgr: Eldgr) -> None:
    for orders in (1, 3):
        options = ["--judges", f"j={word}", "--set", f"orders={orders}", "--dry-run"]
        role = result_of(eldgr, "evaluate", "capitals.jsonl", *options)["roles"]["judge[j]"]
        assert (role["calls"], role["to_ask"]) == (calls * orders * 4, 4)


def test_a_policy_on_its_training_questions_is_refused_with_their_count(eldgr: Eldgr) -> None:
    write_pool(Path("both.jsonl"), (with_values(row(number)) for number in range(48, 53)))
    reply = " ".join(eldgr("evaluate", "both.jsonl", *judges("policy"), "--out", "run", code=1).err.split())
    assert re.search(r"policy.* was trained on 3 of the 5 questions of both\.jsonl", reply)
    assert "Split the pool with eldgr pool split" in reply


@pytest.mark.parametrize(("name", "kind"), [("cisc", WeightedVote), ("own", OwnSelector)])
def test_a_freeze_ships_the_judge_that_was_frozen(name: str, kind: type, eldgr: Eldgr) -> None:
    eldgr(*FREEZING)
    assert result_of(eldgr, *CONFIRMING, *judges("cisc", "own"))["rules"][f"eldgr[{name}]"]["em"] == 100.0
    own: dict[str, Any] = {} if name == "cisc" else {"judge": "command_judges:last"}
    select = frozen_selector("freeze.json", rule=f"eldgr[{name}]", **own)
    assert type(select.judge) is kind
    one = with_values(row(1))
    pred = select(**{part: one[part] for part in ("question", "candidates", "evidence")})
    assert (pred.answer, pred.branch, pred.preference) == ("Paris", "judge", 2)


def test_a_freeze_finds_a_class_in_the_working_directory(monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    eldgr("freeze", "--heuristic", *judges("fixed"), "--rules", "eldgr", "--out", "freeze.json")
    monkeypatch.delitem(sys.modules, "command_judges")  # as in a new process
    load_object.cache_clear()
    assert type(frozen_selector("freeze.json", judge="command_judges:Fixed").judge).__name__ == "Fixed"


def test_a_freeze_with_another_formula_or_a_changed_function_is_refused(eldgr: Eldgr) -> None:
    eldgr(*FREEZING)
    other = ["--judges", "cisc=cisc:0.6,own=command_judges:last"]
    assert "roles.judge[cisc]" in eldgr(*CONFIRMING, *other, code=1).err
    roles = json.loads(Path("freeze.json").read_text())["roles"]
    assert roles["judge[own]"]["attributes"]["self"]["source"]["name"] == "command_judges:last"
    own = roles["judge[own]"]["attributes"]["self"]["source"] | {"source": "0" * 16}
    rewrite(Path("freeze.json"), lambda freeze: freeze["roles"]["judge[own]"]["attributes"]["self"].update(source=own))
    assert "roles.judge[own]" in eldgr(*CONFIRMING, *judges("cisc", "own"), code=1).err
    loading = partial(frozen_selector, "freeze.json", rule="eldgr[own]", judge="command_judges:last")
    refuses(RunChangedError, r"roles\.judge\[own\]", loading)


def test_a_recorded_judge_stands_beside_a_heuristic_one_and_recordings_may_name_all_judges(eldgr: Eldgr) -> None:
    options = ["--judges", "a", "--judges", "words=heuristic", "--replay", "a=a.jsonl", "--quiet"]
    assert list(result_of(eldgr, "evaluate", "capitals.jsonl", *options, "--out", "run")["judges"]) == ["a", "words"]
    for form in ("markdown", "latex", "text"):
        out = " ".join(eldgr("report", "run", "--format", form).out.split())
        assert "judges alone and under the lock" in out and "the run or the judge does not state it" in out

    replay = ["evaluate", "capitals.jsonl", "--replay", "b=b.jsonl", "--replay", "a=a.jsonl"]
    result = result_of(eldgr, *replay, "--out", "other", "--quiet")
    assert result == result_of(eldgr, *replay, "--judges", "b,a", "--out", "named", "--quiet")
    assert list(result["judges"]) == ["b", "a"]
    assert set(json.loads(eldgr(*replay, "--dry-run", "--json").out)["models"]) >= {"judge[a]", "judge[b]"}


def test_a_forecast_names_each_judge_and_its_model(eldgr: Eldgr) -> None:
    options = ["--judges", "a=openai/m,b=listwise:openai/n,c=pairwise", "--judge", "openai/o", "--dry-run", "--json"]
    figures = json.loads(eldgr("evaluate", "capitals.jsonl", *options).out)
    models = dict(zip(("judge[a]", "judge[b]", "judge[c]"), ("openai/m", "openai/n", "openai/o"), strict=True))
    assert {role: model for role, model in figures["models"].items() if model} == models
    roles = figures["pools"]["capitals"]["roles"]
    assert {role: of["calls"] for role, of in roles.items() if "judge" in role} == dict.fromkeys(models, 4)


@each_case("commands", "addresses of judges and roles")
def test_an_address_may_be_of_named_judges_or_of_other_roles_alone(line: str, code: int, eldgr: Eldgr) -> None:
    address = ["--api-base", "http://127.0.0.1:9/v1", "--dry-run", "--quiet"]
    eldgr("evaluate", "capitals.jsonl", *line.split(), *address, code=code)
