"""A run says beforehand what it would ask, stops before it passes a limit, and says afterwards what it took."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.decision import RULES, Choice
from eldgr_dspy.errors import JournalError, RunStoppedError
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.console import print_tables
from eldgr_dspy.programs.heuristics import LexicalJudge
from eldgr_dspy.programs.judges import Comparer, PairwiseJudge, Panel, PointwiseJudge, SliceJudge, SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.forecast import forecast, possible_roles
from eldgr_dspy.programs.run.freezes import write_freeze
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.tables.plan_tables import forecast_table
from eldgr_dspy.words import ROLES
from tests.asking.transport import FINAL, GOOD, log_of, selector_at
from tests.caching import cached_by_dspy
from tests.capitals import NO_SPAN, VERDICT, drop_times, obliging, recording, row, selector_with, write_pool
from tests.deciding import decide_case
from tests.finished_runs import unseal
from tests.lm_server import Answer, serving
from tests.ollama_server import fill
from tests.refusing import refuses
from tests.run.journals import json_of
from tests.selecting import Returns


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", map(row, range(12)))


each_way = pytest.mark.parametrize("workers", [1, 6])


# -- limits --
@each_way
def test_no_request_beyond_max_calls_is_sent_and_a_higher_one_resumes(pool: Path, tmp_path: Path, workers: int) -> None:
    with serving(lambda request: GOOD) as server:
        plan = Plan([pool], tmp_path / "run", workers=workers, max_calls=5)
        for _ in range(2):
            message = r"^5 requests were sent, and --max-calls allows 5; give a higher limit to resume\.$"
            refuses(RunStoppedError, message, evaluate, selector_at(server), plan)
            assert len(server.log) == sum(one.calls for one in log_of(tmp_path)) == 5
        higher = Plan([pool], tmp_path / "run", workers=workers, max_calls=12)
        assert evaluate(selector_at(server), higher)["pools"]["capitals"]["rules"]["judge"]["em"] == 100
        assert len(server.log) == 12
        evaluate(selector_at(server), plan)  # nothing is left to ask, so the lower limit does not matter
    with serving(lambda request: Answer(status=503)) as server:  # retries are requests
        plan = Plan([pool], tmp_path / "503" / "run", workers=workers, max_calls=4, max_failures="100%")
        refuses(RunStoppedError, "--max-calls allows 4", evaluate, selector_at(server, num_retries=9), plan)
        assert len(server.log) == sum(one.calls for one in log_of(tmp_path / "503")) == 4
        assert {one.outcome for one in log_of(tmp_path / "503")} == {"failed"}


@each_way
def test_no_more_than_max_cost_is_spent(pool: Path, tmp_path: Path, workers: int) -> None:
    with serving(lambda request: GOOD) as server:
        plan = Plan([pool], tmp_path / "run", workers=workers)
        refuses(RunStoppedError, "--max-calls", evaluate, selector_at(server), replace(plan, max_calls=1))
        price = log_of(tmp_path)[0].cost or 0.0
        message = r"^\$0\.0\d+ was spent and the dearest request took \$0\.0\d+, so"
        refuses(RunStoppedError, message, evaluate, selector_at(server), replace(plan, max_cost=5.5 * price))
        assert 4 <= len(server.log) <= 5
        assert sum(one.cost or 0.0 for one in log_of(tmp_path)) <= 5.5 * price
        evaluate(selector_at(server), replace(plan, max_cost=13 * price))
        assert len(server.log) == 12
    selector, lm = selector_with(obliging)
    message = "^A reply came without a price, so --max-cost cannot be enforced; lim"
    refuses(RunStoppedError, message, evaluate, selector, replace(plan, out=tmp_path / "other", max_cost=1.0))
    assert len(lm.requests) == 1


def test_what_failed_questions_cost_is_spent_also_for_the_sessions_after(pool: Path, tmp_path: Path) -> None:
    """The judge takes two requests a question."""
    numbers = count()
    with serving(lambda request: GOOD if next(numbers) % 2 == 0 else Answer(status=503)) as server:

        def session(plan: Plan) -> None:  # of a selector of its own, as in another process
            selector = selector_at(server)
            selector.judge = SwapConsistent(Judge(), orders=2)
            selector.judge.set_lm(selector.repairer.get_lm())
            evaluate(selector, plan)

        plan = Plan([pool], tmp_path / "run", rules=["judge"], max_cost=1.0)
        refuses(RunStoppedError, "1 question failed", session, plan)
        (failure,) = log_of(tmp_path)
        price = failure.cost or 0.0
        assert (failure.outcome, failure.calls, failure.dearest) == ("failed", 2, price)
        for _ in range(3):
            refuses(RunStoppedError, "was spent", session, replace(plan, max_cost=2.5 * price))
        assert sum(one.status == 200 for one in server.log) == 2
        assert sum(one.cost or 0.0 for one in log_of(tmp_path)) == 2 * price


def test_waiting_for_a_price_does_not_count_as_time_of_a_question_nor_hold_others(pool: Path, tmp_path: Path) -> None:
    """Also where the request that they wait for is given up."""
    with serving(lambda request: Answer(FINAL, delay=1.0)) as server:
        plan = Plan([pool], tmp_path / "run", workers=4, limit=4, timeout=1.9, max_cost=1.0, rules=["judge"])
        assert evaluate(selector_at(server), plan)["pools"]["capitals"]["n_failed"] == 0
    assert all((one.seconds or 0.0) < 2 * 1.0 for one in log_of(tmp_path))
    with serving(lambda query: Answer(FINAL, delay=30.0 * ("number 0?" in query.question))) as server:
        plan = replace(plan, out=tmp_path / "given up", workers=3, limit=6, timeout=2.0, max_failures=1)
        assert evaluate(selector_at(server), plan)["pools"]["capitals"]["n_failed"] == 1


def test_a_run_resumes_at_a_server_on_another_port_and_a_freeze_holds_none(pool: Path, tmp_path: Path) -> None:
    plan = Plan([pool], tmp_path / "run", max_calls=5, rules=["judge"])
    with serving(lambda request: GOOD) as first, serving(lambda request: GOOD) as second:
        refuses(RunStoppedError, "--max-calls", evaluate, selector_at(first), plan)
        assert forecast(selector_at(second), plan)["pools"]["capitals"]["roles"]["judge"]["to_ask"] == 7
        for _ in range(2):
            evaluate(selector_at(second), replace(plan, max_calls=None))
        assert len(second.log) == 7
        freeze = write_freeze(selector_at(first), ["judge"], tmp_path / "rule.freeze.json").path
        evaluate(selector_at(second), Plan([pool], tmp_path / "frozen", rules=["judge"], freeze=freeze))
        assert (len(first.log), len(second.log)) == (5, 7 + 12)
    heads = list[dict[str, Any]]()
    prints = [one.fingerprint for one in read_journal(tmp_path / "run" / "journal.jsonl", heads)]
    addresses = [one["details"]["lm"]["settings"]["api_base"] for one in heads if one["kind"] == "role"]
    assert addresses == [first.address, second.address]
    assert (len(set(prints[:5])), len(set(prints[5:])), len(set(prints))) == (1, 1, 2)
    record = json_of(tmp_path / "run" / "record.json")
    assert record["remarks"][0].startswith("The judge was asked at 2 addresses; one of them is stated here")


def test_recorded_consultations_are_no_requests_and_those_of_dspy_s_cache_counted_apart(
    pool: Any, tmp_path: Path
) -> None:
    replay = recording(tmp_path / "replay.jsonl", [f"q{number}" for number in range(12)], calls=1, cost=3.0)
    selector, lm = selector_with(obliging)
    for _ in range(2):
        evaluate(selector, Plan([pool], tmp_path / "run", replay=replay, max_calls=1, max_cost=0.01))
    assert lm.requests == []
    with cached_by_dspy():
        for out, calls, hits in (("first", 12, 0), ("again", 0, 12)):
            selector.set_lm(scripted_lm(obliging, cache=True))
            summary = evaluate(selector, Plan([pool], tmp_path / out, max_calls=12))
            figures, em = summary["consultations"]["judge"], summary["pools"]["capitals"]["rules"]["judge"]["em"]
            assert (figures["calls"], figures["cached"], em) == (calls, hits, 100)


# -- the command --
def test_the_command_says_what_a_run_would_ask_at_most_and_afterwards_what_it_has_asked(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a dry run it does nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with serving(lambda request: GOOD) as server:
        command = ["evaluate", str(pool), "--api-base", server.address]
        dry = [*command, "--lm", "openai/gpt-4o-mini", "--dry-run"]
        assert main(dry) == 0
        output = capsys.readouterr()
        assert main([*dry, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert (output.err, server.log, {path.name for path in tmp_path.iterdir()}) == ("", [], {"capitals.jsonl"})
        counts = {"at_most": 12, "journaled": 0, "recorded": 0, "to_ask": 12, "calls": 12}
        roles = {"judge": counts, "repairer": counts}
        assert figures["pools"] == {"capitals": {"n": 12, "task": "retrieval", "roles": roles}}
        assert set(figures["models"].values()) == {"openai/gpt-4o-mini"}
        assert "│ capitals │    judge │ openai/gpt-4o-mini │      12 │" in output.out
        assert main([*command, "--out", "run", "--judge", "openai/gpt-4o-mini"]) == 0
    assert main(["report", "run"]) == 0
    out = capsys.readouterr().out
    sums = json_of(tmp_path / "run" / "summary.json")["consultations"]["judge"]
    assert (sums["calls"], sums["cached"], sums["ok"]) == (12, 0, 12)
    first = next(line for line in out.partition("what the run asked of LMs, in all")[2].splitlines() if "judge" in line)
    cells = [cell.strip() for cell in first.strip("│").split("│")]
    tokens = [f"{sums['prompt_tokens']:,}", f"{sums['completion_tokens']:,}"]
    assert cells == ["judge", "12", "0", "0", "12", "0", *tokens, f"{sums['cost']:.4f}"]
    assert "what the run asked of LMs" in (tmp_path / "run" / "report.html").read_text()


# -- dry runs --


def silent(request: Any) -> str:
    return "I would rather not say."


JUDGES: dict[str, Callable[[], dspy.Module]] = {
    "listwise": Judge,
    "two orders": lambda: SwapConsistent(Judge()),
    "nine orders": lambda: SwapConsistent(Judge(), 9),
    "pairwise": PairwiseJudge,
    "pairwise, both orders": lambda: PairwiseJudge(SwapConsistent(Comparer(), 5)),
    "pairwise, each scored": lambda: PairwiseJudge(PointwiseJudge()),
    "pairwise in two orders": lambda: SwapConsistent(PairwiseJudge()),
    "pointwise": PointwiseJudge,
    "slices": SliceJudge,
    "panel": lambda: Panel([Judge(), PairwiseJudge(), SliceJudge()]),
    "heuristic": lambda: SwapConsistent(LexicalJudge()),
}
CROWDS = (
    ("Nice", "Nice", "Paris", "Oslo"), ("nice", "Nice.", "Paris", None), ("Nice", "Paris", "Oslo", "Lyon", "Paris"),
    ("Nice", None, None, "Oslo"), ("Nice", "Nice"), (None,),
)  # fmt: skip


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("rules", [tuple(RULES), ("eldgr",)], ids=["all rules", "eldgr"])
def test_a_dry_run_counts_the_calls_of_a_run_under_any_judge(tmp_path: Path, name: str, rules: tuple[str, ...]) -> None:
    """Exactly as many where the roles say nothing, and no more where they say something."""
    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=one) for number, one in enumerate(CROWDS)))
    for reply in (silent, lambda request: fill(request.config.response_format["schema"])):
        exact = reply is silent and name != "heuristic"
        selector, lm = selector_with(reply)
        selector.judge = JUDGES[name]()
        selector.set_lm(lm)
        plan = Plan([pool], tmp_path / ("silent" if reply is silent else "obliging"), rules)
        response: Any = {role: one["calls"] for role, one in forecast(selector, plan)["pools"]["p"]["roles"].items()}
        result = evaluate(selector, plan)["consultations"]
        counts = {role: result[role]["calls"] for role in response}
        assert sum(counts.values()) == len(lm.requests)
        assert counts == response if exact else all(counts[role] <= response[role] for role in response)


def test_a_role_that_states_no_calls_makes_some(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    selector, _ = selector_with(silent)
    selector.judge = SwapConsistent(dspy.ChainOfThought(JudgeCandidates))
    before = forecast(selector, Plan([pool]))
    calls = {name: of["calls"] for name, of in before["pools"]["capitals"]["roles"].items()}
    assert calls == {"judge": None, "repairer": 12}
    print_tables(before, [forecast_table(before)], "text")
    assert "12+ │" in (output := capsys.readouterr().out) and "the role does not say" in output


POOLS = (("Nice", "Nice", "Paris"), ("Paris", "Paris", "Nice"), ("Nice", "Oslo"), ("Nice", "Nice"), ("Paris",), (None,))


def test_a_dry_run_is_exact_and_takes_what_is_known_as_it_is(pool: Path, tmp_path: Path) -> None:
    """What it says is what a run asks whose roles say nothing, which is when a rule asks most."""
    many = write_pool(tmp_path / "mixed.jsonl", (row(n, answers=POOLS[n % len(POOLS)]) for n in range(40)))
    for rules in (tuple(RULES), ("eldgr",), ("judge",), ("majority",)):
        out = tmp_path / "-".join(rules)
        plan, (selector, lm) = Plan([pool, many], out, rules), selector_with(silent)
        before = forecast(selector, plan)
        assert not out.exists()
        summary = evaluate(selector, plan)
        counts = Counter((one.pool, one.role) for one in read_journal(out / "journal.jsonl"))
        roles = [(name, *role) for name, one in before["pools"].items() for role in one["roles"].items()]
        assert {(name, role): of["at_most"] for name, role, of in roles} == counts
        calls = sum(one["calls"] for one in summary["consultations"].values())
        assert len(lm.requests) == counts.total() == calls
    plan, (selector, lm) = Plan([pool], tmp_path / "run", limit=8), selector_with(obliging)
    evaluate(selector, replace(plan, limit=4))  # the judge prefers what is certified, so that nobody repairs
    lm.requests.clear()
    replay = recording(tmp_path / "replay.jsonl", ["q4", "q5"])
    result = forecast(selector, replace(plan, replay=replay))["pools"]["capitals"]
    judge = {"at_most": 8, "journaled": 4, "recorded": 2, "to_ask": 0, "calls": 0}  # of the last two it is never asked
    repairer = {"at_most": 8, "journaled": 0, "recorded": 0, "to_ask": 2, "calls": 2}
    assert result["roles"] == {"judge": judge, "repairer": repairer}
    anew = forecast(selector, replace(plan, fresh=True))["pools"]["capitals"]["roles"]["judge"]
    assert (anew, lm.requests) == ({"at_most": 8, "journaled": 0, "recorded": 0, "to_ask": 8, "calls": 8}, [])


def test_a_dry_run_passes_over_a_torn_line_and_refuses_a_wrong_one(pool: Path, tmp_path: Path) -> None:
    """Of a run that was changed it says what `tests/run/test_evaluation.py` has a run say."""
    plan = Plan([pool], tmp_path / "run")
    evaluate(selector_with(obliging)[0], plan)
    journal = tmp_path / "run" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-9])  # as a crash, or a run that is writing, leaves it
    result = forecast(selector_with(obliging)[0], plan)["pools"]["capitals"]["roles"]["judge"]
    assert (result["journaled"], result["to_ask"]) == (11, 1)
    journal.write_text(unseal(whole.decode()).replace('"consultation"', '"else"', 1))
    refuses(JournalError, "kind='else' is not one of", forecast, selector_with(obliging)[0], plan)


def case_of(answers: Iterable[str | None], **settings: Any) -> Case:
    return Case(validate(row(0, answers=tuple(answers)), "p").to_question(), Settings(**settings))


DERIVATIONS: list[Reply] = [
    Abstention("silent"),
    *(Derivation((Step("3*6", value),), value, f"{value}/6 = 3") for value in ("18", "17")),
    *(Derivation((Step(value, value),), value) for value in ("17", "12")),
]

REPLIES: list[Reply] = [Abstention("silent"), Repair("Paris"), Repair("Nice"), Repair("nowhere")]


@given(
    st.lists(st.sampled_from(["Paris", "Nice", "Oslo", "Lyon", None]), min_size=1, max_size=5),
    st.sampled_from(["lazy", "always"]),
    st.sampled_from(["repair", "skip"]),
    st.data(),
)
def test_no_reply_asks_for_more(answers: list[str | None], consult: str, homogeneous: str, data: st.DataObject) -> None:
    case = case_of(answers, consult=consult, homogeneous=homogeneous)
    verdicts: list[Reply] = [Abstention("silent"), *map(Verdict, range(len(answers)))]
    for name in RULES:
        replies = {role: data.draw(st.sampled_from(verdicts if role == "judge" else REPLIES)) for role in ROLES}
        assert decide_case(case, replies, name)[1].keys() <= possible_roles(case.rule(name), case, {})


@pytest.mark.parametrize("consult", ["lazy", "always"])
@pytest.mark.parametrize("homogeneous", ["repair", "skip"])
@pytest.mark.parametrize("answers", [["18", "18"], ["17", "18", "17"], ["17", "12"], [None, "17"], [None]])
@pytest.mark.parametrize("derivation", ["executed", "stated"])
def test_a_derivation_asks_no_more(answers: list[str | None], consult: Any, homogeneous: Any, derivation: Any) -> None:
    """A dry run takes the deriver to be silent; whatever it derives, and whatever the judge then says, asks no more."""
    line = row(0, answers=tuple(answers), task="arithmetic", question="What is 3 times 6?", gold=["18"], evidence=[])
    settings = Settings(consult=consult, homogeneous=homogeneous, derivation=derivation)
    case = Case(validate(line, "p").to_question(), settings)
    verdicts: list[Reply] = [Abstention("silent"), *map(Verdict, range(len(answers)))]
    for name in RULES:
        foreseen, branches = possible_roles(case.rule(name), case, {}), set[str]()
        for judge, repairer, deriver in product(verdicts, REPLIES, DERIVATIONS):
            decision, replies = decide_case(case, {"judge": judge, "repairer": repairer, "deriver": deriver}, name)
            branches.add(decision.branch)
            assert replies.keys() <= foreseen
        assert name != "eldgr" or answers != ["17", "18", "17"] or "repair" in branches  # so that one was accepted


def test_a_rule_that_asks_more_where_it_is_answered_is_foreseen() -> None:
    def thorough(case: Any) -> Any:
        if case.stated((yield "judge")) is not None:
            yield "repairer"
        return Choice("consensus", case.consensus)

    assert possible_roles(thorough, case_of(["Nice", "Paris"]), {}) == {"judge", "repairer"}
    assert possible_roles(thorough, case_of(["Nice", "Paris"]), {"judge": Abstention("silent")}) == {"judge"}


# -- unusable replies --
WORDS = "I would take the third."  # in words, where JSON was asked for


def mumbling(request: Any) -> Any:
    """Judges every other question in words."""
    number = int(text_of(request).split("capital number ")[1].split("?")[0])
    return WORDS if role_of(request) == "judge" and number % 2 else obliging(request)


@pytest.mark.parametrize("workers", [1, 4])
def test_over_the_limit_the_run_stops_and_a_higher_limit_resumes_it(pool: Path, tmp_path: Path, workers: int) -> None:
    plan = Plan([pool], tmp_path / "run", workers=workers, max_abstentions=3)
    selector, lm = selector_with(mumbling)
    message = (
        r"^4 questions had an unusable reply, and --max-abstentions allows 3; give a higher limit to resume\. "
        r"The judge gave 4, most often unreadable \(4\), such as: unparsable: "
    )
    refuses(RunStoppedError, message, evaluate, selector, plan)
    assert not (tmp_path / "run" / "summary.json").exists()
    again, silent = selector_with(mumbling)
    refuses(RunStoppedError, message, evaluate, again, plan)
    assert silent.requests == [] or workers > 1
    other, rest = selector_with(mumbling)
    result, run = evaluate(other, replace(plan, max_abstentions=6)), tmp_path / "whole"
    assert drop_times(result["pools"]) == drop_times(evaluate(selector_with(mumbling)[0], Plan([pool], run))["pools"])
    requests_before = len(lm.requests) + len(silent.requests) + len(rest.requests)
    assert requests_before == sum(one.calls for one in read_journal(tmp_path / "run" / "journal.jsonl"))
    # a finished run and its replay are held to it too, and ask nothing
    again, lm = selector_with(mumbling)
    before, plan = (run / "summary.json").read_bytes(), Plan([pool], run, workers=workers)
    message = "^1 question had an unusable reply, and --max-abstentions allows 0"
    refuses(RunStoppedError, message, evaluate, again, replace(plan, max_abstentions=0))
    assert (run / "summary.json").read_bytes() == before
    evaluate(again, plan)  # an abstention is never asked again
    replay = replace(plan, out=tmp_path / "replay", replay=run / "journal.jsonl", max_abstentions="50%")
    message = "^5 questions had an unusable reply, and --max-abstentions allows 4"
    refuses(RunStoppedError, message, evaluate, again, replace(replay, max_abstentions="40%"))
    assert lm.requests == []
    evaluate(again, replay)


def test_a_question_counts_once_and_each_role_is_named_with_its_most_frequent_reason(tmp_path: Path) -> None:
    """The judge and the repairer are both asked on each question, and neither is read. What fails is not counted."""
    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(3)))
    selector, lm = selector_with(lambda one: VERDICT | {"preferred": 9} if role_of(one) == "judge" else WORDS)
    evaluate(selector, Plan([pool], tmp_path / "three", max_abstentions=3))
    assert len(lm.requests) == 6
    message = (
        r" to resume\. The judge gave 3, most often invalid \(3\), such as: preferred=9 is not a whole number from 0 "
        r"to 2\. The repairer gave 2, most often unreadable \(2\), such as: unparsable: "
    )
    refuses(RunStoppedError, message, evaluate, selector, Plan([pool], tmp_path / "two", max_abstentions=2))
    away = dspy.LMServerError("away")
    selector, _ = selector_with(lambda one: NO_SPAN if role_of(one) == "repairer" else away)
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(12)))
    evaluate(selector, Plan([pool], tmp_path / "failing", limit=5, max_failures="100%", max_abstentions=0))
    selector.judge = Returns({"abstained": "I know too little"})
    evaluate(selector, Plan([pool], tmp_path / "declining", max_abstentions=0))


def test_a_reply_that_no_journal_holds_is_unusable(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be written, and refused by whatever reads the journal afterwards."""
    monkeypatch.setenv("ELDGR_FILE_LIMITS", "0.01")

    def flooding(request: Any) -> Any:
        if role_of(request) != "judge" or "capital number 1?" not in text_of(request):
            return obliging(request)
        return {"judge_rationale": "", "assessments": [[]] * 5_000, "preferred": 0}

    (selector, lm), plan = selector_with(flooding), Plan([pool], tmp_path / "run")
    result = evaluate(selector, plan)
    assert result["consultations"]["judge"]["abstained"] == 1
    lm.requests.clear()
    assert (evaluate(selector, plan)["consultations"], lm.requests) == (result["consultations"], [])
    replies = [one for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.role == "judge"]
    reason = "unreadable: the reply is too large, or nested too deeply, for a line of a journal"
    assert [(one.content, one.reason) for one in replies if one.outcome == "abstained"] == [(None, reason)]
