"""Both pages in a real Chromium, opened from files: quiet, alone, legible, and safe from what their texts say."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Tab
from tests.browser.conftest import ATTACKS, decisions

pytestmark = pytest.mark.slow  # a browser opens whole reports

PAGES = ("report.html", "questions.html#question=demo-retrieval%2Fr15")

CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf-8")
WIDE = Path(__file__).with_name("wide.js").read_text("utf-8")
"""What is wider than the window and stands in no box that scrolls."""


def address(run: Path, page: str) -> str:
    name, _, fragment = page.partition("#")
    return f"{(run / name).as_uri()}#{fragment}"


def wider(tab: Tab, boxes: str) -> Any:
    return tab.run(WIDE.replace("BOXES", boxes))


each_page = pytest.mark.parametrize("page", PAGES, ids=["report", "questions"])
LOOKS = {"light": (False, 1280), "dark": (True, 1280), "narrow": (False, 380)}


@pytest.mark.parametrize(("dark", "width"), LOOKS.values(), ids=LOOKS)
@each_page
def test_a_page_is_quiet_alone_and_legible_and_overflown_by_nothing_but_boxes_that_scroll(
    tab: Tab, demo: Path, page: str, dark: bool, width: int
) -> None:
    tab.look(dark=dark, width=width)
    tab.open(address(demo, page))
    tab.run("new Promise((done) => setTimeout(done, 200))")
    assert tab.messages == []
    assert {url.partition("#")[0] for url in tab.requests} == {address(demo, page).partition("#")[0]}
    score, text, ratio = tab.run(CONTRAST)
    assert score >= 1, (text, ratio)
    if width < 1280:
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert wider(tab, ".scroll, select, nav ol") == []


def test_the_report_of_two_pools_fits_a_phone_and_eight_printed_pages_and_its_record_one(tab: Tab, demo: Path) -> None:
    tab.look(width=390)
    tab.open(address(demo, "report.html"))
    wide = "Array.from(document.querySelectorAll('.scroll')).filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.run(f"{wide}.map((one) => one.textContent.slice(0, 60))") == []
    tab.look()
    tab.open(address(demo, "report.html"))
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf())) <= 8
    tab.run("document.querySelectorAll('main > :not(.record)').forEach((one) => one.remove())")
    assert tab.pdf().count(b"/Type /Page\n") == 1


@each_page
def test_a_page_prints_in_ink_on_paper_also_where_it_is_dark(tab: Tab, demo: Path, page: str) -> None:
    tab.look(dark=True, media="print")
    tab.open(address(demo, page))
    for name, value in (("color", "rgb(0, 0, 0)"), ("backgroundColor", "rgb(255, 255, 255)")):
        assert tab.run(f"getComputedStyle(document.body).{name}") == value
    assert tab.run("Array.from(document.querySelectorAll('form, nav')).some((one) => one.checkVisibility())") is False
    assert tab.pdf().startswith(b"%PDF")
    tab.look(width=700, media="print")  # between the margins of a page
    assert wider(tab, "select, nav ol") == []
    tab.look()


@pytest.mark.parametrize("page", ["report.html", "questions.html"])
def test_no_text_of_a_pool_runs_or_asks_for_anything(tab: Tab, hostile: Path, page: str) -> None:  # hazards 77 and 78
    tab.look()
    tab.open(address(hostile, page))
    n = len(ATTACKS) + 1
    if page == "questions.html":
        for number in range(n):
            tab.run(f"document.querySelectorAll('#list a')[{number}].click()")
            tab.wait(f"document.querySelectorAll('#list a')[{number}].ariaCurrent === 'true'")
        assert tab.run("document.scripts.length") == n + 1
    assert tab.run("typeof owned") == "undefined"
    assert tab.run("document.querySelectorAll('img, iframe, object, embed, link, base').length") == 0
    assert tab.run("Array.from(document.links).every((one) => one.protocol === 'file:')")
    assert tab.messages == []
    assert {url.partition("#")[0] for url in tab.requests} == {address(hostile, page).partition("#")[0]}


def test_without_scripts_the_page_of_questions_says_what_it_needs(tab: Tab, demo: Path) -> None:
    tab.look()
    tab.do("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.do("Page.navigate", url=address(demo, "questions.html"))
        tab.wait("document.body?.innerText.includes('This page needs its own script to show questions')")
    finally:
        tab.do("Emulation.setScriptExecutionDisabled", value=False)


def test_a_report_links_to_the_answers_that_were_lost_and_fixed(tab: Tab, demo: Path) -> None:
    tab.look()
    tab.open(address(demo, "report.html"))
    links: list[str] = tab.run("Array.from(document.querySelectorAll('nav a'), (one) => one.href)")
    counts = list[str]()
    for link in links:
        tab.open(link)
        counts.append(tab.run("document.getElementById('count').textContent"))
    flips = [(one["majority_em"], one["em"]) for one in decisions(demo) if one["rule"] == "eldgr"]
    expected = [f"{flips.count(flip)} of 90 questions" for flip in ((True, False), (False, True))]
    assert counts == ["90 questions", *expected]
