"""A whole program is checked: it returns what its selector ships."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import dspy
import pydantic
import pytest

from eldgr_dspy import Sampled, Selector
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scripted import value_of
from eldgr_dspy.programs.testing import check_selector, scripted_lm
from tests.case_tables import each_case
from tests.modules import Does
from tests.refusing import refuses, says
from tests.selecting import Returns

INPUTS = {"question": "What is the capital of Qatar?"}
PASSAGES = ["Doha is the capital of Qatar.", "Lusail is a city north of Doha."]


class Program(dspy.Module):
    """Samples three answers and selects one; a subclass returns something else."""

    signature: Any = "question, context: list[str] -> answer"

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.answer = dspy.ChainOfThought(self.signature)
        self.select = Selector(**options)

    def forward(self, question: str) -> Any:
        return self.result_of(self.choose(question))

    def choose(self, question: str) -> Any:
        return self.select(question=question, candidates=self.samples(question), evidence=PASSAGES)

    async def later(self, question: str) -> Any:
        pool = [await self.answer.acall(question=question, context=PASSAGES) for _ in range(3)]
        return await self.select.acall(question=question, candidates=pool, evidence=PASSAGES)

    def samples(self, question: str) -> Any:
        return [self.sample(question, number) for number in range(3)]

    def sample(self, question: str, number: int) -> Any:
        return self.answer(question=question, context=PASSAGES, config={"rollout_id": number})

    def result_of(self, pred: Any) -> Any:
        return pred


def returning(name: str, change: Callable[[Any], Any]) -> Any:
    """A program that returns something made of the prediction."""
    return type(name, (Program,), {"result_of": lambda self, pred: change(pred)})


class Tolerant(Program):  # a sample that fails is a candidate without an answer
    def sample(self, question: str, number: int) -> Any:
        try:
            return super().sample(question, number)
        except (dspy.LMError, dspy.AdapterParseError):
            return None


class AsyncOnly(dspy.Module):  # has no forward
    def __init__(self) -> None:
        super().__init__()
        self.parts = [Program()]

    async def aforward(self, question: str) -> Any:
        return await self.parts[0].later(question)


class Completions(Program):  # draws its samples as completions of a module that it makes when it is called
    def samples(self, question: str) -> Any:
        return dspy.Predict("question, context: list[str] -> answer", n=3)(question=question, context=PASSAGES)


class Threads(Program):  # draws its samples in threads that do not have the caller's settings
    def samples(self, question: str) -> Any:
        with ThreadPoolExecutor(3) as pool:
            return [*pool.map(lambda number: self.sample(question, number), range(3))]


class TwoHops(Program):  # selects a city, then something about it: two selectors, the last of which counts
    def __init__(self) -> None:
        super().__init__()
        self.bridge = Selector()

    def choose(self, question: str) -> Any:
        result = self.bridge(question=question, candidates=self.samples(question), evidence=PASSAGES)
        return super().choose(f"What of {result.answer}?")


class Both(TwoHops):  # two selectors at once, of which it returns the first
    async def aforward(self, question: str) -> Any:
        call = {"question": question, "evidence": PASSAGES}
        one = self.select.acall(**call, candidates=["Paris", "Lusail"])
        other = self.bridge.acall(**call, candidates=["Lyon", "Doha"])
        return (await asyncio.gather(one, other))[0]

    forward = cast("Any", None)


Found = pydantic.create_model("Found", places=(list[str], ...), sure=(bool | None, ...))
SIGNATURE: Any = dspy.Signature
OUTPUTS = "result: Found, kind: Literal['count', 'size'], answer: float"


class Number(Program):  # samples numbers and more, and returns one
    signature = SIGNATURE(f"question, context: list[str] -> {OUTPUTS}", custom_types={"Found": Found})

    def result_of(self, pred: Any) -> Any:
        return {"answer": float(pred.answer) if str(pred.answer).isdecimal() else pred.answer}


def ask_another(self: Any, question: str, candidates: list[str], **_: Any) -> Any:
    answer = self.inner(question=question, candidates=candidates, evidence=["Lusail"]).answer
    return dspy.Prediction(preferred=candidates.index(answer) if answer in candidates else -1)


class AsksTwice(Program):  # a selector whose judge asks another selector
    def __init__(self) -> None:
        super().__init__()
        self.select.judge = Does(ask_another, inner=Selector())


LAWFUL: dict[str, Callable[[], dspy.Module]] = {
    "plain": Program,
    "tolerant of failures": Tolerant,
    "that returns the answer in another spelling": returning("Text", lambda pred: pred.answer and f"**{pred.answer}**"),
    "async only": AsyncOnly,
    "with completions": Completions,
    "with threads": Threads,
    "with two selectors in a row": TwoHops,
    "with two selectors at once": Both,
    "with typed outputs": Number,
    "with a selector in a role": AsksTwice,
    "with typed samples": lambda: dspy.BestOfN(Sampled(dspy.Predict("question -> answer: int")), 1, lambda *_: 1.0, 0),
    "strict about replies": lambda: Program(on_error="raise", certificate="token", consult="always"),
}


class Sums(Program):  # has no evidence
    def choose(self, question: str) -> Any:
        return self.select(question=question, candidates=self.samples(question))


PENS = {"question": "Tom has 3 boxes of 12 pens. How many pens has he?"}
OTHERWISE: dict[str, tuple[Callable[[], dspy.Module], Any, Any]] = {
    **{name: (make, INPUTS, None) for name, make in LAWFUL.items()},
    "a sum": (lambda: Sums(answer="number"), PENS, None),
    "several examples": (Program, [dspy.Example(**INPUTS, answer="Doha").with_inputs("question"), INPUTS], None),
    "under JSON": (Program, INPUTS, dspy.JSONAdapter()),
    "under XML": (Program, INPUTS, dspy.XMLAdapter()),
}


@pytest.mark.parametrize(("make", "inputs", "adapter"), OTHERWISE.values(), ids=OTHERWISE)
def test_a_lawful_program_passes_and_calls_of_its_selectors_are_counted(make: Any, inputs: Any, adapter: Any) -> None:
    """Also with other inputs and under the adapter of the context."""
    with dspy.context(adapter=adapter):
        calls = check_selector(make(), inputs, max_examples=10)["selector_calls"]
    assert calls > 20 if isinstance(inputs, list) else calls >= 10


def test_the_program_and_its_lms_are_left_alone_and_it_may_change_its_inputs() -> None:
    """LMs that may not be asked, in the program and in the settings; and the state as it was."""
    popping = Does(lambda self, question: self.inner(question=question.pop()), inner=Program())
    inputs = {"question": ["Where is Doha?"]}
    check_selector(popping, inputs, max_examples=3)
    assert inputs == {"question": ["Where is Doha?"]}
    program, lm = Program(), scripted_lm([])
    before = program.dump_state()
    program.set_lm(lm)
    with dspy.context(lm=lm):
        check_selector(program, INPUTS, max_examples=5)
    assert (lm.requests, program.history, program.get_lm(), program.select.callbacks) == ([], [], lm, [])
    cast("Any", program).set_lm(None)
    assert program.dump_state() == before


class Prefers(Program):  # returns what the judge prefers, in the selector's own prediction
    def choose(self, question: str) -> Any:
        pool = [one.answer for one in self.samples(question)]
        pred = self.select(question=question, candidates=pool, evidence=PASSAGES)
        pred.answer = pred.answer if pred.preference is None else pool[pred.preference]
        return pred


class AsksTheJudge(Program):  # asks the judge after the selector, and returns what it says
    def choose(self, question: str) -> Any:
        pool = [one.answer or "?" for one in self.samples(question)]
        pred = self.select(question=question, candidates=pool, evidence=PASSAGES)
        verdict = self.select.judge(question=question, evidence=PASSAGES, candidates=pool)
        return dspy.Prediction(answer=pool[verdict.preferred]) if verdict.preferred in range(3) else pred


class FirstHop(TwoHops):  # returns the city of the first selector
    def choose(self, question: str) -> Any:
        result = self.bridge(question=question, candidates=["Lusail", "Lusail", "Doha"], evidence=PASSAGES)
        Program.choose(self, question)
        return result


class Awaits(Program):  # ignores the lock only if it is awaited
    async def aforward(self, question: str) -> Any:
        pred = await self.select.acall(question=question, candidates=["Paris", "Doha"], evidence=PASSAGES)
        return dspy.Prediction(answer=pred.consensus)


CONSENSUS = returning("ReturnsConsensus", lambda pred: dspy.Prediction(answer=pred.consensus))
LAWLESS = [Prefers, AsksTheJudge, CONSENSUS, returning("Invents", lambda pred: pred.answer or "Atlantis"), FirstHop]


@pytest.mark.parametrize("make", LAWLESS)
def test_a_program_that_ignores_the_lock_is_found_out(make: Callable[[], dspy.Module]) -> None:
    with pytest.raises(AssertionError, match=r"^\w+ returned '.*'; its selector shipped ") as info:
        check_selector(make(), INPUTS, max_examples=0)
    assert info.value.__notes__[0].startswith("  inputs      {'question': 'What is the capital of Qatar?'}\n")
    refuses(AssertionError, "^Awaits returned 'Paris'; its sel", check_selector, Awaits(), INPUTS, max_examples=1)


NoAnswer = returning("NoAnswer", lambda pred: dspy.Prediction(reply=pred.answer, why=""))


class Bypasses(Program):
    def forward(self, question: str) -> Any:
        first = self.sample(question, 0)
        return first if first.answer == "Doha" else super().forward(question)


class NeverCalls(Program):
    def forward(self, question: str) -> Any:
        return dspy.Prediction(answer=None)


class Empty(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.select = Selector()


def hide(select: Any) -> dspy.Module:
    """A program that has its selector where no module is found."""
    return Does(lambda _, question: select(question=question, candidates=["Doha"]))


class Node(pydantic.BaseModel):  # a type that may hold itself
    text: str
    next: "Node | None"


def test_an_output_that_may_hold_itself_ends_and_the_answer_may_be_in_another_field() -> None:
    schema = Node.model_json_schema()
    assert value_of(schema, "word", 0, schema["$defs"]) == {"text": "word", "next": None}
    assert check_selector(NoAnswer(), INPUTS, answer_field="reply", max_examples=2)["selector_calls"] > 0
    refuses(ArgumentError, "no field 'said'", check_selector, NoAnswer(), INPUTS, answer_field="said", max_examples=2)


def test_an_exception_of_a_program_or_a_role_comes_with_a_small_example() -> None:
    ranks = {"Paris": 1, None: 0, "Doha": 2}  # a bug where an answer of one candidate ships
    raises = returning("Raises", lambda pred: {"answer": pred.answer, "rank": ranks[pred.answer]})
    with pytest.raises(KeyError, match=r"Lyon|97|yes|Qatar|Lusail") as info:
        check_selector(raises(), INPUTS)
    note, *_ = info.value.__notes__
    assert note.startswith("  inputs      {'question': 'What is the capital of Qatar?'}\n")
    assert "\n  LM replies  {'reasoning': " in note and "\n  shipped     " in note
    program = Program()
    program.select.judge = Returns(KeyError("a bug"))
    with pytest.raises(KeyError, match="a bug") as info:
        check_selector(program, INPUTS, max_examples=0)
    assert info.value.__notes__[0].startswith("  inputs ")


MAKERS: dict[str, Callable[[], Any]] = {
    "str": lambda: str, "Predict": lambda: dspy.Predict("question -> answer"), "NoAnswer": NoAnswer,
    "Hidden": lambda: hide(Selector()), "Module": dspy.Module,
    "Nothing": returning("Nothing", lambda pred: None), "Bypasses": Bypasses, "NeverCalls": NeverCalls, "Empty": Empty,
    "Program": Program,
}  # fmt: skip


@each_case("selector", "programs that cannot be checked")
def test_what_cannot_be_checked_is_told_in_a_sentence(make: str, sentence: str) -> None:
    with pytest.raises((ArgumentError, AssertionError)) as info:
        check_selector(MAKERS[make](), [] if make == "Program" else INPUTS, max_examples=2)
    assert says(sentence, str(info.value))
