"""Judges that ask again and again: in several orders, by pairs, one candidate a call, or as a panel of judges.

An LM tends to prefer the candidate in a certain place; to ask in other places too is of Zheng et al. 2023 ("Judging
LLM-as-a-judge", section 3.3). A panel of several LMs is of Verga et al. 2024 ("Replacing Judges with Juries", arXiv
2404.18796); that an absent judge stays in the denominator is ours.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import (
    NO_CANDIDATE,
    RepeatedCalls,
    Rounds,
    about_each,
    abstain,
    answers_of,
    classes_of,
    preferring,
    read_verdict,
    require_read,
)
from eldgr_dspy.programs.lms.one_call import OneCall, Request, calls_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.signatures import AssessCandidate, CompareCandidates, read_scores


def _in_orders(judge: dspy.Module, about: Mapping[str, Any], orders: Sequence[Sequence[int]]) -> list[Request]:
    """The requests that show a judge candidates, by pool index, in each order."""
    sequences = [[about["candidates"][index] for index in order] for order in orders]
    return [Request(judge, {**about, "candidates": texts}, "judge") for texts in sequences]


def _entry(order: Sequence[int], preferred: int | None, words: str, **scores: Any) -> dict[str, Any]:
    """One entry of `orders`, by pool index; `words` are the rationale, or why there is no preference."""
    entry = {"order": [*order], "preferred": preferred}
    return {**entry, "abstained": words} if preferred is None else {**entry, **scores, "rationale": words}


class SwapConsistent(RepeatedCalls):
    """Shows a judge the pool in several orders and passes on a preference that is the same in all of them.

        selector.judge = SwapConsistent(selector.judge)

    One consultation, with one call an order; all calls are made. Preferences are compared by answer, as answers vote,
    and not by candidate. A preference that changes is an abstention with reason `inconsistent`. If the judge gives no
    verdict in one order, the whole is an abstention. Scores are means over the orders, if each order has them. The
    rationale is that of the pool's order.

    Attributes:
        judge: Any module in the judge's role. orders: How many orders.
    """

    def __init__(self, judge: dspy.Module, orders: int = 2) -> None:
        """Wrap a judge; raise an ArgumentError unless orders are at least 2. If a pool has fewer, all are asked."""
        super().__init__()
        if type(orders) is not int or orders < 2:
            raise ArgumentError(f"orders must be a whole number of at least 2; got {orders!r}. For 1, use the judge.")
        self.judge, self.orders = judge, orders

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask in each order; an entry of `orders` has `order`, `preferred`, `scores`, `rationale`, or `abstained`."""
        about = {"question": question, "evidence": evidence, "candidates": candidates}
        orders, answers = orders_of(candidates, self.orders), answers_of(candidates)
        outcomes = yield _in_orders(self.judge, about, orders)
        require_read(outcomes)
        entries, scores, failures = list[dict[str, Any]](), list[Any](), list[Abstention]()
        for number, (order, outcome) in enumerate(zip(orders, outcomes, strict=True), start=1):
            reply = read_verdict(outcome.content, [answers[index] for index in order], len(evidence))
            if isinstance(reply, Abstention):
                failures.append(replace(reply, reason=f"{reply.reason} (in order {number} of {len(orders)})"))
                entries.append(_entry(order, None, reply.reason))
                continue
            by_place = reply.scores and [reply.scores[order.index(place)] for place in sorted(order)]
            scores.append(by_place)
            entries.append(_entry(order, order[reply.preferred], reply.rationale, scores=by_place))
        if failures:
            return abstain(failures[0], orders=entries)
        classes, preferred = classes_of(answers), [entry["preferred"] for entry in entries]
        if len({classes[index] for index in preferred}) > 1:
            disagreement = f"the orders prefer candidates {', '.join(map(str, preferred))}"
            return abstain(Abstention.of("inconsistent", disagreement), orders=entries)
        means = None if None in scores else [{"scalar": math.fsum(of) / len(of)} for of in zip(*scores, strict=True)]
        rationale = entries[0]["rationale"]
        return dspy.Prediction(preferred=preferred[0], assessments=means, judge_rationale=rationale, orders=entries)


