"""Changes of a table as the rows that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class MaterializedTable:
    """Rows in the order in which they were added; equal ones may be there several times."""

    def __init__(self) -> None:
        self._kept: dict[int, Sequence[Any]] = {}
        self._places: dict[str, list[int]] = {}
        self._count = 0

    def change(self, kind: int, row: Sequence[Any]) -> None:
        """`kind`: 0 and 2 add the row, 1 and 3 remove it."""
        place = repr(row)  # Rows may hold lists and maps, which have no hash.
        if kind in (0, 2):
            self._kept[self._count] = row
            self._places.setdefault(place, []).append(self._count)
            self._count += 1
        elif numbers := self._places.get(place):
            del self._kept[numbers.pop()]
            if not numbers:
                del self._places[place]

    def rows(self) -> list[Sequence[Any]]:
        return list(self._kept.values())


def final_rows(changes: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows that are left when all changes have come, in the order in which they were added.

    >>> list(final_rows([(0, ("a", 1)), (0, ("b", 1)), (1, ("a", 1)), (2, ("a", 2))]))
    [(0, ('b', 1)), (0, ('a', 2))]
    """
    table = MaterializedTable()
    for kind, row in changes:
        table.change(kind, row)
    for row in table.rows():
        yield 0, row
