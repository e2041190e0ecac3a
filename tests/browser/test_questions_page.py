"""The page of questions as it is used: filters, words, links, the way back, the keyboard, and witnesses in place."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from eldgr_dspy.pools import open_pool
from tests.browser.chromium import Tab
from tests.browser.conftest import decisions
from tests.capitals import row
from tests.finished_runs import finished_run
from tests.results.demo_pools import ARTIFACTS
from tests.results.page_reader import link_to

ROWS = "Array.from(document.querySelectorAll('#list .id'), (one) => one.textContent)"
COUNT = "document.getElementById('count').textContent"


def became(one: dict[str, Any]) -> str:
    return {(1, 0): "lost", (0, 1): "won", (1, 1): "right", (0, 0): "wrong"}[one["majority_em"], one["em"]]


@pytest.fixture
def page(tab: Tab, demo: Path) -> str:
    tab.look()
    tab.open((demo / "questions.html").as_uri())
    return (demo / "questions.html").as_uri()


def choose(tab: Tab, name: str, value: str) -> None:
    element, change = f"document.forms[0].elements.{name}", "new Event('change', { bubbles: true })"
    tab.run(f"{element}.value = {json.dumps(value)}; {element}.dispatchEvent({change})")
    tab.wait(f"location.hash.includes({json.dumps(value)})")


FRAGMENTS = "branch=judge outcome=lost branch=repair&outcome=won pool=demo-arithmetic&branch=repair".split()


@pytest.mark.parametrize("part", FRAGMENTS)
def test_filters_of_the_address_list_the_questions_that_they_name(tab: Tab, page: str, demo: Path, part: str) -> None:
    rows = [one | {"outcome": became(one)} for one in decisions(demo)]
    filters = parse_qsl(part)
    expected = [one["id"] for one in rows if all(one[name] == value for name, value in filters)]
    tab.open(f"{page}#{part}")
    assert expected
    assert tab.run(ROWS) == expected
    assert tab.run(COUNT) == f"{len(expected)} of 90 questions"


def test_a_filter_goes_into_the_address_is_undone_by_the_way_back_and_is_of_the_rule(tab: Tab, page: str) -> None:
    assert tab.run(COUNT) == "90 questions"
    choose(tab, "branch", "judge")
    before = tab.run(COUNT)
    choose(tab, "outcome", "lost")
    assert tab.run(COUNT) != before
    assert tab.run("location.hash") == "#branch=judge&outcome=lost"
    tab.run("history.back()")
    tab.wait(f"{COUNT} === {json.dumps(before)}")
    assert tab.run("document.forms[0].elements.outcome.value") == ""
    tab.run("history.back()")
    tab.wait(f"{COUNT} === '90 questions'")
    choose(tab, "rule", "majority")
    choose(tab, "branch", "judge")
    assert tab.run(COUNT) == "0 of 90 questions"


def test_words_are_sought_in_questions_answers_and_ids_as_they_are_typed(tab: Tab, page: str) -> None:
    tab.run("document.forms[0].elements.text.focus()")
    tab.do("Input.insertText", text="harrow LIGHT")
    tab.wait(f"{COUNT} !== '90 questions'")
    assert "r15" in tab.run(ROWS)
    assert "text=harrow+LIGHT" in tab.run("location.hash")
    assert tab.run("document.activeElement.name") == "text"
    tab.run("document.getElementById('clear').click()")
    tab.wait(f"{COUNT} === '90 questions'")
    assert tab.run("document.forms[0].elements.text.value") == ""


def test_a_question_is_opened_by_keyboard_has_the_focus_and_stands_in_the_address(tab: Tab, page: str) -> None:
    tab.run("document.querySelectorAll('#list a')[2].focus()")
    for kind in ("keyDown", "keyUp"):
        tab.do("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    tab.wait("location.hash === '#question=demo-retrieval%2Fr03'")
    tab.wait("document.activeElement.id === 'shown'")
    assert tab.run("document.querySelector('[aria-current=true] .id').textContent") == "r03"
    tab.run("history.back()")
    tab.wait("document.querySelector('[aria-current=true] .id').textContent !== 'r03'")


def test_the_page_opens_on_the_first_question_that_is_listed_or_says_that_there_is_none(
    tab: Tab, page: str, demo: Path
) -> None:
    name = next(row["id"] for row in decisions(demo) if became(row) == "lost")
    tab.open(f"{page}#outcome=lost")
    tab.wait(f"document.querySelector('[aria-current=true] .id').textContent === {json.dumps(name)}")
    assert tab.run("document.title").startswith(f"{name}, ")
    tab.open(f"{page}#branch=none")
    tab.wait("document.querySelector('#shown').textContent === 'No question matches the filters.'")
    tab.open(f"{page}#question=demo-retrieval%2Fnone&branch=%3Cb%3E")
    assert tab.run("document.querySelector('#shown').textContent") == "This page has no question of that name."
    assert tab.run(COUNT) == "0 of 90 questions"


def test_every_witness_is_marked_in_its_whole_passage(tab: Tab, page: str, demo: Path) -> None:
    evidence = {row.id: row.evidence for row in open_pool(ARTIFACTS / "demo-retrieval.jsonl").rows()}
    rows = [one for one in decisions(demo) if one["witness"]][:12]
    assert len(rows) == 12
    for one in rows:
        tab.run(f"location.hash = '#question=demo-retrieval%2F{one['id']}'")
        tab.wait(f"document.title.startsWith('{one['id']}, ')")
        passage = "one.closest('.passage').querySelector('p').textContent"
        marks = tab.run(f"Array.from(document.querySelectorAll('#shown mark'), (one) => [one.textContent, {passage}])")
        witness = one["witness"]
        assert [witness["text"], evidence[one["id"]][witness["passage"]].text] in marks


def test_a_question_shows_its_votes_its_consultations_and_the_way_of_each_rule(tab: Tab, page: str) -> None:
    tab.open(f"{page}#question=demo-retrieval%2Fr15")
    text = " ".join(tab.run("document.querySelector('#shown').innerText").split())
    assert "5 (consensus) 3 0 1 3 uncertified" in text
    assert "judge ok heuristic role, no LM 0 LM calls" in text
    assert "The judge prefers candidate [2], “1854”: certified." in text
    assert [row in text for row in ("eldgr 1854 wrong judge certified", "majority 5 right consensus")] == [True] * 2


def test_of_many_questions_the_first_are_listed_and_any_is_shown_by_its_link(tab: Tab, tmp_path: Path) -> None:
    out, _ = finished_run(tmp_path, rows=[row(number) for number in range(220)])
    tab.look()
    tab.open(f"{(out / 'questions.html').as_uri()}#question=capitals%2Fq210")
    assert tab.run(COUNT) == "220 questions; the first 200 are listed"
    assert len(tab.run(ROWS)) == 200
    assert tab.run("document.title").startswith("q210, ")


def test_questions_whose_ids_look_alike_are_each_shown_by_their_own_link(tab: Tab, tmp_path: Path) -> None:
    ids = ["\x01z", "\x02z", "[U+202E]x", "\u202ex"]
    rows = [{**row(number), "id": name, "question": f"Number {number}?"} for number, name in enumerate(ids)]
    out, _ = finished_run(tmp_path, rows=rows)
    tab.look()
    for number, name in enumerate(ids):
        tab.open(link_to((out / "questions.html").as_uri(), "capitals", name))
        assert tab.run("document.querySelector('#shown h2').textContent") == f"Number {number}?"
        current = "Array.from(document.querySelectorAll('#list a'), (one) => one.hasAttribute('aria-current'))"
        assert tab.run(current).index(True) == number
