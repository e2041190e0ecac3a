"""Claims and changed steps by an LM stand behind the protocols of the rules; what does not pass is undefined."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, get_args

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Request
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.claims import MOST, Claims
from eldgr_dspy.channels.counterfactuals import Counterfactual, Counterfactuals, Kind
from eldgr_dspy.channels.steps import LONGEST, StepInContext
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.programs.scoring.lm_claims import AskedClaims, AskedCounterfactuals
from eldgr_dspy.programs.testing import Line, scripted_lm
from eldgr_dspy.signatures import ChangeStep, FindClaims
from eldgr_dspy.strategies import json_values, lm_replies, raw_text
from tests.injection.attacks import ATTACKS
from tests.injection.judges import ordered, outside
from tests.injection.scenes import written

QUESTION = "What is the capital of Qatar?"
STEP = StepInContext("It has 3 million people, and it is the capital.", QUESTION, ("Doha lies in Qatar.",))
ASKERS: dict[str, Any] = {"claims": AskedClaims, "changes": AskedCounterfactuals}
each_asker = pytest.mark.parametrize("kind", ASKERS)


def said_of(kind: str, steps: list[StepInContext], lm: Any, asker: Any = None) -> list[Any]:
    """What comes of steps, which sync and async agree on."""
    asker = asker or ASKERS[kind]()
    sync, later = (asker.find, asker.afind) if kind == "claims" else (asker.change, asker.achange)
    with dspy.context(lm=lm):
        found: list[Any] = sync(steps)
        assert asyncio.run(later(steps)) == found
    return found


def claims(reply: Any, step: StepInContext = STEP) -> Any:
    [found] = said_of("claims", [step], scripted_lm(lambda _: reply))
    return found


def change(reply: Any, step: StepInContext = STEP) -> Any:
    [found] = said_of("changes", [step], scripted_lm(lambda _: reply))
    return found


def changed(text: Any, kind: Any) -> dict[str, Any]:
    return {"changed_step": text, "change_kind": kind}


def fitting(request: Request) -> dict[str, Any]:
    """A reply that passes, to whichever of the two is asked."""
    asked = "claims" if '"claims":' in str(request.system) else "change"
    return {"claims": ["Doha is the capital."]} if asked == "claims" else changed("It is not the capital.", "negation")


def test_an_lm_s_claims_are_the_step_s_claims() -> None:
    asker: Claims = AskedClaims()
    with dspy.context(lm=scripted_lm([{"claims": ["Doha has 3 million people.", " Doha is the capital.", ""]}])):
        assert asker.find([STEP]) == [("Doha has 3 million people.", "Doha is the capital.")]


def test_an_lm_s_changed_step_is_a_counterfactual() -> None:
    asker: Counterfactuals = AskedCounterfactuals()
    text = "It has 4 million people, and it is the capital."
    with dspy.context(lm=scripted_lm([changed(text, "number")])):
        assert asker.change([STEP]) == [Counterfactual(text, "number")]


def test_an_lm_may_find_no_claim_and_nothing_to_change() -> None:
    assert claims({"claims": []}) == ()
    assert change(changed("", "nothing")) is None


def test_the_prompts_name_the_kinds_and_the_number_that_the_checks_know() -> None:
    assert f"at most {MOST}." in FindClaims.instructions
    assert get_args(ChangeStep.output_fields["change_kind"].annotation) == (*get_args(Kind), "nothing")


@each_asker
def test_each_step_is_asked_about_once_and_in_order(kind: str) -> None:
    lm = scripted_lm(fitting)
    steps = [StepInContext(f"Step {name} is the capital.", QUESTION) for name in "abcd"]
    with dspy.context(lm=lm):
        asker = ASKERS[kind]()
        (asker.find if kind == "claims" else asker.change)(steps)
    assert [re.findall("Step . is", request.messages[-1].text or "") for request in lm.requests] == [
        [f"Step {name} is"] for name in "abcd"
    ]


@each_asker
def test_a_step_that_can_t_be_scored_is_undefined_without_asking(kind: str) -> None:
    lm = scripted_lm(fitting)
    found = said_of(kind, [StepInContext("So."), STEP, StepInContext(""), StepInContext("x" * 3_000)], lm)
    assert [isinstance(one, Undefined) for one in found] == [True, False, True, True]
    assert found[0] == Undefined("the step has one word")
    assert len(lm.requests) == 2
    assert said_of(kind, [], lm) == []


def test_claims_are_asked_for_with_the_earlier_steps_and_changes_without() -> None:
    lm = scripted_lm(fitting)
    said_of("claims", [STEP], lm)
    said_of("changes", [STEP], lm)
    shown = [request.messages[-1].text or "" for request in lm.requests]
    assert re.search(r"<step 0 (\w+)>\\nDoha lies in Qatar\.", shown[0])
    assert re.search(r"<step 1 (\w+)>\nIt has 3 million people, and it is the capital\.\n</step 1 \1>", shown[0])
    assert "Doha lies in Qatar." not in shown[2]


def test_an_earlier_step_that_is_too_long_is_shown_in_part() -> None:
    lm = scripted_lm(fitting)
    said_of("claims", [StepInContext(STEP.text, QUESTION, ("x" * 9_000,))], lm)
    assert len(lm.requests[0].messages[-1].text or "") < 2 * LONGEST


# --- what does not pass -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("The step claims much.", "the LM abstained: unparsable: "),
        ({"claims": "Doha is the capital."}, "the LM abstained: unparsable: "),
        ({"claims": [1]}, "the LM abstained: unparsable: "),
        ({"claims": None}, "the LM abstained: unparsable: "),
        (Line('{"claims": []', cut=True), "the LM abstained: cut off"),
        (lm15.ContextLengthError("too long"), "the LM abstained: prompt too long"),
        ({"claims": ["Doha has 4 million people."]}, "a claim states 4, which the step does not"),
        ({"claims": [f"Doha is {'very ' * n} hot." for n in range(MOST + 1)]}, "33 claims were found"),
        ({"claims": ["x" * (LONGEST + 1)]}, "a claim is longer than 2,000 characters"),
    ],
    ids=["prose", "text", "numbers", "null", "cut", "no room", "another number", "too many", "too long"],
)
def test_claims_that_do_not_pass_are_undefined(reply: Any, reason: str) -> None:
    found = claims(reply)
    assert isinstance(found, Undefined)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I changed it.", "the LM abstained: unparsable: "),
        (changed("It is hot there.", "synonym"), "the LM abstained: unparsable: "),
        (changed(None, "number"), "the LM abstained: unparsable: "),
        (changed("it has 3 MILLION people, and it is the capital.", "number"), "the changed step says the same"),
        (changed("", "number"), "the changed step can't be scored: the step is empty"),
        (changed("No.", "negation"), "the changed step can't be scored: the step has one word"),
        (changed("It is hot. " * 200, "entity"), "the changed step can't be scored: the step is longer than 2,000"),
    ],
    ids=["prose", "another kind", "null", "the same", "empty", "a word", "too long"],
)
def test_changes_that_do_not_pass_are_undefined(reply: Any, reason: str) -> None:
    found = change(reply)
    assert isinstance(found, Undefined)
    assert found.reason.startswith(reason)


def test_a_marker_of_the_step_s_own_comes_back_as_it_stood() -> None:  # hazard 70
    step = StepInContext("The sign [[ ## claims ## ]] is <|im_end|> here.")
    with dspy.context(lm=scripted_lm(lambda _: {"claims": ["The sign [·[ ## claims ## ]] is <·|im_end|> here."]})):
        assert AskedClaims().find([step]) == [(step.text,)]


@each_asker
def test_a_marker_line_that_was_copied_is_an_abstention(kind: str) -> None:
    def copied(request: Request) -> dict[str, Any]:
        found = re.search(r"<step \d+ [b-z]{8,}>", request.messages[-1].text or "")
        line = found[0] if found else ""
        return {name: self_copied(value, line) for name, value in fitting(request).items()}

    def self_copied(value: Any, line: str) -> Any:
        return (
            [f"{line} {one}" for one in value] if isinstance(value, list) else value.replace("It is", f"{line} It is")
        )

    assert said_of(kind, [STEP], scripted_lm(copied)) == [Undefined("the LM abstained: it copied a marker line")]


class Says(AskedClaims):
    """Claims of one's own, which are whatever they are."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.fields = fields

    def forward(self, **inputs: Any) -> dspy.Prediction:
        return dspy.Prediction(**self.fields)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return self.forward(**inputs)


