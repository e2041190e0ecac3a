"""The page of questions: one HTML file to browse, filter and link to, written question by question.

Every question is a line of JSON in its own `script` element, which browsers do not run, after a few fields to filter
by. The page's one script reads those fields, and the rest of a question when it is shown; texts become only text nodes.
Its hash is in the page's policy, so that no other script can run, and nothing can be loaded.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.named_judges import Asked, asked_by, asked_in_order, role_of
from eldgr_dspy.report.changes import OUTCOMES, certificate, changed, outcome_of
from eldgr_dspy.report.consultation import consultation
from eldgr_dspy.report.explanations import path
from eldgr_dspy.report.passages import passages
from eldgr_dspy.report.templates import clip, source, template
from eldgr_dspy.rows import Row
from eldgr_dspy.showing import is_printable, printable
from eldgr_dspy.words import is_role

MOST_QUESTIONS = 20_000
"""A run of more questions has no page of questions unless it is asked for."""

LARGEST = 128 * 2**20
"""How many characters of questions a page holds; beyond them it says how many more questions there are."""

_SCRIPT, _STYLE, _PAGE = "questions.js.jinja", "questions.css.jinja", "questions.html.jinja"
_LONGEST = {"question": 4_000, "answer": 300, "candidate": 1_500, "head": 240, "source": 120}
_CANDIDATES = 64  # whose texts are shown; for the others only their answers
_GOLDS = 20  # gold answers that are shown
_CERTIFIED = {True: "certified", False: "uncertified", None: "inapplicable"}
_HERE = "\x00"  # the place of the questions in the page; no text of a page contains it
_REPLACED = "\ufffd"  # the replacement in a page for characters that it cannot contain
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CONTROL = re.compile(r"\\(?:u00|[bfr])")  # how JSON writes control characters; it may also be a text with a backslash
_ESCAPES = {mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


def link_to(page: str, pool: str, question: str) -> str:
    """Return the address of a question in a page of questions."""
    return f"{page}#question={quote(_name(pool, question), safe='')}"


def _name(pool: str, question: str) -> str:
    """The name of a question in addresses: printable, and another one for every other question."""
    raw = f"{pool}/{question}"
    if is_printable(raw) and _REPLACED not in raw:
        return raw
    return "".join(char if is_printable(char) and char != _REPLACED else f"{_REPLACED}{ord(char):X};" for char in raw)


class QuestionsPage:
    """A page in the making: `head`, then each question, then `foot`."""

    def __init__(self, report: str = "report.html", largest: int = LARGEST, ungiven: str | None = None) -> None:
        """Start a page.

        Args:
            report: The file name of the report in the same folder.
            largest: How many characters of questions it holds; no further question is added then.
            ungiven: Why the page has no votes; None if it has.
        """
        self._report, self._largest, self._ungiven = report, largest, ungiven
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
        about = {"pools": [*pools], "rules": [*rules], "outcomes": OUTCOMES, "leftOut": self._left_out}
        about |= {} if self._ungiven is None else {"ungiven": self._ungiven}
        return self._parts(about)[1]

    def question(
        self,
        pool: str,
        row: Row,
        case: Case | None,
        decisions: Sequence[Decided],
        consultations: Mapping[Asked, Consultation],
    ) -> str:
        """Return a question as the page holds it; nothing if the page is full.

        Args:
            pool: The pool's name. row: the question.
            case: The same, under the settings of the run; None where they need code that was not given.
            decisions: The lines of `decisions.jsonl` about it. consultations: what roles were asked about it; those
                that no decision took into account are passed over.
        """
        if self._left_out or self._written >= self._largest:
            self._left_out += 1
            return ""
        text = (
            f"{as_data(_head(pool, row, decisions))}\n{as_data(question_content(row, case, decisions, consultations))}"
        )
        question = f'<script type="application/json" class="question">{text}</script>\n'
        self._written += len(question)
        return question

    def _parts(self, about: Mapping[str, Any]) -> list[str]:
        """The page before its questions, and behind them."""
        script = source(_SCRIPT)
        style = source("colours.css.jinja") + source("page.css.jinja") + source(_STYLE)
        page = template(_PAGE).render(
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


def _clip(text: str | None, what: str) -> str | None:
    return None if text is None else clip(text, _LONGEST[what])


# -- a question -------------------------------------------------------------------------------------------------------


def _head(pool: str, row: Row, decisions: Sequence[Decided]) -> dict[str, Any]:
    """What a question is listed and filtered by: for each rule branch, outcome, certificate, and whether it changed."""
    answers = dict.fromkeys(answer for line in decisions for answer in (line["answer"], line["consensus"]) if answer)
    name = _name(pool, row.id)
    return {
        **({} if name == f"{pool}/{row.id}" else {"name": name}),
        "pool": pool,
        "id": row.id,
        "question": _clip(row.question, "head"),
        "answers": [_clip(answer, "head") for answer in [*answers, *row.gold[:3]]],
        "rules": [
            [line["rule"], line["branch"], outcome_of(line), _CERTIFIED[line["certified"]], changed(line)]
            for line in decisions
        ],
    }


def question_content(
    row: Row, case: Case | None, decisions: Sequence[Decided], consultations: Mapping[Asked, Consultation]
) -> dict[str, Any]:
    """Return what is shown of a question; long texts are cut, with a count.

    Args:
        row, case: The question. Without its case, only what was recorded is shown: neither votes nor certificates.
        decisions: The lines of `decisions.jsonl` about it.
        consultations: What roles were asked about it; those that no decision took into account are passed over.
    """
    used = {asked_by(decided["rule"], role) for decided in decisions for role in decided["consulted"]}
    asked = {role: entry for role, entry in consultations.items() if role in used or not is_role(role_of(role))}
    shown, left_out = passages(row.evidence, case, decisions)
    return {
        "question": _clip(row.question, "question"),
        "gold": [_clip(answer, "answer") for answer in row.gold[:_GOLDS]],
        "more_gold": max(0, len(row.gold) - _GOLDS),
        "votes": [] if case is None else list(_votes(case)),
        "candidates": list(_candidates(row, case)),
        "decisions": [_decision(case, decided) for decided in decisions],
        "consultations": [consultation(asked[role]) for role in asked_in_order(asked) if role in asked],
        "passages": shown,
        "more_passages": left_out,
    }


def _votes(case: Case) -> Iterator[dict[str, Any]]:
    """The classes of answers, most votes first, each with its candidates and its certificate."""
    voters: dict[str, list[int]] = {}
    for index, key in enumerate(case.vote.classes):
        if key is not None:
            voters.setdefault(key, []).append(index)
    for key, indices in sorted(voters.items(), key=lambda item: -len(item[1])):
        answer = case.question.answers[indices[0]]
        support = case.certificate(answer) if case.type.way == "evidence" else None
        yield {
            "answer": _clip(answer, "answer"),
            "votes": len(indices),
            "candidates": indices,
            "certificate": None if support is None else [_CERTIFIED[support.certified], support.reason],
            "consensus": key == case.vote.winner,
        }


def _candidates(row: Row, case: Case | None) -> Iterator[list[Any]]:
    """Each candidate's answer, whether it votes, its source and its text."""
    keys = [candidate.answer for candidate in row.candidates] if case is None else case.vote.classes
    for index, (candidate, key) in enumerate(zip(row.candidates, keys, strict=True)):
        text = (
            candidate.text if index < _CANDIDATES and candidate.text.strip() != (candidate.answer or "").strip() else ""
        )
        source = "" if candidate.source is None else clip(candidate.source, _LONGEST["source"])
        yield [_clip(candidate.answer, "answer"), key is not None, source, _clip(text, "candidate")]


def _decision(case: Case | None, decided: Decided) -> dict[str, Any]:
    return {
        "rule": decided["rule"],
        "answer": _clip(decided["answer"], "answer"),
        "branch": decided["branch"],
        "reason": decided["reason"],
        "certificate": certificate(decided),
        "outcome": outcome_of(decided),
        "right": decided["em"],
        "path": list(path(case, decided)),
        "notes": [clip(note, _LONGEST["answer"]) for note in decided["notes"]],
    }
