"""Rows on their way between the workers of a region.

A worker puts what comes for its subtasks into its inbox, its own rows as well as those of others. A stage begins when
all workers that send to it have said that they are done with theirs: then every row is there, and is read in an order
that does not depend on how it came.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import IO, Protocol

from penstock.runtime.rows import AnyRow, Row, SpilledRow

SPILL_BYTES = 256 << 20
"""What a worker holds of an epoch in memory; what comes beyond that waits on disk."""

Mark = tuple[int, int]
"""A worker and a stage that it is done with."""


class EpochAbandonedError(Exception):
    """The driver has given up the epoch."""


class Exchange(Protocol):
    """Takes rows to the other workers."""

    def send(self, epoch: int, worker: int, row: Row) -> None:
        """It goes out with the end of its stage at the latest; waits as long as the worker does not take it."""

    def end_stage(self, epoch: int, stage: int, workers: Iterable[int]) -> None:
        """Let these workers know that no row of the stage follows."""


class NoExchange:
    """For a worker that is alone."""

    def send(self, epoch: int, worker: int, row: Row) -> None:
        raise AssertionError(f"there is no worker {worker}")

    def end_stage(self, epoch: int, stage: int, workers: Iterable[int]) -> None:
        """Nobody waits for it."""


class Inbox:
    """The rows that have come for the subtasks of a worker, by epoch: others may be ahead by one.

    Several threads put, one takes. Beyond `spill_bytes` chunks wait in a file, which makes senders wait for the disk.
    """

    def __init__(self, spill_bytes: int = SPILL_BYTES) -> None:
        self._spill_bytes = spill_bytes
        self._changed = threading.Condition(threading.Lock())
        self._rows: defaultdict[tuple[int, int, int], list[AnyRow]] = defaultdict(list)
        """By epoch, vertex and subtask."""
        self._marks: defaultdict[int, set[Mark]] = defaultdict(set)
        self._awaited: tuple[int, frozenset[Mark]] | None = None
        """The epoch and the marks that somebody waits for."""
        self._bytes = 0
        self._spilled: IO[bytes] | None = None
        self._done_epoch = 0
        self._is_abandoned = False

    def put(self, epoch: int, row: Row) -> None:
        with self._changed:
            if epoch <= self._done_epoch:
                return  # It was given up while the row was on its way.
            waiting = self._rows[(epoch, row.vertex, row.subtask)]
            if self._bytes + len(row.chunk) > self._spill_bytes:
                waiting.append(self._spill(row))
            else:
                self._bytes += len(row.chunk)
                waiting.append(row)

    def _spill(self, row: Row) -> SpilledRow:
        if self._spilled is None:
            # Without a name: the file is gone when it is closed, also if the process is killed.
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
                if self._awaited is not None and self._has(*self._awaited):
                    self._changed.notify_all()

    def wait_for(self, epoch: int, marks: frozenset[Mark]) -> None:
        """Return when these have come; raises if the epoch is given up."""
        if marks:
            with self._changed:
                self._awaited = epoch, marks
                while not (self._is_abandoned or self._has(epoch, marks)):
                    self._changed.wait()
                self._awaited = None
        self.check()

    def _has(self, epoch: int, marks: frozenset[Mark]) -> bool:
        return marks <= self._marks[epoch]

    def check(self) -> None:
        if self._is_abandoned:
            raise EpochAbandonedError

    def take(self, epoch: int, vertex: int, subtask: int) -> list[AnyRow]:
        """All rows of a subtask; they are its own from here on."""
        with self._changed:
            rows = self._rows.pop((epoch, vertex, subtask), [])
            self._bytes -= sum(len(row.chunk) for row in rows if isinstance(row, Row))
        return rows

    def end_epoch(self, epoch: int) -> None:
        """Forget what belongs to it and to those before."""
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
        """Wake up waiting threads; from another thread."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def begin(self) -> None:
        """A new run begins: what is there is of an epoch that was given up."""
        with self._changed:
            self._is_abandoned = False
            self._rows.clear()
            self._marks.clear()
            self._bytes = 0
            self._remove_file()
