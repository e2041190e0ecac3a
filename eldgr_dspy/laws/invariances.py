"""The laws of a rule about what must not matter: the order of evidence and candidates, scores, and spelling."""

from collections.abc import Sequence
from dataclasses import replace

from eldgr_dspy.certificates import is_as_written
from eldgr_dspy.consultations import Repair, Verdict
from eldgr_dspy.laws.decorations import DECORATIONS, decorated, respellings
from eldgr_dspy.laws.findings import Finding, Law, law_in
from eldgr_dspy.laws.trials import Outcome, Trial

INVARIANCES: list[Law] = []
law = law_in(INVARIANCES)


@law(
    12,
    "The same passages in another order, or some of them twice, certify the same and ship the same class by the"
    " same branch.",
    "The same witness, or the same replies of an LM that reads the passages.",
)
def evidence_order_and_duplicates_do_not_matter(outcome: Outcome) -> Finding | None:
    passages, order = outcome.trial.question.passages, outcome.trial.evidence_order
    if not order:
        return None
    other = outcome.again(outcome.trial.with_evidence(tuple(passages[index] for index in order)))
    marked = all(outcome.case.certified(text) is other.case.certified(text) for text in outcome.trial.question.answers)
    return Finding(
        marked and outcome.agrees(other),
        f"the same, certificates too, with the passages in the order {list(order)}",
        other,
    )


@law(
    12,
    "An answer that some passages certify is certified by these and more, and a final consensus stays final.",
    "That an override stays one: more evidence may certify consensus.",
)
def more_evidence_never_uncertifies(outcome: Outcome) -> Finding | None:
    answers = dict.fromkeys((*outcome.trial.question.answers, outcome.answer, outcome.repair))
    marked = [answer for answer in answers if outcome.case.certified(answer) is not False]
    if not (outcome.trial.more and marked):
        return None
    other = outcome.again(outcome.trial.with_evidence((*outcome.trial.question.passages, *outcome.trial.more)))
    lost = [answer for answer in marked if other.case.certified(answer) not in {outcome.case.certified(answer), True}]
    final = outcome.task == "retrieval" and outcome.mark is not False
    more = [passage.text for passage in outcome.trial.more]
    return Finding(not lost and (outcome.agrees(other) or not final), f"the same certificates with {more} added", other)


@law(
    13,
    "Whatever the scores are, the ranking has every supported candidate before every other, and what ships is of"
    " the same stratum.",
    "That scores are meaningless: within a stratum they rank.",
)
def scores_never_cross_strata(outcome: Outcome) -> Finding | None:
    verdict, scores = outcome.trial.reply("judge"), outcome.trial.other_scores
    if not isinstance(verdict, Verdict) or not verdict.scores or len(scores) != len(verdict.scores):
        return None
    other = outcome.again(outcome.trial.replying("judge", replace(verdict, scores=scores)))
    alike = outcome.agrees(other) if outcome.trial.settings.preference == "global" else outcome.branch == other.branch
    rankings = [list(side.decision.ranking) for side in (outcome, other)]
    demanded = f"the same stratum with the scores {list(scores)}, and rankings by stratum, which are {rankings}"
    return Finding(alike and is_stratified(outcome) and is_stratified(other), demanded, other)


@law(
    14,
    "Consensus is the class with the most votes and, of several with as many, that of the earliest candidate.",
    "That the earliest is likelier to be right.",
)
def ties_go_to_the_earliest(outcome: Outcome) -> Finding | None:
    classes = outcome.classes
    if sum(map(len, classes)) < 2:
        return None
    most = max(map(len, classes))
    leaders = [class_ for class_ in classes if len(class_) == most]
    earliest = outcome.trial.question.answers[leaders[0][0]]
    holds = outcome.keeps(earliest) and outcome.decision.tie == (len(leaders) > 1)
    return Finding(holds, f"{earliest!r} as consensus, the earliest of {len(leaders)} with as many votes as any")


@law(
    14,
    "Without a tie, the same candidates in another order ship the same class by the same branch.",
    "The same spelling, or anything where votes or, under `stratum`, scores are equal: the earliest is taken.",
)
def candidate_order_does_not_matter(outcome: Outcome) -> Finding | None:
    order, scores = outcome.trial.pool_order, getattr(outcome.trial.reply("judge"), "scores", None) or ()
    tied = outcome.trial.settings.preference == "stratum" and len(set(scores)) < len(scores)
    if list(order) == sorted(order) or outcome.decision.tie or tied:
        return None
    other = outcome.again(_reordered(outcome.trial))
    return Finding(outcome.agrees(other), f"the same with the candidates in the order {list(order)}", other)


