"""The entries of a keyed state that lies in several files: a base, and what changed since."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.runtime.state.contents import Contents, WholeMap, has_partial_maps
from penstock.runtime.state.state_file import Block, StateFileReader
from penstock.runtime.state.table import REMOVED

Entry = tuple[Hashable, Any, Any]
"""Namespace, key and value."""

ENTRIES_OF_PART = 10_000
"""A map with more entries than this is left in parts."""


@dataclass(frozen=True)
class FileOfState:
    """The blocks of one keyed state in one file."""

    reader: StateFileReader
    operator_id: str
    name: str

    def blocks(self) -> list[Block]:
        name = self.operator_id, "keyed", self.name
        return [block for block in self.reader.blocks if (block.operator_id, block.kind, block.name) == name]

    def contents(self, newest_first: bool = False) -> Iterator[Contents]:
        blocks = self.blocks()
        return map(self.reader.value, reversed(blocks) if newest_first else blocks)


class KeyedEntries:
    """What the files amount to: each entry once, with its newest value, and none that was removed.

    Read from the newest file to the base, so that only what changed since the base is in memory. Large maps may be
    given in parts, which add up.
    """

    def __init__(self, files: Sequence[FileOfState]) -> None:
        self._files = files
        blocks = [block for file in files for block in file.blocks()]
        self.has_times = blocks[-1].has_times if blocks else None
        """True if the values carry times, according to the newest file; None if that is not known."""
        self.has_parts = False
        """True if values are parts of maps; known when all entries have been given."""
        self._settled: set[tuple[Hashable, Any]] = set()
        """Entries to which older files have nothing to add."""
        self._parts: dict[tuple[Hashable, Any], dict[Any, Any]] = {}
        """What newer files say about maps; `REMOVED` for entries that are gone."""

    def __iter__(self) -> Iterator[Entry]:
        """The entries; parts of one map that follow each other are put together."""
        last: Entry | None = None
        for entry in self._entries():
            if last is not None and last[:2] == entry[:2] and len(last[2]) < ENTRIES_OF_PART:
                last[2].update(entry[2])
                continue
            if last is not None:
                yield last
            last = entry
        if last is not None:
            yield last

    def _entries(self) -> Iterator[Entry]:
        for file in reversed(self._files[1:]):
            for contents in file.contents(newest_first=True):
                yield from self._changes(contents)
        for file in self._files[:1]:
            for contents in file.contents():
                yield from self._base(contents)
        for (namespace, key), part in self._parts.items():
            if live := _live(part):
                yield namespace, key, live

    def _changes(self, contents: Contents) -> Iterator[Entry]:
        """The entries that this newer file settles."""
        for namespace, key, value, is_part in self._flat(contents):
            if is_part and value is not REMOVED and type(value) is not WholeMap:
                # Of a map that changed entry by entry, the newest word on each counts.
                newer = self._parts.setdefault((namespace, key), {})
                self._parts[namespace, key] = {**value, **newer}
                continue
            self._settled.add((namespace, key))
            value = self._with_newer_parts(namespace, key, value)
            if value is not REMOVED:
                yield namespace, key, value

    def _with_newer_parts(self, namespace: Hashable, key: Any, value: Any) -> Any:
        newer = self._parts.pop((namespace, key), None)
        if newer is None:
            return value
        return _live({**({} if value is REMOVED else value), **newer}) or REMOVED

    def _base(self, contents: Contents) -> Iterator[Entry]:
        for namespace, key, value, _ in self._flat(contents):
            newer = self._parts.get((namespace, key))
            if newer is not None:
                older = {map_key: held for map_key, held in value.items() if map_key not in newer}
                value = {**older, **_live(newer)}
                # The base may have more of this map, and its older entries still do not count.
                self._parts[namespace, key] = dict.fromkeys(newer, REMOVED)
            if newer is None or value:
                yield namespace, key, value

    def _flat(self, contents: Contents) -> Iterator[tuple[Hashable, Any, Any, bool]]:
        is_partial = has_partial_maps(contents)
        self.has_parts = self.has_parts or is_partial
        for namespace, keys in contents.items():
            for key, value in keys.items():
                if (namespace, key) not in self._settled:
                    yield namespace, key, value, is_partial


def _live(part: dict[Any, Any]) -> dict[Any, Any]:
    return {map_key: value for map_key, value in part.items() if value is not REMOVED}
