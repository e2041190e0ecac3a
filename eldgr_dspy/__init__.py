"""EL-DGR: decide which of several sampled answers ships, so that a wrong judge can do only bounded harm.

    from eldgr_dspy import Selector

Public names load on first use: importing the package starts neither DSPy nor numpy.

PYTEST_DONT_REWRITE: pytest wants to rewrite the modules of a plugin, and warns if one was imported earlier.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eldgr_dspy import certificates, channels, statistics
    from eldgr_dspy.decision import Decision, decide
    from eldgr_dspy.programs.engines.local import local
    from eldgr_dspy.programs.engines.ollama import ollama
    from eldgr_dspy.programs.run.frozen import frozen_selector
    from eldgr_dspy.programs.sampled import Sampled
    from eldgr_dspy.programs.scoring.channel_scorer import ChannelScorer
    from eldgr_dspy.programs.scoring.nli import load_nli
    from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
    from eldgr_dspy.programs.selector import Selector

__all__ = [
    "ChannelScorer",
    "Decision",
    "NLIScorer",
    "Sampled",
    "Selector",
    "certificates",
    "channels",
    "decide",
    "frozen_selector",
    "load_nli",
    "local",
    "ollama",
    "statistics",
]

_HOMES = {
    "Decision": "eldgr_dspy.decision",
    "decide": "eldgr_dspy.decision",
    "local": "eldgr_dspy.programs.engines.local",
    "ollama": "eldgr_dspy.programs.engines.ollama",
    "ChannelScorer": "eldgr_dspy.programs.scoring.channel_scorer",
    "NLIScorer": "eldgr_dspy.programs.scoring.nli_scorer",
    "frozen_selector": "eldgr_dspy.programs.run.frozen",
    "load_nli": "eldgr_dspy.programs.scoring.nli",
    "Sampled": "eldgr_dspy.programs.sampled",
    "Selector": "eldgr_dspy.programs.selector",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"eldgr_dspy.{name}")
    raise AttributeError(f"module 'eldgr_dspy' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
