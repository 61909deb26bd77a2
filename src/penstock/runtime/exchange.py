"""The exchange of rows between the workers of a region.

A worker puts all rows for its subtasks into its inbox, its own as well as those of other workers. A stage begins when
all workers that send to it have reported that their stages have ended. By then every row has arrived, and the rows are
read in an order that does not depend on the order of arrival.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import IO, Protocol

from penstock.runtime.rows import AnyRow, Row, SpilledRow

SPILL_BYTES = 256 << 20
"""How many bytes of rows an inbox holds in memory; further rows wait on disk."""

Mark = tuple[int, int]
"""A worker, and a stage that it has finished."""


class EpochAbandonedError(Exception):
    """The driver has abandoned the epoch."""


class Exchange(Protocol):
    """Sends rows to the other workers."""

    def send(self, epoch: int, worker: int, row: Row) -> None:
        """Send a row, no later than the end of its stage. Blocks while the other worker does not accept rows."""

    def end_stage(self, epoch: int, stage: int, workers: Iterable[int]) -> None:
        """Tell these workers that no more rows of the stage follow."""


class NoExchange:
    """For the only worker of a region."""

    def send(self, epoch: int, worker: int, row: Row) -> None:
        raise AssertionError(f"there is no worker {worker}")

    def end_stage(self, epoch: int, stage: int, workers: Iterable[int]) -> None:
        """Do nothing: no other worker waits for the stage."""


class Inbox:
    """The rows that have arrived for the subtasks of a worker, by epoch: other workers may be one epoch ahead.

    Several threads put rows, one takes them. Chunks beyond `spill_bytes` are written to a file, so senders wait for the
    disk.
    """

    def __init__(self, spill_bytes: int = SPILL_BYTES) -> None:
        self._spill_bytes = spill_bytes
        self._changed = threading.Condition(threading.Lock())
        self._rows: defaultdict[tuple[int, int, int], list[AnyRow]] = defaultdict(list)
        """By epoch, vertex and subtask."""
        self._marks: defaultdict[int, set[Mark]] = defaultdict(set)
        self._awaited: tuple[int, frozenset[Mark]] | None = None
        """The epoch and the marks that the worker is waiting for."""
        self._bytes = 0
        self._spilled: IO[bytes] | None = None
        self._done_epoch = 0
        self._is_abandoned = False

    def put(self, epoch: int, row: Row) -> None:
        with self._changed:
            if epoch <= self._done_epoch:
                return  # The epoch was abandoned while the row was on its way.
            waiting = self._rows[(epoch, row.vertex, row.subtask)]
            if self._bytes + len(row.chunk) > self._spill_bytes:
                waiting.append(self._spill(row))
            else:
                self._bytes += len(row.chunk)
                waiting.append(row)

    def _spill(self, row: Row) -> SpilledRow:
        if self._spilled is None:
            # The file has no name, so the system removes it when it is closed, even if the process is killed.
            self._spilled = tempfile.TemporaryFile(prefix="penstock-exchange-", buffering=0)  # noqa: SIM115
        offset = self._spilled.tell()
        remaining = memoryview(row.chunk)
        while remaining:
            remaining = remaining[self._spilled.write(remaining) :]
        return SpilledRow(row, self._spilled.fileno(), offset)

    def mark(self, epoch: int, mark: Mark) -> None:
        with self._changed:
            if epoch > self._done_epoch:
                self._marks[epoch].add(mark)
                if self._awaited is not None and self._have_arrived(*self._awaited):
                    self._changed.notify_all()

    def wait_for(self, epoch: int, marks: frozenset[Mark]) -> None:
        """Return when these marks have arrived; raises EpochAbandonedError if the epoch is abandoned."""
        if marks:
            with self._changed:
                self._awaited = epoch, marks
                while not (self._is_abandoned or self._have_arrived(epoch, marks)):
                    self._changed.wait()
                self._awaited = None
        self.check()

    def _have_arrived(self, epoch: int, marks: frozenset[Mark]) -> bool:
        return marks <= self._marks[epoch]

    def check(self) -> None:
        if self._is_abandoned:
            raise EpochAbandonedError

    def take(self, epoch: int, vertex: int, subtask: int) -> list[AnyRow]:
        """All rows of a subtask, which the inbox no longer holds."""
        with self._changed:
            rows = self._rows.pop((epoch, vertex, subtask), [])
            self._bytes -= sum(len(row.chunk) for row in rows if isinstance(row, Row))
        return rows

    def end_epoch(self, epoch: int) -> None:
        """Forget the rows and marks of this epoch and of those before it."""
        with self._changed:
            self._done_epoch = max(epoch, self._done_epoch)
            for key in [key for key in self._rows if key[0] <= epoch]:
                rows = self._rows.pop(key)
                self._bytes -= sum(len(row.chunk) for row in rows if isinstance(row, Row))
            for done in [each for each in self._marks if each <= epoch]:
                del self._marks[done]
            if not any(isinstance(row, SpilledRow) for rows in self._rows.values() for row in rows):
                self._remove_file()

    def _remove_file(self) -> None:
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None

    def abandon(self) -> None:
        """Make `wait_for` and `check` raise. Called from another thread."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def begin(self) -> None:
        """Begin a new run. Any rows and marks that are left belong to an epoch that was abandoned."""
        with self._changed:
            self._is_abandoned = False
            self._rows.clear()
            self._marks.clear()
            self._bytes = 0
            self._remove_file()
