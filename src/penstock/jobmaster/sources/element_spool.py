"""What a source function has emitted, on disk until the job has processed it and a checkpoint covers it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from penstock.common.constants import MIN_LONG_VALUE
from penstock.jobmaster.sources.spool import Spool
from penstock.runtime.chunk import ChunkWriter, encode_in_driver

_MOST_IN_A_CHUNK = 1024
_CHUNK_BYTES = 256 * 1024
_KEPT_BYTES = 1 << 20
"""Of what waits, this much is also kept in memory, and not read from disk."""
_PARTS = 4
"""A chunk holds at most this fraction of what may wait: a quarter."""


class _Size(NamedTuple):
    records: int
    bytes: int


class ElementSpool:
    """Elements and marks in order, in numbered chunks. One thread adds, another one takes.

    What was not taken yet is *waiting*; the adding thread waits while that is more than the limits allow. Chunks hold
    a part of what may wait, so that about as much can be taken at a time as is wanted.
    """

    def __init__(
        self,
        folder: Path,
        max_records: int,
        max_bytes: int,
        on_change: Callable[[], None],
        encode_elements: Callable[[Any], bytes] = encode_in_driver,
    ) -> None:
        self._spool = Spool(folder)
        self._encode = encode_elements
        self._most_records = max_records
        self._max_bytes = max_bytes
        self._on_change = on_change
        self._changed = threading.Condition()
        self._writer = ChunkWriter(encode_elements)
        self._watermark = MIN_LONG_VALUE
        self._is_idle = False
        self._sizes: deque[_Size] = deque()
        self._first = 0
        """Number of the first chunk that `_sizes` knows."""
        self._chunk_records = 1
        self._chunk_bytes = min(_CHUNK_BYTES, max_bytes // _PARTS)
        self._unwritten: list[tuple[bytes, int]] = []
        """Chunks that the disk has refused, with their numbers of records. They cannot be had again."""
        self._waiting = _Size(0, 0)
        self._kept: dict[int, bytes] = {}
        """Chunks that wait, by number; not all of them."""
        self._kept_bytes = 0
        self._is_closed = False
        self.has_waiting = False
        """True if there is something to take. A single value, which can be read without the lock."""
        self.number = 0
        """The next chunk to take."""
        self.records_taken = 0
        """By the last `take`."""
        self.was_full = False
        """True if somebody had to wait for the last `take`: there is more where that came from."""
        self._has_to_wait = False
        self.limit(max_records)

    def limit(self, records: int) -> None:
        """Let this many records wait, within what the spool was made for."""
        with self._changed:
            self._max_records = min(records, self._most_records)
            self._most_in_a_chunk = max(1, min(_MOST_IN_A_CHUNK, self._max_records // _PARTS))
            self._chunk_records = min(self._chunk_records, self._most_in_a_chunk)
            self._changed.notify_all()

    # --- adding ----------------------------------------------------------------------------------------------------

    def add(self, value: Any, timestamp: int | None) -> None:
        with self._changed:
            was_empty, self.has_waiting = not self.has_waiting, True
            self._mark_idle(False)
            self._writer.add_batch([value], None if timestamp is None else [timestamp], None)
            if self._writer.size >= self._chunk_records or self._writer.bytes >= self._chunk_bytes:
                self._seal()
        if was_empty:
            self._on_change()

    def add_all(self, values: list[Any]) -> None:
        """Elements without a timestamp that have come together."""
        with self._changed:
            was_empty, self.has_waiting = not self.has_waiting, True
            self._mark_idle(False)
            self._seal()
            chunks = []
            for start in range(0, len(values), self._most_in_a_chunk):
                part = values[start : start + self._most_in_a_chunk]
                self._writer.add_batch(part, None, None)
                chunk = self._writer.take()
                assert chunk is not None
                chunks.append((chunk, len(part)))
            self._append(chunks)
        if was_empty:
            self._on_change()

    def add_watermark(self, timestamp: int) -> None:
        with self._changed:
            if timestamp <= self._watermark:
                return  # Watermarks do not go back.
            self._watermark = timestamp
            self._mark_idle(False)
            self._writer.add_watermark(timestamp)
            self.has_waiting = True
        self._on_change()

    def add_idleness(self) -> None:
        with self._changed:
            self._mark_idle(True)
        self._on_change()

    def _mark_idle(self, is_idle: bool) -> None:
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self._writer.add_status(is_idle)
            self.has_waiting = True

    def _seal(self) -> None:
        """Write what was gathered as a chunk."""
        records = self._writer.size
        chunk = self._writer.take()
        if chunk is None:
            self._append([])
            return
        self._append([(chunk, records)])
        # Many small elements share a chunk; large ones are written as they come.
        fitting = records * self._chunk_bytes // len(chunk) if records else self._chunk_records
        self._chunk_records = max(1, min(fitting, self._chunk_records * 2, self._most_in_a_chunk))

    def _append(self, chunks: list[tuple[bytes, int]]) -> None:
        """Write chunks, with their numbers of records, after those that could not be written before."""
        self._unwritten += chunks
        if not self._unwritten:
            return
        first = self._spool.end
        try:
            self._spool.append([chunk for chunk, _ in self._unwritten])
        finally:
            written = self._unwritten[: self._spool.end - first]
            del self._unwritten[: len(written)]
            self._note_written(first, written)

    def _note_written(self, first: int, chunks: list[tuple[bytes, int]]) -> None:
        for number, (chunk, records) in enumerate(chunks, first):
            self._sizes.append(_Size(records, len(chunk)))
            self._waiting = _Size(self._waiting.records + records, self._waiting.bytes + len(chunk))
            if self._kept_bytes + len(chunk) <= _KEPT_BYTES:
                self._kept[number] = chunk
                self._kept_bytes += len(chunk)

    def wait_for_space(self) -> None:
        """Return when what waits is within the limits, or the spool was closed."""
        with self._changed:
            while self._is_full() and not self._is_closed:
                self._has_to_wait = True
                self._changed.wait()

    @property
    def has_space(self) -> bool:
        with self._changed:
            return not self._is_full()

    def wait_until_taken(self, longest_s: float) -> None:
        """Return when something was taken, after `longest_s` at the latest; at once if nothing waits."""
        with self._changed:
            if self.has_waiting and not self._is_closed:
                self._changed.wait(longest_s)

    def _is_full(self) -> bool:
        records = self._waiting.records + self._writer.size
        return records >= self._max_records or self._waiting.bytes + self._writer.bytes >= self._max_bytes

    # --- taking ----------------------------------------------------------------------------------------------------

    def take(self, max_records: int | None) -> list[bytes]:
        """The chunks that wait, at least one if there is any; after a failure there may be more than `max_records`."""
        with self._changed:
            self._seal()
            end, records, size = self.number, 0, 0
            while end < self._spool.end and (max_records is None or records < max_records):
                taken = self._sizes[end - self._first]
                records, size = records + taken.records, size + taken.bytes
                end += 1
            chunks = self._read(end)
            self.records_taken = records
            self.was_full, self._has_to_wait = self._has_to_wait, False
            self._move_to(end, _Size(self._waiting.records - records, self._waiting.bytes - size))
            return chunks

    def _read(self, end: int) -> list[bytes]:
        """The chunks from here to `end`."""
        kept = [self._kept.pop(number, None) for number in range(self.number, end)]
        self._kept_bytes -= sum(len(chunk) for chunk in kept if chunk is not None)
        chunks = [chunk for chunk in kept if chunk is not None]
        return chunks if len(chunks) == len(kept) else self._spool.read(self.number, end - self.number)

    def go_back(self, number: int) -> None:
        """Take everything from `number` on again."""
        with self._changed:
            self._seal()
            self._return_to(number)
            if self._is_idle:  # Its reader starts active, and the chunk that said so may be one that it does not see.
                self._writer.add_status(True)
                self.has_waiting = True

    def cut_off(self, number: int) -> None:
        """Forget what was added from `number` on: it will be added again."""
        with self._changed:
            self._writer, self._unwritten = ChunkWriter(self._encode), []
            self._watermark, self._is_idle = MIN_LONG_VALUE, False
            self._spool.cut_off(number)
            while self._first + len(self._sizes) > number:
                self._sizes.pop()
            self._return_to(number)

    def _return_to(self, number: int) -> None:
        self._kept, self._kept_bytes = {}, 0
        waiting = list(self._sizes)[number - self._first :]
        self._move_to(number, _Size(sum(each.records for each in waiting), sum(each.bytes for each in waiting)))

    def _move_to(self, number: int, waiting: _Size) -> None:
        self.number, self._waiting = number, waiting
        self.has_waiting = number < self._spool.end
        self._changed.notify_all()

    def forget_before(self, number: int) -> None:
        with self._changed:
            self._spool.forget_before(number)
            while self._first < number:
                self._sizes.popleft()
                self._first += 1

    def close(self) -> None:
        """Release threads that wait. What is spooled stays until `release`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def release(self) -> None:
        with self._changed:
            self._spool.close()
