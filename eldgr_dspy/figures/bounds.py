"""The authority bound: a rule's worst and best outcome on a question over all judges.

Over all judges, a rule can have only finitely many outcomes on a question, and they depend only on the pool. So the
rule's accuracy is in an interval that can be computed without a judge. The rule is run on every possible reply, so the
bound holds for any rule of the same form. Source: ours; it makes the paper's title a number.
"""

import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, product
from typing import Any

from eldgr_dspy.answer_types.answers import differ_by_percent_sign, normalise, number_in
from eldgr_dspy.decision import Rule, drive, relay
from eldgr_dspy.derivation.arithmetic import Exact
from eldgr_dspy.derivation.reach import reach
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.derivations import BOUNDED_LEVELS, CheckResult
from eldgr_dspy.text.folding import INVISIBLE
from eldgr_dspy.text.reading import without_markup
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import Role

_SILENT = Abstention("silent")
_BESIDE = 12  # characters on either side that a span takes in of what the normalisation drops
_MARK = f"[{re.escape(string.punctuation)}]"
_ARTICLE = f"(?:t{_MARK}*+h{_MARK}*+e|a{_MARK}*+n?)"
_GAP = rf"(?:\s|{_MARK}|{_ARTICLE})+"
_FILLER = re.compile(rf"(?:<[^<>]*>|[\W_]|{_ARTICLE})*", re.IGNORECASE)
_AS_MARKS = dict.fromkeys(map(ord, INVISIBLE), string.punctuation[0])


def outcomes(rule: Rule, case: Case, replies: Mapping[Role, Sequence[Reply]]) -> Iterator[str | None]:
    """Yield the answer of `rule` on `case` for every combination of the given replies to what it asks.

    Args:
        replies: The possible replies of each role, at least one; a missing role abstains.
    """
    queue: list[dict[Role, Reply]] = [{}]
    while queue:
        way = queue.pop()

        def reply_of(role: Role, way: dict[Role, Reply] = way) -> Reply:
            if role not in way:  # the first that is possible; the others are to be tried next
                first, *others = replies.get(role, (_SILENT,))
                queue.extend({**way, role: other} for other in others)
                way[role] = first
            return way[role]

        yield drive(rule(case), reply_of).answer


def answer_and_roles(rule: Rule, case: Case, judge: Reply = _SILENT) -> tuple[str | None, list[Role]]:
    """Return the answer of `rule` on a reply of the judge if the other roles abstain, and the roles that it asked."""
    roles: list[Role] = []

    def reply(role: Role) -> Reply:
        roles.append(role)
        return judge if role == "judge" else _SILENT

    answer: str | None = drive(rule(case), reply).answer
    return answer, roles


def roles_over_any(rule: Rule, case: Case, derivations: Sequence[Derivation] = ()) -> frozenset[Role]:
    """Return the roles that `rule` asks about `case` over all judges and derivers, if the repairer abstains."""
    roles: set[Role] = set()
    answers_over_any(lambda one: relay(rule(one), lambda role, _: roles.add(role)), case, derivations=derivations)
    return frozenset(roles)


def answers_over_any(
    rule: Rule, case: Case, *, spans: Sequence[str] = (), derivations: Sequence[Derivation] = ()
) -> tuple[str | None, ...]:
    """Return the distinct answers that `rule` ships over all judges, and over some replies of the other roles.

    A user's own rule must read replies through `case`, and must not read the scores of a verdict.

    Args:
        spans: What the repairer may give apart from an abstention. Those of `extreme_spans` stand for all where the
            rule ships no repair but a certified one of another class than consensus.
        derivations: What the deriver may give apart from an abstention, see `derivable`. Each is supposed to pass.
    """
    silent, roles = answer_and_roles(rule, case)
    if "judge" not in roles and not spans and not derivations:
        return (silent,)
    one_a_class = {key: index for index, key in enumerate(case.vote.classes) if key is not None}
    verdicts = [*map(Verdict, one_a_class.values()), *_score_verdicts(case, [*one_a_class.values()])]
    replies: dict[Role, Sequence[Reply]] = {"judge": [_SILENT, *verdicts], "repairer": [_SILENT, *map(Repair, spans)]}
    replies["deriver"] = [_SILENT, *derivations]
    supposing: Any = _Supposing(case) if derivations else case
    return tuple(dict.fromkeys(outcomes(rule, supposing, replies)))


