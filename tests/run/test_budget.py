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

from eldgr_dspy.decision import RULES, Choice, drive
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
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm, text_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.tables.plan_tables import forecast_table
from eldgr_dspy.words import Role
from tests.asking.transport import FINAL, GOOD, made, selector_at
from tests.caching import cached_by_dspy
from tests.capitals import NO_SPAN, VERDICT, obliging, recording, row, selector_with, untimed, write_pool
from tests.finished_runs import unsealed
from tests.lm_server import Answer, LMServer, serving
from tests.ollama_server import filled
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
            assert len(server.log) == sum(one.calls for one in made(tmp_path)) == 5
        higher = Plan([pool], tmp_path / "run", workers=workers, max_calls=12)
        assert evaluate(selector_at(server), higher)["pools"]["capitals"]["rules"]["judge"]["em"] == 100
        assert len(server.log) == 12
        evaluate(selector_at(server), plan)  # nothing is left to ask, so the lower limit does not matter


@each_way
def test_retries_are_requests(pool: Path, tmp_path: Path, workers: int) -> None:
    with serving(lambda request: Answer(status=503)) as server:
        plan = Plan([pool], tmp_path / "run", workers=workers, max_calls=4, max_failures="100%")
        refuses(RunStoppedError, "--max-calls allows 4", evaluate, selector_at(server, num_retries=9), plan)
        assert len(server.log) == sum(one.calls for one in made(tmp_path)) == 4
        assert {one.outcome for one in made(tmp_path)} == {"failed"}


@each_way
def test_no_more_than_max_cost_is_spent(pool: Path, tmp_path: Path, workers: int) -> None:
    with serving(lambda request: GOOD) as server:
        one = Plan([pool], tmp_path / "run", workers=workers, max_calls=1)
        with pytest.raises(RunStoppedError):
            evaluate(selector_at(server), one)
        price = made(tmp_path)[0].cost or 0.0
        plan = Plan([pool], tmp_path / "run", workers=workers, max_cost=5.5 * price)
        with pytest.raises(RunStoppedError, match=r"^\$0\.0\d+ was spent and the dearest request took \$0\.0\d+, so"):
            evaluate(selector_at(server), plan)
        assert 4 <= len(server.log) <= 5
        assert sum(one.cost or 0.0 for one in made(tmp_path)) <= 5.5 * price
        evaluate(selector_at(server), Plan([pool], tmp_path / "run", workers=workers, max_cost=13 * price))
        assert len(server.log) == 12


def comparing(server: LMServer) -> Selector:
    """A selector whose judge takes two requests a question."""
    selector = selector_at(server)
    selector.judge = SwapConsistent(Judge(), orders=2)
    selector.judge.set_lm(selector.repairer.get_lm())
    return selector


def test_what_failed_questions_cost_is_spent_also_for_the_sessions_after(pool: Path, tmp_path: Path) -> None:
    numbers = count()
    with serving(lambda request: GOOD if next(numbers) % 2 == 0 else Answer(status=503)) as server:
        first = Plan([pool], tmp_path / "run", rules=["judge"], max_cost=1.0)
        refuses(RunStoppedError, "1 question failed", evaluate, comparing(server), first)
        (failed,) = made(tmp_path)
        price = failed.cost or 0.0
        assert (failed.outcome, failed.calls, failed.dearest) == ("failed", 2, price)
        again = Plan([pool], tmp_path / "run", rules=["judge"], max_cost=2.5 * price)
        for _ in range(3):
            with pytest.raises(RunStoppedError):
                evaluate(comparing(server), again)
        assert sum(one.status == 200 for one in server.log) == 2
        assert sum(one.cost or 0.0 for one in made(tmp_path)) == 2 * price


def test_waiting_for_a_price_does_not_count_as_time_of_a_question(pool: Path, tmp_path: Path) -> None:
    with serving(lambda request: Answer(FINAL, delay=1.0)) as server:
        plan = Plan([pool], tmp_path / "run", workers=4, limit=4, timeout=1.9, max_cost=1.0, rules=["judge"])
        assert evaluate(selector_at(server), plan)["pools"]["capitals"]["n_failed"] == 0
    assert all((one.seconds or 0.0) < 2 * 1.0 for one in made(tmp_path))


