"""The laws of a rule about what must not matter: the order of evidence and candidates, scores, and spelling."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from eldgr_dspy.certificates import is_as_written
from eldgr_dspy.laws.findings import Finding, Law, law
from eldgr_dspy.laws.trials import Outcome
from eldgr_dspy.rule.consultations import Repair, Verdict
from eldgr_dspy.text.stripping import strip_answer

DECORATIONS = (
    *(f"{{}}{end}" for end in ".!…。,"),
    *(f"{mark}{{}}{mark}" for mark in ("**", "_", "`", '"', "'")),
    *(f"{opening}{{}}{closing}" for opening, closing in ("“”", "«»", "「」", "()", "[]")),
    *("# {}", "<b>{}</b>", "<answer>{}</answer>", "\\boxed{{}}", "$\\text{{}}$"),
    *("  {} \n", "\u200b{}\ufeff", "**“{}.”**", '“"{}"”'),
)
"""Marks around an answer, which replaces `{}`, that are not part of it."""


@law(
    12,
    "The same passages in another order, or some of them twice, certify the same and ship the same class by the same"
    " branch.",
)
def evidence_order_and_duplicates_do_not_matter(outcome: Outcome) -> Finding | None:
    passages = outcome.trial.question.passages
    if not passages:
        return None
    other = outcome.again(outcome.trial.about(passages=(*passages[::-1], passages[0])))
    marked = all(outcome.case.certified(text) is other.case.certified(text) for text in outcome.trial.question.answers)
    demand = "the same, certificates too, with the passages backwards and the first of them twice"
    return Finding(marked and outcome.agrees(other), demand, other)


@law(12, "An answer that some passages certify is certified by these and more, and a final consensus stays final.")
def more_evidence_never_uncertifies(outcome: Outcome) -> Finding | None:
    answers = dict.fromkeys((*outcome.trial.question.answers, outcome.answer, outcome.repair))
    marked = [answer for answer in answers if outcome.case.certified(answer) is not False]
    if not (outcome.trial.more and marked):
        return None
    other = outcome.again(outcome.trial.about(passages=(*outcome.trial.question.passages, *outcome.trial.more)))
    lost = [answer for answer in marked if other.case.certified(answer) not in {outcome.case.certified(answer), True}]
    final = outcome.case.task == "retrieval" and outcome.mark is not False
    more = [passage.text for passage in outcome.trial.more]
    return Finding(not lost and (outcome.agrees(other) or not final), f"the same certificates with {more} added", other)


@law(
    13,
    "Whatever the scores are, the ranking has every supported candidate before every other, and what ships is of the"
    " same stratum.",
)
def scores_never_cross_strata(outcome: Outcome) -> Finding | None:
    verdict = outcome.trial.reply("judge")
    if not isinstance(verdict, Verdict) or not verdict.scores:
        return None
    scores = tuple(1 - score for score in verdict.scores)
    other = outcome.again(outcome.trial.replying("judge", replace(verdict, scores=scores)))
    alike = outcome.agrees(other) if outcome.trial.settings.preference == "global" else outcome.branch == other.branch
    rankings = [list(side.decision.ranking) for side in (outcome, other)]
    demand = f"the same stratum with the scores {list(scores)}, and rankings by stratum, which are {rankings}"
    return Finding(alike and is_stratified(outcome) and is_stratified(other), demand, other)


@law(14, "Consensus is the class with the most votes and, of several with as many, that of the earliest candidate.")
def ties_go_to_the_earliest(outcome: Outcome) -> Finding | None:
    classes = outcome.classes
    if sum(map(len, classes)) < 2:
        return None
    most = max(map(len, classes))
    leaders = [class_ for class_ in classes if len(class_) == most]
    earliest = outcome.trial.question.answers[leaders[0][0]]
    holds = outcome.keeps(earliest) and outcome.decision.tie == (len(leaders) > 1)
    return Finding(holds, f"{earliest!r} as consensus, the earliest of {len(leaders)} with as many votes as any")


@law(14, "Without a tie, the same candidates in another order ship the same class by the same branch.")
def candidate_order_does_not_matter(outcome: Outcome) -> Finding | None:
    question, verdict = outcome.trial.question, outcome.trial.reply("judge")
    scores = getattr(verdict, "scores", None) or ()
    tied = outcome.trial.settings.preference == "stratum" and len(set(scores)) < len(scores)
    if len(question.answers) < 2 or outcome.decision.tie or tied:
        return None
    if isinstance(verdict, Verdict):  # the same reply about the same candidates
        place = len(question.answers) - 1 - verdict.preferred
        verdict = replace(verdict, preferred=place, scores=scores[::-1] or None)
    turned = outcome.trial.about(answers=question.answers[::-1], texts=question.texts[::-1])
    other = outcome.again(turned.replying("judge", verdict))
    return Finding(outcome.agrees(other), "the same with the candidates backwards", other)


@law(
    14,
    "Of a class, the earliest spelling found in the evidence as written ships, else the earliest spelling; which"
    " candidate wrote it does not matter.",
)
def spelling_within_a_class_does_not_matter(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    members = next((group for group in outcome.classes if outcome.case.same(answers[group[0]], outcome.answer)), [])
    if outcome.branch not in ("consensus", "judge") or len({answers[index] for index in members}) < 2:
        return None
    as_written = [index for index in members if _stands_as_written(outcome, members, index)]
    expected = answers[min(as_written, default=members[0])]
    turned = dict(zip(members, [*members[1:], members[0]], strict=True))
    spellings = tuple(answers[turned.get(index, index)] for index in range(len(answers)))
    other = outcome.again(outcome.trial.about(answers=spellings))
    demand = f"{expected!r}, and an answer of its class where the candidates are spelled {list(spellings)}"
    return Finding(outcome.answer == expected and outcome.agrees(other), demand, other)


@law(
    21,
    "Full stops, quotes, brackets, Markdown, HTML and LaTeX around answers change neither the class that ships nor"
    " the branch nor a certificate.",
)
def spelling_does_not_decide(outcome: Outcome) -> Finding | None:
    if outcome.case.settings.certificate == "substring":
        return None
    answers, repair = outcome.trial.question.answers, outcome.trial.reply("repairer")
    turn = sum(len(answer or "") for answer in answers) % len(DECORATIONS)
    for several in (
        DECORATIONS[:1],
        ("# {}",),
        (*DECORATIONS[turn:], *DECORATIONS[:turn]),
    ):  # a heading has a word more
        spellings = tuple(map(decorate, answers, cycle(several)))
        trial = outcome.trial.about(answers=spellings)
        if isinstance(repair, Repair):
            trial = trial.replying("repairer", Repair(decorate(repair.answer, several[-1]) or repair.answer))
        other = outcome.again(trial)
        same_marks = (outcome.mark, outcome.decision.certified) == (other.mark, other.decision.certified)
        if not (outcome.agrees(other) and same_marks):
            return Finding(False, f"the same where the candidates are spelled {list(spellings)}", other)
    return Finding(True, "the same in every spelling") if any(answers) else None


def decorate(answer: str | None, decoration: str) -> str | None:
    """Return an answer in a decoration; unchanged if it would not be stripped to the same answer."""
    spelling = decoration.replace("{}", answer or "", 1)
    return spelling if answer is not None and strip_answer(spelling) == strip_answer(answer) else answer


def is_stratified(outcome: Outcome) -> bool:
    """Whether the ranking has every candidate once, supported ones first."""
    case, answers = outcome.case, outcome.trial.question.answers
    derived = outcome.derived if "deriver" in outcome.roles else None

    def is_behind(answer: str | None) -> bool:
        if case.task == "arithmetic":
            return not case.same(answer, derived)
        return not case.same(answer, answer) or case.certified(answer) is False or case.refuses(answer)

    ranked = outcome.decision.ranking
    behind = [is_behind(answers[index]) for index in ranked]
    return sorted(ranked) == [*range(len(answers))] and behind == sorted(behind)


def _stands_as_written(outcome: Outcome, members: Sequence[int], index: int) -> bool:
    """Whether a class would be certified as written if all its members were spelled as this one."""
    answers = outcome.trial.question.answers
    spellings = tuple(answers[index if place in members else place] for place in range(len(answers)))
    question = replace(outcome.trial.question, answers=spellings)
    certificate = outcome.subject.case(question, outcome.trial.settings).certificate(answers[index])
    return certificate.certified is True and is_as_written(certificate)


INVARIANCES = tuple(one for one in (*vars().values(),) if isinstance(one, Law))
