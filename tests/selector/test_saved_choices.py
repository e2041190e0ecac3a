"""What `save` and pickle keep of a selector, what `load` refuses, and which roles an optimizer is shown and teaches."""

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy import Sampled
from eldgr_dspy.answer_types import BUILT_IN, answer_type
from eldgr_dspy.answer_types.choice import Choice as Options
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.decision import RULES, Choice, Steps, near
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.stopping import Posterior
from tests.asking.transport import Silent
from tests.case_tables import Words, each_case
from tests.modules import Does
from tests.refusing import refusal, refuses, says
from tests.scenes import CONTESTED, DERIVATION, PENS, SILENT, repair, verdict
from tests.scorers import Rewards, ScoringModule
from tests.selecting import each_call, example_of, right, roles_of, saying


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


def quotes(answer: str, evidence: Any) -> bool:
    return any(answer in passage.text for passage in evidence)


def sampled(**options: Any) -> Sampled:
    return Sampled(dspy.ChainOfThought("question, evidence: list[str], candidates: list[str] -> answer"), **options)


NAMES = {"Selector": Selector, "sampled": sampled, "cautious": cautious, "quotes": quotes}
each_file = pytest.mark.parametrize("name", ["saved.json", "saved.pkl"])
each_place = pytest.mark.parametrize("around", [lambda one: one, Program], ids=["itself", "nested"])
VALUES = {**verdict(0, 1), **repair("Doha"), **DERIVATION, "text": "t", "reward": 0.5, "reasoning": "So."}
VALUES |= {"question": "q", "evidence": ["e"], "candidates": ["a"], "answer": "Doha"}


def teach(module: Any) -> Any:
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
    if "reward" in str(request.system):
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
    "own rule": lambda: Selector(rule=cautious, certificate=quotes, timeout=60),
    "sampled": lambda: sampled(n=3, stop=Posterior(), num_threads=1),
    "judge": Judge,
    "deriver": Deriver,
    "repairer": Repairer,
}
each_program = pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)


@each_program
@pytest.mark.parametrize("name", ["saved.json", "saved.pkl", "whole"])
@each_place
def test_a_loaded_program_asks_the_same(make: Callable[[], Any], name: str, around: Any, tmp_path: Path) -> None:
    program = teach(around(make()))
    if name == "whole":
        program.save(tmp_path / name, save_program=True, modules_to_serialize=None)
        again: Any = dspy.load(str(tmp_path / name), allow_pickle=True)
    else:
        program.save(tmp_path / name)
        again = loaded_into(around(make()), tmp_path / name)
    assert again.dump_state() == program.dump_state()
    _, requests = result = outcome(again)
    assert result == outcome(program)
    assert all("Be brief." in text_of(one) and len(one.messages) == 3 for one in requests)


@each_program
@each_place
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: one.deepcopy(), lambda one: one.reset_copy()])
def test_a_copy_decides_alike_and_is_apart_from_the_original(make: Any, around: Any, duplicate: Any) -> None:
    """A copy that is reset has no demonstrations."""
    program = teach(around(make()))
    twin = duplicate(program)
    assert outcome(twin)[0] == outcome(program)[0]
    for predictor in twin.predictors():
        predictor.demos.clear()
    assert all(len(predictor.demos) == 1 for predictor in program.predictors())
    assert twin.dump_state() == duplicate(program).reset_copy().dump_state()


@each_file
@each_place
@each_case("selector", "other choices", name=NAMES.get, Posterior=Posterior)
def test_only_the_same_choices_are_loaded(make: Any, options: Any, name: str, around: Any, tmp_path: Path) -> None:
    source = teach(around(make(**options)))
    source.save(tmp_path / name)
    assert loaded_into(around(make(**options)), tmp_path / name).dump_state() == source.dump_state()
    other = around(make())
    before, of = other.dump_state(), "Selector" if make is Selector else "Sampled"
    with pytest.raises(ArgumentError, match=f"^This program was saved with other choices of its {of}") as info:
        other.load(tmp_path / name, allow_pickle=True)
    assert all(f"\n  {'task' if one == 'answer' else one}" in str(info.value) for one in options)
    assert str(info.value).endswith(f"Make the {of} with the saved choices, or compile and save it anew.")
    assert other.dump_state() == before


