"""Both pages in a real Chromium, opened from files: quiet, alone, legible, and safe from what their texts say."""

import re
from pathlib import Path

import pytest

from tests.browser.chromium import Tab
from tests.browser.conftest import ATTACKS, decisions

pytestmark = pytest.mark.slow  # a browser opens whole reports

PAGES = ("report.html", "questions.html#question=demo-retrieval%2Fr15")
LOOKS = [("light", False, 1280), ("dark", True, 1280), ("narrow", False, 380)]

# The least contrast between any text that is seen and what is behind it, with the text. Large text needs 3, other 4.5.
CONTRAST = """(() => {
  const channel = (value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = (rgb) => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const parse = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  let least = [99, "", 0];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const own = parse(style.color);
    const pair = [light(own), light(behind(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const score = ratio / (large ? 3 : 4.5);
    if (score < least[0]) least = [score, walker.currentNode.data.trim().slice(0, 60), ratio];
  }
  return least;
})()"""

# What is wider than the window and stands in no box that scrolls.
OVERFLOWING = """Array.from(document.querySelectorAll("body *"))
  .filter((one) => one.checkVisibility() && !one.closest(".scroll, select, nav ol"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.tagName + ": " + one.textContent.slice(0, 60))"""


def address(run: Path, page: str) -> str:
    name, _, fragment = page.partition("#")
    return f"{(run / name).as_uri()}#{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=["report", "questions"])
def test_a_page_says_nothing_on_the_console_and_asks_for_nothing_but_itself(tab: Tab, demo: Path, page: str) -> None:
    tab.look()
    tab.open(address(demo, page))
    tab.run("new Promise((done) => setTimeout(done, 200))")
    assert tab.said == []
    assert {asked.partition("#")[0] for asked in tab.asked} == {address(demo, page).partition("#")[0]}


@pytest.mark.parametrize(("dark", "width"), [look[1:] for look in LOOKS], ids=[look[0] for look in LOOKS])
@pytest.mark.parametrize("page", PAGES, ids=["report", "questions"])
def test_every_text_stands_out_from_what_is_behind_it(tab: Tab, demo: Path, page: str, dark: bool, width: int) -> None:
    tab.look(dark=dark, width=width)
    tab.open(address(demo, page))
    score, text, ratio = tab.run(CONTRAST)
    assert score >= 1, (text, ratio)


@pytest.mark.parametrize("page", PAGES, ids=["report", "questions"])
def test_a_narrow_window_is_overflown_by_nothing_but_boxes_that_scroll(tab: Tab, demo: Path, page: str) -> None:
    tab.look(width=380)
    tab.open(address(demo, page))
    assert tab.run("document.documentElement.scrollWidth") <= 380
    assert tab.run(OVERFLOWING) == []


def test_every_figure_of_the_report_is_on_the_screen_of_a_phone(tab: Tab, demo: Path) -> None:
    tab.look(width=390)
    tab.open(address(demo, "report.html"))
    wide = "Array.from(document.querySelectorAll('.scroll')).filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.run(f"{wide}.map((one) => one.textContent.slice(0, 60))") == []


def test_the_report_of_two_pools_prints_on_eight_pages(tab: Tab, demo: Path) -> None:
    tab.look()
    tab.open(address(demo, "report.html"))
    assert len(re.findall(rb"/Type\s*/Page\b", tab.printed())) <= 8


@pytest.mark.parametrize("page", PAGES, ids=["report", "questions"])
def test_a_page_prints_in_ink_on_paper_also_where_it_is_dark(tab: Tab, demo: Path, page: str) -> None:
    tab.look(dark=True, media="print")
    tab.open(address(demo, page))
    assert tab.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.run("Array.from(document.querySelectorAll('form, nav')).some((one) => one.checkVisibility())") is False
    assert tab.printed().startswith(b"%PDF")
    tab.look(width=700, media="print")  # between the margins of a page
    assert tab.run(OVERFLOWING.replace(".scroll, ", "")) == []
    tab.look()


def test_the_record_prints_on_one_page(tab: Tab, demo: Path) -> None:
    tab.look()
    tab.open(address(demo, "report.html"))
    tab.run("document.querySelectorAll('main > :not(.record)').forEach((one) => one.remove())")
    pages = tab.printed().count(b"/Type /Page\n")
    assert pages == 1


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
    assert tab.said == []
    assert {asked.partition("#")[0] for asked in tab.asked} == {address(hostile, page).partition("#")[0]}


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
