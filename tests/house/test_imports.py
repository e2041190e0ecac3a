"""One function imports what a caller names. Nothing else imports a text, except names that stand in our own source."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.package_files import sources

RUNNING = frozenset(
    """
    import_module __import__ reload find_spec spec_from_file_location exec_module load_module
    locate resolve_name run_module run_path safeimport
    """.split()
)
"""Functions that import what a text names, whichever module they are taken from."""
EVALUATING = frozenset({"eval", "exec", "compile"})
"""Builtins that run a text."""


@cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """Every call in the package: its module, the name of what is called, and the call."""
    return [(module, *call) for path, module in sources() for call in _calls(path)]


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in RUNNING or name == "object_named" or (isinstance(called, ast.Name) and name in EVALUATING):
                yield name, node


def is_of_the_source(argument: ast.expr) -> bool:
    """Return whether a text is one that stands in the source: a constant, an item of one, or a module of ours."""
    if isinstance(argument, ast.JoinedStr):
        first: ast.expr = argument.values[0]
        of_here = isinstance(first, ast.FormattedValue) and ast.unparse(first.value) == "__name__"
        return of_here or ast.unparse(first).startswith("'eldgr_dspy.")
    if isinstance(argument, ast.Subscript):
        return isinstance(argument.value, ast.Name) and argument.value.id.isupper()
    return isinstance(argument, ast.Constant)


def test_one_function_imports_a_text_that_is_not_of_the_source() -> None:
    others = [
        (module, name)
        for module, name, call in calls()
        if name != "object_named" and not is_of_the_source(call.args[0])
    ]
    assert others == [("eldgr_dspy.base.named_objects", "import_module")]


def test_a_name_is_looked_up_only_where_a_caller_gives_it() -> None:
    """Nothing that reads a run, a freeze, a recording or a pool is among these modules."""
    assert {module for module, name, _ in calls() if name == "object_named"} == {
        "eldgr_dspy.answer_types",
        "eldgr_dspy.rule.own_certificates",
        "eldgr_dspy.rule.refusals",
        "eldgr_dspy.rule.rules",
        "eldgr_dspy.programs.judges.named",
        "eldgr_dspy.programs.pools.devsets",
        "eldgr_dspy.training.recipe",
    }
