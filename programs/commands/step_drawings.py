"""A step table as a terminal shows it: a row a step, coloured by how each score stands to the middle of its range."""

from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from eldgr_dspy.base.formatting import UNDEFINED
from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.step_table import StepScores, StepTable
from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.programs.commands.console import render
from eldgr_dspy.showing import on_one_line
from eldgr_dspy.words import CHANNELS

_MIDDLE = 0.5  # neutral in `logic`, `fact` and `adv`, and the threshold of the gate
_CONFLATION, _PARTIAL = "!!", "!"  # marks of a conflated step: in the paper's form, or only without neutral documents


def drawn_table(title: str, table: StepTable, passages: Sequence[Passage]) -> str:
    """Return the scores of a text as they are printed; `passages` are the documents that the table numbers."""
    return render(f"{title}: reward {_figure(table.reward)}", _rich(table), _notes(table, passages))


def one_line(text: str, longest: int = 400) -> str:
    """Return a text on one line, cut to so many characters, with what would steer a terminal made visible."""
    line = on_one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _rich(table: StepTable) -> RichTable:
    grid = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, expand=True)
    grid.add_column("#", justify="right", no_wrap=True)
    grid.add_column("step", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in (*CHANNELS, "gate", "reward", "", "doc"):
        grid.add_column(name, justify="right", no_wrap=True)
    for number, ((start, end), step) in enumerate(zip(table.spans, table.scores, strict=True), start=1):
        scores = (*(step.channels[name] for name in CHANNELS), step.gate, step.reward)
        document = UNDEFINED if step.document is None else str(step.document)
        text = Text(one_line(table.text[start:end]))
        grid.add_row(str(number), text, *map(_cell, scores), Text(_mark(step), style="bold red"), document)
    return grid


def _cell(score: Score) -> Text:
    if isinstance(score, Undefined):
        return Text(UNDEFINED, style="dim")
    figure = _figure(score)
    return Text(figure, style="yellow" if float(figure) == _MIDDLE else "red" if score < _MIDDLE else "green")


def _figure(score: Score) -> str:
    return UNDEFINED if isinstance(score, Undefined) else f"{score:.2f}"


def _mark(step: StepScores) -> str:
    if step.conflated is True:
        return _CONFLATION
    if step.conflated_not_neutral is True:
        return _PARTIAL
    return UNDEFINED if isinstance(step.conflated, Undefined) else ""


def _notes(table: StepTable, passages: Sequence[Passage]) -> Iterator[str]:
    if not table.scores:
        yield "There is no step to score."
    for (reason, steps), names in _reasons(table).items():
        listing = f" (step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))})"
        where = "" if len(steps) == len(table.scores) else listing
        yield f"{UNDEFINED} {', '.join(names)}: {reason}{where}"
    yield from _conflations(table, _CONFLATION, "it scores high, and every document contradicts it")
    yield from _conflations(table, _PARTIAL, "it scores high, and every document that is not neutral contradicts it")
    documents = {step.document for step in table.scores} | {step.contradicting for step in table.scores}
    for document in sorted(number for number in documents if number is not None):
        passage = passages[document]
        yield f"doc {document}: {one_line(passage.title or passage.text, 80)}"


def _reasons(table: StepTable) -> Mapping[tuple[str, tuple[int, ...]], list[str]]:
    """Why something is undefined, and in which steps -> what."""
    steps: dict[tuple[str, str], list[int]] = {}
    for number, step in enumerate(table.scores, start=1):
        scores = [*step.channels.items(), ("gate", step.gate), ("reward", step.reward), ("conflated", step.conflated)]
        for name, score in scores:
            if isinstance(score, Undefined) and (name != "conflated" or _mark(step) == UNDEFINED):
                steps.setdefault((name, score.reason), []).append(number)
    reasons: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (name, reason), numbers in steps.items():
        reasons.setdefault((reason, tuple(numbers)), []).append(name)
    return reasons


def _conflations(table: StepTable, mark: str, meaning: str) -> Iterator[str]:
    steps = {number: step for number, step in enumerate(table.scores, start=1) if _mark(step) == mark}
    if steps:
        places = [f"step {number} by doc {step.contradicting}" for number, step in steps.items()]
        yield f"{mark} conflated: {meaning} ({', '.join(places)})"