def two(**options: Any) -> Any:
    return Does(print, one=Selector(), other=Selector(**options))


def test_a_type_that_is_set_is_saved_a_difference_named_and_what_serves_one_deployment_is_not(tmp_path: Path) -> None:
    """A timeout, scorers and LMs may be other ones."""
    for name in ("saved.json", "saved.pkl"):
        source, target, new = teach(Selector(answer="number")), Selector(), Selector(answer="number")
        target.type = answer_type("number")
        for one, module in ((source, target), (target, new)):
            one.save(tmp_path / name)
            assert loaded_into(module, tmp_path / name).dump_state() == source.dump_state()
    for program, other, difference in (
        (two(consult="always"), two(), 'consult: "always" -> "lazy"'),
        (sampled(stop=Posterior(0.9)), sampled(stop=Posterior()), "stop.posterior: 0.9 -> 0.95"),
    ):
        program.save(tmp_path / "saved.json")
        loaded_into(program, tmp_path / "saved.json")
        assert difference in refusal(partial(other.load, tmp_path / "saved.json"))
    Selector(timeout=5).save(tmp_path / "saved.json")
    assert loaded_into(Selector(timeout=60, scorers=Rewards([])), tmp_path / "saved.json").timeout == 60


def without(*path: Any) -> Callable[[Any], Any]:
    """What leaves out a value of a saved program."""

    def change(state: Any) -> Any:
        *above, last = path
        del reduce(getitem, above, state)[last]
        return state

    return change


def refusal_after(change: Callable[[Any], Any], make: Callable[[], Any], folder: Path, error: type[Exception]) -> str:
    """The words with which a program refuses its own file after a change; nothing of the file is loaded."""
    file, program = folder / "saved.json", teach(make())
    make().save(file)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    before = program.dump_state()
    message = refusal(lambda: program.load(file), error)
    assert program.dump_state() == before
    return message


def neither(state: Any) -> Any:
    return {"metadata": state["metadata"], "predict": state["judge.predict"]}


def of_another_source(state: Any) -> Any:  # under its name: it is known by its source
    assert state["choices"]["rule"].endswith(":cautious")
    return {**state, "choices": {**state["choices"], "rule_source": "0" * 16}}


CHANGES = {"neither": neither, "of another source": of_another_source, "in a list": lambda state: [state]}
CHANGING: Words = {"without": without, "having": lambda **more: lambda state: {**state, **more}}
CHANGING |= {"instead": lambda value: lambda state: value, "change": CHANGES.get}


@each_case("selector", "files of other programs", **CHANGING)
def test_a_file_of_another_program_is_refused_whole(change: Any, sentence: str, tmp_path: Path) -> None:
    rule = cautious if change is of_another_source else "eldgr"
    assert says(sentence, refusal_after(change, lambda: Selector(rule=rule), tmp_path, ArgumentError))


EVIL = "http://evil.test/v1"


@pytest.mark.parametrize(
    ("of_predictor", "of_lm", "sentence"),
    [
        ({"config": {"api_base": EVIL}}, {}, "it has 'config'. Make the program"),
        ({"forward": "x"}, {}, "it has 'forward'. Make the program"),
        ({}, {"fallbacks": [{"model": "openai/x", "api_base": "evil.test"}]}, "must name no further address."),
        ({}, {"extra_body": {"to": [{"base_url": "evil.test"}]}}, "must name no further address."),
        ({}, {"model": f"huggingface/{EVIL}"}, "must name no further address."),
        ({}, {"api_base": EVIL}, None),  # DSPy drops it
    ],
)
def test_a_file_cannot_say_where_a_key_is_sent(
    of_predictor: dict[str, Any], of_lm: dict[str, Any], sentence: str | None, tmp_path: Path
) -> None:
    select, file = Selector(), tmp_path / "saved.json"
    select.set_lm(dspy.LM("openai/gpt-4o-mini"))
    select.save(file)
    state = json.loads(file.read_text())
    judge = {**state["judge.predict"], **of_predictor}
    file.write_text(json.dumps({**state, "judge.predict": {**judge, "lm": {**judge["lm"], **of_lm}}}))
    if sentence is None:
        assert "api_base" not in loaded_into(Selector(), file).judge.predict.lm.kwargs
    else:
        assert sentence in refusal(lambda: Selector().load(file), ArgumentError)


