"""Records of state in a local file, one after the other. A record that is rewritten is appended again."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FIRST_BYTES = 1 << 20


class RecordLog:
    """The caller remembers where its records are, and adds the sizes of obsolete ones to `obsolete_bytes`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._close = weakref.finalize(self, os.close, self._file)  # Also called when the log is garbage collected.
        self._room = 0
        self.size = 0
        self.obsolete_bytes = 0
        """The bytes of records that are no longer used."""
        self._map: mmap.mmap | None = None

    def append(self, records: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Write records; returns where they begin, and their sizes."""
        sizes = np.fromiter(map(len, records), np.uint32, len(records))
        ends = self.size + np.cumsum(sizes, dtype=np.int64)
        content = memoryview(b"".join(records))
        self._grow(self.size + len(content))
        while content:
            written = os.pwrite(self._file, content, self.size)
            content, self.size = content[written:], self.size + written
        return ends - sizes, sizes

    def _grow(self, needed: int) -> None:
        """Make the file longer than needed, so that it need not be mapped again with every write."""
        if needed > self._room:
            self._room = max(_FIRST_BYTES, needed + needed // 2)
            os.ftruncate(self._file, self._room)
            self._map = None

    def read(self, places: NDArray[np.int64], sizes: NDArray[np.uint32]) -> list[bytes]:
        if self._map is None:
            self._map = mmap.mmap(self._file, self._room, prot=mmap.PROT_READ)
        mapped = self._map
        ends = places + sizes
        return [mapped[place:end] for place, end in zip(places.tolist(), ends.tolist(), strict=True)]

    def close(self) -> None:
        self._map = None
        self._close()
        self.path.unlink(missing_ok=True)
