"""Corpora hold what the paper names: supporting facts, solutions without what is written for programs, evidence."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval_times import FACTS, facts_rows, in_all, in_ten
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.corpora import gsm8k_corpus, hotpotqa_corpus

QATAR = ["Qatar is a country.", " Its capital is Doha."]
CUP = ["The cup was held in 2022.", " Qatar hosted it.", " "]


def row(*facts: tuple[str, int], **changed: Any) -> dict[str, Any]:
    """A row of `hotpot_qa`, `distractor`, as Hugging Face has it."""
    return {
        "id": "q1",
        "question": "Which city is the capital of the host?",
        "answer": "Doha",
        "context": {"title": ["Qatar", "Cup", "Gulf"], "sentences": [QATAR, CUP, ["The Gulf is warm."]]},
        "supporting_facts": {"title": [title for title, _ in facts], "sent_id": [number for _, number in facts]},
        **changed,
    }


# --- HotpotQA ---------------------------------------------------------------------------------------------------------


HOSTED, CAPITAL = Passage("Cup", "Qatar hosted it."), Passage("Qatar", "Its capital is Doha.")


@pytest.mark.parametrize(
    ("rows", "unit", "corpus"),
    [
        ([row(("Cup", 1), ("Qatar", 1))], "sentence", (HOSTED, CAPITAL)),
        (
            iter([row(("Cup", 1)), row(("Qatar", 1), ("Cup", 1))]),
            "sentence",
            (HOSTED, CAPITAL),
        ),  # once, where it is first
        (
            [row(("Qatar", 1), ("Qatar", 0))],
            "paragraph",
            (Passage("Qatar", "Qatar is a country. Its capital is Doha."),),
        ),
        *(([row(fact)], "sentence", ()) for fact in (("Qatar", 2), ("Qatar", -1), ("Paris", 0), ("Cup", 2))),
        ([row()], "sentence", ()),
        ([], "sentence", ()),
    ],
)
def test_a_fact_is_a_sentence_or_paragraph_under_its_title(rows: Any, unit: Any, corpus: tuple[Passage, ...]) -> None:
    assert hotpotqa_corpus(rows, unit) == corpus


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), {"question": "?"}], r"rows\[1\]\['context'\] is missing; give rows of `hotpot_qa` as Hugging Face"),
        ([row(context=[["Qatar", QATAR]])], r"rows\[0\]\['context'\] is \[\['Qatar'"),
        ([row(supporting_facts={"title": ["Qatar"], "sent_id": []})], r"rows\[0\]\['supporting_facts'\] is {'title'"),
        ([row(supporting_facts={"title": ["Qatar"], "sent_id": ["1"]})], r"\['sent_id'\]\[0\] is '1'"),
        (row(), r"rows\[0\] is 'id'"),
        (None, "rows must be rows of .*; got None"),
    ],
    ids=["missing", "official-layout", "lengths", "type", "one-row", "none"],
)
def test_a_row_of_another_layout_is_refused_with_its_place(rows: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        hotpotqa_corpus(rows)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (hotpotqa_corpus, ([], "document"), "unit='document' is not known; use one of 'sentence', 'paragraph'"),
        *(
            (gsm8k_corpus, ([], number), r"solutions must be a whole number of at least 1; got .*")
            for number in (0, -1, True, 2.5, None)
        ),
        (
            gsm8k_corpus,
            ([{"question": "?", "answer": None}],),
            r"rows\[0\]\['answer'\] is None; give rows of `gsm8k` as Hugging Face",
        ),
    ],
)
def test_what_makes_no_corpus_is_refused(make: Any, values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make(*values)


def test_on_real_questions_most_facts_are_found(pools_dir: Path) -> None:
    rows = facts_rows(pools_dir)
    if not rows:
        pytest.skip(f"no {FACTS} in {pools_dir}; set ELDGR_POOLS to the folder that holds it")
    assert len(hotpotqa_corpus(rows)) == 725
    assert in_all(rows) > 0.9
    assert in_ten(rows) > 0.85


# --- GSM8K ------------------------------------------------------------------------------------------------------------

CLIPS = "She sold 48/2 = <<48/2=24>>24 clips in May.\nShe sold 48+24 = <<48+24=72>>72 clips altogether.\n#### 72"


def test_a_solution_is_without_annotations_and_without_the_line_for_the_grader() -> None:
    assert gsm8k_corpus([{"question": "How many?", "answer": CLIPS}]) == (
        Passage("", "She sold 48/2 = 24 clips in May.\nShe sold 48+24 = 72 clips altogether."),
    )
    assert gsm8k_corpus([{"answer": "It is 3 < 4 << 5."}, {"answer": "#### 3"}]) == (Passage("", "It is 3 < 4 << 5."),)


def test_the_first_thousand_are_taken_and_no_more_are_read() -> None:
    def rows() -> Any:
        yield from ({"answer": f"It is {number}."} for number in range(1_000))
        raise AssertionError("row 1,001 was read")

    corpus = gsm8k_corpus(rows())
    assert len(corpus) == 1_000 and corpus[-1].text == "It is 999."
    assert len(gsm8k_corpus(rows(), solutions=3)) == 3


def test_fewer_rows_make_a_smaller_corpus_and_a_solution_twice_is_there_once() -> None:
    assert gsm8k_corpus([]) == ()
    assert len(gsm8k_corpus([{"answer": CLIPS}, {"answer": CLIPS}])) == 1
