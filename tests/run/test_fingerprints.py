"""Everything that shapes a call changes the fingerprint, and what changed is said readably."""

from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.base.differences import differences
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.fingerprints import describe, fingerprint
from eldgr_dspy.programs.run.run_directory import RunDirectory
from tests.case_tables import each_case


class Own(dspy.Module):  # a custom role with a plain attribute
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k


class Wrapped(dspy.Module):  # a custom role around a compiled predictor
    def __init__(self, signature: str) -> None:
        super().__init__()
        self.inner = dspy.ChainOfThought(signature)
        self.inner._compiled = True


def bound(**options: Any) -> dspy.Module:
    module = Judge()
    module.set_lm(dspy.LM("openai/x", **options))
    return module


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Own(0), Own(3)),
        (Wrapped("question -> answer"), Wrapped("question -> reply")),
        (dspy.Predict("question -> preferred: int"), dspy.Predict("question -> preferred: Literal[0, 1]")),
        (bound(model_type="chat"), bound(model_type="responses")),
        (bound(min_tokens=1), bound(min_tokens=2)),
    ],
)
def test_what_shapes_a_call_changes_the_fingerprint(one: dspy.Module, other: dspy.Module) -> None:
    assert fingerprint(describe(one)) != fingerprint(describe(other))


SECRET = "q7-canary-12345"


@each_case("run", "credentials of a role")
def test_no_credential_is_in_the_journal_whatever_it_is_called(options: dict[str, Any], tmp_path: Path) -> None:
    # hazard 101
    details = describe(bound(**options))
    with RunDirectory(tmp_path) as run:
        run.claim_role("judge", details)
    assert SECRET not in (tmp_path / "journal.jsonl").read_text(encoding="utf-8") + repr(details)
    assert "***" in repr(details["lm"])
    settings = details["lm"]["settings"]
    assert settings.get("max_tokens") == options.get("max_tokens")
    if "max_tokens" in options:
        assert settings["api_base"] == "http://***@127.0.0.1/v1"
    assert ("127.0.0.1" in settings.get("api_base", "")) == ("api_base" in options)
    assert fingerprint(details) == fingerprint(describe(bound(**options)))


def test_another_key_is_the_same_role_and_another_version_of_the_interface_another_one() -> None:
    def role(key: str, version: str) -> dict[str, Any]:
        return describe(bound(api_key=f"key-of-{key}", extra_headers={"anthropic-version": version}))

    assert fingerprint(role("one", "2023-06-01")) == fingerprint(role("another", "2023-06-01"))
    assert fingerprint(role("one", "2023-06-01")) != fingerprint(role("one", "2024-06-01"))


def test_an_adapters_options_are_described() -> None:
    with dspy.context(adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        without = describe(Judge())
    with dspy.context(adapter=dspy.ChatAdapter()):
        assert fingerprint(describe(Judge())) != fingerprint(without)


def test_a_long_text_is_shown_around_its_first_difference_and_what_one_side_lacks_is_one_line() -> None:
    (line,) = differences({"text": "a" * 300 + "b"}, {"text": "a" * 300 + "c"})
    assert "b" in line and 'c"' in line
    assert differences({"lm": None}, {"lm": {"a": 1, "b": 2}}) == ['lm: (absent) -> {"a": 1, "b": 2}']
