"""The report of an evaluation: one static HTML page that reads and prints without a network, a script or a server.

It shows what `summary.json` says, in the figures of `eldgr_dspy.tables`, and from the decisions those that changed
something. Nothing is computed here that is not in its input. All text of a pool or an LM is data: escaped by the
template engine, isolated from the direction of the text around it, and with its control characters made visible.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from eldgr_dspy.drawings import LEFT, RIGHT, WIDTH, bounds, forest
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.tables import (
    Table,
    audit_table,
    bounds_table,
    cost_table,
    effects_table,
    paper_table,
    pools_of,
    questions,
    usage_table,
)

if TYPE_CHECKING:
    from jinja2 import Template

SHOWN = 200
"""How many decisions of a pool are shown in full; the page says how many more there are."""

_FAILED = "failed: "  # how the reason of a role begins whose call did not come through; it is no abstention
_REASONS = 50  # distinct reasons of abstention that are listed; some reasons quote the reply, so they need a bound
_LONGEST = 600  # characters of one text that are shown
_GOLDS = 5  # gold answers of a question that are shown

Outcome = Literal["lost", "won", "wrong", "right", "unscored"]

# In the order in which they are shown: what was lost stands first.
_OUTCOMES: dict[Outcome, str] = {
    "lost": "correct to incorrect",
    "won": "incorrect to correct",
    "wrong": "incorrect before and after",
    "right": "correct before and after",
    "unscored": "not scored against majority",
}

# Bidirectional overrides and isolates, which could make a text read as another; then what no page may contain.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def render_report(
    summary: Mapping[str, Any],
    decisions: Iterable[Mapping[str, Any]],
    effects: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[str]:
    """Return the page in chunks of text that encode to UTF-8, whatever the input holds.

    Args:
        summary: The content of `summary.json`. Under a pool's `withheld` a rule has a sentence, or the number of
            unasked questions a role.
        decisions: The rows of `decisions.jsonl`, read once and not kept; only those with rule `eldgr` are shown. A
            witness may also carry `title`, `before` and `after`: its passage's title and the text around the slice.
        effects: What else the judge's verdicts went by, a pool; as in `record.json` under `judge_effects`.

    Raises:
        ArgumentError: the summary has no pools, or a decision belongs to a pool that the summary does not name.
    """
    kept = {name: _Kept() for name in pools_of(summary)}
    for row in decisions:
        if row["rule"] == "eldgr":
            _kept_of(row, kept).take(row)
    sections, usage = list(_sections(summary, kept, effects or {})), usage_table(summary)
    stream = _template().stream(sections=sections, usage=usage, width=WIDTH, left=LEFT, right=RIGHT)
    stream.enable_buffering(64)
    return map(_printable, stream)


@dataclass(frozen=True, slots=True)
class Change:
    """One decision that changed something, as it is shown; None is an answer that there is not."""

    id: str
    question: str
    consensus: str | None
    answer: str | None
    gold: tuple[str, ...]
    outcome: Outcome
    verdict: str
    branch: str
    certificate: str
    witness: Mapping[str, Any] | None
    remarks: tuple[str, ...]


@dataclass(slots=True)
class _Reasons:
    """Why roles said nothing, counted by role and reason; beyond a bound, reasons are counted together."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: int = 0

    def take(self, role: str, reason: str) -> None:
        if (role, reason) in self.counts or len(self.counts) < _REASONS:
            self.counts[role, reason] += 1
        else:
            self.others += 1

    def table(self, title: str) -> Table:
        rows = [(role, reason, f"{count:,}") for (role, reason), count in self.counts.most_common()]
        if self.others:
            rows.append(("any", "other reasons", f"{self.others:,}"))
        return Table(title, ("role", "reason", "questions"), tuple(rows))


@dataclass(slots=True)
class _Kept:
    """What is kept of a pool's decisions: at most `SHOWN` an outcome, and counts of reasons; memory stays flat."""

    changes: dict[Outcome, list[Change]] = field(default_factory=lambda: {outcome: [] for outcome in _OUTCOMES})
    n_changed: int = 0
    abstentions: _Reasons = field(default_factory=_Reasons)
    failures: _Reasons = field(default_factory=_Reasons)

    def take(self, row: Mapping[str, Any]) -> None:
        for role, reason in row["abstentions"].items():
            failed = reason.startswith(_FAILED)
            (self.failures if failed else self.abstentions).take(role, _clip(reason.removeprefix(_FAILED)))
        outcome = _outcome(row)
        if row["branch"] in ("judge", "repair") or outcome in ("lost", "won"):
            self.n_changed += 1
            if len(self.changes[outcome]) < SHOWN:
                self.changes[outcome].append(_change(row, outcome))

    def shown(self) -> list[Change]:
        return [change for changes in self.changes.values() for change in changes][:SHOWN]


