"""What `save` keeps of a selector's choices, what `load` refuses, and which roles an optimizer is shown."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.metrics import selection_feedback
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm, text_of
from tests.selecting import CONTESTED, PENS, asked, example_of, repair, right, saying, verdict


class Program(dspy.Module):
    """A user's program around a selector."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.inner = {"select": Selector(**options)}

    @property
    def select(self) -> Selector:
        return self.inner["select"]

    def forward(self, **inputs: Any) -> Any:
        return self.select(**inputs)


def cautious(case: Any) -> Steps:
    """A rule of one's own: the repairer first."""
    reply = yield "repairer"
    span = case.repaired(reply)
    if span is not None and case.certified(span):
        return Choice("repair", span)
    return Choice("consensus", case.consensus)


def quoted(answer: str, evidence: Any) -> bool:
    return any(answer in passage.text for passage in evidence)


CHOSEN: dict[str, Any] = {
    "answer": "number",
    "rule": "judge",
    "certificate": "token",
    "consult": "always",
    "homogeneous": "skip",
    "preference": "stratum",
    "derivation": "executed",
    "on_error": "raise",
    "on_failure": "abstain",
    "replies": "lenient",
    "uncertified": "abstain",
    "answer_field": "response",
}
OTHERS = [*({name: value} for name, value in CHOSEN.items()), {"rule": cautious}, {"certificate": quoted}]
KINDS: list[Callable[..., Any]] = [Selector, Program]
each_kind = pytest.mark.parametrize("kind", KINDS)


