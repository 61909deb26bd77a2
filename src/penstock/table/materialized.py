"""Changes of a table as its final rows, for batch mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def final_rows(changes: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows that are left when all changes have come, in the order in which they were added.

    >>> list(final_rows([(0, ("a", 1)), (0, ("b", 1)), (1, ("a", 1)), (2, ("a", 2))]))
    [(0, ('b', 1)), (0, ('a', 2))]
    """
    kept: dict[int, Sequence[Any]] = {}
    places: dict[Any, list[int]] = {}
    for number, (kind, row) in enumerate(changes):
        place = repr(row)  # Rows may hold lists and maps, which have no hash.
        if kind in (0, 2):
            kept[number] = row
            places.setdefault(place, []).append(number)
        elif places.get(place):
            del kept[places[place].pop()]
    for row in kept.values():
        yield 0, row
