"""A certificate of the user's own decides in a run; one that is awaited or asks an LM is journaled like a role."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate, Passage, certify
from eldgr_dspy.comparisons.compared_runs import compare_runs
from eldgr_dspy.comparisons.named_runs import named_runs
from eldgr_dspy.decision import Choice
from eldgr_dspy.errors import ArgumentError, CertificateError, RunChangedError, RunStoppedError
from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.forecast import forecast
from eldgr_dspy.programs.run.freezes import read_freeze, write_freeze
from eldgr_dspy.programs.run.results import question_of, write_pages
from eldgr_dspy.programs.run.settling import decide_again
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, text_of
from eldgr_dspy.report.explanations import path
from eldgr_dspy.rule.certifying import certificates_as_json, certificates_in
from eldgr_dspy.rule.consultations import Abstention, Certificates
from eldgr_dspy.rule.own_certificates import own_certificate, recorded_certificate
from eldgr_dspy.rule.questions import Settings
from tests.asking.transport import log_of
from tests.capitals import EVIDENCE, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.refusing import refusal, refuses, says
from tests.run.journals import json_lines, json_of
from tests.selecting import verdict

N = 6
ME = "tests.run.test_own_certificates"


def is_capital(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
    """Certifies only what a passage calls the capital: an occurrence is not enough."""
    return any(f"{answer} is the capital" in passage.text for passage in evidence)


async def asked_later(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
    await asyncio.sleep(0)
    return is_capital(answer, evidence, question)


def witness(answer: str, evidence: tuple[Passage, ...], question: str) -> Certificate:
    return certify(answer, evidence, question=question)


def never_applies(answer: str, evidence: tuple[Passage, ...], question: str) -> None:
    return None


def raises(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
    raise KeyError(answer)


def misuses(answer: str, evidence: Any, question: Any) -> bool:
    return certify(answer, evidence, question).certified is True


def says_yes(answer: str, evidence: tuple[Passage, ...]) -> str:
    return "yes"


def counts(answer: str, evidence: tuple[Passage, ...]) -> int:
    return 1


def mutates(answer: str, evidence: Any) -> bool:
    evidence.append(Passage("", answer))
    return True


def rewrites(answer: str, evidence: Any) -> bool:
    evidence[0].text = answer
    return True


async def raises_later(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
    raise KeyError(answer)


async def says_yes_later(answer: str, evidence: tuple[Passage, ...], question: str) -> str:
    return "yes"


_TURN = cycle((True, False))


def in_turns(answer: str, evidence: tuple[Passage, ...]) -> bool:
    return next(_TURN)


def cautious(case: Any) -> Any:  # a rule
    yield from ()
    return Choice("consensus", case.consensus)


class Grounds(dspy.Module):  # asks an LM whether the evidence states the answer
    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict("question: str, evidence: list[str], answer: str -> certified: bool")

    async def aforward(self, *, answer: str, evidence: tuple[Passage, ...], question: str) -> dspy.Prediction:
        texts = [passage.text for passage in evidence]
        return await self.predict.acall(question=question, evidence=texts, answer=answer)

    def most_calls(self, candidates: object) -> int:
        return 1


GROUNDS = Grounds()
REPAIR = {"repaired_answer": "Paris", "repair_passage": 1}


def of_paris(request: Any) -> Any:
    return {"certified": "Paris" in text_of(request).rpartition("## answer ##")[2][:40]}


def grounding(certified: Callable[[Any], Any] = of_paris, repair: Mapping[str, Any] = REPAIR) -> Callable[[Any], Any]:
    """Replies: the judge prefers Nice, the repairer gives Paris, and the certificate says what is given."""
    replies: dict[Any, Any] = {"judge": verdict(0), "repairer": repair}
    return lambda request: certified(request) if role_of(request) is None else replies[role_of(request)]


CERTIFYING = grounding()


def asking(reply: Callable[[Any], Any] = CERTIFYING) -> tuple[Selector, ScriptedLM]:
    return selector_with(reply, certificate=Grounds())


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Nice has most votes, and no candidate says Paris, which the evidence calls the capital."""
    rows = (row(number, answers=("Nice", "Nice", "Lyon")) for number in range(N))
    return write_pool(tmp_path / "capitals.jsonl", rows)


