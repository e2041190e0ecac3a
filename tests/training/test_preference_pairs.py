"""TRL reads the preference pairs of a pool, and a policy that is trained on them prefers what was chosen."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from eldgr_dspy.pools import Row, write_pool
from eldgr_dspy.programs.pools.preference_pairs import Pairing, write_pairs
from tests.training import training_on
from tests.training.training_on import EVIDENCE, GOLD, REPLIES, policy, trains

SETTINGS: dict[str, Any] = {
    **training_on.SETTINGS, "per_device_train_batch_size": 4, "max_length": 128, "learning_rate": 1e-3,
    "gradient_checkpointing": False,
}  # fmt: skip


def pairs_in(folder: Path, **pairing: Any) -> Any:
    """The pairs of the small world of these tests, as `datasets` loads them from a file; a right answer scores 1."""
    from datasets import Dataset

    rows: list[dict[str, Any]] = []
    for question, replies in REPLIES.items():
        candidates = [{"text": text, "answer": text.rpartition(": ")[2]} for text in replies[:2]]
        options = [{**one, "scores": {"prm": score}} for one, score in zip(candidates, (1, 0.25), strict=True)]
        about = {"task": "retrieval", "evidence": EVIDENCE[question], "gold": [GOLD[question]]}
        rows.append({"id": question, "question": question, "candidates": options, **about})
    pool = write_pool(folder / "pool.jsonl", map(Row.model_validate, rows))
    write_pairs(pool, folder / "pairs.jsonl", None, Pairing(ask="", **pairing))
    return Dataset.from_json(str(folder / "pairs.jsonl"), cache_dir=str(folder / "cache"))


def trainer(of: Any, arguments: Any, rows: Any, model: Any, tokenizer: Any, reference: Any = None) -> Any:
    from transformers import PrinterCallback

    further = {"ref_model": reference} if reference else {}
    result = of(args=arguments, train_dataset=rows, model=model, processing_class=tokenizer, **further)
    result.remove_callback(PrinterCallback)
    return result


def lead(model: Any, tokenizer: Any) -> list[float]:
    """How much likelier the certified reply to each question is than the uncertified one, in nats."""
    leads = list[float]()
    for question, (certified, other, *_) in REPLIES.items():
        messages = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        leads.append(_logp(model, tokenizer, prompt, certified) - _logp(model, tokenizer, prompt, other))
    return leads


def _logp(model: Any, tokenizer: Any, prompt: str, reply: str) -> float:
    ids = tokenizer(prompt + reply, return_tensors="pt").input_ids
    with torch.no_grad():
        logps = model(ids).logits[0, :-1].log_softmax(-1)
    first = len(tokenizer(prompt).input_ids) - 1
    return float(logps.gather(1, ids[0, 1:, None])[first:].sum())


@trains
@pytest.mark.parametrize("messages", [True, False])
def test_a_policy_trained_by_dpo_on_the_pairs_prefers_the_certified_answers(tmp_path: Path, messages: bool) -> None:
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    model, tokenizer = policy()
    before = lead(model, tokenizer)
    arguments = DPOConfig(str(tmp_path / "run"), max_steps=12, **SETTINGS)
    dpo = trainer(DPOTrainer, arguments, pairs_in(tmp_path, messages=messages), model, tokenizer, copy.deepcopy(model))
    dpo.train()
    margins = [entry["rewards/margins"] for entry in dpo.state.log_history if "rewards/margins" in entry]
    assert margins[0] == pytest.approx(0, abs=1e-5)
    assert margins[-1] > margins[3] > 0
    assert all(now > then + 1 for now, then in zip(lead(model, tokenizer), before, strict=True))


@trains
@pytest.mark.parametrize("messages", [True, False])
def test_kto_takes_the_rows_with_labels(tmp_path: Path, messages: bool) -> None:
    from trl.trainer.kto_config import KTOConfig
    from trl.trainer.kto_trainer import KTOTrainer

    model, tokenizer = policy()
    arguments = KTOConfig(str(tmp_path / "run"), max_steps=1, **SETTINGS)
    rows = pairs_in(tmp_path, layout="kto", messages=messages)
    kto = trainer(KTOTrainer, arguments, rows, model, tokenizer, copy.deepcopy(model))
    assert kto.train_dataset["label"] == [True, False, True, False]
    lines = [tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in kto.train_dataset["completion_ids"]]
    assert lines == [text for replies in REPLIES.values() for text in replies[:2]]
    kto.train()


@trains
def test_the_reward_trainer_takes_the_margin(tmp_path: Path) -> None:
    from transformers import Qwen2ForSequenceClassification
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    model, tokenizer = policy()
    of: Any = Qwen2ForSequenceClassification
    model.config.num_labels = 1
    arguments = RewardConfig(str(tmp_path / "run"), max_steps=1, **SETTINGS)
    rows = pairs_in(tmp_path, score="prm", messages=True)
    one = trainer(RewardTrainer, arguments, rows, of(model.config), tokenizer)
    assert next(iter(one.get_train_dataloader()))["margin"].tolist() == [0.75, 0.75]
    one.train()