def orders_of(candidates: Sequence[str], most: int) -> list[tuple[int, ...]]:
    """Return at most `most` orders of the candidates, no two of which show the same texts in the same places."""
    # Each rotation with its reverse: all six orders of three candidates. In twice as many orders as candidates, each
    # one is first, and last, equally often.
    distinct, n = dict[tuple[str, ...], tuple[int, ...]](), len(candidates)
    for start in range(n):
        rotation = (*range(start, n), *range(start))
        for order in (rotation, rotation[::-1]):
            distinct.setdefault(tuple(candidates[index] for index in order), order)
            if len(distinct) == most:
                return [*distinct.values()]
    return [*distinct.values()]


class Comparer(Judge):
    """Compares two candidates with one LM call; a judge of a pool of two, without scores."""

    signature = CompareCandidates

    def show(self, **inputs: Any) -> dict[str, Any]:
        """Return the question, the evidence and the candidates; raise an ArgumentError unless there are two."""
        if (n := len(inputs["candidates"])) != 2:
            raise ArgumentError(f"candidates must be two for a Comparer; got {n}. Use PairwiseJudge.")
        return super().show(**inputs)

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `preferred`, 0 or 1, and `judge_rationale`."""
        return dspy.Prediction(preferred=reply.better, judge_rationale=reply.comparison_rationale)


class PairwiseJudge(RepeatedCalls):
    """Prefers the answer that wins a knockout of comparisons, two candidates a call.

        selector.judge = PairwiseJudge()
        selector.judge = PairwiseJudge(SwapConsistent(Comparer()))    # each pair in both orders

    One candidate represents each answer, so no two that would vote together, in either task, are compared. Who meets
    whom is drawn from the texts, so the pool's order does not matter. If a comparison fails (unparsable, out of range,
    inconsistent), the answer with more votes advances; with equal votes, the one shown first. If the final fails, the
    judge abstains. With a single answer it asks nothing.

    Attributes:
        judge: Any module in the judge's role; it is given two candidates at a time.
    """

    def __init__(self, judge: dspy.Module | None = None) -> None:
        super().__init__()
        self.judge: dspy.Module = Comparer() if judge is None else judge

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Hold the knockout; an entry of `orders` has `order`, `preferred`, and `rationale` or `abstained`."""
        about = {"question": question, "evidence": evidence, "candidates": candidates}
        answers, orders, final = answers_of(candidates), list[dict[str, Any]](), None
        standing = _draw(question, candidates, classes := classes_of(answers))
        if not standing:
            return abstain(NO_CANDIDATE)
        pair, rationale = (0, 0), "there is one answer; nothing was asked"
        while pairs := [*zip(standing[::2], standing[1::2], strict=False)]:
            outcomes = yield _in_orders(self.judge, about, pairs)
            winners = list[int]()
            for pair, outcome in zip(pairs, outcomes, strict=True):
                both = [answers[index] for index in pair]
                final = read_verdict(outcome.content, both, len(evidence))
                orders += _showings(pair, outcome.content, final)
                first, second = (classes.count(classes[index]) for index in pair)
                winners.append(pair[final.preferred if isinstance(final, Verdict) else second > first])
            standing = winners + standing[2 * len(pairs) :]
        if isinstance(final, Abstention):
            return abstain(replace(final, reason=f"the final is undecided: {final.reason}"), orders=orders)
        if final is not None:
            (loser,), n = {*pair} - {*standing}, len({*classes} - {None}) - 1
            rationale = f"candidate {standing[0]} won the last of {n} comparisons, against candidate {loser}"
        return dspy.Prediction(preferred=standing[0], judge_rationale=rationale, orders=orders)

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return one less than the number of answers, in comparisons; None if the judge does not say what one takes.

        If comparisons differ in how many calls they take, each counts as the one that takes most.
        """
        keys = zip(candidates, classes_of(answers_of(candidates)), strict=True)
        answering = {text: key for text, key in keys if key is not None}
        pairs = (pair for pair in combinations(answering, 2) if answering[pair[0]] != answering[pair[1]])
        calls = [calls_of(self.judge, pair) for pair in pairs]
        return None if None in calls else (len({*answering.values()}) - 1) * max(filter(None, calls), default=0)


def _showings(pair: tuple[int, int], content: Mapping[str, Any], reply: Verdict | Abstention) -> list[dict[str, Any]]:
    """The orders in which a judge saw a pair: those that it states and that are valid, else the pair as it stands."""
    own, whole = content.get("orders"), dict[str, Any]({"order": [0, 1]})
    if "orders" not in content and isinstance(reply, Verdict):
        whole |= {"preferred": reply.preferred, "rationale": reply.rationale}
    entries = [*filter(_is_order, own)] if isinstance(own, list) else []
    result = list[dict[str, Any]]()
    for entry in entries or [whole]:
        preferred, rationale = entry.get("preferred"), entry.get("rationale")
        words = getattr(reply, "reason", "") if preferred is None else rationale if isinstance(rationale, str) else ""
        order = [pair[place] for place in entry["order"]]
        result.append(_entry(order, None if preferred is None else pair[preferred], words))
    return result


def _is_order(entry: object) -> bool:
    """Whether an entry states places of a pair, and a preferred one among them or none."""
    order, preferred = (entry.get("order"), entry.get("preferred")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(order, list) or not all(type(at) is int and 0 <= at < 2 for at in order):
        return False
    return preferred is None or (type(preferred) is int and preferred in order)


def _draw(question: str, candidates: Sequence[str], classes: Sequence[int | None]) -> list[int]:
    """Return one candidate for each answer, in an order that depends only on the texts."""
    order = sorted(
        range(len(candidates)),
        key=lambda index: hashlib.sha256(f"{question}\n{candidates[index]}".encode(errors="replace")).digest(),
    )
    first = {classes[index]: index for index in reversed(order)}
    return [index for index in order if classes[index] is not None and first[classes[index]] == index]


class Assessor(OneCall):
    """Scores one candidate with one LM call: `assessment`, `candidate_rationale`."""

    signature = AssessCandidate

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return the scores of the assessment by aspect."""
        content = super().read(reply, inputs)
        content.assessment = read_scores(content.assessment)
        return content