def _kept_of(row: Mapping[str, Any], kept: Mapping[str, _Kept]) -> _Kept:
    if row["pool"] not in kept:
        raise ArgumentError(
            f"pool={row['pool']!r} of decision {row['id']!r} is not in the summary, which names "
            f"{', '.join(map(repr, kept)) or 'none'}; give the decisions and the summary of the same run."
        )
    return kept[row["pool"]]


def _outcome(row: Mapping[str, Any]) -> Outcome:
    before, after = row["majority_em"], row["em"]
    if before is None or after is None:
        return "unscored"
    if after:
        return "right" if before else "won"
    return "lost" if before else "wrong"


def _change(row: Mapping[str, Any], outcome: Outcome) -> Change:
    gold = [_clip(answer) for answer in row["gold"]]
    more = len(gold) - _GOLDS
    return Change(
        id=_clip(row["id"]),
        question=_clip(row["question"]),
        consensus=_answer(row["consensus"]),
        answer=_answer(row["answer"]),
        gold=(*gold[:_GOLDS], *([f"and {more} more"] if more > 0 else [])),
        outcome=outcome,
        verdict=_OUTCOMES[outcome],
        branch=row["branch"],
        certificate=_certificate(row),
        witness=_witness(row["witness"]),
        remarks=tuple(_remarks(row)),
    )


def _certificate(row: Mapping[str, Any]) -> str:
    if row["certified"] is None:
        return "inapplicable"
    if row["certified"] and row["witness"] is None:
        return "certified by a checked derivation"
    return "certified" if row["certified"] else "uncertified"


def _witness(witness: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if witness is None:
        return None
    where = "title of passage" if witness.get("field") == "title" else "passage"
    return {
        "title": _answer(witness.get("title")),
        "place": f"{where} [{witness['passage']}], characters {witness['start']} to {witness['end']}",
        "before": (witness.get("before") or "")[-_LONGEST:],
        "text": _clip(witness["text"]),
        "after": (witness.get("after") or "")[:_LONGEST],
        "level": witness["level"],
        "flags": ", ".join(flag.replace("_", " ") for flag in witness["flags"]),
    }


def _remarks(row: Mapping[str, Any]) -> Iterator[str]:
    if row["preference"] is not None:
        yield f"the judge prefers candidate [{row['preference']}]"
    if row["repair"] is not None and row["branch"] != "repair":
        yield f"proposed as repair: {_clip(row['repair'])}"
    for role, reason in row["abstentions"].items():
        said = f"the {role}'s call failed" if reason.startswith(_FAILED) else f"the {role} abstained"
        yield f"{said}: {_clip(reason.removeprefix(_FAILED))}"
    if row["tie"]:
        yield "consensus is the earliest of a tie"


def _answer(text: object) -> str | None:
    return None if text is None else _clip(text)


def _clip(text: object) -> str:
    whole = str(text)
    more = len(whole) - _LONGEST
    return whole if more <= 0 else f"{whole[:_LONGEST]}… ({more:,} more characters)"


def _sections(
    summary: Mapping[str, Any], kept: Mapping[str, _Kept], effects: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each pool."""
    four = (paper_table(summary), audit_table(summary), bounds_table(summary), cost_table(summary))
    for (name, pool), paper, audit, bounded, cost in zip(pools_of(summary).items(), *four, strict=True):
        shown = kept[name].shown()
        yield {
            "name": name,
            "task": pool["task"],
            "questions": questions(pool["n"]),
            "paper": paper,
            "audit": audit,
            "bounded": bounded,
            "cost": cost,
            "effects": effects_table(effects[name]) if name in effects else None,
            "forest": forest(pool),
            "bounds": bounds(pool),
            "changes": shown,
            "n_changed": questions(kept[name].n_changed),
            "more": kept[name].n_changed - len(shown),
            "abstentions": kept[name].abstentions.table("abstentions of eldgr's roles"),
            "failures": kept[name].failures.table("failed calls of eldgr's roles"),
        }


def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(files("eldgr_dspy").joinpath("report.html.jinja").read_text(encoding="utf-8"))


def _printable(text: str) -> str:
    """Show bidirectional controls by their code points, and replace what UTF-8 or HTML cannot carry by U+FFFD."""
    named = _BIDI.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
    return _FORBIDDEN.sub("\ufffd", named)
