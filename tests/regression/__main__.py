"""Records what is decided on the demo pools and the real pools: python -m tests.regression --reason SENTENCE [POOL...].

It decides the pools that it is given, or all that are here. Where a digest differs it writes the new one, and adds the
questions that changed to changes.md with the reason. Without a reason it only prints what changed. With --out DIR the
runs are kept there, so that `decisions.jsonl` can be compared with that of another checkout line by line.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._timing import pools_dir
from tests.regression.decided_pools import DEMOS, DIGESTS, REAL, decide, differences, missing, read_digests

CHANGES = Path(__file__).with_name("changes.md")


def compare(names: Sequence[str], folder: Path) -> Mapping[str, str]:
    """Decide pools and return a line of changes.md for each that changed; writes their digests into `folder`."""
    digests, lines = read_digests(), dict[str, str]()
    for name in names:
        if reason := missing(name, pools_dir()):
            sys.stdout.write(f"{name} is left as it is: {reason}\n")
            continue
        pool = decide(name, pools_dir(), folder)
        if result := differences(digests.get(name), pool):
            lines[name] = f"{name} is now {pool.digests.name}: {'; '.join(result)}"
        digests[name] = pool.digests
        sys.stdout.write(f"{lines.get(name, f'{name} is as read_digests')}\n")
    text = json.dumps({name: digest.record() for name, digest in digests.items()}, indent=1)
    (folder / DIGESTS.name).write_text(f"{text}\n", encoding="utf-8")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", nargs="*", default="all", choices=[*DEMOS, *REAL, "all"], metavar="POOL")
    parser.add_argument("--reason", help="one sentence for changes.md that says why these questions changed")
    parser.add_argument("--out", type=Path, metavar="DIR", help="new directory for the runs, which are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        lines = compare([*DEMOS, *REAL] if options.pools == "all" else options.pools, folder)
        if lines and options.reason:
            DIGESTS.write_text((folder / DIGESTS.name).read_text(encoding="utf-8"), encoding="utf-8")
            with CHANGES.open("a", encoding="utf-8") as file:
                file.write(f"\n## {datetime.now(UTC):%Y-%m-%d}: {options.reason}\n\n")
                file.writelines(f"* {line}\n" for line in lines.values())
    return 1 if lines and not options.reason else 0


if __name__ == "__main__":
    sys.exit(main())