class PointwiseJudge(RepeatedCalls):
    """Prefers the candidate with the highest scalar, each scored by itself: no order and no rival can sway a score.

        selector.judge = PointwiseJudge()

    The price is the comparison: coarse scores tie. `preferring` settles ties, so that a tie leaves the default. A
    candidate whose score is missing or out of range makes the whole an abstention.

    Attributes:
        assessor: (question, evidence, candidate) -> assessment (with `scalar`, from 0 to 1), candidate_rationale.
    """

    def __init__(self, assessor: dspy.Module | None = None) -> None:
        super().__init__()
        self.assessor: dspy.Module = Assessor() if assessor is None else assessor

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask for each distinct candidate."""
        about = {"question": question, "evidence": evidence}
        replies = yield from about_each(candidates, lambda one: [Request(self.assessor, {**about, "candidate": one})])
        contents = [content for (content,) in replies]
        return preferring(
            [_scalar(content, answer) for content, answer in zip(contents, answers_of(candidates), strict=True)],
            candidates,
            lambda index: contents[index].get("candidate_rationale"),
            assessments=[content.get("assessment") for content in contents],
        )


def _scalar(content: Mapping[str, Any], answer: str) -> float | Abstention:
    """Return the scalar of one candidate's assessment, or why there is none; checked like any judge's score."""
    alone = {"preferred": 0, "assessments": [content.get("assessment")]}
    reply = read_verdict(content if "abstained" in content else alone, [answer or "-"], 0)
    if isinstance(reply, Abstention):
        return reply
    if reply.scores is None:
        return Abstention(reply.remark, "invalid") if reply.remark else Abstention("there is no scalar")
    return reply.scores[0]


class Panel(RepeatedCalls):
    """Asks several judges, and prefers the answer that more than half of all judges prefer; else it abstains.

        selector.judge = Panel([Judge(), PairwiseJudge(), PointwiseJudge()])

    Preferences are compared as answers vote. Of that answer's candidates, the one that most of these judges prefer
    ships, then the earliest. A judge that abstains, or whose reply cannot be used, is absent and prefers nothing. If
    the pool lacks what each of them needs, the panel does not apply either. A failed call is raised.

    Attributes:
        judges: Modules in the judge's role, each given the whole pool.
    """

    def __init__(self, judges: Sequence[dspy.Module]) -> None:
        """Set up the panel; raise an ArgumentError unless it has at least one judge, and modules alone."""
        super().__init__()
        items: object = judges
        if not isinstance(items, Sequence) or not items or not all(isinstance(one, dspy.Module) for one in items):
            raise ArgumentError(f"judges must be a list of at least one module; got {judges!r:.80}. Give [Judge()].")
        self.judges: list[dspy.Module] = list(judges)

    @property
    def takes_ballot(self) -> bool:
        """Whether a member counts ballots."""
        return any(getattr(judge, "takes_ballot", False) for judge in self.judges)

    @property
    def facts(self) -> dict[str, bool]:
        """What any of its members needs, as tables show it; empty if none of them states it."""
        facts: list[Mapping[str, bool]] = [of for judge in self.judges if (of := getattr(judge, "facts", None))]
        return {name: any(of.get(name) for of in facts) for name in dict.fromkeys(name for of in facts for name in of)}

    def rounds(
        self, question: str, evidence: Sequence[str], candidates: Sequence[str], ballot: Ballot | None = None
    ) -> Rounds:
        """Ask each judge; the verdict has `members`, an object a judge with `preferred` or `abstained`."""
        inputs, answers = {"question": question, "evidence": evidence, "candidates": candidates}, answers_of(candidates)
        outcomes = yield [
            Request(judge, {**inputs, "ballot": ballot} if getattr(judge, "takes_ballot", False) else inputs, "judge")
            for judge in self.judges
        ]
        replies = [read_verdict(one.content, answers, len(evidence)) for one in outcomes]
        members = [
            {"preferred": None, "abstained": one.reason}
            if isinstance(one, Abstention)
            else {"preferred": one.preferred}
            for one in replies
        ]
        return dspy.Prediction(**_majority(replies, classes_of(answers)), members=members, orders=[])


def _majority(replies: Sequence[Verdict | Abstention], classes: Sequence[int | None]) -> Mapping[str, Any]:
    """Return the preference of more than half of the judges, or why there is none."""
    inapplicable = [one for one in replies if isinstance(one, Abstention) and one.kind == "not applicable"]
    if len(inapplicable) == len(replies):
        return inapplicable[0].fields
    n, preferences = len(replies), Counter(reply.preferred for reply in replies if isinstance(reply, Verdict))
    votes = Counter(classes[index] for index in preferences.elements() if classes[index] is not None)
    (winner, most), *_ = [*votes.most_common(1), (None, 0)]
    if 2 * most <= n:
        counts = "".join(f"{count} for candidate {index}, " for index, count in sorted(votes.items()))
        return {"abstained": f"no majority of {n} judges: {counts}{n - preferences.total()} absent"}
    best = max(preferences, key=lambda index: (classes[index] == winner, preferences[index], -index))
    return {"preferred": best, "judge_rationale": f"{most} of {n} judges prefer this answer"}
