"""What a step claims, and a step with its meaning changed, by an LM: behind the same protocols as the rules.

`checked_claims` and `checked_counterfactual` check the LM's reply against the step, and its size. A reply that does not
pass is undefined with the reason. Nothing proves that a claim is the step's, or that a changed step means something
else: the checks see numbers and wording alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import dspy

from eldgr_dspy.channels.claims import Claimed, checked_claims
from eldgr_dspy.channels.counterfactuals import Changed, Kind, checked_counterfactual
from eldgr_dspy.channels.steps import LONGEST, StepInContext, unmeasurable
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.engines.strict import strict_parsing
from eldgr_dspy.programs.fencing import restore
from eldgr_dspy.programs.judges.repeated_calls import aask_all, ask_all
from eldgr_dspy.programs.scoring.step_fence import FencedSteps, fence_steps
from eldgr_dspy.programs.scoring.step_replies import abstained, reason_to_abstain
from eldgr_dspy.signatures import ChangeStep, FindClaims

_Found = TypeVar("_Found")


class AskedClaims(dspy.Module):
    """Lists what steps claim, one LM call a step: a `Claims`.

    A step that can't be scored is not asked about. If the LM abstains, or its list does not pass, it is undefined.
    """

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(FindClaims)

    def find(self, steps: Sequence[StepInContext]) -> list[Claimed]:
        """Return the claims of each step, asking one after the other.

        Raises:
            dspy.LMError: A call did not come through; also what else `eldgr_dspy.programs.consulting.ask` raises.
        """
        return _each(steps, ask_all(self, [_context(step) for step in _asked(steps)]), _claimed)

    async def afind(self, steps: Sequence[StepInContext]) -> list[Claimed]:
        """Do the same as `find`, with a bounded number of calls at once."""
        return _each(steps, await aask_all(self, [_context(step) for step in _asked(steps)]), _claimed)

    def forward(self, *, question: str, earlier: Sequence[str], step: str) -> dspy.Prediction:
        """Ask about one step, and return `claims` unchanged.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        fenced = fence_steps(question, (), [*earlier, step])
        with strict_parsing():
            return _plain(self.predict(**_with_earlier(fenced)), fenced)

    async def aforward(self, *, question: str, earlier: Sequence[str], step: str) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        fenced = fence_steps(question, (), [*earlier, step])
        with strict_parsing():
            return _plain(await self.predict.acall(**_with_earlier(fenced)), fenced)


class AskedCounterfactuals(dspy.Module):
    """Changes the meaning of steps, one LM call a step: a `Counterfactuals`.

    A step that can't be scored is not asked about. If the LM finds nothing to change, the result is None; if the LM
    abstains, or its change does not pass, it is undefined.
    """

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(ChangeStep)

    def change(self, steps: Sequence[StepInContext]) -> list[Changed]:
        """Return each step with its meaning changed, asking one after the other; raises what `AskedClaims` raises."""
        return _each(steps, ask_all(self, [_alone(step) for step in _asked(steps)]), _changed)

    async def achange(self, steps: Sequence[StepInContext]) -> list[Changed]:
        """Do the same as `change`, with a bounded number of calls at once."""
        return _each(steps, await aask_all(self, [_alone(step) for step in _asked(steps)]), _changed)

    def forward(self, *, question: str, step: str) -> dspy.Prediction:
        """Ask about one step, and return `changed_step` and `change_kind` unchanged; raises as `AskedClaims`."""
        fenced = fence_steps(question, (), [step])
        with strict_parsing():
            return _plain(self.predict(question=fenced.question, step=fenced.steps[0]), fenced)

    async def aforward(self, *, question: str, step: str) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        fenced = fence_steps(question, (), [step])
        with strict_parsing():
            return _plain(await self.predict.acall(question=fenced.question, step=fenced.steps[0]), fenced)


# --- what is asked ----------------------------------------------------------------------------------------------------


def _asked(steps: Sequence[StepInContext]) -> list[StepInContext]:
    return [step for step in steps if unmeasurable(step.text) is None]


def _alone(step: StepInContext) -> dict[str, object]:
    return {"question": step.question, "step": step.text}


def _context(step: StepInContext) -> dict[str, object]:
    """What is shown of a step; of earlier steps that are too long to be scored, the beginning."""
    return {**_alone(step), "earlier": [text[:LONGEST] for text in step.earlier]}


def _with_earlier(fenced: FencedSteps) -> dict[str, Any]:
    *earlier, step = fenced.steps
    return {"question": fenced.question, "earlier": earlier, "step": step}


def _plain(prediction: dspy.Prediction, fenced: FencedSteps) -> dspy.Prediction:
    """Return the fields, their texts as they are in the step; an abstention if the LM copied the fence with them."""
    fields = {name: _restored(value) for name, value in prediction.items()}
    if fenced.marker in str(fields):
        return dspy.Prediction(abstained="it copied a marker line")
    return dspy.Prediction(**fields)


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    return restore(value) if isinstance(value, str) else value


# --- what the reply gives ---------------------------------------------------------------------------------------------


def _each(
    steps: Sequence[StepInContext], said: Sequence[Said], read: Callable[[str, Mapping[str, Any]], _Found]
) -> list[_Found | Undefined]:
    rest = iter(said)
    return [why if (why := unmeasurable(step.text)) is not None else _result(step, next(rest), read) for step in steps]


def _result(step: StepInContext, said: Said, read: Callable[[str, Mapping[str, Any]], _Found]) -> _Found | Undefined:
    reason = reason_to_abstain(said.content)
    return read(step.text, said.content) if reason is None else abstained(reason)


def _claimed(step: str, content: Mapping[str, Any]) -> Claimed:
    claims = content.get("claims")
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        return abstained("claims is not a list of texts")
    if any(len(claim) > LONGEST for claim in claims):
        return Undefined(f"a claim is longer than {LONGEST:,} characters")
    return checked_claims(step, claims)


def _changed(step: str, content: Mapping[str, Any]) -> Changed:
    changed, said = content.get("changed_step"), content.get("change_kind")
    if said == "nothing":
        return None
    kind: Kind | None = next((kind for kind in get_args(Kind) if kind == said), None)
    if kind is None or not isinstance(changed, str):
        return abstained("changed_step and change_kind are not a text and what was changed in it")
    if (why := unmeasurable(changed)) is not None:
        return Undefined(f"the changed step can't be scored: {why.reason}")
    return checked_counterfactual(step, changed, kind)