def test_a_request_given_up_before_a_price_is_known_does_not_hold_the_others(pool: Path, tmp_path: Path) -> None:
    def behave(asked: Any) -> Answer:
        return Answer(FINAL, delay=30.0 * ("number 0?" in asked.question))

    with serving(behave) as server:
        plan = Plan([pool], tmp_path / "run", workers=3, limit=6, timeout=2.0, max_cost=1.0, max_failures=1)
        assert evaluate(selector_at(server), replace(plan, rules=["judge"]))["pools"]["capitals"]["n_failed"] == 1


@each_way
def test_a_reply_without_a_price_ends_a_run_that_has_a_limit_on_cost(pool: Path, tmp_path: Path, workers: int) -> None:
    selector, lm = selector_with(obliging)
    with pytest.raises(RunStoppedError, match=r"^A reply came without a price, so --max-cost cannot be enforced; lim"):
        evaluate(selector, Plan([pool], tmp_path / "run", workers=workers, max_cost=1.0))
    assert len(lm.requests) == 1


def test_a_run_resumes_at_a_server_on_another_port(pool: Path, tmp_path: Path) -> None:
    plan = Plan([pool], tmp_path / "run", max_calls=5, rules=["judge"])
    with serving(lambda request: GOOD) as first, pytest.raises(RunStoppedError):
        evaluate(selector_at(first), plan)
    with serving(lambda request: GOOD) as second:
        assert forecast(selector_at(second), plan)["pools"]["capitals"]["roles"]["judge"]["to_ask"] == 7
        for _ in range(2):
            evaluate(selector_at(second), replace(plan, max_calls=None))
        assert len(second.log) == 7
    heads = list[dict[str, Any]]()
    prints = [one.fingerprint for one in read_journal(tmp_path / "run" / "journal.jsonl", heads)]
    addresses = [one["details"]["lm"]["settings"]["api_base"] for one in heads if one["kind"] == "role"]
    assert addresses == [first.address, second.address]
    assert (len(set(prints[:5])), len(set(prints[5:])), len(set(prints))) == (1, 1, 2)
    record = json_of(tmp_path / "run" / "record.json")
    assert record["remarks"][0].startswith("The judge was asked at 2 addresses; one of them is stated here")


def test_a_freeze_leaves_the_address_to_the_caller(pool: Path, tmp_path: Path) -> None:
    with serving(lambda request: GOOD) as first, serving(lambda request: GOOD) as second:
        freeze = write_freeze(selector_at(first), ["judge"], tmp_path / "rule.freeze.json").path
        evaluate(selector_at(second), Plan([pool], tmp_path / "run", rules=["judge"], freeze=freeze))
        assert not first.log and second.log


def test_heuristic_and_recorded_consultations_are_no_requests(pool: Path, tmp_path: Path) -> None:
    replay = recording(tmp_path / "replay.jsonl", [f"q{number}" for number in range(12)], calls=1, cost=3.0)
    selector, lm = selector_with(obliging)
    for _ in range(2):
        evaluate(selector, Plan([pool], tmp_path / "run", replay=replay, max_calls=1, max_cost=0.01))
    assert lm.requests == []