def run_of(pool: Path, out: Path, certificate: Any, **options: Any) -> Any:
    return evaluate(selector_with(CERTIFYING, certificate=certificate)[0], Plan([pool], out, **options))


# -- one that is called ------------------------------------------------------------------------------------------------
def test_a_function_decides_and_is_stated_by_name_and_source(pool: Path, tmp_path: Path) -> None:
    """A repair need not be a span, so no bound over spans is stated."""
    summary = run_of(pool, tmp_path / "run", f"{ME}:is_capital")
    figures, record = summary["pools"]["capitals"], json_of(tmp_path / "run" / "record.json")
    name = {"name": f"{ME}:is_capital", "source": own_certificate(is_capital).source}
    head = json_lines(tmp_path / "run" / "journal.jsonl")[0]
    assert (head["kind"], head["details"]["certificate"]) == ("settings", name)
    certificates = (record["certificate"], record["settings"]["certificate"])
    assert certificates == ({"retrieval": name, "arithmetic": "bounded"}, name)
    assert [*summary["consultations"]] == ["judge", "deriver", "repairer"]
    assert f"{ME}:is_capital" in (tmp_path / "run" / "report.html").read_text()
    assert (figures["rules"]["eldgr"]["em"], figures["decided"]["outcomes"][0]["level"]) == (100, "certified")
    assert (figures["bounds"]["eldgr"], figures["bounds_any_span"]["eldgr"]) == ([0, 0], None)
    content = open_pool(pool)
    result = pool_authority(content.rows(), content.task, Settings(certificate=own_certificate(is_capital)))
    others = {rule: [0, 0] for rule in ("first", "majority", "certified", "judge")}
    assert result["bounds_any_span"] == {**others, "eldgr": None}
    assert result["can_change"]["eldgr"] == {"judge": 0, "repairer": None}


@each_case("run", "certificates that fail")
def test_one_that_fails_is_named_with_its_question(pool: Path, tmp_path: Path, name: str, message: str) -> None:
    certificate = globals()[name]
    for workers in (1, 4):
        out = tmp_path / f"run{workers}"
        sentence = refusal(partial(run_of, pool, out, certificate, workers=workers), CertificateError)
        assert says(f"...Question 'q...of pool 'capitals': ...{ME}:{name}...", sentence)
        assert message.replace("Nice", "Lyon") in sentence.replace("Nice", "Lyon")
    if certificate is raises:  # also in a bound
        content, settings = open_pool(pool), Settings(certificate=own_certificate(raises))
        message = r"Question 'q0' of pool 'capitals': The certificate '.*:raises' failed"
        refuses(CertificateError, message, pool_authority, content.rows(), content.task, settings, pool="capitals")


def test_one_that_never_applies_overrides_nothing(pool: Path, tmp_path: Path) -> None:
    figures = run_of(pool, tmp_path / "run", never_applies)["pools"]["capitals"]
    assert (figures["rules"]["eldgr"]["em"], figures["audit"]["preserved"]) == (0, N)
    view = question_of(read_run(tmp_path / "run", certificate=never_applies), "q0", rules=["eldgr"])
    assert "No certificate applies to consensus" in " ".join(path(view.case, view.decisions[0]))


def test_an_answer_of_100000_characters_and_10000_passages_are_given_whole(tmp_path: Path) -> None:
    long, passages = "x" * 100_000, [{"title": "", "text": f"Passage {number}."} for number in range(10_000)]
    sizes = list[tuple[int, int]]()

    def measure(answer: str, evidence: tuple[Passage, ...]) -> bool:
        sizes.append((len(answer), len(evidence)))
        return len(answer) > 10

    async def later(answer: str, evidence: tuple[Passage, ...]) -> bool:
        return measure(answer, evidence)

    pool = write_pool(tmp_path / "capitals.jsonl", [row(0, answers=("Nice", "Nice", long), evidence=passages)])
    for certificate in (measure, later):
        sizes.clear()
        selector, _ = selector_with(lambda request: verdict(2), certificate=certificate)
        figures: Any = evaluate(selector, Plan([pool], tmp_path / certificate.__name__))["pools"]["capitals"]
        assert (sorted(sizes), figures["audit"]["judge_overrides"]) == ([(4, 10_000), (100_000, 10_000)], 1)


