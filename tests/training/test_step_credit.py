"""Credit for single steps: the tokens of a right step are pushed up and those of a wrong one down, by exact numbers."""

import math
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import (
    Conditioned,
    ConfidenceGRPOTrainer,
    Lexicographic,
    StepCreditGRPOTrainer,
    StepReward,
    format,
    orm,
)
from eldgr_dspy.training.step_credit import Spread, scales, spread
from tests.tiny_policy import tiny_policy, tiny_tokenizer
from tests.training.crediting import BOTH, RIGHT, TURNED, WRONG, Knows, scored, toy
from tests.training.training_on import ROWS, policy, trainer, trains

TEXT = "One two three.\nFour.\nA: five"
TOKENIZER = tiny_tokenizer([TEXT])
IDS: list[int] = TOKENIZER(TEXT + TOKENIZER.eos_token).input_ids
FIRST, SECOND = (0, 15), (15, 21)  # of five tokens and of three, each with its line break
STEPS = split_steps(TEXT).spans


def deviations(*rewards: float | None, spans: Sequence[tuple[int, int]] = STEPS) -> Spread:
    steps = [(start, end, reward) for (start, end), reward in zip(spans, rewards, strict=True)]
    return spread(TOKENIZER, IDS, TEXT, steps)


def test_each_token_has_the_difference_of_its_own_step_from_the_mean() -> None:
    assert STEPS == (FIRST, SECOND) and len(IDS) == 12
    assert deviations(1.0, 0.5) == Spread([0.25] * 5 + [-0.25] * 3 + [0.0] * 4, 0.0625)


def test_one_step_and_steps_that_are_alike_differ_from_nothing() -> None:
    assert deviations(0.75, 0.75) == Spread([0.0] * 12, 0.0)
    assert deviations(0.75, spans=[(0, 21)]) == Spread([0.0] * 12, 0.0)


def test_a_step_without_a_reward_keeps_what_the_completion_has() -> None:
    assert deviations(1.0, None) == deviations(None, 1.0) == deviations(None, None) == Spread([0.0] * 12, 0.0)


def test_a_token_belongs_to_the_step_in_which_it_ends_and_a_step_without_one_does_not_count() -> None:
    assert deviations(1.0, 0.0, spans=[(0, 5), (5, 21)]).deviations == [0.5] + [-0.5] * 7 + [0.0] * 4
    assert deviations(1.0, 0.0, spans=[(0, 2), (2, 21)]) == Spread([0.0] * 12, 0.0)


def test_a_step_that_ends_behind_the_last_token_has_the_tokens_that_there_are() -> None:
    cut = spread(TOKENIZER, IDS[:6], "One two three.\nFour", [(*FIRST, 1.0), (15, 99, 0.0)])
    assert cut == Spread([0.5] * 5 + [-0.5], 0.25)


def test_a_completion_of_no_tokens_has_no_deviations() -> None:
    assert spread(TOKENIZER, [], "", []) == Spread([], 0.0)
    assert spread(TOKENIZER, [TOKENIZER.eos_token_id], "", []) == Spread([0.0], 0.0)


def test_where_the_tokens_do_not_spell_the_text_no_step_is_credited() -> None:
    assert spread(TOKENIZER, IDS, "Six.\nFour.", [(0, 5, 1.0), (5, 10, 0.0)]) == Spread([0.0] * 12, 0.0)


rewards = st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8)


@given(rewards)
@example([None])
def test_the_mean_over_the_steps_is_the_advantage_of_the_completion(drawn: list[float | None]) -> None:
    """Each step counts once, whatever its number of tokens; here a step has as many as its number."""
    lines = ["Four" + " Four" * at + "\n" for at in range(len(drawn))]
    text = "".join(lines)
    ends = [sum(map(len, lines[: at + 1])) for at in range(len(lines))]
    steps = list(zip([0, *ends], ends, drawn, strict=False))
    found = spread(TOKENIZER, TOKENIZER(text).input_ids, text, steps)
    firsts = [sum(range(2, 2 + at)) for at in range(len(drawn))]
    own = [found.deviations[first] for first, reward in zip(firsts, drawn, strict=True) if reward is not None]
    assert math.fsum(own) == pytest.approx(0.0, abs=1e-12)
    assert found.variance == pytest.approx(sum(one**2 for one in own) / max(len(own), 1))
    for first, after, reward in zip(firsts, [*firsts[1:], len(found.deviations)], drawn, strict=True):
        tokens = found.deviations[first:after]
        assert len(set(tokens)) == 1 and (reward is not None or tokens[0] == 0)


