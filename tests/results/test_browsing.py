"""The page of questions as it is written: data that no markup can be read in, one script that its policy names."""

import base64
import hashlib
import json
import re
from html import unescape
from typing import Any
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.formats.rows import Row
from eldgr_dspy.report.question_tables import RunQuestion
from eldgr_dspy.report.questions_page import LARGEST, QuestionsPage
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.showing import is_printable, printable
from tests.case_tables import each_case
from tests.results.page_reader import Page, decision, link_to, place


def row(text: str = "Doha", **changes: Any) -> Row:
    candidates = [{"answer": answer, "text": f"So {answer}.", "source": text} for answer in ("Dubai", "Dubai", text)]
    record = {"id": "q1", "question": text, "task": "retrieval", "candidates": candidates, "gold": [text]}
    return Row.model_validate({**record, "evidence": [{"title": text, "text": f"in {text}."}], **changes})


def line(result: Row, **changes: Any) -> Any:
    """A decision of `eldgr` about a row, as `decisions.jsonl` has it."""
    case = Case(result.to_question())
    answer = result.candidates[2].answer
    own = {"id": result.id, "question": result.question, "answer": answer, "witness": place(case.certificate(answer))}
    return decision(**own, reason="preference_certified", notes=["one note"], **changes)


def render(*rows: Row, pool: str = "hotpot", replies: Any = None, largest: int = LARGEST) -> str:
    page = QuestionsPage(largest=largest)
    body = (page.question(RunQuestion(pool, one, Case(one.to_question()), [line(one)], replies or {})) for one in rows)
    return "".join([page.head, *body, page.foot()])


def data(html: str) -> list[tuple[dict[str, Any], Page]]:
    """What the page holds of its questions: the fields to filter by, and what is shown."""
    match = re.findall(r'<script type="text/html" class="question" data-head="(.*?)">(.*?)</script>', html, re.DOTALL)
    return [(json.loads(unescape(head)), Page(body)) for head, body in match]


def test_a_question_has_all_that_is_shown_of_it_and_a_link() -> None:
    replies = {"judge": Consultation("hotpot", "q1", "judge", "ok", content={"preferred": 2}, asked="m", calls=1)}
    ((head, body),) = data(render(row(), replies=replies))
    assert (head["name"], head["pool"], head["id"], head["question"]) == ("hotpot/q1", "hotpot", "q1", "Doha")
    assert head["rules"] == [["eldgr", "judge", "won"]]
    assert head["answers"] == ["Doha", "Dubai", "Doha"]
    text = " ".join(body.text.split())
    assert [title in text for title in ("hotpot: q1", "votes", "what the roles said", "candidates")] == [True] * 4
    for cells in (
        ["eldgr", "Doha", "right", "judge", "certified"],
        ["Dubai (consensus)", "2", "0 1", "uncertified", "Doha", "1", "2", "certified"],
        ["judge", "ok", "m"],
        ["[2]", "Doha", "votes", "Doha"],
    ):
        assert any(body.cells[at : at + len(cells)] == cells for at in range(len(body.cells))), cells
    assert "The judge's preference ships, with its certificate. “Doha” ships." in text
    assert "Doha: occurs in the evidence as written" in text
    assert ("mark", {"title": "witness of what ships by eldgr"}) in body.tags
    replies = {"repairer": Consultation("hotpot", "q1", "repairer", "abstained", "no span")}
    assert "No role was asked." in data(render(row(), replies=replies))[0][1].text
    assert link_to("questions.html", "a b", "1/2+3&é") == "questions.html#question=a%20b%2F1%2F2%2B3%26%C3%A9"
    candidates = [{"answer": "1"}, {"answer": None}]
    result = row(task="arithmetic", candidates=candidates, evidence=[])
    page = QuestionsPage()
    ((head, body),) = data(page.question(RunQuestion("p", result, Case(result.to_question()), [], {})))
    assert body.cells[4:8] == ["1 (consensus)", "1", "0", "—"]
    assert body.cells[-8:] == ["[0]", "1", "votes", "—", "[1]", "—", "does not vote", "—"]
    assert head["rules"] == []


@each_case("results", "hostile texts of a question")
def test_hostile_text_is_data_and_never_markup(text: str) -> None:  # hazards 78 and 100
    hostile, plain = render(row(text, id=text), pool=text), render(row())
    assert [tag for tag, _ in Page(hostile).tags] == [tag for tag, _ in Page(plain).tags]
    ((head, body),), ((_, expected),) = data(hostile), data(plain)
    assert head["question"] == printable(text)
    assert {tag for tag, _ in body.tags} <= {tag for tag, _ in expected.tags} | {"bdi"}
    assert {name for name, _ in body.attributes()} <= {name for name, _ in expected.attributes()}
    assert "\u2028" not in hostile


@given(st.text(max_size=30))
@example("\\u0000\\b")
@example("\x08\x0c\\")
@example("\u202e")
def test_any_text_is_read_back_as_it_is_shown(text: str) -> None:
    html = render(row(id=f"q{text}?", question=f"{text}?"))
    html.encode("utf-8")
    ((head, body),) = data(html)
    assert (head["id"], head["question"]) == (printable(f"q{text}?"), printable(f"{text}?"))
    assert body.text.startswith(printable(f"{text}?"))


def test_the_policy_of_the_page_names_its_one_script_and_its_style_by_their_hashes() -> None:
    html = render(row())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert policy and script and style
    hashes = [base64.b64encode(hashlib.sha256(one[1].encode()).digest()).decode() for one in (script, style)]
    assert unescape(policy[1]) == f"default-src 'none'; style-src 'sha256-{hashes[1]}'; script-src 'sha256-{hashes[0]}'"
    assert "innerHTML" not in script[1]
    assert "style=" not in html


def test_beyond_its_size_a_page_counts_what_it_leaves_out_and_cuts_texts() -> None:
    html = render(*(row(id=f"q{number}") for number in range(4)), largest=1)
    assert [head["id"] for head, _ in data(html)] == ["q0"]
    assert "3 more questions are in decisions.jsonl alone." in html
    long = row("x" * 100_000, evidence=[{"title": "t" * 100_000, "text": "y" * 100_000}] * 40)
    html = render(long)
    assert len(html) < 120_000
    ((_, body),) = data(html)
    assert "more characters)" in body.text
    assert "10 more passages are in the pool." in body.text


@each_case("results", "ids that look alike")
def test_questions_whose_ids_look_alike_have_links_of_their_own(ids: list[str]) -> None:  # hazards 37 and 92
    links = [link_to("", "hotpot", one) for one in ids]
    heads = data(render(*(row(id=one) for one in ids)))
    names = [head["name"] for head, _ in heads]
    assert links[0] != links[1]
    assert [unquote(link.removeprefix("#question=")) for link in links] == names


@given(st.text(max_size=6), st.text(max_size=6))
@example("\ufffd", "\ufffdFFFD;")
@example("\x1f", "\ufffd1F;")
@example("\ud800", "\udfff")
def test_no_two_ids_have_one_link(one: str, other: str) -> None:
    links = [link_to("", "p", name) for name in (one, other)]
    assert (links[0] == links[1]) is (one == other)
    assert all(is_printable(unquote(link)) for link in links)


@given(st.text(max_size=6).filter(lambda name: is_printable(name) and "\ufffd" not in name))
def test_the_link_of_an_id_that_can_be_printed_says_it_as_it_is(name: str) -> None:
    assert unquote(link_to("", "p", name)) == f"#question=p/{name}"
