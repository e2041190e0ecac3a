"""A pool sampled from checkpoints: which candidates, from which numbers, by which prompts; and what is refused."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from eldgr_dspy import errors
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.errors import ArgumentError, RunChangedError, RunLockedError
from eldgr_dspy.journal import TornLineWarning
from eldgr_dspy.pools import Pool, open_pool
from eldgr_dspy.training.checkpoints import Checkpoint, render
from eldgr_dspy.training.generation import Sampling, complete, numbers
from eldgr_dspy.training.policy import token_logps
from eldgr_dspy.training.sampling import sample_pool
from tests.case_tables import each_case
from tests.refusing import refusal, refuses
from tests.tiny_policy import tiny_tokenizer
from tests.training.saved import saved_adapter, saved_policy
from tests.training.training_on import ROWS

pytestmark = [
    pytest.mark.slow,  # a model generates in each
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),  # PEFT asks the old name
]

QUESTIONS: list[dict[str, Any]] = [{**row, "id": f"q{number}"} for number, row in enumerate(ROWS, start=1)]
SAMPLING = Sampling(seed=2029, samples=3, max_new_tokens=20)
SHORT = Sampling(seed=2029, max_new_tokens=4)
"""Enough where it does not matter what is sampled."""


def sample(path: Path, questions: list[dict[str, Any]] | None = None, **changes: Any) -> Pool:
    """The pool of two checkpoints, three candidates of each a question, but for what is changed."""
    arguments: dict[str, Any] = {"checkpoints": checkpoints(), "sampling": SAMPLING, **changes}
    return sample_pool(path, QUESTIONS if questions is None else questions, **arguments)


def first_question(**changes: Any) -> dict[str, Any]:
    return {**QUESTIONS[0], **changes}


def checkpoints() -> dict[str, Path]:
    return {"whole": saved_policy(), "adapted": saved_adapter()}


def texts(pool: Pool) -> dict[tuple[str, str | None], str]:
    return {(row.id, one.source): one.text for row in pool.rows() for one in row.candidates}


def copy(folder: Path, to: Path, **files: Mapping[str, Any] | str | None) -> Path:
    """A copy of a checkpoint in which files have another text or entries of JSON; a file given None is left out."""
    shutil.copytree(folder, to)
    for name, entries in files.items():
        path = next(to.glob(f"{name}.*"))
        if entries is None:
            path.unlink()
        elif isinstance(entries, str):
            path.write_text(entries, "utf-8")
        else:
            path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **entries}), "utf-8")
    return to


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return sample(tmp_path_factory.mktemp("pool") / "pool.jsonl")


def test_a_row_is_the_question_with_the_samples_of_each_checkpoint_and_the_answers_found_in_them(pool: Pool) -> None:
    sources = [[one.source for one in row.candidates] for row in pool.rows()]
    assert sources == [[f"{name}/{number}" for name in ("whole", "adapted") for number in (1, 2, 3)]] * 2
    first = next(pool.rows())
    assert (first.id, first.question, first.task, first.gold) == ("q1", ROWS[0]["question"], "retrieval", ["Doha"])
    assert [one.model_dump() for one in first.evidence] == ROWS[0]["evidence"]
    for row in pool.rows():
        for one, entry in zip(row.candidates, row.meta["samples"], strict=True):
            reading = extract_answer(one.text, row.task)
            assert (one.answer, entry["form"]) == ((reading.answer, reading.form) if reading else (None, None))
    assert {"Doha", "Dubai"} & {one.answer for one in next(pool.rows()).candidates}


def test_a_completion_that_never_leaves_its_thinking_has_no_answer(tmp_path: Path) -> None:
    template = (saved_policy() / "chat_template.jinja").read_text("utf-8")
    prefix = template + "{% if add_generation_prompt %}<think>\n{% endif %}"
    folder = copy(saved_policy(), tmp_path / "model", chat_template=prefix)
    pool = sample(tmp_path / "pool.jsonl", checkpoints={"tried": folder})
    candidates = [one for row in pool.rows() for one in row.candidates]
    assert any(one.text.strip() for one in candidates) and {one.answer for one in candidates} == {None}


def test_what_is_written_is_opened_in_any_format_and_not_sampled_again(pool: Pool, tmp_path: Path) -> None:
    assert open_pool(pool.path).sha256 == pool.sha256
    shutil.copy(pool.path.with_name("pool.samples.jsonl"), tmp_path)
    assert sample(tmp_path / "pool.parquet").sha256 == pool.sha256
    files = pool.path, pool.path.with_name("pool.samples.jsonl")
    before = [file.read_bytes() for file in files]
    sample(pool.path)
    assert [file.read_bytes() for file in files] == before


def test_a_candidate_that_was_cut_off_is_known_by_it(pool: Pool, tmp_path: Path) -> None:
    short = sample(tmp_path / "pool.jsonl", sampling=Sampling(seed=2029, samples=3, max_new_tokens=5))
    entries = [one for row in short.rows() for one in row.meta["samples"]]
    assert {one["ended"] for one in entries} >= {False}
    assert all(len(one["ends"]) == 5 for one in entries if not one["ended"])
    assert all(len(one["ends"]) <= 20 for row in pool.rows() for one in row.meta["samples"])
    for key, text in texts(short).items():
        assert texts(pool)[key].startswith(text.rstrip("\N{REPLACEMENT CHARACTER}"))


def test_log_probabilities_are_those_of_the_model_itself_for_the_very_tokens(pool: Pool) -> None:
    """That is: at temperature 1 and over the whole vocabulary, though sampled at 0.7 with a cut."""
    checkpoint = Checkpoint.of("whole", saved_policy())
    tokenizer = checkpoint.tokenizer()
    model = checkpoint.policy(tokenizer, device="cpu")
    for row, question in zip(pool.rows(), QUESTIONS, strict=True):
        prompt = render(tokenizer, "whole", row.id, question["prompt"])
        stream = [numbers(20, 2029, row.id, "whole", 1)]
        (one,) = complete(model, tokenizer, [prompt], stream, temperature=0.7, top_p=0.9)
        assert one.tokens.text == row.candidates[0].text
        tokens = tokenizer(one.tokens.text).input_ids
        (expected,) = token_logps(model, [prompt], [tokens])
        assert row.meta["samples"][0]["logps"] == pytest.approx(expected, abs=1e-3)
        assert row.meta["samples"][0]["ends"][-1] == len(one.tokens.text)


@pytest.mark.parametrize("batch_size", [1, 5])
def test_neither_order_nor_batch_changes_a_candidate(pool: Pool, tmp_path: Path, batch_size: int) -> None:
    reverse = dict(reversed(checkpoints().items()))
    other = sample(tmp_path / "pool.jsonl", QUESTIONS[::-1], checkpoints=reverse, batch_size=batch_size)
    assert texts(other) == texts(pool)


def test_neither_further_samples_nor_settings_of_a_model_change_a_candidate(pool: Pool, tmp_path: Path) -> None:
    one = Sampling(seed=2029, max_new_tokens=20)
    few = sample(tmp_path / "pool.jsonl", QUESTIONS[1:], checkpoints={"whole": saved_policy()}, sampling=one)
    assert texts(few).items() <= texts(pool).items()
    penalty = copy(saved_policy(), tmp_path / "model", generation_config={"repetition_penalty": 9.0, "top_k": 1})
    other = sample(tmp_path / "penalised.jsonl", checkpoints={"whole": penalty})
    assert texts(other).items() <= texts(pool).items()


@pytest.mark.parametrize("what", ["id", "name", "seed"])
def test_another_seed_id_or_name_draws_other_numbers(what: str, pool: Pool, tmp_path: Path) -> None:
    models = {"again" if what == "name" else "whole": saved_policy()}
    questions = [first_question(id="other" if what == "id" else "q1")]
    sampling = Sampling(7 if what == "seed" else 2029, 3, max_new_tokens=20)
    other = sample(tmp_path / "pool.jsonl", questions, checkpoints=models, sampling=sampling)
    assert list(texts(other).values()) != [texts(pool)["q1", f"whole/{number}"] for number in (1, 2, 3)]


def test_a_model_without_a_chat_template_is_asked_in_text_and_random_streams_stay(tmp_path: Path) -> None:
    before = random.getstate(), torch.random.get_rng_state().tolist()
    sample(tmp_path / "pool.jsonl", checkpoints={"whole": saved_policy()}, sampling=SHORT)
    assert (random.getstate(), torch.random.get_rng_state().tolist()) == before
    bare = copy(saved_policy(), tmp_path / "model", chat_template=None)
    questions = [{**row, "prompt": f"Question: {row['question']}\nAnswer:"} for row in QUESTIONS]
    assert sample(tmp_path / "bare.jsonl", questions, checkpoints={"bare": bare}, sampling=SHORT).n == 2


def test_the_numbers_of_a_stream_are_the_same_for_ever_and_a_sampling_is_the_papers() -> None:
    stream = [0.5666376027691582, 0.3959846924555742, 0.23276226881678352]
    assert [numbers(n, 2029, "q1", "grpo", 1) for n in (3, 2)] == [stream, stream[:2]]
    assert all(0 <= number < 1 for number in numbers(1000, 0))
    one = Sampling(seed=2029)
    assert (one.samples, one.temperature, one.top_p, one.max_new_tokens) == (1, 0.7, 0.9, 128)


def test_tokens_are_drawn_as_often_as_they_are_probable_and_none_outside_the_cut() -> None:
    checkpoint = Checkpoint.of("whole", saved_policy())
    tokenizer = checkpoint.tokenizer()
    model = checkpoint.policy(tokenizer, device="cpu")
    prompt, n = render(tokenizer, "whole", "q", ROWS[0]["prompt"])[:-3], 2000
    draws = [numbers(1, 0, at) for at in range(n)]
    results = complete(model, tokenizer, [prompt] * n, draws, temperature=0.7, top_p=0.9)
    counts = Counter(round(logp, 5) for one in results for logp in one.tokens.logps)  # a token is known by its own
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1]
    ranking = (logits.double() / 0.7).softmax(-1).sort(descending=True)
    size = int((ranking.values.cumsum(-1) < 0.9).sum()) + 1
    assert size > 3
    shares = ranking.values[:size] / ranking.values[:size].sum()
    for logp, share in zip(logits.log_softmax(-1)[ranking.indices[:size]].tolist(), shares.tolist(), strict=True):
        assert abs(counts.pop(round(logp, 5), 0) - n * share) < 5 * (n * share) ** 0.5 + 1
    assert not counts


def test_an_adapter_is_read_on_the_base_that_it_names_or_that_is_given(pool: Pool, tmp_path: Path) -> None:
    base = json.loads((saved_adapter() / "adapter_config.json").read_text("utf-8"))["base_model_name_or_path"]
    assert Path(base) == saved_policy()
    orphan = copy(saved_adapter(), tmp_path / "adapter", adapter_config={"base_model_name_or_path": "/nowhere/base"})
    other = sample(tmp_path / "pool.jsonl", checkpoints={"adapted": orphan}, base=saved_policy())
    assert texts(other).items() <= texts(pool).items()
    assert texts(pool)["q1", "adapted/1"] != texts(pool)["q1", "whole/1"]
    bare = copy(saved_adapter(), tmp_path / "unnamed", adapter_config={"base_model_name_or_path": None})
    nameless = "The adapter of the checkpoint 'adapted' names no base; give it as base="
    nowhere = "model='/nowhere/base' must be a folder on this disk; give the folder"
    for folder, message in ((bare, nameless), (orphan, nowhere)):
        refuses(ArgumentError, message, sample, tmp_path / "other.jsonl", checkpoints={"adapted": folder})


@each_case("training", "alien prompts")
def test_an_alien_prompt_is_refused(prompt: Any, files: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = copy(saved_policy(), tmp_path / "model", **files)
    questions = QUESTIONS if prompt is None else [{**QUESTIONS[0], "prompt": prompt}]
    models = {"whole": saved_policy(), "tried": folder}
    refuses(ArgumentError, message, sample, tmp_path / "pool.jsonl", questions, checkpoints=models)
    assert not list(tmp_path.glob("pool*"))


def test_a_tokenizer_of_another_kind_and_a_second_process_are_refused(tmp_path: Path) -> None:  # hazard 90
    """One of words, in the folder of a Qwen2: it loads as Qwen2's, which knows none of them and drops all."""
    folder = copy(saved_policy(), tmp_path / "model")
    tiny_tokenizer([row["question"] for row in QUESTIONS]).save_pretrained(folder)
    message = "The tokenizer of the checkpoint 'tried' spells less than half of the prompt"
    refuses(ArgumentError, message, sample, tmp_path / "pool.jsonl", checkpoints={"tried": folder})
    with FileLock(tmp_path / ".pool.samples.jsonl.lock"):
        refuses(RunLockedError, "another process is sampling", sample, tmp_path / "pool.jsonl")


