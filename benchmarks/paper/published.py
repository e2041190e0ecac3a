"""The paper's numbers as data: each with its place in the paper, and the questions that it covers.

Every number is a `Decimal` with the printed digits, so that a recomputed one can be compared with them. Scores are
percentages. A lead is EL-DGR minus the other rule in percentage points; the table of the confirmation prints the same
differences with the opposite sign. Source: the paper's TeX; places are its labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

from eldgr_dspy.words import Task

LABELS = {"first": "First candidate", "majority": "Majority vote", "judge": "Scalar judge", "eldgr": "EL-DGR"}
"""The paper's selectors by the names of their rules, in the order of its tables."""

JUDGE = "deepseek-r1:7b"
CANDIDATES = 4

MAIN, CONFIRMATION, AUDIT, AUTHORITY = "tab:main_results", "tab:eldgr_confirmation", "sec:audit", "sec:intro"


class PublishedScore(NamedTuple):
    """The scores of a selector or a policy, in percent: accuracy, or exact match and token F1."""

    em: Decimal
    f1: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Lead:
    """EL-DGR against another rule.

    Attributes:
        delta: percentage points. interval: its 95 % bootstrap interval. p: two-sided exact McNemar.
        wins, losses: the counts. counts: whether the paper prints them, or its delta and p leave no others.
    """

    delta: Decimal
    interval: tuple[Decimal, Decimal]
    p: Decimal
    wins: int
    losses: int
    counts: Literal["printed", "implied"] = "implied"


@dataclass(frozen=True, slots=True)
class Selection:
    """The paper's results for the four selectors on one set of questions.

    Attributes:
        title: the name of the data. table: the label of the table with scores and leads.
        n: how many questions. candidates: who wrote the four of each question.
        scores: by rule. leads: of EL-DGR, by the other rule.
        full_authority: the scalar judge minus majority vote, in percentage points, as the paper's text states it.
        seconds: a question for calls, from the paragraph on cost: of the judge, of the verifier, of both together.
        homogeneous: how many questions have one class of answers, also from there.
        audit: counts of questions by the names of `summary.json`; the paper has one for the confirmation alone.
    """

    title: str
    table: str
    task: Task
    n: int
    candidates: str
    scores: Mapping[str, PublishedScore]
    leads: Mapping[str, Lead]
    full_authority: Decimal
    seconds: tuple[Decimal | None, Decimal | None, Decimal]
    homogeneous: int | None = None
    audit: Mapping[str, int] | None = None


class Drop(NamedTuple):
    """A row of the corrected ablation: percent, and the differences in EM that are printed next to it."""

    em: Decimal
    f1: Decimal
    over_full: int | None
    over_grpo: int | None


def _lead(delta: str, low: str, high: str, p: str, wins: int, losses: int, *, is_printed: bool = False) -> Lead:
    ends = Decimal(low), Decimal(high)
    return Lead(Decimal(delta), ends, Decimal(p), wins, losses, "printed" if is_printed else "implied")


def _scores(*texts: str) -> dict[str, PublishedScore]:
    """Scores in the order of `LABELS`, each as `EM` or `EM/F1`."""
    pairs = [[Decimal(score) for score in text.split("/")] for text in texts]
    return {rule: PublishedScore(*pair) for rule, pair in zip(LABELS, pairs, strict=True)}


_POLICIES = "one from each of four policies trained from Qwen2.5-3B-Instruct (GRPO, ORM, PRM, RA-MSD)"

SELECTIONS: Mapping[str, Selection] = {
    "gsm8k": Selection(
        title="GSM8K",
        table=MAIN,
        task="arithmetic",
        n=500,
        candidates=_POLICIES,
        scores=_scores("55.4", "55.8", "56.8", "58.2"),
        leads={
            "first": _lead("2.80", "1.20", "4.60", ".0026", 17, 3, is_printed=True),
            "majority": _lead("2.40", "0.40", "4.60", ".0357", 20, 8),
            "judge": _lead("1.40", "-0.20", "3.00", ".1435", 12, 5),
        },
        full_authority=Decimal("1.0"),
        seconds=(None, None, Decimal("1.36")),
        homogeneous=352,
    ),
    "hotpotqa": Selection(
        title="HotpotQA",
        table=MAIN,
        task="retrieval",
        n=300,
        candidates=_POLICIES,
        scores=_scores("15.33/22.97", "15.33/23.19", "15.67/23.49", "17.33/25.46"),
        leads={
            "first": _lead("2.00", "0.33", "4.00", ".0703", 7, 1, is_printed=True),
            "majority": _lead("2.00", "0.67", "3.67", ".0313", 6, 0),
            "judge": _lead("1.67", "0.33", "3.33", ".0625", 5, 0),
        },
        full_authority=Decimal("0.34"),
        seconds=(None, None, Decimal("4.99")),
        homogeneous=172,
    ),
    "confirmation": Selection(
        title="HotpotQA, confirmation",
        table=CONFIRMATION,
        task="retrieval",
        n=30,
        candidates="four samples of one GRPO checkpoint, at temperature 0.7 and top-p 0.9",
        scores=_scores("13.3/15.41", "20.0/22.07", "10.0/12.81", "26.7/29.00"),
        leads={
            "first": _lead("13.3", "3.3", "26.7", ".125", 4, 0),
            "majority": _lead("6.7", "0.0", "16.7", ".500", 2, 0),
            "judge": _lead("16.7", "3.3", "30.0", ".0625", 5, 0),
        },
        full_authority=Decimal("-10.0"),
        seconds=(Decimal("1.77"), Decimal("2.91"), Decimal("4.68")),
        audit={
            "preserved": 22,
            "judge_overrides": 4,
            "repair_overrides": 4,
            "correct_to_incorrect": 0,
            "incorrect_to_correct": 2,
        },
    ),
}


ABLATION, ABLATION_N, ABLATION_P = "tab:hotpot_ablation", 100, Decimal("1.0")
"""The channel drops that were run again: one seed, and the exact p of every row against full."""

CORRECTION: Mapping[str, Drop] = {
    "Full gated RA-MSD": Drop(Decimal(19), Decimal("28.62"), None, 1),
    "GRPO": Drop(Decimal(18), Decimal("27.99"), -1, None),
    "without logic": Drop(Decimal(18), Decimal("27.65"), -1, 0),
    "without fact": Drop(Decimal(20), Decimal("29.17"), 1, 2),
    "without epist": Drop(Decimal(18), Decimal("27.01"), -1, 0),
    "without info": Drop(Decimal(20), Decimal("28.15"), 1, 2),
    "without triang": Drop(Decimal(19), Decimal("27.46"), 0, 1),
    "without adv": Drop(Decimal(18), Decimal("26.53"), -1, 0),
    "without min": Drop(Decimal(20), Decimal("28.85"), 1, 2),
}

LEGACY, LEGACY_FULL, LEGACY_DROPS = "sec:negative", Decimal("55.6"), (Decimal("44.6"), Decimal("47.4"))
"""The channel drops on GSM8K that collapsed, a range in the text: accuracy of full RA-MSD, lowest and highest drop."""

LEGACY_BELOW, LEGACY_P = (8, 11), Decimal("3.4e-6")
"""By how many percentage points these are below GRPO, and what every row's p is smaller than."""
