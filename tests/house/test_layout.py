"""The package is what its layout promises: folders listed, one top-level name, links in place, extras as named."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.package_files import ROOMS, ROOT, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

EXTRAS = {
    "nli": {"torch", "transformers", "sentence-transformers"},
    "local": {"xllamacpp"},
    "train": {"trl", "peft", "datasets", "accelerate"},
    "parquet": {"pyarrow"},
    "mlflow": {"mlflow"},
    "telemetry": {"opentelemetry-api"},
    "ray": {"ray"},
    "math": {"math-verify[antlr4_13_2]"},
    "testing": {"hypothesis"},
    "all": {"eldgr_dspy[local,nli,train,parquet,mlflow,telemetry,ray,math,testing]"},
    "test": {
        "pytest",
        "hypothesis",
        "pytest-xdist",
        "pyarrow",
        "gguf",
        "setuptools",
        "z3-solver",
        "statsmodels",
        "torch",
        "transformers[serving]",
        "sentence-transformers",
        "xllamacpp",
        "math-verify[antlr4_13_2]",
        "trl",
        "peft",
        "datasets",
        "accelerate",
        "ray",
        "opentelemetry-sdk",
    },
    "dev": {
        "ruff",
        "mypy",
        "pyright[nodejs]",
        "import-linter",
        "mutmut",
        "build",
        "check-wheel-contents",
        "pre-commit",
    },
    "docs": {"mkdocs-material", "mkdocstrings[python]", "ruff"},
}


def bare(requirement: str) -> str:
    """The name of a requirement, extras kept, version left out."""
    return requirement.split(">=")[0].split("==")[0]


def checkout(folder: Path, *, links: bool) -> Path:
    """A copy of what a wheel is made from; without links, git writes each as a text file that holds its target."""
    ignored = shutil.ignore_patterns("__pycache__", *([] if links else ROOMS))
    shutil.copytree(ROOT / "eldgr_dspy", folder / "eldgr_dspy", symlinks=True, ignore=ignored)
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
        if not links:
            (folder / "eldgr_dspy" / room).write_text(f"../{room}", encoding="utf-8")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build_wheel(folder: Path) -> set[str]:
    """The names inside the wheel that this interpreter's setuptools builds in `folder`."""
    script = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    command = [sys.executable, "-c", script, str(folder / "dist")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_folder_with_an_init_is_listed() -> None:
    """A package that is not listed works in the editable install and is missing from the wheel, without a warning."""
    on_disk = {name for path, name in sources() if path.name == "__init__.py"}
    assert on_disk == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_python_file_lies_in_a_listed_package() -> None:
    holders = {name.rpartition(".")[0] for path, name in sources() if path.name != "__init__.py"}
    assert holders <= set(PROJECT["tool"]["setuptools"]["packages"])


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
def test_a_link_points_to_the_room_beside_the_package(room: str) -> None:
    link = ROOT / "eldgr_dspy" / room
    if not link.is_symlink():
        pytest.skip("this checkout has no symbolic links (core.symlinks=false); installs do not need them")
    assert link.readlink() == Path("..", room)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_imported_under_its_installed_name(room: str) -> None:
    module = importlib.import_module(f"eldgr_dspy.{room}")
    assert module.__name__ == f"eldgr_dspy.{room}"
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / room / "__init__.py"


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for path, name in sources()])
def test_nothing_inside_imports_a_second_identity(path: Path) -> None:
    """From the root, `import programs` finds the same files as another module; a relative import may do so too."""
    assert [module for module in imported_by(path) if module.split(".")[0] in {"", *ROOMS}] == []


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for path, name in sources() if name != "eldgr_dspy"])
def test_nothing_inside_imports_the_top_package(path: Path) -> None:
    """`from eldgr_dspy import X` would run the whole face of the package from below."""
    assert "eldgr_dspy" not in imported_by(path)


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for path, name in sources()])
def test_no_function_is_longer_than_eighty_lines(path: Path) -> None:
    """Decorators aside, docstring included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [one.name for one in functions if (one.end_lineno or 0) - one.lineno >= 80] == []


def imported_by(path: Path) -> list[str]:
    """The modules that a file names in its import statements, wherever they stand; '' for a relative one."""
    return list(imports(ast.parse(path.read_text(encoding="utf-8"))))


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules named in the import statements of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level or node.module is None else node.module


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for path, name in sources()])
def test_every_module_says_in_one_line_what_it_is_for(path: Path) -> None:
    """Lists of modules are made of these lines: a sentence of at most 120 characters that ends with a full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert re.fullmatch(r"\S.{8,118}\.", docstring.split("\n")[0]), docstring


def test_each_extra_names_its_packages() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {extra: {bare(one) for one in requirements} for extra, requirements in extras.items()} == EXTRAS


def test_the_core_dependencies_are_light() -> None:
    core = {bare(one) for one in PROJECT["project"]["dependencies"]}
    assert core == {
        "dspy",
        "pydantic",
        "typing-extensions",
        "numpy",
        "scipy",
        "click",
        "rich",
        "jinja2",
        "filelock",
        "ollama",
        "httpx",
        "rank-bm25",
    }


def test_no_file_mentions_a_path_of_one_machine() -> None:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("this is not a git checkout, so which files belong to it is not known")
    machine = tuple(f"/{folder}/" for folder in ("work", "root", "opt"))
    files = [ROOT / name for name in found.stdout.splitlines() if (ROOT / name).is_file()]
    assert [str(path) for path in files if any(one in path.read_text("utf-8", "replace") for one in machine)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("absent", "tests"),
    [
        ("trl", "tests/hazards/test_recipe_hazards.py"),
        ("transformers", "tests/commands/test_inspect.py"),
        ("torch", "tests/training/test_randomness.py"),
    ],
)
def test_tests_are_skipped_with_a_reason_where_what_they_need_is_not_installed(absent: str, tests: str) -> None:
    run = f"import sys, pytest; sys.modules[{absent!r}] = None; sys.exit(pytest.main([{tests!r}, '-q', '-rs']))"
    done = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
    assert f"{absent} is not installed; the extra `test` has it" in done.stdout


def test_no_source_file_is_longer_than_350_lines() -> None:
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path, _ in sources()}
    assert {name: n for name, n in lines.items() if n > 350} == {}


def test_helpers_are_imported_from_helper_modules() -> None:
    """A test module is read for its tests alone."""
    imported = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "tests").rglob("*.py")
        for name in imported_by(path)
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    }
    assert imported == set()
