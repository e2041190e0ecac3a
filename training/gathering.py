"""Groups of completions that may be split between processes: each process tells the others about its own.

A trainer distributes completions over processes in one order, process by process, in which those of a prompt are
together; a group may cross the end of a process. So what a rank needs to know is collected from all processes, and
each process ranks the groups that its own completions are in. This is a collective operation: every process of a run
must call the reward, as a trainer does, and if one fails all raise.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.training.calls import Call

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Share:
    """What one process tells the others: its completions in order and their number a prompt, or why it has failed."""

    prompts: tuple[str, ...]
    told: tuple[Any, ...]
    size: int
    failure: str | None = None


class Spot(NamedTuple):
    """Where a completion is: the number of its group, and its position there."""

    group: int
    position: int


def in_groups(call: Call, group_size: int | None, tell: Callable[[], Sequence[T]]) -> tuple[list[list[T]], list[Spot]]:
    """Return what all processes tell about their completions, by group, and where those of this process are.

    Args:
        call: The call of the reward.
        group_size: How many completions a prompt has, if the caller is not a trainer that knows it.
        tell: What this process tells about its completions, one entry each; other processes may wait in there.

    Raises:
        ArgumentError: The completions are not whole groups of one prompt each, or their size is not known.
        ScoringError: Another process of the run failed.
    """
    error = None
    try:
        told = tuple(tell())
        prompts = tuple(json.dumps(prompt, sort_keys=True, default=_as_text) for prompt in call.prompts)
        own = Share(prompts, told, _size(call, group_size))
    except Exception as raised:  # noqa: BLE001 - raised again, once the other processes know of it
        own, error = _failed(raised), raised
    shares, rank = _everyone(own)
    if error is not None:
        raise error
    for number, share in enumerate(shares):
        if share.failure is not None:
            raise ScoringError(f"Process {number} of {len(shares)} could not rank its completions: {share.failure}")
    first = sum(len(share.told) for share in shares[:rank])
    return _whole_groups(shares), [Spot(*divmod(first + at, own.size)) for at in range(len(own.told))]


def tell_failure(error: Exception) -> None:
    """Tell the other processes, which wait in `in_groups`, that this one has failed."""
    _everyone(_failed(error))


def require_group_size(group_size: object) -> None:
    """Raise unless it is None or a whole number of completions.

    Raises:
        ArgumentError: It is neither.
    """
    if group_size is not None and (type(group_size) is not int or group_size < 1):
        raise ArgumentError(f"group_size must be a whole number of at least 1; got {group_size!r:.80}.")


def _size(call: Call, group_size: int | None) -> int:
    """Return how many completions a prompt has: as the trainer samples now, which differs in evaluation."""
    trainer = call.trainer
    number = "num_generations" if trainer is None or trainer.model.training else "num_generations_eval"
    size: Any = getattr(trainer, number, group_size)
    if size is None:
        raise ArgumentError(
            f"The reward {call.reward!r} does not know how many completions a prompt has; give group_size, or "
            "call it from a trainer of TRL with num_generations."
        )
    return int(size)


def _whole_groups(shares: Sequence[Share]) -> list[list[Any]]:
    """Return what is told in groups, in the order in which a trainer distributes completions.

    A group is a place in that order. Equal prompts alone do not make a group: two rows of a dataset may have the same.
    """
    prompts, size = [prompt for share in shares for prompt in share.prompts], shares[0].size
    told = [one for share in shares for one in share.told]
    for number, at in enumerate(range(0, len(prompts), size)):
        group = prompts[at : at + size]
        if len(group) != size or len(set(group)) > 1:
            raise ArgumentError(
                f"{len(prompts)} completions are not groups of {size} of one prompt each: group {number} has "
                f"{len(group)} completions of {len(set(group))} prompts; give the num_generations of the trainer as "
                "group_size, and completions in the trainer's order."
            )
    return [told[at : at + size] for at in range(0, len(told), size)]


def _everyone(own: Share) -> tuple[list[Share], int]:
    """Return what all processes of the run tell, in order, and the number of this one; alone, it has only its own."""
    torch: Any = sys.modules.get("torch")
    distributed = torch.distributed if torch is not None and torch.distributed.is_available() else None
    if distributed is None or not distributed.is_initialized():
        return [own], 0
    shares: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(shares, own)
    return shares, distributed.get_rank()


def _failed(error: Exception) -> Share:
    return Share((), (), 0, f"{type(error).__name__}: {error}")


def _as_text(part: Any) -> str:
    """Return the part of a prompt that is not text or a number; an image by its content, since copies differ."""
    if not callable(getattr(part, "tobytes", None)):
        return str(part)
    shape = [getattr(part, name, None) for name in ("mode", "size", "shape", "dtype")]
    return f"{type(part).__name__} {shape} {hashlib.sha256(part.tobytes()).hexdigest()}"
