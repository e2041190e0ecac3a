"""The page of questions: one HTML file to browse, filter and link to, written question by question.

Every question is two lines of JSON in its own `script` element, which browsers do not run: a few fields to filter by,
and its tables. The page's one script reads the first of a question when the page opens, and the second when it is
shown; texts become only text nodes. Its hash is in the page's policy, so that no other script can run, and nothing can
be loaded.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from eldgr_dspy.figures.audit import became
from eldgr_dspy.figures.results.audit_results import Became
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.report.passages import passages
from eldgr_dspy.report.question_tables import CERTIFIED, Shown, tables_without_evidence
from eldgr_dspy.report.templates import clip, source, template
from eldgr_dspy.showing import is_printable, printable

MOST_QUESTIONS = 20_000
"""A run of more questions has no page of questions unless it is asked for."""

LARGEST = 128 * 2**20
"""How many characters of questions a page holds; beyond them it says how many more questions there are."""

_HEAD = 240  # characters of a text in the list
_HERE = "\x00"  # the place of the questions in the page; no text of a page contains it
_REPLACED = "\ufffd"  # the replacement in a page for characters that it cannot contain
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CONTROL = re.compile(r"\\(?:u00|[bfr])")  # how JSON writes control characters; it may also be a text with a backslash
_ESCAPES = {mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


OUTCOMES: Mapping[Became, str] = {
    "lost": "correct to incorrect",
    "won": "incorrect to correct",
    "wrong": "incorrect before and after",
    "right": "correct before and after",
    "unscored": "not scored against majority",
}
"""The outcomes of an answer in words, in the order in which they are shown."""


def outcome_of(row: Decided) -> Became:
    """Return the outcome of majority's answer in a decision."""
    before, after = row["majority_em"], row["em"]
    return "unscored" if before is None or after is None else became(before, after)


def _name(pool: str, question: str) -> str:
    """The name of a question in addresses: printable, and another one for every other question."""
    raw = f"{pool}/{question}"
    if is_printable(raw) and _REPLACED not in raw:
        return raw
    return "".join(char if is_printable(char) and char != _REPLACED else f"{_REPLACED}{ord(char):X};" for char in raw)


class QuestionsPage:
    """A page in the making: `head`, then each question, then `foot`."""

    def __init__(self, report: str = "report.html", largest: int = LARGEST) -> None:
        """Start a page.

        Args:
            report: The file name of the report in the same folder.
            largest: How many characters of questions it holds; no further question is added then.
        """
        self._report, self._largest = report, largest
        self._written = self._left_out = 0

    def head(self) -> str:
        """Return how the page begins."""
        return self._parts({})[0]

    def foot(self, pools: Mapping[str, PoolFigures]) -> str:
        """Return how it ends.

        Args:
            pools: The pools of `summary.json`. Of their rules the page shows `eldgr` first, or else the last.
        """
        rules = dict.fromkeys(rule for pool in pools.values() for rule in (*pool["rules"], *pool["withheld"]))
        return self._parts({"pools": [*pools], "rules": [*rules], "outcomes": OUTCOMES, "leftOut": self._left_out})[1]

    def question(self, shown: Shown) -> str:
        """Return a question as the page holds it; nothing if the page is full."""
        if self._left_out or self._written >= self._largest:
            self._left_out += 1
            return ""
        text = f"{as_data(_head(shown))}\n{as_data(_body(shown))}"
        question = f'<script type="application/json" class="question">{text}</script>\n'
        self._written += len(question)
        return question

    def _parts(self, about: Mapping[str, Any]) -> list[str]:
        """The page before its questions, and behind them."""
        script = source("questions.js.jinja")
        style = source("colours.css.jinja") + source("page.css.jinja") + source("questions.css.jinja")
        page = template("questions.html.jinja").render(
            script=script,
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            about=as_data(about),
            report=self._report,
            questions=_HERE,
        )
        return page.split(_HERE)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def as_data(value: Any) -> str:
    """Return JSON in which no markup can be read, with every text as a page shows it."""
    text = _ENCODER.encode(value)
    if not is_printable(text) or _CONTROL.search(text):
        text = _ENCODER.encode(_shown(value))
    for mark, escaped in _ESCAPES.items():
        text = text.replace(mark, escaped)
    return text


def _shown(value: Any) -> Any:
    """The value with every text as a page shows it."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(name): _shown(inner) for name, inner in value.items()}
    return [_shown(inner) for inner in value] if isinstance(value, list | tuple) else value


def _head(shown: Shown) -> dict[str, Any]:
    """What a question is listed and filtered by: for each rule branch, outcome and certificate."""
    pool, row = shown.pool, shown.row
    answers = dict.fromkeys(answer for of in shown.decisions for answer in (of["answer"], of["consensus"]) if answer)
    name = _name(pool, row.id)
    return {
        **({} if name == f"{pool}/{row.id}" else {"name": name}),
        "pool": pool,
        "id": row.id,
        "question": clip(row.question, _HEAD),
        "answers": [clip(answer, _HEAD) for answer in [*answers, *row.gold[:3]]],
        "rules": [[of["rule"], of["branch"], outcome_of(of), CERTIFIED[of["certified"]]] for of in shown.decisions],
    }


def _body(shown: Shown) -> dict[str, Any]:
    """What is shown of a question: its tables, and its passages in pieces."""
    found, left_out = passages(shown.row.evidence, shown.case, shown.decisions)
    tables = [[of.title, of.headers, of.rows, of.notes, of.lead] for of in tables_without_evidence(shown)]
    return {"tables": tables, "passages": found, "morePassages": left_out}
