"""Preference pairs of a pool: which answers are paired, what the rows hold, and what is refused."""

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import Row, open_pool, read_records, write_pool, write_records
from eldgr_dspy.programs.pools.preference_pairs import PairCounts, Pairing, write_pairs
from eldgr_dspy.programs.pools.prompts import REQUESTS, prompt_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Settings
from tests.case_tables import each_case
from tests.results.demo_pools import ARTIFACTS

EVIDENCE = [{"title": "Doha", "text": "The capital of Qatar is Doha."}, {"text": "Lusail is a city north of it."}]
QUESTION = "What is the capital of Qatar?"
DOHA, DUBAI = "It is in Qatar.\nA: Doha", "So it is Dubai.\nA: Dubai"


def row(*answers: str | None, number: int = 0, **changes: Any) -> dict[str, Any]:
    texts = {"Doha": DOHA, "Dubai": DUBAI}
    candidates = [{"text": texts.get(answer or "", f"A: {answer}"), "answer": answer} for answer in answers]
    about = {"id": f"q{number}", "question": QUESTION, "task": "retrieval", "evidence": EVIDENCE, "gold": ["Doha"]}
    return {**about, "candidates": candidates, **changes}


def pairs_of(
    folder: Path, *rows: Any, settings: Settings | None = None, name: str = "pairs.jsonl", **pairing: Any
) -> tuple[list[Any], PairCounts]:
    pool = write_pool(folder / "pool.jsonl", map(Row.model_validate, rows))
    counts = write_pairs(pool, folder / name, settings, Pairing(**pairing))
    return [record for _, record in read_records(folder / name)], counts


def prompt_for(*parts: str) -> str:
    return "\n\n".join([*parts, REQUESTS["short"]])