def ends_of(answers: Iterable[str | None], correct: Callable[[str | None], bool]) -> tuple[bool, bool]:
    """Return whether all answers are right, and whether some are."""
    every = [correct(answer) for answer in dict.fromkeys(answers)]
    return all(every), any(every)


def _score_verdicts(case: Case, indices: Sequence[int]) -> Iterator[Verdict]:
    """Verdicts with scores, where `stratum` takes the best certified candidate in the place of the preferred one."""
    if case.settings.preference == "stratum":
        answers = case.question.answers
        best = [index for index in indices if case.certified(answers[index])]
        scores = (tuple(float(other == index) for other in range(len(answers))) for index in best)
        yield from (Verdict(choice, marks) for marks in scores for choice in indices)


def sways(rule: Rule, case: Case, role: Role) -> bool:
    """Whether a repairer or a deriver can change the class that `rule` ships on `case` if the other roles abstain.

    A repairer may give any span of the evidence, and a deriver all that `derivable` stands for.
    """
    silent, roles = answer_and_roles(rule, case)
    if role not in roles:
        return False
    if role == "deriver":
        supposing: Any = _Supposing(case)
        return differ(case, outcomes(rule, supposing, {role: [_SILENT, *derivable(case)]}))
    span = _first(case, _spans(case, 3), lambda span: not case.same(span, silent))  # neither this class nor consensus
    return span is not None and differ(case, (silent, *outcomes(rule, case, {role: [Repair(span)]})))


class _Supposing:
    """A case in which every derivation is supposed to pass its check."""

    derived: Any = Case.derived

    def __init__(self, case: Case) -> None:
        self._case = case

    def __getattr__(self, name: str) -> Any:
        return getattr(self._case, name)

    def check(self, derivation: Derivation) -> CheckResult:
        return CheckResult(True, self._case.settings.derivation, "supposed to pass", None)


def derivable(case: Case, gold: Sequence[str] = ()) -> list[Derivation]:
    """Return derivations, without steps, that stand for all that the strictness of the settings cannot exclude.

    They have the answer of each class of the pool, the gold answers, and a number of no such class. From `bounded` on
    a number is left out if it is not within reach of the question. Any other number is taken for derivable. So is a
    text that only another type than `number` may read as one.
    """
    numbers = reach(case.question.text) if case.settings.derivation in BOUNDED_LEVELS else None
    texts = dict.fromkeys(text for text in (*case.votes(), *gold) if text)
    answers = [text for text in texts if _can_derive(case, text, numbers)]
    others = count(10_007) if numbers is None else sorted(numbers | {0}, reverse=True) if numbers else ()
    alike = case.same, differ_by_percent_sign
    further = (one for one in map(str, others) if not any(are(one, text) for are in alike for text in texts))
    answers += islice(further, 1)
    return [Derivation((), answer) for answer in answers]


def _can_derive(case: Case, text: str, numbers: Collection[Exact] | None) -> bool:
    if (number := number_in(text)) is None:
        return case.type.name != "number"
    value = number.value / 100 if number.percent else number.value
    return numbers is None or (bool(numbers) and (not value or value in numbers))


def differ(case: Case, answers: Iterable[str | None]) -> bool:
    """Return whether answers, at least one, are of several classes."""
    first, *others = dict.fromkeys(answers)
    return any(not case.same(first, other) for other in others)


