"""Token confidence is that of a direct forward pass, for any adapter, and belongs to steps without a second look."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AddedToken

from eldgr_dspy.training import Conditioned, GroupReward, StepReward, TokenConfidence, format, orm
from eldgr_dspy.training.confidence import spell, token_confidence
from eldgr_dspy.training.policy import policy_confidence, token_logps
from tests.tiny_policy import tiny_policy, tiny_tokenizer
from tests.training.calling import Steady, rows
from tests.training.training_on import policy, trainer, trains

PROMPTS = [[5, 6, 7, 8], [9], [4, 5, 4, 5, 4, 5, 4], [4, 5]]
COMPLETIONS = [[6, 7, 2], [8, 8, 8, 8, 8, 8], [2], []]


def directly(model: Any, prompt: list[int], completion: list[int], temperature: float = 1.0) -> list[float]:
    """The log p of each token by one unpadded forward pass of one sequence in evaluation mode."""
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0].double() / temperature
    result = logits.log_softmax(-1)
    return [float(result[len(prompt) - 1 + at, token]) for at, token in enumerate(completion)]


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_log_probabilities_are_those_of_each_sequence_alone_and_modules_stay_in_their_modes(batch_size: int) -> None:
    """A module may be frozen in evaluation inside a model that trains."""
    model = tiny_policy(tiny_tokenizer(["a b c d e f"]))
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    result = token_logps(model, PROMPTS, COMPLETIONS, batch_size=batch_size)
    assert [module.training for module in model.modules()] == modes and any(modes) and not all(modes)
    for row, prompt, completion in zip(result, PROMPTS, COMPLETIONS, strict=True):
        assert row == pytest.approx(directly(model, prompt, completion), abs=1e-5)


class Probe:  # a reward that compares what it is told of the policy with direct forward passes of it
    __name__ = "probe"

    def __init__(self) -> None:
        self.trainer: Any = None
        self.results: list[Any] = []
        self.worst = 0.0

    def __call__(self, prompts: list[Any], completion_ids: list[Any], **columns: Any) -> list[float]:
        self.trainer = columns["log_metric"].__self__
        model, tokenizer = self.trainer.model, self.trainer.processing_class
        before = model.training
        results = policy_confidence(self.trainer, prompts, completion_ids) or []
        for prompt, ids, result in zip(prompts, completion_ids, results, strict=True):
            chat = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True, return_dict=True)
            mask = [token not in tokenizer.all_special_ids for token in ids]
            exact = [logp for logp, one in zip(directly(model, chat["input_ids"], ids), mask, strict=True) if one]
            self.worst = max([self.worst, *(abs(one - other) for one, other in zip(result.logps, exact, strict=True))])
            self.results.append(result)
        model.train(before)
        return [float(at % 2) for at in range(len(prompts))]


@trains
@pytest.mark.slow
@pytest.mark.parametrize("lora", [False, True], ids=["whole model", "lora with dropout"])
def test_in_training_it_equals_a_direct_forward_pass(lora: bool, tmp_path: Path) -> None:
    """Sampled at another temperature, with gradient checkpointing (TRL's default), over two updates of the policy."""
    from peft import LoraConfig

    adapter = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.3, target_modules=["q_proj", "v_proj"])
    reward, settings = Probe(), {"temperature": 0.7, "learning_rate": 0.03, "max_steps": 2}
    trainer([reward], tmp_path, peft_config=adapter if lora else None, **settings).train()
    assert len(reward.results) == 16 and any(result.logps for result in reward.results)
    assert reward.worst < 1e-5


class Caller:  # as much of TRL's trainer as a reward asks, which counts how often it makes tokens of prompts
    def __init__(self) -> None:
        self.calls, self.num_generations = 0, 2
        self.args, self.processing_class = SimpleNamespace(per_device_train_batch_size=2), tiny_tokenizer(["Six ."])
        self.model = tiny_policy(self.processing_class)

    def log_metric(self, name: str, value: float) -> None:
        """What a reward finds the trainer by."""

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, None]:
        self.calls += 1
        return self.processing_class(prompts).input_ids, None, None


@pytest.mark.parametrize("wants", [True, False])
def test_the_policy_is_asked_once_and_only_where_a_reward_wants_it(wants: bool) -> None:
    steps = StepReward(Steady(), confidence=wants)
    for reward in (steps, Conditioned(steps, on=orm), GroupReward(auxiliary=steps), orm, format):
        caller = Caller()
        ids = caller.processing_class(["Six."] * 2).input_ids
        columns = rows(2, completion_ids=ids, log_metric=caller.log_metric)
        reward(["Six", "Six"], ["Six."] * 2, **columns)
        assert caller.calls == reward.confidence == (wants and reward not in (orm, format)), reward.__name__


def test_a_step_is_as_sure_as_the_geometric_mean_of_its_tokens_and_never_surer_than_certain() -> None:
    logps = tuple(map(math.log, (0.5, 0.5, 0.8, 0.2)))
    tokens = TokenConfidence("One two.\nSix.", (3, 8, 12, 13), logps)
    first, second = tokens.of_steps("One two.\nSix.", [(0, 9), (9, 13)])
    assert first == pytest.approx(0.5) and second == pytest.approx((0.8 * 0.2) ** 0.5)
    # Single precision leaves a log-probability a little above 0.
    assert TokenConfidence("ab", (1, 2), (1e-7, 0.0)).of_steps("ab", [(0, 2)]) == [1.0]
    assert TokenConfidence("ab", (1, 2), (-math.inf, 0.0)).of_steps("ab", [(0, 2)]) == [0.0]
    # A chat template may take the thinking away from the completion that rewards are shown.
    tokens = TokenConfidence("hm\n\nSix.", (2, 4, 7, 8), (-9.0, -9.0, -1.0, -1.0))
    assert tokens.of_steps("Six.", [(0, 4)]) == [math.exp(-1)]


def test_special_tokens_belong_to_no_step_and_time_grows_with_the_number_of_tokens_alone() -> None:
    _, tokenizer = policy()
    ids = tokenizer("The host was Qatar.<|im_end|>").input_ids
    result = token_confidence(tokenizer, ids, [-0.5] * (len(ids) - 1) + [-50.0])
    assert (result.text, result.ends) == ("The host was Qatar.", (3, 8, 12, 18, 19)) and set(result.logps) == {-0.5}
    caller = Caller()  # whose trainer leaves out what is special without a name, as <|channel|>
    caller.processing_class.add_tokens(AddedToken("Six", special=True))
    ids = caller.processing_class("Six .").input_ids
    assert [(one.text, one.ends) for one in policy_confidence(caller, ["."], [ids]) or ()] == [(" .", (2,))]
    spell(decode := Mock(side_effect=Bytes.decode), [97] * 1_000)
    assert sum(len(call.args[0]) for call in decode.mock_calls) < 5_000


class Bytes:  # a tokenizer of bytes, several of which are one character
    @staticmethod
    def decode(ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


@given(st.text(max_size=20))
@example("é\ufffd😀x")
@example("\ufffd")
def test_the_tokens_of_a_text_spell_it_and_a_character_in_parts_ends_with_its_last(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    ids = list(text.encode())
    pieces = spell(Bytes.decode, ids)
    assert len(pieces) == len(ids) and "".join(pieces) == text == Bytes.decode(ids)
    if "\ufffd" not in text:
        assert [piece for piece in pieces if piece] == list(text)
