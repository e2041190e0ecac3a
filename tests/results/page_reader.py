"""What a report is made of, and a reader of its page."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.report.page import render_report
from eldgr_dspy.report.questions_page import _name
from tests.case_tables import tables_of
from tests.figures import AUDIT, contrast_figures, pool_figures, rule_figures, summary_figures

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Reads a page: the tags in order, the text of each table cell and of the whole, and whether every tag closes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data
        if {"td", "th"} & {*self.open}:
            self.cells[-1] += data

    def attributes(self) -> Iterator[tuple[str, str | None]]:
        return (pair for _, attributes in self.tags for pair in attributes.items())


def summary(name: str = "hotpot", **changes: Any) -> Any:
    rules = {
        "first": rule_figures(32, 42.17, seconds=0.0),
        "majority": rule_figures(58, 68.31, seconds=0.0),
        "judge": rule_figures(49, 60.02, seconds=90.0, judge=72),
        "eldgr": rule_figures(61, 71.5, seconds=25.0, judge=20, repairer=11),
    }
    contrasts = [
        contrast_figures("eldgr", "majority", delta=3.0, ci=[0.0, 7.0], p=0.375, wins=4, losses=1),
        contrast_figures("judge", "majority", delta=-9.0, ci=[-17.0, -1.0], p=0.049, wins=5, losses=14),
    ]
    audit = {"preserved": 88, "judge_overrides": 9, "repair_overrides": 3, "correct_to_incorrect": 1}
    audit |= {"incorrect_to_correct": 4, "abstentions": 5, "homogeneous": 6, "certified_consensus": 72}
    figures = {
        "n": 100, "rules": rules, "contrasts": contrasts, "bounds": {"judge": [14.0, 78.0], "eldgr": [58.0, 69.0]},
        "bounds_any_span": {"judge": [14.0, 78.0], "eldgr": [58.0, 81.0]}, "audit": audit, "decided": AUDIT,
    }  # fmt: skip
    return summary_figures({name: pool_figures(**figures | changes)})


def undrawn() -> Any:
    """The same without anything to draw, which takes most of the time of a page."""
    return summary(rules={"eldgr": rule_figures(61, 71.5)}, contrasts=[], bounds={}, bounds_any_span={})


def full_summary() -> Any:
    """The summary of a run whose audit is whole."""
    return summary(decided=tables_of("results")["an audit"])


def place(certificate: Certificate) -> dict[str, Any] | None:
    """Where a witness stands, as a decision has it; none without one."""
    parts, witness = ("passage", "field", "start", "end"), certificate.witness
    return None if witness is None else {part: getattr(witness, part) for part in parts}


def decision(**changes: Any) -> Any:
    return {
        "pool": "hotpot", "id": "q1", "question": "Where is the seat?", "gold": ["Doha"], "rule": "eldgr",
        "answer": "Doha", "branch": "judge", "reason": "preference_certified", "certified": True,
        "consensus": "Dubai", "preference": 2, "repair": None, "tie": False, "consulted": ["judge"], "abstentions": {},
        "ranking": [2, 0, 1], "notes": [], "em": True, "f1": 1.0, "majority_em": False,
    } | changes  # fmt: skip


def html(of: Any = None) -> str:
    return "".join(render_report(of or undrawn()))


def link_to(page: str, pool: str, question: str) -> str:
    """The address of a question in a page of questions."""
    return f"{page}#question={quote(_name(pool, question), safe='')}"
