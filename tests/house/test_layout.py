"""The package is what its layout promises: folders, one top-level name, links, extras, imports, plain patterns."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.package_files import ROOMS, ROOT, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for path, name in sources()}


def checkout(folder: Path, *, links: bool) -> Path:
    """A copy of what a wheel is made from; without links, git writes each as a text file that holds its target."""
    ignore = shutil.ignore_patterns("__pycache__", *([] if links else ROOMS))
    shutil.copytree(ROOT / "eldgr_dspy", folder / "eldgr_dspy", symlinks=True, ignore=ignore)
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
        if not links:
            (folder / "eldgr_dspy" / room).write_text(f"../{room}", encoding="utf-8")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build_wheel(folder: Path) -> set[str]:
    script = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    command = [sys.executable, "-c", script, str(folder / "dist")]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_folder_with_an_init_is_listed_and_every_file_lies_in_one() -> None:
    """A package that is not listed works in the editable install and is missing from the wheel, without a warning."""
    on_disk = {name for path, name in sources() if path.name == "__init__.py"}
    assert on_disk == set(PROJECT["tool"]["setuptools"]["packages"])
    assert {name.rpartition(".")[0] for path, name in sources() if path.name != "__init__.py"} <= on_disk


@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
def test_the_wheel_is_complete_and_its_top_level_is_exactly_eldgr_dspy(tmp_path: Path, links: bool) -> None:
    names = build_wheel(checkout(tmp_path / "checkout", links=links))
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"eldgr_dspy"}
    modules = {str(path.relative_to(ROOT)) for path, _ in sources()}
    expected = {path if path.startswith("eldgr_dspy/") else f"eldgr_dspy/{path}" for path in modules}
    templates = {str(path.relative_to(ROOT)) for path in (ROOT / "eldgr_dspy" / "report").glob("*.jinja")}
    templates |= {f"eldgr_dspy/{path.relative_to(ROOT)}" for path in (ROOT / "training" / "recipes").rglob("*.yaml")}
    assert names - {name for name in names if ".dist-info/" in name} == expected | templates | {"eldgr_dspy/py.typed"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_imported_under_its_installed_name_and_a_link_points_to_it(room: str) -> None:
    module = importlib.import_module(f"eldgr_dspy.{room}")
    assert module.__name__ == f"eldgr_dspy.{room}" and module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / room / "__init__.py"
    link = ROOT / "eldgr_dspy" / room
    if not link.is_symlink():
        pytest.skip("this checkout has no symbolic links (core.symlinks=false); installs do not need them")
    assert link.readlink() == Path("..", room)


def test_nothing_inside_imports_a_second_identity_or_the_top_package() -> None:
    """`import programs` or a relative import finds the same files as another module; the top package loads all."""
    pairs = [(name, one) for name, tree in trees().items() for one in imports(tree)]
    assert [pair for pair in pairs if pair[1].split(".")[0] in {"", *ROOMS}] == []
    assert {name for name, one in pairs if one == "eldgr_dspy"} <= {"eldgr_dspy"}


def test_no_function_is_longer_than_eighty_lines_no_file_than_350_and_no_two_files_have_one_name() -> None:
    """The exceptions: the file of every rule with its driver, and `testing`, which is public on both floors."""
    long = [
        f"{name}: {one.name}"
        for name, tree in trees().items()
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and (one.end_lineno or 0) - one.lineno >= 80
    ]
    assert long == []
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for path, name in sources()}
    assert {name for name, n in lines.items() if n > 350} <= {"eldgr_dspy.decision"}
    assert lines["eldgr_dspy.decision"] <= 384
    names = Counter(path.name for path, _ in sources())
    assert {name for name, n in names.items() if n > 1} == {"__init__.py", "testing.py"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level or node.module is None else node.module


def test_every_module_says_in_one_line_what_it_is_for_and_the_core_dependencies_are_light() -> None:
    """Lists of modules are made of these lines: a sentence of at most 120 characters that ends with a full stop."""
    lines = {name: (ast.get_docstring(tree) or "").split("\n")[0] for name, tree in trees().items()}
    assert {name: line for name, line in lines.items() if not re.fullmatch(r"\S.{8,118}\.", line)} == {}
    core = "dspy pydantic typing-extensions numpy scipy click rich jinja2 filelock ollama anyio httpx rank-bm25"
    assert {re.split("[>=]=", one)[0] for one in PROJECT["project"]["dependencies"]} == {*core.split()}


def test_no_file_mentions_a_path_of_one_machine() -> None:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip("this is not a git checkout, so which files belong to it is not known")
    machine = tuple(f"/{folder}/" for folder in ("work", "root", "opt"))
    files = [ROOT / name for name in result.stdout.splitlines() if (ROOT / name).is_file()]
    assert [str(path) for path in files if any(one in path.read_text("utf-8", "replace") for one in machine)] == []


NEEDING = [("trl", "tests/hazards/test_recipe_hazards.py"), ("transformers", "tests/commands/test_inspect.py")]
NEEDING += [("torch", "tests/training/test_randomness.py")]


@pytest.mark.slow
@pytest.mark.parametrize(("absent", "tests"), NEEDING)
def test_tests_are_skipped_with_a_reason_where_what_they_need_is_not_installed(absent: str, tests: str) -> None:
    run = f"import sys, pytest; sys.modules[{absent!r}] = None; sys.exit(pytest.main([{tests!r}, '-q', '-rs']))"
    result = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), result.stdout
    assert f"{absent} is not installed; the extra `test` has it" in result.stdout


def test_helpers_are_imported_from_helper_modules() -> None:
    """A test module is read for its tests alone."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    pairs = [(path, name) for path, text in texts.items() for name in imports(ast.parse(text))]
    assert [pair for pair in pairs if re.match(r"tests\.(.*\.)?test_[^.]*$", pair[1])] == []


