"""A reward that a command finds by its dotted name, with a fake NLI model behind it."""

from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import StepReward
from tests.scoring.readers import Reader
from tests.training.calling import by_heart

ra_msd = StepReward(NLIScorer(Reader(by_heart)))
