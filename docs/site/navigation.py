"""The order of the site's pages.

A page is named by its path without `.md`; a title before it replaces the page's own. What lies in a folder and is not
named here comes last in its section, so that a new page is never lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A heading of the sidebar, the pages below it, and the folders that it takes unnamed pages from."""

    title: str
    pages: tuple[str, ...]
    folders: tuple[str, ...] = ()


SECTIONS = (
    Section("Start here", ("getting-started", "examples")),
    Section(
        "Learn",
        (
            "concepts/index",
            "guides/index",
            "Tables and SQL <table/index>",
            "Tables: what runs <table/reference>",
            "migrating/pyflink",
            "migrating/structured-streaming",
            "Compatibility with PyFlink <compatibility>",
        ),
        ("migrating",),
    ),
    Section("Connect", ("Connectors <connectors/README>",)),
    Section(
        "Run",
        (
            "deployment",
            "Containers and Kubernetes <containers>",
            "operations",
            "dashboard",
            "Reliability <reliability>",
            "state",
            "checkpoints",
            "state_processor",
            "security",
        ),
    ),
    Section(
        "Look up",
        ("reference/configuration", "reference/command-line", "reference/rest", "metrics", "reference/api/index"),
        ("reference", "."),
    ),
    Section("How it works", ("Architecture <architecture>", "design/index", "benchmarks", "latency")),
    Section(
        "Project",
        (
            "Compatibility promise <compatibility_promise>",
            "project/changelog",
            "project/contributing",
            "Security policy <project/security-policy>",
        ),
        ("project",),
    ),
)

#: Pages that open a folder, with the order of those that follow.
CHILDREN = {
    "concepts/index": ("time", "windows", "state", "checkpoints", "epochs"),
    "guides/index": (
        "late-data", "deduplicate", "timers", "enrich", "join", "failing-elements", "testing", "debugging", "upgrade",
        "notebooks",
    ),
    "connectors/README": (
        "sources", "sinks", "formats", "kafka", "jdbc", "redis", "elasticsearch", "http", "spark", "wrapping",
    ),
    "design/index": (
        "epochs", "resident-workers", "slot-sharing", "batches-and-generated-loops", "element-copies",
        "checkpoints-by-epoch", "state-on-disk", "lowering", "start-up",
    ),
    "reference/api/index": (),
}  # fmt: skip


def toctrees(pages: Iterable[str]) -> dict[str, str]:
    """The tables of contents to add to pages, as Markdown by page; `pages` are all that there are."""
    left = sorted(set(pages) - {"index"})
    trees: dict[str, list[str]] = {}
    for parent, order in CHILDREN.items():
        folder = parent.rpartition("/")[0]
        named = [f"{folder}/{page}" for page in order]
        found = _take(left, [parent, *named], [folder])[1:]
        trees[parent] = [_toctree(None, [page.removeprefix(f"{folder}/") for page in found])]
    trees["index"] = []
    for section in SECTIONS:
        # What opens a folder was taken above, with the pages below it.
        opened = {page for page in section.pages if _path(page) in CHILDREN}
        shown = [page for page in section.pages if page in opened or _path(page) in left]
        left = [page for page in left if page not in map(_path, shown)]
        trees["index"].append(_toctree(section.title, [*shown, *_take(left, [], section.folders)]))
    return {page: "\n".join(blocks) for page, blocks in trees.items()}


def _take(left: list[str], named: list[str], folders: Iterable[str]) -> list[str]:
    """Those named that exist, then the others of the folders; all are removed from `left`."""
    taken = [page for page in named if page in left]
    taken += [page for page in left if page not in taken and (page.rpartition("/")[0] or ".") in folders]
    left[:] = [page for page in left if page not in taken]
    return taken


def _path(entry: str) -> str:
    return entry.partition("<")[2].rstrip(">") or entry


def _toctree(caption: str | None, entries: list[str]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])
