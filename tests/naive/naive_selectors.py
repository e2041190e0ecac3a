"""The selectors, the obvious way: classes, certificates and the cases of Eq. 3 written out one after the other.

Lazy or not makes no difference here: nothing is asked, every reply lies before it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from eldgr_dspy.certificates import Passage
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from tests.naive.naive_answers import class_of
from tests.naive.naive_certificates import is_verbatim, occurs
from tests.naive.naive_derivations import check
from tests.naive.naive_reading import strip

SILENT = Abstention("silent")
# Nothing here remembers anything but these four, which a real pool asks ten thousand times for the same.
classify, search, verify, verbatim = cache(class_of), cache(occurs), cache(check), cache(is_verbatim)
Outcome = tuple[str | None, str, str]
"""Answer, branch, reason."""


@dataclass
class Pool:
    """A question with what the paper calls a_j, m and c, and the replies of all roles."""

    question: Question
    settings: Settings
    replies: Mapping[str, Any]

    def key(self, answer: str | None) -> object:
        return classify(answer, self.question.task)

    def keys(self) -> list[object]:
        return [self.key(answer) for answer in self.question.answers]

    def votes(self, key: object) -> int:
        return self.keys().count(key)

    def majority(self) -> object:
        """The class with most votes; of several the earliest."""
        best = None
        for key in dict.fromkeys(self.keys()):
            if key is not None and (best is None or self.votes(key) > self.votes(best)):
                best = key
        return best

    def tie(self) -> bool:
        most = [key for key in set(self.keys()) - {None} if self.votes(key) == self.votes(self.majority())]
        return len(most) > 1

    def n_classes(self) -> int:
        return len(set(self.keys()) - {None})

    def members(self, key: object) -> list[int]:
        return [index for index, other in enumerate(self.keys()) if other == key and key is not None]

    def passages_for(self, key: object) -> list[Passage]:
        """All passages but those that are nothing but the text of a candidate that votes so, a bare answer aside."""
        own = [self.question.texts[index].strip() for index in self.members(key) if self.question.texts]
        own = [text for text in own if self.key(text) != key]
        return [p for p in self.question.passages if not {p.text.strip(), f"{p.title}\n{p.text}".strip()} & {*own}]

    def occurs(self, answer: str | None) -> bool | None:
        return search(answer, tuple(self.passages_for(self.key(answer))), self.settings.certificate)

    def spelling(self, key: object) -> str | None:
        """The earliest spelling of a class in the pool that stands in the evidence as written, else the earliest."""
        spellings = [self.question.answers[index] for index in self.members(key)]
        return next(iter([answer for answer in spellings if self.is_verbatim(answer)] + spellings), None)

    def is_verbatim(self, answer: str | None) -> bool:
        passages = tuple(self.passages_for(self.key(answer)))
        return self.question.task == "retrieval" and verbatim(answer, passages, self.settings.certificate)

    def plain(self, answer: str) -> str:
        """An answer without links and other markup."""
        return strip(answer) if self.key(strip(answer)) == self.key(answer) else answer

    def certified(self, key: object) -> bool | None:
        """C of a class of the pool."""
        return any_mark([self.occurs(self.question.answers[index]) for index in self.members(key)])

    def verdict(self) -> Verdict | None:
        """What the judge says; to prefer a candidate without an answer is to abstain."""
        reply = self.replies.get("judge", SILENT)
        return reply if isinstance(reply, Verdict) and self.keys()[reply.preferred] is not None else None

    def may_repair(self) -> bool:
        if not self.question.answers:
            return False
        if self.n_classes() != 1:
            return True
        default = "repair" if self.question.task == "retrieval" else "skip"
        return (self.settings.homogeneous or default) == "repair"


def any_mark(marks: Sequence[bool | None]) -> bool | None:
    if True in marks:
        return True
    return None if None in marks else False


def first(pool: Pool) -> Outcome:
    if not pool.question.answers:
        return None, "first", "empty_pool"
    return pool.question.answers[0], "first", "first"


def nothing(pool: Pool) -> str | None:
    if not pool.question.answers:
        return "empty_pool"
    return "no_answers" if pool.n_classes() == 0 else None


def majority(pool: Pool) -> Outcome:
    return keep(pool, asks=False)


def keep(pool: Pool, *, asks: bool) -> Outcome:
    """Consensus, and why; `asks` says whether any role was asked."""
    return pool.spelling(pool.majority()), "consensus", nothing(pool) or final(pool) or agreement(pool, asks=asks)


def final(pool: Pool) -> str | None:
    """Why consensus needs no defence: its certificate, in retrieval."""
    if pool.question.task == "arithmetic" or pool.certified(pool.majority()) is False:
        return None
    return "consensus_certified" if pool.certified(pool.majority()) else "consensus_inapplicable"


def agreement(pool: Pool, *, asks: bool) -> str:
    return "homogeneous" if pool.n_classes() == 1 and not asks else "default"


def judge(pool: Pool) -> Outcome:
    verdict = pool.verdict()
    if verdict is None or pool.n_classes() < 2 or pool.keys()[verdict.preferred] == pool.majority():
        return majority(pool)
    s = pool.keys()[verdict.preferred]
    certified = pool.question.task == "retrieval" and pool.certified(s) is True
    return pool.spelling(s), "judge", "preference_certified" if certified else "preference"


def eldgr(pool: Pool) -> Outcome:
    """Eq. 4: by the declared task."""
    return arithmetic(pool) if pool.question.task == "arithmetic" else retrieval(pool)


def retrieval(pool: Pool) -> Outcome:
    """Eq. 3, with the third value of a certificate."""
    m = pool.majority()
    if m is not None and pool.certified(m) is not False:
        return majority(pool)
    s = preference(pool)
    if s is not None and s != m and pool.certified(s) is True:
        return pool.spelling(s), "judge", "preference_certified"
    r = pool.replies.get("repairer", SILENT)
    if isinstance(r, Repair) and pool.may_repair() and pool.key(r.answer) is not None and pool.key(r.answer) != m:
        in_pool = pool.certified(pool.key(r.answer)) is True
        if pool.occurs(r.answer) is True and (pool.is_verbatim(r.answer) or not in_pool):
            return pool.plain(r.answer), "repair", "repair_certified"
        if pool.occurs(r.answer) is not None and in_pool:
            return pool.spelling(pool.key(r.answer)), "repair", "repair_certified"
    return keep(pool, asks=pool.may_repair())


def preference(pool: Pool) -> object:
    """The judge's one preference; read within the stratum, the best certified candidate where that one is not."""
    verdict = pool.verdict()
    if verdict is None or pool.n_classes() < 2:
        return None
    preferred = pool.keys()[verdict.preferred]
    if pool.question.task == "arithmetic":
        return preferred
    if pool.settings.preference == "stratum" and pool.certified(preferred) is not True and verdict.scores is not None:
        keys = pool.keys()
        certified = [index for index, key in enumerate(keys) if key is not None and pool.certified(key) is True]
        highest = max((verdict.scores[index] for index in certified), default=None)
        return next((keys[index] for index in certified if verdict.scores[index] == highest), preferred)
    return preferred