# --- what is raised, and where the LM comes from ----------------------------------------------------------------------


@each_asker
def test_a_call_that_does_not_come_through_is_raised(kind: str) -> None:  # hazard 79
    asker = ASKERS[kind]()
    sync, later = (asker.find, asker.afind) if kind == "claims" else (asker.change, asker.achange)
    with dspy.context(lm=scripted_lm(lambda _: lm15.ServerError("down"))):
        with pytest.raises(dspy.LMError):
            sync([STEP])
        with pytest.raises(dspy.LMError):
            asyncio.run(later([STEP]))


@each_asker
def test_an_lm_is_set_on_it_and_what_was_learnt_is_saved(kind: str, tmp_path: Path) -> None:
    asker, loaded, lm = ASKERS[kind](), ASKERS[kind](), scripted_lm(fitting)
    asker.predict.signature = asker.predict.signature.with_instructions("As you are told.")
    asker.save(tmp_path / "asker.json")
    loaded.load(tmp_path / "asker.json")
    twin = loaded.deepcopy()
    twin.set_lm(lm)
    said_of(kind, [STEP], scripted_lm([]), twin)
    assert "As you are told." in str(lm.requests[0].system)
    assert loaded.predict.lm is None


def test_it_is_a_module_of_its_own() -> None:
    with dspy.context(lm=scripted_lm(fitting)):
        found = AskedClaims()(question=QUESTION, earlier=[], step=STEP.text)
        other = AskedCounterfactuals()(question=QUESTION, step=STEP.text)
    assert found.toDict() == {"claims": ["Doha is the capital."]}
    assert other.toDict() == changed("It is not the capital.", "negation")


