"""What a sample says of new questions: the largest plausible share of an event, and which options lose at most a share.

An option is a name, such as that of a rule. It loses a question on which it may do harm. A chain lists options from
narrow to wide, in an order that was fixed before the losses were seen.
"""

import math
from collections.abc import Mapping, Sequence

from scipy.special import betainc, betaincinv

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import inside, questions
from eldgr_dspy.statistics.resampling import LEVEL

_SHARE = "Give 0.02 for 2% of the questions"


def proportion_upper_bound(n: int, count: int, *, level: float = LEVEL) -> float:
    """Return the exact one-sided upper confidence bound on a probability, from 0 to 1.

    The bound is below the true probability in at most 1 - `level` of all samples. This holds for questions that are
    drawn independently from the same source, and for a rule that was fixed before they were seen.
    Source: Clopper & Pearson (1934).

    Args:
        n: All questions, at least 1. count: those with the event, such as a wrong answer.
        level: Strictly between 0 and 1.

    Raises:
        ArgumentError: impossible counts, or a level out of range.
    """
    n, count = _counts(n, count)
    level = inside("level", level, "Give 0.95 for 95%")
    return 1.0 if count == n else float(betaincinv(count + 1, n - count, level))


def binomial_tail(n: int, count: int, share: float) -> float:
    """Return the probability of at most `count` events in `n` questions, each of which has it with this probability.

    It is the p of the test whether an event is less probable than `share`.

    Args:
        n: All questions, at least 1. count: those with the event.
        share: Strictly between 0 and 1.

    Raises:
        ArgumentError: impossible counts, or a share out of range.
    """
    n, count = _counts(n, count)
    share = inside("share", share, _SHARE)
    return 1.0 if count == n else float(betainc(n - count, count + 1, 1.0 - share))


def _counts(n: int, count: int) -> tuple[int, int]:
    n, count = questions("n", n, 1), questions("count", count, 0)
    if count > n:
        raise ArgumentError(f"count must be at most n={n!r}, because it counts some of these; got {count!r}.")
    return n, count


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