# -- the command --
def test_the_tables_and_the_report_say_what_was_asked_of_lms(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with serving(lambda request: GOOD) as server:
        command = ["evaluate", str(pool), "--out", str(tmp_path / "run"), "--judge", "openai/gpt-4o-mini"]
        assert main([*command, "--api-base", server.address]) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    sums = json_of(tmp_path / "run" / "summary.json")["consultations"]["judge"]
    assert (sums["calls"], sums["cached"], sums["ok"]) == (12, 0, 12)
    shown = next(line for line in out.partition("what the run asked of LMs, in all")[2].splitlines() if "judge" in line)
    cells = [cell.strip() for cell in shown.strip("│").split("│")]
    tokens = [f"{sums['prompt_tokens']:,}", f"{sums['completion_tokens']:,}"]
    assert cells == ["judge", "12", "0", "0", "12", "0", *tokens, f"{sums['cost']:.4f}"]
    assert "what the run asked of LMs" in (tmp_path / "run" / "report.html").read_text()


def test_what_dspy_s_cache_answers_is_counted_apart(pool: Path, tmp_path: Path) -> None:
    with cached_by_dspy():
        for out, calls, cached in (("run", 12, 0), ("again", 0, 12)):
            selector = Selector()
            selector.set_lm(scripted_lm(obliging, cache=True))
            summary = evaluate(selector, Plan([pool], tmp_path / out, max_calls=12))
            figures = summary["consultations"]["judge"]
            assert (figures["calls"], figures["cached"]) == (calls, cached)
            assert summary["pools"]["capitals"]["rules"]["judge"]["em"] == 100


# -- dry runs --
def test_a_dry_run_says_what_a_run_would_ask_at_most_and_does_nothing(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with serving() as server:
        command = ["evaluate", str(pool), "--lm", "openai/gpt-4o-mini", "--api-base", server.address, "--dry-run"]
        assert main(command) == 0
        output = capsys.readouterr()
        assert output.err == ""
        assert main([*command, "--json"]) == 0
        assert server.log == []
    figures = json.loads(capsys.readouterr().out)
    asked = {"at_most": 12, "journaled": 0, "recorded": 0, "to_ask": 12, "calls": 12}
    roles = {"judge": asked, "repairer": asked}
    assert figures["pools"] == {"capitals": {"n": 12, "task": "retrieval", "roles": roles}}
    assert set(figures["models"].values()) == {"openai/gpt-4o-mini"}
    assert "│ capitals │    judge │ openai/gpt-4o-mini │      12 │" in output.out
    assert {path.name for path in tmp_path.iterdir()} == {"capitals.jsonl"}


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
    for reply in (silent, lambda request: filled(request.config.response_format["schema"])):
        exact = reply is silent and name != "heuristic"
        selector, lm = selector_with(reply)
        selector.judge = JUDGES[name]()
        selector.set_lm(lm)
        plan = Plan([pool], tmp_path / ("silent" if reply is silent else "obliging"), rules)
        response: Any = {role: one["calls"] for role, one in forecast(selector, plan)["pools"]["p"]["roles"].items()}
        result = evaluate(selector, plan)["consultations"]
        made = {role: result[role]["calls"] for role in response}
        assert sum(made.values()) == len(lm.requests)
        assert made == response if exact else all(made[role] <= response[role] for role in response)


def test_a_role_that_states_no_calls_makes_some(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    selector, _ = selector_with(silent)
    selector.judge = SwapConsistent(dspy.ChainOfThought(JudgeCandidates))
    before = forecast(selector, Plan([pool], tmp_path / "run"))
    roles = before["pools"]["capitals"]["roles"]
    assert (roles["judge"]["calls"], roles["repairer"]["calls"]) == (None, 12)
    print_tables(before, [forecast_table(before)], "text")
    assert "12+ │" in (output := capsys.readouterr().out) and "the role does not say" in output


def test_a_dry_run_is_exact(pool: Path, tmp_path: Path) -> None:
    """What it says is what a run asks whose roles say nothing, which is when a rule asks most."""
    mixed = write_pool(tmp_path / "mixed.jsonl", (row(n, answers=POOLS[n % len(POOLS)]) for n in range(40)))
    for rules in (tuple(RULES), ("eldgr",), ("judge",), ("majority",)):
        out = tmp_path / "-".join(rules)
        plan, (selector, lm) = Plan([pool, mixed], out, rules), selector_with(silent)
        before = forecast(selector, plan)
        assert not out.exists()
        summary = evaluate(selector, plan)
        counts = Counter((one.pool, one.role) for one in read_journal(out / "journal.jsonl"))
        roles = [(name, *role) for name, one in before["pools"].items() for role in one["roles"].items()]
        assert {(name, role): of["at_most"] for name, role, of in roles} == counts
        calls = sum(one["calls"] for one in summary["consultations"].values())
        assert len(lm.requests) == sum(counts.values()) == calls


POOLS = (("Nice", "Nice", "Paris"), ("Paris", "Paris", "Nice"), ("Nice", "Oslo"), ("Nice", "Nice"), ("Paris",), (None,))


def test_a_dry_run_takes_what_is_known_as_it_is(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(10)))
    plan = Plan([pool], tmp_path / "run", limit=4)
    evaluate(selector_with(obliging)[0], plan)  # the judge prefers what is certified, so that nobody repairs
    selector, lm = selector_with(obliging)
    replay = recording(tmp_path / "replay.jsonl", ["q4", "q5"])
    result = forecast(selector, Plan([pool], tmp_path / "run", limit=8, replay=replay))["pools"]["p"]
    judge = {"at_most": 8, "journaled": 4, "recorded": 2, "to_ask": 0, "calls": 0}  # of the last two it is never asked
    repairer = {"at_most": 8, "journaled": 0, "recorded": 0, "to_ask": 2, "calls": 2}
    assert result["roles"] == {"judge": judge, "repairer": repairer}
    anew = forecast(selector, Plan([pool], tmp_path / "run", limit=8, fresh=True))["pools"]["p"]
    assert anew["roles"]["judge"] == {"at_most": 8, "journaled": 0, "recorded": 0, "to_ask": 8, "calls": 8}
    assert lm.requests == []


def test_a_dry_run_passes_over_a_torn_line_and_refuses_a_wrong_one(pool: Path, tmp_path: Path) -> None:
    """Of a run that was changed it says what `tests/run/test_evaluation.py` has a run say."""
    plan = Plan([pool], tmp_path / "run")
    evaluate(selector_with(obliging)[0], plan)
    journal = tmp_path / "run" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-9])  # as a crash, or a run that is writing, leaves it
    result = forecast(selector_with(obliging)[0], plan)["pools"]["capitals"]["roles"]["judge"]
    assert (result["journaled"], result["to_ask"]) == (11, 1)
    journal.write_text(unsealed(whole.decode()).replace('"consultation"', '"else"', 1))
    refuses(JournalError, "kind='else' is not one of", forecast, selector_with(obliging)[0], plan)


