"""Chunks: many records of one channel as bytes, with watermarks, idleness marks and the end of data in between."""

from __future__ import annotations

import io
import pickle
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.exceptions import InvalidProgramError
from penstock.common.timestamps import is_time, out_of_range
from penstock.common.types import Row, put_together, taken_apart
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.element_copies import are_immutable
from penstock.runtime.latency import LatencyMarker

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns


@dataclass(frozen=True)
class Watermark:
    timestamp: int


@dataclass(frozen=True)
class Status:
    is_idle: bool


@dataclass(frozen=True)
class EndOfData:
    """The channel will carry nothing more."""


Event = Union[Batch, "Columns", Watermark, Status, EndOfData, LatencyMarker]

# On the wire an event is a small tuple; the numbers are part of the format.
_DATA, _WATERMARK, _STATUS, _END, _COLUMNS, _LATENCY, _ROWS = range(7)


CHUNK_RECORDS = 8192
"""A chunk is sent when it has this many records: enough to make the cost of sending a chunk small per record."""
CHUNK_BYTES = 4 << 20
"""A chunk is not larger than this, unless a single record is: Spark's shuffle holds several chunks in Java's memory."""
MOST_BYTES = 1 << 30
"""A larger record cannot be sent: Spark's shuffle puts it into a Java array, which holds less than 2 GiB."""


