"""Check a whole program: what the selectors inside it decide, and that the program returns what they ship.

It needs Hypothesis, which the package does not install. Import `check_program` from `eldgr_dspy.programs.testing`;
`docs/how-to/test-your-program.md` shows it at work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from inspect import signature
from typing import Any, TypeAlias

import dspy
from dspy import lm15
from hypothesis import settings
from hypothesis import strategies as st

from eldgr_dspy.cases import Case
from eldgr_dspy.errors import ArgumentError, ReplyError, brief
from eldgr_dspy.laws import LAW, Law, LawBroken
from eldgr_dspy.laws.of_types import kept
from eldgr_dspy.laws.reporting import reported
from eldgr_dspy.laws.statements import Finding
from eldgr_dspy.laws.trials import Outcome, Trial, table
from eldgr_dspy.programs.checking import laws_left, outcome_of, require_laws, trial_of
from eldgr_dspy.programs.falsifying import falsified
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.invocations import fields_of
from eldgr_dspy.programs.planned_replies import Item, Plan, deciding
from eldgr_dspy.programs.rehearsals import Call, Rehearsal, rehearsed, selectors_in, staged
from eldgr_dspy.questions import Question
from eldgr_dspy.strategies import lm_replies

Inputs: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any] | dspy.Example] | st.SearchStrategy[Any]"

_SAME = LAW["sync_equals_async_equals_batch_equals_replay"]
_CALLS, _MOST_LISTED, _MOST_SAID = "selector_calls", 8, 12
_FAILURES: tuple[Item, ...] = (lm15.ServerError("down"), lm15.TimeoutError("late"), "", "I do not know.")
_PLANS = (
    Plan((-4,)),  # no answer
    Plan((0,)),  # an answer that is not in the evidence
    Plan((1,)),  # one that mostly is
    Plan((0,), repairer=1),
    *(Plan((0, 0, 1), judge=judge, repairer=repairer) for judge in range(3) for repairer in (-1, 2)),
    Plan((1, 1, 0), judge=2, repairer=2, deriver=2),
    Plan((-3, -3, 1), judge=2, repairer=1),  # a yes
    Plan((0, 0, 1, 2), judge=3, repairer=2, scores=(0.1, 0.9)),
    Plan((0, 0, 1), judge=lm15.ServerError("down"), repairer="Doha"),
    Plan((0, 0, 1, lm15.ServerError("down"), ""), judge=2),
)
"""What is tried on each input before anything is drawn."""

_numbers = st.integers(-4, 6)
_replies: st.SearchStrategy[Item] = st.integers(0, 5).flatmap(
    lambda number: st.sampled_from(_FAILURES) | lm_replies() if number == 5 else _numbers
)
_plans = st.builds(
    Plan,
    samples=st.lists(_numbers, min_size=1, max_size=6).map(tuple)
    | st.lists(_replies, min_size=1, max_size=6).map(tuple),
    judge=_replies,
    repairer=_replies,
    deriver=_replies,
    scores=st.lists(st.sampled_from((0.0, 0.5, 1.0)), max_size=3).map(tuple),
)


def check_program(
    program: dspy.Module,
    inputs: Inputs,
    *,
    answer_field: str | None = None,
    without: Sequence[str] = (),
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a program that contains a `Selector` against the laws, and return how many decisions each law applied to.

    A copy of the program is called with the inputs, and awaited if it can be. A scripted LM replaces every LM in it.
    What it replies is planned: first a few fixed plans on each of the first inputs, then plans that Hypothesis draws.
    The words of an answer are taken from what the program shows to the LM, so that some answers are certified. One
    plan in a few has a call that fails, or a reply that cannot be read.

    Each decision of each selector is checked against the laws 1 to 8, and against the rule alone over the same roles
    (law 18). Then the program's answer must vote with the one that its selector shipped: the last that was called, or
    one of several that overlap. So a program that returns the judge's preference is found out. A program that returns
    an answer without having called a selector is refused too.

    It samples, so no count is a proof. It does not check what the program does where its selector raised, nor other
    fields than the answer, nor how good the samples are. Tools, searches and files are really used. An LM in a closure,
    or in an object that is not a module, is not replaced.

    Args:
        program: The program; it is not called itself and not changed.
        inputs: What it is called with: a mapping of arguments, several mappings or `dspy.Example`s, or a Hypothesis
            strategy of these.
        answer_field: The field of the program's prediction that holds the answer; by default its selector's. A program
            may also return the answer itself, as text or a number.
        without: The names of laws to leave out.
        max_examples: How many examples are drawn; by default, as many as the Hypothesis profile says.

    Raises:
        LawBroken: With the inputs, the question that the selector got, and what was returned.
        ArgumentError: The program has no selector or never calls it, cannot be called with the inputs, or returns
            something without an answer.
        Exception: Whatever the program raises, unless an LM's failed call or unreadable reply is the reason. The note
            of every exception has the example, made small.
    """
    __tracebackhide__ = True
    if not isinstance(program, dspy.Module):
        raise ArgumentError(f"program must be a dspy.Module; got {program!r:.80}. Make it one, and call it.")
    if not selectors_in(program):
        raise ArgumentError(
            f"program must contain a Selector; {type(program).__name__} has none among its modules. Make it an"
            " attribute, as in self.select = Selector()."
        )
    if max_examples is not None and max_examples < 1:
        raise ArgumentError(f"max_examples must be a whole number of at least 1; got {max_examples!r}.")
    check = _Check(program, answer_field, laws_left(without))
    failure = check.failure(inputs, settings().max_examples if max_examples is None else max_examples)
    if failure is not None:
        raise failure
    return dict(check.tried)


