"""The laws of a rule: what ships and who is asked, and what must not matter (order, scores, spelling).

Each has its claim and its check, which returns None if the law does not apply to the outcome. A check counts classes
and asks for certificates itself instead of relying on the rule's own account.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from eldgr_dspy.certificates import is_as_written
from eldgr_dspy.decision import always, evidence_locked
from eldgr_dspy.laws.trials import SILENT, Finding, Law, Outcome, as_code, law
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Verdict
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import ROLES, Branch, Role

_FAILURE = Abstention("failed: the call timed out")
DECORATIONS = (
    *(f"{{}}{end}" for end in ".!…。,"),
    *(f"{mark}{{}}{mark}" for mark in ("**", "_", "`", '"', "'")),
    *(f"{opening}{{}}{closing}" for opening, closing in ("“”", "«»", "「」", "()", "[]")),
    *("# {}", "<b>{}</b>", "<answer>{}</answer>", "\\boxed{{}}", "$\\text{{}}$"),
    *("  {} \n", "\u200b{}\ufeff", "**“{}.”**", '“"{}"”'),
)
"""Marks around an answer, which replaces `{}`, that are not part of it."""


@law(1, "In retrieval a certified consensus ships, whatever any role would reply, and nobody is asked.")
def certified_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is True else None


@law(1, "In retrieval a consensus to which no certificate applies (a yes, no or refusal) ships, and nobody is asked.")
def inapplicable_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is None else None


def _final(outcome: Outcome) -> Finding | None:
    if outcome.case.task != "retrieval":
        return None
    holds, demand, _ = _shipment(outcome, "consensus", outcome.case.consensus)
    return Finding(holds and not outcome.roles, f"{demand}, and nobody asked")


@law(2, "A consensus that is right and certified is not replaced by a wrong answer.")
def no_correct_certified_consensus_is_overridden(outcome: Outcome) -> Finding | None:
    if not (_is_right(outcome, outcome.case.consensus) and outcome.supports(outcome.case.consensus)):
        return None
    return Finding(_is_right(outcome, outcome.decision.answer), f"a right answer; right is {outcome.trial.gold!r}")


@law(3, "What ships in the place of consensus carries a certificate; in arithmetic, a checked derivation.")
def override_needs_a_certificate(outcome: Outcome) -> Finding | None:
    if outcome.keeps(outcome.decision.answer):
        return None
    return Finding(outcome.supports(outcome.decision.answer), "consensus, or a certified answer")


@law(4, "In retrieval a certified preference ships if consensus is uncertified, whatever the repairer would say.")
def certified_preference_outranks_repair(outcome: Outcome) -> Finding | None:
    branch, preference = _eq3(outcome)
    return _shipment(outcome, branch, preference) if branch == "judge" else None


@law(5, "In retrieval a repair ships only where neither consensus nor the judge's preference is certified.")
def repair_only_when_neither_is_certified(outcome: Outcome) -> Finding | None:
    if outcome.case.task != "retrieval" or outcome.decision.branch != "repair":
        return None
    holds = outcome.mark is False and not outcome.admits(outcome.preference)
    return Finding(holds, "no repair, since consensus is not uncertified or the preference is certified")


@law(6, "Where nothing else carries what may override, consensus ships.")
def default_is_consensus(outcome: Outcome) -> Finding | None:
    if outcome.admits(outcome.repair) or (outcome.case.task == "retrieval" and outcome.admits(outcome.preference)):
        return None
    return _shipment(outcome, "consensus", outcome.case.consensus)


@law(7, "What ships is consensus, the judge's preference or the repair, and the branch says which.")
def answer_is_consensus_preference_or_repair(outcome: Outcome) -> Finding | None:
    branch, answer = outcome.decision.branch, outcome.decision.answer
    replies = {"judge": (outcome.preference, outcome.nominee), "repair": (outcome.repair,)}
    is_kept = branch == "consensus" and answer == outcome.case.consensus
    is_replied = answer is not None and answer in replies.get(branch, ())
    return Finding(is_kept or is_replied, "the answer that the branch names")


@law(8, "Exactly one case of Eq. 3 holds, whatever the three certificates (true, false, inapplicable), and decides.")
def the_cases_partition(outcome: Outcome) -> Finding | None:
    return _shipment(outcome, *_eq3(outcome))


def _eq3(outcome: Outcome) -> tuple[Branch, str | None]:
    """What the case of Eq. 3 that holds ships."""
    is_retrieval = outcome.case.task == "retrieval"
    if not (is_retrieval and outcome.mark is not False):
        if is_retrieval and outcome.admits(outcome.preference):
            return "judge", outcome.preference
        if outcome.admits(outcome.repair):
            return "repair", outcome.repair
    return "consensus", outcome.case.consensus


@law(9, "Asking only what can still matter and asking every role first give the same answer and branch.")
def lazy_equals_always(outcome: Outcome) -> Finding | None:
    rule = outcome.subject.rule
    roles: tuple[Role, ...] = outcome.case.roles() if rule is evidence_locked else ROLES
    if not set(outcome.roles) <= set(roles):
        return Finding(False, f"no role beyond those that are always asked: {', '.join(roles) or 'none'}")
    full = replace(outcome.subject, rule=always(rule, lambda _: roles)).settle(outcome.trial)
    same = (outcome.decision.answer, outcome.decision.branch) == (full.decision.answer, full.decision.branch)
    return Finding(same, "the same where every role is asked first", full)


@law(10, "Two judges differ only where consensus is uncertified and a preference certified; in arithmetic never.")
def judges_differ_only_where_admissible(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.roles:
        return None
    answers = outcome.trial.question.answers
    others = (Verdict(index) for index, *_ in outcome.classes if answers[index] != outcome.nominee)
    other = outcome.again(outcome.trial.replying("judge", rival := next(others, SILENT)))
    if outcome.agrees(other):
        return None
    admits = outcome.admits(outcome.preference) or other.admits(other.preference)
    holds = outcome.case.task == "retrieval" and outcome.mark is False and admits
    return Finding(holds, f"the same where the judge replies {as_code(rival)}", other)


@law(11, "Where a wrong answer replaces a right consensus, the wrong answer is certified.")
def a_regression_needs_a_certified_wrong_answer(outcome: Outcome) -> Finding | None:
    if not _is_right(outcome, outcome.case.consensus) or _is_right(outcome, outcome.decision.answer):
        return None
    demand = f"a right or a certified answer; right is {outcome.trial.gold!r}"
    return Finding(outcome.supports(outcome.decision.answer), demand)


@law(12, "The same passages in another order, or some twice, certify the same and ship the same class and branch.")
def evidence_order_and_duplicates_do_not_matter(outcome: Outcome) -> Finding | None:
    if not (passages := outcome.trial.question.passages):
        return None
    other = outcome.again(outcome.trial.about(passages=(*passages[::-1], passages[0])))
    same = all(outcome.case.certified(text) is other.case.certified(text) for text in outcome.trial.question.answers)
    demand = "the same, certificates too, with the passages backwards and the first of them twice"
    return Finding(same and outcome.agrees(other), demand, other)


@law(12, "An answer that some passages certify is certified by these and more, and a final consensus stays final.")
def more_evidence_never_uncertifies(outcome: Outcome) -> Finding | None:
    answers = dict.fromkeys((*outcome.trial.question.answers, outcome.decision.answer, outcome.repair))
    firm = [answer for answer in answers if outcome.case.certified(answer) is not False]
    if not (outcome.trial.more and firm):
        return None
    other = outcome.again(outcome.trial.about(passages=(*outcome.trial.question.passages, *outcome.trial.more)))
    gaps = [answer for answer in firm if other.case.certified(answer) not in {outcome.case.certified(answer), True}]
    final = outcome.case.task == "retrieval" and outcome.mark is not False
    more = [passage.text for passage in outcome.trial.more]
    return Finding(not gaps and (outcome.agrees(other) or not final), f"the same certificates with {more} added", other)


@law(13, "Whatever the scores, the ranking has supported candidates first, and what ships is of the same stratum.")
def scores_never_cross_strata(outcome: Outcome) -> Finding | None:
    verdict = outcome.trial.reply("judge")
    if not isinstance(verdict, Verdict) or not verdict.scores:
        return None
    scores = tuple(1 - score for score in verdict.scores)
    other = outcome.again(outcome.trial.replying("judge", replace(verdict, scores=scores)))
    is_global = outcome.trial.settings.preference == "global"
    alike = outcome.agrees(other) if is_global else outcome.decision.branch == other.decision.branch
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
    has_tie = outcome.trial.settings.preference == "stratum" and len(set(scores)) < len(scores)
    if len(question.answers) < 2 or outcome.decision.tie or has_tie:
        return None
    if isinstance(verdict, Verdict):  # the same reply about the same candidates
        place = len(question.answers) - 1 - verdict.preferred
        verdict = replace(verdict, preferred=place, scores=scores[::-1] or None)
    backwards = outcome.trial.about(answers=question.answers[::-1], texts=question.texts[::-1])
    other = outcome.again(backwards.replying("judge", verdict))
    return Finding(outcome.agrees(other), "the same with the candidates backwards", other)


@law(14, "Of a class the earliest spelling found as written in the evidence ships, or else the earliest of all.")
def spelling_within_a_class_does_not_matter(outcome: Outcome) -> Finding | None:
    answers = outcome.trial.question.answers
    classes = (one for one in outcome.classes if outcome.case.same(answers[one[0]], outcome.decision.answer))
    members = next(classes, [])
    if outcome.decision.branch not in ("consensus", "judge") or len({answers[index] for index in members}) < 2:
        return None
    verbatim = [index for index in members if _stands_verbatim(outcome, members, index)]
    earliest = answers[min(verbatim, default=members[0])]
    rotation = dict(zip(members, [*members[1:], members[0]], strict=True))
    spellings = tuple(answers[rotation.get(index, index)] for index in range(len(answers)))
    other = outcome.again(outcome.trial.about(answers=spellings))
    demand = f"{earliest!r}, and an answer of its class where the candidates are spelled {list(spellings)}"
    return Finding(outcome.decision.answer == earliest and outcome.agrees(other), demand, other)


@law(15, "A judge whose call failed or was late, or whose reply is unusable, changes as much as a judge that abstains.")
def failed_judge_equals_silent_judge(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.roles:
        return None
    failing, silent = (outcome.again(outcome.trial.replying("judge", reply)) for reply in (_FAILURE, SILENT))
    return Finding(failing.agrees(silent), "the same where the judge abstains as silent and as failed", failing)


@law(16, "In arithmetic a derivation that fails its check ships the same as a deriver that abstains.")
def unchecked_derivation_changes_nothing(outcome: Outcome) -> Finding | None:
    reply = outcome.trial.reply("deriver")
    if outcome.case.task != "arithmetic" or not isinstance(reply, Derivation) or outcome.case.check(reply).passed:
        return None
    silent = outcome.again(outcome.trial.replying("deriver", SILENT))
    return Finding(outcome.agrees(silent), "the same where the deriver is silent", silent)


@law(17, "Where all candidates that answer agree, no judge is asked.")
def homogeneous_pools_consult_no_judge(outcome: Outcome) -> Finding | None:
    if len(outcome.classes) > 1:
        return None
    return Finding("judge" not in (*outcome.roles, *outcome.case.roles()), "no judge asked")


@law(21, "Stops, quotes, brackets, Markdown, HTML and LaTeX around answers change no class, branch or certificate.")
def spelling_does_not_decide(outcome: Outcome) -> Finding | None:
    if outcome.case.settings.certificate == "substring":
        return None
    answers, repair = outcome.trial.question.answers, outcome.trial.reply("repairer")
    turn = sum(len(answer or "") for answer in answers) % len(DECORATIONS)
    rotation = (*DECORATIONS[turn:], *DECORATIONS[:turn])
    for several in (DECORATIONS[:1], ("# {}",), rotation):  # a heading has a word more
        spellings = tuple(map(decorate, answers, cycle(several)))
        trial = outcome.trial.about(answers=spellings)
        if isinstance(repair, Repair):
            trial = trial.replying("repairer", Repair(decorate(repair.answer, several[-1]) or repair.answer))
        other = outcome.again(trial)
        same_marks = (outcome.mark, outcome.decision.certified) == (other.mark, other.decision.certified)
        if not (outcome.agrees(other) and same_marks):
            return Finding(False, f"the same where the candidates are spelled {list(spellings)}", other)
    return Finding(True, "the same in every spelling") if any(answers) else None


def _shipment(outcome: Outcome, branch: Branch, answer: str | None) -> Finding:
    decision = outcome.decision
    return Finding((decision.branch, decision.answer) == (branch, answer), f"{answer!r}, by branch {branch}")


def _is_right(outcome: Outcome, answer: str | None) -> bool:
    gold = outcome.trial.gold
    return bool(gold.strip()) and outcome.case.type.right(answer, [gold])


def decorate(answer: str | None, decoration: str) -> str | None:
    """Return an answer in a decoration; unchanged if it would not be stripped to the same answer."""
    spelling = decoration.replace("{}", answer or "", 1)
    return spelling if answer is not None and strip_answer(spelling) == strip_answer(answer) else answer


def is_stratified(outcome: Outcome) -> bool:
    """Whether the ranking has every candidate once, supported ones first."""
    case, answers = outcome.case, outcome.trial.question.answers
    derivation = outcome.derivation if "deriver" in outcome.roles else None

    def is_behind(answer: str | None) -> bool:
        if case.task == "arithmetic":
            return not case.same(answer, derivation)
        return not case.same(answer, answer) or case.certified(answer) is False or case.refuses(answer)

    ranking = outcome.decision.ranking
    behind = [is_behind(answers[index]) for index in ranking]
    return sorted(ranking) == [*range(len(answers))] and behind == sorted(behind)


def _stands_verbatim(outcome: Outcome, members: Sequence[int], index: int) -> bool:
    """Whether a class would be certified as written if all its members were spelled as this one."""
    answers = outcome.trial.question.answers
    spellings = tuple(answers[index if place in members else place] for place in range(len(answers)))
    question = replace(outcome.trial.question, answers=spellings)
    certificate = outcome.subject.case(question, outcome.trial.settings).certificate(answers[index])
    return certificate.certified is True and is_as_written(certificate)


OF_RULES = tuple(one for one in (*vars().values(),) if isinstance(one, Law))
