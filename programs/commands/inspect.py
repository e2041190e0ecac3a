"""`eldgr inspect`: score reasoning step by step on the seven channels."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eldgr_dspy.errors import RunStoppedError, brief
from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.options import FILE, FROM_1, choice
from eldgr_dspy.programs.commands.output import form_options, writing
from eldgr_dspy.words import Reading

if TYPE_CHECKING:
    from eldgr_dspy.channels.protocols import Scorer
    from eldgr_dspy.channels.step_table import StepTable
    from eldgr_dspy.programs.scoring.texts import Text

_POOLS = (".jsonl", ".gz", ".parquet")


@click.command()
@click.argument("source", metavar="POOL|FILE", type=FILE)
@click.option("--nli", metavar="MODEL", help="NLI model: a name on the Hugging Face Hub, or a folder.")
@click.option("--lm", metavar="MODEL", help="LM that states the scores itself, for example ollama/qwen3:8b.")
@click.option("--question", metavar="TEXT", help="The question that the text in FILE answers.")
@click.option(
    "--evidence",
    metavar="FILE",
    type=FILE,
    help="Passages for the text in FILE: paragraphs, or (.jsonl) objects with text and title.",
)
@click.option("--limit", type=FROM_1, help="Questions to take from the pool.  [default: all]")
@click.option("--k", type=FROM_1, default=5, help="Most documents that a step is compared with.")
@click.option("--reading", type=choice(Reading), default="label", help="How f_NLI is computed.")
@form_options("text", "json")
def inspect(
    source: Path,
    nli: str | None,
    lm: str | None,
    question: str | None,
    evidence: Path | None,
    limit: int | None,
    k: int,
    reading: Reading,
    form: str,
) -> None:
    """Score reasoning step by step on seven channels.

    POOL (.jsonl, .jsonl.gz, .parquet): scores the text of each candidate against the evidence of its question. FILE,
    with any other name: scores one text.

    --nli measures the scores, --lm asks for an opinion. With both, each has its table. Scores are for reading: they
    certify nothing and change no answer. --format json prints one object per text, each on a line.

    Exit code 3: a model could not be asked.
    """
    if nli is None and lm is None:
        raise click.UsageError("Give --nli MODEL, --lm MODEL or both: one of them must score.")
    is_pool = source.name.endswith(_POOLS)
    if is_pool and not (question is None and evidence is None):
        raise click.UsageError(
            "--question and --evidence are for a text in a file; a pool has its own. Leave them out."
        )
    from eldgr_dspy.programs.scoring.texts import text_of_file, texts_of_pool

    click.get_current_context().ensure_object(Session).before_open = ""
    texts = texts_of_pool(source, limit) if is_pool else [[text_of_file(source, question or "", evidence)]]
    print_scores(source, texts, _scorers(nli, lm, k, reading), as_json=form == "json")


def _scorers(nli: str | None, lm: str | None, k: int, reading: Reading) -> "dict[str, Scorer]":
    scorers: dict[str, Scorer] = {}
    if nli is not None:
        from eldgr_dspy.programs.scoring.nli import load_nli
        from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer

        scorers[f"nli {nli}"] = NLIScorer(load_nli(nli), k=k, reading=reading)
    if lm is not None:
        from eldgr_dspy.programs.lms.models import make_lm
        from eldgr_dspy.programs.scoring.channel_scorer import ChannelScorer

        scorer = ChannelScorer()
        scorer.set_lm(make_lm(lm, temperature=0.0, cache=False))
        scorers[f"lm {lm}"] = scorer
    return scorers


def print_scores(
    source: Path, questions: Iterable[Sequence["Text"]], scorers: Mapping[str, "Scorer"], *, as_json: bool
) -> None:
    """Print the scores of all texts, question by question as they come, until the pipe is closed."""
    from eldgr_dspy.programs.commands.console import write_out

    for texts in questions:
        tables = {name: _score(scorer, texts, name) for name, scorer in scorers.items()}
        with writing("The scores"):
            try:
                for chunk in _lines(source, texts, tables) if as_json else _draw(source, texts, tables):
                    write_out(chunk)
            except BrokenPipeError:
                return


def _score(scorer: "Scorer", texts: Sequence["Text"], name: str) -> "Sequence[StepTable]":
    from eldgr_dspy.programs.lms.consulting import FAILURES

    try:
        return scorer.score([text.reasoning for text in texts])
    except FAILURES as error:
        reason = str(error).partition("\n")[0]
        raise RunStoppedError(f"{name} could not be asked: {brief(reason)}") from error


def _lines(source: Path, texts: Sequence["Text"], tables: "Mapping[str, Sequence[StepTable]]") -> Iterator[str]:
    for at, text in enumerate(texts):
        record = {
            "source": str(source),
            "id": text.id,
            "candidate": text.candidate,
            "question": text.reasoning.question,
            "answer": text.reasoning.answer,
            "scores": {name.partition(" ")[0]: rows[at].to_json() for name, rows in tables.items()},
        }
        yield f"{json.dumps(record)}\n"


def _draw(source: Path, texts: Sequence["Text"], tables: "Mapping[str, Sequence[StepTable]]") -> Iterator[str]:
    from eldgr_dspy.programs.commands.step_drawings import drawn_table, one_line

    for at, text in enumerate(texts):
        if not text.candidate:
            yield f"{one_line(': '.join(filter(None, (text.id or source.name, text.reasoning.question))))}\n\n"
        answer = one_line(text.reasoning.answer, 60) or "no answer"
        titles = () if text.candidate is None else (f"candidate {text.candidate}", answer)
        for name, rows in tables.items():
            yield drawn_table(", ".join((*titles, one_line(name))), rows[at], text.reasoning.passages or ())
