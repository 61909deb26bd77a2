"""Chunks: many records of one channel as bytes, with watermarks, idleness marks and the end of data in between."""

from __future__ import annotations

import io
import pickle
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.runtime.batch import Batch, Timestamps


@dataclass(frozen=True)
class Watermark:
    timestamp: int


@dataclass(frozen=True)
class Status:
    is_idle: bool


@dataclass(frozen=True)
class EndOfData:
    """The channel will carry nothing more."""


Event = Batch | Watermark | Status | EndOfData

# On the wire an event is a small tuple; the numbers are part of the format.
_DATA, _WATERMARK, _STATUS, _END = range(4)


class ChunkWriter:
    """Gathers the events of one channel and turns them into bytes.

    One pickle holds keys, timestamps and values: a key that is part of its value is written once. Timestamps go as
    raw 64-bit integers.
    """

    def __init__(self, encode_events: Callable[[Any], bytes] | None = None) -> None:
        self._encode = encode_events or encode
        self._events: list[tuple[Any, ...]] = []
        self._values: list[Any] = []
        self._timestamps: list[int | None] | None = None
        self._keys: list[Any] | None = None
        self.size = 0
        """Records gathered since the last `take`."""

    def add_batch(self, values: list[Any], timestamps: Timestamps | None, keys: list[Any] | None) -> None:
        has_same_columns = (self._timestamps is None, self._keys is None) == (timestamps is None, keys is None)
        if self._values and not has_same_columns:
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

    def add_watermark(self, timestamp: int) -> None:
        self._seal()
        if self._events and self._events[-1][0] == _WATERMARK:
            self._events.pop()
        self._events.append((_WATERMARK, timestamp))

    def add_status(self, is_idle: bool) -> None:
        self._seal()
        self._events.append((_STATUS, is_idle))

    def add_end_of_data(self) -> None:
        self._seal()
        self._events.append((_END,))

    def take(self) -> bytes | None:
        """Everything gathered, as bytes; None if there is nothing."""
        self._seal()
        if not self._events:
            return None
        events, self._events, self.size = self._events, [], 0
        return self._encode(events)

    def _seal(self) -> None:
        if self._values:
            self._events.append((_DATA, self._keys, _pack(self._timestamps), self._values))
            self._values, self._timestamps, self._keys = [], None, None


def _pack(timestamps: list[int | None] | None) -> Any:
    if timestamps is None:
        return None
    try:
        return array("q", timestamps)
    except TypeError:
        return timestamps


def encode(value: Any) -> bytes:
    """Pickle; classes that only this process knows (defined in the user's script) go along by value."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value))


def encode_in_driver(value: Any) -> bytes:
    """Like `encode`, in the process where the user's script is `__main__`: plain pickle would only refer to it."""
    buffer = io.BytesIO()
    cloudpickle.CloudPickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def read_chunk(chunk: bytes) -> Iterator[Event]:
    """The events of a chunk in order."""
    for event in pickle.loads(chunk):
        kind = event[0]
        if kind == _DATA:
            _, keys, timestamps, values = event
            yield Batch(values, timestamps, keys)
        elif kind == _WATERMARK:
            yield Watermark(event[1])
        elif kind == _STATUS:
            yield Status(event[1])
        else:
            yield EndOfData()
