"""Reasoning that nobody here wrote goes the whole way from text to table: by chance, and by a small model that is real.

The folder is named by ELDGR_POOLS; without it these tests are skipped with a reason. What the model says of the pools
means nothing: it has learnt other facts.
"""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import Channel, Undefined
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.protocols import NLI, Reasoning
from eldgr_dspy.channels.step_table import StepScores, StepTable
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from tests.scoring.readers import Reader, by_chance

CHANCE = by_chance("contradiction", "neutral", "entailment", "entailment", "nothing")
MEASURED = by_chance("contradiction", "neutral", "entailment")


QATAR = Reasoning(
    "The capital of Qatar is Doha.\nThe capital of Qatar is Lima.",
    "What is the capital of Qatar?",
    (Passage("", "Ada has 3 apples."), Passage("", "Doha is the capital of Qatar.")),
)


def rows(folder: Path, name: str, n: int) -> list[Row]:
    return list(islice(open_pool(folder / f"{name}.jsonl.gz").rows(), n))


def reasonings(row: Row) -> list[Reasoning]:
    """The texts of a question as a group, with confidences for every step."""
    passages = tuple(Passage(one.title, one.text) for one in row.evidence) or None
    return [
        Reasoning(one.text, row.question, passages, one.answer or "", [0.9] * len(split_steps(one.text).steps))
        for one in row.candidates
    ]


def whole(tables: Sequence[StepTable], group: Sequence[Reasoning]) -> list[StepScores]:
    """The steps of all tables, each score of which is a number in its range or undefined with a reason."""
    assert [table.text for table in tables] == [one.text for one in group]
    json.dumps([table.to_json() for table in tables], allow_nan=False)
    steps = [step for table in tables for step in table.scores]
    for score in (score for step in steps for score in (*step.channels.values(), step.gate, step.reward)):
        assert score.reason if isinstance(score, Undefined) else 0 <= score <= 1
    return steps


def test_runs_of_agents_are_held_against_their_own_paragraphs(pools_dir: Path) -> None:
    defined = 0
    for row in rows(pools_dir, "hotpotqa-reflexion12", 12):
        group, reader = reasonings(row), Reader(CHANCE)
        steps = whole(NLIScorer(reader).score(group), group)
        assert len(reader.calls) == 1
        defined += sum(not isinstance(step.channels["fact"], Undefined) for step in steps)
        for table in NLIScorer(Reader(MEASURED)).score(group):
            for (start, end), step in zip(table.spans, table.scores, strict=True):
                for result in (row.evidence[at] for at in (step.document, step.contradicting) if at is not None):
                    assert set(units(table.text[start:end])) & set(units(f"{result.title} {result.text}"))
    assert defined > 100


def test_solutions_are_held_against_one_corpus_of_solutions(pools_dir: Path) -> None:
    pool = rows(pools_dir, "gsm8k-openai4", 120)
    corpus = BM25(Passage("", row.candidates[-1].text) for row in pool[20:])
    group = [one for row in pool[:20] for one in reasonings(row)]
    reader = Reader(MEASURED)
    steps = whole(NLIScorer(reader, corpus).score(group), group)
    assert len(reader.calls) == 1 and all(not isinstance(step.reward, Undefined) for step in steps)
    assert len(reader.pairs) <= 13 * len(steps)
    assert all(step.document is not None and 0 <= step.document < 100 for step in steps)


@pytest.mark.parametrize("pool", ["gsm8k-openai4", "svamp-codex8"])
def test_without_a_corpus_only_logic_and_info_are_measured(pools_dir: Path, pool: str) -> None:
    for row in rows(pools_dir, pool, 30):
        group, reader = reasonings(row), Reader(MEASURED)
        steps = whole(NLIScorer(reader).score(group), group)
        defined = {name for step in steps for name, score in step.channels.items() if not isinstance(score, Undefined)}
        assert defined <= {"logic", "info"} and "logic" in defined
        assert len(reader.pairs) <= len(steps)


@pytest.mark.slow
def test_a_trained_model_supports_what_it_reads_and_contradicts_the_rest(nli: NLI) -> None:
    (table,) = NLIScorer(nli).score([QATAR])
    doha, lima = table.scores
    assert (doha.channels["fact"], doha.document, doha.contradicting) == (1, 1, None)
    assert (lima.channels["fact"], lima.document, lima.contradicting, lima.least) == (0, 1, 1, -1)
    assert lima.gate == lima.reward == 0


@pytest.mark.slow
def test_a_trained_model_makes_whole_tables_of_real_reasoning(nli: NLI, pools_dir: Path) -> None:
    (row,) = rows(pools_dir, "hotpotqa-reflexion12", 1)
    group, scorer = [*reasonings(row)[:4], QATAR], NLIScorer(nli, reading="expected")
    tables = scorer.score(group)
    assert any(not isinstance(step.channels["fact"], Undefined) for step in whole(tables, group))
    alone = [table for one in group for table in scorer.score([one])]
    assert read(tables) == pytest.approx(read(alone), abs=1e-5)


def read(tables: Sequence[StepTable]) -> list[float]:
    """What a model read of all steps; -2 where that is undefined."""
    names: tuple[Channel, ...] = ("logic", "fact", "adv")
    scores = [step.channels[name] for table in tables for step in table.scores for name in names]
    return [-2 if isinstance(score, Undefined) else score for score in scores]
