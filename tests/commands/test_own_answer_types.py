"""`--answer MODULE:NAME` and `--certificate MODULE:FUNCTION` in every command that takes them, as a user types them."""

import json
import linecache
import shutil
import sys
from pathlib import Path

import pytest

from eldgr_dspy import answer_types
from eldgr_dspy.base.named_objects import load_object
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands.options import AnswerName
from eldgr_dspy.programs.run.frozen import frozen_selector
from tests.commands.installed import Eldgr
from tests.lm_server import serving
from tests.results.demo_pools import ARTIFACTS

TYPES = """
import re
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.matching.text_keys import AnswerClass

def year_in(answer):
    found = re.search("[0-9]{4}", answer)
    return found and found[0]

class Years(AnswerType):
    way = "evidence"
    scores = ("accuracy",)

    def read(self, answer):
        year = year_in(answer)
        return year and AnswerClass(year)

    def is_right(self, answer, gold):
        return self.class_of(answer) in [self.class_of(right) for right in gold]

years = Years()
"""
NAME = "own_types:years"
CANDIDATES = [{"text": "In 1977, or rather 1976.", "answer": "in 1976"}, {"answer": "1977"}, {"answer": "1977."}]
ABOUT = {"question": "When did it open?", "evidence": [{"text": "It opened in 1976."}], "gold": ["1976"]}
ROW = {"id": "q", "task": NAME, "candidates": CANDIDATES, **ABOUT}


@pytest.fixture(autouse=True)
def types(eldgr: Eldgr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_types.py").write_text(TYPES)
    Path("years.jsonl").write_text(json.dumps(ROW) + "\n")
    Path("command_certificates.py").write_text(CERTIFICATES)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch, types: str = "") -> None:
    """Go on as in a new process, with other types if they are given."""
    if types:
        Path("own_types.py").write_text(types)
    monkeypatch.setattr(answer_types, "_OWN", {})
    monkeypatch.setattr(answer_types, "_MEMORY", {})
    monkeypatch.delitem(sys.modules, "own_types", raising=False)
    shutil.rmtree("__pycache__", ignore_errors=True)
    linecache.clearcache()
    load_object.cache_clear()


def evaluate(eldgr: Eldgr, *more: str, code: int = 0) -> str:
    return eldgr("evaluate", "years.jsonl", "--answer", NAME, "--out", "run", *more, code=code).err