class ChunkWriter:
    """Gathers the events of one channel and turns them into bytes.

    One pickle holds keys, timestamps and values, so a key that is part of its value is written once. Keys that could be
    changed are in a pickle of their own: otherwise a function that changes its element would change its key. Timestamps
    are written as raw 64-bit integers, and elements in columns as raw buffers (`penstock.runtime.columns`).
    """

    def __init__(self, encode_events: Callable[[Any], bytes] | None = None) -> None:
        self._encode = encode_events or encode
        self._events: list[tuple[Any, ...]] = []
        self._values: list[Any] = []
        self._timestamps: list[int | None] | None = None
        self._keys: list[Any] | None = None
        self._columns: list[Columns] = []
        self.size = 0
        """Records gathered since the last `take`."""
        self.bytes = 0
        """The estimated size of these records: the last record of each batch stands for the whole batch."""

    @property
    def is_full(self) -> bool:
        return self.size >= CHUNK_RECORDS or self.bytes >= CHUNK_BYTES

    def add_batch(self, values: list[Any], timestamps: Timestamps | None, keys: list[Any] | None) -> None:
        has_same_columns = (self._timestamps is None, self._keys is None) == (timestamps is None, keys is None)
        if self._columns or (self._values and not has_same_columns):
            self._seal()
        if not self._values:
            self._timestamps = None if timestamps is None else []
            self._keys = None if keys is None else []
        self._values.extend(values)
        if timestamps is not None:
            self._timestamps.extend(timestamps)  # type: ignore[union-attr]
        if keys is not None:
            self._keys.extend(keys)  # type: ignore[union-attr]
        self.size += len(values)
        if values:
            self.bytes += len(values) * _size_of(values[-1])

    def add_columns(self, columns: Columns) -> None:
        if self._values or (self._columns and self._columns[0].shape != columns.shape):
            self._seal()
        self._columns.append(columns)
        self.size += len(columns)
        self.bytes += columns.size()

    def add_watermark(self, timestamp: int) -> None:
        self._seal()
        if self._events and self._events[-1][0] == _WATERMARK:
            self._events.pop()
        self._events.append((_WATERMARK, timestamp))

    def add_status(self, is_idle: bool) -> None:
        self._seal()
        self._events.append((_STATUS, is_idle))

    def add_latency_marker(self, marker: LatencyMarker) -> None:
        self._seal()
        self._events.append((_LATENCY, marker.operator_id, marker.subtask, marker.marked_ms))

    def add_end_of_data(self) -> None:
        self._seal()
        self._events.append((_END,))

    def take(self) -> bytes | None:
        """Everything gathered, as bytes; None if there is nothing."""
        events = self._take_events()
        return self._encoded(events) if events else None

    def take_chunks(self) -> Iterator[bytes]:
        """Everything gathered, as chunks of at most `CHUNK_BYTES`; a record that is larger gets its own chunk."""
        parts = -(-self.bytes // CHUNK_BYTES)
        events = self._take_events()
        return self._chunks(events, parts) if events else iter(())

    def _take_events(self) -> list[tuple[Any, ...]]:
        self._seal()
        events, self._events, self.size, self.bytes = self._events, [], 0, 0
        return events

    def _chunks(self, events: list[tuple[Any, ...]], parts: int) -> Iterator[bytes]:
        """About `parts` chunks, or more if `parts` was an underestimate."""
        if parts > 1 and _can_be_split(events):
            for part in _split(events, parts):
                yield from self._chunks(part, 1)
            return
        chunk = self._encoded(events)
        if len(chunk) <= CHUNK_BYTES or not _can_be_split(events):
            yield _check_size(chunk)
        else:
            yield from self._chunks(events, -(-len(chunk) // CHUNK_BYTES))

    def _encoded(self, events: list[tuple[Any, ...]]) -> bytes:
        return self._encode([_wire_form(event, self._encode) for event in events])

    def _seal(self) -> None:
        if self._values:
            self._events.append((_DATA, self._keys, _packed_timestamps(self._timestamps), self._values))
            self._values, self._timestamps, self._keys = [], None, None
        elif self._columns:
            from penstock.runtime.columns import joined

            self._events.append((_COLUMNS, joined(self._columns)))
            self._columns = []


def _wire_form(event: tuple[Any, ...], encode_keys: Callable[[Any], bytes]) -> tuple[Any, ...]:
    """An event in the form in which it is sent."""
    if event[0] == _COLUMNS:
        return _COLUMNS, event[1].packed()
    if event[0] != _DATA:
        return event
    _, keys, timestamps, values = event
    if keys is not None and not are_immutable(keys):
        keys = encode_keys(keys)
    rows = taken_apart(values) if type(values[0]) is Row else None
    if rows is not None:  # Pickling and unpickling rows as objects would cost a call for each of them.
        return _ROWS, keys, timestamps, *rows
    return _DATA, keys, timestamps, values


def _keys_of_wire(keys: Any) -> list[Any] | None:
    read: list[Any] | None = pickle.loads(keys) if type(keys) is bytes else keys
    return read


def _size_of(value: Any) -> int:
    """About how many bytes a record takes; 0 if it cannot be encoded."""
    if isinstance(value, (str, bytes)):
        return len(value)
    try:
        return len(encode(value))
    except Exception:  # It is raised when the chunk is encoded.
        return 0


def _can_be_split(events: list[tuple[Any, ...]]) -> bool:
    records = _records_in(events)
    return records > 1 or (records == 1 and len(events) > 1)


def _records_in(events: list[tuple[Any, ...]]) -> int:
    return sum(map(_records_of, events))


def _records_of(event: tuple[Any, ...]) -> int:
    if event[0] == _DATA:
        return len(event[3])
    return len(event[1]) if event[0] == _COLUMNS else 0


def _split(events: list[tuple[Any, ...]], parts: int) -> Iterator[list[tuple[Any, ...]]]:
    """The events in order, as several lists with about the same number of records.

    If each list has room for only one record, the record is alone in its list.
    """
    most = max(_records_in(events) // parts, 1)
    part: list[tuple[Any, ...]] = []
    room = most
    for event in events:
        for piece in _pieces(event, room, most):
            if part and most == 1 and _records_of(piece):
                yield part
                part = []
            part.append(piece)
            room -= _records_of(piece)
            if room <= 0:
                yield part
                part, room = [], most
    if part:
        yield part


def _pieces(event: tuple[Any, ...], first: int, others: int) -> Iterator[tuple[Any, ...]]:
    """An event in pieces: `first` records in the first piece, `others` in each further one. Marks stay whole."""
    records = _records_of(event)
    if not records:
        yield event
        return
    start, end = 0, first
    while start < records:
        yield _piece(event, slice(start, end))
        start, end = end, end + others


def _piece(event: tuple[Any, ...], cut: slice) -> tuple[Any, ...]:
    if event[0] == _COLUMNS:
        return _COLUMNS, event[1].taken(cut)
    _, keys, timestamps, values = event
    return _DATA, _cut(keys, cut), _cut(timestamps, cut), values[cut]


def _cut(column: Any, part: slice) -> Any:
    return None if column is None else column[part]


def _check_size(chunk: bytes) -> bytes:
    if len(chunk) > MOST_BYTES:
        raise InvalidProgramError(
            f"a record takes {len(chunk):,} bytes, but at most {MOST_BYTES:,} can be sent to another task; send a "
            f"reference to the data (a path, a key of an object store) instead, or split it into several records"
        )
    return chunk


def _packed_timestamps(timestamps: list[int | None] | None) -> Any:
    if timestamps is None:
        return None
    try:
        return array("q", timestamps)
    except OverflowError:
        wrong = next(each for each in timestamps if each is not None and not is_time(each))
        raise InvalidProgramError(out_of_range("the code that assigns timestamps", wrong)) from None
    except TypeError:
        return timestamps


def encode(value: Any) -> bytes:
    """A pickle. If plain pickle fails, cloudpickle also writes the classes that only this process knows."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value))


def encode_in_driver(value: Any) -> bytes:
    """Like `encode`, for the process whose `__main__` is the user's script.

    There plain pickle would succeed, but it would only refer to the script's classes, which other processes cannot
    import.
    """
    buffer = io.BytesIO()
    cloudpickle.CloudPickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def read_chunk(chunk: bytes, keeps_columns: bool = False) -> Iterator[Event]:
    """The events of a chunk in order. If `keeps_columns`, elements in columns stay in them unless there are texts."""
    for event in pickle.loads(chunk):
        kind = event[0]
        if kind == _DATA:
            _, keys, timestamps, values = event
            yield Batch(values, timestamps, _keys_of_wire(keys))
        elif kind == _ROWS:
            _, keys, timestamps, *rows = event
            yield Batch(put_together(*rows), timestamps, _keys_of_wire(keys))
        elif kind == _COLUMNS:
            from penstock.runtime.columns import unpacked, unpacked_columns

            columns = unpacked_columns(event[1]) if keeps_columns else None
            yield unpacked(event[1]) if columns is None else columns
        elif kind == _WATERMARK:
            yield Watermark(event[1])
        elif kind == _STATUS:
            yield Status(event[1])
        elif kind == _LATENCY:
            yield LatencyMarker(*event[1:])
        else:
            yield EndOfData()
