"""The baselines that a judge must beat, and whether it does.

A baseline asks no LM. Those that draw at random are exact expectations, for which a rule is run once on each class of
answers that a judge may prefer. Numbers are in percent; an undefined value is None, with the reason. Source: ours.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Literal, NamedTuple, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answers import score
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Certificates, Consultation, Reply, Verdict
from eldgr_dspy.decision import Rule, certified_majority, drive, evidence_locked, scalar_judge
from eldgr_dspy.figures.best_source import BestSource, scored, undefined
from eldgr_dspy.figures.distinct import Units
from eldgr_dspy.figures.results.baselines import (
    Baseline,
    BaselineFigures,
    BaselineName,
    JudgeUse,
    Lead,
)
from eldgr_dspy.formatting import questions
from eldgr_dspy.named_judges import labelled
from eldgr_dspy.replies import journaled_reply
from eldgr_dspy.statistics import Contrast, contrast_of_units
from eldgr_dspy.words import Role, Task

Place = Literal["alone", "locked"]
_PLACES: tuple[Place, ...] = get_args(Place)
_AUTHORITY: Mapping[Place, Rule] = {"alone": scalar_judge, "locked": evidence_locked}
_RANDOM: Mapping[Place, tuple[BaselineName, BaselineName]] = {
    "alone": ("random_candidate", "random_class"),
    "locked": ("random_candidate_locked", "random_class_locked"),
}
_CERTIFIED: tuple[BaselineName, ...] = ("certified", *_RANDOM["locked"])
"""The baselines for which certificates must be known."""
_COMPARED: tuple[BaselineName, ...] = (*_CERTIFIED, *_RANDOM["alone"])
"""The baselines that judges are compared with."""

_UNKNOWN: JudgeUse = {
    "em": None,
    "over_certified": None,
    "over_random": None,
    "random": None,
    "useful": None,
    "reason": None,
}

_SILENT = Abstention("silent")
_NOT_ASKED = -1
_UNSCORED = "no question has a gold answer"
_UNCERTIFIED = "the certificates of some question are not known"
_NEVER_ASKED = "in arithmetic the locked rule never asks a judge"


class Chances(NamedTuple):
    """What the figures need of a question, apart from its sources.

    Attributes:
        expected: The probability of a right answer in percent under each baseline of `_COMPARED`.
        unheard: For each place, whether a judge is right there that was not asked; -1 if that depends on its reply.
        heard: For each judge that replied, by its name, whether it is right in each place.
    """

    expected: tuple[float, ...]
    unheard: tuple[int, ...]
    heard: tuple[tuple[str, tuple[int, ...]], ...]

    def right(self, judge: str, place: int) -> int:
        """Return whether a judge is right in a place, 0 or 1; -1 where that is not known."""
        return dict(self.heard).get(judge, self.unheard)[place]


class _Expected:
    """The probability of a right answer, on average over the questions: exact."""

    def __init__(self) -> None:
        self._right: Counter[int] = Counter()
        self._n = 0

    def add(self, right: int, of: int = 1) -> float:
        """Take a question on which `right` of `of` equally probable draws are right, and return that in percent."""
        self._n += 1
        self._right[of] += right
        return 100.0 * right / of

    def percent(self) -> float:
        return float(100 * sum(Fraction(right, of) for of, right in self._right.items()) / self._n)


class _Heard:
    """Whether a rule is right on a question, depending on what a judge says; the other roles abstain.

    Attributes:
        silent: If the judge abstains. by_class: if it prefers each class; empty if the rule does not ask it.
    """

    def __init__(self, rule: Rule, case: Case, correct: Callable[[str | None], bool]) -> None:
        self._rule, self._case, self._correct = rule, case, correct
        self._asked = set[Role]()
        self.silent = self._driven(_SILENT)
        classes = case.vote.classes if "judge" in self._asked else ()
        self._classes = dict(enumerate(classes))
        self.by_class = {key: self._driven(Verdict(classes.index(key))) for key in dict.fromkeys(classes) if key}

    def right(self, reply: Reply) -> bool:
        """Return whether the rule is right on a reply of the judge."""
        if not self.by_class:
            return self.silent
        if isinstance(reply, Verdict) and reply.scores is None:
            return self.by_class.get(self._classes.get(reply.preferred) or "", self.silent)
        return self._driven(reply)

    def _driven(self, judge: Reply) -> bool:
        return self._correct(drive(self._rule(self._case), partial(self._reply, judge)).answer)

    def _reply(self, judge: Reply, role: Role) -> Reply:
        self._asked.add(role)
        return judge if role == "judge" else _SILENT


class Baselines:
    """The baselines of one pool, taken question by question."""

    def __init__(self, task: Task, judges: Iterable[str] = ()) -> None:
        """Take the answer type of the pool, and the judges in the order of the figures; others come last."""
        self._task = task
        self._expected: dict[BaselineName, _Expected] = defaultdict(_Expected)
        self._f1 = Counter[float]()
        self._sources = BestSource()
        self._judges = dict.fromkeys(judges, False)  # whether it has replied
        self._chances = Counter[Chances]()
        self._withheld = False

    @property
    def _type(self) -> AnswerType:  # a user's type need not survive being pickled
        return answer_type(self._task)

    def add(
        self, case: Case, gold: Sequence[str], sources: Sequence[str | None], replies: Mapping[str, Reply]
    ) -> Chances | None:
        """Take one question; without a gold answer it does not count. Return what the figures need of it.

        Args:
            sources: Where each candidate comes from, None if unknown.
            replies: What each judge said, by its name; without a judge that was not asked.
        """
        if not gold:
            return None

        @cache
        def correct(answer: str | None) -> bool:
            return case.type.right(answer, gold)

        answers = case.question.answers
        self._sources.add(case.question.text, sources or [None] * len(answers), [*map(correct, answers)])
        self._expected["first"].add(correct(case.first))
        self._expected["majority"].add(correct(case.consensus))
        certified = self._expected["certified"].add(_Heard(certified_majority, case, correct).silent)
        self._add_ties(case, gold, correct)
        heard: dict[Place, _Heard] = {place: _Heard(rule, case, correct) for place, rule in _AUTHORITY.items()}
        random = {place: self._add_random(place, of, case.vote.counts) for place, of in heard.items()}
        self._judges |= dict.fromkeys(replies, True)
        chances = Chances(
            (certified, *random["locked"], *random["alone"]),
            tuple(_NOT_ASKED if heard[place].by_class else int(heard[place].silent) for place in _PLACES),
            tuple((name, tuple(int(heard[at].right(reply)) for at in _PLACES)) for name, reply in replies.items()),
        )
        self._chances[chances] += 1
        return chances

    def _add_ties(self, case: Case, gold: Sequence[str], correct: Callable[[str | None], bool]) -> None:
        standings = case.standings
        tied = [answer for answer, votes in standings if votes == standings[0][1]]
        self._expected["majority_uniform_ties"].add(sum(map(correct, tied)), len(tied) or 1)
        if case.type.has_f1:
            self._f1[sum(score(answer, gold, case.type).f1 or 0.0 for answer in tied) / (len(tied) or 1)] += 1

    def _add_random(self, place: Place, heard: "_Heard", votes: Mapping[str, int]) -> tuple[float, float]:
        by_candidate, by_class = (self._expected[name] for name in _RANDOM[place])
        if not heard.by_class:
            return by_candidate.add(heard.silent), by_class.add(heard.silent)
        voting = sum(votes[key] for key, right in heard.by_class.items() if right)
        return by_candidate.add(voting, sum(votes.values())), by_class.add(sum(heard.by_class.values()), len(votes))

    def withhold(self) -> None:
        """Give no figure that depends on certificates, because those of a question are not known."""
        self._withheld = True

    def figures(self, units: Units[Chances] | None = None, lacking: Mapping[str, str] | None = None) -> BaselineFigures:
        """Return the section of `summary.json`.

        Args:
            units: What `add` returned, for each distinct question; by default each question counts by itself.
            lacking: The judges to which the pool does not apply, as `judge[NAME]`, each with the reason.
        """
        unknown: dict[str, JudgeUse] = {name: {**_UNKNOWN, "reason": why} for name, why in (lacking or {}).items()}
        names: tuple[BaselineName, ...] = get_args(BaselineName)
        sources = self._sources.figures() if self._n else {}
        alone = units or {(chances,): n for chances, n in self._chances.items()}
        return {
            "scores": {name: sources.get(name) or self._score(name) for name in names},
            "judges": {
                name: {
                    "alone": unknown.get(name) or self._use("alone", name, alone),
                    "locked": unknown.get(name) or self._use("locked", name, alone),
                }
                for name, heard in self._judges.items()
                if heard
            },
        }

    @property
    def _n(self) -> int:
        return self._chances.total()

    def _score(self, name: BaselineName) -> Baseline:
        if not self._n:
            return undefined(_UNSCORED)
        if self._withheld and name in _CERTIFIED:
            return undefined(_UNCERTIFIED)
        if self._type.way == "derivation" and name in _RANDOM["locked"]:
            return undefined(_NEVER_ASKED)
        graded = name == "majority_uniform_ties" and self._type.has_f1
        f1 = 100.0 * float(sum(Fraction(f1) * n for f1, n in self._f1.items())) / self._n if graded else None
        return {**scored(self._expected[name].percent()), "f1": f1}

    def _use(self, place: Place, judge: str, units: Units[Chances]) -> JudgeUse:
        at = _PLACES.index(place)
        outcomes = Counter[int]()
        for chances, n in self._chances.items():
            outcomes[chances.right(judge, at)] += n
        if reason := self._unknown(place, outcomes[_NOT_ASKED]):
            return {**_UNKNOWN, "reason": reason}
        random = max(_RANDOM[place], key=lambda name: self._expected[name].percent())
        leads = [_lead(_over(units, judge, at, _COMPARED.index(other))) for other in ("certified", random)]
        return {
            "em": 100.0 * outcomes[1] / self._n,
            "over_certified": leads[0],
            "over_random": leads[1],
            "random": random,
            "useful": all(lead["ci"][0] > 0 and not lead["notes"] for lead in leads),
            "reason": None,
        }

    def _unknown(self, place: Place, missing: int) -> str | None:
        """Return why it is not known whether a judge is useful; None if it is known."""
        if self._type.way == "derivation" and place == "locked":
            return _NEVER_ASKED
        if self._withheld:
            return _UNCERTIFIED
        return f"it was not asked on {questions(missing)} where its reply counts" if missing else None


def _over(units: Units[Chances], judge: str, place: int, baseline: int) -> Contrast:
    """A judge in a place against a baseline."""
    pairs = Counter[tuple[tuple[float, float], ...]]()
    for unit, n in units.items():
        pairs[tuple((100.0 * of.right(judge, place), of.expected[baseline]) for of in unit)] += n
    return contrast_of_units(pairs)


def judges_heard(case: Case, consultations: Iterable[Consultation]) -> dict[str, Reply]:
    """Return what each judge said on a question, by its name; empty if none was asked."""
    asked = {labelled(entry.role, entry.judge): entry for entry in consultations if entry.role == "judge"}
    heard = {name: journaled_reply(case.question, entry) for name, entry in asked.items()}
    return {name: reply for name, reply in heard.items() if not isinstance(reply, Certificates)}


def _lead(over: Contrast) -> Lead:
    return {"delta": over.delta, "ci": list(over.interval), "notes": list(over.notes)}
