"""The judge's record says what its run was made with, and remarks where half of a pool has nothing to go by."""

import json
from collections.abc import Sequence
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
from tests.case_tables import build, each_case
from tests.case_tables import tables_of as tables_in
from tests.figures import pool_figures, summary_figures
from tests.finished_runs import finished_run
from tests.results.audited import ARITHMETIC, POOLS, RETRIEVAL, figures
from tests.selecting import Returns


def test_pools_and_roles_are_in_the_order_of_the_run_and_several_addresses_are_remarked_upon() -> None:
    summary = summary_figures({name: pool_figures() for name in "ba"})
    pools: list[Any] = [{"kind": "pool", "name": name, "details": {"of": name}} for name in "abc"]
    roles: list[Any] = [{"kind": "role", "name": name, "details": {"of": name}} for name in reversed(ROLES)]
    for heads in ([*pools, *roles], [*roles, *pools[::-1]]):
        record: Any = judges_record(summary, heads, journal_totals([]))
        assert list(record["pools"].items()) == [("b", {"of": "b"}), ("a", {"of": "a"})]
        assert list(record["roles"]) == list(ROLES)
    assert judges_record(summary, [], journal_totals([]))["pools"] == {}
    roles = [{"kind": "role", "name": "judge", "details": {"lm": {"settings": {"api_base": one}}}} for one in "ab"]
    record = record_of({}, (), roles)
    message = "The judge was asked at 2 addresses; one of them is stated here, and the journal states all."
    assert record["remarks"] == [message]
    assert record["roles"]["judge"]["lm"]["settings"]["api_base"] == "b"


def consultations(entries: list[Any]) -> list[Consultation]:
    return [Consultation(**{"pool": "p", "role": "judge", **one}) for one in entries]


@each_case("results", "consultations and their totals")
def test_totals_cost_and_parse_failures_count_every_attempt_and_are_unknown_where_one_is(
    replies: list[Any], of: list[str] | None, expected: dict[str, Any]
) -> None:
    totals = journal_totals(consultations(replies), lambda *question: of is None or [*question] == of)
    parts = {**record_from({}, totals), **totals.roles, "deriver calls": totals.roles["deriver"]["calls"]}
    assert {part: parts[part] for part in expected} == expected


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

    def prints(**changes: Any) -> dict[str, str]:
        role = {"kind": "role", "name": "judge", "details": details | changes}
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


@pytest.mark.parametrize("file", ["summary.json", "record.json", "decisions.jsonl"])
def test_a_schema_has_every_field_that_is_written_and_takes_it(run: Path, file: str) -> None:
    name, text = file.partition(".")[0].removesuffix("s"), (run / file).read_text(encoding="utf-8")
    lines = text.splitlines() if file == "decisions.jsonl" else [text]
    for one in lines:
        fields = SCHEMAS[name].validate_json(one, strict=True)
        assert json.loads(SCHEMAS[name].dump_json(fields)) == json.loads(one)
        assert name != "decision" or fields == json.loads(one)
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema_of(name))
    for one in lines:
        validator.validate(json.loads(one))


def test_the_card_states_the_default_the_certificate_the_rates_and_what_was_asked() -> None:
    card = build(tables_in("results")["the card"], POOLS)
    record = record_of(card["pools"], consultations(card["replies"]), card["heads"])
    table = record_table(record)
    assert (table.headers, [*map(list, table.rows)]) == (("what", "stated"), card["rows"])
    assert ("freeze", "abc") in record_table(record | {"confirmation": {"lock": "abc"}}).rows


def case(answers: Sequence[str | None] = ("Nice",), evidence: bool = True, task: Task = "retrieval") -> Case:
    passages = (Passage("", "Nice lies by the sea."),) if evidence else ()
    return Case(Question("Which?", task, tuple(answers), passages=passages))


def silent(role: Role, reason: str = "unparsable: why", **fields: Any) -> Consultation:
    return Consultation("p", "q", role, "abstained", reason, **fields)


USABLE = {"preferred": 0, "repaired_answer": "Nice", "derivation_steps": [], "derived_answer": "1"}
WORDS: dict[str, Any] = {
    "silent": silent,
    "heard": lambda role, content=USABLE: Consultation("p", "q", role, "ok", None, content),
    "failed": lambda role: Consultation("p", "q", role, "failed", "LMTimeoutError: late"),
}


@each_case("results", "remarks", case=case, **WORDS)
def test_a_pool_without_evidence_answers_or_usable_replies_is_remarked_upon_and_no_other(
    questions: list[Any], task: Task, expected: list[str]
) -> None:
    rows = DecidedRows(task, ("majority",))
    for case, entries in questions:
        rows.add(case, [], {"majority": Outcome(None, None, entries)}, ())
    assert remarks_of(rows) == expected


def test_a_judge_that_cannot_be_read_is_seen_in_the_tables_the_report_and_the_record(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    selector, _ = selector_with(lambda request: "I would take the third.")
    summary = evaluate(selector, Plan([pool], tmp_path / "run"))
    message = "The judge gave no usable reply on 4 of 4 questions that it was asked (4 unreadable): rules went on"
    assert summary["pools"]["capitals"]["remarks"][0].startswith(f"{message} without it")
    first, *_ = tables_of(summary)
    assert f"{message} without it" in text_of({}, [first], "text", terminal=False)
    assert f"{message} without it" in (tmp_path / "run" / "report.html").read_text("utf-8")
    record = json.loads((tmp_path / "run" / "record.json").read_text("utf-8"))
    assert record["remarks"][0].startswith(f"capitals: {message} without it")


def test_a_judge_that_is_a_module_without_a_model_is_named_too_and_candidates_of_texts_alone(tmp_path: Path) -> None:
    selector = heuristic_selector()
    texts = [row(number, candidates=[{"text": "Nice"}, {"text": "Paris"}]) for number in range(4)]
    result = evaluate(selector, Plan([write_pool(tmp_path / "texts.jsonl", texts)], tmp_path / "run of texts"))
    assert result["pools"]["texts"]["remarks"][0].startswith("No candidate has an answer on 4 of 4 questions, so that")
    selector.judge = Returns(dspy.Prediction(preferred="the third"))
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(4)))
    (remark,) = evaluate(selector, Plan([pool], tmp_path / "run"))["pools"]["capitals"]["remarks"]
    assert remark.endswith("on 4 of 4 questions that it was asked (4 invalid): rules went on without it there.")


def test_a_run_says_how_many_candidates_are_uncertified_for_their_spelling_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    candidates = [{"answer": "2 years"}, {"answer": "12%"}]
    evidence = [{"title": "", "text": "In a two-year trial it grew by 12 percent."}]
    line = row(0, question="How long?", gold=["2 years"], candidates=candidates, evidence=evidence)
    write_pool(tmp_path / "trial.jsonl", [line])
    assert main(["evaluate", "trial.jsonl", "--quiet", "--json"]) == 0
    remark = "uncertified for their spelling only: 1, such as '2 years' for 'two-year' of the evidence."
    assert f"Candidates that are {remark}" in json.loads(capsys.readouterr().out)["pools"]["trial"]["remarks"]
    assert "uncertified for their spelling only" in (tmp_path / "runs/trial/report.html").read_text(encoding="utf-8")
