"""Batch mode: the whole input of a keyed task, sorted by key, so that the state of few keys is held at a time."""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import IO, Any, Final, NamedTuple

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.graph.descriptions import (
    KeySelectorFunction,
    OperatorDescription,
    ReduceDescription,
    WindowDescription,
)
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import encode
from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.operators.keyed import keys_of

SPILL_BYTES = 64 << 20
"""A sorted run goes to disk when the chunks with its elements have this size together."""
BATCH_RECORDS = 4096

_Entry = tuple[int, int, int, int, Any, Any, "int | None"]
"""Order of the key, time, number of arrival, input, key, value, timestamp. The first three decide the order: no two
entries have the same three, so that the others are never compared."""

_ORDER: Final = 0
_INPUT: Final = 3
_KEY: Final = 4
_VALUE: Final = 5
_TIMESTAMP: Final = 6


class KeyPart(NamedTuple):
    """Elements of one key and one input: all of them, or some."""

    key: Any
    input_index: int
    batch: Batch
    is_last: bool
    """True if nothing follows for this key."""


class SortedInput:
    """An external merge sort of the elements of all inputs by key, then timestamp, then arrival.

    Keys are ordered by a hash that does not depend on the process, then by Python's own. Different keys for which both
    hashes are the same share a place in this order, and are separated there.
    """

    def __init__(self, selectors: Sequence[KeySelectorFunction | None], spill_bytes: int = SPILL_BYTES) -> None:
        self._selectors = selectors
        self._spill_bytes = spill_bytes
        self._entries: list[_Entry] = []
        self._bytes = 0
        self._arrived = 0
        self._spilled: list[IO[bytes]] = []

    def has_keys(self, input_index: int) -> bool:
        return input_index < len(self._selectors) and self._selectors[input_index] is not None

    def add(self, batch: Batch, input_index: int) -> None:
        selector = self._selectors[input_index]
        assert selector is not None
        timestamps: Iterable[int | None] = batch.timestamps or [None] * len(batch.values)
        for key, value, timestamp in zip(keys_of(batch, selector), batch.values, timestamps, strict=True):
            time = MIN_LONG_VALUE if timestamp is None else timestamp
            self._entries.append((_order(key), time, self._arrived, input_index, key, value, timestamp))
            self._arrived += 1

    def grew_by(self, size: int) -> None:
        """Note the size of the chunk whose elements were added last."""
        self._bytes += size
        if self._bytes >= self._spill_bytes and self._entries:
            self._spill()

    def _spill(self) -> None:
        self._entries.sort()
        # The file has no name: it is gone when it is closed, even if the process is killed.
        file = tempfile.TemporaryFile(prefix="penstock-sort-")  # noqa: SIM115
        for start in range(0, len(self._entries), BATCH_RECORDS):
            file.write(encode(self._entries[start : start + BATCH_RECORDS]))
        file.seek(0)
        self._spilled.append(file)
        self._entries, self._bytes = [], 0

    def parts(self) -> Iterator[KeyPart]:
        """All elements, key by key; the input is empty afterwards."""
        self._entries.sort()
        runs = [*(_read_run(file) for file in self._spilled), self._entries]
        try:
            for _, same_place in groupby(heapq.merge(*runs), itemgetter(_ORDER)):
                yield from _parts_of_place(same_place)
        finally:
            self.close()

    def close(self) -> None:
        for file in self._spilled:
            file.close()
        self._entries, self._spilled = [], []


def key_selectors_of(operator: OperatorDescription) -> tuple[KeySelectorFunction | None, ...]:
    """The key selector of each input of a keyed operator; None for an input without keys."""
    selectors: tuple[KeySelectorFunction | None, ...] | None = getattr(operator, "key_selectors", None)
    return selectors if selectors is not None else (operator.key_selector,)  # type: ignore[attr-defined]


def takes_keys_one_by_one(operator: OperatorDescription) -> bool:
    """True unless the operator is known to treat keys independently, and so may get several at once."""
    return not isinstance(operator, ReduceDescription | WindowDescription)


def several_keys_at_once(parts: Iterable[KeyPart]) -> Iterator[KeyPart]:
    """Join the parts of small keys: each part costs more than the few elements that most keys have.

    Only for a single input. The `key` of a joined part is the last one in it.
    """
    waiting: list[KeyPart] = []
    size = 0
    is_within_key = False
    for part in parts:
        is_whole_key, is_within_key = part.is_last and not is_within_key, not part.is_last
        if waiting and (not is_whole_key or size + len(part.batch.values) > BATCH_RECORDS):
            yield _joined(waiting)
            waiting, size = [], 0
        if is_whole_key:
            waiting.append(part)
            size += len(part.batch.values)
        else:
            yield part
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[KeyPart]) -> KeyPart:
    batches = [part.batch for part in parts]
    timestamps: list[int | None] | None = None
    if any(batch.timestamps is not None for batch in batches):
        timestamps = [time for batch in batches for time in batch.timestamps or [None] * len(batch.values)]
    values = [value for batch in batches for value in batch.values]
    keys = [key for batch in batches for key in batch.keys or ()]
    return KeyPart(parts[-1].key, parts[-1].input_index, Batch(values, timestamps, keys), is_last=True)


def end_key(operator: StreamOperator) -> None:
    """After a key's last element: fire all its timers, as at the end of all input, and drop its state."""
    services = operator.context.timer_services.values()
    for service in services:
        service.advance_watermark(MAX_LONG_VALUE)
        service.advance_processing_time(MAX_LONG_VALUE)
    for table in operator.context.keyed_state.tables.values():
        table.clear()
    for service in services:
        service.current_watermark = MIN_LONG_VALUE
        service.restore()


def _order(key: Any) -> int:
    return stable_hash(key) << 64 | (hash(key) & 0xFFFFFFFFFFFFFFFF)


def _read_run(file: IO[bytes]) -> Iterator[_Entry]:
    while True:
        try:
            yield from pickle.load(file)
        except EOFError:
            return


def _parts_of_place(entries: Iterator[_Entry]) -> Iterator[KeyPart]:
    """The parts of the first key at this place as they come. Elements of other keys with the same hashes wait."""
    first = next(entries)
    key = first[_KEY]
    others: dict[Any, list[_Entry]] = {}

    def of_first() -> Iterator[_Entry]:
        yield first
        for entry in entries:
            if entry[_KEY] is key or entry[_KEY] == key:  # As a dictionary compares: pd.NaT is a key.
                yield entry
            else:
                others.setdefault(entry[_KEY], []).append(entry)

    yield from _parts_of_key(key, of_first())
    for other, waiting in others.items():
        yield from _parts_of_key(other, iter(waiting))


def _parts_of_key(key: Any, entries: Iterator[_Entry]) -> Iterator[KeyPart]:
    gathered: list[_Entry] = []
    for entry in entries:
        if gathered and (entry[_INPUT] != gathered[0][_INPUT] or len(gathered) == BATCH_RECORDS):
            yield _part(key, gathered, is_last=False)
            gathered = []
        gathered.append(entry)
    yield _part(key, gathered, is_last=True)


def _part(key: Any, entries: list[_Entry], is_last: bool) -> KeyPart:
    timestamps = [entry[_TIMESTAMP] for entry in entries]
    has_timestamps = any(timestamp is not None for timestamp in timestamps)
    batch = Batch([entry[_VALUE] for entry in entries], timestamps if has_timestamps else None, [key] * len(entries))
    return KeyPart(key, entries[0][_INPUT], batch, is_last)
