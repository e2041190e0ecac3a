"""Adds up a mutation run, and fails where a mutant survives that the list does not prove equivalent."""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("equivalent.toml")
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
NO_RUN = "there is no run to add up; run mutmut first"
STATES = ("killed", "timeout", "equivalent", "open")
_ALIVE = ("survived", "timeout", "no tests")  # what differs in nothing but time may be too slow for a busy machine


@dataclass(frozen=True)
class Mutant:
    """One change of one function: the lines that it takes away and those that it puts there, without indentation."""

    function: str
    was: str
    becomes: str

    @property
    def module(self) -> str:
        return self.function.partition(".")[0]


def equivalents(path: Path = LIST) -> dict[Mutant, str]:
    """The mutants that no input can tell from the shipped code, each with the reason."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    result = {Mutant(one["function"], one["was"].strip(), one["becomes"].strip()): one["why"] for one in entries}
    assert len(result) == len(entries), "an entry of the list is there twice"
    return result


def modules(path: Path = PROJECT) -> dict[str, str]:
    """The modules that a run is to change, as the project's settings say: each name, and what to import."""
    settings = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["mutmut"]
    return {Path(one).stem: one.removesuffix(".py").replace("/", ".") for one in settings["only_mutate"]}


def side(diff: str, sign: str) -> str:
    lines = (line[1:].strip() for line in diff.splitlines() if line.startswith(sign) and not line.startswith(sign * 3))
    return "\n".join(lines)


def results() -> Iterator[tuple[Mutant, str]]:
    """Every mutant of the last run with its status, in mutmut's words."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key

    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, exit_code in data.exit_code_by_key.items():
            diff = get_diff_for_mutant(name, path=path)
            function, owner = orig_function_and_class_names_from_key(name)
            where = ".".join(filter(None, (path.stem, owner, function)))
            yield Mutant(where, side(diff, "-"), side(diff, "+")), status_by_exit_code[exit_code]


def state(mutant: Mutant, status: str, reasons: Mapping[Mutant, str]) -> str:
    if status in _ALIVE and mutant in reasons:
        return "equivalent"
    return status if status in ("killed", "timeout") else "open"


def table(states: Iterable[tuple[Mutant, str]]) -> Iterator[str]:
    counts = Counter((module, name) for mutant, name in states for module in (mutant.module, "all"))
    modules = sorted({module for module, _ in counts} - {"all"})
    yield "".join(f"{head:>13}" for head in ("module", "mutants", *STATES))
    for module in (*modules, "all"):
        numbers = [counts[module, name] for name in STATES]
        yield "".join(f"{cell:>13}" for cell in (module, sum(numbers), *numbers))


def faults(mutants: Sequence[tuple[Mutant, str]], reasons: Mapping[Mutant, str]) -> Iterator[str]:
    """What is open, and what stands on the list without need; each a few lines of text."""
    for mutant, status in mutants:
        if state(mutant, status, reasons) == "open":
            yield f"{status}: {mutant.function}\n- {mutant.was}\n+ {mutant.becomes}"
    survivors = Counter(mutant for mutant, status in mutants if status in _ALIVE)
    yield from (f"on the list, and {survivors[one]} of these survive: {one}" for one in reasons if survivors[one] != 1)


def idle(mutants: Sequence[tuple[Mutant, str]], expected: Iterable[str]) -> Iterator[str]:
    """The modules in which nothing was killed: they were not changed, or no test ran to its end."""
    active = {mutant.module for mutant, status in mutants if status == "killed"}
    quiet = (module for module in expected if module not in active)
    yield from (f"{module}: no mutant was killed; it was not changed, or no test ran" for module in quiet)


def main() -> int:
    reasons, mutants = equivalents(), list(results())
    result = [*idle(mutants, modules()), *faults(mutants, reasons)] if mutants else [NO_RUN]
    states = ((mutant, state(mutant, status, reasons)) for mutant, status in mutants)
    print(*table(states), *result, sep="\n")  # noqa: T201 -- this is the command's output
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
