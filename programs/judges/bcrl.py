"""Selectors in the style of BCRL (2512.19920): the confidence that a pool states of its candidates, or an abstention.

BCRL trains a model until its confidence is calibrated. Nothing is trained here: the pool's confidences stand as stated.
`docs/reference/selectors.md` has the formulas.
"""

from eldgr_dspy.programs.judges.frames import Weighing

BCRL: dict[str, Weighing] = {
    "bcrl_max": Weighing("confidence", elects=False, positioned=True),
    "bcrl_vote": Weighing("confidence", elects=True, positioned=True),
    "bcrl_abstaining": Weighing(
        "confidence", elects=False, parameter=0.5, range=(0.0, 1.0), positioned=True, abstains_below=True
    ),
}
"""The highest confidence; the answer with the highest sum; the highest, unless it is below the parameter."""
