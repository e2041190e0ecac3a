"""The laws of answer types: what the rule takes for granted of classes, certificates and scores.

The proof about the rule assumes them (`docs/laws.md`). A type that does not keep a law says so in `gives_up`. This
module uses only the standard library. Source: ours.
"""

from collections.abc import Sequence
from itertools import combinations

from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.trials import Finding, Law, Outcome, find_laws, law
from eldgr_dspy.matching.text_keys import AnswerClass
from eldgr_dspy.rule.questions import Settings


@law(22, "The same answers have the same classes and certificates whenever they are asked for.")
def a_type_repeats_itself(outcome: Outcome) -> Finding | None:
    answers, again = outcome.trial.question.answers, outcome.again(outcome.trial)
    kind, votes = outcome.case.type, outcome.case.vote.classes
    classes = [_keys(kind.grouping(answers).classes) for _ in range(2)]
    alone = [_keys([*map(kind.class_of, answers)]) for _ in range(2)]
    marks = [[case.certified(answer) for answer in answers] for case in (outcome.case, again.case)]
    fewer = kind.pooled and outcome.trial.settings.refusal == "no_answer"  # without refusals, other answers may connect
    votes_agree = fewer or all(vote in (None, key) for vote, key in zip(votes, classes[0], strict=True))
    repeats = all(one == other for one, other in (classes, alone, marks)) and outcome.case.vote == again.case.vote
    return Finding(votes_agree and repeats, "the same classes and certificates of the same answers", again)


@law(23, "A missing or blank answer has no class, so it does not vote.")
def no_answer_has_no_class(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    empty = [index for index, answer in enumerate(answers) if not (answer and answer.strip())]
    classes = outcome.case.type.grouping(answers).classes
    voting = [answers[index] for index in empty if classes[index] is not None]
    return Finding(not voting, f"no class of {_join(voting)}") if empty else None


@law(24, "The same candidates vote together whatever their order.")
def candidate_order_changes_no_class(outcome: Outcome) -> Finding | None:
    backwards = outcome.case.type.grouping(outcome.trial.question.answers[::-1]).classes
    return _as_together(outcome, backwards[::-1], "with the candidates backwards") if len(backwards) > 1 else None


@law(25, "Whether two candidates vote together does not depend on the others, unless the type is `pooled`.")
def other_candidates_change_no_class(outcome: Outcome) -> Finding | None:
    answers, kind = outcome.trial.question.answers, outcome.case.type
    if kind.pooled or len(answers) < 2:
        return None
    return _as_together(outcome, [*map(kind.class_of, answers)], "where each is read alone")


@law(26, "An answer that a role repeats is in the class in which the candidate votes.")
def a_candidate_is_of_its_class(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    grouping = outcome.case.type.grouping(answers)
    own = zip(answers, _keys(grouping.classes), _keys([*map(grouping.class_of, answers)]), strict=True)
    apart = [answer for answer, vote, repeat in own if vote != repeat]
    return Finding(not apart, f"the class of the candidate for {_join(apart)} from a role") if answers else None


@law(27, "Candidates that vote together are certified alike.")
def a_certificate_is_of_a_class(outcome: Outcome) -> Finding | None:
    pairs, case = _spellings(outcome), outcome.case
    unlike = [pair for pair in pairs if case.certified(pair[0]) is not case.certified(pair[1])]
    return Finding(not unlike, f"one certificate for {_join(unlike[0] if unlike else ())}") if pairs else None


@law(28, "Under the default certificate, answers that vote together are certified alike, whichever of them a pool has.")
def a_spelling_changes_no_certificate(outcome: Outcome) -> Finding | None:
    pairs = _spellings(outcome) if outcome.trial.settings.certificate == Settings().certificate else []
    for pair in pairs:
        alone = [outcome.again(outcome.trial.about(answers=(answer,), texts=())) for answer in pair]
        if alone[0].mark is not alone[1].mark:
            weaker = min(alone, key=lambda one: one.mark is True)
            return Finding(False, f"one certificate for {_join(pair)}, each as the only candidate", weaker)
    return Finding(True, "one certificate for each spelling") if pairs else None


@law(29, "A gold answer by which some answer is right is right itself, beside others too; a missing answer is not.")
def a_gold_answer_is_right(outcome: Outcome) -> Finding | None:
    kind, gold, answers = outcome.case.type, outcome.trial.gold, outcome.trial.question.answers
    if not (right := [answer for answer in (None, *answers) if gold and kind.is_right(answer, [gold])]):
        return None
    wrong = [answer for answer in answers if answer and answer.strip() and answer not in right][:1]
    lists = [gold], [gold, *wrong], [*wrong, gold]
    holds = None not in right and all(kind.is_right(one, golds) for golds in lists for one in (gold, *right))
    same = all(kind.is_right(one, lists[1]) == kind.is_right(one, lists[2]) for one in wrong)
    beside = f", alone or beside {_join(wrong)}," if wrong else ","
    return Finding(holds and same, f"{gold!r} as right if it is gold{beside} and not None")


@law(30, "The score of an answer says that it is right if, and only if, it is.")
def a_score_says_what_is_right(outcome: Outcome) -> Finding | None:
    kind, gold, answers = outcome.case.type, outcome.trial.gold, outcome.trial.question.answers
    unlike = [answer for answer in answers if gold and score(answer, [gold], kind).em != kind.is_right(answer, [gold])]
    return Finding(not unlike, f"a score that says whether {_join(unlike)} is right by {gold!r}") if gold else None


def _spellings(outcome: Outcome) -> list[tuple[str, str]]:
    spellings = dict.fromkeys(filter(None, outcome.trial.question.answers))
    return [pair for pair in combinations(spellings, 2) if outcome.case.same(*pair)]


def _as_together(outcome: Outcome, classes: Sequence[AnswerClass | None], where: str) -> Finding | None:
    keys = _keys(outcome.case.type.grouping(outcome.trial.question.answers).classes), _keys(classes)
    here, there = ([key and one.index(key) for key in one] for one in keys)
    movers = [a for a, one, other in zip(outcome.trial.question.answers, here, there, strict=True) if one != other]
    return Finding(not movers, f"the same candidates in one class {where}; {_join(movers)} moved")


def _keys(classes: Sequence[AnswerClass | None]) -> list[str | None]:
    return [class_.key if class_ else None for class_ in classes]


def _join(answers: Sequence[str | None]) -> str:
    return " and ".join(f"{answer!r:.60}" for answer in answers)


LAWS_OF_TYPES: tuple[Law, ...] = (
    *(one for one in (*vars().values(),) if isinstance(one, Law)),
    *(law for law in LAWS if law.number == 12),
)


def laws_of_type(kind: AnswerType, laws: Sequence[Law]) -> list[Law]:
    """Return the laws that a type does not give up. It cannot give up that it repeats itself: replays need that."""
    all_laws = dict.fromkeys(law for law in (*LAWS, *LAWS_OF_TYPES) if law is not a_type_repeats_itself)
    given_up = find_laws(f"{kind.name}.gives_up", kind.gives_up, [*all_laws], "a type may give up")
    return [law for law in laws if law not in given_up]
