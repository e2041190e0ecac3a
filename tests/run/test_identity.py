"""The identity of code changes with what decides, and with nothing else."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dspy
import pytest

import eldgr_dspy.programs.judges.counting_judges
import eldgr_dspy.programs.judges.repeated_judges  # noqa: F401 - so that every class of a role exists
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.freezes import write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from eldgr_dspy.programs.run.identity import ASKING, DECIDING, package_identity, tree_identity
from tests.house.package_files import sources

ROOTS = (
    "decision certificates rule.rules rule.cases rule.certifying rule.own_certificates rule.refusals rule.derivations "
    "rule.replies text.reading text.thinking text.stripping text.folding text.numbers answer_types signatures "
    "programs.engines.strict"
).split()
"""What reads and decides: with each room in `ROOTS` all of its modules are meant."""


@cache
def modules() -> dict[str, Path]:
    """The file of each module, by its name below the package."""
    return {name.removeprefix("eldgr_dspy."): path for path, name in sources()}


def imported(module: str) -> Iterator[str]:
    """The modules of the package that one imports, wherever in its text."""
    for node in ast.walk(ast.parse(modules()[module].read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("eldgr_dspy."):
            name = node.module.removeprefix("eldgr_dspy.")
            yield name
            yield from {f"{name}.{one.name}" for one in node.names} & modules().keys()


def test_the_list_holds_everything_that_reading_and_deciding_import() -> None:
    """Add a module that is lacking to `DECIDING`: a change of it may then change a decision."""
    left = {name for name in modules() for root in ROOTS if f"{name}.".startswith(f"{root}.")}
    result = set[str]()
    while left:
        result |= left
        left = {one for name in left for one in imported(name)} - result
    assert sorted(DECIDING) == sorted(result)


def test_the_list_holds_every_module_with_a_role() -> None:
    def below(kind: type[object]) -> Iterator[type[object]]:
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    made = {kind.__module__.removeprefix("eldgr_dspy.") for kind in below(dspy.Module)} & modules().keys()
    roles = {name for name in made if not name.startswith(("programs.scoring.", "training."))}
    assert roles - {"programs.sampled", "programs.service.saved_state"} <= {*ASKING}
    assert {*ASKING} <= modules().keys()


def constants(tree: ast.Module) -> list[ast.Constant]:
    """The constants of a source, without its docstrings."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in texts]


@pytest.mark.parametrize("module", [*DECIDING, *ASKING])
def test_a_constant_or_an_operator_counts_and_a_comment_or_a_docstring_does_not(module: str) -> None:
    source = modules()[module].read_text(encoding="utf-8")
    tree = ast.parse(source)
    identity = tree_identity(tree)
    assert tree_identity(ast.parse(source.replace("\n", "\r\n") + "\n# One comment more.\n")) == identity
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not ...:
            node.value.value = "Other words."
    assert tree_identity(tree) == identity
    for operation in [node for node in ast.walk(tree) if isinstance(node, ast.BinOp)][:1]:
        kept, operation.op = operation.op, ast.MatMult()
        assert tree_identity(tree) != identity
        operation.op = kept
    for comparison in [node for node in ast.walk(tree) if isinstance(node, ast.Compare)][:1]:
        was, comparison.ops = comparison.ops, [ast.LtE(), *comparison.ops[1:]]
        assert (tree_identity(tree) != identity) == (not isinstance(was[0], ast.LtE))
        comparison.ops = was
    for constant in constants(tree)[-1:]:
        constant.value = "another"
        assert tree_identity(tree) != identity


def test_the_fields_that_later_versions_of_python_add_are_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.12 adds `type_params`, and whoever parses with `type_comments=True` has these."""
    source = "class A:\n    def f(self, x: int = 1) -> str:\n        return u'a'\n"
    identity = tree_identity(ast.parse(source))
    for kind in (ast.ClassDef, ast.FunctionDef):
        monkeypatch.setattr(kind, "_fields", (*kind._fields, "type_params", "of_the_future"))
        monkeypatch.setattr(kind, "type_params", [], raising=False)
        monkeypatch.setattr(kind, "of_the_future", None, raising=False)
    for text in (source, source.replace("u'a'", "'a'")):
        assert tree_identity(ast.parse(text)) == identity


def test_each_listed_file_is_read_once_a_process_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a service starts quickly, and a change in another file, such as the report, changes no identity."""
    read = list[Path]()
    read_bytes = Path.read_bytes

    def noting(path: Path) -> bytes:
        read.append(path.resolve())
        return read_bytes(path)

    package_identity.cache_clear()
    monkeypatch.setattr(Path, "read_bytes", noting)
    freeze = write_freeze(heuristic_selector(), ["eldgr"], tmp_path / "rule.freeze.json")
    for _ in range(3):
        frozen_selector(freeze.path)
    code = [path for path in read if path.suffix == ".py"]
    assert sorted(code) == sorted(modules()[name] for name in (*DECIDING, *ASKING))
