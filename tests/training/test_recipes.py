"""Recipes say what the paper says, differ in the reward alone, and name what they lack."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from eldgr_dspy.channels.rewards import PAPER
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.pools.prompts import prompt_of
from eldgr_dspy.training import format, orm
from eldgr_dspy.training.grpo import data_of, parse_arguments
from eldgr_dspy.training.named_rewards import LOGIC_ALONE, NamedNLI
from eldgr_dspy.training.question_rows import training_rows
from eldgr_dspy.training.recipe import RECIPES, RewardArguments, recipe_path, rewards_of
from eldgr_dspy.words import CHANNELS
from tests.case_tables import each_case, tables_of
from tests.refusing import refusal, refuses
from tests.training.calling import ra_msd as fake
from tests.training.training_on import SMALL, trains

pytestmark = trains

POLICIES = ("orm", "grpo", "prm", "ra_msd")
DROP = "ra_msd_drop"
OURS = {*RewardArguments.__dataclass_fields__, "reward_weights", "output_dir"}
TABLES = tables_of("training")
FIELDS = {*TABLES["fields that the paper states"]}
"""What the paper states; `per_device_train_batch_size` and `rewards` not of every recipe."""


def fields(name: str) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load((RECIPES / f"{name}.yaml").read_text("utf-8"))
    return result


def test_there_is_a_recipe_a_policy_and_one_for_drops_and_defaults_that_bite_are_set_in_each() -> None:
    results = {path.relative_to(RECIPES).with_suffix("").as_posix() for path in RECIPES.rglob("*.yaml")}
    assert results == {*POLICIES, DROP}
    # Those of TRL 1.16 and PEFT that are not the paper's, or that have changed from release to release.
    bite = set(TABLES["fields that bite"])
    for path in RECIPES.rglob("*.yaml"):
        assert bite <= set(yaml.safe_load(path.read_text("utf-8"))), path.name


@pytest.mark.parametrize("name", [*POLICIES, DROP])
def test_every_recipe_is_read_by_trl_says_what_the_paper_says_and_calls_the_rest_ours(name: str) -> None:
    recipe = parse_arguments(["--config", name, "--use_cpu", "true"])
    assert recipe.training.output_dir == f"runs/{name}"
    assert len(rewards_by_name(recipe.rewards)) == len(recipe.training.reward_weights)
    assert recipe.training.logging_steps == 1
    size = 2 if name in POLICIES else 4
    settings = TABLES["settings of every recipe"]
    settings = {**settings, "num_generations": size, "per_device_train_batch_size": size}
    assert {field: fields(name)[field] for field in settings} == settings
    assert fields(name).get("max_steps") == (None if name in POLICIES else 30)
    section, others = "", set[str]()
    for line in (RECIPES / f"{name}.yaml").read_text("utf-8").splitlines():
        section = line if line.startswith("# ") else section
        field, _, comment = line.partition("#")
        if field and "ours" not in comment and "ours" not in section.partition(":")[2]:
            others.add(field.partition(":")[0])
    assert others <= FIELDS
    assert ("rewards" in others) == (name in ("ra_msd", DROP)), "the other three baselines are not defined"
    assert ("per_device_train_batch_size" in others) == (name in POLICIES)


def rewards_by_name(arguments: RewardArguments) -> list[Any]:
    """The rewards, where the corpus is not on this disk."""
    arguments.corpus = None
    return rewards_of(arguments)


@pytest.mark.parametrize("name", POLICIES)
def test_a_run_is_longer_than_the_peak_that_the_paper_saw_near_step_72(name: str) -> None:
    """Its steps are of two completions, and its training data are 500 questions."""
    values = fields(name)
    prompts = values["per_device_train_batch_size"] * values["gradient_accumulation_steps"] / values["num_generations"]
    assert prompts == 1 and values["train_rows"] * values["num_train_epochs"] / prompts == 500 > 72


@pytest.mark.parametrize("streaming", ["false", "true"])
def test_only_the_first_rows_are_trained_on(streaming: str, tmp_path: Path) -> None:
    """As many as the recipe says; all without a number, or if there are fewer."""
    (tmp_path / "train.jsonl").write_text("".join(f'{{"id": {number}}}\n' for number in range(5)), "utf-8")
    flags = ["--dataset_name", str(tmp_path), "--dataset_streaming", streaming, "--use_cpu", "true"]

    def rows(*further: str) -> list[int]:
        train, test = data_of(parse_arguments(["--config", "grpo", *flags, *further]))
        assert test is None
        return [row["id"] for row in train]

    assert rows("--train_rows", "2") == [0, 1]
    assert rows("--train_rows", "9") == [0, 1, 2, 3, 4]
    assert refusal(lambda: rows("--train_rows", "0")) == (
        "train_rows must be a whole number of at least 1; got 0. Leave it out for all rows."
    )


def test_recipes_that_are_compared_differ_in_the_reward_alone_and_that_for_drops_in_the_drop() -> None:
    first, *others = ({k: v for k, v in fields(name).items() if k not in OURS} for name in POLICIES)
    assert all(other == first for other in others)
    own, other = fields(DROP), fields("ra_msd")
    assert own.pop("drop") == []
    one, same = ({name: of[name] for name in of if name in OURS - {"output_dir"}} for of in (own, other))
    assert one == same


@each_case("training", "policies")
def test_a_policy_is_rewarded_as_its_definition_has_it(name: str, rewards: dict[str, float]) -> None:
    recipe = parse_arguments(["--config", name, "--use_cpu", "true"])
    result = rewards_by_name(recipe.rewards)
    assert dict(zip((one.__name__ for one in result), recipe.training.reward_weights, strict=True)) == rewards
    for one in result:
        if one.__name__ in ("prm", "ra_msd"):
            assert one.scorer.weighting == (LOGIC_ALONE if one.__name__ == "prm" else PAPER)
            assert one.scorer.nli == NamedNLI("cross-encoder/nli-deberta-v3-small")


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_drop_has_the_weights_and_the_gate_of_the_paper_without_the_channel(channel: Any) -> None:
    recipe = parse_arguments(["--config", DROP, "--drop", channel, "--use_cpu", "true"])
    assert recipe.rewards.weighting() == PAPER.without(channel)
    assert [one.__name__ for one in rewards_by_name(recipe.rewards)] == ["orm", "format", "ra_msd"]


def test_weights_gate_threshold_and_reading_are_those_of_recipe_or_flags_and_fields_of_trl_pass_through() -> None:
    weights = {"logic": 0.5, "fact": 0.5}
    flags = ["--channel_weights", json.dumps(weights), "--gate", "fact", "--tau", "0.25", "--documents", "3"]
    arguments = parse_arguments(["--config", SMALL, *flags, "--nli", "folder", "--reading", "settled"]).rewards
    weighting = arguments.weighting()
    assert weighting.weights == dict(zip(CHANNELS, (0.5, 0.5, 0, 0, 0, 0, 0), strict=True))
    assert (set(weighting.gated), weighting.tau) == ({"fact"}, 0.25)
    scorer = rewards_of(arguments)[2].scorer
    assert (scorer.k, scorer.reading, scorer.nli) == (3, "settled", NamedNLI("folder"))
    reading = RewardArguments(rewards=["prm", "ra_msd", "ra_msd_conditioned"], reading="settled")
    first, second, third = rewards_of(reading)
    assert [one.scorer.reading for one in (first, second, third.parts[1])] == ["settled"] * 3
    alien: Any = {"rewards": ["prm"], "reading": "labels"}
    assert "reading='labels' is not known" in refusal(lambda: rewards_of(RewardArguments(**alien)))
    flags = ["--vllm_mode", "server", "--loss_type", "dr_grpo", "--beta", "0.04", "--load_in_4bit", "true"]
    recipe = parse_arguments(["--config", SMALL, *flags])
    assert (recipe.training.vllm_mode, recipe.training.loss_type, recipe.training.beta) == ("server", "dr_grpo", 0.04)
    assert recipe.model.load_in_4bit
    flags = ["--config", "grpo", "--use_cpu", "true", "--remove_unused_columns", "true"]
    message = "remove_unused_columns must be false, for rewards read columns; got true. Leave it out."
    assert refusal(lambda: parse_arguments(flags)) == message


@pytest.mark.parametrize("name", ["prm", "ra_msd"])
def test_precision_batch_and_device_of_the_nli_model_are_fields(name: str) -> None:
    flags = ["--nli_dtype", "bfloat16", "--nli_batch_size", "64", "--nli_device", "cuda:1"]
    arguments = parse_arguments(["--config", name, "--use_cpu", "true", *flags]).rewards
    small = "cross-encoder/nli-deberta-v3-small"
    assert rewards_by_name(arguments)[2].scorer.nli == NamedNLI(small, "bfloat16", 64, "cuda:1")


def test_a_corpus_stands_for_all_evidence_and_the_remedy_for_csv_is_right(tmp_path: Path, monkeypatch: Any) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"title": "Cup", "text": "The host was Qatar."}\n{"text": "Doha is a city."}\n', "utf-8")
    (reward,) = rewards_of(RewardArguments(rewards=["ra_msd"], corpus=str(corpus)))
    assert reward.needs == ("question", "task")
    expected = [("Cup", "The host was Qatar."), ("", "Doha is a city.")]
    assert [(one.title, one.text) for one in reward.scorer.retriever.documents] == expected
    names = ["orm", "tests.training.calling.ra_msd", "format"]
    assert rewards_of(RewardArguments(rewards=names)) == [orm, fake, format]
    monkeypatch.chdir(tmp_path)
    Path("corpus.csv").write_text("title,text\nCup,The host was Qatar.\n,Doha is a city.\n", "utf-8")
    message = refusal(lambda: rewards_of(RewardArguments(rewards=["ra_msd"], corpus="corpus.csv")))
    assert "CSV is not read" in message
    code = message.partition("in Python: ")[2].partition(". Then ")[0]
    exec(code, {})  # noqa: S102 -- our own remedy
    assert rewards_of(RewardArguments(rewards=["ra_msd"], corpus="rows.jsonl"))


@each_case("training", "refused fields")
def test_a_field_that_cannot_be_is_named(changes: dict[str, Any], message: str) -> None:
    assert message in refusal(lambda: rewards_of(RewardArguments(**{"rewards": ["ra_msd"], **changes})))


@each_case("training", "refused corpora")
def test_a_corpus_must_be_passages_and_some(passages: str, message: str, tmp_path: Path) -> None:
    """One without a passage would be held to exist, and every step to be neutral under it."""
    (tmp_path / "corpus.jsonl").write_text(passages, "utf-8")
    arguments = RewardArguments(rewards=["ra_msd"], corpus=str(tmp_path / "corpus.jsonl"))
    refuses(ArgumentError, message, rewards_of, arguments)


def test_a_recipe_is_found_by_its_name_or_its_path_and_a_field_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    assert recipe_path("ra_msd") == RECIPES / "ra_msd.yaml"
    (tmp_path / "mine.yaml").write_text("output_dir: mine\n", "utf-8")
    assert parse_arguments(["--config", str(tmp_path / "mine.yaml"), "--use_cpu", "true"]).training.output_dir == "mine"
    refuses(ArgumentError, r"--config must be a file or one of grpo, orm, prm", parse_arguments, ["--config", "ramsd"])
    (tmp_path / "mine.yaml").write_text("learning_rat: 1.0e-5\n", "utf-8")
    message = r"The recipe cannot be read \(.*learning_rat.*; its fields are those of"
    refuses(ArgumentError, message, parse_arguments, ["--config", str(tmp_path / "mine.yaml"), "--use_cpu", "true"])


@pytest.mark.slow
@pytest.mark.parametrize(("modules", "count"), [(None, "7,372,800"), (["q_proj", "o_proj"], "4,718,592")])
def test_the_adapter_has_the_parameters_that_the_recipe_says(modules: list[str] | None, count: str) -> None:
    """On the meta device: shapes without weights. The paper's 4.7M is the count of q_proj and o_proj alone."""
    import peft
    import trl
    from transformers import Qwen2Config, Qwen2ForCausalLM

    adapting: Any = peft
    reading: Any = trl
    recipe = parse_arguments(["--config", "ra_msd", "--use_cpu", "true"])
    recipe.model.lora_target_modules = modules or recipe.model.lora_target_modules
    with torch.device("meta"):
        whole = Qwen2ForCausalLM(Qwen2Config(**TABLES["shape of Qwen2.5-3B-Instruct"]))
        model = adapting.get_peft_model(whole, reading.get_peft_config(recipe.model))
    assert f"{model.num_parameters(only_trainable=True):,}" == count