def case_of(answers: Iterable[str | None], **settings: Any) -> Case:
    return Case(validate(row(0, answers=tuple(answers)), "p").to_question(), Settings(**settings))


ASKED: tuple[Role, ...] = ("judge", "repairer", "deriver")
DERIVATIONS: list[Reply] = [
    Abstention("silent"),
    *(Derivation((Step("3*6", value),), value, f"{value}/6 = 3") for value in ("18", "17")),
    *(Derivation((Step(value, value),), value) for value in ("17", "12")),
]

REPLIES: list[Reply] = [Abstention("silent"), Repair("Paris"), Repair("Nice"), Repair("nowhere")]


class Roles(set[Role]):  # that were asked, of those whose reply a function gives
    def __init__(self, give: Callable[[Role], Reply]) -> None:
        super().__init__()
        self.give = give

    def ask(self, role: Role) -> Reply:
        self.add(role)
        return self.give(role)


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
        roles = Roles(lambda role: data.draw(st.sampled_from(verdicts if role == "judge" else REPLIES)))
        drive(case.rule(name)(case), roles.ask)
        assert roles <= possible_roles(case.rule(name), case, {})


@pytest.mark.parametrize("consult", ["lazy", "always"])
@pytest.mark.parametrize("homogeneous", ["repair", "skip"])
@pytest.mark.parametrize("answers", [["18", "18"], ["17", "18", "17"], ["17", "12"], [None, "17"], [None]])
@pytest.mark.parametrize("derivation", ["executed", "stated"])
def test_a_derivation_asks_no_more(answers: list[str | None], consult: Any, homogeneous: Any, derivation: Any) -> None:
    """A dry run takes the deriver to be silent; whatever it derives, and whatever the judge then says, asks no more."""
    line = row(0, answers=tuple(answers), task="arithmetic", question="What is 3 times 6?", gold=["18"], evidence=[])
    chosen = Settings(consult=consult, homogeneous=homogeneous, derivation=derivation)
    case = Case(validate(line, "p").to_question(), chosen)
    verdicts: list[Reply] = [Abstention("silent"), *map(Verdict, range(len(answers)))]
    for name in RULES:
        foreseen, branches = possible_roles(case.rule(name), case, {}), set[str]()
        for replies in product(verdicts, REPLIES, DERIVATIONS):
            roles = Roles(dict(zip(ASKED, replies, strict=True)).__getitem__)
            branches.add(drive(case.rule(name)(case), roles.ask).branch)
            assert roles <= foreseen
        assert name != "eldgr" or answers != ["17", "18", "17"] or "repair" in branches  # so that one was accepted


