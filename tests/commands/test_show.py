"""`eldgr show` prints one question of a finished run: its votes, evidence and replies, and why each answer ships."""

import json
from pathlib import Path

import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from tests.capitals import VERDICT, row, selector_with, write_pool
from tests.case_tables import tables_of
from tests.commands.installed import Eldgr
from tests.finished_runs import finished_run


@pytest.fixture(autouse=True)
def _wide(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def show(eldgr: Eldgr, *words: str | Path, code: int = 0) -> tuple[str, str]:
    out, err = eldgr("show", *words, code=code)
    return out, " ".join(err.split())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on a question that consensus answers wrongly, and whose judge prefers the certified candidate."""
    texts = ("I guess Nice.", "It is in Paris,\nno doubt.", "Nice!", "I cannot tell.")
    rows = zip(texts, ("Nice", "Paris", "Nice", None), ("small", "large", None, None), strict=True)
    candidates = [{"text": text, "answer": answer, "source": source} for text, answer, source in rows]
    evidence = [{"title": "Louvre", "text": "It stands in Paris, as of old."}, {"title": "Rome", "text": "No."}]
    result = row(7, question="Where is it?", candidates=candidates, evidence=evidence)
    selector = selector_with(lambda _: VERDICT | {"preferred": 1})[0]
    return finished_run(tmp_path, rows=[row(1), result], selector=selector)[0]


def test_a_question_is_shown_with_all_that_decides_it(run: Path, eldgr: Eldgr) -> None:
    out, err = show(eldgr, run, "q7", "--format", "markdown")
    lines = tables_of("commands")["lines of a question"]["cases"]
    assert (err, [line for line in lines if line not in out.splitlines()]) == ("", [])
    assert "The judge prefers candidate [1], “Paris”: certified." in out


def test_json_has_the_same_content_and_named_rules_alone_are_shown(run: Path, eldgr: Eldgr) -> None:
    figures = json.loads(show(eldgr, run, "q7", "--json")[0])
    values = [figures[name] for name in ("pool", "id", "question", "gold")]
    assert values == ["capitals", "q7", "Where is it?", ["Paris"]]
    first, second, *_ = figures["candidates"]
    assert first == {**second, "answer": "Nice", "source": "small", "text": "I guess Nice."}
    assert [(one["rule"], one["answer"]) for one in figures["decisions"]][-1] == ("eldgr", "Paris")
    assert [one["role"] for one in figures["consultations"]] == ["judge"]
    figures = json.loads(show(eldgr, run, "q7", "--rules", "majority,first", "--json")[0])
    assert [one["rule"] for one in figures["decisions"]] == ["first", "majority"]
    assert figures["consultations"] == []  # neither asks a role
    assert "No role was asked." in show(eldgr, run, "q7", "--rules", "majority")[0]


def test_of_several_pools_the_one_is_named_whose_question_it_is(tmp_path: Path, eldgr: Eldgr) -> None:
    write_pool(tmp_path / "a.jsonl", [row(0, id="q"), row(1, id="x")])
    write_pool(tmp_path / "b.jsonl", [row(2, id="q"), row(3, id="a:x")])
    pools = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    evaluate(heuristic_selector(), Plan(pools, tmp_path / "two"))
    _, err = show(eldgr, "two", "q", code=1)
    assert err == "Error: two: 2 pools have a question 'q'; give a:q or b:q."
    for name, place in (("b:q", ("b", "q")), ("x", ("a", "x")), ("a:x", ("a", "x")), ("b:a:x", ("b", "a:x"))):
        figures = json.loads(show(eldgr, "two", name, "--json")[0])
        assert (figures["pool"], figures["id"]) == place
    pools[0].unlink()  # the other pool is not needed
    show(eldgr, "two", "b:q")


def test_a_pool_that_has_moved_is_given(run: Path, tmp_path: Path, eldgr: Eldgr) -> None:
    before = show(eldgr, run, "q7")
    (tmp_path / "there").mkdir()
    path = (tmp_path / "capitals.jsonl").rename(tmp_path / "there" / "capitals.jsonl")
    _, err = show(eldgr, run, "q7", code=1)
    assert "give its file: eldgr show RUN ID FILE (sha256" in err
    assert show(eldgr, run, "q7", path) == before
    other = write_pool(tmp_path / "other.jsonl", [row(1)])
    assert "was not made on a pool 'other'" in show(eldgr, run, "q7", other, code=1)[1]
    write_pool(path, [row(1)])
    assert "was made on another pool 'capitals'" in show(eldgr, run, "q7", path, code=1)[1]


HOSTILE = "\x1b]0;title\x07\x1b[2J\u202e\x9b31m\x7f"


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json"])
def test_a_terminal_obeys_no_text_of_a_question(tmp_path: Path, eldgr: Eldgr, form: str) -> None:  # hazard 98
    candidates = [{"text": f"t{HOSTILE}", "answer": f"a{HOSTILE}", "source": f"s{HOSTILE}"}, {"answer": "Nice"}]
    evidence = [{"title": f"T{HOSTILE}", "text": f"E{HOSTILE} a{HOSTILE}"}]
    about = {"question": f"Q{HOSTILE}", "candidates": candidates, "evidence": evidence, "gold": [f"g{HOSTILE}"]}
    result = row(1, id=(name := f"q{HOSTILE}"), **about)
    run, _ = finished_run(tmp_path, rows=[result], selector=selector_with(lambda request: f"no {HOSTILE}")[0])
    out, err = show(eldgr, run, name, "--format", form)
    missing = show(eldgr, run, f"x{HOSTILE}", code=1)[1]
    assert not set(HOSTILE) - set("]0;title[2J31m") & set(out + err + missing)
    assert form == "json" or "[U+001B]" in out


def test_a_question_of_arithmetic_without_answers_is_shown(tmp_path: Path, eldgr: Eldgr) -> None:
    bare = row(1, id="q", task="arithmetic", candidates=[{"answer": None}], evidence=[], gold=[])
    out, _ = show(eldgr, finished_run(tmp_path, rows=[bare])[0], "q")
    assert "No candidate has an answer, so there is no consensus." in out
    assert "There is no evidence." in out and "Gold: —." in out
