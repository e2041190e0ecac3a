"""What `save` keeps of a program, what `load` refuses, which roles an optimizer is shown, and what it teaches them."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy import Sampled
from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.stopping import Posterior
from tests.scorers import Rewards, ScoringModule
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    SILENT,
    asked,
    each_call,
    example_of,
    repair,
    right,
    saying,
    verdict,
)


class Program(dspy.Module):  # a user's program around another one
    def __init__(self, select: dspy.Module) -> None:
        super().__init__()
        self.inner = {"select": select}

    def forward(self, **inputs: Any) -> Any:
        return self.inner["select"](**inputs)


def cautious(case: Any) -> Steps:
    """A rule of one's own: the repairer first."""
    reply = yield "repairer"
    span = case.repaired(reply)
    if span is not None and case.certified(span):
        return Choice("repair", span)
    return Choice("consensus", case.consensus)


def quoted(answer: str, evidence: Any) -> bool:
    return any(answer in passage.text for passage in evidence)


def sampled(**options: Any) -> Sampled:
    return Sampled(dspy.ChainOfThought("question, evidence: list[str], candidates: list[str] -> answer"), **options)


def named(value: object) -> str:
    """Return a parameter's name in a test's id: the same in every process."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", getattr(value, "__name__", str(value)))


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
SAMPLING: list[dict[str, Any]] = [
    {"n": 3},
    {"stop": "settled"},
    {"stop": Posterior()},
    {"temperature": 0.7},
    {"n": 9, "stop": Posterior(0.9), "temperature": 1},
]
CHOICES = [*((Selector, options) for options in OTHERS), *((sampled, options) for options in SAMPLING)]
each_file = pytest.mark.parametrize("name", ["saved.json", "saved.pkl"])
each_place = pytest.mark.parametrize("around", [lambda one: one, Program], ids=["itself", "nested"])

VALUES = {**verdict(0, 1), **repair("Doha"), **DERIVATION, "text": "t", "reward": 0.5, "reasoning": "So."}
VALUES |= {"question": "q", "evidence": ["e"], "candidates": ["a"], "answer": "Doha"}


def taught(module: Any) -> Any:
    """A module whose predictors have other instructions and a demonstration each."""
    for predictor in module.predictors():
        predictor.signature = predictor.signature.with_instructions("Be brief.")
        predictor.demos = [dspy.Example(**{name: VALUES[name] for name in predictor.signature.fields})]
    return module


def loaded_into(module: Any, path: Path) -> Any:
    module.load(path, allow_pickle=True)
    return module


def replying(request: Any) -> Any:
    """Gives each role, a scorer and a sampled program what they ask for."""
    system = str(request.system)
    if "reward" in system:
        return "[[ ## reward ## ]]\n0.25\n\n[[ ## completed ## ]]"
    if role_of(request) is None:
        return "[[ ## reasoning ## ]]\nSo.\n\n[[ ## answer ## ]]\nDubai\n\n[[ ## completed ## ]]"
    replies = {"judge": verdict(2), "deriver": DERIVATION, "repairer": repair("Persian Gulf", 1)}
    return replies[role_of(request) or "judge"]


def outcome(module: Any, inputs: dict[str, Any] = CONTESTED) -> tuple[dict[str, Any], list[Any]]:
    """What a program returns, and its requests."""
    lm = scripted_lm(replying)
    with dspy.context(lm=lm):
        return module(**inputs).toDict(), lm.requests


PROGRAMS: dict[str, Callable[[], Any]] = {
    "selector": lambda: Selector(consult="always"),
    "scorer": lambda: Selector(scorers=[ScoringModule()]),
    "own rule": lambda: Selector(rule=cautious, certificate=quoted, timeout=60),
    "sampled": lambda: sampled(n=3, stop=Posterior(), num_threads=1),
    "judge": Judge,
    "deriver": Deriver,
    "repairer": Repairer,
}
each_program = pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)


# -- saved, loaded and copied -----------------------------------------------------------------------------------------
@each_program
@each_file
@each_place
def test_a_loaded_program_asks_the_same(make: Callable[[], Any], name: str, around: Any, tmp_path: Path) -> None:
    saved = taught(around(make()))
    saved.save(tmp_path / name)
    again = loaded_into(around(make()), tmp_path / name)
    assert again.dump_state() == saved.dump_state()
    _, requests = result = outcome(again)
    assert result == outcome(saved)
    assert all("Be brief." in text_of(one) and len(one.messages) == 3 for one in requests)


@each_program
@each_place
def test_a_program_is_saved_and_loaded_whole(make: Callable[[], Any], around: Any, tmp_path: Path) -> None:
    saved = taught(around(make()))
    saved.save(tmp_path / "program", save_program=True, modules_to_serialize=None)
    again: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    assert again.dump_state() == saved.dump_state()
    assert outcome(again) == outcome(saved)


@each_program
@each_place
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: one.deepcopy(), lambda one: one.reset_copy()])
def test_a_copy_decides_alike_and_is_apart_from_the_original(make: Any, around: Any, duplicate: Any) -> None:
    """A copy that is reset has no demonstrations."""
    program = taught(around(make()))
    twin = duplicate(program)
    assert outcome(twin)[0] == outcome(program)[0]
    for predictor in twin.predictors():
        predictor.demos.clear()
    assert all(len(predictor.demos) == 1 for predictor in program.predictors())
    assert twin.dump_state() == duplicate(program).reset_copy().dump_state()


@each_file
@each_place
@pytest.mark.parametrize(("make", "options"), CHOICES, ids=named)
def test_the_same_choices_are_loaded_and_others_are_refused_and_change_nothing(
    make: Callable[..., Any], options: dict[str, Any], name: str, around: Any, tmp_path: Path
) -> None:
    saved = taught(around(make(**options)))
    saved.save(tmp_path / name)
    assert loaded_into(around(make(**options)), tmp_path / name).dump_state() == saved.dump_state()
    other = around(make())
    before, of = other.dump_state(), "Selector" if make is Selector else "Sampled"
    with pytest.raises(ArgumentError, match=f"^This program was saved with other choices of its {of}") as raised:
        other.load(tmp_path / name, allow_pickle=True)
    assert all(f"\n  {'task' if one == 'answer' else one}" in str(raised.value) for one in options)
    assert str(raised.value).endswith(f"Make the {of} with the saved choices, or compile and save it anew.")
    assert other.dump_state() == before


def two(**options: Any) -> Any:
    program: Any = dspy.Module()
    program.one, program.other = Selector(), Selector(**options)
    return program


@pytest.mark.parametrize(
    ("saved", "other", "difference"),
    [
        (two(consult="always"), two(), 'consult: "always" -> "lazy"'),
        (sampled(stop=Posterior(0.9)), sampled(stop=Posterior()), r"stop\.posterior: 0\.9 -> 0\.95"),
    ],
    ids=["two selectors", "threshold"],
)
def test_a_difference_is_named(saved: Any, other: Any, difference: str, tmp_path: Path) -> None:
    saved.save(tmp_path / "saved.json")
    loaded_into(saved, tmp_path / "saved.json")
    with pytest.raises(ArgumentError, match=difference):
        other.load(tmp_path / "saved.json")


@each_file
def test_a_type_that_is_set_afterwards_is_saved_and_loaded_like_a_given_one(name: str, tmp_path: Path) -> None:
    given, changed, new = taught(Selector(answer="number")), Selector(), Selector(answer="number")
    changed.type = answer_type("number")
    for saved, module in ((given, changed), (changed, new)):
        saved.save(tmp_path / name)
        assert loaded_into(module, tmp_path / name).dump_state() == given.dump_state()


def test_what_serves_one_deployment_is_not_saved(tmp_path: Path) -> None:
    """A timeout, scorers and LMs may be other ones."""
    Selector(timeout=5).save(tmp_path / "saved.json")
    assert loaded_into(Selector(timeout=60, scorers=Rewards([])), tmp_path / "saved.json").timeout == 60


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


def refused_after(change: Callable[[Any], Any], make: Callable[[], Any], folder: Path, error: type[Exception]) -> str:
    """The words with which a program refuses its own file after a change; nothing of the file is loaded."""
    make().save(folder / "saved.json")
    state = json.loads((folder / "saved.json").read_text())
    (folder / "saved.json").write_text(json.dumps(change(state)))
    program = taught(make())
    before = program.dump_state()
    with pytest.raises(error) as raised:
        program.load(folder / "saved.json")
    assert program.dump_state() == before
    return str(raised.value)


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


@pytest.mark.parametrize(("change", "reason"), MISMATCHES.values(), ids=MISMATCHES)
def test_a_file_of_another_program_is_refused_whole(change: Callable[[Any], Any], reason: str, tmp_path: Path) -> None:
    sentence = refused_after(change, Selector, tmp_path, ArgumentError)
    assert re.search(rf"{reason}.*\. Make the program as it was when it was saved, or compile", sentence)


@pytest.mark.parametrize("key", ["choices", "select.choices"])
def test_a_sampled_program_without_choices_is_refused_by_the_key_that_misses(key: str, tmp_path: Path) -> None:
    message = f"the keys of this Sampled; it lacks '{key}'. Make the program as it was"
    assert message in refused_after(without(key), sampled, tmp_path, ArgumentError)
    nested = f"inner['select'].{key}"  # as DSPy refuses a file that lacks a key
    assert nested in refused_after(without(nested), lambda: Program(sampled()), tmp_path, KeyError)


def test_a_changed_rule_of_one_s_own_is_refused(tmp_path: Path) -> None:
    """Under its name: it is known by its source."""

    def change(state: Any) -> Any:
        assert state["choices"]["rule"].endswith(":cautious")
        return {**state, "choices": {**state["choices"], "rule_source": "0" * 16}}

    assert 'rule_source: "0000000000000000" -> ' in refused_after(
        change, lambda: Selector(rule=cautious), tmp_path, ArgumentError
    )


@pytest.mark.parametrize("choices", [None, "retrieval", [], 5])
def test_choices_that_are_not_a_mapping_are_refused(choices: Any, tmp_path: Path) -> None:
    message = refused_after(lambda state: {**state, "choices": choices}, Selector, tmp_path, ArgumentError)
    assert message.startswith("The saved choices of a Selector must be a mapping; got")


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


@pytest.mark.parametrize(("options", "roles"), ASKED, ids=named)
def test_only_roles_that_the_rule_may_ask_are_predictors(options: dict[str, Any], roles: list[str]) -> None:
    program, inputs = Program(Selector(**options)), PENS if options.get("answer") else CONTESTED
    assert [name for name, _ in program.named_predictors()] == [f"inner['select'].{role}.predict" for role in roles]
    lm = saying(verdict(0))
    with dspy.context(lm=lm):
        program(**inputs)
    assert set(asked(lm)) <= set(roles)


# -- optimizers (law 20) ----------------------------------------------------------------------------------------------

GOLD: dict[str, tuple[dict[str, Any], str]] = {"short": (CONTESTED, "Doha"), "number": (PENS, "36")}


def trainset(answer: str) -> list[dspy.Example]:
    inputs, gold = GOLD[answer]
    return [example_of({**inputs, "question": f"{inputs['question']} ({number})"}, gold=gold) for number in range(3)]


def program_of(answer: Any, **options: Any) -> Any:
    return Program(Selector(answer=answer, consult="always", derivation="stated", **options))


@each_call
@pytest.mark.parametrize("answer", GOLD)
@pytest.mark.parametrize("timeout", [None, 60])
def test_bootstrapping_teaches_roles_and_breaks_no_law(answer: Any, timeout: Any, call: Any, tmp_path: Path) -> None:
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=2, max_labeled_demos=0)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        compiled = optimizer.compile(program_of(answer, timeout=timeout), trainset=trainset(answer))
    compiled.save(tmp_path / "compiled.json")
    program = loaded_into(program_of(answer), tmp_path / "compiled.json")
    roles = {"short": ("judge", "repairer"), "number": ("deriver",)}[answer]
    assert [(name, len(predictor.demos)) for name, predictor in program.named_predictors()] == [
        (f"inner['select'].{role}.predict", 2) for role in roles
    ]
    false = {**DERIVATION, "derived_answer": "35"}
    for replies, is_right in (((verdict(0), repair("Manama"), false), False), ((verdict(2), SILENT), True)):
        lm = saying(*replies)
        with dspy.context(lm=lm):
            assert (call(program.inner["select"], GOLD[answer][0]).answer == GOLD[answer][1]) is is_right
        assert len(lm.requests[0].messages) > 2  # the demonstrations are shown


@pytest.mark.parametrize("answer", GOLD)
def test_a_random_search_compiles_a_nested_selector(answer: Any) -> None:
    options: dict[str, Any] = {"max_bootstrapped_demos": 1, "max_labeled_demos": 1, "num_candidate_programs": 1}
    optimizer = dspy.BootstrapFewShotWithRandomSearch(metric=right, num_threads=1, **options)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        program = optimizer.compile(program_of(answer), trainset=trainset(answer))
        assert program(**GOLD[answer][0]).answer == GOLD[answer][1]
