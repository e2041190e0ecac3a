"""A pytest plugin that counts what the tests of a law tried: `pytest -p tests.laws.tried_counts --tried FILE`.

A test says `count(n)`; examples of Hypothesis and runs of its state machines count by themselves. A test with a
parameter `law` counts for that one of its marker. The count travels with the test's report, past pytest-xdist.
"""

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


class Tally:
    """What the running test has tried so far."""

    n = 0


def count(n: int = 1) -> None:
    Tally.n += n


def counting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        count()
        return call(*args, **kwargs)

    return wrapper


def count_examples(test: Any) -> None:
    """Have each example of a Hypothesis test, or each run of a state machine, counted."""
    machine = getattr(test, "_hypothesis_state_machine_class", None)
    if machine is not None:
        machine.__init__ = counting(machine.__init__)
    elif hasattr(test, "hypothesis"):
        test.hypothesis.inner_test = counting(test.hypothesis.inner_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for test in tests:
        count_examples(test)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    Tally.n = 0
    yield
    one = getattr(item, "callspec", None)
    for laws, how in (marker.args for marker in item.iter_markers("law")):
        names = [one.params["law"]] if one and "law" in one.params else str(laws).split()
        item.user_properties += [("law", (law, str(how), max(Tally.n, 1))) for law in names]


TOTAL: Counter[tuple[str, str]] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tried", metavar="FILE", help="write what the tests of each law tried")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        properties: list[tuple[str, Any]] = report.user_properties
        for law, how, n in (value for name, value in properties if name == "law"):
            TOTAL[law, how] += n


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--tried")
    if path and not hasattr(session.config, "workerinput"):
        rows = [{"law": law, "how": how, "tried": n} for (law, how), n in sorted(TOTAL.items())]
        Path(path).write_text(json.dumps(rows), "utf-8")