class _Check:
    """Checks one program on many examples, and counts."""

    def __init__(self, program: dspy.Module, answer_field: str | None, laws: Sequence[Law]) -> None:
        self.tried = Counter({_CALLS: 0, **{law.name: 0 for law in laws if law.number <= 8 or law is _SAME}})
        self._program, self._answer_field, self._laws = program, answer_field, laws
        self._passed: Exception | None = None
        # Of the class, since DSPy warns of `program.forward` when it is not called by DSPy.
        forwards = {False: getattr(type(program), "forward", None), True: getattr(type(program), "aforward", None)}
        self._ways = {awaited: forward for awaited, forward in forwards.items() if forward is not None}
        if not self._ways:
            raise ArgumentError(f"{type(program).__name__} has neither forward nor aforward. Write one of them.")

    def failure(self, inputs: Inputs, most: int) -> Exception | None:
        """Return what the smallest example raises, None if none raises."""
        listed = None if isinstance(inputs, st.SearchStrategy) else self._listed(inputs)
        examples = ((given, plan) for plan in _PLANS for given in (listed or ())[:_MOST_LISTED])
        try:
            for example in examples:
                self._hold(example)
        except Exception as error:  # noqa: BLE001 - it is raised again, without our frames
            return reported(error)
        drawn = inputs if isinstance(inputs, st.SearchStrategy) else st.sampled_from(listed or ())
        failed = falsified(st.tuples(drawn, _plans), self._hold, most)
        if failed is None and not self.tried[_CALLS]:
            why = f"; it raised {type(self._passed).__name__}" if self._passed else ""
            return ArgumentError(
                f"{type(self._program).__name__} never called its Selector, so nothing was checked{why}. Call it as"
                " self.select(...) for these inputs, or give others."
            )
        return failed

    def _listed(self, inputs: Any) -> list[dict[str, Any]]:
        if isinstance(inputs, str) or not isinstance(inputs, Mapping | dspy.Example | Sequence):
            raise ArgumentError(
                f"inputs must be a mapping of the program's arguments, a list of these, or a Hypothesis strategy; got"
                f" {inputs!r:.80}. Write {{'question': ...}}."
            )
        several = [inputs] if isinstance(inputs, Mapping | dspy.Example) else [*inputs]
        if not several:
            raise ArgumentError("inputs must have at least one mapping; got none, so nothing would be tried.")
        return [self._arguments(one, f"inputs[{index}]") for index, one in enumerate(several)]

    def _arguments(self, given: Any, name: str = "inputs") -> dict[str, Any]:
        """Return the arguments of one call; they must be such that the program can be called with them."""
        if isinstance(given, dspy.Example):
            try:
                given = given.inputs()
            except ValueError:
                raise ArgumentError(
                    f"{name} is an Example that does not say which fields are inputs. Call .with_inputs(...) on it."
                ) from None
        if not isinstance(given, Mapping | dspy.Example):
            raise ArgumentError(f"{name} must be a mapping of the program's arguments; got {given!r:.80}.")
        arguments = {str(key): value for key, value in given.items()}
        forward = next(iter(self._ways.values()))
        try:
            signature(forward).bind(self._program, **arguments)
        except TypeError as error:
            taken = ", ".join([*signature(forward).parameters][1:])
            place = f"{type(self._program).__name__}.{forward.__name__}({taken})"
            raise ArgumentError(f"{name} must fit {place}; {error}.") from None
        return arguments

    def _hold(self, example: tuple[Any, Plan]) -> None:
        """Check one example in each way to call; raises with the example."""
        inputs, plan = self._arguments(example[0]), example[1]
        for awaited in self._ways:
            run = rehearsed(self._program, deepcopy(inputs), plan, awaited=awaited)
            try:
                self._require_lawful(run)
                self._require_shipped(run)
            except LawBroken as broken:
                lines = (("program", f"called with {_shown(inputs)}"), *broken.found.lines)
                raise LawBroken(broken.law, broken.outcome, broken.found._replace(lines=lines)) from None
            except Exception as error:
                error.add_note(f"Falsifying example:\n{table(_described(run, inputs, awaited))}")
                raise

    def _require_lawful(self, run: Rehearsal) -> None:
        for call in run.calls:
            if call.question is not None and call.error is None and call.ended:
                trial, fields = self._trial(run, call), fields_of(call.pred)
                self.tried.update(
                    (_CALLS, *require_laws(call.select, trial, fields, [*kept(call.select.type, self._laws)]))
                )
                self.tried.update([_SAME.name] if _SAME in self._laws else [])

    def _trial(self, run: Rehearsal, call: Call) -> Trial:
        """The question of a call, and the roles' replies, asked of another copy."""
        if call.question is None:
            raise ArgumentError(
                f"{call.name} must be called with question, candidates and perhaps evidence and answer, and with lists"
                " rather than iterators, so that its decision can be checked."
            )
        with staged(self._program, run.plan) as apart, deciding(call.question):
            return trial_of(apart.selectors.get(call.name, call.select), call.question)

    def _require_shipped(self, run: Rehearsal) -> None:
        """Require that the program returned what its selector shipped, or raised because of the LM."""
        if run.error is not None:
            if not _is_of_the_lm(run.error):
                raise run.error
            self._passed = run.error
            return
        final = run.final
        answer = self._answer(run, final)
        if not final and answer:
            raise ArgumentError(
                f"The program returned {answer!r:.80} without having called a selector. Return what its selector ships,"
                " or no answer."
            )
        if not final or any(call.error is not None or _agrees(call, answer) for call in final):
            return
        outcome = outcome_of(final[-1].select, self._trial(run, final[-1]), fields_of(final[-1].pred))
        returned = replace(outcome, decision=replace(outcome.decision, answer=answer))
        demanded = f"{outcome.answer!r}, which its selector ships; the program returned {answer!r}"
        raise LawBroken(_law_broken_by(returned, self._laws), outcome, Finding(False, demanded))

    def _answer(self, run: Rehearsal, final: Sequence[Call]) -> str | None:
        """Return the program's answer as text, read as a candidate's is."""
        returned, name = run.returned, type(self._program).__name__
        shipped = [fields_of(call.pred)["answer"] for call in final if call.error is None]
        if returned is None and any(shipped):
            raise ArgumentError(
                f"{name} returned None; its selector shipped {shipped[-1]!r:.60}. Return a dspy.Prediction."
            )
        if isinstance(returned, dspy.Example | Mapping):
            field = self._answer_field or (final[-1].select.answer_field if final else "answer")
            if field not in returned:
                raise ArgumentError(
                    f"The prediction of {name} has no field {field!r}; it has {', '.join(map(repr, returned.keys()))}."
                    " Name the field that holds the answer: check_program(..., answer_field=...)."
                )
            returned = returned[field]
        if returned is None or (isinstance(returned, str) and not returned.strip()):
            return None
        asked = final[-1].question if final and final[-1].question else Question("", "retrieval", ())
        try:
            return to_question("", [returned], None, asked.type, "answer", asked.options).answers[0]
        except ArgumentError:
            return str(returned)