def named(value: object) -> str:
    """Return a parameter's name in a test's id: the same in every process."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", str(value))


each_file = pytest.mark.parametrize("name", ["saved.json", "saved.pkl"])


def taught(module: Any) -> Any:
    """A module whose predictors have other instructions."""
    for predictor in module.predictors():
        predictor.signature = predictor.signature.with_instructions("Be brief.")
    return module


def loaded_into(module: Any, path: Path) -> Any:
    module.load(path, allow_pickle=True)
    return module


# -- saved and loaded -------------------------------------------------------------------------------------------------


@each_kind
@each_file
@pytest.mark.parametrize("options", [{}, *OTHERS], ids=named)
def test_the_same_choices_are_loaded_with_their_prompts(
    kind: Callable[..., Any], name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    saved = taught(kind(**options))
    saved.save(tmp_path / name)
    module = loaded_into(kind(**options), tmp_path / name)
    assert module.dump_state() == saved.dump_state()
    assert {predictor.signature.instructions for predictor in module.predictors()} <= {"Be brief."}


@each_kind
@each_file
@pytest.mark.parametrize("options", OTHERS, ids=named)
def test_other_choices_are_refused_and_nothing_is_changed(
    kind: Callable[..., Any], name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    taught(kind(**options)).save(tmp_path / name)
    module = kind()
    before = module.dump_state()
    with pytest.raises(ArgumentError, match=r"^This program was saved with other choices of its Selector") as raised:
        module.load(tmp_path / name, allow_pickle=True)
    stated = next(iter(options)).replace("answer", "task") if "answer" in options else next(iter(options))
    assert f"  {stated}" in str(raised.value)
    assert module.dump_state() == before


@each_file
def test_a_type_that_is_set_afterwards_is_saved_and_loaded_like_a_given_one(name: str, tmp_path: Path) -> None:
    given, changed, new = taught(Selector(answer="number")), Selector(), Selector(answer="number")
    changed.type = answer_type("number")
    for saved, module in ((given, changed), (changed, new)):
        saved.save(tmp_path / name)
        assert loaded_into(module, tmp_path / name).dump_state() == given.dump_state()
    predictors: list[tuple[str, Any]] = new.named_predictors()
    assert [(of, one.signature.instructions) for of, one in predictors] == [("deriver.predict", "Be brief.")]


def test_a_changed_rule_of_one_s_own_is_refused(tmp_path: Path) -> None:
    """Under its name: it is known by its source."""
    taught(Selector(rule=cautious)).save(tmp_path / "saved.json")
    state = json.loads((tmp_path / "saved.json").read_text())
    assert state["choices"]["rule"].endswith(":cautious")
    state["choices"]["rule_source"] = "0" * 16
    (tmp_path / "saved.json").write_text(json.dumps(state))
    with pytest.raises(ArgumentError, match=r'rule_source: "0+" -> '):
        Selector(rule=cautious).load(tmp_path / "saved.json")


def test_what_serves_one_deployment_is_not_saved(tmp_path: Path) -> None:
    """A timeout, scorers and LMs may be other ones."""
    Selector(timeout=5).save(tmp_path / "saved.json")
    assert loaded_into(Selector(timeout=60), tmp_path / "saved.json").timeout == 60


@each_kind
def test_a_whole_program_keeps_its_choices(kind: Callable[..., Any], tmp_path: Path) -> None:
    taught(kind(**CHOSEN, timeout=60)).save(tmp_path / "program", save_program=True)
    program: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    assert program.dump_state() == taught(kind(**CHOSEN)).dump_state()


def test_a_rule_and_a_certificate_of_one_s_own_are_kept_with_a_whole_program(tmp_path: Path) -> None:
    Program(rule=cautious, certificate=quoted).save(tmp_path / "program", save_program=True)
    program: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    with dspy.context(lm=saying(repairer=repair("Persian Gulf", 1))):
        assert program(**CONTESTED).answer == "Persian Gulf"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: one.deepcopy(), lambda one: one.reset_copy()])
def test_a_copy_has_the_same_choices(duplicate: Callable[[Any], Any]) -> None:
    select = Selector(rule=cautious, certificate=quoted, timeout=5)
    assert duplicate(select).choices() == select.choices()
    assert duplicate(Program(**CHOSEN)).select.choices() == Selector(**CHOSEN).choices()


def test_two_selectors_of_one_program_keep_their_own_choices(tmp_path: Path) -> None:
    def program(**options: Any) -> Any:
        made: Any = dspy.Module()
        made.one, made.other = Selector(), Selector(**options)
        return made

    program(consult="always").save(tmp_path / "saved.json")
    loaded_into(program(consult="always"), tmp_path / "saved.json")
    with pytest.raises(ArgumentError, match='consult: "always" -> "lazy"'):
        program().load(tmp_path / "saved.json")


# -- files of others --------------------------------------------------------------------------------------------------


def without(*path: Any) -> Callable[[Any], Any]:
    """What leaves out a value of a saved program."""

    def change(state: Any) -> Any:
        inner = state
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        return state

    return change


FIELDS = ("judge.predict", "signature", "fields")
MISMATCHES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no choices": (without("choices"), "the keys of this Selector; it lacks 'choices'"),
    "no judge": (without("judge.predict"), "it lacks 'judge.predict'"),
    "another's": (lambda state: {**state, "deriver.predict": {}}, "it has 'deriver.predict'"),
    "neither": (
        lambda state: {"metadata": state["metadata"], "predict": state["judge.predict"]},
        "it lacks 'choices', 'judge.predict', 'repairer.predict' and has 'predict'",
    ),
    "a field less": (without(*FIELDS, 0), "must have the fields question, evidence, .*; it has 5 fields"),
    "no prefix": (
        without(*FIELDS, 0, "prefix"),
        "what save wrote for a Selector; reading it raised KeyError: 'prefix'",
    ),
    "no signature": (without("judge.predict", "signature"), "reading it raised KeyError: 'signature'"),
    "no lm": (without("judge.predict", "lm"), "reading it raised KeyError: 'lm'"),
    "no metadata": (without("metadata"), "reading it raised KeyError: 'metadata'"),
    "no versions": (without("metadata", "dependency_versions"), "reading it raised KeyError: 'dependency_versions'"),
    "a judge of nothing": (lambda state: {**state, "judge.predict": None}, "reading it raised TypeError"),
    "a list": (lambda state: [state], "reading it raised TypeError"),
    "null": (lambda state: None, "reading it raised TypeError"),
}


@pytest.mark.parametrize(("change", "said"), MISMATCHES.values(), ids=MISMATCHES)
def test_a_file_of_another_program_is_refused_in_a_sentence_and_nothing_is_loaded(
    change: Callable[[Any], Any], said: str, tmp_path: Path
) -> None:
    Selector().save(tmp_path / "saved.json")
    state = json.loads((tmp_path / "saved.json").read_text())
    (tmp_path / "saved.json").write_text(json.dumps(change(state)))
    select = taught(Selector())
    with pytest.raises(ArgumentError, match=rf"{said}.*\. Make the program as it was when it was saved, or compile"):
        select.load(tmp_path / "saved.json")
    assert {predictor.signature.instructions for predictor in select.predictors()} == {"Be brief."}


def test_in_a_program_a_file_without_choices_is_refused_by_the_key_that_misses(tmp_path: Path) -> None:
    program = Program()
    program.save(tmp_path / "saved.json")
    state = json.loads((tmp_path / "saved.json").read_text())
    del state["inner['select'].choices"]
    (tmp_path / "saved.json").write_text(json.dumps(state))
    with pytest.raises(KeyError, match=r"inner\['select'\]\.choices"):  # as DSPy refuses a file that lacks a key
        taught(program).load(tmp_path / "saved.json")
    predictors: list[Any] = program.predictors()
    assert {predictor.signature.instructions for predictor in predictors} == {"Be brief."}


@pytest.mark.parametrize("choices", [None, "retrieval", [], 5])
def test_choices_that_are_not_a_mapping_are_refused(choices: Any, tmp_path: Path) -> None:
    Selector().save(tmp_path / "saved.json")
    state = {**json.loads((tmp_path / "saved.json").read_text()), "choices": choices}
    (tmp_path / "saved.json").write_text(json.dumps(state))
    with pytest.raises(ArgumentError, match=r"^The saved choices of a Selector must be a mapping; got"):
        Selector().load(tmp_path / "saved.json")


# -- who can be asked -------------------------------------------------------------------------------------------------


ASKED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["judge", "repairer"]),
    ({"consult": "always"}, ["judge", "repairer"]),
    ({"answer": "number"}, ["deriver"]),
    ({"rule": "judge"}, ["judge"]),
    ({"rule": "judge", "answer": "number"}, ["judge"]),
    ({"rule": "majority"}, []),
    ({"rule": "first", "answer": "number"}, []),
    ({"rule": cautious}, ["judge", "deriver", "repairer"]),
]


@each_kind
@pytest.mark.parametrize(("options", "roles"), ASKED, ids=named)
def test_only_roles_that_can_be_asked_are_predictors(
    kind: Callable[..., Any], options: dict[str, Any], roles: list[str]
) -> None:
    names = [name.removeprefix("inner['select'].") for name, _ in kind(**options).named_predictors()]
    assert names == [f"{role}.predict" for role in roles]


def test_the_rule_asks_nobody_else() -> None:
    for options, roles in ASKED[:-1]:
        each: list[dict[str, Any]] = [CONTESTED, {**PENS, "candidates": ["35", "36"]}]
        for inputs in each:
            if options.get("answer", "short") == inputs.get("answer", "short"):
                lm = saying(verdict(0, len(inputs["candidates"])))
                with dspy.context(lm=lm):
                    Selector(**options)(**inputs)
                assert set(asked(lm)) <= set(roles)


def test_an_lm_is_set_for_every_role_and_for_none_that_is_frozen() -> None:
    """A call may be about answers of another type."""
    lm, own = saying(verdict(2)), saying(verdict(0))
    select = Selector()
    select.repairer.set_lm(own)
    select.repairer._compiled = True
    select.set_lm(lm)
    lms: list[Any] = [getattr(select, role).get_lm() for role in ("judge", "deriver", "repairer")]
    assert lms == [lm, lm, own]
    assert select(**PENS).branch == "repair"


# -- optimizers -------------------------------------------------------------------------------------------------------

GOLD: dict[str, tuple[dict[str, Any], str]] = {"short": (CONTESTED, "Doha"), "number": (PENS, "36")}


def trainset(answer: str) -> list[dspy.Example]:
    inputs, gold = GOLD[answer]
    return [example_of({**inputs, "question": f"{inputs['question']} ({number})"}, gold=gold) for number in range(3)]


@pytest.mark.parametrize("answer", GOLD)
@pytest.mark.parametrize("timeout", [None, 60])
def test_bootstrapping_teaches_the_roles_of_a_nested_selector(answer: Any, timeout: Any, tmp_path: Path) -> None:
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=2, max_labeled_demos=0)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        compiled = optimizer.compile(Program(answer=answer, timeout=timeout), trainset=trainset(answer))
    compiled.save(tmp_path / "compiled.json")
    program = loaded_into(Program(answer=answer), tmp_path / "compiled.json")
    taught = {name: len(predictor.demos) for name, predictor in program.named_predictors()}
    roles = {"short": {"judge": 2, "repairer": 0}, "number": {"deriver": 2}}[answer]
    assert taught == {f"inner['select'].{role}.predict": n for role, n in roles.items()}


@pytest.mark.parametrize("answer", GOLD)
def test_a_random_search_compiles_a_nested_selector(answer: Any) -> None:
    options: dict[str, Any] = {"max_bootstrapped_demos": 1, "max_labeled_demos": 1, "num_candidate_programs": 1}
    optimizer = dspy.BootstrapFewShotWithRandomSearch(metric=right, num_threads=1, **options)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        program = optimizer.compile(Program(answer=answer), trainset=trainset(answer))
        assert program(**GOLD[answer][0]).answer == GOLD[answer][1]


@pytest.mark.parametrize("answer", GOLD)
def test_gepa_rewrites_every_predictor_of_a_nested_selector(answer: Any) -> None:
    """It fails on a predictor that is never asked: there is no trace of it to reflect upon."""
    knack = "Follow the passages."

    def reply(request: Any) -> Any:
        named = request.config.response_format["schema"]["properties"]
        if "preferred" in named:
            return verdict(2 if knack in text_of(request) else 0)
        if "repaired_answer" in named:
            return repair("", -1)
        return {"derivation_steps": [], "derived_answer": "36" if knack in text_of(request) else "1"} | {
            "consistency_check": "36 / 12 = 3"
        }

    reflection = scripted_lm(lambda _: {"new_instruction": knack})
    options: dict[str, Any] = {"max_metric_calls": 40, "num_threads": 1, "seed": 0, "reflection_minibatch_size": 2}
    optimizer: Any = dspy.GEPA(metric=selection_feedback, reflection_lm=reflection, **options)
    with dspy.context(lm=scripted_lm(reply)):
        program = optimizer.compile(
            Program(answer=answer, derivation="stated", consult="always"), trainset=trainset(answer)
        )
        assert program(**GOLD[answer][0]).answer == GOLD[answer][1]
    changed = [name for name, one in program.named_predictors() if one.signature.instructions == knack]
    assert {"short": "judge", "number": "deriver"}[answer] in changed[0]
