"""A reply is forgiven its form where that is asked for, and never its content; a run states how it reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import RunChangedError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.engines.strict import STRICT, StrictStreamListener
from eldgr_dspy.programs.judges import PairwiseJudge, PointwiseJudge
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.run.freezes import require_frozen, write_freeze
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.signatures import DeriveAnswer, JudgeCandidates, RepairAnswer
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    any_reply,
    each_way,
    repair,
    saying,
    select_streamify,
    selected,
    verdict,
)

GOOD = json.dumps(verdict(2))
SIGNATURES: tuple[Any, ...] = (JudgeCandidates, RepairAnswer, DeriveAnswer)
PROSE = ("Sure! ", "Here it is:\n\n", "I hope that helps. ", "1 < 2, as [0] says.", "> quoted", "\n", "")


def read(adapter: Any, reply: str, signature: Any = JudgeCandidates) -> dict[str, Any] | None:
    """The fields of a reply, None where it is refused."""
    try:
        fields: dict[str, Any] = adapter.parse(signature, reply)
    except dspy.AdapterParseError:
        return None
    return fields


# -- what is forgiven -------------------------------------------------------------------------------------------------

FORGIVEN: dict[str, Any] = {
    "prose before": f"Here is my verdict:\n{GOOD}",
    "prose behind": f"{GOOD}\nI hope that helps.",
    "a code block in prose": f"Sure!\n```json\n{GOOD}\n```\nDone.",
    "prose behind a thought": f"<think>Maybe {{0}}?</think>My verdict: {GOOD}",
    "a list of one": f"[{GOOD}]",
    "an index in quotes": {**verdict(2), "preferred": "2"},
    "a spaced index in quotes": {**verdict(2), "preferred": " 2 "},
    "only the preference": {"preferred": 2},
    "all of it": 'The answer: {"preferred": "2"} (by passage 0)',
}


@each_way
@pytest.mark.parametrize("reply", FORGIVEN.values(), ids=FORGIVEN)
def test_the_form_of_a_verdict_is_forgiven_where_that_is_asked_for(call: Any, reply: Any) -> None:
    with dspy.context(lm=saying(reply)):
        lenient, strict = call(Selector(replies="lenient"), CONTESTED), call(Selector(), CONTESTED)
    assert (lenient.answer, lenient.branch, lenient.abstentions) == ("Doha", "judge", {})
    assert (strict.answer, [*strict.abstentions]) == ("Dubai", ["judge", "repairer"])


def test_a_repair_is_forgiven_a_missing_passage_and_a_derivation_nothing() -> None:
    found = selected(saying("?", {"repaired_answer": "Persian Gulf"}), replies="lenient")
    assert (found.answer, found.branch, [*found.abstentions]) == ("Persian Gulf", "repair", ["judge"])
    for name in DERIVATION:
        part = {other: value for other, value in DERIVATION.items() if other != name}
        said = selected(saying(deriver=part), inputs=PENS, replies="lenient").abstentions
        assert said == {"deriver": f"unparsable: The reply lacks {name}."}


@pytest.mark.parametrize(("kind", "reply"), [(PairwiseJudge, {"better": "1"}), (PointwiseJudge, {"preferred": 0})])
def test_other_judges_are_read_as_the_selector_says(kind: Any, reply: dict[str, Any]) -> None:
    select = Selector(replies="lenient", on_error="raise")
    select.judge = kind()
    scores = {"assessment": ["5"] * 8}
    with dspy.context(lm=saying_all(f"So: {json.dumps(scores if kind is PointwiseJudge else reply)}")):
        assert select(**CONTESTED).consulted[0] == "judge"


def saying_all(reply: str) -> Any:
    def said(request: Any) -> Any:
        named = (request.config.response_format or {}).get("schema", {}).get("properties", ())
        return repair("", -1) if "repaired_answer" in named else reply

    return scripted_lm(said)


def test_a_field_that_the_rule_needs_is_not_made_up() -> None:
    for reply in ({"judge_rationale": "?"}, {"repair_passage": 0}, {"derived_answer": "36"}, {}):
        assert [read(LENIENT, f"So: {json.dumps(reply)}", signature) for signature in SIGNATURES] == [None] * 3


def with_preferred(value: str) -> str:
    return "So: " + GOOD.replace('"preferred": 2', f'"preferred": {value}')


# -- what is refused in both ------------------------------------------------------------------------------------------

REFUSED: dict[str, str] = {
    "two objects": f"{json.dumps(verdict(0))}\n{GOOD}",
    "the same object twice": f"{GOOD} {GOOD}",
    "two objects in a list": f"[{GOOD}, {GOOD}]",
    "an object in a fence and one behind it": f"```json\n{GOOD}\n```\n{GOOD}",
    "an unclosed thought": f"<think>{GOOD}",
    "a draft in a thought behind prose": f"Well. <think>{GOOD}</think> I am not sure.",
    "a draft in a thought of another name": f"<thinking>{GOOD}</thinking> I prefer candidate 0.",
    "a draft in a thought in brackets": f"[THINK]{GOOD}[/THINK] I prefer candidate 0.",
    "a draft in a thought of marks": f"<|begin_of_thought|>{GOOD}<|end_of_thought|> Candidate 0.",
    "an orphan end of a thought": f"{GOOD}</think>Candidate 0.",
    "a thought in a thought": f"<think>a<think>b</think>c</think>{GOOD}",
    "a key twice": with_preferred('0, "preferred": 2'),
    "a key twice inside": "So: " + GOOD.replace('"logic": 0.5', '"logic": 0.5, "logic": 0.6', 1),
    "cut short": f"So: {GOOD[:-1]}",
    "cut at its start": GOOD[1:],
    "cut at its start within a score": GOOD[GOOD.index('"fact"') :],
    "cut between scores": f"So: {GOOD[: GOOD.index('}') + 1]}",
    "another preference in the prose": f"preferred: 0. That is to say {GOOD}",
    "another preference as a JSON field": f'{GOOD}\n"preferred": 0',
    "another preference in bold": f"**Preferred**: 0\n{GOOD}",
    "another preference in DSPy's own form": f"[[ ## preferred ## ]]\n0\n{GOOD}",
    "another preference as a tag": f"<preferred>0</preferred>{GOOD}",
    "an object in a text": json.dumps(GOOD),
    "an object in an object": json.dumps({"verdict": verdict(2)}),
    "NaN": f"So: {GOOD.replace('0.5', 'NaN', 1)}",
    "a truth value": with_preferred("true"),
    "a truth value in quotes": with_preferred('"true"'),
    "a numeral with a word": with_preferred('"candidate 2"'),
    "a broken number in quotes": with_preferred('"2.5"'),
    "another script's numeral": with_preferred('"1\u0662"'),
    "a sign": with_preferred('"+2"'),
    "an exponent": with_preferred('"2e0"'),
    "another field": f"So: {json.dumps({**verdict(2), 'sure': True})}",
    "nothing": "",
    "prose": "I prefer candidate 2.",
    "an array": "[2]",
    "many brackets": f"So: {'[' * 100_000}",
    "a deep list in place of scores": '{"preferred": 2, "assessments": %s}' % ("[" * 900 + '"1"' + "]" * 900),
}


@pytest.mark.parametrize("reply", REFUSED.values(), ids=REFUSED)
def test_what_leaves_open_which_verdict_was_meant_is_refused_in_both(reply: str) -> None:
    for replies in ("strict", "lenient"):
        pred = selected(saying(reply), replies=replies)
        assert (pred.answer, pred.preference) == ("Dubai", None)
        assert len(pred.abstentions["judge"]) > 10


any_verdict = st.builds(verdict, st.integers(-1, 4), st.integers(0, 3)) | st.builds(
    repair, st.sampled_from(("Doha", "1976", "")), st.integers(-2, 3)
)
around = st.sampled_from(PROSE) | st.text(max_size=12).filter(lambda text: "<" not in text)


@given(any_reply | st.builds("{}{}{}".format, around, any_verdict.map(json.dumps), around))
@example(GOOD)
@example(f"<think>{GOOD}</think>{GOOD}")
@example(f"```\n{GOOD}\n```")
def test_whatever_is_read_strictly_is_read_leniently_alike(reply: str) -> None:
    for signature in SIGNATURES:
        strict = read(STRICT, reply, signature)
        assert strict is None or read(LENIENT, reply, signature) == strict


@given(any_reply)
@example("[" * 100_000)
@example('So: {"preferred": "' + "9" * 5000 + '"}')
@example('So: {"\ud800": "\udc00"}')
@example(json.dumps({f"key {number}": 0 for number in range(3000)}) + " key 1: 0")
def test_whatever_an_lm_writes_is_read_or_refused_and_nothing_else(reply: str) -> None:
    for signature in SIGNATURES:
        found = read(LENIENT, reply, signature)
        assert found is None or found.keys() == signature.output_fields.keys()


@given(around, any_verdict, around, any_verdict, around)
def test_a_verdict_is_never_read_from_a_text_with_two(
    before: str, one: Mapping[str, Any], between: str, other: Mapping[str, Any], behind: str
) -> None:
    reply = f"{before}{json.dumps(one)}{between}{json.dumps(other)}{behind}"
    assert [read(adapter, reply, signature) for adapter in (STRICT, LENIENT) for signature in SIGNATURES] == [None] * 6


@given(around, any_verdict, around, st.integers(1, 300))
def test_a_cut_verdict_is_never_read(before: str, one: Mapping[str, Any], behind: str, cut: int) -> None:
    whole = json.dumps(one)
    reply = f"{before}{whole[: -min(cut, len(whole) - 1)]}{behind.replace('}', '')}"
    assert [read(adapter, reply, signature) for adapter in (STRICT, LENIENT) for signature in SIGNATURES] == [None] * 6


# -- who reads --------------------------------------------------------------------------------------------------------


def test_the_adapter_of_the_settings_comes_first() -> None:
    pred = selected(saying(f"So: {GOOD}"), adapter=STRICT, replies="lenient")
    assert [*pred.abstentions] == ["judge", "repairer"]


def test_a_listener_hears_a_lenient_selector() -> None:
    listener = StrictStreamListener("repaired_answer")
    with dspy.context(lm=saying("?", f"So: {json.dumps(repair('Persian Gulf', 1))}")):
        pred = select_streamify(Selector(replies="lenient"), CONTESTED)
        assert (pred.answer, listener.adapter_identifiers["LenientJSONAdapter"]) != ("Dubai", None)


def test_requests_are_the_same_either_way() -> None:
    lm, other = saying(GOOD), saying(GOOD)
    selected(lm)
    selected(other, replies="lenient")
    assert lm.requests == other.requests


# -- runs -------------------------------------------------------------------------------------------------------------

ROW = {
    "id": "q1",
    "task": "retrieval",
    "question": CONTESTED["question"],
    "gold": ["Doha"],
    "candidates": [{"text": text, "answer": text} for text in CONTESTED["candidates"]],
    "evidence": [{"title": "", "text": text} for text in CONTESTED["evidence"]],
}


def run(out: Path, replies: Any, reply: str = f"So: {GOOD}") -> Any:
    pool = out.parent / "pool.jsonl"
    pool.write_text(json.dumps(ROW) + "\n")
    with dspy.context(lm=saying(reply)):
        return evaluate(Selector(replies=replies), Plan([pool], out, rules=("eldgr",)))


def test_a_run_reads_as_its_selector_and_states_how(tmp_path: Path) -> None:
    found = {replies: run(tmp_path / replies, replies)["pools"]["pool"] for replies in ("strict", "lenient")}
    assert {replies: pool["rules"]["eldgr"]["em"] for replies, pool in found.items()} == {"strict": 0, "lenient": 100}
    prints = [{entry.fingerprint for entry in read_journal(tmp_path / replies / "journal.jsonl")} for replies in found]
    assert prints[0].isdisjoint(prints[1])


def test_a_run_that_began_strictly_does_not_resume_leniently(tmp_path: Path) -> None:
    run(tmp_path / "run", "strict")
    with pytest.raises(RunChangedError, match=r"StrictJSONAdapter.*LenientJSONAdapter"):
        run(tmp_path / "run", "lenient")
    run(tmp_path / "run", "strict")


def test_a_freeze_freezes_the_reading(tmp_path: Path) -> None:
    freeze = write_freeze(Selector(replies="lenient"), ["eldgr"], tmp_path / "rule.freeze.json")
    require_frozen(freeze, Selector(replies="lenient"), ["eldgr"])
    with pytest.raises(RunChangedError, match="LenientJSONAdapter"):
        require_frozen(freeze, Selector(), ["eldgr"])
