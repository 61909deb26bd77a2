"""What a generated loop reads of elements in columns: whole columns as lists, and single items of the others."""

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
    """The position of a loop in its columns. It costs the loop nothing unless the loop asks for it."""

    def __init__(self, first: list[Any]) -> None:
        self.first = iter(first)
        """The iterator over the first list, which the loop must use."""
        self._length = len(first)
        self.times_asked = 0

    def now(self) -> int:
        """The index of the current element; -1 before the first one."""
        return self._length - 1 - length_hint(self.first)

    def __call__(self) -> int:
        self.times_asked += 1
        return self.now()


@dataclass(frozen=True)
class LoopColumns:
    """The columns that a loop needs: `key`, `timestamp`, and the items by their number, as in `item0`."""

    in_lists: tuple[str, ...]
    """Columns that become lists, over which the loop runs."""
    late: tuple[str, ...]
    """Columns that stay as they are. The loop reads single items of them, where it needs them."""

    def taken_from(self, columns: Columns) -> tuple[list[list[Any]], list[Any]]:
        arrays: dict[str, Any] = {f"item{at}": array for at, array in enumerate(columns.arrays)}
        arrays["key"] = columns.arrays[columns.key] if isinstance(columns.key, int) else columns.key
        arrays["timestamp"] = columns.timestamps
        lists: dict[int, list[Any]] = {}  # A column that is also the key is turned into a list once.
        for name in self.in_lists:
            if id(arrays[name]) not in lists:
                lists[id(arrays[name])] = arrays[name].tolist()
        return [lists[id(arrays[name])] for name in self.in_lists], [arrays[name] for name in self.late]

    def keys_among(self, lists: list[list[Any]]) -> list[Any]:
        """The keys, among the lists of `taken_from`; an empty list if the loop needs no keys."""
        return lists[self.in_lists.index("key")] if "key" in self.in_lists else []


@dataclass(frozen=True)
class InColumns:
    """Asks for a loop over tuples in columns."""

    items: int
    """How many items the tuples have."""
    are_late: bool
    """True if columns that are not needed for every element stay as they are; False if all become lists."""


def columns_for(body: list[ast.stmt], wanted: InColumns) -> LoopColumns:
    """The columns that the statements of a loop's body refer to."""

    def found_in(names: set[str]) -> list[str]:
        there = ["key", *(f"item{at}" for at in range(wanted.items)), "timestamp"]
        return [name for name in there if f"{OWN}{name}" in names]

    in_lists = found_in(names_for_every_element(body) if wanted.are_late else names_in(body)) or ["key"]
    return LoopColumns(tuple(in_lists), tuple(name for name in found_in(names_in(body)) if name not in in_lists))
