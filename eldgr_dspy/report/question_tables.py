"""One question of a run in tables: votes, evidence, what the roles said, and what each rule ships and why.

Short texts are cells, and long ones are notes below a table.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eldgr_dspy.formatting import UNDEFINED
from eldgr_dspy.report.templates import clip
from eldgr_dspy.tables.table import Table

_CELL = 60  # characters of a text in a cell
_SCORES = {True: "right", False: "wrong", None: UNDEFINED}


def question_tables(question: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of a question, from what `eldgr_dspy.programs.run.pages.question_of` returns."""
    yield _votes(question)
    yield _candidates(question["candidates"])
    yield _evidence(question)
    yield from _roles(question["consultations"])
    yield _rules(question["decisions"])


def _votes(question: Mapping[str, Any]) -> Table:
    rows, notes = [], []
    for vote in question["votes"]:
        certificate, why = vote["certificate"] or (UNDEFINED, "")
        answer = f"{_cell(vote['answer'])}{' (consensus)' if vote['consensus'] else ''}"
        rows.append((answer, f"{vote['votes']:,}", " ".join(map(str, vote["candidates"])), certificate))
        if why:
            notes.append(f"{answer}: {why}")
    if not rows:
        notes.append(question.get("ungiven") or "No candidate has an answer, so there is no consensus.")
    more = f" and {question['more_gold']:,} more" if question["more_gold"] else ""
    notes.append(f"Gold: {', '.join(question['gold']) or UNDEFINED}{more}.")
    headers = ("class of answers", "votes", "candidates", "certificate")
    return Table(f"{question['pool']}: {question['id']}", headers, tuple(rows), tuple(notes), question["question"])


def _candidates(candidates: Sequence[Mapping[str, Any]]) -> Table:
    rows, texts = [], []
    for index, candidate in enumerate(candidates):
        vote = "votes" if candidate["votes"] else "does not vote"
        rows.append((f"[{index}]", _cell(candidate["answer"]), vote, candidate["source"] or UNDEFINED))
        if candidate["text"]:
            texts.append(f"[{index}] {candidate['text']}")
    return Table("candidates", ("candidate", "answer", "vote", "source"), tuple(rows), tuple(texts))


def _evidence(question: Mapping[str, Any]) -> Table:
    """What is marked is in double brackets."""
    rows, notes = [], []
    for passage in question["passages"]:
        labels = dict.fromkeys(
            piece[1] for piece in (*passage["title"], *passage["text"]) if not isinstance(piece, str)
        )
        title, text = (
            "".join(piece if isinstance(piece, str) else f"[[{piece[0]}]]" for piece in passage[field])
            for field in ("title", "text")
        )
        rows.append((f"[{passage['index']}]", _cell(title), "; ".join(labels)))
        notes.append(f"[{passage['index']}] {text}")
    if question["more_passages"]:
        notes.append(f"{question['more_passages']:,} more passages are in the pool.")
    if not rows:
        notes.append("There is no evidence.")
    return Table("evidence", ("passage", "title", "marked in [[...]]"), tuple(rows), tuple(notes))


def _roles(consultations: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    rows = tuple((said["role"], said["outcome"], said["by"], ", ".join(said["took"])) for said in consultations)
    notes = []
    for said in consultations:
        reason = [("reason", said["reason"])] if said["reason"] else []
        notes += [f"{said['role']}, {name}: {text}" for name, text in [*reason, *said["fields"]]]
    yield Table(
        "what the roles said", ("role", "outcome", "asked", "took"), rows, tuple(notes or ["No role was asked."])
    )
    for said in consultations:
        for table in said["tables"]:
            cells = tuple((f"[{index}]", *map(_cell, row)) for index, row in enumerate(table["rows"]))
            more = (f"{table['more']:,} more rows.",) if table["more"] else ()
            yield Table(f"{said['role']}, {table['name']}", ("", *table["columns"]), cells, more)


def _rules(decisions: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            decided["rule"],
            _cell(decided["answer"]),
            _SCORES[decided["right"]],
            decided["branch"],
            decided["certificate"],
        )
        for decided in decisions
    )
    notes = [f"{decided['rule']}: {' '.join(decided['path'])}" for decided in decisions]
    notes += dict.fromkeys(note for decided in decisions for note in decided["notes"])
    return Table("what ships", ("rule", "answer", "score", "decided by", "certificate"), rows, tuple(notes))


def _cell(text: str | None) -> str:
    return UNDEFINED if text is None else clip(" ".join(text.split()), _CELL)