def extreme_spans(case: Case, gold: Sequence[str], correct: Callable[[str | None], bool]) -> list[str]:
    """Return spans that represent all spans of the evidence: a right one, if any is right, and a wrong one, if any is.

    A span is any run of characters, so that words are taken apart too: `substring` certifies parts of them, and of
    "A Paris-based firm" every policy certifies "Paris". Whether a repair overrides depends on its certificate and its
    class alone, so that a right span and a wrong one of another class than consensus reach the ends of the interval.
    A right span with a TeX command or a link inside is not found.
    """
    most = len(gold) + 2  # pieces of a wrong span: no more than this can all be right, or consensus
    right = _first(case, _spans_like(case, gold), correct)
    wrong = _first(case, _spans(case, most), lambda span: not correct(span))
    return [span for span in (right, wrong) if span is not None]


def _first(case: Case, spans: Iterable[str], accepts: Callable[[str], bool]) -> str | None:
    """The first span that overrides consensus with an answer that is as wanted."""
    overriding = (span for span in spans if not case.same(span, case.consensus) and case.certified(span))
    repairs = ((span, case.repaired(Repair(span))) for span in overriding)
    return next((span for span, ships in repairs if ships and case.certified(ships) and accepts(ships)), None)


def _sources(case: Case) -> Iterator[str]:
    for passage in case.question.passages:
        yield from (passage.text, passage.title)


def _spans(case: Case, most: int) -> Iterator[str]:
    """Spans among which is one that overrides and is wrong, if there is any in the evidence."""
    yield from (word for source in _sources(case) for word in source.split())
    yield from (character for source in _sources(case) for character in source)  # `substring` certifies parts of words
    for n in range(1, most + 1):
        yield from (span for source in _sources(case) for span in _runs(source, n))
    yield from _sources(case)


def _runs(source: str, n: int) -> Iterator[str]:
    """The runs of `n` words or numbers, with the marks next to them."""
    places = [match.span() for match in re.finditer(r"[^\W_]+", source)]
    for first, last in zip(places, places[n - 1 :], strict=False):
        yield from _with_what_is_beside(source, first[0], last[1])


def _spans_like(case: Case, gold: Sequence[str]) -> Iterator[str]:
    """The spans that are a gold answer under the official normalisation, wherever they begin and end."""
    # First those that are spelled as the gold answer: one of them is mostly enough, and no pattern is compiled.
    yield from (answer for answer in gold if answer and any(answer in source for source in _sources(case)))
    for target in (normalise(strip_answer(answer)) for answer in gold):
        patterns = _span_patterns(target)
        for source in _sources(case):
            plain = without_markup(source).translate(_AS_MARKS)  # as long as the source
            for pattern, text in product(patterns, dict.fromkeys((source, plain))):
                for match in pattern.finditer(text):
                    yield from _with_what_is_beside(source, *match.span(1))


def _span_patterns(answer: str) -> tuple[re.Pattern[str], ...]:
    """Patterns whose group 1 is every shortest span that normalises to an answer, and few that do not."""
    if not answer:  # a gold answer such as "A", of which the normalisation leaves nothing
        return tuple(re.compile(f"(?=({form}))", re.IGNORECASE) for form in ("a", _ARTICLE, _MARK))
    words = (f"{_MARK}*+".join(map(re.escape, word)) for word in answer.split())
    two = f"i{_MARK}*+\u0307"  # what the one letter of Istanbul's is in lower case
    pattern = _GAP.join(words).replace(two, f"(?:{two}|\u0130)")
    return (re.compile(f"(?=({pattern}))", re.IGNORECASE),)


def _with_what_is_beside(source: str, start: int, end: int) -> Iterator[str]:
    """A span of a source, then with the marks, white space and articles next to it, which may change its class."""
    before = (at for at in range(start, max(0, start - _BESIDE) - 1, -1) if _FILLER.fullmatch(source, at, start))
    behind = (at for at in range(end, min(len(source), end + _BESIDE) + 1) if _FILLER.fullmatch(source, end, at))
    yield from (source[first:last] for first, last in product(before, behind))