@law(
    14,
    "Of a class, the earliest spelling found in the evidence as written ships, else the earliest spelling; which"
    " candidate wrote it does not matter.",
    "That this spelling scores best: the official score tells some spellings of a class apart.",
)
def spelling_within_a_class_does_not_matter(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    members = next((group for group in outcome.classes if outcome.case.same(answers[group[0]], outcome.answer)), [])
    if outcome.branch not in ("consensus", "judge") or len({answers[index] for index in members}) < 2:
        return None
    written = [index for index in members if _stands_as_written(outcome, members, index)]
    expected = answers[min(written, default=members[0])]
    turned = dict(zip(members, [*members[1:], members[0]], strict=True))
    spelled = tuple(answers[turned.get(index, index)] for index in range(len(answers)))
    other = outcome.again(outcome.trial.with_answers(spelled))
    demanded = f"{expected!r}, and an answer of its class where the candidates are spelled {list(spelled)}"
    return Finding(outcome.answer == expected and outcome.agrees(other), demanded, other)


@law(
    21,
    "Full stops, quotes, brackets, Markdown, HTML and LaTeX around answers change neither the class that ships"
    " nor the branch nor a certificate.",
    "Anything of `substring`, the paper's letter: there spelling decides.",
)
def spelling_does_not_decide(outcome: Outcome) -> Finding | None:
    if outcome.case.settings.certificate == "substring":
        return None
    answers, repair = outcome.trial.question.answers, outcome.trial.reply("repairer")
    for spelled in respellings(answers):
        trial = outcome.trial.with_answers(spelled)
        if isinstance(repair, Repair):
            again = decorated(repair.answer, DECORATIONS[len(repair.answer) % len(DECORATIONS)])
            trial = trial.replying("repairer", Repair(again or repair.answer))
        other = outcome.again(trial)
        holds = (
            outcome.agrees(other)
            and outcome.mark == other.mark
            and outcome.decision.certified == other.decision.certified
        )
        if not holds:
            return Finding(False, f"the same where the candidates are spelled {list(spelled)}", other)
    return Finding(True, "the same in every spelling") if any(answers) else None


def is_stratified(outcome: Outcome) -> bool:
    """Whether the ranking has every candidate once, supported ones first."""
    case, answers = outcome.case, outcome.trial.question.answers
    derived = case.derived(outcome.trial.reply("deriver")) if "deriver" in outcome.asked else None

    def is_behind(answer: str | None) -> bool:
        if case.task == "arithmetic":
            return not case.same(answer, derived)
        return not case.same(answer, answer) or case.certified(answer) is False or case.refuses(answer)

    ranked = outcome.decision.ranking
    behind = [is_behind(answers[index]) for index in ranked]
    return sorted(ranked) == [*range(len(answers))] and behind == sorted(behind)


def _stands_as_written(outcome: Outcome, members: Sequence[int], index: int) -> bool:
    """Whether a class would be certified as written if all its members were spelled as this one."""
    spelled = list(outcome.trial.question.answers)
    for member in members:
        spelled[member] = outcome.trial.question.answers[index]
    question = replace(outcome.trial.question, answers=tuple(spelled))
    certificate = outcome.subject.case(question, outcome.trial.settings).certificate(spelled[index])
    return certificate.certified is True and is_as_written(certificate)


def _reordered(trial: Trial) -> Trial:
    """The same candidates in the trial's other order, and the judge's reply about the same candidates."""
    question, order, verdict = trial.question, trial.pool_order, trial.reply("judge")
    moved = replace(
        question,
        answers=tuple(question.answers[index] for index in order),
        texts=tuple(question.texts[index] for index in order) if question.texts else (),
    )
    if isinstance(verdict, Verdict):
        scores = tuple(verdict.scores[index] for index in order) if verdict.scores else None
        verdict = replace(verdict, preferred=order.index(verdict.preferred), scores=scores)
    return replace(trial.replying("judge", verdict), question=moved)