def _agrees(call: Call, answer: str | None) -> bool:
    """Whether a program's answer is what a selector shipped, in whatever spelling of its class."""
    shipped = fields_of(call.pred)["answer"]
    if not shipped or not answer:
        return not shipped and not answer
    return shipped == answer or (call.question is not None and Case(call.question).same(shipped, answer))


def _law_broken_by(returned: Outcome, laws: Sequence[Law]) -> Law:
    """The first law that would be broken if a selector shipped what the program returned."""
    for law in laws:
        try:
            if law.number <= 8:
                law.check(returned)
        except LawBroken:
            return law
    return _SAME


def _is_of_the_lm(error: BaseException | None) -> bool:
    """Whether a call that did not come through, or a reply that could not be read, is the reason of an error."""
    if isinstance(error, dspy.LMError | dspy.AdapterParseError | ReplyError):
        return True
    return error is not None and _is_of_the_lm(error.__cause__)


def _described(run: Rehearsal, inputs: Mapping[str, Any], awaited: bool) -> Iterator[tuple[str, str]]:
    yield "inputs", _shown(inputs)
    yield "way", "awaited" if awaited else "called"
    said = [brief(repr(one), 120) for one in run.said[:_MOST_SAID]]
    more = [f"and {len(run.said) - _MOST_SAID} more"] if len(run.said) > _MOST_SAID else []
    yield "LM replies", "\n".join([*said, *more]) or "none"
    for call in run.calls:
        ended = "raised" if call.error is not None else "shipped"
        yield (
            call.name.removeprefix("self.") or "self",
            f"{ended} {brief(repr(call.error or call.pred.get('answer')), 120)}",
        )


def _shown(inputs: Mapping[str, Any]) -> str:
    return brief(repr(dict(inputs)), 600)
