"""How often the kit catches a slip, how often it raises a false alarm, and how long it takes.

Run: python -m benchmarks.kit [RUNS] [WORDS]

For each rule and certificate of tests/laws/slips.py and each selector of tests/laws/slips_of_selectors.py, this makes
one run of `check_laws` or `check_selector` with the fixed situations alone, which are the same in every run: what they
catch is caught always. A slip that they miss gets RUNS runs (20 by default) at the defaults, each of which draws its
own examples. It prints how many runs caught the slip, and the processor seconds of a run. Then it does the same for
tests/laws/lawful.py, where each catch is a false alarm. WORDS selects those whose label has them, as "lawful" or
"selector: reuses". docs/reference/testing.md has the result.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hypothesis import settings

from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.testing import check_laws
from tests.laws import lawful, slips, slips_of_selectors

Check = Callable[..., object]


def wrong() -> Iterator[tuple[str, Check]]:
    """Each slip by its kind and name, with a call that tries it."""
    for name, certificate in slips.CERTIFICATES.items():
        yield f"certificate: {name}", partial(check_laws, certificate=certificate)
    for name, rule in slips.RULES.items():
        yield f"rule: {name}", partial(check_laws, rule)
    for name, make in slips_of_selectors.SELECTORS.items():
        yield f"selector: {name}", partial(_check_new, make)


def right() -> Iterator[tuple[str, Check]]:
    """Each lawful rule, certificate and selector by its name, with a call that tries it."""
    for kind, several in (("rule", lawful.RULES), ("certificate", lawful.CERTIFICATES)):
        for name, options in several.items():
            yield f"lawful {kind}: {name}", partial(check_laws, **options)
    for name, make in lawful.SELECTORS.items():
        yield f"lawful selector: {name}", partial(_check_new, make)


def _check_new(make: Callable[[], Selector], **options: Any) -> None:
    check_selector(make(), **options)


def catches(check: Check, **options: Any) -> bool:
    """Return whether a law breaks."""
    try:
        check(**options)
    except LawBroken:
        return True
    return False


def count(several: Iterator[tuple[str, Check]], runs: int, words: str) -> None:
    """Print one line each: how many of the runs broke a law, and the seconds of one."""
    for name, check in several:
        if words in name:
            start, always = time.process_time(), catches(check, max_examples=0)
            n_catches, n_runs = (runs, 1) if always else (sum(catches(check) for _ in range(runs)), 1 + runs)
            seconds = (time.process_time() - start) / n_runs
            print(f"{name:<64} {n_catches:>3} of {runs:<3} {seconds:>6.2f} s{'  always' if always else ''}", flush=True)


def main() -> None:
    runs, words = int(sys.argv[1]) if len(sys.argv) > 1 else 20, " ".join(sys.argv[2:])
    settings.register_profile("afresh", derandomize=False, database=None)
    settings.load_profile("afresh")
    print("Slips, caught:")
    count(wrong(), runs, words)
    print("Lawful, false alarms:")
    count(right(), runs, words)


if __name__ == "__main__":
    main()
