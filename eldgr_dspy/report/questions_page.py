"""The page of questions: one HTML file to browse, filter and link to, written question by question.

Every question is a `script` element that browsers do not run: its attribute has what the page's own script lists and
filters by, and its text the question's tables as HTML. The page's policy allows no other script, and loads nothing.
"""

import json
from collections.abc import Iterator
from html import escape

from eldgr_dspy.figures.decided_rows import became
from eldgr_dspy.report.explanations import Piece, passages
from eldgr_dspy.report.question_tables import RunQuestion, tables_without_evidence
from eldgr_dspy.report.templates import clip, template
from eldgr_dspy.showing import is_printable, printable
from eldgr_dspy.tables.formats import as_html, html_text

MOST_QUESTIONS = 20_000  # a run of more has no page of questions unless it is asked for
LARGEST = 128 * 2**20  # characters of questions in a page; below them it says how many more questions there are
_HEAD = 240  # characters of a text in the list
_HERE = "\x00"  # the place of the questions in the page; no text of a page contains it
_STAND_IN = "\ufffd"  # the replacement in a page for characters that it cannot contain


class QuestionsPage:
    """A page in the making: `head`, then each question, then `foot`."""

    def __init__(self, report: str = "report.html", largest: int = LARGEST) -> None:
        """Start a page next to the file `report`; it adds no question after `largest` characters of them."""
        page = template("questions.html.jinja", "questions.js.jinja").render(report=report, questions=_HERE)
        self.head, self._foot = page.split(_HERE)
        self._largest, self._size, self._left_out = largest, 0, 0

    def question(self, content: RunQuestion) -> str:
        """Return a question as the page holds it; nothing if the page is full."""
        if self._left_out or self._size >= self._largest:
            self._left_out += 1
            return ""
        head, body = escape(json.dumps(_head(content), ensure_ascii=False)), "\n".join(_body(content))
        question = f'<script type="text/html" class="question" data-head="{head}">{body}</script>\n'
        self._size += len(question)
        return question

    def foot(self) -> str:
        more = f'<p class="note">{self._left_out:,} more questions are in decisions.jsonl alone.</p>\n'
        return (more if self._left_out else "") + self._foot


def _name(pool: str, question: str) -> str:
    """The name of a question in addresses: printable, and another one for every other question."""
    raw = f"{pool}/{question}"
    if is_printable(raw) and _STAND_IN not in raw:
        return raw
    return "".join(char if is_printable(char) and char != _STAND_IN else f"{_STAND_IN}{ord(char):X};" for char in raw)


def _head(question: RunQuestion) -> dict[str, object]:
    """What a question is listed and filtered by: for each rule branch and outcome."""
    pool, row = question.pool, question.row
    answers = dict.fromkeys(answer for of in question.decisions for answer in (of["answer"], of["consensus"]) if answer)
    return {
        "name": _name(pool, row.id),
        "pool": printable(pool),
        "id": printable(row.id),
        "question": printable(clip(row.question, _HEAD)),
        "answers": [printable(clip(answer, _HEAD)) for answer in [*answers, *row.gold[:3]]],
        "rules": [[of["rule"], of["branch"], became(of["majority_em"], of["em"])] for of in question.decisions],
    }


def _body(question: RunQuestion) -> Iterator[str]:
    """Yield the question, its tables, and its passages with what is marked in them."""
    tables = [*tables_without_evidence(question)]
    yield f'<h2 class="whole">{html_text(tables[0].lead)}</h2>'
    yield from map(as_html, tables)
    entries, left_out = passages(question.row.evidence, question.case, question.decisions)
    yield f"<h3>{'evidence' if entries else 'no evidence'}</h3>"
    for passage in entries:
        title, text = ("".join(map(_piece, field)) for field in (passage.title, passage.text))
        yield f'<div class="passage"><b>[{passage.place}] {title}</b><p class="whole">{text}</p></div>'
    if left_out:
        yield f'<p class="note">{left_out:,} more passages are in the pool.</p>'


def _piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return html_text(piece)
    text, label = piece
    return f'<mark title="{escape(printable(label))}">{html_text(text)}</mark>'
