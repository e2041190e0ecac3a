"""Every rule decides the demo pools and the real pools as it did when `digests.json` was last recorded."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import evidence_tables
from tests.evidence_page import column
from tests.regression.__main__ import CHANGES
from tests.regression.decided_pools import DEMOS, REAL, RULES, Digests, Pool, decide, differences, missing, read_digests

ENTRY = re.compile(r"## \d{4}-\d\d-\d\d: \S+ .+[.]")
LINE = re.compile(r"\* (\S+) is now ([0-9a-f]{8}): \S.*")
PART = 150
"""Questions of a real pool that the fast tests decide. How one question is decided does not depend on the others."""


def check(name: str, data: Path, out: Path, *options: str) -> None:
    """Decide a pool or its first questions, and fail with the names of those that are decided otherwise."""
    if reason := missing(name, data):
        pytest.skip(reason)
    if faults := differences(read_digests()[name], decide(name, data, out, *options), part="--limit" in options):
        advice = f"If that is meant, {CHANGES.name} says how to record it."
        pytest.fail(f"{name}: {'; '.join(faults)}. {advice}", pytrace=False)


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_pool_is_decided_as_recorded(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_the_first_questions_of_a_real_pool_are_decided_as_recorded(name: str, pools_dir: Path, tmp_path: Path) -> None:
    check(name, pools_dir, tmp_path, "--limit", str(PART))


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_real_pool_is_decided_as_recorded_and_its_figures_are_those_of_the_page_of_evidence(
    name: str, pools_dir: Path, tmp_path: Path
) -> None:
    check(name, pools_dir, tmp_path)
    summary = json.loads((tmp_path / name / "summary.json").read_text(encoding="utf-8"))
    assert column(name).items() <= dict(evidence_tables.rows(summary["pools"][name])).items()


def test_every_pool_is_recorded_with_all_its_questions_and_on_the_page_of_evidence_with_the_rules() -> None:
    assert all(column(name) for name in REAL)
    assert {*evidence_tables.RULES} == {*RULES.split(",")}
    digests = read_digests()
    assert [*digests] == [*DEMOS, *REAL]
    assert {name: len(digests[name].questions) for name in REAL} == REAL


def test_the_last_entry_about_each_pool_names_the_digests_that_are_recorded() -> None:
    """So nobody changes a digest without a reason, and an entry says of each pool what changed."""
    _, *entries = re.split(r"^(?=## )", CHANGES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = dict[str, str]()
    for entry in entries:
        heading, _, text = entry.partition("\n\n")
        assert ENTRY.fullmatch(heading), f"not a date and a sentence: {heading}"
        for line in text.strip().splitlines():
            match = LINE.fullmatch(line)
            assert match, f"not a pool, its digests and what changed: {line}"
            names[match[1]] = match[2]
    assert names == {name: digests.name for name, digests in read_digests().items()}


def test_what_is_decided_otherwise_is_named() -> None:
    """Of the first questions of a pool no numbers are compared: they are those of the whole."""
    before = Digests("0", ["aaaa", "bbbb", "cccc"], {"n": "1", "rules": "1"})
    after = Digests("1", ["aaaa", "dddd"], {"n": "1", "rules": "2"})
    assert differences(before, Pool(["q1", "q2"], after), part=True) == ["1 of 2 questions: q2"]
    result = "2 of 3 questions: q2, one that is gone"
    assert differences(before, Pool(["q1", "q2"], after)) == [result, "numbers of rules"]
    other = Pool(["q1", "q2", "q3"], before._replace(decisions="1"))
    assert differences(before, other) == ["the order or the form of decisions.jsonl"]
