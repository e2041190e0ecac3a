"""The laws of answer types: what the rule takes for granted of classes, certificates and scores.

    LAWS_OF_TYPES                                   the laws, in order
    law.check(Subject(RULES["majority"]).settle(trial))    as for a law about a rule, on the type of the question

The proof about the rule assumes them (`docs/laws.md`). The two laws on evidence are also laws about rules. A type that
does not keep a law says so in `gives_up`. This module uses only the standard library. Source: ours.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answers import score
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.findings import Finding, Law, law_in, laws_named
from eldgr_dspy.laws.trials import Outcome
from eldgr_dspy.questions import Settings
from eldgr_dspy.text_keys import AnswerClass

Answers = Sequence[str | None]


_OF_TYPES: list[Law] = []
law = law_in(_OF_TYPES)


@law(
    22,
    "The same answers have the same classes and certificates whenever they are asked for.",
    "That they are the right ones.",
)
def a_type_repeats_itself(outcome: Outcome) -> Finding | None:
    answers, again = outcome.trial.question.answers, outcome.again(outcome.trial)
    changed = [answer for answer in answers if outcome.case.certified(answer) is not again.case.certified(answer)]
    kind, votes = outcome.case.type, outcome.case.vote.classes
    classes = [_keys(kind.grouping(answers).classes) for _ in range(2)]
    alone = [_keys([*map(kind.class_of, answers)]) for _ in range(2)]
    fewer = kind.pooled and outcome.trial.settings.refusal == "no_answer"  # without refusals, other answers may connect
    voted = fewer or all(vote in (None, key) for vote, key in zip(votes, classes[0], strict=True))
    repeats = classes[0] == classes[1] and alone[0] == alone[1] and outcome.case.vote == again.case.vote
    holds = not changed and voted and repeats
    return Finding(holds, "the same classes and certificates of the same answers", again) if answers else None


@law(23, "A missing or blank answer has no class, so it does not vote.", "That every other answer votes.")
def no_answer_has_no_class(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    empty = [index for index, answer in enumerate(answers) if not (answer and answer.strip())]
    classes = outcome.case.type.grouping(answers).classes
    voting = [answers[index] for index in empty if classes[index] is not None]
    return Finding(not voting, f"no class of {_listed(voting)}") if empty else None


@law(24, "The same candidates vote together whatever their order.", "That the same spelling ships.")
def candidate_order_changes_no_class(outcome: Outcome) -> Finding | None:
    answers, order = outcome.trial.question.answers, outcome.trial.pool_order
    if list(order) == sorted(order):
        return None
    moved = outcome.case.type.grouping([answers[index] for index in order]).classes
    classes = [moved[order.index(index)] for index in range(len(answers))]
    return _as_together(outcome, classes, f"with the candidates in the order {list(order)}")


@law(
    25,
    "Whether two candidates vote together does not depend on the others, unless the type is `pooled`.",
    "Anything of a `pooled` type: there another candidate may connect two.",
)
def other_candidates_change_no_class(outcome: Outcome) -> Finding | None:
    answers, kind = outcome.trial.question.answers, outcome.case.type
    if kind.pooled or len(answers) < 2:
        return None
    return _as_together(outcome, [*map(kind.class_of, answers)], "where each is read alone")


@law(
    26,
    "An answer that a role repeats is in the class in which the candidate votes.",
    "That another answer of a role joins the class that a reader would choose.",
)
def a_candidate_is_of_its_class(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    grouping = outcome.case.type.grouping(answers)
    apart = [
        answer
        for answer, class_ in zip(answers, grouping.classes, strict=True)
        if _keys([class_]) != _keys([grouping.class_of(answer)])
    ]
    return Finding(not apart, f"the class of the candidate for {_listed(apart)} from a role") if answers else None


@law(27, "Candidates that vote together are certified alike.", "That they would be in other pools.")
def a_certificate_is_of_a_class(outcome: Outcome) -> Finding | None:
    pairs, case = _spelled(outcome), outcome.case
    unlike = [pair for pair in pairs if case.certified(pair[0]) is not case.certified(pair[1])]
    return Finding(not unlike, f"one certificate for {_listed(unlike[0] if unlike else ())}") if pairs else None


@law(
    28,
    "Under the default certificate, answers that vote together are certified alike, whichever of them a pool has.",
    "Anything of the other certificates: under `token`, case decides.",
)
def a_spelling_changes_no_certificate(outcome: Outcome) -> Finding | None:
    pairs = _spelled(outcome) if outcome.trial.settings.certificate == Settings().certificate else []
    for pair in pairs:
        alone = [outcome.again(outcome.trial.with_answer(answer)) for answer in pair]
        if alone[0].mark is not alone[1].mark:
            weaker = min(alone, key=lambda found: found.mark is True)
            return Finding(False, f"one certificate for {_listed(pair)}, each as the only candidate", weaker)
    return Finding(True, "one certificate for each spelling") if pairs else None


@law(
    29,
    "A gold answer by which some answer is right is right itself, and a missing answer is not.",
    "That answers that vote together score alike: exact match tells some of them apart.",
)
def a_gold_answer_is_right(outcome: Outcome) -> Finding | None:
    kind, gold, answers = outcome.case.type, outcome.trial.gold, outcome.trial.question.answers
    right = [answer for answer in (None, *answers) if gold and kind.is_right(answer, [gold])]
    if not right:
        return None
    return Finding(None not in right and kind.is_right(gold, [gold]), f"{gold!r} as right if it is gold, and not None")


@law(
    30,
    "The score of an answer says that it is right if, and only if, it is.",
    "Anything of the official score, which may read answers differently.",
)
def a_score_says_what_is_right(outcome: Outcome) -> Finding | None:
    kind, gold, answers = outcome.case.type, outcome.trial.gold, outcome.trial.question.answers
    unlike = [answer for answer in answers if gold and score(answer, [gold], kind).em != kind.is_right(answer, [gold])]
    return Finding(not unlike, f"a score that says whether {_listed(unlike)} is right by {gold!r}") if gold else None


# -- what the statements share -----------------------------------------------------------------------------------------


def _spelled(outcome: Outcome) -> list[tuple[str, str]]:
    """Different answers of the pool that vote together, in pairs."""
    spellings = dict.fromkeys(filter(None, outcome.trial.question.answers))
    return [pair for pair in combinations(spellings, 2) if outcome.case.same(*pair)]


def _as_together(outcome: Outcome, classes: Sequence[AnswerClass | None], where: str) -> Finding | None:
    """Check that the same candidates vote together as in the pool."""
    answers = outcome.trial.question.answers
    here, there = _keys(outcome.case.type.grouping(answers).classes), _keys(classes)
    for one, other in combinations(range(len(answers)), 2):
        together, then = (None is not keys[one] == keys[other] for keys in (here, there))
        if together is not then:
            said = "vote together" if together else "do not vote together"
            return Finding(False, f"that {_listed([answers[one], answers[other]])} {said} {where} too")
    holds = [key is None for key in here] == [key is None for key in there]
    return Finding(holds, f"the same candidates with a class {where}")


def _keys(classes: Sequence[AnswerClass | None]) -> list[str | None]:
    return [class_.key if class_ else None for class_ in classes]


def _listed(answers: Answers) -> str:
    return " and ".join(f"{answer!r:.60}" for answer in answers)


_ABOUT_EVIDENCE = [law for law in LAWS if law.number == 12]
LAWS_OF_TYPES: tuple[Law, ...] = (*_OF_TYPES[:7], *_ABOUT_EVIDENCE, *_OF_TYPES[7:])
_KEPT = "a_type_repeats_itself"
"""The law that no type can give up: without it no decision could be replayed, and no bound would hold."""


def kept(kind: AnswerType, laws: Sequence[Law]) -> Iterator[Law]:
    """Yield those of the laws that a type does not give up.

    Raises:
        ArgumentError: It gives up something that is not a law, or a law that no type can give up.
    """
    known = [law for law in {law.name: law for law in (*LAWS, *LAWS_OF_TYPES)}.values() if law.name != _KEPT]
    given_up = laws_named(f"{kind.name}.gives_up", kind.gives_up, known)
    yield from (law for law in laws if law not in given_up)
