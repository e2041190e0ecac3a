"""What holds of the NLI scorer for every group of texts, corpus and model, and of reasoning that nobody here wrote."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS, Channel, Undefined
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.protocols import NLI, Reasoning
from eldgr_dspy.channels.step_table import StepScores, StepTable
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.words import READINGS
from tests.scoring.readers import Everything, Reader, by_chance

WORDS = "Doha Dubai Qatar is was not the capital of and 2022 3.5 first last won so ; . , ? Step 1: 多哈 \u200b".split()
sentences = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
passages = st.builds(Passage, st.sampled_from(["", "Doha", "Qatar"]), sentences)
marks = st.lists(st.sampled_from(["```", "$$", "\\[", "\n\n", "####", "A b c. "]))
texts = st.lists(sentences, max_size=4).map("\n".join) | st.text(max_size=60) | marks.map("".join)
reasonings = st.builds(
    Reasoning, texts, sentences, st.none() | st.lists(passages, max_size=7).map(tuple), sentences
).flatmap(lambda one: st.sampled_from([one, replace(one, confidences=[0.25] * len(split_steps(one.text).steps))]))
groups = st.lists(reasonings, max_size=4)
CHANCE = by_chance("contradiction", "neutral", "entailment", "entailment", "nothing")
LABELS = by_chance("contradiction", "neutral", "entailment")
WITH_GAPS = by_chance("contradiction", "neutral", "entailment", "nothing")
models = st.sampled_from([LABELS, WITH_GAPS, by_chance("neutral"), by_chance("nothing")])
corpora = st.none() | st.lists(passages, max_size=7).map(lambda documents: Everything(*documents))
QATAR = Reasoning(
    "The capital of Qatar is Doha.\nThe capital of Qatar is Lima.",
    "What is the capital of Qatar?",
    (Passage("", "Ada has 3 apples."), Passage("", "Doha is the capital of Qatar.")),
)


def of(tables: Sequence[StepTable]) -> list[dict[str, object]]:
    return [table.to_json() for table in tables]


@given(groups, models, corpora, st.sampled_from(READINGS))
def test_every_score_is_in_range(group: list[Reasoning], model: Any, corpus: Everything | None, reading: Any) -> None:
    tables = NLIScorer(Reader(model), corpus, reading=reading).score(group)
    assert [table.text for table in tables] == [one.text for one in group]
    for table, one in zip(tables, group, strict=True):
        assert table.spans == split_steps(one.text).spans
        for step in table.scores:
            assert list(step.channels) == list(CHANNELS)
            for score in (*step.channels.values(), step.gate, step.reward):
                assert score.reason if isinstance(score, Undefined) else 0 <= score <= 1 and math.isfinite(score)
    json.dumps(of(tables), allow_nan=False)


@given(st.data(), groups, models, corpora)
def test_a_group_is_scored_in_one_call_as_its_texts_are_alone(
    data: Any, group: list[Any], model: Any, corpus: Any
) -> None:
    reader, again = Reader(model), Reader(model)
    tables = of(NLIScorer(reader, corpus).score(group))
    assert len(reader.calls) == (1 if reader.pairs else 0)
    assert len(set(reader.pairs)) == len(reader.pairs)
    assert reader.pairs == sorted(reader.pairs, key=lambda pair: (-len("".join(pair)), pair))  # the longest first
    scorer = NLIScorer(Reader(model), corpus)
    assert [table for one in group for table in of(scorer.score([one]))] == tables
    order = data.draw(st.permutations([*range(len(group))] * 2))
    assert of(NLIScorer(again, corpus).score([group[at] for at in order])) == [tables[at] for at in order]
    assert again.calls == reader.calls


def test_a_text_with_an_empty_corpus_is_scored_beside_one_without_as_alone() -> None:
    group, scorer = [Reasoning("Doha is in Qatar.", "", corpus) for corpus in (None, ())], NLIScorer(Reader())
    assert of(scorer.score(group)) == [table for one in group for table in of(scorer.score([one]))]


@given(groups, st.lists(passages, max_size=4), st.integers(1, 4))
def test_neutral_documents_keep_fact_above_a_half(group: list[Reasoning], documents: list[Passage], n: int) -> None:
    further = [Passage("", f"neutral {at}") for at in range(n)]
    reader = Reader(lambda premise, step: "neutral" if premise.startswith("neutral") else LABELS(premise, step))
    before = NLIScorer(reader, Everything(*documents), k=9).score(group)
    after = NLIScorer(reader, Everything(*documents, *further), k=9).score(group)
    for old, new in zip(before, after, strict=True):
        for was, now in zip(old.scores, new.scores, strict=True):
            one, other = was.channels["fact"], now.channels["fact"]
            assert one == other or (not isinstance(other, Undefined) and other >= 0.5)
            assert was.contradicting == now.contradicting


@given(st.lists(sentences, max_size=6).map("\n".join), st.lists(passages, max_size=7), st.integers(1, 5))
def test_a_step_takes_at_most_one_pair_and_two_for_each_document(text: str, documents: list[Passage], k: int) -> None:
    reader = Reader()
    own: Any = lambda steps: [(step.text,) for step in steps]  # noqa: E731 -- a step claims itself
    (table,) = NLIScorer(reader, Everything(*documents), k=k, claims=own).score([Reasoning(text, "Which?")])
    count = sum(not isinstance(step.channels["fact"], Undefined) for step in table.scores)
    assert len(reader.pairs) <= count * (1 + 2 * min(k, len(documents)))


def rows(folder: Path, name: str, n: int) -> list[Row]:
    return list(islice(open_pool(folder / f"{name}.jsonl.gz").rows(), n))


def texts_of(row: Row) -> list[Reasoning]:
    """The texts of a question as a group, with confidences for every step."""
    passages = tuple(Passage(one.title, one.text) for one in row.evidence) or None
    texts = [(one.text, one.answer or "", [0.9] * len(split_steps(one.text).steps)) for one in row.candidates]
    return [Reasoning(text, row.question, passages, answer, sure) for text, answer, sure in texts]


def whole(tables: Sequence[StepTable], group: Sequence[Reasoning]) -> list[StepScores]:
    """The steps of all tables, each score of which is a number in its range or undefined with a reason."""
    assert [table.text for table in tables] == [one.text for one in group]
    json.dumps([table.to_json() for table in tables], allow_nan=False)
    steps = [step for table in tables for step in table.scores]
    for score in (score for step in steps for score in (*step.channels.values(), step.gate, step.reward)):
        assert score.reason if isinstance(score, Undefined) else 0 <= score <= 1
    return steps


def test_runs_of_agents_are_held_against_their_own_paragraphs(pools_dir: Path) -> None:
    total = 0
    for row in rows(pools_dir, "hotpotqa-reflexion12", 12):
        group, reader = texts_of(row), Reader(CHANCE)
        steps = whole(NLIScorer(reader).score(group), group)
        assert len(reader.calls) == 1
        total += sum(not isinstance(step.channels["fact"], Undefined) for step in steps)
        for table in NLIScorer(Reader(LABELS)).score(group):
            for (start, end), step in zip(table.spans, table.scores, strict=True):
                for result in (row.evidence[at] for at in (step.document, step.contradicting) if at is not None):
                    assert set(units(table.text[start:end])) & set(units(f"{result.title} {result.text}"))
    assert total > 100


def test_solutions_are_held_against_one_corpus_of_solutions(pools_dir: Path) -> None:
    pool = rows(pools_dir, "gsm8k-openai4", 120)
    corpus = BM25(Passage("", row.candidates[-1].text) for row in pool[20:])
    group = [one for row in pool[:20] for one in texts_of(row)]
    reader = Reader(LABELS)
    steps = whole(NLIScorer(reader, corpus).score(group), group)
    assert len(reader.calls) == 1 and all(not isinstance(step.reward, Undefined) for step in steps)
    assert len(reader.pairs) <= 13 * len(steps)
    assert all(step.document is not None and 0 <= step.document < 100 for step in steps)


@pytest.mark.parametrize("pool", ["gsm8k-openai4", "svamp-codex8"])
def test_without_a_corpus_only_logic_and_info_are_measured(pools_dir: Path, pool: str) -> None:
    for row in rows(pools_dir, pool, 30):
        group, reader = texts_of(row), Reader(LABELS)
        steps = whole(NLIScorer(reader).score(group), group)
        names = {name for step in steps for name, score in step.channels.items() if not isinstance(score, Undefined)}
        assert names <= {"logic", "info"} and "logic" in names
        assert len(reader.pairs) <= len(steps)


@pytest.mark.slow
def test_a_trained_model_supports_what_it_reads_and_reads_real_reasoning(nli: NLI, pools_dir: Path) -> None:
    (table,) = NLIScorer(nli).score([QATAR])
    doha, lima = table.scores
    assert (doha.channels["fact"], doha.document, doha.contradicting) == (1, 1, None)
    assert (lima.channels["fact"], lima.document, lima.contradicting, lima.least) == (0, 1, 1, -1)
    assert lima.gate == lima.reward == 0
    (row,) = rows(pools_dir, "hotpotqa-reflexion12", 1)
    group, scorer = [*texts_of(row)[:4], QATAR], NLIScorer(nli, reading="expected")
    tables = scorer.score(group)
    assert any(not isinstance(step.channels["fact"], Undefined) for step in whole(tables, group))
    alone = [table for one in group for table in scorer.score([one])]
    assert read(tables) == pytest.approx(read(alone), abs=1e-5)


def read(tables: Sequence[StepTable]) -> list[float]:
    """What a model read of all steps; -2 where that is undefined."""
    names: tuple[Channel, ...] = ("logic", "fact", "adv")
    scores = [step.channels[name] for table in tables for step in table.scores for name in names]
    return [-2 if isinstance(score, Undefined) else score for score in scores]
