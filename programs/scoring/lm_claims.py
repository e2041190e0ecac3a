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
from eldgr_dspy.programs.fencing import restore
from eldgr_dspy.programs.one_call import OneCall, Request, aask_each, ask_each
from eldgr_dspy.programs.scoring.step_fence import fence_steps
from eldgr_dspy.programs.scoring.step_replies import abstained, reason_to_abstain
from eldgr_dspy.signatures import ChangeStep, FindClaims

_Found = TypeVar("_Found")


class AskedClaims(OneCall):
    """Lists what steps claim, one LM call a step: a `Claims`.

    A step that can't be scored is not asked about. If the LM abstains, or its list does not pass, it is undefined.
    """

    signature = FindClaims

    def find(self, steps: Sequence[StepInContext]) -> list[Claimed]:
        """Return the claims of each step, asking one after the other.

        Raises:
            dspy.LMError: A call did not come through; also what else `eldgr_dspy.programs.consulting.ask` raises.
        """
        return _each(steps, ask_each([Request(self, _context(step)) for step in _asked(steps)]), _claimed)

    async def afind(self, steps: Sequence[StepInContext]) -> list[Claimed]:
        """Do the same as `find`, with a bounded number of calls at once."""
        return _each(steps, await aask_each([Request(self, _context(step)) for step in _asked(steps)]), _claimed)

    def show(self, *, question: str, earlier: Sequence[str], step: str) -> dict[str, Any]:
        """Return the question, the earlier steps and the step."""
        fenced = fence_steps(question, (), [*earlier, step])
        return {"question": fenced.question, "earlier": fenced.steps[:-1], "step": fenced.steps[-1]}

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `claims` as they are in the step; an abstention if the LM copied the fence with them."""
        fenced = fence_steps(inputs["question"], (), [*inputs["earlier"], inputs["step"]])
        return _restored(super().read(reply, inputs), fenced.marker)


class AskedCounterfactuals(OneCall):
    """Changes the meaning of steps, one LM call a step: a `Counterfactuals`.

    A step that can't be scored is not asked about. If the LM finds nothing to change, the result is None; if the LM
    abstains, or its change does not pass, it is undefined.
    """

    signature = ChangeStep

    def change(self, steps: Sequence[StepInContext]) -> list[Changed]:
        """Return each step with its meaning changed, asking one after the other; raises what `AskedClaims` raises."""
        return _each(steps, ask_each([Request(self, _alone(step)) for step in _asked(steps)]), _changed)

    async def achange(self, steps: Sequence[StepInContext]) -> list[Changed]:
        """Do the same as `change`, with a bounded number of calls at once."""
        return _each(steps, await aask_each([Request(self, _alone(step)) for step in _asked(steps)]), _changed)

    def show(self, *, question: str, step: str) -> dict[str, Any]:
        """Return the question and the step."""
        fenced = fence_steps(question, (), [step])
        return {"question": fenced.question, "step": fenced.steps[0]}

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `changed_step` and `change_kind`; an abstention if the LM copied the fence with them."""
        fenced = fence_steps(inputs["question"], (), [inputs["step"]])
        return _restored(super().read(reply, inputs), fenced.marker)


# --- what is asked ----------------------------------------------------------------------------------------------------


def _asked(steps: Sequence[StepInContext]) -> list[StepInContext]:
    return [step for step in steps if unmeasurable(step.text) is None]


def _alone(step: StepInContext) -> dict[str, object]:
    return {"question": step.question, "step": step.text}


def _context(step: StepInContext) -> dict[str, object]:
    """What is shown of a step; of earlier steps that are too long to be scored, the beginning."""
    return {**_alone(step), "earlier": [text[:LONGEST] for text in step.earlier]}


def _restored(fields: dspy.Prediction, marker: str) -> dspy.Prediction:
    """Return the fields, their texts as they are in the step; an abstention if they have the marker of a fence."""
    restored = {name: _restored_value(value) for name, value in fields.items()}
    return (
        dspy.Prediction(abstained="it copied a marker line") if marker in str(restored) else dspy.Prediction(**restored)
    )


def _restored_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored_value(item) for item in value]
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
