"""The memory that the states of a slot share, if state is on disk."""

from __future__ import annotations

import itertools
import re
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

_UNITS = {"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "kibibytes": 10, "m": 20, "mb": 20, "mebibytes": 20}
_UNITS |= {"g": 30, "gb": 30, "gibibytes": 30, "t": 40, "tb": 40, "tebibytes": 40}
_DICTIONARY_BYTES = 200
"""The bytes that an entry takes in the dictionary of entries and the dictionary of changes."""
_SAMPLED_PARTS = 20
_MAX_DEPTH = 4


class SlotMemory:
    """The memory of a slot. Every state gets the same share."""

    def __init__(self, total_bytes: int) -> None:
        self._bytes = total_bytes
        self._shares: weakref.WeakSet[MemoryShare] = weakref.WeakSet()

    def new_share(self) -> MemoryShare:
        """The share of one more state. When it is garbage collected, the shares of the others grow."""
        share = MemoryShare(self)
        self._shares.add(share)
        return share

    def bytes_of_each(self) -> int:
        return self._bytes // max(len(self._shares), 1)


class MemoryShare:
    def __init__(self, slot: SlotMemory) -> None:
        self._slot = slot

    def bytes(self) -> int:
        """The current size, which shrinks when more states ask for memory."""
        return self._slot.bytes_of_each()


_slots: weakref.WeakValueDictionary[tuple[str, str, int], SlotMemory] = weakref.WeakValueDictionary()


def memory_of(run_id: str, slot: str, total_bytes: int) -> SlotMemory:
    """The memory of a slot in this process. Operators of the same run and slot share it."""
    return _slots.setdefault((run_id, slot, total_bytes), SlotMemory(total_bytes))


def bytes_of_entries(entries: Iterable[tuple[Any, Any]]) -> int:
    """Roughly how many bytes an entry takes in memory, on average over `entries`."""
    sizes = [_size(key, _MAX_DEPTH) + _size(value, _MAX_DEPTH) for key, value in entries]
    return _DICTIONARY_BYTES + sum(sizes) // max(len(sizes), 1)


def _size(value: Any, depth: int) -> int:
    """Roughly the size of an object. For long collections, it is extrapolated from a few elements."""
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
    sizes = [_size(part, depth - 1) for part in itertools.islice(parts, _SAMPLED_PARTS)]
    return sum(sizes) * number // max(len(sizes), 1)


def parse_memory_size(text: str) -> int | None:
    """The bytes of a memory size in Flink's notation: `1gb`, `512 mb`, `1048576`. None if the text is not a size."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    return None if found is None or found[2] not in _UNITS else int(found[1]) << _UNITS[found[2]]