@pytest.mark.parametrize("command", ["evaluate", "bound", "pool check"])
def test_a_pool_imports_nothing_and_has_its_type(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    error = eldgr(*command.split(), "years.jsonl", code=1).err
    assert "task is 'own_types:years' (str); expected one of" in error
    assert error.endswith("or your own module:name, given as --answer.\n")
    assert "own_types" not in sys.modules
    Path("other.jsonl").write_text(json.dumps({**ROW, "task": "short"}) + "\n")
    refusal = eldgr(*command.split(), "other.jsonl", "--answer", NAME, code=1).err
    assert "must have answers of the type 'own_types:years'; got 'short'." in refusal
    forget(monkeypatch)
    if command != "evaluate":  # with it the pool is read
        figures = json.loads(eldgr(*command.split(), "years.jsonl", "--answer", NAME, "--format", "json").out)
        assert figures["pools"]["years"]["task"] == NAME


def test_a_run_goes_by_the_type_and_is_decided_and_shown_again(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(eldgr)
    pool = json.loads(Path("run/summary.json").read_text())["pools"]["years"]
    assert pool["answer_type"] == {"way": "evidence", "scores": ["accuracy"]}
    assert [pool["rules"][rule]["em"] for rule in ("majority", "certified")] == [0.0, 100.0]
    assert {*pool["bounds_any_span"].values()} == {None}
    answers = map(json.loads, Path("run/decisions.jsonl").read_text().splitlines())
    assert {one["rule"]: one["answer"] for one in answers}["certified"] == "in 1976"
    answer = json.loads(Path("run/journal.jsonl").read_text().partition("\n")[0])["details"]["answer"]
    assert (answer["name"], len(answer["source"])) == (NAME, 16)
    assert json.loads(Path("run/record.json").read_text())["settings"]["answer"] == answer
    forget(monkeypatch)
    assert f"{NAME}, 1 question" in eldgr("decide", "run", "--rules", "majority,certified", "--answer", NAME).out
    forget(monkeypatch)
    output = eldgr("show", "run", "q").out
    assert "it was made with" not in output and "1976" in output and "in 1976 (consensus)" not in output
    assert "own_types" not in sys.modules
    assert "1977 (consensus)" in eldgr("show", "run", "q", "--answer", NAME).out


def test_a_shared_name_is_the_type_that_was_loaded_last(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "answer must be one of" in eldgr("bound", "years.jsonl", "--answer", "year", code=2).err
    assert "has no 'months'" in eldgr("bound", "years.jsonl", "--answer", "own_types:months", code=2).err
    forget(monkeypatch, f"{TYPES}\n\nYears.name = 'shared'\none, other = Years(), Years()\n")
    for name in ("one", "other", "one"):
        own = answer_types.load_type(f"own_types:{name}")
        assert answer_types.answer_type("shared") is own and own.loaded_as == f"own_types:{name}"
    forget(monkeypatch, f"{TYPES}\n\nYears.name = 'by_year'\n")
    name = AnswerName().convert(NAME, None, None)
    forget(monkeypatch)
    assert answer_types.load_type(name).name == "by_year"


def test_a_run_of_a_type_that_uses_numpy_is_shown_without_it(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    is_right = "self.class_of(answer) in [self.class_of(right) for right in gold]"
    with_numpy = TYPES.replace("import re", "import re\nimport numpy").replace(is_right, f"numpy.bool_({is_right})")
    Path("own_types.py").write_text(with_numpy)
    evaluate(eldgr)
    assert Path("run", "summary.json").exists()
    Path("own_types.py").unlink()
    forget(monkeypatch)
    assert "accuracy %" in eldgr("report", "run").out
    assert "The same settings" in eldgr("compare", "run", "again=run").out


def test_a_run_whose_type_has_changed_is_refused(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(eldgr)
    evaluate(eldgr)
    forget(monkeypatch, TYPES.replace("year and AnswerClass(year)", 'AnswerClass(year or "none")'))
    assert "answer.source" in evaluate(eldgr, code=1)
    error = evaluate(eldgr, "--replay", "run/journal.jsonl", "--out", "other", code=1)
    assert "recorded with another answer type 'own_types:years': source" in error
    error = eldgr("decide", "run", "--rules", "majority", "--answer", NAME, code=1).err
    assert "run: answer='own_types:years' is not what the file states: source: " in error


PLACES = {"{4}": "code.own_types", "year and AnswerClass(year)": "settings.answer.source"}


@pytest.mark.parametrize(("part", "place"), PLACES.items())
def test_a_freeze_has_all_of_a_type(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch, part: str, place: str) -> None:
    eldgr("freeze", "--heuristic", "--answer", NAME, "--out", "rule.freeze.json")
    confirming = ("evaluate", "years.jsonl", "--freeze", "rule.freeze.json", "--answer", NAME)
    eldgr(*confirming, "--out", "first")
    assert frozen_selector("rule.freeze.json", answer=NAME).type.name == NAME
    forget(monkeypatch, TYPES.replace(part, part + " "))
    assert f"  {place}: " in eldgr(*confirming, "--out", "second", code=1).err


POOL = str(ARTIFACTS / "demo-retrieval.jsonl")
CERTIFICATES = """
import dspy

def quotes(answer, evidence, question):
    return any(f"{answer}." in passage.text for passage in evidence)

async def asks(answer, evidence, question):
    return quotes(answer, evidence, question)

class Strict:
    def __call__(self, answer, evidence):
        return False

strict = Strict()

class Grounded(dspy.Module):
    def __init__(self):
        super().__init__()
        self.predict = dspy.Predict("question: str, evidence: list[str], answer: str -> certified: bool")

    async def aforward(self, *, answer, evidence, question):
        texts = [passage.text for passage in evidence]
        return await self.predict.acall(question=question, evidence=texts, answer=answer)

    def most_calls(self, candidates):
        return 1

grounded = Grounded()
"""


@pytest.mark.parametrize("name", ["quotes", "asks"])
def test_a_run_is_evaluated_frozen_decided_shown_and_reported(name: str, eldgr: Eldgr) -> None:
    place = f"command_certificates:{name}"
    eldgr("freeze", "--heuristic", "--certificate", place, "--out", "rule.freeze.json")
    own = ("--certificate", place)
    eldgr("evaluate", POOL, "--freeze", "rule.freeze.json", *own, "--out", "run", "--quiet")
    record = json.loads(Path("run/record.json").read_text())
    assert record["certificate"]["retrieval"]["name"] == place
    of_run = json.loads(Path("run/summary.json").read_text())["pools"]["demo-retrieval"]
    again = json.loads(eldgr("decide", "run", "--rules", "eldgr", *own, "--json").out)["pools"]["demo-retrieval"]
    assert again["rules"]["eldgr"]["em"] == of_run["rules"]["eldgr"]["em"]
    assert again["bounds"] == of_run["bounds"]
    assert f"{place} (source {record['certificate']['retrieval']['source']})" in Path("run/report.html").read_text()
    eldgr("report", "run", *own, "--format", "html", "--out", "again.html")
    questions = Path("run/questions.html").read_bytes().replace(b"report.html", b"again.html")
    assert Path("again-questions.html").read_bytes() == questions
    assert f"by the certificate {place}" in eldgr("show", "run", "r02", *own).out
    assert "the same settings" in eldgr("compare", "run", "again=run").out.lower()


def test_an_object_with_a_call_is_a_certificate_and_one_that_asks_is_counted_but_not_bounded(eldgr: Eldgr) -> None:
    result = json.loads(eldgr("bound", POOL, "--certificate", "command_certificates:strict", "--json").out)
    figures = result["pools"]["demo-retrieval"]
    assert figures["bounds"]["eldgr"] == figures["bounds"]["majority"]
    assert (figures["bounds_any_span"]["eldgr"], figures["can_change"]["eldgr"]["repairer"]) == (None, None)
    asking = ("--certificate", "command_certificates:asks")
    line = "│ demo-retrieval │        certificate │  own code │      49 │         0 │        0 │     49 │   49+ │"
    assert line in eldgr("evaluate", POOL, *asking, "--dry-run").out
    assert not Path("runs").exists()
    error = "Error: certificate='command_certificates:asks' must be asked about each answer, and a bound asks nobody. "
    error += "Give it to eldgr evaluate, whose report has the bounds under the certificates that it gave.\n"
    assert eldgr("bound", POOL, *asking, code=1).err == error


def test_a_certificate_that_asks_asks_the_model_of_the_lm_option(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    options = ("--certificate", "command_certificates:grounded", "--out", "run", "--limit", "4")
    with serving() as server:
        asking = ("--lm", "openai/m", "--api-base", server.address, "--workers", "1")
        eldgr("evaluate", POOL, *options, *asking, "--max-calls", "3", code=3)
        assert (server.log[0].role, len(server.log)) == ("certificate", 3)
        eldgr("evaluate", POOL, *options, *asking, "--quiet")
        log = list(server.log)
        eldgr("evaluate", POOL, *options, *asking, "--quiet")
        assert (len(server.log), {one.model for one in log}) == (len(log), {"m"})
    entries = list(read_journal(Path("run/journal.jsonl")))
    calls = [one for one in entries if one.role in ("certificate", "repair_certificate")]
    assert {one.role for one in entries} >= {"certificate", "judge"}
    assert {one.outcome for one in calls} == {"ok"}
    assert sum(one.calls for one in calls) == sum(one.role == "certificate" for one in log)