def test_a_witness_that_is_not_in_the_evidence_is_refused() -> None:
    elsewhere = certify("Paris", [Passage("", "Paris is the capital.")])
    own = own_certificate(lambda answer, evidence, question: elsewhere)
    message = "returned a witness that is not in the evidence"
    refuses(CertificateError, message, own.certify, "Paris", [Passage("", "Lyon")], "?")
    assert own.certify("Paris", [Passage("", "Paris is the capital.")], "?") == elsewhere


# -- a run that is continued, read and compared ------------------------------------------------------------------------
@pytest.mark.parametrize("certificate", [is_capital, asked_later])
def test_a_run_with_a_changed_certificate_is_not_resumed_or_read(pool: Path, tmp_path: Path, certificate: Any) -> None:
    out, selector = tmp_path / "run", selector_with(CERTIFYING)[0]
    other: Any = replace(own_certificate(certificate), source="0" * 16)
    selector.settings = Settings(certificate=other)
    select = Selector(certificate=other) if other.consulted else selector
    evaluate(select, Plan([pool], out, limit=1, rules=["majority"]))
    change = f'source: "{"0" * 16}" -> "{own_certificate(certificate).source}"'
    refuses(RunChangedError, f"certificate.{change}", run_of, pool, out, certificate)
    again = partial(read_run, out, certificate=certificate)
    reads = (lambda: decide_again(again(), ["majority"]), lambda: question_of(again(), "q0"))
    messages = [*map(refusal, reads), write_pages(again(), again().summary(), tmp_path / "again.html") or ""]
    assert all(one.endswith(f"is not what the file states: {change}. Undo the change.") for one in messages)


def test_two_runs_under_different_certificates_differ_in_their_settings(pool: Path, tmp_path: Path) -> None:
    for name, certificate in (("one", is_capital), ("other", "folded"), ("later", asked_later)):
        run_of(pool, tmp_path / name, certificate)
    result = compare_runs(named_runs(f"{name}={tmp_path / name}" for name in ("one", "other", "later")))
    one, other, later = (result["runs"][name] for name in ("one", "other", "later"))
    difference = f'rule: certificate: {json.dumps(own_certificate(is_capital).to_json())} -> "folded"'
    assert [line for line in other["differences"] if "certificate" in line] == [difference]
    assert ("certificate" in one["models"], later["models"]["certificate"]) == (False, "none")
    assert "certificate: asked only by later" in later["differences"]
    assert result["pools"]["capitals"]["runs"]["later"]["differ"] == 0


