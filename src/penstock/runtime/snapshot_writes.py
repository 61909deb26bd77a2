"""Writes state files in the background while the next subtask runs: writing is mostly waiting for a disk or a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from typing import BinaryIO, cast

from penstock.common.clocks import monotonic_ms
from penstock.common.daemon_pool import DaemonPool

_THREADS = 8
_IN_MEMORY = 1 << 20
"""Larger files are not written in the background, but at once, as they are made."""

Create = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens a stream for a new file, which exists once the stream is closed without an error."""


class SnapshotWrites:
    """The files that are being written. Only one thread may use it."""

    def __init__(self) -> None:
        self._pool: DaemonPool | None = None

    def write(self, create: Create, fill: Callable[[BinaryIO], None]) -> Future[int]:
        """Call `fill` now, and write its output to a file, possibly after this call has returned.

        The future's result is the time at which the file was complete, in milliseconds of the monotonic clock. If the
        store raises an OSError, now or later, the future raises it.
        """
        written: Future[int] = Future()
        try:
            with ExitStack() as opened:
                out = _InMemoryFirst(lambda: opened.enter_context(create()))
                fill(cast(BinaryIO, out))
        except OSError as error:
            written.set_exception(error)
            return written
        if out.is_in_memory:
            if self._pool is None:
                self._pool = DaemonPool(_THREADS, "snapshot")
            return self._pool.submit(_write_all, create, out.parts)
        written.set_result(monotonic_ms())
        return written

    def close(self) -> None:
        """Return when all writes are done."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


class _InMemoryFirst:
    """A stream whose content stays in memory as long as it is small."""

    def __init__(self, open_file: Callable[[], BinaryIO]) -> None:
        self._open_file = open_file
        self._file: BinaryIO | None = None
        self._size = 0
        self.parts: list[bytes] = []

    @property
    def is_in_memory(self) -> bool:
        return self._file is None

    def write(self, content: bytes) -> int:
        if self._file is not None:
            return self._file.write(content)
        self.parts.append(content)
        self._size += len(content)
        if self._size > _IN_MEMORY:
            self._file = self._open_file()
            for each in self.parts:
                self._file.write(each)
            self.parts = []
        return len(content)


def _write_all(create: Create, parts: Iterable[bytes]) -> int:
    with create() as out:
        for each in parts:
            out.write(each)
    return monotonic_ms()
