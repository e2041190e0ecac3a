"""For tests of programs: the scripted LM, `check_selector` and `check_program`.

The two checks need Hypothesis, and load it on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eldgr_dspy.programs.scripted import Line, ScriptedLM, role_of, scripted_lm, text_of

if TYPE_CHECKING:
    from eldgr_dspy.programs.checking import check_selector
    from eldgr_dspy.programs.program_checks import check_program

__all__ = ["Line", "ScriptedLM", "check_program", "check_selector", "role_of", "scripted_lm", "text_of"]


def __getattr__(name: str) -> Any:
    if name in ("check_program", "check_selector"):
        import eldgr_dspy.strategies  # noqa: F401 -- without Hypothesis it says what to install

        home = "program_checks" if name == "check_program" else "checking"
        return getattr(import_module(f"eldgr_dspy.programs.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