def test_the_scale_of_a_group_has_the_spread_between_completions_and_inside_them() -> None:
    totals, inside = torch.tensor([1.0, 3.0, 2.0, 2.0]), torch.tensor([0.0, 4.0, 1.0, 1.0])
    by_group = [math.sqrt(2 + 2) + 1e-4] * 2 + [1.0 + 1e-4] * 2
    assert scales(totals, inside, 2, "group").tolist() == pytest.approx(by_group)
    assert scales(totals, inside, 2, "batch").tolist() == pytest.approx([math.sqrt(2 / 3 + 1.5) + 1e-4] * 4)
    assert scales(totals, inside, 2, "none").tolist() == [1.0] * 4
    assert scales(totals, inside * 0, 1, "group").tolist() == pytest.approx([1e-4] * 4), "an evaluation of one"


# --- by TRL's own trainer ---------------------------------------------------------------------------------------------


def logps(made: Any, scored: Any) -> Any:
    """Log p of each token of the completions by the model as it is, without gradients."""
    from eldgr_dspy.training.policy import token_logps

    rows = [
        [ids[mask.bool()].tolist() for ids, mask in zip(scored[f"{part}_ids"], scored[f"{part}_mask"], strict=True)]
        for part in ("prompt", "completion")
    ]
    return token_logps(made.model, *rows)


@trains
@pytest.mark.slow
def test_in_a_group_of_equals_the_right_steps_are_pushed_up_and_the_wrong_ones_down(tmp_path: Path) -> None:
    """Both completions have one right step and one wrong one, so that TRL alone learns nothing from them."""
    alone = toy(tmp_path / "alone", [BOTH, TURNED], of=ConfidenceGRPOTrainer)
    assert scored(alone, 2)["advantages"].tolist() == [0.0, 0.0]
    made = toy(tmp_path / "steps", [BOTH, TURNED])
    found = scored(made, 2)
    right, wrong = 0.5 / 0.5001, -0.5 / 0.5001  # from the mean of 0.5, by the deviation inside both of 0.5
    first, second = (len(made.processing_class(text + "\n").input_ids) for text in (RIGHT, WRONG))
    rest = found["advantages"].size(1) - first - second
    by_hand = [[right] * first + [wrong] * second + [0.0] * rest, [wrong] * second + [right] * first + [0.0] * rest]
    assert found["advantages"].tolist() == [pytest.approx(row) for row in by_hand]
    pushed = pushes(made, found)
    tokens = sum(len(row) for row in by_hand)
    assert pushed == [pytest.approx([one / tokens for one in row]) for row in by_hand], "the mean over all tokens"


def pushes(made: Any, scored: Any) -> list[list[float]]:
    """How much the loss of TRL pushes up log p of each token: its gradient, with the other sign."""
    read, kept = made._get_per_token_logps_and_entropies, list[Any]()

    def keeping(*arguments: Any, **settings: Any) -> Any:
        found = read(*arguments, **settings)
        found[0].retain_grad()
        kept.append(found[0])
        return found

    made._get_per_token_logps_and_entropies = keeping
    made._compute_loss(made.model, scored).backward()
    gradient: list[list[float]] = (-kept[0].grad).tolist()
    return gradient


@trains
@pytest.mark.slow
def test_one_update_makes_the_right_step_likelier_and_the_wrong_one_less_likely(tmp_path: Path) -> None:
    """The policy is untrained, so that no token is already certain."""
    made = toy(tmp_path, [BOTH, BOTH])
    made.model.load_state_dict(tiny_policy(made.processing_class).state_dict())
    first, second = (len(made.processing_class(text + "\n").input_ids) for text in (RIGHT, WRONG))
    found = scored(made, 2)
    before = logps(made, found)[0]
    made._compute_loss(made.model, found).backward()
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter -= 1e-3 * parameter.grad
    moved = [later - earlier for earlier, later in zip(before, logps(made, found)[0], strict=True)]
    assert math.fsum(moved[:first]) > 0 > math.fsum(moved[first : first + second])


