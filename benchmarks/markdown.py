"""Tables of Markdown, and the part of a page that a program writes."""

from __future__ import annotations


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def filled(text: str, begin: str, end: str, content: str, name: str) -> str:
    """The text of a page with other content between two lines that mark it."""
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{name}: the results go between the lines {begin} and {end}, and one is missing; add it")
    return f"{before}{begin}\n{content}\n{end}{after}"
