"""The baselines that a judge must beat, and whether it does.

A baseline asks no LM. Those that draw at random are exact expectations, for which a rule is run once on each class of
answers that a judge may prefer. Sums are exact, so figures do not depend on the order of the questions. Source: ours.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple, cast, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.decision import Rule, certified_majority, evidence_locked, scalar_judge
from eldgr_dspy.figures.bounds import answer_and_roles
from eldgr_dspy.figures.distinct import Units, counts_by, questions_in
from eldgr_dspy.figures.results.baseline_fields import Baseline, BaselineFigures, BaselineName, JudgeUse, Lead
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Reply, Verdict
from eldgr_dspy.splitting import is_confirmation
from eldgr_dspy.statistics import contrast_of_units
from eldgr_dspy.words import Task

HALVES = 0x6861_6C76  # the seed of the halves for the best source; nobody splits a pool by it

Place = Literal["alone", "locked"]
_AUTHORITY: Mapping[Place, Rule] = {"alone": scalar_judge, "locked": evidence_locked}
_RANDOM: Mapping[Place, tuple[BaselineName, BaselineName]] = {
    "alone": ("random_candidate", "random_class"),
    "locked": ("random_candidate_locked", "random_class_locked"),
}
_WITH_CERTIFICATES: tuple[BaselineName, ...] = ("certified", *_RANDOM["locked"])  # for which certificates must be known
_NO_FIGURES: Any = dict.fromkeys(JudgeUse.__annotations__)
_NO_REPLY = -1
_NO_GOLD = "no question has a gold answer"
_NO_CERTIFICATES = "the certificates of some question are not known"
_NO_JUDGE = "in arithmetic the locked rule never asks a judge"


class Chances(NamedTuple):
    """What the baselines need of a question with a gold answer."""

    draws: tuple[tuple[BaselineName, tuple[int, int]], ...]  # (right, all) of the equally probable draws
    half: bool  # which half of the questions it is in; equal questions are in one half
    sources: tuple[tuple[str, int, int], ...] | None  # (name, right, all) candidates; None if one has no source
    silence: tuple[int, ...]  # by place: is an unasked judge right? -1 if its reply decides
    judges: tuple[tuple[str, tuple[int, ...]], ...]  # for each that replied: is it right in each place?

    def probability(self, baseline: BaselineName) -> Fraction:
        """Return the probability of a right answer under a baseline, in percent."""
        return 100 * Fraction(*dict(self.draws)[baseline])

    def right(self, judge: str, place: Place) -> int:
        """Return whether a judge is right in a place, 0 or 1; -1 where that is not known."""
        return dict(zip(_AUTHORITY, dict(self.judges).get(judge, self.silence), strict=True))[place]


def chances_of(case: Case, gold: Sequence[str], sources: Sequence[str | None], replies: Mapping[str, Reply]) -> Chances:
    @cache
    def correct(answer: str | None) -> bool:
        return case.type.right(answer, gold)

    def right_on(rule: Rule, judge: Reply) -> bool:
        return correct(answer_and_roles(rule, case, judge)[0])

    standings, votes, classes = case.standings, case.vote.counts, case.vote.classes
    leaders = [answer for answer, of in standings if of == standings[0][1]]
    draws: dict[BaselineName, tuple[int, int]] = {
        "first": (correct(case.first), 1),
        "majority": (correct(case.consensus), 1),
        "majority_uniform_ties": (sum(map(correct, leaders)), len(leaders) or 1),
        "certified": (correct(answer_and_roles(certified_majority, case)[0]), 1),
    }
    silence = list[int]()
    by_judge: dict[str, list[int]] = {name: [] for name in replies}
    for place, rule in _AUTHORITY.items():
        answer, roles = answer_and_roles(rule, case)
        silent, asks = correct(answer), "judge" in roles
        by_class = {key: right_on(rule, Verdict(classes.index(key))) for key in dict.fromkeys(classes) if key and asks}
        by_candidate, one_a_class = _RANDOM[place]
        draws[by_candidate] = draws[one_a_class] = (silent, 1)
        if by_class:
            draws[by_candidate] = sum(votes[key] for key, right in by_class.items() if right), sum(votes.values())
            draws[one_a_class] = sum(by_class.values()), len(votes)
        silence.append(_NO_REPLY if by_class else int(silent))
        for name, reply in replies.items():
            if isinstance(reply, Verdict) and reply.scores is None:
                by_judge[name].append(int(by_class.get(classes[reply.preferred] or "", silent)))
            else:
                by_judge[name].append(int(right_on(rule, reply) if by_class else silent))
    return Chances(
        tuple((name, (int(right), of)) for name, (right, of) in draws.items()),
        is_confirmation(case.question.text, share=0.5, seed=HALVES),
        _sources(sources, [*map(correct, case.question.answers)]),
        tuple(silence),
        tuple((name, tuple(places)) for name, places in by_judge.items()),
    )


def _sources(sources: Sequence[str | None], right: Sequence[bool]) -> tuple[tuple[str, int, int], ...] | None:
    """Each source, how many of its candidates are right, and how many it has; None if a candidate has no source."""
    if not sources or None in sources:
        return None
    counts = Counter(source for source, holds in zip(sources, right, strict=True) if holds)
    return tuple((source, counts[source], of) for source, of in sorted(Counter(filter(None, sources)).items()))


def baselines_of(
    task: Task,
    units: Units[Chances],
    judges: Iterable[str] = (),
    *,
    withheld: bool = False,  # the certificates of a question are not known
    lacking: Mapping[str, str] | None = None,  # why a judge does not apply to the pool
) -> BaselineFigures:
    """Return the section `baselines` of a pool in `summary.json`, from the questions with a gold answer."""
    counts, derives = questions_in(units), answer_type(task).way == "derivation"

    def score_of(name: BaselineName) -> Baseline:
        if not counts:
            return _no_score(_NO_GOLD)
        if name == "best_source":
            return _best_source(counts)
        if withheld and name in _WITH_CERTIFICATES:
            return _no_score(_NO_CERTIFICATES)
        if derives and name in _RANDOM["locked"]:
            return _no_score(_NO_JUDGE)
        return {"em": _expectation(counts, name), "sources": [], "reason": None}

    def use_of(place: Place, judge: str) -> JudgeUse:
        missing = sum(n for chances, n in counts.items() if chances.right(judge, place) == _NO_REPLY)
        never = _NO_JUDGE if derives and place == "locked" else None
        lack = f"it was not asked on {questions(missing)} where its reply counts" if missing else None
        reason = (lacking or {}).get(judge) or never or (_NO_CERTIFICATES if withheld else lack)
        return cast(JudgeUse, {**_NO_FIGURES, "reason": reason}) if reason else _use(place, judge, units, counts)

    names: tuple[BaselineName, ...] = get_args(BaselineName)
    respondents = dict.fromkeys(name for chances in counts for name, _ in chances.judges)
    # Judges that replied are in the order of `judges`, others last.
    order = dict.fromkeys([*(name for name in judges if name in respondents), *respondents])
    return {
        "scores": {name: score_of(name) for name in names},
        "judges": {judge: {"alone": use_of("alone", judge), "locked": use_of("locked", judge)} for judge in order},
    }


def _expectation(counts: Mapping[Chances, int], name: BaselineName) -> float:
    return float(sum(chances.probability(name) * n for chances, n in counts.items()) / Fraction(sum(counts.values())))


def _best_source(counts: Mapping[Chances, int]) -> Baseline:
    """The best source of each half, scored on the other."""
    if any(chances.sources is None for chances in counts):
        return _no_score("some candidate has no source")
    if len({tuple(name for name, *_ in chances.sources or ()) for chances in counts}) > 1:
        return _no_score("some question has other sources than the first one")
    if len({chances.half for chances in counts}) < 2:
        return _no_score("all questions are in one half")
    first, second = (defaultdict[str, Fraction](Fraction) for _ in range(2))
    for chances, n in counts.items():
        for name, right, of in chances.sources or ():
            (second if chances.half else first)[name] += n * Fraction(right, of)
    best = [max(first, key=of.__getitem__) for of in (first, second)]
    total = second[best[0]] + first[best[1]]
    return {"em": float(100 * total / Fraction(sum(counts.values()))), "sources": best, "reason": None}


def _no_score(reason: str) -> Baseline:
    return {"em": None, "sources": [], "reason": reason}


def _use(place: Place, judge: str, units: Units[Chances], counts: Mapping[Chances, int]) -> JudgeUse:
    random = max(_RANDOM[place], key=lambda name: _expectation(counts, name))
    leads = [_lead(units, judge, place, other) for other in ("certified", random)]
    return {
        "em": 100.0 * sum(chances.right(judge, place) * n for chances, n in counts.items()) / sum(counts.values()),
        "over_certified": leads[0],
        "over_random": leads[1],
        "random": random,
        "useful": all(lead["ci"][0] > 0 and not lead["notes"] for lead in leads),
        "reason": None,
    }


def _lead(units: Units[Chances], judge: str, place: Place, baseline: BaselineName) -> Lead:
    def scores(unit: tuple[Chances, ...]) -> tuple[tuple[float, float], ...]:
        return tuple((100.0 * of.right(judge, place), float(of.probability(baseline))) for of in unit)

    over = contrast_of_units(counts_by(units, scores))
    return {"delta": over.delta, "ci": list(over.interval), "notes": list(over.notes)}
