"""The table of a pool's contents."""

from collections.abc import Mapping

from eldgr_dspy.figures.contents import Column, Ends, PoolContents, Shared
from eldgr_dspy.formatting import UNDEFINED, figure, questions
from eldgr_dspy.tables.table import Table

_SHARES: Mapping[Shared, str] = {
    "homogeneous": "questions with one class of answers",
    "unanswered": "questions without any answer",
    "any_correct": "questions with a right candidate",
    "missing_answers": "candidates without an answer",
    "unclosed_thinking": "candidates whose thinking does not end",
    "cut_texts": "candidates that ran on after their end",
    "repeated_texts": "candidates whose text is there already",
    "repeated_questions": "questions that are there already",
    "without_evidence": "questions without evidence",
}


def contents_table(name: str, contents: PoolContents) -> Table:
    """Return the table of `figures.contents.Contents.figures`."""
    rows = [
        (said, f"{share['count']:,}" if share["of"] else UNDEFINED, f"{share['of']:,}", figure(share["percent"]))
        for share, said in ((contents[key], said) for key, said in _SHARES.items())
    ]
    passages, characters = contents["evidence"]["passages"], contents["evidence"]["characters"]
    notes = [f"Candidates a question: {_ends(contents['candidates'])}."]
    if passages["most"]:
        notes.append(f"Evidence a question: {_ends(passages)} passages, {_ends(characters)} characters.")
    if contents["any_correct"]["of"] < contents["n"]:
        notes.append(f"With a gold answer: {questions(contents['any_correct']['of'])} of {contents['n']:,}.")
    if columns := contents.get("columns"):
        notes.append(f"Stated of candidates: {', '.join(_column(name, one) for name, one in columns.items())}.")
    title = f"{name}: {contents['task']}, {questions(contents['n'])}"
    return Table(title, ("what the pool holds", "count", "of", "%"), tuple(rows), tuple(notes))


def _column(name: str, column: Column) -> str:
    counts = f"{name} {column['count']:,} of {column['of']:,}"
    return counts if column["lowest"] is None else f"{counts} from {column['lowest']:g} to {column['highest']:g}"


def _ends(ends: Ends) -> str:
    fewest, most = f"{ends['fewest']:,}", f"{ends['most']:,}"
    return fewest if fewest == most else f"{fewest} to {most}"