def derive(pool: Pool) -> str | None:
    """The checked answer of the deriver, None without one."""
    reply = pool.replies.get("deriver", SILENT)
    if not isinstance(reply, Derivation) or not pool.may_repair():
        return None
    return reply.answer if verify(reply, pool.question.text, pool.settings.derivation) else None


def agrees(pool: Pool, answer: str, key: object) -> bool:
    """Whether a derivation's answer is that of a class: the same but for a percent sign, or of the same value."""
    own = pool.key(answer)
    if isinstance(own, tuple) and isinstance(key, tuple):
        (one, one_percent), (other, other_percent) = own, key
        value, other_value = (one / 100 if one_percent else one), (other / 100 if other_percent else other)
        return bool(one == other or value == other_value)
    return own == key


def arithmetic(pool: Pool) -> Outcome:
    m, r = pool.majority(), derive(pool)
    if r is None:
        return keep(pool, asks=pool.may_repair())
    if m is not None and agrees(pool, r, m):
        return pool.spelling(m), "consensus", "derivation_agrees"
    return r, "repair", "derivation_checked"


def standings(pool: Pool) -> list[object]:
    """The classes, most votes first, and of several with as many the earliest."""
    keys = pool.keys()
    return sorted(set(keys) - {None}, key=lambda key: (-pool.votes(key), keys.index(key)))