@trains
@pytest.mark.slow
@pytest.mark.parametrize("scaled", ["group", "batch", "none"])
def test_the_mean_over_the_steps_of_each_completion_is_trls_own_advantage(scaled: str, tmp_path: Path) -> None:
    texts = [BOTH, f"{RIGHT}\nA: Qatar", f"{WRONG}\n{WRONG}\n{RIGHT}\n#", ""]
    spread_over = scored(toy(tmp_path / "steps", texts, scale_rewards=scaled, reward_weights=[2.0]), 4)["advantages"]
    alone = toy(tmp_path / "alone", texts, of=ConfidenceGRPOTrainer, scale_rewards=scaled, reward_weights=[2.0])
    expected = scored(alone, 4)["advantages"].tolist()
    first, second = (len(alone.processing_class(text + "\n").input_ids) for text in (RIGHT, WRONG))
    starts = [[0, first], [0], [0, second, 2 * second], []]
    for row, own, advantage in zip(spread_over.tolist(), starts, expected, strict=True):
        assert row[-1] == pytest.approx(advantage), "a token of no step"
        assert not own or sum(row[at] for at in own) / len(own) == pytest.approx(advantage)
    assert spread_over[0, 0] > spread_over[0, first] and len(set(spread_over[1].tolist())) == 1


@trains
@pytest.mark.slow
def test_where_no_step_is_measured_the_loss_is_trls_own(tmp_path: Path) -> None:
    texts = [BOTH, f"{RIGHT}\nA: Qatar"]
    made, alone = (
        toy(tmp_path / name, texts, of=of, unmeasured=True)
        for name, of in (("steps", StepCreditGRPOTrainer), ("alone", ConfidenceGRPOTrainer))
    )
    given, own = scored(made, 2), scored(alone, 2)
    assert given["advantages"].tolist() == [[one] * given["completion_ids"].size(1) for one in own["advantages"]]
    for loss in ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"):
        made.loss_type = alone.loss_type = loss
        assert made._compute_loss(made.model, given).item() == pytest.approx(
            alone._compute_loss(alone.model, own).item(), abs=1e-7
        ), loss


@trains
@pytest.mark.slow
def test_a_training_runs_with_it_also_where_completions_are_split_and_shuffled(tmp_path: Path) -> None:
    strata, both = Lexicographic([orm, format]), Conditioned(format, on=orm)
    rewards = [orm, StepReward(Knows(), confidence=False), strata, both]
    settings: dict[str, Any] = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "num_iterations": 2}
    made = trainer(rewards, tmp_path, of=StepCreditGRPOTrainer, **settings)
    made.train()
    logged = made.state.log_history
    assert all(math.isfinite(entry["loss"]) for entry in logged if "loss" in entry)
    sampled = [entry for entry in logged if "reward" in entry]
    assert sampled
    for entry in sampled:
        assert entry["rewards/orm_then_format/mean"] == pytest.approx(0.5), "the middle of any group"
        assert (
            entry["format_conditioned/passed"] == entry["orm/exact_match"] >= entry["rewards/format_conditioned/mean"]
        )


@trains
@pytest.mark.slow
def test_what_it_cannot_credit_is_refused_before_the_model_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl.trainer.grpo_trainer import GRPOTrainer

    steps = StepReward(Knows(), confidence=False)

    def made(rewards: list[Any], **arguments: Any) -> Any:
        from trl.trainer.grpo_config import GRPOConfig

        model, tokenizer = policy()
        config = GRPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to=[], **arguments.pop("settings", {}))
        from datasets import Dataset

        return StepCreditGRPOTrainer(
            model, rewards, config, Dataset.from_list(ROWS), processing_class=tokenizer, **arguments
        )

    def built(*_: Any, **__: Any) -> None:
        raise AssertionError("the model is built before what is wanted is checked")

    monkeypatch.setattr(GRPOTrainer, "__init__", wraps(GRPOTrainer.__init__)(built))
    with pytest.raises(ArgumentError, match=r"steps must be the name of a StepReward .*ra_msd.; got 'prm'\. Give one"):
        made([orm, steps], steps="prm")
    with pytest.raises(ArgumentError, match=r"among the rewards .no reward is one.; got 'ra_msd'"):
        made([orm, Conditioned(steps, on=orm)])
    with pytest.raises(ArgumentError, match="must be 'sum_then_normalize' to credit steps; got 'normalize_then_sum'"):
        made([orm, steps], settings={"multi_objective_aggregation": "normalize_then_sum"})
