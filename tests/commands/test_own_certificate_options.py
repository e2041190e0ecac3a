"""`--certificate MODULE:FUNCTION` in every command that takes a certificate, as a user types it."""

import json
from pathlib import Path

import pytest

from eldgr_dspy.journal import read_journal
from tests.commands.installed import Eldgr
from tests.lm_server import serving
from tests.results.demo_pools import ARTIFACTS

POOL = str(ARTIFACTS / "demo-retrieval.jsonl")
CERTIFICATES = """
import dspy


def quoted(answer, evidence, question):
    return any(f"{answer}." in passage.text for passage in evidence)


async def asked(answer, evidence, question):
    return quoted(answer, evidence, question)


class Strict:
    def __call__(self, answer, evidence):
        return False


strict = Strict()


class Grounded(dspy.Module):
    def __init__(self):
        super().__init__()
        self.predict = dspy.Predict("question: str, evidence: list[str], answer: str -> certified: bool")

    async def aforward(self, *, answer, evidence, question):
        texts = [passage.text for passage in evidence]
        return await self.predict.acall(question=question, evidence=texts, answer=answer)

    def most_calls(self, candidates):
        return 1


grounded = Grounded()
"""


@pytest.fixture(autouse=True)
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("command_certificates.py").write_text(CERTIFICATES)


@pytest.mark.parametrize("name", ["quoted", "asked"])
def test_a_run_is_evaluated_frozen_decided_shown_and_reported(name: str, eldgr: Eldgr) -> None:
    named = f"command_certificates:{name}"
    eldgr("freeze", "--heuristic", "--certificate", named, "--out", "rule.freeze.json")
    own = ("--certificate", named)
    eldgr("evaluate", POOL, "--freeze", "rule.freeze.json", *own, "--out", "run", "--quiet")
    record = json.loads(Path("run/record.json").read_text())
    assert record["certificate"]["retrieval"]["name"] == named
    of_run = json.loads(Path("run/summary.json").read_text())["pools"]["demo-retrieval"]
    again = json.loads(eldgr("decide", "run", "--rules", "eldgr", *own, "--json").out)["pools"]["demo-retrieval"]
    assert again["rules"]["eldgr"]["em"] == of_run["rules"]["eldgr"]["em"]
    assert again["bounds"] == of_run["bounds"]
    assert f"{named} (source {record['certificate']['retrieval']['source']})" in Path("run/report.html").read_text()
    eldgr("report", "run", *own, "--format", "html", "--out", "again.html")
    assert Path("again-questions.html").read_bytes() == Path("run/questions.html").read_bytes().replace(
        b"report.html", b"again.html"
    )
    assert f"by the certificate {named}" in eldgr("show", "run", "r02", *own).out
    assert "the same settings" in eldgr("compare", "run", "again=run").out.lower()


def test_an_object_with_a_call_is_a_certificate(eldgr: Eldgr) -> None:
    result = json.loads(eldgr("bound", POOL, "--certificate", "command_certificates:strict", "--json").out)
    figures = result["pools"]["demo-retrieval"]
    assert figures["bounds"]["eldgr"] == figures["bounds"]["majority"]
    assert (figures["bounds_any_span"]["eldgr"], figures["can_change"]["eldgr"]["repairer"]) == (None, None)


def test_a_dry_run_counts_the_certificates_calls_and_makes_none(eldgr: Eldgr) -> None:
    out = eldgr("evaluate", POOL, "--certificate", "command_certificates:asked", "--dry-run").out
    assert (
        "│ demo-retrieval │        certificate │  own code │      49 │         0 │        0 │     49 │   49+ │" in out
    )
    assert not Path("runs").exists()


def test_a_certificate_that_asks_is_asked_at_the_model_of_the_lm_option(
    eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    named = ("--certificate", "command_certificates:grounded", "--out", "run", "--limit", "4")
    with serving() as server:
        asking = ("--lm", "openai/m", "--api-base", server.address, "--workers", "1")
        eldgr("evaluate", POOL, *named, *asking, "--max-calls", "3", code=3)
        assert (server.log[0].role, len(server.log)) == ("certificate", 3)
        eldgr("evaluate", POOL, *named, *asking, "--quiet")
        log = list(server.log)
        eldgr("evaluate", POOL, *named, *asking, "--quiet")
        assert (len(server.log), {one.model for one in log}) == (len(log), {"m"})
    entries = list(read_journal(Path("run/journal.jsonl")))
    certified = [one for one in entries if one.role in ("certificate", "repair_certificate")]
    assert {one.role for one in entries} >= {"certificate", "judge"}
    assert {one.outcome for one in certified} == {"ok"}
    assert sum(one.calls for one in certified) == sum(one.role == "certificate" for one in log)


def test_a_bound_refuses_a_certificate_that_is_asked(eldgr: Eldgr) -> None:
    assert eldgr("bound", POOL, "--certificate", "command_certificates:asked", code=1).err == (
        "Error: certificate='command_certificates:asked' must be asked about each answer, and a bound asks nobody. "
        "Give it to eldgr evaluate, whose report has the bounds under the certificates that it gave.\n"
    )
