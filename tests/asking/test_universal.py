"""Universal self-consistency: one call, without evidence, that names the response most consistent with the others."""

from collections import Counter
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.judges import SwapConsistent, UniversalConsistency
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, scripted_lm, text_of
from eldgr_dspy.voting import majority
from tests.selecting import CONTESTED, awaiting, verdict

# Three of six mean Doha and no two in the same words; two mean Dubai in the same words; the passage names Lusail.
POOL = ["the city of Doha", "Dubai", "Dubai", "Doha, Qatar", "Ad-Dawhah or Doha", "Lusail"]
EVIDENCE = ["Lusail is the capital."]

each_call = pytest.mark.parametrize(
    "call", [lambda judge: judge, lambda judge: awaiting(judge.acall)], ids=["sync", "async"]
)


def shown_in(request: Any) -> list[str]:
    """The candidates of a request, in the order shown."""
    text = (request.messages[-1].text or "").replace("\\n", "\n").split("<candidate ")[1:]
    return [one.split("\n")[1] for one in text]


def by_words(request: Any) -> dict[str, Any]:
    """Asked for agreement, the response with the most common word; asked for support, the one in the passage."""
    pool = shown_in(request)
    if "most_consistent" in request.config.response_format["schema"]["properties"]:
        words = Counter(word.strip(",") for text in pool for word in text.split())
        best = max(range(len(pool)), key=lambda index: max(words[word.strip(",")] for word in pool[index].split()))
        return {"consistency_rationale": "Most say so.", "most_consistent": best}
    return verdict(next(index for index, text in enumerate(pool) if text in EVIDENCE[0]), len(pool))


def judged(judge: Any, candidates: list[str] = POOL) -> dict[str, Any]:
    found: dict[str, Any] = judge(question="q?", evidence=EVIDENCE, candidates=candidates).toDict()
    return found


@each_call
def test_it_counts_meanings_where_a_vote_counts_words_and_a_listwise_judge_reads_the_evidence(call: Any) -> None:
    with dspy.context(lm=scripted_lm(by_words)):
        found, listwise = judged(call(UniversalConsistency())), judged(call(Judge()))
    assert found == {"preferred": 0, "judge_rationale": "Most say so."}
    assert majority(POOL, "retrieval").winner == "dubai"
    assert listwise["preferred"] == 5


@each_call
def test_it_asks_once_and_shows_the_question_and_all_candidates_without_evidence(call: Any) -> None:
    judge, lm = UniversalConsistency(), scripted_lm(by_words)
    judge.set_lm(lm)
    judged(call(judge))
    (request,) = lm.requests
    assert shown_in(request) == POOL
    assert "q?" in text_of(request) and "capital" not in text_of(request) and "passage" not in text_of(request)
    assert judge.most_calls(POOL) == 1


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (3, "preferred=3 is not a whole number from 0 to 2"),
        (-1, "preferred=-1 is not a whole number from 0 to 2"),
        (True, "unparsable: "),
        ("2", "unparsable: "),
        (2.0, "unparsable: "),
        (None, "unparsable: "),
    ],
)
def test_an_index_outside_the_pool_or_not_a_number_is_an_abstention(named: Any, reason: str) -> None:
    select = Selector()
    select.judge = UniversalConsistency()
    silent = {"repair_passage": -1, "repaired_answer": ""}
    lm = scripted_lm([{"consistency_rationale": "", "most_consistent": named}, silent])
    with dspy.context(lm=lm):
        pred = select(**CONTESTED)
    assert (pred.answer, pred.branch, pred.preference) == ("Dubai", "consensus", None)
    assert pred.abstentions["judge"].startswith(reason)


@each_call
def test_a_reply_that_cannot_be_read_and_a_failed_call_are_raised(call: Any) -> None:
    for said, error in (("Response 2.", dspy.AdapterParseError), (dspy.LMServerError("down"), dspy.LMError)):
        judge = UniversalConsistency()
        judge.set_lm(scripted_lm([said]))
        with pytest.raises(error):
            judged(call(judge))


def test_in_two_orders_it_is_asked_twice() -> None:
    lm = scripted_lm(by_words)
    with dspy.context(lm=lm):
        found = judged(SwapConsistent(UniversalConsistency()))
    assert len(lm.requests) == 2
    assert found["abstained"] == "inconsistent: the orders prefer candidates 0, 4"  # as answers vote, two


def test_within_the_lock_it_keeps_the_laws() -> None:
    select = Selector()
    select.judge = UniversalConsistency()
    assert check_selector(select, max_examples=1)["override_needs_a_certificate"] > 0
