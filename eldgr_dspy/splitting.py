"""Split a pool in two parts, for development and for confirmation, with no question in both.

Tune on one part and confirm on the other. The part of a question depends only on its text, the seed and the share: not
on its id, its candidates, its place in the file, nor on the other questions. So two pools of the same questions split
the same way, and a pool that grows keeps every question in its part.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from eldgr_dspy.base.files import flush_to_disk, replacing
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, write_rows
from eldgr_dspy.text.folding import fold


def folded_question(question: str) -> str:
    """Return the text by which questions are compared: case, white space and kinds of quotes don't count."""
    return fold(question).text.strip()


def is_confirmation(question: str, *, share: float, seed: int) -> bool:
    """Say whether a question belongs to the confirmation part, as `share` of all texts do."""
    # With a larger share and the same seed, every question of that part stays in it. Source: ours.
    digest = hashlib.sha256(f"split {seed}\0{folded_question(question)}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def split_pool(pool: Pool, development: Path, confirmation: Path, *, share: float, seed: int) -> tuple[Pool, Pool]:
    """Write the two parts of a pool, each in its order and in the format of its name; `share` is met on average."""
    if not 0 < share < 1:
        raise ArgumentError(f"share must be between 0 and 1; got {share!r}. Give 0.4 for two questions in five.")
    if len({path.resolve() for path in (pool.path, development, confirmation)}) < 3:
        raise ArgumentError(f"{pool.path}, {development} and {confirmation} must be three files; give other names.")
    sides = Counter(is_confirmation(row.question, share=share, seed=seed) for row in pool.rows())
    if len(sides) < 2:
        part = "development" if sides[True] else "confirmation"
        raise PoolError(
            f"{pool.path}: no question for {part} with share {share:g} and seed {seed}; "
            "take another seed or share, or a larger pool."
        )

    def part_of(side: bool) -> Iterator[Row]:
        return (row for row in pool.rows() if is_confirmation(row.question, share=share, seed=seed) is side)

    # Neither is renamed before both are on the disk: next to a part of another split it would share questions.
    # So on an error both files are unchanged, unless the system refuses the last rename, or to flush a folder.
    with replacing(development) as first, replacing(confirmation) as second:
        parts = write_rows(development, first, part_of(False)), write_rows(confirmation, second, part_of(True))
        for path, out in ((development, first), (confirmation, second)):
            flush_to_disk(path, out)
    return parts