def test_a_rule_that_asks_more_where_it_is_answered_is_foreseen() -> None:
    def thorough(case: Any) -> Any:
        if case.stated((yield "judge")) is not None:
            yield "repairer"
        return Choice("consensus", case.consensus)

    assert possible_roles(thorough, case_of(["Nice", "Paris"]), {}) == {"judge", "repairer"}
    assert possible_roles(thorough, case_of(["Nice", "Paris"]), {"judge": Abstention("silent")}) == {"judge"}


# -- unusable replies --
SAID = "I would take the third."  # in words, where JSON was asked for


one_or_four = pytest.mark.parametrize("workers", [1, 4])


def mumbling(request: Any) -> Any:
    """Judges every other question in words."""
    number = int(text_of(request).split("capital number ")[1].split("?")[0])
    return SAID if role_of(request) == "judge" and number % 2 else obliging(request)


@one_or_four
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
    resumed, rest = selector_with(mumbling)
    result = evaluate(resumed, Plan([pool], tmp_path / "run", workers=workers, max_abstentions=6))
    whole, _ = selector_with(mumbling)
    assert untimed(result["pools"]) == untimed(evaluate(whole, Plan([pool], tmp_path / "whole"))["pools"])
    requests_before = len(lm.requests) + len(silent.requests) + len(rest.requests)
    assert requests_before == sum(one.calls for one in read_journal(tmp_path / "run" / "journal.jsonl"))


@one_or_four
def test_a_finished_run_and_its_replay_are_held_to_it_too(pool: Path, tmp_path: Path, workers: int) -> None:
    """They ask nothing."""
    run, (again, lm) = tmp_path / "run", selector_with(mumbling)
    evaluate(selector_with(mumbling)[0], Plan([pool], run))
    before = (run / "summary.json").read_bytes()
    with pytest.raises(RunStoppedError, match=r"^1 question had an unusable reply, and --max-abstentions allows 0"):
        evaluate(again, Plan([pool], run, workers=workers, max_abstentions=0))
    assert (run / "summary.json").read_bytes() == before
    evaluate(again, Plan([pool], run, workers=workers))  # an abstention is never asked again
    replay: Any = {"out": tmp_path / "replay", "workers": workers, "replay": run / "journal.jsonl"}
    with pytest.raises(RunStoppedError, match=r"^5 questions had an unusable reply, and --max-abstentions allows 4"):
        evaluate(again, Plan([pool], max_abstentions="40%", **replay))
    assert lm.requests == []
    evaluate(again, Plan([pool], max_abstentions="50%", **replay))


def test_a_question_counts_once_and_each_role_is_named_with_its_most_frequent_reason(tmp_path: Path) -> None:
    """The judge and the repairer are both asked on each question, and neither can be read."""
    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(3)))
    selector, lm = selector_with(lambda one: VERDICT | {"preferred": 9} if role_of(one) == "judge" else SAID)
    evaluate(selector, Plan([pool], tmp_path / "three", max_abstentions=3))
    assert len(lm.requests) == 6
    message = (
        r" to resume\. The judge gave 3, most often invalid \(3\), such as: preferred=9 is not a whole number from 0 "
        r"to 2\. The repairer gave 2, most often unreadable \(2\), such as: unparsable: "
    )
    refuses(RunStoppedError, message, evaluate, selector, Plan([pool], tmp_path / "two", max_abstentions=2))


def test_what_a_role_declares_and_what_fails_is_not_counted(pool: Path, tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return NO_SPAN if role_of(request) == "repairer" else dspy.LMServerError("away")

    selector, _ = selector_with(reply)
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

    result = evaluate(selector_with(flooding)[0], Plan([pool], tmp_path / "run"))
    assert result["consultations"]["judge"]["abstained"] == 1
    again, silent = selector_with(flooding)
    assert evaluate(again, Plan([pool], tmp_path / "run"))["consultations"] == result["consultations"]
    assert silent.requests == []
    replies = [one for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.role == "judge"]
    (large,) = [one for one in replies if one.outcome == "abstained"]
    assert large.content is None
    assert large.reason == "unreadable: the reply is too large, or nested too deeply, for a line of a journal"