RUNNING = "import_module __import__ reload find_spec spec_from_file_location exec_module load_module".split()
RUNNING += "locate resolve_name run_module run_path safeimport load_object".split()
"""Functions that import what a text names, whichever module they are taken from."""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call of these in the package, and of a builtin that runs a text: its module, its name, and the call."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                is_plain = isinstance(node.func, ast.Name)
                name = getattr(node.func, "id" if is_plain else "attr", "")
                if name in RUNNING or (is_plain and name in ("eval", "exec", "compile")):
                    yield module, name, node


def is_of_the_source(argument: ast.expr) -> bool:
    """Whether a text is one that stands in the source: a constant, an item of one, or a module of ours."""
    if isinstance(argument, ast.JoinedStr):
        first: ast.expr = argument.values[0]
        of_here = isinstance(first, ast.FormattedValue) and ast.unparse(first.value) == "__name__"
        return of_here or ast.unparse(first).startswith("'eldgr_dspy.")
    if isinstance(argument, ast.Subscript):
        return isinstance(argument.value, ast.Name) and argument.value.id.isupper()
    return isinstance(argument, ast.Constant)


def test_one_function_imports_a_text_that_is_not_of_the_source_and_looks_names_up_where_a_caller_gives_them() -> None:
    """Nothing that reads a run, a freeze, a recording or a pool is among the modules that look a name up."""
    modules, others = set[str](), list[tuple[str, str]]()
    for module, name, call in calls():
        if name == "load_object":
            modules.add(module.removeprefix("eldgr_dspy."))
        elif not is_of_the_source(call.args[0]):
            others.append((module, name))
    assert others == [("eldgr_dspy.base.named_objects", "import_module")]
    assert (
        sorted(modules)
        == (
            "answer_types programs.judges.named programs.pools.devsets"
            " rule.own_certificates rule.refusals rule.rules training.recipe"
        ).split()
    )


# A repetition of a group, not of a parenthesis in a class of characters or behind a backslash.
POSSESSIVE = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9]*,?[0-9]*\})\+")


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11.2 does not give back what a failing last round took; an atomic group `(?>(?:X)*)` says the same."""
    files = [path for path, _ in sources()]
    assert len(files) > 250
    lines = ((file, line) for file in files for line in file.read_text(encoding="utf-8").splitlines())
    assert [pair for pair in lines if POSSESSIVE.search(re.sub(r"\[[^]]*\]", "[]", pair[1]))] == []


STANDING = """
import threading

def test_that_stands_still():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

def test_that_passes():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "message"),
    [("0", "in test_that_stands_still"), ("1", "crashed while running 'tests_that_stand.py::test_that_stands_still'")],
)
def test_a_test_that_stands_still_fails(tmp_path: Path, workers: str, message: str) -> None:
    (tmp_path / "tests_that_stand.py").write_text(STANDING)
    arguments = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", ".", "-o", "faulthandler_timeout=3", "-n", workers]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, "tests_that_stand.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert result.returncode == 1
    assert message in result.stdout + result.stderr