def test_rows_of_gsm8k_and_hotpotqa_become_rows_to_train_on_or_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "gsm8k.jsonl"
    path.write_text(json.dumps({"question": "What is 2+2?", "answer": "2+2=<<2+2=4>>4\n#### 4"}) + "\n", "utf-8")
    (row,) = training_rows(path, "number")
    assert row == {
        "id": "q1", "prompt": prompt_of("What is 2+2?", "arithmetic"), "question": "What is 2+2?",
        "task": "arithmetic", "gold": ["4"], "evidence": None,
    }  # fmt: skip
    context = {"title": ["Cup"], "sentences": [["The host was Qatar.", " It was hot."]]}
    record = {"id": "h", "question": "Who was the host?", "answer": "Qatar", "context": context}
    record |= {"supporting_facts": {"title": ["Cup"], "sent_id": [0]}}
    path.write_text(json.dumps(record) + "\n", "utf-8")
    (row,) = training_rows(path, "short", "facts")
    expected = ("h", ["Qatar"], [{"title": "Cup", "text": "The host was Qatar."}])
    assert (row["id"], row["gold"], row["evidence"]) == expected
    refuses(ArgumentError, r"answer must be one of .*; got 'qa'", list, training_rows(path, "qa"))
    # A solution is read for its number, in the field of GSM8K or in a field `gold`.
    path = tmp_path / "mine.jsonl"
    rows = [{"question": "?", "gold": "The answer is 7."}, {"question": "?", "gold": None}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert [row["gold"] for row in training_rows(path, "number")] == [["7"], []]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"question": "?", "gold": "a few"}]), "utf-8")
    assert refusal(lambda: list(training_rows(path, "number"))) == (
        f"{path}, line 3: gold must be an answer of the type 'arithmetic', or a text that states one, as '#### 72'; "
        "got 'a few'. Fix the row of the dataset."
    )


@pytest.mark.parametrize("task", ["retrieval", "arithmetic"])
def test_a_prompt_asks_for_a_form_that_is_rewarded(task: Any) -> None:
    (message,) = prompt_of("What is 2+2?", task)
    form = message["content"].rpartition(": ")[2] if task == "arithmetic" else message["content"][-len("A: answer") :]
    assert message["content"].startswith("What is 2+2?\n\n")
    assert format(prompts=[""], completions=[f"So it is.\n{form.replace('number', '4')}"], task=[task]) == [1.0]
