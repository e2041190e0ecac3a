"""Turn what a role returned into a reply that a rule can rely on: range, finiteness and membership are checked here.

An LM's types are only a hint to the LM. They are enforced here, once, for every source of replies (a role module, a
journal, a replay). A reply that does not pass is an `Abstention` that says why.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.errors import ReplyError
from eldgr_dspy.rule.certifying import certificates_in
from eldgr_dspy.rule.consultations import Abstention, Consultation, Derivation, Heard, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import Consulted, Role, is_role

MOST_OTHERS = 15
"""Of more further samples of a derivation the rest is not read."""


class _Invalid(Exception):
    """An invalid value in a reply; the message becomes the abstention's reason."""


def read_reply(role: Role, content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> Reply:
    """Return the reply in `content`, or an `Abstention` with the reason why there is not one.

    Args:
        role: The role that was asked.
        content: The fields that it returned. `{"abstained": reason}` states an abstention, and `kind` may say of
            which kind.
        answers: The pool's answers; a judge may only prefer a candidate that has one.
        n_passages: How many passages the evidence has.
    """
    try:
        return _reply(role, content, answers, n_passages)
    except _Invalid as invalid:
        return Abstention(str(invalid), "invalid")


def reply_to(question: Question, role: Role, content: Mapping[str, Any]) -> Reply:
    """Return the reply as `read_reply` does, for a role that was asked this question."""
    return read_reply(role, content, question.answers, len(question.passages))


def heard_from(question: Question, name: Consulted, content: Mapping[str, Any]) -> Heard:
    """Return what a role or a certificate says of this question, from the fields that it returned."""
    return reply_to(question, name, content) if is_role(name) else certificates_in(content)


def journaled_reply(question: Question, entry: Consultation) -> Heard:
    """Return the reply of a consultation on this question as a rule sees it; a failed call is an abstention."""
    return entry.abstention or heard_from(question, entry.role, entry.content or {})


def require_reply(role: Role, content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> Reply:
    """Return the reply as `read_reply` does, but raise a ReplyError for an invalid one."""
    try:
        return _reply(role, content, answers, n_passages)
    except _Invalid as invalid:
        raise ReplyError(f"The {role} returned an invalid reply: {invalid}.") from invalid


def read_scores(
    content: Mapping[str, Any], field: str, n: int, names: Sequence[str]
) -> dict[int, list[float | None]] | Abstention:
    """Return the scores that a channel scorer states of `n` steps, by step, or an `Abstention` that says why not.

    Each entry has the number of its `step`, from 0, and scores from 0 to 1 by `names`; a missing one is None. The whole
    is an abstention if an entry belongs to no step, a step has two, or a value is not a score: an LM that counts or
    scores wrongly in one place is not trusted in another.
    """
    if "abstained" in content:
        reason = content["abstained"]
        return Abstention.from_content(reason if isinstance(reason, str) else _value_text(reason), content)
    try:
        return _scores(content.get(field), field, n, names)
    except _Invalid as invalid:
        return Abstention(str(invalid), "invalid")


def _scores(entries: Any, field: str, n: int, names: Sequence[str]) -> dict[int, list[float | None]]:
    if not isinstance(entries, list):
        raise _Invalid(f"{field} is {_value_text(entries)}, not a list")
    scores: dict[int, list[float | None]] = {}
    for at, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise _Invalid(f"{field}[{at}] is {_value_text(entry)}, not an object")
        step = _index(entry, "step", n)
        if step in scores:
            raise _Invalid(f"{field} has two entries for step {step}")
        values = {name: entry.get(name) for name in names}
        _require_units(values, f"{field}[{at}]")
        scores[step] = [None if value is None else float(value) for value in values.values()]
    return scores


def _reply(role: Role, content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> Reply:
    if "abstained" in content:
        reason = content["abstained"]
        return Abstention.from_content(reason if isinstance(reason, str) else _value_text(reason), content)
    if role == "judge":
        return _verdict(content, answers)
    return _repair(content, n_passages) if role == "repairer" else _derivation(content)


def _verdict(content: Mapping[str, Any], answers: Sequence[str | None]) -> Verdict:
    preferred = _index(content, "preferred", len(answers))
    if answer_class(answers[preferred], "retrieval") is None:  # in either task a blank answer is not an answer
        raise _Invalid(f"preferred={preferred} is a candidate without an answer")
    rationale = _optional_text(content, "judge_rationale")
    try:
        return Verdict(preferred, _scalars(content.get("assessments"), len(answers)), rationale)
    except _Invalid as invalid:  # no rule needs the scores
        return Verdict(preferred, None, rationale, f"{invalid}")


def _scalars(assessments: Any, n: int) -> tuple[float, ...] | None:
    if assessments is None or assessments == []:
        return None
    if not isinstance(assessments, Sequence) or isinstance(assessments, str) or len(assessments) != n:
        raise _Invalid(f"assessments are not a list of {n}, one a candidate")
    for index, assessment in enumerate(assessments):
        if not isinstance(assessment, Mapping):
            raise _Invalid(f"assessments[{index}] is not an object")
        _require_units(assessment, f"assessments[{index}]")
    scalars = [assessment.get("scalar") for assessment in assessments]
    return None if any(scalar is None for scalar in scalars) else tuple(map(float, scalars))


def _require_units(values: Mapping[str, Any], where: str) -> None:
    for name, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value <= 1):  # NaN is in no range
            raise _Invalid(f"{where}.{name} is {_value_text(value)}, not a number from 0 to 1")


def _repair(content: Mapping[str, Any], n_passages: int) -> Repair | Abstention:
    answer = _text(content, "repaired_answer").strip()
    if not answer:
        return Abstention("no span")  # as it is asked to say where no passage answers
    passage = content.get("repair_passage")
    if passage is None or (type(passage) is int and passage == -1):
        return Repair(answer)
    try:
        return Repair(answer, _index(content, "repair_passage", n_passages))
    except _Invalid as invalid:  # a hint, since the span is looked for in all passages
        return Repair(answer, None, f"{invalid}")


def _derivation(content: Mapping[str, Any]) -> Derivation:
    steps = content.get("derivation_steps")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise _Invalid("derivation_steps are not a list")
    answer = _text_or_number(content, "derived_answer").strip()
    if not answer:
        raise _Invalid("no derived answer")
    others = content.get("other_derivations") or ()
    if not isinstance(others, Sequence) or not all(isinstance(other, Mapping) for other in others):
        raise _Invalid("other_derivations are not a list of objects")
    check = _optional_text(content, "consistency_check")
    further = tuple(_derivation({**other, "other_derivations": None}) for other in others[:MOST_OTHERS])
    return Derivation(tuple(map(_step, steps)), answer, check, further)


def _step(step: Any) -> Step:
    if not isinstance(step, Mapping):
        raise _Invalid(f"a derivation step is {_value_text(step)}, not an object with expression and value")
    return Step(_text(step, "expression"), _text_or_number(step, "value"))


def _index(content: Mapping[str, Any], name: str, n: int) -> int:
    value = content.get(name)
    if type(value) is not int or not 0 <= value < n:
        problem = f"is not a whole number from 0 to {n - 1}" if n else "points to a passage, but there are none"
        raise _Invalid(f"{name}={_value_text(value)} {problem}")
    return value


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise _Invalid(f"{name}={_value_text(value)} is not text")
    return value


def _text_or_number(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e75  # shown whole
    return _value_text(value) if is_number else _text(content, name)


def _optional_text(content: Mapping[str, Any], name: str) -> str:
    return _text(content, name) if content.get(name) is not None else ""


def _value_text(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except (ValueError, RecursionError):  # a whole number of too many digits, a list of too many lists
        return f"{type(value).__name__} that is too large to show"