def certified_majority(pool: Pool) -> Outcome:
    certified = [key for key in standings(pool) if pool.question.task == "retrieval" and pool.certified(key) is True]
    if not certified or pool.certified(pool.majority()) is not False:
        return majority(pool)
    return pool.spelling(certified[0]), "certified", "certified_majority"


def locked_then_majority(pool: Pool) -> Outcome:
    """The locked rule; certified majority where it keeps consensus and no judge prefers anything."""
    own, certified = eldgr(pool), certified_majority(pool)
    silent = own[1] == "consensus" and preference(pool) is None
    return certified if silent and certified[1] == "certified" else own


def near(k: int) -> Callable[[Pool], Outcome]:
    """The locked rule; where it keeps an uncertified consensus, a preference for a class that lacks up to k votes."""

    def decide(pool: Pool) -> Outcome:
        own, m, s = eldgr(pool), pool.majority(), preference(pool)
        arithmetic = pool.question.task == "arithmetic"
        is_closed = derive(pool) is not None if arithmetic else pool.certified(m) is not False
        if own[1] != "consensus" or is_closed or s is None or s == m:
            return own
        lacks = pool.votes(m) - pool.votes(s)
        if lacks > k or not (arithmetic or pool.certified(s) is False):
            return own
        return pool.spelling(s), "judge", "preference_near" if lacks else "preference_tied"

    return decide


def support(k: int | None) -> Callable[[Pool], Outcome]:
    """The locked rule; in arithmetic a derivation ships only as another candidate's answer, with k in a close vote."""

    def decide(pool: Pool) -> Outcome:
        if pool.question.task == "retrieval":
            return eldgr(pool)
        m, r = pool.majority(), derive(pool)
        near = [key for key in standings(pool) if key != m and (k is None or pool.votes(m) - pool.votes(key) <= k)]
        if k is not None and pool.votes(m) > sum(pool.votes(key) for key in standings(pool) if key != m):
            near = []
        if r is not None and near and agrees(pool, r, m):
            return pool.spelling(m), "consensus", "derivation_agrees"
        if r is not None and pool.key(r) in near:
            return pool.spelling(pool.key(r)), "repair", "derivation_checked"
        return keep(pool, asks=bool(near))

    return decide


def ranking(pool: Pool) -> tuple[int, ...]:
    """Certified and inapplicable candidates first, among them consensus, then by score, then by position."""
    verdict = pool.verdict()
    scores = verdict.scores if verdict is not None else None
    keys, m = pool.keys(), pool.majority()
    backers = {key for key in set(keys) if key is not None and supports(pool, key)}

    def place(index: int) -> tuple[bool, bool, float, int]:
        key = keys[index]
        return key not in backers, not (key in backers and key == m), -scores[index] if scores else 0.0, index

    return tuple(sorted(range(len(keys)), key=place))


def supports(pool: Pool, key: object) -> bool:
    if pool.question.task == "retrieval":
        return pool.certified(key) is not False
    r, m = derive(pool), pool.majority()
    return r is not None and key == (m if agrees(pool, r, m) else pool.key(r))


SELECTORS: dict[str, Callable[[Pool], Outcome]] = {
    "first": first,
    "majority": majority,
    "judge": judge,
    "eldgr": eldgr,
    "certified": certified_majority,
    "eldgr_certified": locked_then_majority,
    "support": support(None),
    **{f"support({k})": support(k) for k in range(3)},
    **{f"near({k})": near(k) for k in range(3)},
}
