"""Which options lose at most a share of new questions, from the losses on a sample: tests in a fixed order.

An option is a name, such as that of a rule. It loses a question on which it may do harm. A chain lists options from
narrow to wide, in an order that was fixed before the losses were seen.
"""

import math
from collections.abc import Mapping, Sequence

from scipy.special import betainc

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import inside, questions
from eldgr_dspy.statistics.resampling import LEVEL

_SHARE = "Give 0.02 for 2% of the questions"


def binomial_tail(n: int, count: int, share: float) -> float:
    """Return the probability of at most `count` events in `n` questions, each of which has it with this probability.

    It is the p of the test whether an event is less probable than `share`.

    Args:
        n: All questions, at least 1. count: those with the event.
        share: Strictly between 0 and 1.

    Raises:
        ArgumentError: impossible counts, or a share out of range.
    """
    n, count, share = questions("n", n, 1), questions("count", count, 0), inside("share", share, _SHARE)
    if count > n:
        raise ArgumentError(f"count must be at most n={n!r}, because it counts some of these; got {count!r}.")
    return 1.0 if count == n else float(betainc(n - count, count + 1, 1.0 - share))


def passing(
    chains: Sequence[Sequence[str]], losses: Mapping[str, int], n: int, share: float, *, level: float = LEVEL
) -> list[list[str]]:
    """Return for each chain the options that pass: each is tested in turn, up to the first that fails.

    With probability `level` or more, every option that passes loses at most `share` of new questions. The probability
    of an error is divided evenly among the chains. Source: fixed-sequence testing, as in "Learn then Test"
    (Angelopoulos et al. 2021).

    Args:
        chains: Options in the order in which they are tested.
        losses: For each option, on how many of the `n` questions it loses.
        n: All questions; if it is 0, nothing passes.
        share: Strictly between 0 and 1. level: the same.

    Raises:
        ArgumentError: impossible counts, or a number out of range.
    """
    alpha = (1.0 - inside("level", level, "Give 0.95 for 95%")) / max(len(chains), 1)
    share = inside("share", share, _SHARE)
    return [
        _up_to_first(chain, [n > 0 and binomial_tail(n, losses[o], share) <= alpha for o in chain]) for chain in chains
    ]


def passing_on_average(chain: Sequence[str], losses: Mapping[str, int], n: int, share: float) -> list[str]:
    """Return the options of one chain that pass conformal risk control: (losses + 1) / (n + 1) is at most `share`.

    The widest of them loses a new question with a probability of at most `share`, on average over samples such as this
    one. That is weaker than `passing`: on many of the samples, an option that loses more may pass. Every question that
    an option loses must also be lost by the later ones of the chain. Source: Angelopoulos et al. (2022), "Conformal
    risk control".

    Raises:
        ArgumentError: a share out of range.
    """
    share = inside("share", share, _SHARE)
    return _up_to_first(chain, [losses[option] + 1 <= share * (n + 1) for option in chain])


def questions_without_loss(share: float, *, chains: int = 1, level: float = LEVEL) -> int:
    """Return the fewest questions with which an option that loses none passes the test of `passing`.

    Raises:
        ArgumentError: a number out of range.
    """
    alpha = (1.0 - inside("level", level, "Give 0.95 for 95%")) / max(chains, 1)
    return math.ceil(math.log(alpha) / math.log1p(-inside("share", share, _SHARE)))


def _up_to_first(chain: Sequence[str], passes: Sequence[bool]) -> list[str]:
    return list(chain[: passes.index(False) if False in passes else len(chain)])
