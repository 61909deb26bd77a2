"""What a generated loop takes from elements in columns: lists to go over, and single items where it seldom looks."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any

from penstock.runtime.loop_placement import names_for_every_element
from penstock.runtime.loop_syntax import OWN, names_in

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns


class Position:
    """Where a loop is in its columns."""

    def __init__(self, first: list[Any]) -> None:
        self.first = iter(first)
        self._length = len(first)
        self.times_asked = 0

    def now(self) -> int:
        return self._length - 1 - length_hint(self.first)

    def __call__(self) -> int:
        self.times_asked += 1
        return self.now()


@dataclass(frozen=True)
class LoopColumns:
    """What a loop over columns needs of them: `key`, `timestamp`, and the items by their number, as in `item0`."""

    in_lists: tuple[str, ...]
    late: tuple[str, ...]
    """Those that are looked into for single items."""

    def taken_from(self, columns: Columns) -> tuple[list[list[Any]], list[Any]]:
        arrays: dict[str, Any] = {f"item{at}": array for at, array in enumerate(columns.arrays)}
        arrays["key"] = columns.arrays[columns.key] if isinstance(columns.key, int) else columns.key
        arrays["timestamp"] = columns.timestamps
        made: dict[int, list[Any]] = {}  # A column that is also the key is turned into a list once.
        for name in self.in_lists:
            if id(arrays[name]) not in made:
                made[id(arrays[name])] = arrays[name].tolist()
        return [made[id(arrays[name])] for name in self.in_lists], [arrays[name] for name in self.late]

    def keys_among(self, lists: list[list[Any]]) -> list[Any]:
        """The keys, of what was taken; none if the loop has no use for them."""
        return lists[self.in_lists.index("key")] if "key" in self.in_lists else []


@dataclass(frozen=True)
class InColumns:
    """That a loop is wanted for elements in columns."""

    items: int
    """How many items the tuples have."""
    are_late: bool
    """True if columns that are not needed for every element are looked into where they are."""


def columns_for(body: list[ast.stmt], wanted: InColumns) -> LoopColumns:
    """What of the columns the statements of a loop's body refer to."""

    def found_in(names: set[str]) -> list[str]:
        there = ["key", *(f"item{at}" for at in range(wanted.items)), "timestamp"]
        return [name for name in there if f"{OWN}{name}" in names]

    in_lists = found_in(names_for_every_element(body) if wanted.are_late else names_in(body)) or ["key"]
    return LoopColumns(tuple(in_lists), tuple(name for name in found_in(names_in(body)) if name not in in_lists))
