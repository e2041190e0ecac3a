"""What the documentation site adds to the pages in this folder; `mkdocs.yml` names this file.

Pages link to each other as files of the repository, so that the links also work where the repository is read. The site
has the README as its home page and every linked file outside this folder at its own path. A page `api/MODULE.md` of the
nav is made from the docstrings of that module.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the README, the files outside of `docs` that pages link to, and the pages of the API."""
    ahead = ["README.md", *(f"docs/{page.src_uri}" for page in files.documentation_pages())]
    paths = set(ahead)
    while ahead:
        path = ahead.pop()
        if not path.startswith("docs/"):
            add(files, config, path)
        if path.endswith(".md"):
            fresh = set(links(path)) - paths
            paths |= fresh
            ahead += fresh
    for name in re.findall(r"'api/([\w.]+)\.md'", repr(config.nav)):
        page = f"---\ntitle: {name}\n---\n\n# `{name}`\n\n::: {name}\n"
        files.append(File.generated(config, f"api/{name}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point each link to where the site has the file."""
    source = page.file.src_uri
    here = "README.md" if source == "index.md" else source if (ROOT / source).exists() else f"docs/{source}"

    def at_the_site(link: re.Match[str]) -> str:
        target = posixpath.relpath(site_path(repository_path(here, link[1])), posixpath.dirname(source) or ".")
        return f"]({target}{link[2]})"

    prose = CODE.split(markdown)
    prose[::2] = [LINK.sub(at_the_site, part) for part in prose[::2]]
    return "".join(prose)


def add(files: Files, config: Any, path: str) -> None:
    """Add a file of the repository to the site."""
    files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))


def links(path: str) -> Iterator[str]:
    """Paths in the repository that a page links to."""
    for target, _ in LINK.findall(CODE.sub("", (ROOT / path).read_text(encoding="utf-8"))):
        yield repository_path(path, target)


def repository_path(page: str, target: str) -> str:
    """The path in the repository of a link's target."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def site_path(path: str) -> str:
    """The path on the site of a file of the repository."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")