# --- texts that give orders -------------------------------------------------------------------------------------------


# hazards 60, 69, 70, 71, 73, 75 and 78
@each_asker
def test_an_order_in_a_step_stays_inside_its_fence(kind: str) -> None:
    lm = scripted_lm(fitting)
    texts = [written(attack, "candidate", "candidate 3")[:LONGEST] for attack in ATTACKS]
    said_of(kind, [StepInContext(f"It is hot. {text}"[:LONGEST], QUESTION, (text,)) for text in texts], lm)
    assert len(lm.requests) > len(ATTACKS)
    for request in lm.requests:
        shown = request.messages[-1].text or ""
        assert not ordered(outside(re.sub(r"<(/?)step ", r"<\1candidate ", shown)))


# --- laws -------------------------------------------------------------------------------------------------------------

_texts = st.sampled_from([STEP.text, "It is the capital.", "It has 4.", "[·[ ## claims ## ]]", ""]) | raw_text
_kinds = st.sampled_from([*get_args(Kind), "nothing", "other", 5, None])
_replies = (
    st.fixed_dictionaries({"claims": st.lists(_texts | json_values, max_size=3) | st.lists(_texts) | json_values})
    | st.fixed_dictionaries({"changed_step": _texts | json_values, "change_kind": _kinds})
).map(json.dumps) | lm_replies()


def lawful(found: Any) -> bool:
    """Whether it is what the protocols allow."""
    if isinstance(found, tuple):
        return len(found) <= MOST and all(isinstance(claim, str) and claim.strip() for claim in found)
    return found is None or isinstance(found, Counterfactual | Undefined)


@given(_replies)
def test_whatever_an_lm_returns_it_is_what_the_protocols_allow(reply: str) -> None:
    assert lawful(claims(reply))
    assert lawful(change(reply))


@given(st.dictionaries(st.sampled_from(["claims", "abstained"]), json_values | st.lists(_texts, max_size=3)))
def test_whatever_a_module_of_one_s_own_returns_so_it_is(fields: dict[str, Any]) -> None:
    assert lawful(said_of("claims", [STEP], None, Says(**fields))[0])
