"""The documentation site has every page of `docs`, and the API of every module that the pages import."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
API = set(re.findall(r"- api/([\w.]+)\.md$", NAV, flags=re.MULTILINE))
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def test_every_page_of_docs_is_in_the_nav() -> None:
    names = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES}
    assert names == set(re.findall(r"- ((?:tutorials|how-to|reference)/[\w-]+\.md|\w+\.md)$", NAV, flags=re.MULTILINE))


def test_every_module_of_the_api_exists() -> None:
    assert {name for name in API if importlib.util.find_spec(name) is None} == set()


def test_every_module_that_a_page_imports_is_in_the_api() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *PAGES))
    assert set(re.findall(r"^\s*from (eldgr_dspy[\w.]*) import", text, flags=re.MULTILINE)) <= API