@pytest.mark.parametrize("key", ["choices", "select.choices"])
def test_a_sampled_program_without_choices_is_refused_by_the_key_that_misses(key: str, tmp_path: Path) -> None:
    message = f"the keys of this Sampled; it lacks '{key}'. Make the program as it was"
    assert message in refusal_after(without(key), sampled, tmp_path, ArgumentError)
    path = f"inner['select'].{key}"  # as DSPy refuses a file that lacks a key
    assert path in refusal_after(without(path), lambda: Program(sampled()), tmp_path, KeyError)


@each_case("selector", "roles that a rule may ask", name=NAMES.get)
def test_only_roles_that_the_rule_may_ask_are_predictors(options: dict[str, Any], roles: list[str]) -> None:
    program, inputs = Program(Selector(**options)), PENS if options.get("answer") else CONTESTED
    assert [name for name, _ in program.named_predictors()] == [f"inner['select'].{role}.predict" for role in roles]
    lm = saying(verdict(0))
    with dspy.context(lm=lm):
        program(**inputs)
    assert set(roles_of(lm)) <= set(roles)


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
        result = optimizer.compile(program_of(answer, timeout=timeout), trainset=trainset(answer))
    result.save(tmp_path / "compiled.json")
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


class Loud(ShortText):  # short text under a name of its own
    name = "loud"


LOUD = Loud()


def last_of_all(case: Any) -> Any:
    """Ship the last answer."""
    yield from ()
    return Choice("judge", case.question.answers[-1])


def repickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- made here


@pytest.mark.parametrize(
    "rule", [*RULES, "near(0)", near(2), last_of_all, f"{__name__}:last_of_all"], ids=lambda rule: str(rule)[:20]
)
def test_a_selector_with_any_rule_that_has_a_name_is_pickled(rule: Any) -> None:
    select = Selector(rule=rule, answer="short")
    select.judge, select.repairer, select.deriver = Silent(), Silent(), Silent()
    again = repickle(repickle(select))
    assert (again.rule, again.settings, again.choices()) == (select.rule, select.settings, select.choices())
    assert again(**CONTESTED).toDict() == select(**CONTESTED).toDict()


def nameless() -> Any:
    def last_of_all(case: Any) -> Any:
        yield from ()
        return Choice("consensus", case.consensus)

    return last_of_all


def test_another_process_finds_what_a_pickle_names_and_settings_are_equal_after_pickling() -> None:
    """A rule without a name is not pickled. The settings are of any answer type."""
    code = "import pickle, sys; one = pickle.load(sys.stdin.buffer); print(one.rule, one.type.name, one.type.loaded_as)"
    select = Selector(rule=last_of_all, answer=f"{__name__}:Loud")
    process = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(select), capture_output=True, check=True)
    assert process.stdout.decode().split() == [f"{__name__}:last_of_all", "loud", f"{__name__}:Loud"]
    # It is not taken for the one of that name.
    refuses((pickle.PicklingError, AttributeError), "last_of_all", pickle.dumps, Selector(rule=nameless()))
    assert repickle(Options(["Doha", "Oslo"])).options == ("Doha", "Oslo")
    for answer in (None, *BUILT_IN.values(), f"{__name__}:Loud", f"{__name__}:LOUD"):
        settings = Settings(answer=answer, certificate="token", refusals=("Pass",))
        again = repickle(settings)
        assert again == settings and again.type is settings.type


def test_a_compiled_selector_is_saved_with_the_program_that_it_selects_for(tmp_path: Path) -> None:
    """DSPy hides the parameters of a compiled module, so that its `save` of a program around it has none of them."""
    select: Any = teach(Selector())
    select._compiled = True
    sampled(select=select).save(path := tmp_path / "saved.json")
    assert (loaded_into(sampled(), path).select.dump_state(), select._compiled) == (select.dump_state(), True)
    refuses(ArgumentError, "certificate: ", loaded_into, sampled(select=Selector(certificate="token")), path)
