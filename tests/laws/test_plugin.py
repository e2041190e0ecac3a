"""The pytest plugin brings a profile and nothing else: no slow start, no warning, no quarrel with a project's own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = "from hypothesis import settings\n"
OWN = f"{CONFTEST}settings.register_profile('patience', max_examples=7)\n"
SHOWS = """
from hypothesis import settings

def test_profile():
    assert settings.default.max_examples == {examples}
"""
LOADS = """
import sys

def test_loaded():
    assert not {"dspy", "numpy", "torch", "pydantic", "hypothesis"} & set(sys.modules)
    assert "eldgr_dspy.plugin" in sys.modules
"""
ABSENT = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
"""


def run_pytest(folder: Path, *options: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """Pytest in a project of its own, with warnings as errors."""
    start = f"{script}\nimport sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-W", "error", "-c", start, "-q", "-W", "error", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def project(folder: Path, test: str, conftest: str = "") -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    return folder


@pytest.mark.parametrize("conftest", ["", CONFTEST])
def test_the_profile_patience_is_there_for_the_asking(tmp_path: Path, conftest: str) -> None:
    done = run_pytest(project(tmp_path, SHOWS.format(examples=5_000), conftest), "--hypothesis-profile=patience")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_project_s_own_profile_of_that_name_stays(tmp_path: Path) -> None:
    done = run_pytest(project(tmp_path, SHOWS.format(examples=7), OWN), "--hypothesis-profile=patience")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_plugin_loads_nothing_that_takes_time(tmp_path: Path) -> None:
    done = run_pytest(project(tmp_path, LOADS), "-p", "no:hypothesispytest", "-p", "no:anyio")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_hypothesis_the_plugin_does_nothing(tmp_path: Path) -> None:
    test = "def test_nothing():\n    pass\n"
    done = run_pytest(project(tmp_path, test), "-p", "no:hypothesispytest", "-p", "no:anyio", script=ABSENT)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(folder: Path) -> Path:
    """A folder in which the package lies as an installed one, with the list of its files."""
    (folder / "eldgr_dspy").symlink_to(ROOT / "eldgr_dspy")
    info = folder / "eldgr_dspy-0.1.0.dist-info"
    info.mkdir()
    files = "".join(f"eldgr_dspy/{path.name},,\n" for path in (ROOT / "eldgr_dspy").glob("*.py"))
    for name, text in {
        "METADATA": "Metadata-Version: 2.1\nName: eldgr_dspy\nVersion: 0.1.0\n",
        "entry_points.txt": "[pytest11]\neldgr_dspy = eldgr_dspy.plugin\n",
        "RECORD": files,
    }.items():
        (info / name).write_text(text, encoding="utf-8")
    return folder


def test_the_package_may_have_been_imported_before_pytest(tmp_path: Path) -> None:
    """Pytest rewrites the assertions of what a plugin comes with, and warns where it is too late for that."""
    (site := tmp_path / "site").mkdir()
    (folder := tmp_path / "project").mkdir()
    early = f"import sys; sys.path.insert(0, {str(installed(site))!r}); import eldgr_dspy.plugin, eldgr_dspy.laws"
    done = run_pytest(project(folder, "def test_nothing():\n    pass\n"), script=early)
    assert done.returncode == 0, done.stdout + done.stderr
