"""The memory that all states of a slot share, for state that is kept on disk."""

from __future__ import annotations

import itertools
import re
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

_UNITS = {"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "kibibytes": 10, "m": 20, "mb": 20, "mebibytes": 20}
_UNITS |= {"g": 30, "gb": 30, "gibibytes": 30, "t": 40, "tb": 40, "tebibytes": 40}
_IN_DICTIONARIES = 200
"""What an entry takes in the dictionary of entries and in that of changes."""
_SOME = 20
_DEPTH = 4


class SlotMemory:
    """Every state has the same share."""

    def __init__(self, bytes_in_all: int) -> None:
        self._bytes = bytes_in_all
        self._shares: weakref.WeakSet[MemoryShare] = weakref.WeakSet()

    def new_share(self) -> MemoryShare:
        """For one more state; it is given back when nobody holds it any longer."""
        share = MemoryShare(self)
        self._shares.add(share)
        return share

    def bytes_of_each(self) -> int:
        return self._bytes // max(len(self._shares), 1)


class MemoryShare:
    def __init__(self, slot: SlotMemory) -> None:
        self._slot = slot

    def bytes(self) -> int:
        """It is less when more states ask for memory."""
        return self._slot.bytes_of_each()


_slots: weakref.WeakValueDictionary[tuple[str, str, int], SlotMemory] = weakref.WeakValueDictionary()


def memory_of(run_id: str, slot: str, bytes_in_all: int) -> SlotMemory:
    """The memory of a slot of a job in this process."""
    return _slots.setdefault((run_id, slot, bytes_in_all), SlotMemory(bytes_in_all))


def bytes_of_entries(entries: Iterable[tuple[Any, Any]]) -> int:
    """About what each of some entries takes in memory, on average."""
    sizes = [_size(key, _DEPTH) + _size(value, _DEPTH) for key, value in entries]
    return _IN_DICTIONARIES + sum(sizes) // max(len(sizes), 1)


def _size(value: Any, depth: int) -> int:
    """About; of what is long, some of its parts stand for all."""
    size = sys.getsizeof(value, 64)
    if depth == 0 or isinstance(value, (int, float, str, bytes, bytearray)):
        return size
    if isinstance(value, Mapping):
        return size + _parts_size(itertools.chain.from_iterable(value.items()), 2 * len(value), depth)
    if isinstance(value, (tuple, list, set, frozenset)):
        return size + _parts_size(value, len(value), depth)
    fields = getattr(value, "__dict__", None)
    return size + (_size(fields, depth) if fields else 0)


def _parts_size(parts: Iterable[Any], number: int, depth: int) -> int:
    sizes = [_size(part, depth - 1) for part in itertools.islice(parts, _SOME)]
    return sum(sizes) * number // max(len(sizes), 1)


def parse_memory_size(text: str) -> int | None:
    """Bytes, of a size as Flink writes them: `1gb`, `512 mb`, `1048576`. None if it is none."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    return None if found is None or found[2] not in _UNITS else int(found[1]) << _UNITS[found[2]]