@st.composite
def rows(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A question whose candidates have texts of their own; yes and no, refusals and blanks among the answers."""
    some = st.sampled_from(("Doha", "Lusail", "Dubai", "doha", "Paris", "yes", "no", "I don't know", " ", None))
    answers = draw(st.lists(some, min_size=1, max_size=6))
    return {
        **row(number=number),
        "candidates": [{"text": f"{number}.{place}: {a}", "answer": a} for place, a in enumerate(answers)],
        "evidence": draw(st.sampled_from((EVIDENCE, []))),
        "gold": draw(st.sampled_from(([], ["Doha"], ["Dubai"], ["yes"]))),
    }


POOLS = st.integers(1, 4).flatmap(lambda n: st.tuples(*map(rows, range(n))))


@settings(max_examples=30)
@given(POOLS, st.integers(1, 4), st.sampled_from(("inapplicable", "no_answer")))
def test_what_is_certified_is_chosen_and_no_wrong_answer_over_a_right_one(values: Any, most: int, refusal: Any) -> None:
    under = Settings(refusal=refusal)
    pair = row("Doha", "Dubai", number=len(values))
    with tempfile.TemporaryDirectory() as folder:
        records, counts = pairs_of(Path(folder), *values, pair, settings=under, most=most)
    assert records.pop()["chosen"] == DOHA
    assert sum(counts.questions.values()) == len(values) + 1
    assert counts.pairs == counts.rows == len(records) + 1 <= most * counts.questions["paired"]
    for record in records:
        of = Row.model_validate(values[int(record["chosen"].partition(".")[0])])
        case = Case(of.to_question(), under)
        answers = {one.text: one.answer for one in of.candidates}
        better, worse = answers[record["chosen"]], answers[record["rejected"]]
        assert case.certified(better) is True and case.certified(worse) is False
        assert {better, worse}.isdisjoint({"yes", "no", "I don't know", " ", None})
        if of.gold:
            assert case.type.right(better, of.gold) or not case.type.right(worse, of.gold)


def test_every_question_is_counted_once_with_its_reason(tmp_path: Path) -> None:
    answers: list[tuple[str | None, ...]] = [("Doha", "Dubai", "Dubai"), ("Doha", "Doha"), (None, " ")]
    answers += [("Dubai", "Paris"), ("Doha", "Lusail"), ("Lusail", "Dubai"), ("yes", "Doha"), *[("Doha", "Dubai")] * 2]
    changes: dict[int, dict[str, Any]] = {5: {"gold": ["Dubai"]}, 7: {"evidence": []}, 8: {"gold": []}}
    every = (row(*some, number=number, **changes.get(number, {})) for number, some in enumerate(answers))
    records, counts = pairs_of(tmp_path, *every)
    assert [(one["chosen"], one["rejected"]) for one in records] == [(DOHA, DUBAI)] * 2
    figures = {"pairs": 2, "rows": 2, "dropped": 1, "checked": 1, "right_chosen": 1, "right_rejected": 0}
    names = "paired unanswered one_class no_gold no_chosen no_rejected against_gold no_score".split()
    assert counts.figures() == figures | {"questions": dict(zip(names, (2, 1, 1, 0, 2, 2, 1, 0), strict=True))}


def test_the_settings_say_what_certifies(tmp_path: Path) -> None:
    """In lower case it does not occur under `token`; a certificate of the user's own may turn everything around."""
    (one,), _ = pairs_of(tmp_path, row("doha", "Lusail", gold=[]), settings=Settings(certificate="token"))
    assert (one["chosen"], one["rejected"]) == ("A: Lusail", "A: doha")

    settings = Settings(certificate=CERTIFICATES["not in Qatar"])
    (one,), _ = pairs_of(tmp_path, row("Doha", "Dubai", gold=[]), settings=settings)
    assert (one["chosen"], one["rejected"]) == (DUBAI, DOHA)


def test_with_gold_right_answers_are_chosen_over_wrong_ones(tmp_path: Path) -> None:
    sums = {"task": "arithmetic", "question": "What is 2 + 2?", "evidence": []}
    answers = [("5", "4", "5"), ("5", "6"), ("4", "4.0"), ("4", "5")]
    every = [row(*some, gold=["4"] * (n < 3), number=n, **sums) for n, some in enumerate(answers)]
    (one,), counts = pairs_of(tmp_path, *every, gold=True)
    assert (one["chosen"], one["rejected"]) == ("A: 4", "A: 5")
    assert one["prompt"] == f"What is 2 + 2?\n\n{REQUESTS['number']}\n"
    assert counts.questions == {"paired": 1, "no_chosen": 1, "one_class": 1, "no_gold": 1}
    assert (counts.checked, counts.right_chosen, counts.right_rejected) == (1, 1, 0)


def test_a_pair_is_texts_or_messages_with_the_evidence_in_the_prompt(tmp_path: Path) -> None:
    records, _ = pairs_of(tmp_path, row("Dubai", "Doha"))
    assert records == [{"prompt": f"{prompt_for(QUESTION)}\n", "chosen": DOHA, "rejected": DUBAI}]
    bare = row("Dubai", "Doha", candidates=[{"answer": "Dubai"}, {"answer": "Doha"}])  # the answer is its text
    (one,), _ = pairs_of(tmp_path, bare)
    assert (one["chosen"], one["rejected"]) == ("Doha", "Dubai")
    records, _ = pairs_of(tmp_path, row("Dubai", "Doha"), messages=True, evidence=True)
    passages = ["Doha\nThe capital of Qatar is Doha.", "Lusail is a city north of it."]
    prompt = [{"role": "user", "content": prompt_for(*passages, QUESTION)}]
    better, worse = ([{"role": "assistant", "content": text}] for text in (DOHA, DUBAI))
    assert records == [{"prompt": prompt, "chosen": better, "rejected": worse}]


def test_the_rows_of_kto_have_each_text_once_and_never_reject_a_right_answer_for_a_wrong_one(tmp_path: Path) -> None:
    right = row("Doha", "Lusail", "Dubai", "Paris", gold=["Doha", "Dubai"])
    records, counts = pairs_of(tmp_path, right, layout="kto", most=5)
    labels = {record["completion"]: record["label"] for record in records}
    assert labels == {DOHA: True, DUBAI: False, "A: Paris": False}
    assert (counts.pairs, counts.dropped, counts.questions["paired"]) == (2, 2, 1)
    records, counts = pairs_of(tmp_path, row("Dubai", "Doha", "Paris"), layout="kto", most=5, ask="")
    assert records == [
        {"prompt": f"{QUESTION}\n", "completion": text, "label": text == DOHA} for text in (DOHA, DUBAI, "A: Paris")
    ]
    assert (counts.pairs, counts.rows) == (2, 3)


def with_scores(*scores: Any) -> list[dict[str, Any]]:
    pairs = zip(("Dubai", "Doha", "Doha"), scores, strict=True)
    return [{"text": f"{a} {n}", "answer": a, "scores": {"prm": n} if n is not None else {}} for a, n in pairs]


def test_a_margin_is_the_difference_of_a_recorded_score(tmp_path: Path) -> None:
    scores = [(0.25, 1, 0.5), (0.75, None, 0.5), (None, 1, 1)]
    every = [row(candidates=with_scores(*some), number=number) for number, some in enumerate(scores)]
    records, counts = pairs_of(tmp_path, *every, score="prm")
    assert [(one["chosen"], one["margin"]) for one in records] == [("Doha 1", 0.75), ("Doha 0.5", -0.25)]
    assert counts.questions == {"paired": 2, "no_score": 1}


def test_the_prompt_of_a_choice_has_its_options_and_a_prompt_is_the_one_of_training(tmp_path: Path) -> None:
    from eldgr_dspy.training import prompt_of as trainer_prompt

    counts = write_pairs(open_pool(ARTIFACTS / "demo-choice.jsonl"), tmp_path / "pairs.jsonl")
    first = next(record for _, record in read_records(tmp_path / "pairs.jsonl"))
    assert first["prompt"].endswith("A. Sydney\nB. Canberra\nC. Melbourne\nD. Perth\n")
    assert sum(counts.questions.values()) == open_pool(ARTIFACTS / "demo-choice.jsonl").n
    assert trainer_prompt is prompt_of
    assert trainer_prompt("Who?", "short") == [{"role": "user", "content": prompt_for("Who?")}]
    assert prompt_of("Who?", "choice") == [{"role": "user", "content": "Who?"}]
    assert prompt_of("Who?", "short", [Passage("", "Ada.")], "Now.")[0]["content"] == "Ada.\n\nWho?\n\nNow."


@pytest.mark.parametrize("name", ["pairs.jsonl.gz", "pairs.parquet"])
@pytest.mark.parametrize("pairing", [{"messages": True}, {"score": "prm"}, {"layout": "kto"}], ids=str)
def test_every_format_holds_the_same_rows(tmp_path: Path, name: str, pairing: dict[str, Any]) -> None:
    every = [row(candidates=with_scores(0.25, 1, 0.5), number=n) for n in range(3)]
    plain, _ = pairs_of(tmp_path, *every, **pairing)
    records, counts = pairs_of(tmp_path, *every, name=name, **pairing)
    assert records == plain and len(records) == counts.rows >= 3


def test_a_parquet_file_holds_more_rows_than_are_in_memory(tmp_path: Path) -> None:
    write_records(tmp_path / "numbers.parquet", ({"n": n, "even": n % 2 == 0} for n in range(600)))
    assert [one["n"] for _, one in read_records(tmp_path / "numbers.parquet")] == list(range(600))


def test_the_same_pool_gives_the_same_bytes_and_a_line_ends_only_where_a_row_does(tmp_path: Path) -> None:
    split = row("Dubai", "Doha", question="One\u2028two?")
    before = [(pairs_of(tmp_path, split, name="a.jsonl.gz"), (tmp_path / "a.jsonl.gz").read_bytes())[1] for _ in "ab"]
    assert before[0] == before[1]
    (line,) = gzip.decompress(before[0]).decode().splitlines()
    assert json.loads(line)["prompt"].startswith("One\u2028two?")


async def asking(answer: str, evidence: object) -> bool:
    raise AssertionError


CERTIFICATES: dict[str, Any] = {"asking": asking, "failing": lambda _, __: 1 / 0}
CERTIFICATES["not in Qatar"] = lambda answer, evidence: answer == "Dubai"
WORDS: dict[str, Callable[..., Any]] = {
    "row": lambda answers=(), **changes: row(*answers, **changes),
    "scored": lambda scores: with_scores(*scores),
    "own": lambda name: Settings(certificate=CERTIFICATES[name]),
}


@each_case("pools", "refused pairs", **WORDS)
def test_what_cannot_become_pairs_leaves_no_file_or_the_earlier_one(
    tmp_path: Path, rows: Any, options: Any, message: str
) -> None:
    with pytest.raises((ArgumentError, PoolError)) as error:
        pairs_of(tmp_path, *rows, **options)
    assert message in str(error.value)
    assert {path.name for path in tmp_path.iterdir()} <= {"pool.jsonl"}
    pairs_of(tmp_path, row("Doha", "Dubai"))
    before = (tmp_path / "pairs.jsonl").read_bytes()
    with pytest.raises((ArgumentError, PoolError)):
        pairs_of(tmp_path, *rows, **options)
    assert (tmp_path / "pairs.jsonl").read_bytes() == before
