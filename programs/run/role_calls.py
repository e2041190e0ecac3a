"""A role as a run calls it: metered, and described by everything that shapes the call."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dspy

from eldgr_dspy.programs.lms.consulting import RoleOutput, ask, ask_without_lm
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.programs.requests.metered_lms import metered_lm, with_meter
from eldgr_dspy.programs.run.fingerprints import asks_by_code, describe, fingerprint, predictors
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.named_judges import Asked, labelled
from eldgr_dspy.words import ROLES, Consulted


@dataclass(frozen=True, slots=True)
class RoleCall:
    """A role as a run calls it, and the model that it asks, None for a heuristic role."""

    module: dspy.Module
    details: Mapping[str, Any]
    fingerprint: str
    model: str | None
    without_lm: bool = False
    """Whether it has a prompt but no LM to put it to."""
    elsewhere: Callable[[Mapping[str, object], Consulted], RoleOutput] | None = None
    """Asks it in another process; None to ask in this one."""

    @property
    def heuristic(self) -> bool:
        """Whether it says that it asks no LM: it costs nothing, and cannot hang."""
        return not getattr(self.module, "asks_lm", True)

    def ask(self, inputs: Mapping[str, object], role: Consulted) -> RoleOutput:
        """Ask it; raises what `eldgr_dspy.programs.lms.consulting.ask` does."""
        if self.elsewhere is not None:
            return self.elsewhere(inputs, role)
        return (ask_without_lm if self.heuristic else ask)(self.module, inputs, role)


@contextmanager
def metered_settings() -> Iterator[None]:
    """Meter the LM of the surrounding context; make DSPy keep the records that the meter reads, but no trace."""
    lm = dspy.settings.lm
    with dspy.context(lm=None if lm is None else metered_lm(lm), disable_history=False, trace=None):
        yield


def role_call(module: dspy.Module) -> RoleCall:
    """Return a role module as a run calls it, in the settings that the run will have."""
    details = describe(module)
    lms = [predictor.lm or dspy.settings.lm for _, predictor in predictors(module)]
    bound = [lm for _, lm in sub_modules(module, dspy.BaseLM)]
    all_lms = [*lms, *bound, *([dspy.settings.lm] if asks_by_code(module) else [])]
    model = "+".join(sorted({lm.model for lm in all_lms if lm is not None})) or None
    parts = (part for _, part in sub_modules(module, dspy.Module) if not isinstance(part, dspy.Predict))
    # A part that does not say whether it sets an LM when it is called may do so.
    sets_lm = any(getattr(part, "asks_lm", True) and getattr(part, "sets_lm", True) for part in parts)
    without_lm = None in lms and not sets_lm
    return RoleCall(with_meter(module), details, fingerprint(details), model, without_lm)


def modules_of(selector: Selector, judges: Mapping[str, dspy.Module]) -> dict[Asked, dspy.Module]:
    """Return whom a run asks: a selector's roles, with these judges by name instead of its own, if there are any."""
    roles: dict[Asked, dspy.Module] = {role: getattr(selector, role) for role in ROLES if role != "judge" or not judges}
    return {labelled("judge", name): module for name, module in judges.items()} | roles


def calls_of_roles(selector: Selector, judges: Mapping[str, dspy.Module]) -> dict[Asked, RoleCall]:
    """Return whom a run asks as it calls them, and a certificate that is consulted."""
    calls = {label: role_call(module) for label, module in modules_of(selector, judges).items()}
    if selector.certifier is not None:
        calls["certificate"] = calls["repair_certificate"] = role_call(selector.certifier)
    return calls
