"""Records that were received from a system that cannot give them twice, on disk until a checkpoint covers them."""

from __future__ import annotations

import io
import itertools
import logging
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

_LENGTH = struct.Struct("<I")
SEGMENT_RECORDS = 50_000
SEGMENT_BYTES = 4 * 1024 * 1024
"""A segment is removed as a whole: what checkpoints cover stays until nothing else is in it."""


class Spool:
    """A numbered log of records in segment files.

    A record counts as received when `append` returns: it is then in the operating system's hands and survives the end
    of this process. What a crash left half-written at the end is not a record and is cut off.
    """

    def __init__(self, folder: Path, segment_records: int = SEGMENT_RECORDS, segment_bytes: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._segment_records = segment_records
        self._segment_bytes = SEGMENT_BYTES if segment_bytes is None else segment_bytes
        self._segments = sorted(int(path.name.partition("-")[2]) for path in folder.glob("segment-*"))
        self._file: io.FileIO | None = None
        self._file_size = 0
        """Of the file that is open."""
        self._cursor = (0, 0, 0)
        """Where the last read ended: record number, its segment, the place in that file."""
        self.end = self._recover()
        """The number of the next record."""

    def append(self, records: list[bytes]) -> None:
        for start in range(0, len(records), self._segment_records):
            part = records[start : start + self._segment_records]
            if not self._segments or self._is_full():
                self._roll()
            self._write(b"".join(_LENGTH.pack(len(record)) + record for record in part))
            self.end += len(part)

    def _is_full(self) -> bool:
        has_enough_records = self.end - self._segments[-1] >= self._segment_records
        self._open()
        return has_enough_records or self._file_size >= self._segment_bytes

    def _write(self, content: bytes) -> None:
        """All of it or nothing: after half a record, left by a full disk, no later one could be read."""
        file = self._open()
        try:
            written = 0
            while written < len(content):
                written += file.write(content[written:])
        except OSError:
            os.ftruncate(file.fileno(), self._file_size)
            raise
        self._file_size += len(content)

    def read(self, start: int, limit: int) -> list[bytes]:
        """At most `limit` records from number `start` on."""
        records: list[bytes] = []
        end = min(self.end, start + limit)
        for at, segment in enumerate(list(self._segments)):
            following = self._segments[at + 1 : at + 2]
            if following and following[0] <= start:
                continue
            if segment >= end:
                break  # Just begun by the receiver: its file may not be there yet.
            number, offset = (start, self._cursor[2]) if self._cursor[:2] == (start, segment) else (segment, 0)
            for record, ends_at in _records_of(self._path(segment), offset):
                if number >= end:
                    break
                if number >= start:
                    records.append(record)
                number += 1
                self._cursor = (number, segment, ends_at)
        return records

    def forget_before(self, number: int) -> None:
        """Remove the segments that hold only records before `number`."""
        while len(self._segments) > 1 and self._segments[1] <= number:
            path = self._path(self._segments.pop(0))
            try:
                path.unlink()
            except OSError as error:  # It is only in the way, until the job ends.
                _log.warning("%s is no longer needed but cannot be removed: %s", path, error)

    def cut_off(self, number: int) -> None:
        """Drop the records from `number` on, as if they had never come."""
        self.close()
        while self._segments and self._segments[-1] >= number:
            self._path(self._segments.pop()).unlink(missing_ok=True)
        if self._segments and number < self.end:
            path = self._path(self._segments[-1])
            ends = [ends_at for _, ends_at in itertools.islice(_records_of(path, 0), number - self._segments[-1])]
            os.truncate(path, ends[-1])
        self.end = min(self.end, number)
        self._cursor = (0, 0, 0)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _recover(self) -> int:
        if not self._segments:
            return 0
        path = self._path(self._segments[-1])
        ends = [ends_at for _, ends_at in _records_of(path, 0)]
        with path.open("r+b") as file:
            file.truncate(ends[-1] if ends else 0)
        return self._segments[-1] + len(ends)

    def _roll(self) -> None:
        """Begin a new segment, whose file is made by the next write."""
        self.close()
        self._segments.append(self.end)

    def _open(self) -> io.FileIO:
        if self._file is None:
            self._file = self._path(self._segments[-1]).open("ab", buffering=0)
            self._file_size = os.fstat(self._file.fileno()).st_size
        return self._file

    def _path(self, segment: int) -> Path:
        return self._folder / f"segment-{segment:020d}"


def _records_of(path: Path, offset: int) -> Iterator[tuple[bytes, int]]:
    """The whole records of a file from a place on, each with the place where it ends."""
    with path.open("rb") as file:
        file.seek(offset)
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            record = file.read(length)
            if len(record) < length:
                return
            offset += _LENGTH.size + length
            yield record, offset
