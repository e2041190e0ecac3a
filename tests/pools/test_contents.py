"""What a pool holds is counted by the rules that vote and score, and is undefined where there is nothing to count."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eldgr_dspy.figures.contents import contents_of
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.tables.plan_tables import contents_table
from eldgr_dspy.words import Task


def row(name: str = "q", **changes: Any) -> Row:
    inputs = {
        "id": name,
        "question": f"What is {name}?",
        "task": "retrieval",
        "candidates": [{"answer": "Doha"}, {"answer": "Dubai"}],
        **changes,
    }
    return Row.model_validate(inputs)


def figures(*rows: Row, task: Task = "retrieval") -> Any:
    return contents_of(task, rows)[0]


def answered(*answers: str | None) -> list[dict[str, str | None]]:
    return [{"answer": answer} for answer in answers]


@pytest.mark.parametrize(
    ("answers", "homogeneous", "unanswered", "missing"),
    [
        (("Doha", "doha", "The Doha"), 1, 0, 0),
        (("Doha", "Dubai"), 0, 0, 0),
        (("Doha", None), 1, 0, 1),
        ((None, " "), 0, 1, 2),
        (("Doha",), 1, 0, 0),
    ],
    ids=["one class", "two classes", "one answer", "no answer", "one candidate"],
)
def test_agreement_is_by_the_classes_that_vote(
    answers: tuple[str | None, ...], homogeneous: int, unanswered: int, missing: int
) -> None:
    result = figures(row(candidates=answered(*answers)))
    assert result["homogeneous"] == {"count": homogeneous, "of": 1, "rate": 100.0 * homogeneous}
    assert result["unanswered"]["count"] == unanswered
    assert (result["missing_answers"]["count"], result["missing_answers"]["of"]) == (missing, len(answers))


def test_a_right_candidate_is_right_by_the_score_of_its_task() -> None:
    right = row("a", task="arithmetic", candidates=answered("7", "18.0"), gold=["18"])
    wrong = row("b", task="arithmetic", candidates=answered("18 apples", None), gold=["18"])
    unscored = row("c", task="arithmetic", candidates=answered("18"))
    result = figures(right, wrong, unscored, task="arithmetic")
    assert result["any_correct"] == {"count": 1, "of": 2, "rate": 50.0}


def test_a_share_of_nothing_is_undefined() -> None:
    assert figures(row())["any_correct"] == {"count": 0, "of": 0, "rate": None}


def test_repetitions_are_counted_behind_the_first() -> None:
    texts = [{"text": "It is Doha."}, {"text": "It is Doha."}, {"text": "It is Dubai."}, {"text": ""}, {"text": ""}]
    result = figures(row("a", candidates=texts), row("b", question="Where?"), row("c", question=" where? "))
    assert (result["repeated_texts"]["count"], result["repeated_texts"]["of"]) == (1, 9)
    assert (result["repeated_questions"]["count"], result["repeated_questions"]["of"]) == (1, 3)


def test_samples_that_only_think_and_samples_that_run_on_are_counted() -> None:
    texts = ["<think>So it is Doha", "Doha\n\nQ: And of Peru?\nA: Lima", "The answer is Doha.<|im_end|>", "Doha"]
    result = figures(row(candidates=[{"text": text, "answer": None} for text in texts]))
    assert [result[name]["count"] for name in ("unclosed_thinking", "cut_texts")] == [1, 1]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Dubai, or Doha?</think>Doha", "Doha"),
        ("Dubai, or Doha?\n[/THINK]\n Doha ", "Doha"),
        ("<Reasoning>Dubai?</reasoning> Doha <thinking>sure</thinking>", "Doha"),
        ("<think>So it is Doha", None),
        ("Doha <think>or Dubai", None),
        ("◁think▷Doha◁/think▷", None),
        ('{"tag": "<think>"}', '{"tag": "<think>"}'),
        ("`</think>`", "`</think>`"),
        (" Doha", " Doha"),
    ],
)
def test_thinking_is_no_part_of_a_stated_answer_and_stays_in_the_text(text: str, answer: str | None) -> None:
    (result,) = row(candidates=[{"answer": text}]).candidates
    assert result.answer == answer
    assert result.text == ("" if answer == text else text)
    assert row(candidates=[{"answer": text, "text": "t"}]).candidates[0].text == "t"
    assert row(candidates=[result.model_dump()]).candidates[0] == result


def test_a_stated_answer_that_only_thinks_is_counted_as_missing_and_as_unclosed() -> None:
    result = figures(row(candidates=answered("<think>Doha", "Doha")))
    assert [result[name]["count"] for name in ("unclosed_thinking", "missing_answers")] == [1, 1]


def test_candidates_and_evidence_have_a_least_and_a_most() -> None:
    passages = [{"title": "Qatar", "text": "Doha is the capital."}, {"text": "Dubai is not."}]
    result = figures(row("a", evidence=passages), row("b", candidates=answered("Doha", "Doha", None)))
    assert result["candidates"] == {"fewest": 2, "most": 3, "total": 5}
    assert result["evidence"] == {"passages": {"fewest": 0, "most": 2}, "characters": {"fewest": 0, "most": 33}}
    assert result["without_evidence"]["count"] == 1


def test_answers_that_are_uncertified_for_their_spelling_only_are_counted_and_shown() -> None:
    passages = [{"title": "", "text": "In a two-year trial, from May 5th, 1990, it grew by 12 percent, from 1000."}]
    answers = ("2 years", "12%", "2 years", "5 May 1990", "1,000", "13%", None)
    result = figures(row(candidates=answered(*answers), evidence=passages))
    only = result["spelling_only"]
    assert only == {
        "count": 3,
        "of": 7,
        "rate": pytest.approx(300 / 7),
        "examples": {"2 years": "two-year", "5 May 1990": "may 5th, 1990"},
    }
    (note,) = [note for note in contents_table("p", result).notes if "spelling" in note]
    assert note == (
        "Candidates that are uncertified for their spelling only: 3, such as '2 years' for 'two-year' of the evidence; "
        "'5 May 1990' for 'may 5th, 1990' of the evidence."
    )
    result = figures(row(task="arithmetic", candidates=answered("2 years"), evidence=passages))
    assert result["spelling_only"]["count"] == 0


def test_two_pools_share_the_questions_that_fold_alike() -> None:
    one, other = (("Who?", "Where?", "where?", "When?"), ("WHERE?", "when? ", "Why?"))
    first, second = (contents_of("retrieval", [row(question=one) for one in texts])[1] for texts in (one, other))
    assert len(np.intersect1d(first, second)) == 2


@pytest.mark.parametrize(
    ("name", "n", "missing", "homogeneous", "any_correct"),
    [
        ("gsm8k-openai4", 1319, 11, 12.36, 67.25),
        ("hotpotqa-reflexion12", 100, 27, 14.0, 78.0),
        ("svamp-codex8", 999, 58, 55.86, 94.59),
    ],
)
def test_the_figures_of_real_pools(
    pools_dir: Path, name: str, n: int, missing: int, homogeneous: float, any_correct: float
) -> None:
    pool = open_pool(pools_dir / f"{name}.jsonl.gz")
    assert (pool.name, pool.n, pool.missing) == (name, n, missing)
    result, _ = contents_of(pool.task, pool.rows())
    assert result["homogeneous"]["rate"] == pytest.approx(homogeneous, abs=0.005)
    assert result["any_correct"]["rate"] == pytest.approx(any_correct, abs=0.005)
    assert result["repeated_questions"]["count"] == 0
