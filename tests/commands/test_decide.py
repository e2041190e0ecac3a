"""`eldgr decide` evaluates rules on what a run has asked, as the run itself would; what was never asked is withheld."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, JournalError, RunStoppedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.decide import command_that_asks
from eldgr_dspy.programs.commands.role_models import Models
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.role_calls import metered_settings, role_call
from eldgr_dspy.programs.run.settling import decide_again
from eldgr_dspy.words import Replies
from tests.capitals import Flaky, drop_times, obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.commands.installed import Eldgr
from tests.finished_runs import finished_run, make_rows
from tests.refusing import refuses
from tests.results.demo_pools import ARTIFACTS

DEFAULT = ("first", "majority", "certified", "judge", "eldgr")

pytestmark = pytest.mark.usefixtures("eldgr")  # in an empty folder

CAUTIOUS = '''
from eldgr_dspy.decision import Choice
def cautious(case):
    """The judge's preference where it is certified, whatever consensus is."""
    preference = case.preferred((yield "judge"))
    certified = case.certified(preference) is True
    return Choice("judge", preference) if certified else Choice("consensus", case.consensus)
'''


def decide(run: Path, *rules: str, files: tuple[Path, ...] = ()) -> Any:
    return decide_again(read_run(run), rules, files).figures["capitals"]


def summary_of(run: Path) -> Any:
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))["pools"]


RUNS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "whole": (obliging, {}),
    "limited": (obliging, {"limit": 5}),
    "with failures": (Flaky(lambda number: number % 3 == 0), {"max_failures": "100%"}),
    "of abstentions": (lambda request: "no JSON", {}),
    "of two rules": (obliging, {"rules": ("majority", "eldgr")}),
}


@pytest.mark.parametrize(("reply", "plan"), RUNS.values(), ids=RUNS)
def test_the_rules_of_a_run_give_its_figures(tmp_path: Path, reply: Callable[[Any], Any], plan: dict[str, Any]) -> None:
    """No call is made, and nothing is written."""
    selector, lm = selector_with(reply)
    run, _ = finished_run(tmp_path, n=9, selector=selector, **plan)
    before, requests_before = {path: path.read_bytes() for path in run.iterdir()}, len(lm.requests)
    assert decide(run, "majority") == summary_of(run)["capitals"]
    assert ({path: path.read_bytes() for path in run.iterdir()}, len(lm.requests)) == (before, requests_before)


def test_the_demo_gives_the_same_figures_on_both_pools(tmp_path: Path) -> None:
    *pools, replay = (str(ARTIFACTS / f"demo-{name}.jsonl") for name in ("retrieval", "arithmetic", "replay"))
    assert main(["evaluate", *pools, "--replay", replay, "--out", "demo", "--quiet"]) == 0
    result = decide_again(read_run(Path("demo")), ["eldgr"]).figures
    assert drop_times(result) == drop_times(summary_of(Path("demo")))


def test_a_rule_of_ones_own_added_later_is_evaluated_on_old_consultations(tmp_path: Path, eldgr: Eldgr) -> None:
    name = "rules_of_a_very_careful_person_who_writes_long_names_for_what_is_short"
    for module in ("cautious_rules", "other_rules", name):
        (tmp_path / f"{module}.py").write_text(CAUTIOUS, encoding="utf-8")
    (tmp_path / "deriving_rules.py").write_text(CAUTIOUS.replace('yield "judge"', 'yield "deriver"'), encoding="utf-8")
    run, _ = finished_run(tmp_path, n=9, selector=selector_with(obliging)[0])
    pool = decide(run, "cautious_rules:cautious")
    assert (list(pool["rules"]), pool["withheld"]) == ([*DEFAULT, "cautious_rules:cautious"], {})
    assert pool["rules"]["cautious_rules:cautious"]["em"] == pytest.approx(100 * 6 / 9)
    assert ("eldgr", "cautious_rules:cautious") in [(one["rule"], one["against"]) for one in pool["contrasts"]]
    out, err = eldgr("decide", run, "--rules", "cautious_rules:cautious")
    assert re.search(r"│ cautious_rules:cautious │ +66\.67 │", out) and err == ""
    out, _ = eldgr("decide", run, "--rules", f"{name}:cautious")  # a long name cuts no figure
    assert f"{name}:cautious" in out and "…" not in out
    out, _ = eldgr("decide", run, "--rules", "deriving_rules:cautious")  # of a role that a program made
    message = "was never asked on 9 questions where this rule needs it; no command can ask for it: a "
    assert f"since the deriver {message}" in out
    pool = write_pool(tmp_path / "capitals.jsonl", make_rows(6))
    eldgr("evaluate", pool, "--rules", "majority,other_rules:cautious", "--out", "other")
    expected = summary_of(Path("other"))["capitals"]["rules"]["other_rules:cautious"]
    assert decide(Path("other"), "other_rules:cautious")["rules"]["other_rules:cautious"] == expected


@pytest.mark.parametrize("settings", [[], ["--certificate token", "--consult always", "--set homogeneous=skip"]])
@pytest.mark.parametrize("limit", [None, 4])
def test_the_command_asks_what_lacked(tmp_path: Path, eldgr: Eldgr, settings: Sequence[str], limit: int | None) -> None:
    pool = write_pool(tmp_path / "my capitals.jsonl", make_rows(6))
    options = [word for setting in settings for word in setting.split(" ")]
    options += ["--limit", str(limit)] if limit else []
    eldgr("evaluate", pool, "--rules", "majority", "--out", "a run", *options)
    out, _ = eldgr("decide", "a run", "--rules", "judge")
    assert f"judge: withheld, since the judge was never asked on {limit or 6} questions where this rule needs it" in out
    eldgr(*shlex.split(out.partition("to ask for it: eldgr ")[2].splitlines()[0]))
    out, err = eldgr("decide", "a run", "--rules", "judge")
    assert ("withheld" in out, err) == (False, "")
    assert summary_of(Path("a run"))["my capitals"]["n"] == (limit or 6)


def test_a_run_played_from_a_recording_says_that_the_heuristic_role_is_asked(tmp_path: Path, eldgr: Eldgr) -> None:
    live, pool = finished_run(tmp_path, rules=("majority", "eldgr"))
    eldgr("evaluate", pool, "--replay", live / "journal.jsonl", "--rules", "eldgr", "--out", "played")
    text = "to ask for it, here of the heuristic deriver, because a recording names no model (add --deriver MODEL to "
    (tmp_path / "asking_rules.py").write_text(ASKS_A_DERIVER)
    out, _ = eldgr("decide", "played", "--rules", "asking_rules:derives")
    assert f"{text}ask a" in " ".join(out.split())
    eldgr(*shlex.split(out.partition("to ask a model): eldgr ")[2].splitlines()[0]))
    assert "to ask for it" not in eldgr("decide", "played", "--rules", "asking_rules:derives")[0]
    assert "heuristic" not in eldgr("decide", live, "--rules", "asking_rules:derives")[0]


ASKS_A_DERIVER = """
from eldgr_dspy.decision import Choice
def derives(case):
    yield "deriver"
    return Choice("consensus", case.consensus)
"""


@each_case("commands", "commands that name a model")
def test_the_command_names_a_model_for_each_role(tmp_path: Path, models: Any, options: Any, expected: str) -> None:
    """Of roles that are known it names what was asked: see `test_continuing.py`."""
    run, _ = finished_run(tmp_path, rules=("majority",))
    names: Any = dict(zip(("judge", "repairer"), models, strict=True))
    defaults: Any = {"deriver": None, "api_base": None, "num_ctx": None, "judge_style": "listwise", "orders": 1}
    selector = Models(**{**names, **defaults, **options}).selector({})
    with metered_settings(), (run / "journal.jsonl").open("a", encoding="utf-8") as journal:
        for role in names:
            details = role_call(getattr(selector, role)).details
            journal.write(json.dumps({"kind": "role", "name": role, "details": details}) + "\n")
    read = read_run(run)
    assert expected in (command_that_asks(read, decide_again(read, ["judge"]), {"judge", "deriver"}) or "")


@pytest.mark.parametrize("replies", ["strict", "lenient"])
def test_the_command_reads_replies_as_the_run_did(tmp_path: Path, replies: Replies) -> None:
    run, _ = finished_run(tmp_path, rules=("judge",), selector=heuristic_selector(replies=replies))
    read = read_run(run)
    command = command_that_asks(read, decide_again(read, ["eldgr"]), {"repairer"})
    assert command and ("--set replies=lenient" in command) == (replies == "lenient")


@pytest.mark.parametrize("lm", [{"one": {"model": "a"}, "two": {"model": "b"}}, {"model": "x", "settings": {}}])
def test_json_has_the_command_and_an_lm_that_no_option_makes_has_none(tmp_path: Path, eldgr: Eldgr, lm: Any) -> None:
    run, pool = finished_run(tmp_path, rules=("majority",))
    figures = json.loads(eldgr("decide", run, "--rules", "judge", "--json").out)
    assert figures["pools"]["capitals"]["withheld"] == {"judge": {"judge": 6}}
    assert shlex.split(figures["asks"])[:5] == ["eldgr", "evaluate", str(pool), "--out", str(run)]
    with (run / "journal.jsonl").open("a", encoding="utf-8") as journal:
        journal.write(json.dumps({"kind": "role", "name": "judge", "details": {"lm": lm}}) + "\n")
    read = read_run(run)
    assert command_that_asks(read, decide_again(read, ["judge"]), {"judge"}) is None
    with (run / "journal.jsonl").open("a", encoding="utf-8") as journal:
        journal.write('{"kind": "role", "name": "judge", "details": {"lm": "some"}}\n')
    refuses(JournalError, "a role whose lm is not an object or null", read_run, run)


def test_a_run_under_a_freeze_takes_no_further_rule_and_says_what_resumes_it(tmp_path: Path, eldgr: Eldgr) -> None:
    pool = write_pool(tmp_path / "capitals.jsonl", make_rows(6))
    eldgr("freeze", "--rules", "majority")
    start = ("evaluate", pool, "--freeze", "rule.freeze.json", "--out", "run")
    eldgr(*start)
    text = "where this rule needs it; the run is under a freeze, which admits only its own rules; for one of these, "
    text += "repeat the command that started the run, with its --freeze."
    assert text in eldgr("decide", "run", "--rules", "judge").out
    assert json.loads(eldgr("decide", "run", "--rules", "judge", "--json")[0])["asks"] is None
    eldgr(*start)
    eldgr(*start[:2], "--rules", "majority,judge", "--out", "run", code=1)


def test_an_unfinished_run_is_decided_as_far_as_it_went(tmp_path: Path, eldgr: Eldgr) -> None:
    pool, run = write_pool(tmp_path / "capitals.jsonl", map(row, range(9))), tmp_path / "run"
    selector, _ = selector_with(Flaky(lambda number: number == 4))
    refuses(RunStoppedError, ".", evaluate, selector, Plan([pool], run))
    out, err = eldgr("decide", run, "--rules", "eldgr", "--rules", "majority")
    assert "the judge was never asked on 4 questions" in out
    assert "the repairer was never asked on 1 question" in out  # whose judge failed, as a silent one
    assert re.search(r"│ majority │ +0\.00 │", out)
    assert "the run is not finished, so all questions of its pools are decided." in err
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-5])  # a torn line is passed over
    out, err = eldgr("decide", run, "--rules", "judge")
    assert "never asked on 5 questions" in out and "the last line of the journal is incomplete and is skipped." in err


def test_a_run_resumes_with_a_pool_that_was_moved(tmp_path: Path) -> None:
    run, pool = finished_run(tmp_path, limit=2, rules=("majority",))
    (tmp_path / "there").mkdir()
    path = shutil.move(pool, tmp_path / "there")
    assert main(["evaluate", str(path), "--out", str(run), "--quiet"]) == 0
    assert read_run(run).heads_of("pool")["capitals"]["path"] == str(pool)  # what was stated first


def test_a_run_that_does_not_say_where_its_pool_was_asks_for_it(tmp_path: Path) -> None:
    run, pool = finished_run(tmp_path)
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({k: v for k, v in line.items() if k not in ("path", "crc32")}) + "\n" for line in lines)
    (run / "journal.jsonl").write_text(text)
    refuses(ArgumentError, "and does not say where it was; give its file: eldgr decide RUN FILE", decide, run, "eldgr")
    assert decide(run, "eldgr", files=(pool,)) == summary_of(run)["capitals"]
