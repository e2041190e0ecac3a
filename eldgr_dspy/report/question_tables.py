"""One question of a run in tables: what ships and why, votes, what the roles said, candidates and evidence."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eldgr_dspy.base.formatting import UNDEFINED
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.report.explanations import passages, path
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.named_judges import Label, asked_by, in_order, role_of
from eldgr_dspy.tables.table import Table
from eldgr_dspy.words import is_role

_CELL = 60  # characters of a text in a cell
_TEXT, _CANDIDATE = 4_000, 1_500  # characters of a text of a role, and of a candidate
_CANDIDATES, _GOLDS = 64, 20  # candidates whose texts are shown, and gold answers
_ROWS, _COLUMNS = 64, 16  # of a table that a role gave
_SCORES = {True: "right", False: "wrong", None: UNDEFINED}
_SUPPORT = {True: "certified", False: "uncertified", None: "inapplicable"}


class RunQuestion(NamedTuple):
    """A question of a run, with all that the run knows of it."""

    pool: str
    row: Row
    case: Case | None  # under the settings of the run; None where they need code that was not given
    decisions: Sequence[Decided]
    consultations: Mapping[Label, Consultation]
    ungiven: str | None = None  # why there is no case, in a sentence

    def relevant_consultations(self) -> list[Consultation]:
        """Return the consultations that decisions took into account, in order."""
        labels = {asked_by(decision["rule"], role) for decision in self.decisions for role in decision["consulted"]}
        entries = {role: of for role, of in self.consultations.items() if role in labels or not is_role(role_of(role))}
        return [entries[role] for role in in_order(entries) if role in entries]


def question_tables(question: RunQuestion) -> Iterator[Table]:
    """Yield the tables of a question; in the evidence, what is marked is in double brackets."""
    yield from tables_without_evidence(question)
    rows, notes = [], []
    entries, left_out = passages(question.row.evidence, question.case, question.decisions)
    for passage in entries:
        labels = dict.fromkeys(piece[1] for piece in (*passage.title, *passage.text) if not isinstance(piece, str))
        title, text = (
            "".join(piece if isinstance(piece, str) else f"[[{piece[0]}]]" for piece in field)
            for field in (passage.title, passage.text)
        )
        rows.append((f"[{passage.place}]", _cell(title), "; ".join(labels)))
        notes.append(f"[{passage.place}] {text}")
    notes += [f"{left_out:,} more passages are in the pool."] if left_out else []
    headers = ("passage", "title", "marked in [[...]]")
    yield Table("evidence", headers, tuple(rows), tuple(notes or ["There is no evidence."]))


def tables_without_evidence(question: RunQuestion) -> Iterator[Table]:
    """Yield what ships and why, votes, replies and candidates; the page shows evidence by itself."""
    yield _rules(question)
    yield _votes(question)
    yield from _roles(question.relevant_consultations())
    yield _candidates(question)


def _rules(question: RunQuestion) -> Table:
    rows = tuple(
        (of["rule"], _cell(of["answer"]), _SCORES[of["em"]], of["branch"], _SUPPORT[of["certified"]])
        for of in question.decisions
    )
    notes = [f"{of['rule']}: {' '.join(path(question.case, of))}" for of in question.decisions]
    notes += dict.fromkeys(clip(note, _TEXT) for of in question.decisions for note in of["notes"])
    gold = [clip(answer, 300) for answer in question.row.gold[:_GOLDS]]
    more = f" and {len(question.row.gold) - _GOLDS:,} more" if len(question.row.gold) > _GOLDS else ""
    notes.append(f"Gold: {', '.join(gold) or UNDEFINED}{more}.")
    headers = ("rule", "answer", "score", "decided by", "certificate")
    return Table(f"{question.pool}: {question.row.id}", headers, rows, tuple(notes), clip(question.row.question, _TEXT))


def _votes(question: RunQuestion) -> Table:
    """The classes of answers, most votes first, each with its candidates and its certificate."""
    case, voters, rows, notes = question.case, dict[str, list[int]](), [], list[str]()
    for index, key in enumerate(case.vote.classes if case else ()):
        if key is not None:
            voters.setdefault(key, []).append(index)
    for key, indices in sorted(voters.items(), key=lambda item: -len(item[1])):
        assert case is not None
        answer = case.question.answers[indices[0]]
        label = f"{_cell(answer)}{' (consensus)' if key == case.vote.winner else ''}"
        support = case.certificate(answer) if case.type.way == "evidence" else None
        certificate = UNDEFINED if support is None else _SUPPORT[support.certified]
        rows.append((label, f"{len(indices):,}", " ".join(map(str, indices)), certificate))
        notes += [f"{label}: {clip(support.reason, _TEXT)}"] if support else []
    if not rows:
        notes.append(question.ungiven or "No candidate has an answer, so there is no consensus.")
    return Table("votes", ("class of answers", "votes", "candidates", "certificate"), tuple(rows), tuple(notes))


def _candidates(question: RunQuestion) -> Table:
    keys = question.case.vote.classes if question.case else [one.answer for one in question.row.candidates]
    rows, texts = [], []
    for index, (candidate, key) in enumerate(zip(question.row.candidates, keys, strict=True)):
        vote = "does not vote" if key is None else "votes"
        rows.append((f"[{index}]", _cell(candidate.answer), vote, _cell(candidate.source)))
        if index < _CANDIDATES and candidate.text.strip() != (candidate.answer or "").strip():
            texts.append(f"[{index}] {clip(candidate.text, _CANDIDATE)}")
    return Table("candidates", ("candidate", "answer", "vote", "source"), tuple(rows), tuple(texts))


def _roles(consultations: Sequence[Consultation]) -> Iterator[Table]:
    rows = tuple((one.label, one.outcome, _by(one), ", ".join(_took(one))) for one in consultations)
    notes = []
    for one in consultations:
        fields = {name: value for name, value in (one.content or {}).items() if not _is_table(value)}
        lines = {**({"reason": one.reason} if one.reason else {}), **fields}
        notes += [f"{one.label}, {name.replace('_', ' ')}: {clip(_text(of), _TEXT)}" for name, of in lines.items()]
    headers = ("role", "outcome", "asked", "took")
    yield Table("what the roles said", headers, rows, tuple(notes or ["No role was asked."]))
    for one in consultations:
        for name, value in (one.content or {}).items():
            if _is_table(value):
                yield _table(f"{one.label}, {name.replace('_', ' ')}", value)


def _by(one: Consultation) -> str:
    if one.recorded:
        return "recorded"
    if one.asked is None:
        return one.served or ("heuristic role, no LM" if is_role(one.label) else "no LM of DSPy's")
    return one.asked if one.served in (None, one.asked) else f"{one.asked}, answered by {one.served}"


def _took(one: Consultation) -> Iterator[str]:
    yield f"{one.calls} LM call{'' if one.calls == 1 else 's'}"
    if one.cached:
        yield f"{one.cached} from the cache"
    if one.attempt > 1:
        yield f"attempt {one.attempt}"
    tokens = (one.prompt_tokens, ",", "tokens in"), (one.completion_tokens, ",", "tokens out")
    for amount, form, unit in ((one.seconds, ".2f", "s"), *tokens, (one.cost, ".4f", "dollars")):
        if amount is not None:
            yield f"{amount:{form}} {unit}"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = list(dict.fromkeys(column for row in rows for column in row))[:_COLUMNS]
    cells = tuple(
        (f"[{index}]", *(clip(_text(row.get(column)), 300) for column in columns))
        for index, row in enumerate(rows[:_ROWS])
    )
    more = (f"{len(rows) - _ROWS:,} more rows.",) if len(rows) > _ROWS else ()
    return Table(title, ("", *columns), cells, more)


def _text(value: Any) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.4g}"
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # as deep as the journal can be read
        return "nested too deeply to show"


def _cell(text: str | None) -> str:
    return UNDEFINED if text is None else clip(" ".join(text.split()), _CELL)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
