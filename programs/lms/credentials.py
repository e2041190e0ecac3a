"""Find the credentials that a module and its LMs hold, so that no file or message contains one.

They are looked for in the options of every LM, in its engines, and in the attributes and predictors of every module. A
credential that only a function knows, such as a provider of tokens, is not found. Its name in an error still hides it.
"""

from collections.abc import Mapping
from typing import Any

import dspy

from eldgr_dspy.programs.lms.lms import RECORDS, sub_modules
from eldgr_dspy.redaction import remember_environment, remember_settings


def remember_credentials(module: dspy.Module) -> None:
    """Record the credentials that a module, the LMs that it would ask and the environment hold."""
    remember_environment()
    for _, part in sub_modules(module, dspy.Module):
        remember_settings(_own(part), any_text=False)
    for lm in (dspy.settings.lm, *(lm for _, lm in sub_modules(module, dspy.BaseLM))):
        remember_lm(lm)


def remember_lm(lm: Any) -> None:
    """Record the credentials that an LM and its engines hold."""
    if lm is None:
        return
    remember_settings(_own(lm))
    for engine in map(_own(lm).get, ("_engine_spec", "_async_engine_spec")):
        remember_settings(_own(engine))
        for client in _own(engine).values():
            remember_settings(_own(client))


def _own(owner: Any) -> Mapping[str, Any]:
    """Return the attributes of an object, except what it remembers."""
    return {name: value for name, value in getattr(owner, "__dict__", {}).items() if name not in RECORDS}
