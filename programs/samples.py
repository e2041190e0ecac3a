"""Samples of a program: what a selector is given of them, and what is returned with its decision."""

import inspect
from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, get_origin

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.lms.rollouts import Trace
from eldgr_dspy.programs.plain_decisions import PREDICTION_FIELDS
from eldgr_dspy.programs.typed_answers import as_candidate, as_type, outputs, type_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import Role

_EVIDENCE = ("evidence", "context", "passages")
_MEDIA = (dspy.Image, dspy.Audio, dspy.File)
_SETTINGS = ("lm", "config", "demos", "signature")  # of a call of a predictor


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of a program: why it failed, or what it returned, also as a candidate, and the passages it retrieved."""

    trace: Trace
    error: Exception | None = None
    prediction: dspy.Prediction | None = None
    candidate: Mapping[str, Any] | None = None
    passages: tuple[Passage, ...] | None = None


class UnfitProgramError(ArgumentError):
    """A program returned something that cannot be a candidate."""


def require_prediction(output: Any, name: str, field: str, advice: str) -> dspy.Prediction:
    """Return what a program returned; raise an `UnfitProgramError` unless it is a prediction with the field."""
    if not isinstance(output, dspy.Prediction):
        text = " ".join(repr(output).split())
        raise UnfitProgramError(f"{name} must return a dspy.Prediction with {field!r}; got {text:.80}.")
    if field not in output:
        names = ", ".join(map(repr, output.keys())) or "no field"
        raise UnfitProgramError(f"The prediction of {name} has no field {field!r}; it has {names}. {advice}")
    return output


def require_free_names(program: dspy.Module, field: str) -> None:
    """Refuse a predictor that has another output than the answer under a name of the selector's prediction."""
    predictor = program.predict if isinstance(program, dspy.ChainOfThought) else program
    names = outputs(predictor) if isinstance(predictor, dspy.Predict) else ()
    if twice := sorted(PREDICTION_FIELDS.intersection(names) - {field}):
        raise ArgumentError(
            f"program must have no output {twice[0]!r} beside {field!r}, because the selector's prediction has a field"
            " of that name. Rename it in the program's signature."
        )