# -- one that is consulted ---------------------------------------------------------------------------------------------
def test_it_is_asked_once_a_class_and_of_a_repair_and_both_are_journaled(pool: Path, tmp_path: Path) -> None:
    selector, lm = asking()
    summary: Any = evaluate(selector, Plan([pool], tmp_path / "run"))
    entries = [entry for entry in log_of(tmp_path) if entry.id == "q3"]
    calls = {"certificate": 2, "judge": 1, "repairer": 1, "repair_certificate": 1}
    assert [(entry.role, entry.calls) for entry in entries] == [*calls.items()]
    contents, why = {entry.role: entry.content for entry in entries}, f"by the certificate {ME}:Grounds"
    classes = {"answers": ["Nice", "Lyon"], "certified": [False, False], "reasons": [why, why]}
    assert contents["certificate"] == classes
    assert contents["repair_certificate"] == {"answers": ["Paris"], "certified": [True], "reasons": [why]}
    rules = summary["pools"]["capitals"]["rules"]
    calls = {"judge": 0, "deriver": 0, "repairer": N, "certificate": 2 * N, "repair_certificate": N}
    assert (rules["eldgr"]["em"], rules["eldgr"]["calls"]) == (100, calls)
    assert rules["majority"]["calls"] == dict.fromkeys(calls, 0)
    record = json_of(tmp_path / "run" / "record.json")
    all_calls = (summary["consultations"]["certificate"]["calls"], len(lm.requests), record["cost"]["calls"])
    assert all_calls == (2 * N, 5 * N, 5 * N)  # with the judge's, whom another rule asks
    assert record["roles"]["certificate"]["prompts"].keys() == {"certificate.predict"}
    assert record["fingerprints"]["certificate"] == record["fingerprints"]["repair_certificate"]
    assert [model["calls"] for model in record["models"] if "certificate" in model["role"]] == [2 * N, N]
    assert '<th scope="row">repair_certificate</th><td>ok</td>' in (tmp_path / "run" / "questions.html").read_text()
    # it decides alike in threads, in replay and in redecision
    first = evaluate(asking()[0], Plan([pool], tmp_path / "threads", workers=4))
    lm.requests.clear()
    replay: Any = evaluate(selector, Plan([pool], tmp_path / "replay", replay=tmp_path / "threads" / "journal.jsonl"))
    assert (lm.requests, replay["consultations"]["repair_certificate"]["recorded"]) == ([], N)
    again = decide_again(read_run(tmp_path / "threads", certificate=Grounds), ["eldgr"]).figures
    for rule, figures in first["pools"]["capitals"]["rules"].items():
        assert {**again["capitals"]["rules"][rule], "seconds": 0} == {**figures, "seconds": 0}
        assert replay["pools"]["capitals"]["rules"][rule]["em"] == figures["em"]
    assert again["capitals"]["bounds"] == first["pools"]["capitals"]["bounds"]


def test_a_module_is_named_by_its_variable_or_its_class() -> None:
    assert [str(own_certificate(one)) for one in (GROUNDS, Grounds())] == [f"{ME}:GROUNDS", f"{ME}:Grounds"]
    of_a_class: Any = recorded_certificate(f"{ME}:Grounds")
    assert (of_a_class.to_json(), of_a_class.consulted) == (own_certificate(Grounds()).to_json(), True)
    refuses(ArgumentError, "is a class, and only an instance can be asked", Selector, certificate=of_a_class)
    refuses(ArgumentError, "or an instance of a DSPy module", own_certificate, f"{ME}:Grounds")
    refuses(ArgumentError, "must be a function", own_certificate, f"{ME}:N")


def test_a_run_is_resumed_without_asking_a_certificate_twice(pool: Path, tmp_path: Path) -> None:
    plan = Plan([pool], tmp_path / "run", max_calls=7)
    refuses(RunStoppedError, "7 requests were sent, and --max-calls allows 7", evaluate, asking()[0], plan)
    selector, lm = asking()
    summary = evaluate(selector, replace(plan, max_calls=None))
    assert len(lm.requests) == 5 * N - 7 + sum(entry.outcome == "failed" for entry in log_of(tmp_path)) * 2
    assert summary["pools"]["capitals"]["rules"]["eldgr"]["em"] == 100


