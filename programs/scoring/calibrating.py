"""Choose the threshold of free text on judged pairs, and measure how often what it certifies is supported.

A pair is an answer with passages of which a person said whether they support it. The questions are dealt into two
halves. On the first, the threshold is the lowest one of which the precision of "certified" has an exact lower bound
(Clopper & Pearson 1934) at the wanted value, so that the recall is the largest. That bound has looked at many
thresholds, so it is measured anew on the second half. It holds for pairs like these, drawn independently: give one pair
a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eldgr_dspy.answer_types.entailment.about import GOAL
from eldgr_dspy.answer_types.entailment.calibration import Calibration
from eldgr_dspy.answer_types.entailment.readings import NLI
from eldgr_dspy.answer_types.free_text import FreeText
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.files import read_lines, read_object, require_file
from eldgr_dspy.questions import Question
from eldgr_dspy.rows import PassageRow
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics.guarantees import questions_without_loss
from eldgr_dspy.statistics.inputs import inside
from eldgr_dspy.statistics.proportions import proportion_upper_bound

_LEAST = 0.5  # a threshold is above this


class JudgedPair(BaseModel):
    """An answer to a question, its passages, and whether these support all that the answer says and that it answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    question: Annotated[str, Field(max_length=1_000_000)]
    answer: Annotated[str, Field(max_length=1_000_000)]
    passages: list[PassageRow]
    supported: bool


@dataclass(frozen=True, slots=True)
class Scored:
    """A pair with its support in [0, 1], as free text has it."""

    support: float
    supported: bool


def read_pairs(path: Path) -> tuple[list[JudgedPair], str]:
    """Return the pairs of a file of JSON lines, and the hash of their lines.

    Raises:
        PoolError: The file cannot be read, or a line is not a pair; it names the line.
    """
    require_file(path)
    pairs, digest = list[JudgedPair](), sha256()
    for number, line in read_lines(path):
        if line.strip():
            digest.update(line + b"\n")
            pairs.append(_pair(read_object(line, f"{path}, line {number}"), f"{path}, line {number}"))
    return pairs, digest.hexdigest()


def calibrate(
    nli: NLI,
    pairs: Sequence[JudgedPair],
    digest: str,
    *,
    precision: float = 0.9,
    level: float = 0.95,
    goal: str = GOAL,
) -> Calibration:
    """Return the calibration of a model on judged pairs.

    Args:
        nli: The model, or a function as `FreeText` takes it.
        pairs: Judged pairs, apart from any pool on which the calibration will be used.
        digest: The hash of the pairs.
        precision: The wanted precision of "certified", strictly between 0 and 1.
        level: The confidence of its lower bound.
        goal: The goal with which `FreeText` will be made.

    Raises:
        ArgumentError: There are too few pairs, or no threshold reaches the precision; it says how many are needed.
    """
    wanted, level = inside("precision", precision, "Give 0.9 for 90%"), inside("level", level, "Give 0.95 for 95%")
    halves = _halves(pairs)
    _require_enough(halves, questions_without_loss(1 - wanted, level=level), wanted)
    kind = FreeText(nli, goal=goal)
    first, second = ([Scored(_support(kind, pair), pair.supported) for pair in half] for half in halves)
    threshold = _lowest(first, wanted, level)
    right, n, lower = _measured(second, threshold, level)
    if n == 0:
        raise ArgumentError(f"PAIRS must have certified pairs in both halves; at {threshold:.3f} the second has none.")
    return Calibration(
        model=kind.reader,
        threshold=threshold,
        wanted=wanted,
        precision=right / n,
        lower=lower,
        level=level,
        recall=right / sum(one.supported for one in second),
        chosen_on=len(first),
        measured_on=len(second),
        certified=n,
        sha256=digest,
    )


def _pair(record: Any, where: str) -> JudgedPair:
    try:
        return JudgedPair.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise PoolError(
            f"{where}: {field} is wrong ({first['msg']}); a pair is an object with question, answer, passages (objects "
            "with title and text) and supported (true or false)."
        ) from None


def _halves(pairs: Sequence[JudgedPair]) -> tuple[list[JudgedPair], list[JudgedPair]]:
    """Deal the questions into two halves by their hashes; the pairs of a question stay together."""
    questions = {folded_question(pair.question) for pair in pairs}
    dealt = sorted(questions, key=lambda question: sha256(question.encode(errors="surrogatepass")).digest())
    first = frozenset(dealt[::2])
    halves: tuple[list[JudgedPair], list[JudgedPair]] = [], []
    for pair in pairs:
        halves[folded_question(pair.question) not in first].append(pair)
    return halves


def _require_enough(halves: Sequence[Sequence[JudgedPair]], needed: int, wanted: float) -> None:
    supported = [sum(pair.supported for pair in half) for half in halves]
    if min(supported) < needed:
        raise ArgumentError(
            f"PAIRS must have at least {needed} supported pairs in each half of its questions, so that the lower bound "
            f"can reach a precision of {wanted:g}; got {supported[0]} and {supported[1]}. Give {2 * needed} or more "
            "supported pairs, each of another question, or a lower --precision."
        )


def _support(kind: FreeText, pair: JudgedPair) -> float:
    passages = tuple(Passage(one.title, one.text) for one in pair.passages)
    question = Question(pair.question, kind.name, (pair.answer,), passages=passages, kind=kind)
    evidence = kind.of(question).free_text_evidence(passages)
    return 0.0 if evidence.certify(pair.answer).certified is None else evidence.support(pair.answer).value


def _lowest(scored: Sequence[Scored], wanted: float, level: float) -> float:
    """The lowest threshold of which the bound is at the wanted precision."""
    reached, best = 0.0, (0, 0)
    for threshold in sorted({one.support for one in scored if one.support > _LEAST}):
        right, n, lower = _measured(scored, threshold, level)
        if lower >= wanted:
            return threshold
        reached, best = max((reached, best), (lower, (right, n)))
    raise ArgumentError(
        f"No threshold reaches a precision of {wanted:g}: the greatest lower bound on the first half is {reached:.3f}, "
        f"where {best[0]} of {best[1]} certified pairs are supported. Give more pairs, another model or a lower "
        "--precision."
    )


def _measured(scored: Sequence[Scored], threshold: float, level: float) -> tuple[int, int, float]:
    """How many certified pairs are supported, how many are certified, and the lower bound of their share."""
    certified = [one.supported for one in scored if one.support >= threshold]
    right, n = sum(certified), len(certified)
    return right, n, 1 - proportion_upper_bound(n, n - right, level=level) if n else 0.0
