"""For tests of programs: the scripted LM and `check_selector`, which needs Hypothesis and loads it on first use."""

from typing import TYPE_CHECKING, Any

from eldgr_dspy.programs.scripted import Line, ScriptedLM, role_of, scripted_lm, text_of

if TYPE_CHECKING:
    from eldgr_dspy.programs.checks.checking import check_selector

__all__ = ["Line", "ScriptedLM", "check_selector", "role_of", "scripted_lm", "text_of"]


def __getattr__(name: str) -> Any:
    if name == "check_selector":
        import eldgr_dspy.testing  # noqa: F401 -- without Hypothesis it says what to install
        from eldgr_dspy.programs.checks.checking import check_selector

        return check_selector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
