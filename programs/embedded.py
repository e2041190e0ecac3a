"""The former name of `eldgr_dspy.programs.heuristics`."""

from eldgr_dspy.programs.heuristics import ExtractiveRepairer, LexicalJudge, SilentDeriver
from eldgr_dspy.programs.heuristics import heuristic_selector as embedded_selector

__all__ = ["ExtractiveRepairer", "LexicalJudge", "SilentDeriver", "embedded_selector"]
