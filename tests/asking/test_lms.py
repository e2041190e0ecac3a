"""A copy of a module has other LMs wherever the module holds one, and the module itself is as it was."""

from collections.abc import Callable
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.lms.lms import with_lms
from eldgr_dspy.programs.testing import scripted_lm


class Holding(dspy.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


def bound(lm: Any) -> Any:
    predict = dspy.Predict("question -> answer")
    predict.set_lm(lm)
    return predict


def compiled(lm: Any) -> Any:
    program: Any = Holding(bound(lm))
    program._compiled = True
    return program


HELD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an attribute": (lambda lm: lm, lambda held: held),
    "a list": (lambda lm: ["x", lm], lambda held: held[1]),
    "a tuple in a dict": (lambda lm: {"first": ("x", lm)}, lambda held: held["first"][1]),
    "a predictor": (bound, lambda held: held.lm),
    "a compiled module": (compiled, lambda held: held.held.lm),
    "a list of compiled modules": (lambda lm: [compiled(lm)], lambda held: held[0].held.lm),
}


@pytest.mark.parametrize(("hold", "reach"), HELD.values(), ids=HELD)
def test_an_lm_is_found_wherever_a_module_holds_it(hold: Any, reach: Any) -> None:
    lm, other = scripted_lm([]), scripted_lm([])
    module = Holding(hold(lm))
    assert reach(with_lms(module, lambda _: other).held) is other
    assert reach(module.held) is lm


def test_one_lm_is_changed_once() -> None:
    module = Holding([bound(None), bound(None)])
    module.set_lm(scripted_lm([]))
    twin = with_lms(module, lambda lm: lm.copy(temperature=1.0))
    assert twin.get_lm() is not module.get_lm()


def test_what_holds_no_lm_is_only_copied() -> None:
    twin = with_lms(Holding({"a": [1, (2,)]}), lambda lm: None)
    assert twin.held == {"a": [1, (2,)]}
