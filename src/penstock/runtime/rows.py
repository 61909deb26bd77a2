"""The rows that pass between stages: one row holds one chunk of one channel."""

from __future__ import annotations

import os
from typing import NamedTuple

ACKNOWLEDGEMENT = -1
"""The `vertex` of a row that carries a TaskAck to the driver."""
FAILURE = -2
"""The `vertex` of a row that carries a TaskFailure to the driver."""
OUTPUT = -3
"""The `vertex` of a row that carries what functions of a batch job have printed and logged."""
FROM_DRIVER = -1
"""The `edge` of a row with a source's assignment for the epoch."""


class Row(NamedTuple):
    vertex: int
    subtask: int
    edge: int
    channel: int
    """The subtask that sent it."""
    seq: int
    """The number of the chunk within its channel and epoch."""
    chunk: bytes


class SpilledRow:
    """A row whose chunk waits on disk."""

    __slots__ = ("_file", "_length", "_offset", "channel", "edge", "seq", "subtask", "vertex")

    def __init__(self, row: Row, file: int, offset: int) -> None:
        self.vertex, self.subtask, self.edge, self.channel, self.seq, chunk = row
        self._file = file
        self._offset = offset
        self._length = len(chunk)

    @property
    def chunk(self) -> bytes:
        """Read from the disk each time."""
        chunk = os.pread(self._file, self._length, self._offset)
        if len(chunk) < self._length:
            raise OSError(f"a spilled chunk of {self._length} bytes ended after {len(chunk)}")
        return chunk


AnyRow = Row | SpilledRow