def test_without_a_usable_reply_no_certificate_applies_and_a_failed_call_is_counted_and_asked_again(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call fails also if it takes too long."""
    summary: Any = evaluate(asking(grounding(lambda _: "I am not sure"))[0], Plan([pool], tmp_path / "run"))
    figures: Any = summary["pools"]["capitals"]
    count = summary["consultations"]["certificate"]["abstained"]
    repairs = figures["rules"]["eldgr"]["asked"]["repairer"]
    assert (count, figures["audit"]["preserved"], repairs) == (N, N, 0)
    assert any(one.startswith(f"The certificate gave no usable reply on {N} of {N}") for one in figures["remarks"])
    monkeypatch.setattr("eldgr_dspy.programs.requests.retrying._LONGEST_PAUSE", 0.0)
    plan = Plan([pool], tmp_path / "failing", limit=2, rules=["eldgr"])
    selector, _ = asking(grounding(lambda _: dspy.LMServerError("the server is away")))
    refuses(RunStoppedError, "1 question failed", evaluate, selector, plan)
    figures = evaluate(selector, replace(plan, max_failures=2))["pools"]["capitals"]
    assert (figures["n_failed"], figures["audit"]["preserved"]) == (2, 2)
    summary = evaluate(asking()[0], plan)
    em, ok = summary["pools"]["capitals"]["rules"]["eldgr"]["em"], summary["consultations"]["certificate"]["ok"]
    assert (em, ok) == (100, 2)

    async def slow(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
        await asyncio.sleep(30)
        return True

    summary = run_of(pool, tmp_path / "late" / "run", slow, limit=1, timeout=0.05, max_failures=1)
    assert summary["consultations"]["certificate"]["failed"] == 1
    assert "nothing was said within 0.05 s" in (log_of(tmp_path / "late")[0].reason or "")


def test_a_forecast_counts_its_calls_at_most_and_another_prompt_is_another_run(pool: Path, tmp_path: Path) -> None:
    (selector, lm), (strict, _) = asking(), asking()
    plan = Plan([pool], tmp_path / "run", rules=["eldgr"])
    roles = forecast(selector, plan)["pools"]["capitals"]["roles"]
    calls = {"judge": N, "repairer": N, "certificate": 2 * N, "repair_certificate": N}
    assert {role: (of["at_most"], of["calls"]) for role, of in roles.items()} == {one: (N, calls[one]) for one in calls}
    assert lm.requests == []
    evaluate(selector, replace(plan, limit=1))
    certifier: Any = strict.certifier
    certifier.certificate.predict.signature = certifier.certificate.predict.signature.with_instructions("Be strict.")
    refuses(RunChangedError, r"another role 'certificate':\n .*instructions", evaluate, strict, plan)
    evaluate(selector, plan)
    assert {of["to_ask"] for of in forecast(selector, plan)["pools"]["capitals"]["roles"].values()} == {0}


def test_a_recording_without_it_withholds_rules_and_that_of_another_repair_not_used(pool: Any, tmp_path: Path) -> None:
    evaluate(asking()[0], Plan([pool], tmp_path / "run"))
    lines = (tmp_path / "run" / "journal.jsonl").read_text().splitlines(keepends=True)

    def without(line: str) -> Path:
        (file := tmp_path / "lacking.jsonl").write_text("".join(one for one in lines if re.search(line, one) is None))
        return file

    plan = Plan([pool], tmp_path / "first", replay=without('"q2".*"role": "certificate"'))
    figures = evaluate(asking()[0], plan)["pools"]["capitals"]
    assert (figures["rules"], figures["bounds"]["eldgr"]) == ({}, None)
    assert figures["withheld"]["eldgr"] == {"certificate": 1}
    plan = Plan([pool], tmp_path / "second", rules=["eldgr"], replay=without('"role": "repairer"'))
    selector, _ = asking(grounding(of_paris, {"repaired_answer": "the capital", "repair_passage": 1}))
    assert evaluate(selector, plan)["pools"]["capitals"]["withheld"] == {"eldgr": {"repair_certificate": N}}


@given(
    st.lists(st.sampled_from(("Nice", "Lyon", "Paris", "nice", "yes")), min_size=1, max_size=4),
    st.sampled_from(("Paris", "Nice", "", "nowhere")),
    st.integers(0, 3),
)
def test_a_function_decides_the_same_called_or_awaited(answers: list[str], span: str, preferred: int) -> None:
    """A consulted certificate is a called one that others ask; whatever the pool, what ships is the same."""
    choice = verdict(min(preferred, len(answers) - 1), len(answers))
    replies = {"judge": choice, "repairer": {**REPAIR, "repaired_answer": span}}
    inputs: Any = {"question": "Which is the capital?", "candidates": answers, "evidence": EVIDENCE}

    def now(answer: str, evidence: tuple[Passage, ...], question: str) -> Certificate:
        return witness(answer.lower(), evidence, question)

    async def later(answer: str, evidence: tuple[Passage, ...], question: str) -> Certificate:
        return now(answer, evidence, question)

    results = []
    for certificate in (now, later):
        pred = selector_with(lambda request: replies[str(role_of(request))], certificate=certificate)[0](**inputs)
        results.append((pred.answer, pred.branch, pred.certified, pred.consulted, pred.votes, pred.preference))
    assert results[0] == results[1]


# -- how it is written down --------------------------------------------------------------------------------------------

_certificates = st.builds(Certificate, st.sampled_from((True, False, None)), st.text(max_size=9))


@given(st.dictionaries(st.text(max_size=9), _certificates, max_size=4))
def test_certificates_read_back_as_they_were_written(by_answer: dict[str, Certificate]) -> None:
    for one in (by_answer, {**by_answer, "Paris": certify("Paris", [Passage("", "Paris is the capital.")])}):
        assert certificates_in(json.loads(json.dumps(certificates_as_json(one)))) == Certificates(one)


@each_case("run", "contents that are not certificates")
def test_a_recording_that_is_not_a_certificate_is_an_abstention(content: dict[str, Any]) -> None:
    assert isinstance(certificates_in(content), Abstention)


def test_a_recorded_witness_that_does_not_stand_is_left_out(pool: Path, tmp_path: Path) -> None:
    certificates = {"Lyon": certify("Lyon", [Passage("", "Lyon elsewhere")]), "Nice": Certificate(False, "")}
    content = certificates_as_json(certificates)
    line = {"kind": "consultation", "role": "certificate", "outcome": "ok", "content": content}
    file = write_pool(tmp_path / "recorded.jsonl", ({**line, "id": f"q{number}"} for number in range(N)))
    evaluate(asking(lambda request: verdict(2))[0], Plan([pool], tmp_path / "run", replay=file))
    lines = json_lines(tmp_path / "run" / "decisions.jsonl")
    answers = [(line["answer"], line["certified"], line["witness"]) for line in lines if line["rule"] == "eldgr"]
    assert answers == [("Lyon", True, None)] * N


# -- a freeze ----------------------------------------------------------------------------------------------------------
def test_a_freeze_states_a_certificate_with_its_source_and_what_it_decides(pool: Path, tmp_path: Path) -> None:
    selector, _ = selector_with(CERTIFYING, certificate=is_capital)
    freeze = write_freeze(selector, ["majority", "eldgr"], tmp_path / "rule.freeze.json")
    assert freeze.content["settings"]["certificate"] == own_certificate(is_capital).to_json()
    assert (freeze.content["certificate"].keys(), ME in freeze.content["code"]) == ({"decisions"}, True)
    plan = Plan([pool], tmp_path / "run", rules=["majority", "eldgr"], freeze=freeze.path)
    assert evaluate(selector, plan)["confirmation"] is not None
    for other in ("folded", witness):
        selector, elsewhere = selector_with(CERTIFYING, certificate=other)[0], replace(plan, out=tmp_path / "other")
        refuses(RunChangedError, r"settings\.certificate", evaluate, selector, elsewhere)
    # one that is consulted is stated like a role, and nobody is asked
    (selector, lm), rules = asking(), ["eldgr", f"{ME}:cautious"]
    freeze = write_freeze(selector, rules, tmp_path / "consulted.freeze.json")
    prompts = read_freeze(freeze.path).content["roles"]["certificate"]["prompts"].keys()
    assert (lm.requests, prompts) == ([], {"certificate.predict"})
    certifier: Any = selector.certifier
    certifier.certificate.predict.demos = [dspy.Example(question="?", evidence=[], answer="a", certified=True)]
    plan = Plan([pool], tmp_path / "consulted", rules=rules, freeze=freeze.path)
    refuses(RunChangedError, r"roles\.certificate\.prompts", evaluate, selector, plan)


def test_a_certificate_that_decides_in_turns_or_has_no_source_is_not_frozen(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    exec("def unwritten(answer, evidence): return True", namespace)  # noqa: S102
    for certificate, why in (
        (in_turns, r"in_turns' must decide the same each time; it decided differently about the same answer"),
        (namespace["unwritten"], "cannot be frozen, because Python finds no source of it"),
    ):
        selector, out = Selector(certificate=certificate), tmp_path / "rule.freeze.json"
        refuses(ArgumentError, why, write_freeze, selector, ["eldgr"], out)
    assert not (tmp_path / "rule.freeze.json").exists()