@each_case("training", "refused checkpoints")
def test_a_checkpoint_that_cannot_be_loaded_is_named(folder: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    copy(saved_policy(), tmp_path / "broken", config="{")
    refuses(ArgumentError, message, sample, tmp_path / "pool.jsonl", checkpoints={"tried": tmp_path / folder})


def test_a_call_resumes_where_it_broke_off_and_adds_to_what_is_there(pool: Pool, tmp_path: Path) -> None:  # hazard 88
    path, beside = tmp_path / "pool.jsonl", tmp_path / "pool.samples.jsonl"
    whole = pool.path.with_name(beside.name).read_bytes().splitlines(keepends=True)
    beside.write_bytes(b"".join(whole[:7]) + whole[7][:50])
    with pytest.warns(TornLineWarning, match="line 8: torn after 50 bytes"):
        again = sample(path)
    assert again.sha256 == pool.sha256
    assert beside.read_bytes().splitlines(keepends=True)[:7] == whole[:7]
    assert len(beside.read_bytes().splitlines()) == len(whole)
    path.unlink()
    beside.unlink()
    sample(path, QUESTIONS[:1], checkpoints={"whole": saved_policy()}, sampling=Sampling(2029, 2, max_new_tokens=20))
    start = beside.read_bytes()
    assert sample(path).sha256 == pool.sha256
    assert beside.read_bytes().startswith(start)


@each_case("training", "contradicted samples", Sampling=Sampling, **{"first question": first_question})
def test_what_contradicts_samples_is_refused(changes: dict[str, Any], message: str, pool: Pool, tmp_path: Path) -> None:
    copy(saved_policy(), tmp_path / "other", config={"rope_theta": 10.0})
    shutil.copy(pool.path.with_name("pool.samples.jsonl"), tmp_path)
    if "checkpoints" in changes:
        changes = {"checkpoints": {"whole": tmp_path / "other"}}
    assert message in refusal(lambda: sample(tmp_path / "pool.jsonl", **changes), RunChangedError)


def test_what_a_trainer_logs_beside_the_weights_does_not_make_it_another_checkpoint(tmp_path: Path) -> None:
    folder = copy(saved_policy(), tmp_path / "whole")
    before = Checkpoint.of("whole", folder).identity()
    (folder / "trainer_state.json").write_text("{}", "utf-8")
    assert Checkpoint.of("whole", folder).identity() == before


@each_case("training", "files that were not sampled")
def test_what_was_not_sampled_is_left_alone(name: str, kind: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}\n", "utf-8")
    assert message in refusal(lambda: sample(tmp_path / "pool.jsonl"), getattr(errors, kind))
    assert (tmp_path / name).read_text("utf-8") == "{}\n"


@each_case("training", "questions that are not a pool")
def test_questions_that_are_no_pool_are_refused(changes: Any, kind: str, message: str, tmp_path: Path) -> None:
    questions = [first_question(**changes), QUESTIONS[1]]
    refuses(getattr(errors, kind), message, sample, tmp_path / "pool.jsonl", questions)
    assert not list(tmp_path.iterdir())


def test_gold_may_be_a_text_a_list_or_nothing_and_is_read_for_the_number_that_it_states(tmp_path: Path) -> None:
    texts = [first_question(gold="Doha", id="a"), first_question(gold=None, id="b")]
    numbers = [first_question(task="arithmetic", gold="48+24 = <<48+24=72>>72 in all.\n#### 72")]
    for name, questions, gold in (("texts", texts, [["Doha"], []]), ("numbers", numbers, [["72"]])):
        pool = sample(tmp_path / f"{name}.jsonl", questions, checkpoints={"whole": saved_policy()}, sampling=SHORT)
        assert [row.gold for row in pool.rows()] == gold


@each_case("training", "refused arguments of sampling")
def test_arguments_outside_their_range_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    refuses(ArgumentError, message, sample, tmp_path / "pool.jsonl", **changes)
