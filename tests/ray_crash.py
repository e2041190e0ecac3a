"""Kills workers on Ray at random moments until all shards are done, again and again, and checks each merged run.

Run: python -m tests.ray_crash [--kills 100] [--seed N]

An episode is one pool in shards, run by two workers of one cluster on this machine. While it lasts, a worker that has
just asked something is killed with SIGKILL, up to two seconds later. What has to hold is in
`tests.shards.on_ray.require_undisturbed`: the merged run is that of one process, byte for byte but for times; each
question is settled once; and each kill has at most one question asked again.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.shards.on_ray import killing, require_undisturbed, run, scripted, slow, two_workers
from tests.shards.sharded import sharded

QUESTIONS, ROWS = 200, 20


def main() -> int:
    """Run the harness; what does not hold is raised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    began, kills, again, episodes = time.monotonic(), 0, 0, 0
    with two_workers():
        while kills < options.kills:
            with tempfile.TemporaryDirectory(prefix="eldgr-ray-crash-") as folder:
                directory = sharded(Path(folder), rows=ROWS, n=QUESTIONS)
                with killing(directory, options.kills - kills, options.seed + episodes, longest=2.0) as killed:
                    run(directory, scripted, reply=slow)
                again += require_undisturbed(directory, len(killed), QUESTIONS)
            kills, episodes = kills + len(killed), episodes + 1
    sys.stdout.write(
        f"{kills} kills of workers in {episodes} runs of {QUESTIONS} questions (seed {options.seed}, "
        f"{time.monotonic() - began:.0f} s).\n{again} questions were under way at a kill, and were asked again.\n"
        f"All {episodes} merged runs are those of one process, byte for byte but for times.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
