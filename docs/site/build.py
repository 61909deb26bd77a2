"""Build the documentation site: the pages of `docs`, those made from the code, and some of the files beside them.

    python docs/site/build.py build/docs     # then open build/docs/html/index.html

It needs no network, and neither does the site. Every warning is an error: a link that leads nowhere, a page that no
table of contents has. What is generated is not kept in the repository, so it cannot become stale.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

import api_reference
import command_line_reference
import configuration_reference
import examples
import rest_reference
from navigation import toctrees

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Files beside `docs` that are pages of the site too.
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
}
#: Where the site has what a link in the repository names.
MOVED = {**OUTSIDE, "examples/README.md": "examples.md", "README.md": "index.md"}

_ELSEWHERE = r"""=?["']?(?:https?:)?//"""
#: What makes a browser fetch something from another host.
LOADS = re.compile(
    rf"<(?:script|img|iframe)[^>]* src{_ELSEWHERE}|<link[^>]* href{_ELSEWHERE}|@import|url\({_ELSEWHERE}"
)


def assemble(target: Path) -> None:
    """Put the sources of the site into a folder of their own."""
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("site"))
    pages = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in _markdown_files()}
    pages = {path: in_the_site(text, f"docs/{path}", path) for path, text in pages.items()}
    for name, path in OUTSIDE.items():
        pages[path] = in_the_site((ROOT / name).read_text(encoding="utf-8"), name, path)
    pages |= generated_pages()
    for page, toctree in toctrees(path.removesuffix(".md") for path in pages).items():
        pages[f"{page}.md"] += f"\n{toctree}"
    for path, text in pages.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")


def generated_pages() -> dict[str, str]:
    """The pages that are made from the code, by path."""
    return {
        "reference/configuration.md": configuration_reference.page(),
        "reference/command-line.md": command_line_reference.page(),
        "reference/rest.md": rest_reference.page(),
        "examples.md": examples.page(ROOT / "examples"),
        **api_reference.pages(),
    }


def _markdown_files() -> list[Path]:
    return [path for path in sorted(DOCS.rglob("*.md")) if DOCS / "site" not in path.parents]


def in_the_site(text: str, source: str, page: str) -> str:
    """A file's text as `page` of the site: links point at other pages, and code blocks have their language only."""
    text = re.sub(r"^(```python) [^\n`]+$", r"\1", text, flags=re.MULTILINE)

    def link(found: re.Match[str]) -> str:
        target = normpath(join(dirname(source), found[1]))
        inside = MOVED.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if inside is None:
            raise SystemExit(f"{source} links to {target}, which is not in the site; add it to MOVED in {__file__}")
        return f"]({relpath(inside, dirname(page) or '.')}{found[2]})"

    return re.sub(r"\]\((?!\w+:)([^)#\s]+\.(?:md|png|svg|py))((?:#[^)]*)?)\)", link, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path, help="the folder to build in; emptied first")
    target: Path = parser.parse_args().target
    shutil.rmtree(target, ignore_errors=True)
    assemble(target / "source")
    from sphinx.cmd.build import main as sphinx

    flags = ["-b", "html", "-W", "--keep-going", "-q", "-c", str(DOCS / "site")]
    failed = sphinx([*flags, "-d", str(target / "doctrees"), str(target / "source"), str(target / "html")])
    return failed or report_outside(target / "html")


def report_outside(site: Path) -> int:
    """1 if a page loads anything from elsewhere: the site must be readable without network."""
    found = [path for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css") and LOADS.search(_text(path))]
    for path in found:
        print(f"{path} loads something from another host", file=sys.stderr)
    return 1 if found else 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
