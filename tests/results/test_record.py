"""The judge's record says what its run was made with, whatever else the journal has seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.record import JournalTotals, journal_totals, judges_record
from eldgr_dspy.figures.results import SCHEMAS, schema_of
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.tables.record_tables import record_table
from eldgr_dspy.words import ROLES
from tests.capitals import obliging, row, selector_with, write_pool
from tests.figures import pool_figures, summary_figures
from tests.finished_runs import finished_run
from tests.results.audited import ARITHMETIC, RETRIEVAL, figures


def head(kind: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "details": {"of": name}}


def test_pools_and_roles_are_in_the_order_of_the_run_whatever_the_journal_s() -> None:
    summary = summary_figures({name: pool_figures() for name in "ba"})
    pools, roles = [head("pool", name) for name in "abc"], [head("role", name) for name in reversed(ROLES)]
    for heads in ([*pools, *roles], [*roles, *pools[::-1]]):
        record: Any = judges_record(summary, heads, journal_totals([]))
        assert list(record["pools"].items()) == [("b", {"of": "b"}), ("a", {"of": "a"})]
        assert list(record["roles"]) == list(ROLES)
    assert judges_record(summary, [], journal_totals([]))["pools"] == {}


def test_totals_count_every_attempt_and_are_unknown_where_one_is() -> None:
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


def test_parse_failures_are_replies_that_could_not_be_read_of_all_that_came_through() -> None:
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
        ("abstained", "invalid", 1),
        ("abstained", "unreadable", 1),
        ("abstained", "unreadable", 1),
        ("failed", "LMTimeoutError", 1),
    ]


def test_what_could_not_be_read_is_of_the_questions_of_the_run_and_what_it_cost_of_all() -> None:
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


def test_a_run_on_one_pool_states_nothing_of_another_that_its_directory_has_seen(tmp_path: Path) -> None:
    finished_run(tmp_path, selector=selector_with(lambda request: "I would rather not say.")[0], rules=("judge",))
    other = write_pool(tmp_path / "other.jsonl", map(row, range(4)))
    for limit in (None, 3):
        evaluate(selector_with(obliging)[0], Plan([other], tmp_path / "run", ("judge",), limit=limit))
        record = read_run(tmp_path / "run").record()
        assert record["parse_failures"]["judge"] == {"count": 0, "of": limit or 4, "rate": 0.0}
        assert (record["silences"], record["cost"]["calls"]) == ([], 10)
        assert f"{6 + 4 - (limit or 4)} of its consultations" in record["remarks"][0]


def test_a_role_that_was_asked_at_several_addresses_is_remarked_upon() -> None:
    roles = [{"kind": "role", "name": "judge", "details": {"lm": {"settings": {"api_base": one}}}} for one in "ab"]
    record = record_of({}, (), roles)
    assert record["remarks"] == [
        "The judge was asked at 2 addresses; one of them is stated here, and the journal states all."
    ]
    assert record["roles"]["judge"]["lm"]["settings"]["api_base"] == "b"


def test_the_cost_is_of_all_roles_and_unknown_where_one_s_is() -> None:
    paid = [
        Consultation("p", "1", "judge", "ok", None, {}, calls=2, prompt_tokens=90, completion_tokens=10, cost=0.25),
        Consultation("p", "1", "repairer", "ok", None, {}, calls=1, prompt_tokens=9, completion_tokens=1, cost=0.5),
    ]
    counts = {"ok": 2, "abstained": 0, "failed": 0, "recorded": 0, "cached": 0}
    amounts: dict[str, float | None] = {"calls": 3, "prompt_tokens": 99, "completion_tokens": 11, "cost": 0.75}
    assert record_of({}, paid)["cost"] == counts | amounts
    unpriced = Consultation("p", "2", "judge", "ok", None, {}, calls=1, prompt_tokens=9, completion_tokens=1)
    amounts = {"calls": 4, "prompt_tokens": 108, "completion_tokens": 12, "cost": None}
    assert record_of({}, [*paid, unpriced])["cost"] == counts | {"ok": 3} | amounts
    assert set(record_of({}, [])["cost"].values()) == {0}


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
