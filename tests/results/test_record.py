"""The judge's record says what its run was made with, and remarks where half of a pool has nothing to go by."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.record import JournalTotals, journal_totals, judges_record
from eldgr_dspy.figures.remarks import remarks_of
from eldgr_dspy.figures.results import SCHEMAS, schema_of
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.tables.record_tables import record_table
from eldgr_dspy.tables.run import tables_of
from eldgr_dspy.words import ROLES, Role, Task
from tests.capitals import obliging, row, selector_with, write_pool
from tests.figures import pool_figures, summary_figures
from tests.finished_runs import finished_run
from tests.results.audited import ARITHMETIC, RETRIEVAL, figures


def head(kind: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "details": {"of": name}}


def test_pools_and_roles_are_in_the_order_of_the_run_and_several_addresses_are_remarked_upon() -> None:
    summary = summary_figures({name: pool_figures() for name in "ba"})
    pools, roles = [head("pool", name) for name in "abc"], [head("role", name) for name in reversed(ROLES)]
    for heads in ([*pools, *roles], [*roles, *pools[::-1]]):
        record: Any = judges_record(summary, heads, journal_totals([]))
        assert list(record["pools"].items()) == [("b", {"of": "b"}), ("a", {"of": "a"})]
        assert list(record["roles"]) == list(ROLES)
    assert judges_record(summary, [], journal_totals([]))["pools"] == {}
    roles = [{"kind": "role", "name": "judge", "details": {"lm": {"settings": {"api_base": one}}}} for one in "ab"]
    record = record_of({}, (), roles)
    assert record["remarks"] == [
        "The judge was asked at 2 addresses; one of them is stated here, and the journal states all."
    ]
    assert record["roles"]["judge"]["lm"]["settings"]["api_base"] == "b"


def test_totals_cost_and_parse_failures_count_every_attempt_and_are_unknown_where_one_is() -> None:
    replies = [
        Consultation("p", "q", "judge", "failed", "TimeoutError: late", calls=1, cost=0.25, prompt_tokens=3),
        Consultation("p", "q", "judge", "abstained", "unparsable: why", calls=2, cost=0.5, attempt=2),
        Consultation("p", "r", "judge", "ok", None, {}, recorded=True, calls=7, cost=7.0),
    ]
    totals = journal_totals(replies)
    counted = {"ok": 0, "abstained": 1, "failed": 1, "recorded": 1, "calls": 3, "cached": 0}
    amounts = {"prompt_tokens": None, "completion_tokens": None, "cost": 0.75}
    assert totals.roles["judge"] == {**counted, **amounts}
    assert totals.roles["deriver"]["calls"] == 0
    assert totals.models == [{"role": "judge", "asked": None, "served": None, "same": None, "calls": 3}]
    assert [[*one.values()] for one in totals.silences] == [
        ["judge", "abstained", "unreadable", "unparsable", 1],
        ["judge", "failed", "TimeoutError", "TimeoutError", 1],
    ]
    paid = [
        Consultation("p", "1", "judge", "ok", None, {}, calls=2, prompt_tokens=90, completion_tokens=10, cost=0.25),
        Consultation("p", "1", "repairer", "ok", None, {}, calls=1, prompt_tokens=9, completion_tokens=1, cost=0.5),
    ]
    counts = {"ok": 2, "abstained": 0, "failed": 0, "recorded": 0, "cached": 0}
    spent: dict[str, float | None] = {"calls": 3, "prompt_tokens": 99, "completion_tokens": 11, "cost": 0.75}
    assert record_of({}, paid)["cost"] == counts | spent
    unpriced = Consultation("p", "2", "judge", "ok", None, {}, calls=1, prompt_tokens=9, completion_tokens=1)
    spent = {"calls": 4, "prompt_tokens": 108, "completion_tokens": 12, "cost": None}
    assert record_of({}, [*paid, unpriced])["cost"] == counts | {"ok": 3} | spent
    assert set(record_of({}, [])["cost"].values()) == {0}
    replies = [
        Consultation("p", "1", "judge", "ok", None, {"preferred": 0}),
        Consultation("p", "2", "judge", "abstained", "unparsable: The reply is not JSON."),
        Consultation("p", "3", "judge", "abstained", "preferred=7 is not a whole number", {"preferred": 7}),
        Consultation("p", "4", "judge", "abstained", "undecided", {"kind": "unreadable"}, recorded=True),
        Consultation("p", "5", "judge", "failed", "LMTimeoutError: late"),
    ]
    record = record_of({}, replies)
    assert record["parse_failures"] == {
        "judge": {"count": 2, "of": 4, "rate": 50.0},
        "deriver": {"count": 0, "of": 0, "rate": None},
        "repairer": {"count": 0, "of": 0, "rate": None},
    }
    assert [(one["outcome"], one["kind"], one["consultations"]) for one in record["silences"]] == [
        ("abstained", "invalid", 1), ("abstained", "unreadable", 1), ("abstained", "unreadable", 1),
        ("failed", "LMTimeoutError", 1),
    ]  # fmt: skip
    replies = [
        Consultation("a", "1", "judge", "abstained", "unparsable: no", calls=1, cost=0.5),
        Consultation("b", "1", "judge", "failed", "LMTimeoutError: late", calls=1),
        Consultation("b", "1", "judge", "ok", None, {}, calls=1, cost=0.25, attempt=2),
        Consultation("b", "2", "judge", "abstained", "unparsable: no", calls=1, cost=0.25),
    ]
    totals = journal_totals(replies, lambda *question: question == ("b", "1"))
    record = record_from({}, totals)
    assert record["parse_failures"]["judge"] == {"count": 0, "of": 1, "rate": 0.0}
    assert [one["kind"] for one in record["silences"]] == ["LMTimeoutError"]
    assert (record["cost"]["calls"], record["cost"]["abstained"]) == (4, 2)
    assert record["remarks"] == [
        "The run directory has seen other questions too: 2 of its consultations are on none of these, and are among "
        "those whose outcomes, calls, tokens and dollars are added up."
    ]
    assert record_from({}, journal_totals(replies[1:3], lambda *question: question == ("b", "1")))["remarks"] == []


def record_of(pools: Any, reply: Any = (), heads: Any = ()) -> Any:
    return record_from(pools, journal_totals(reply), heads)


def record_from(pools: Any, totals: JournalTotals, heads: Any = ()) -> Any:
    return judges_record(summary_figures(pools), heads, totals)


def test_override_rates_are_split_by_outcome_and_by_certificate_and_add_up() -> None:
    result = record_of({"p": figures("retrieval", RETRIEVAL), "q": figures("arithmetic", ARITHMETIC)})["override_rates"]
    one = pytest.approx(100 / 13)
    assert result["p"]["by_outcome"] == {
        "judge": {"lost": one, "won": one, "wrong": one},
        "repair": {"lost": one, "won": pytest.approx(200 / 13)},
    }
    expected = {"judge": {"exact": pytest.approx(300 / 13)}, "repair": {"exact": pytest.approx(300 / 13)}}
    assert result["p"]["by_certificate"] == expected
    assert result["q"]["by_certificate"] == {"judge": {}, "repair": {"bounded": pytest.approx(200 / 6)}}
    for rates in result.values():
        for branch in ("judge", "repair"):
            for split in ("by_outcome", "by_certificate"):
                assert sum(rates[split][branch].values()) == pytest.approx(rates[f"by_{branch}"])


def test_a_run_on_one_pool_states_nothing_of_another_that_its_directory_has_seen(tmp_path: Path) -> None:
    finished_run(tmp_path, selector=selector_with(lambda request: "I would rather not say.")[0], rules=("judge",))
    other = write_pool(tmp_path / "other.jsonl", map(row, range(4)))
    for limit in (None, 3):
        evaluate(selector_with(obliging)[0], Plan([other], tmp_path / "run", ("judge",), limit=limit))
        record = read_run(tmp_path / "run").record()
        assert record["parse_failures"]["judge"] == {"count": 0, "of": limit or 4, "rate": 0.0}
        assert (record["silences"], record["cost"]["calls"]) == ([], 10)
        assert f"{6 + 4 - (limit or 4)} of its consultations" in record["remarks"][0]


def test_a_role_s_fingerprint_is_the_journal_s_and_prompts_and_settings_have_their_own() -> None:
    details = {"prompts": {"predict": {"demos": []}}, "lm": {"model": "a", "settings": {}}, "adapter": "b", "code": {}}

    def prints(**changed: Any) -> dict[str, str]:
        role = {"kind": "role", "name": "judge", "details": details | changed}
        result: dict[str, str] = record_of({}, (), [role])["fingerprints"]["judge"]
        return result

    before = prints()
    assert before["role"] == fingerprint(details)
    changes = {
        "prompts": prints(prompts={}),
        "settings": prints(lm={"model": "a", "settings": {"temperature": 1}}),
        "role": prints(code={"x": "y"}),
    }
    for name, after in changes.items():
        assert {one for one in before if before[one] != after[one]} == {name, "role"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory.mktemp("record"))[0]


@pytest.mark.parametrize(("name", "file"), [("summary", "summary.json"), ("record", "record.json")])
def test_a_schema_has_every_field_that_is_written_and_takes_it(run: Path, name: str, file: str) -> None:
    written = (run / file).read_text(encoding="utf-8")
    assert json.loads(SCHEMAS[name].dump_json(SCHEMAS[name].validate_json(written, strict=True))) == json.loads(written)
    pytest.importorskip("jsonschema").Draft202012Validator(schema_of(name)).validate(json.loads(written))


def test_every_decision_is_as_its_schema_says(run: Path) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema_of("decision"))
    for line in (run / "decisions.jsonl").read_text(encoding="utf-8").splitlines():
        assert SCHEMAS["decision"].validate_json(line, strict=True) == json.loads(line)
        validator.validate(json.loads(line))


def pair(row: tuple[str, ...]) -> tuple[str, str]:
    what, stated = row
    return what, stated


def test_the_card_states_the_default_the_certificate_the_rates_and_what_was_asked() -> None:
    replies = [
        Consultation("p", "1", "judge", "ok", None, {}, calls=2, asked="a/m", served="m-1", cost=0.5, prompt_tokens=9),
        Consultation("p", "2", "judge", "abstained", "unparsable: no", calls=1, asked="a/m"),
    ]
    heads = [
        {"kind": "settings", "name": "rule", "details": {"certificate": "folded", "derivation": "bounded"}},
        {"kind": "role", "name": "judge", "details": {"module": "Judge", "lm": {"model": "a/m"}}},
        {"kind": "role", "name": "repairer", "details": {"module": "Extractive", "lm": None}},
    ]
    pools = {"p": figures("retrieval", RETRIEVAL), "q": figures("retrieval", RETRIEVAL, ("majority",))}
    table = record_table(record_of(pools, replies, heads))
    rows = dict(map(pair, table.rows))
    assert table.headers == ("what", "stated")
    assert rows["default to beat"].startswith("consensus: majority vote")
    assert rows["certificate required, retrieval"] == "folded"
    assert rows["p: overrides by the judge"] == (
        "23.08 % of 13 questions; lost 7.69 %, won 7.69 %, wrong 7.69 %; exact 23.08 %"
    )
    assert rows["q: overrides"] == "—: eldgr has no result there"
    expected = ["a/m, served by m-1, 2 calls", "a/m, served by —, 1 call"]
    assert [stated for what, stated in table.rows if what == "judge: model"] == expected
    assert rows["repairer: no model"] == "Extractive"
    assert rows["judge: replies that could not be read"] == "1 of 2 (50.00 %)"
    assert rows["cost"] == "3 LM calls, — tokens read, — written, $—"
    assert "freeze" not in rows
    locked = record_of(pools, replies, heads) | {"confirmation": {"lock": "abc"}}
    assert dict(map(pair, record_table(locked).rows))["freeze"] == "abc"


PASSAGES = (Passage("", "Nice lies by the sea."),)


def case(answers: tuple[str | None, ...] = ("Nice",), passages: Any = PASSAGES, task: Task = "retrieval") -> Case:
    return Case(Question("Which?", task, answers, passages=passages))


def silent(role: Role, reason: str = "unparsable: why", **said: Any) -> Consultation:
    return Consultation("p", "q", role, "abstained", reason, **said)


def heard(role: Role) -> Consultation:
    return Consultation("p", "q", role, "ok", None, {"preferred": 0})


def remarks(*taken: tuple[Case, list[Consultation]], task: Task = "retrieval") -> list[str]:
    rows = DecidedRows(task, ("majority",))
    for case, entries in taken:
        rows.add(case, [], {"majority": Outcome(None, None, entries)}, ())
    return remarks_of(rows)


def test_a_pool_without_evidence_answers_or_replies_is_remarked_upon_and_no_other() -> None:
    assert remarks() == remarks((case(), [heard("judge"), heard("repairer")])) == []
    (result,) = remarks((case((None,), (), "arithmetic"), []), task="arithmetic")
    assert result.startswith("No candidate has an answer on 1 of 1 question, so that nothing but a derivation can ship")
    bare, well = case(passages=()), case()
    message = (
        "There is no evidence on {}: nothing can be certified there, so that eldgr is majority. The field `evidence` "
        "of a question holds it."
    )
    assert remarks((bare, [])) == [message.format("1 of 1 question")]
    assert remarks((bare, []), (well, [])) == [message.format("1 of 2 questions")]
    assert remarks((bare, []), (well, []), (well, [])) == []
    (result,) = remarks((case(), [silent("judge", "there is nothing to measure by")]))
    assert result.endswith("(1 nothing to say): rules went on without it there.")
    failed = Consultation("p", "q", "judge", "failed", "LMTimeoutError: late")
    assert remarks((case(), [silent("repairer", "no span"), silent("deriver", "not a sum"), failed])) == []
    for without, with_answer, message in [(2, 0, "2 of 2"), (1, 1, "1 of 2"), (1, 2, "")]:
        sentence = (
            f"No candidate has an answer on {message} questions, so that nothing but a repair can ship there. The "
            "field `answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
        )
        taken = [case((None, " "))] * without + [case((None, "Nice"))] * with_answer
        assert remarks(*((one, []) for one in taken)) == ([sentence] if message else [])


ROLES_SAID: list[tuple[Role, str]] = [
    ("judge", "rules went on without it there."),
    ("deriver", "nothing was derived there."),
    ("repairer", "nothing was repaired there."),
]


@pytest.mark.parametrize(("role", "instead"), ROLES_SAID)
def test_a_role_that_gave_no_usable_reply_on_half_of_what_it_was_asked_is_named(role: Role, instead: str) -> None:
    cut = silent(role, "cut off: the LM reached its limit", calls=1)
    result = remarks((case(), [silent(role)] * 2), (case(), [cut]), (case(), []), *[(case(), [heard(role)])] * 2)
    assert result == [
        f"The {role} gave no usable reply on 2 of 4 questions that it was asked (1 cut off, 1 unreadable): {instead} "
        f"`eldgr doctor --judge MODEL` looks into the {role}'s model."
    ]
    assert remarks((case(), [silent(role)]), *[(case(), [heard(role)])] * 2) == []


def test_a_judge_that_cannot_be_read_is_seen_in_the_tables_the_report_and_the_record(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    selector, _ = selector_with(lambda request: "I would take the third.")
    summary = evaluate(selector, Plan([pool], tmp_path / "run"))
    message = (
        "The judge gave no usable reply on 4 of 4 questions that it was asked (4 unreadable): rules went on without it"
    )
    assert summary["pools"]["capitals"]["remarks"][0].startswith(message)
    first, *_ = tables_of(summary)
    assert message in text_of({}, [first], "text", terminal=False)
    assert message in (tmp_path / "run" / "report.html").read_text("utf-8")
    record = json.loads((tmp_path / "run" / "record.json").read_text("utf-8"))
    assert record["remarks"][0].startswith(f"capitals: {message}")


def test_a_judge_that_is_a_module_without_a_model_is_named_too(tmp_path: Path) -> None:
    class Shy(dspy.Module):
        def forward(self, **inputs: Any) -> dspy.Prediction:
            return dspy.Prediction(preferred="the third")

    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    selector = heuristic_selector()
    selector.judge = Shy()
    (result,) = evaluate(selector, Plan([pool], tmp_path / "run"))["pools"]["capitals"]["remarks"]
    assert result.endswith("on 4 of 4 questions that it was asked (4 invalid): rules went on without it there.")


def test_candidates_of_texts_alone_are_named(tmp_path: Path) -> None:
    rows = [row(number, candidates=[{"text": "Nice"}, {"text": "Paris"}]) for number in range(4)]
    selector = heuristic_selector()
    result = evaluate(selector, Plan([write_pool(tmp_path / "texts.jsonl", rows)], tmp_path / "run"))
    assert result["pools"]["texts"]["remarks"][0].startswith("No candidate has an answer on 4 of 4 questions, so that")


def test_a_run_says_how_many_candidates_are_uncertified_for_their_spelling_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stated = {"question": "How long?", "task": "retrieval", "gold": ["2 years"]}
    candidates = [{"answer": "2 years"}, {"answer": "12%"}]
    evidence = [{"title": "", "text": "In a two-year trial it grew by 12 percent."}]
    line = {"id": "q", **stated, "candidates": candidates, "evidence": evidence}
    (tmp_path / "trial.jsonl").write_text(json.dumps(line), encoding="utf-8")
    assert main(["evaluate", "trial.jsonl", "--quiet", "--json"]) == 0
    remark = (
        "Candidates that are uncertified for their spelling only: 1, such as '2 years' for 'two-year' of the evidence."
    )
    assert remark in json.loads(capsys.readouterr().out)["pools"]["trial"]["remarks"]
    assert "uncertified for their spelling only" in (tmp_path / "runs/trial/report.html").read_text(encoding="utf-8")
