"""Figures of parts of a pool, put together in any order, are those of the whole pool, byte for byte."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation, Key
from eldgr_dspy.decision import DEFAULT_RULES, Choice, Steps
from eldgr_dspy.figures.authority import PoolBounds
from eldgr_dspy.figures.baselines import Baselines
from eldgr_dspy.figures.record import JournalTotals, Questions
from eldgr_dspy.named_judges import for_judges, judge_in, role_of
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.run.counted import Counted
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.runner import Runner, Settled
from eldgr_dspy.questions import Settings
from eldgr_dspy.report.questions_page import QuestionsPage
from eldgr_dspy.rows import Row
from tests.capitals import row

RULES = for_judges(DEFAULT_RULES, ("b", "a"))
OWN = "tests.results.test_absorbing:repairing"
EVIDENCE: tuple[Any, ...] = (row(0)["evidence"], [])
POOL = Pool("capitals", Path("capitals.jsonl"), 1, "retrieval", "", 0, b"")
SAID: tuple[Mapping[str, Any] | None, ...] = (
    None,  # nobody was asked
    {"outcome": "ok", "content": {"preferred": 0, "assessments": []}},
    {"outcome": "ok", "content": {"preferred": 0, "orders": [{"order": [0], "preferred": 0}]}},
    {"outcome": "abstained", "reason": "not applicable: no confidence"},
    {"outcome": "abstained", "reason": "not applicable: no log-probabilities"},
    {"outcome": "abstained", "reason": "unparsable: nothing", "calls": 2, "seconds": 0.25},
    {"outcome": "failed", "reason": "LMTimeoutError: late", "calls": 1, "seconds": 0.5},
    {"outcome": "abstained", "reason": "no span", "calls": 1, "prompt_tokens": 3, "completion_tokens": 4, "cached": 1},
    {"outcome": "abstained", "reason": "no span", "calls": 1, "prompt_tokens": 3, "prompt_characters": 9_000},
    {"outcome": "abstained", "reason": "no span", "calls": 1, "implausible": "prompt_tokens=-1", "cost": 0.1},
    {"outcome": "abstained", "reason": "no span", "calls": 1, "implausible": "prompt_tokens=-2", "cost": 0.2},
)


class Asked(NamedTuple):
    """A question, and what each role said on it by its place in `SAID`."""

    text: int
    answers: list[str | None]
    gold: list[str]
    source: str | None
    said: dict[str, int]
    bare: bool = False


class Known(Recordings):
    """What was said, as a journal would find it; nobody is asked."""

    def __init__(self, asked: Mapping[str, Asked]) -> None:
        super().__init__()
        self.asked, self.heads = asked, list[Any]()

    def governs(self, pool: str, asked: str) -> bool:
        return True

    def journaled(self, key: Key) -> Consultation | None:
        pool, id, asked = key
        said = SAID[self.asked[id].said.get(asked, 7)]
        if said is None:
            return None
        content = {**said.get("content", {})}
        if "orders" in content:
            places = [*range(len(self.asked[id].answers))]
            content["orders"] = [
                {"order": one, "preferred": one[0], "rationale": "Candidate 1 is best."}
                for one in (places, places[::-1])
            ]
        if "assessments" in content:
            content["assessments"] = [
                {"scalar": 0.75 - 0.25 * min(place, 1)} for place, _ in enumerate(self.asked[id].answers)
            ]
        return Consultation(pool, id, role_of(asked), judge=judge_in(asked), **{**said, "content": content or None})


class Journaled:
    """As much of a journal as a runner looks at."""

    heads: Sequence[Mapping[str, Any]] = ()

    def __init__(self, known: Known) -> None:
        self.find = known.journaled


def settled_rows(asked: Sequence[Asked]) -> list[Settled]:
    rows = [
        Row.model_validate(
            row(
                number,
                question=f"What is capital number {one.text}?",
                answers=one.answers,
                gold=one.gold,
                evidence=EVIDENCE[one.bare],
            )
        )
        for number, one in enumerate(asked)
    ]
    for made, one in zip(rows, asked, strict=True):
        made.candidates[:] = [
            candidate.model_copy(update={"source": one.source and f"{one.source}{place}"})
            for place, candidate in enumerate(made.candidates)
        ]
    known = Known({made.id: one for made, one in zip(rows, asked, strict=True)})
    runner = Runner({}, Settings(), RULES, cast(Any, Journaled(known)), known, FailureBudget(1_000))
    return [settled(runner, made) for made in rows]


def settled(runner: Runner, made: Row) -> Settled:
    try:
        next(runner.settle(POOL.name, made))
    except StopIteration as stop:
        return cast(Settled, stop.value)
    raise AssertionError("nobody may be asked")


def counted(rows: Iterable[Settled]) -> Counted:
    found = Counted(RULES)
    found.begin(POOL)
    for one in rows:
        found.add(POOL, one)
    return found


def as_text(found: Counted) -> str:
    return json.dumps([found.pools({}), found.effects()])


ASKED = st.builds(
    Asked,
    st.integers(0, 4),
    st.lists(st.sampled_from(["Nice", "Paris", "Lyon", None]), min_size=1, max_size=4),
    st.sampled_from([["Paris"], ["Nice"], []]),
    st.sampled_from(["m", "n", None]),
    st.dictionaries(st.sampled_from(["judge[a]", "judge[b]", "repairer"]), st.integers(0, len(SAID) - 1)),
    st.booleans(),
)
CONTESTED: list[str | None] = ["Nice", "Nice", "Paris"]


@settings(max_examples=40, deadline=None)
@given(st.lists(ASKED, max_size=8), st.lists(st.integers(0, 2), min_size=5, max_size=5), st.permutations(range(3)))
@example(
    # the judge that is heard first, the reason of an abstention and the first example depend on the order
    [
        Asked(0, CONTESTED, ["Paris"], "m", {"judge[a]": 3, "judge[b]": 9}),
        Asked(1, CONTESTED, ["Paris"], "m", {"judge[a]": 4, "judge[b]": 10}),
    ],
    [0, 1, 2, 0, 1],
    [1, 0, 2],
)
@example(
    [Asked(0, CONTESTED, ["Paris"], "m", {"judge[b]": 0}), Asked(1, CONTESTED, ["Paris"], "n", {"judge[a]": 0})],
    [0, 1, 2, 0, 1],
    [1, 0, 2],
)
@example(
    [Asked(0, CONTESTED, ["Paris"], "m", {"judge[b]": 1}), Asked(0, CONTESTED, ["Nice"], "m", {"judge[a]": 2})],
    [2, 1, 2, 0, 1],
    [2, 0, 1],
)
@example(
    [Asked(n, [None], ["Paris"], "m", {}, bare=True) for n in (0, 1)] + [Asked(2, CONTESTED, ["Paris"], "m", {})],
    [0, 1, 2, 0, 1],
    [1, 0, 2],
)
@example(
    [Asked(n, CONTESTED, ["Paris"], "m", {"judge[a]": said, "judge[b]": 6}) for n, said in enumerate([1, 2, 6])],
    [0, 1, 2, 0, 1],
    [1, 0, 2],
)
def test_counts_of_parts_are_the_counts_of_the_whole(asked: list[Asked], part_of: list[int], order: list[int]) -> None:
    rows = settled_rows(asked)
    parts = [
        counted(row for row, one in zip(rows, asked, strict=True) if part_of[one.text] == part) for part in range(3)
    ]
    whole = counted([])
    for place in order:
        whole.absorb(parts[place])
    assert as_text(whole) == as_text(counted(rows))


def repairing(case: Case) -> Steps:
    """A rule that asks the repairer on the question of Rome alone, on which no bound covers it."""
    reply = (yield "repairer") if "Rome" in case.question.text else None
    return Choice("consensus", case.consensus if reply is None else case.repaired(reply))


def bounded(*questions: str) -> PoolBounds:
    found = PoolBounds("retrieval", [OWN])
    for text in questions:
        found.add(Case(Row.model_validate(row(1, question=text)).to_question()), ["Paris"])
    return found


def test_what_one_part_leaves_without_bounds_is_without_bounds_in_the_whole() -> None:
    whole = bounded("Where is Paris?")
    assert whole.figures({})["bounds_any_span"] == {OWN: [0.0, 0.0]}
    whole.absorb(bounded("Where is Rome?"))
    assert whole.figures({})["bounds"] == {OWN: [0.0, 0.0]}
    assert whole.figures({})["bounds_any_span"] == {OWN: None}
    withheld = bounded()
    withheld.withhold()
    whole.absorb(withheld)
    assert whole.figures({})["bounds"] == {OWN: None}


def test_baselines_whose_certificates_one_part_lacks_are_lacking_in_the_whole() -> None:
    case = Case(Row.model_validate(row(1)).to_question())
    whole, withheld = Baselines("retrieval"), Baselines("retrieval")
    whole.add(case, ["Paris"], [], {})
    withheld.withhold()
    assert whole.figures()["scores"]["certified"]["em"] == 100.0
    whole.absorb(withheld)
    assert whole.figures()["scores"]["certified"]["em"] is None


ENTRIES = st.builds(
    lambda id, role, said: Consultation("capitals", id, role, **{"content": None, **(SAID[said] or SAID[1] or {})}),
    st.sampled_from("123"),
    st.sampled_from(["judge", "repairer"]),
    st.integers(0, len(SAID) - 1),
)


def totals_of(entries: Iterable[Consultation]) -> JournalTotals:
    decided = Questions()
    for id in "12":
        decided.add("capitals", id)
    return JournalTotals(entries, decided)


@given(st.lists(st.tuples(ENTRIES, st.integers(0, 2))), st.permutations(range(3)))
def test_totals_of_journals_are_those_of_one(drawn: list[tuple[Consultation, int]], order: list[int]) -> None:
    whole = JournalTotals([])
    for part in order:
        whole.absorb(totals_of(entry for entry, of in drawn if of == part))
    plain = totals_of(entry for entry, _ in drawn)
    for of in (JournalTotals.roles, JournalTotals.parse_failures, JournalTotals.cost, JournalTotals.remarks):
        assert json.dumps(of(whole)) == json.dumps(of(plain))
    assert (whole.models, whole.reasons) == (plain.models, plain.reasons)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=12), st.integers(0, 40))
def test_a_page_of_questions_from_other_pages_holds_as_much(drawn: list[tuple[int, int]], largest: int) -> None:
    parts = [QuestionsPage(largest=largest) for _ in range(3)]
    plain, whole = QuestionsPage(largest=largest), QuestionsPage(largest=largest)
    copied = [whole.take(parts[part].take("q" * size)) for part, size in drawn]
    assert copied == [plain.take("q" * size) for _, size in drawn]
    assert whole.foot({}) == plain.foot({})
