"""The authority bound: between what and what a rule's outcome lies, whatever the judge answers.

Over all judges the outcome of a rule on a question ranges over a finite set that the pool alone fixes; so the rule's
accuracy lies in an interval that needs no judge to be known. The rule itself is driven over every possible reply, so
the bound holds for any rule of the same form. Source: ours; it makes the paper's title a number.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from eldgr_dspy.answers import normalise
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Repair, Reply, Verdict
from eldgr_dspy.decision import Rule, drive
from eldgr_dspy.words import Role

_SILENT = Abstention("silent")
_ARTICLES = 3  # words that the normalisation drops from inside a span, at most


def outcomes(rule: Rule, case: Case, replies: Mapping[Role, Sequence[Reply]]) -> Iterator[str | None]:
    """Yield the answer of `rule` on `case` for every combination of the given replies.

    Args:
        replies: What each role may reply; a role that is absent is silent.
    """
    answer, asked = _asked(rule, case)
    yield answer
    if not asked:
        return
    for combination in product(*replies.values()):
        given = dict(zip(replies, combination, strict=True))
        yield drive(rule(case), partial(_reply, given)).answer


def _reply(given: Mapping[Role, Reply], role: Role) -> Reply:
    return given.get(role, _SILENT)


def asks(rule: Rule, case: Case, role: Role) -> bool:
    """Whether `rule` asks `role` about `case` when all roles are silent."""
    return role in _asked(rule, case)[1]


def _asked(rule: Rule, case: Case) -> tuple[str | None, list[Role]]:
    """The answer of `rule` with all roles silent, and the roles that it asked."""
    asked: list[Role] = []

    def silent(role: Role) -> Reply:
        asked.append(role)
        return _SILENT

    answer: str | None = drive(rule(case), silent).answer
    return answer, asked


def interval(
    rule: Rule,
    case: Case,
    correct: Callable[[str | None], bool],
    spans: Sequence[str] = (),
) -> tuple[bool, bool]:
    """Return (worst, best): whether the rule is right on `case` whatever the judge answers, and whether it can be.

    Args:
        correct: Whether an answer is right.
        spans: What the repairer may reply besides nothing; empty for a silent repairer.
    """
    every = [correct(answer) for answer in set(outcomes(rule, case, _possible(case, spans)))]
    return all(every), any(every)


def _possible(case: Case, spans: Sequence[str]) -> dict[Role, Sequence[Reply]]:
    one_a_class = {key: index for index, key in enumerate(case.vote.classes) if key is not None}
    return {"judge": [_SILENT, *map(Verdict, one_a_class.values())], "repairer": [_SILENT, *map(Repair, spans)]}


def sways(rule: Rule, case: Case, role: Role) -> bool:
    """Whether a role can change what `rule` ships on `case`, the others silent; spellings of one class are the same.

    A repairer may give any span of the evidence. What a deriver may derive is not in the pool: it can change what ships
    wherever it is asked.
    """
    if role == "judge":
        return _differ(case, outcomes(rule, case, {role: _possible(case, ())[role]}))
    if role == "deriver" or not asks(rule, case, role):
        return asks(rule, case, role)
    span = _first(case, _spans(case), lambda _: True)
    return span is not None and _differ(case, outcomes(rule, case, {role: [Repair(span)]}))


def _differ(case: Case, answers: Iterable[str | None]) -> bool:
    first, *others = dict.fromkeys(answers)
    return any(not case.same(first, other) for other in others)


def extreme_spans(case: Case, gold: Sequence[str], correct: Callable[[str | None], bool]) -> list[str]:
    """Return spans of the evidence that stand for all: one that is right, if any is, and one that is wrong, if any is.

    Whether a repair overrides depends on its certificate and its class alone, so that a right span and a wrong one of
    another class than consensus reach the ends of the interval.
    """
    spans = (
        _first(case, spans, wanted)
        for spans, wanted in ((_spans_like(case, gold), correct), (_spans(case), _not(correct)))
    )
    return [span for span in spans if span is not None]


def _first(case: Case, spans: Iterable[str], wanted: Callable[[str], bool]) -> str | None:
    """The first span that overrides consensus and is as wanted."""
    return next((s for s in spans if wanted(s) and case.certified(s) and not case.same(s, case.consensus)), None)


def _not(correct: Callable[[str | None], bool]) -> Callable[[str], bool]:
    return lambda span: not correct(span)


def _sources(case: Case) -> Iterator[str]:
    for passage in case.question.passages:
        yield from (passage.text, passage.title)


def _words(case: Case) -> Iterator[str]:
    return (word for source in _sources(case) for word in source.split())


def _spans(case: Case) -> Iterator[str]:
    """Every word, then every source whole: where no word may override, as yes and no may not, several still may."""
    yield from _words(case)
    yield from _sources(case)


def _spans_like(case: Case, gold: Sequence[str]) -> Iterator[str]:
    """The spans of whole words that are a gold answer under the official normalisation."""
    for wanted in map(normalise, gold):
        if not wanted:  # a gold answer such as "A", of which the normalisation leaves nothing
            yield from (word for word in _words(case) if not normalise(word))
            continue
        for source in _sources(case):
            if f" {wanted} " in f" {normalise(source)} ":
                yield from _spans_normalised_to(wanted, source)


def _spans_normalised_to(wanted: str, source: str) -> Iterator[str]:
    places = [match.span() for match in re.finditer(r"\S+", source)]
    longest = len(wanted.split()) + _ARTICLES
    for first, (start, _) in enumerate(places):
        for _, end in places[first : first + longest]:
            if normalise(source[start:end]) == wanted:
                yield source[start:end]