def by_name(program: dspy.Module, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call by name. Those given by position have the names of the program's `forward`."""
    if not args:
        return dict(inputs)
    names = [one.name for one in parameters_of(program) if one.kind is one.POSITIONAL_OR_KEYWORD][: len(args)]
    if len(args) > len(names) or isinstance(program, dspy.Predict):
        raise TypeError(f"{type(program).__name__} takes its inputs by name; got {len(args)} by position.")
    if twice := [name for name in names if name in inputs]:
        raise TypeError(f"{type(program).__name__} got {twice[0]!r} by position and by name.")
    return dict(zip(names, args, strict=True)) | dict(inputs)


def parameters_of(program: dspy.Module) -> list[inspect.Parameter]:
    """Return the parameters of a program's `forward`, or of its `aforward` if it has no other."""
    kind: Any = type(program)
    return [*inspect.signature(kind.forward if hasattr(kind, "forward") else kind.aforward).parameters.values()][1:]


def copy_collections(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs of which a program may change the lists, sets and dicts, without effect on the caller's."""
    return {name: copy(value) if isinstance(value, list | set | dict) else value for name, value in inputs.items()}


def question_of(inputs: Mapping[str, Any]) -> str:
    """Return the input `question`, or the only input that is not evidence, or all of them with their names."""
    content = {name: value for name, value in inputs.items() if name not in _SETTINGS or isinstance(value, str)}
    fields = {name: value for name, value in (content or inputs).items() if name not in _EVIDENCE}
    if isinstance(fields.get("question"), str):
        return str(fields["question"])
    if len(fields) == 1 and isinstance(only := next(iter(fields.values())), str):
        return only
    # A picture or a sound is named in short; its text is the whole file.
    texts = {name: repr(value) if isinstance(value, _MEDIA) else value for name, value in fields.items()}
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def candidate_of(prediction: dspy.Prediction, field: str) -> dict[str, Any]:
    """Return a sample as a candidate of a selector; raises as `as_candidate` does."""
    return {**prediction.toDict(), field: as_candidate(prediction[field])}


def passages_of_sample(
    outputs: Container[str], fields: Mapping[str, Any], output: dspy.Prediction, trace: Trace, field: str | None = None
) -> tuple[Passage, ...] | None:
    """Return the passages of a sample: among its inputs, in its prediction, or else what its predictors were given."""
    # What an LM wrote is not evidence: neither one of the `outputs` nor a passage that is the output of a predictor.
    names = [name for name in ((field,) if field else _EVIDENCE) if name not in outputs]
    if values := [place[name] for place in (fields, output) for name in names if place.get(name) is not None]:
        return to_passages(values[0])
    passages: list[Passage] | None = None
    texts = set[Any]()
    for _, inputs, prediction in trace:  # in order: what an LM copies from a passage was not written by it
        for value in (inputs[name] for name in names if inputs.get(name) is not None):
            with nullcontext() if field else suppress(ArgumentError):  # an inner input of such a name may be anything
                passages = [*(passages or ()), *(one for one in to_passages(value) if one.text not in texts)]
        for value in prediction.values():
            with suppress(ArgumentError):
                texts.update(as_candidate([value]).leaves())
    return None if passages is None else tuple(dict.fromkeys(passages))


def gives_evidence(inputs: Mapping[str, Any]) -> bool:
    """Return whether the evidence is among the inputs."""
    return any(inputs.get(name) is not None for name in _EVIDENCE)


def evidence_of(inputs: Mapping[str, Any], samples: Sequence[Sample]) -> Any:
    """Return the evidence among the inputs, or else the passages of the samples, each once."""
    if gives_evidence(inputs):
        return next(inputs[name] for name in _EVIDENCE if inputs.get(name) is not None)
    retrievals = [one.passages for one in samples if one.passages is not None]
    return list(dict.fromkeys(passage for passages in retrievals for passage in passages)) if retrievals else None


def shipment(
    question: Question,
    settings: Settings,
    decision: Mapping[str, Any],
    predictions: Sequence[dspy.Prediction | None],
    types: Mapping[str, Any],
    field: str,
    withholds: bool,
) -> tuple[dict[str, Any], int | None]:
    """Return the fields of a decision with the answer in its type, and which sample ships, or None if none has it."""
    values = {name: str(value) if isinstance(value, str) else value for name, value in decision.items()}
    answers = [None if one is None else one[field] for one in predictions]
    kind = types.get(field) or next((type_of(one) for one in answers if one is not None), str)
    answer: Any = decision["answer"]
    index = _sample_with(answer, question, settings)
    if index is None and answer is not None and kind is not str:
        try:
            answer = as_type(answer, kind)
        except ValueError:
            values |= _without(settings.type_of(question).repairer, decision, kind, withholds)
            answer, index = values["answer"], _sample_with(values["answer"], question, settings)
    if index is not None and (type(answers[index]) is not str or get_origin(kind) is Literal):
        answer = answers[index]
    final = str(answer) if isinstance(answer, str) and kind is str else answer
    evidence = {"passages": [show_passage(one.title, one.text) for one in question.passages]}
    return {**evidence, **values, "answer": final, field: final}, index


def with_completions(
    values: Mapping[str, Any], predictions: Sequence[dspy.Prediction | None], index: int | None
) -> dspy.Prediction:
    """Return a prediction with these values, the other fields of the sample that ships, and all samples."""
    names = dict.fromkeys(name for one in predictions if one is not None for name, _ in one.items())
    columns = {name: [None if one is None else one.get(name) for one in predictions] for name in names}
    prediction = dspy.Prediction.from_completions(columns)
    fields = {name: None if index is None else column[index] for name, column in columns.items()}
    for name, value in {**fields, **values}.items():
        prediction[name] = value
    return prediction


def _sample_with(answer: str | None, question: Question, settings: Settings) -> int | None:
    """Return the earliest sample with an answer as it is spelled, else the earliest that votes with it."""
    if answer is None or answer in question.answers:  # found without comparing, which may take long
        return None if answer is None else question.answers.index(answer)
    case, answers = Case(question, settings), enumerate(question.answers)
    return next((index for index, one in answers if one is not None and case.same(one, answer)), None)


def _without(role: Role, decision: Mapping[str, Any], kind: Any, withholds: bool) -> dict[str, Any]:
    """Return what changes in a decision if the role whose answer ships had abstained: uncertified consensus ships."""
    reason = f"{decision['answer']!r:.80} is not of the type {getattr(kind, '__name__', None) or kind}"
    return {
        "answer": None if withholds else decision["consensus"],
        "branch": "consensus",
        "reason": "no_answers" if decision["consensus"] is None else "default",
        "certified": False,
        "witness": None,
        "abstentions": {**decision["abstentions"], role: reason},
    }
