"""What holds of the NLI scorer for every group of texts, every corpus and every model."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS, Undefined
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.words import READINGS
from tests.scoring.readers import Everything, Reader, by_chance

WORDS = "Doha Dubai Qatar is was not the capital of and 2022 3.5 first last won so ; . , ? Step 1: 多哈 \u200b".split()
sentences = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
passages = st.builds(Passage, st.sampled_from(["", "Doha", "Qatar"]), sentences)
any_text = st.text(max_size=60) | st.lists(st.sampled_from(["```", "$$", "\\[", "\n\n", "####", "A b c. "])).map(
    "".join
)
texts = st.lists(sentences, max_size=4).map("\n".join) | any_text
reasonings = st.builds(
    Reasoning, texts, sentences, st.none() | st.lists(passages, max_size=7).map(tuple), sentences
).flatmap(lambda one: st.sampled_from([one, replace(one, confidences=[0.25] * len(split_steps(one.text).steps))]))
groups = st.lists(reasonings, max_size=4)
models = st.sampled_from(
    [
        by_chance("contradiction", "neutral", "entailment"),
        by_chance("contradiction", "neutral", "entailment", "nothing"),
        by_chance("neutral"),
        by_chance("nothing"),
    ]
)
corpora = st.none() | st.lists(passages, max_size=7).map(lambda documents: Everything(*documents))


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
def test_a_group_is_scored_in_one_call_as_its_texts_are_one_by_one_in_any_order_and_twice(
    data: st.DataObject, group: list[Reasoning], model: Any, corpus: Everything | None
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
    model = by_chance("contradiction", "neutral", "entailment")
    reader = Reader(
        lambda premise, hypothesis: "neutral" if premise.startswith("neutral") else model(premise, hypothesis)
    )
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
    scored = sum(not isinstance(step.channels["fact"], Undefined) for step in table.scores)
    assert len(reader.pairs) <= scored * (1 + 2 * min(k, len(documents)))
