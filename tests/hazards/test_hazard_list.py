"""Every hazard has a test that names its number, or a reason in the README why it has none."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
COMMENT = re.compile(r"# hazards? ((?:\d+(?:, and | and |, )?)+)")
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
FILE = re.compile(r"`([\w/]*test_\w+\.py)`")
LAST = 116


def find_tests() -> dict[int, set[str]]:
    """The test files that name each number, by their paths below `tests`."""
    result: dict[int, set[str]] = {number: set() for number in range(1, LAST + 1)}
    for path in TESTS.rglob("test_*.py"):
        for comment in COMMENT.finditer(path.read_text(encoding="utf-8")):
            for number in re.findall(r"\d+", comment[1]):
                result[int(number)].add(path.relative_to(TESTS).as_posix())
    return result


def read_list() -> dict[int, str]:
    rows = ROW.findall((HERE / "README.md").read_text(encoding="utf-8"))
    assert [int(number) for number, _, _ in rows] == list(range(1, LAST + 1))
    return {int(number): reply for number, _, reply in rows}


def test_a_file_that_the_list_names_has_a_test_of_that_number() -> None:
    tests = find_tests()
    claims = {number: set(FILE.findall(row)) for number, row in read_list().items()}
    assert {number: files - tests[number] for number, files in claims.items() if files - tests[number]} == {}


def test_a_hazard_without_a_test_has_a_reason() -> None:
    replies, tests = read_list(), find_tests()
    silent = {number for number, files in tests.items() if not files and not replies[number].startswith("Can't")}
    assert silent == set()


def test_the_list_gives_no_reason_where_there_is_a_test() -> None:
    replies, tests = read_list(), find_tests()
    stale = {number for number, files in tests.items() if files and not FILE.search(replies[number])}
    assert stale == set()
