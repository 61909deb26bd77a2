"""The driver's side of sources: what is there to read, and who reads what in the next epoch."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.graph.descriptions import (
    CollectionSourceDescription,
    SequenceSourceDescription,
    SocketSourceDescription,
    SourceDescription,
)
from penstock.jobmaster.socket_receiver import SocketReceiver
from penstock.jobmaster.spool import Spool
from penstock.runtime.sources import SourceAssignment

MOST_SPOOLED_RECORDS = 1_000_000


class SourceCoordinator(Protocol):
    """One source of a job. `position` is what a checkpoint keeps of it."""

    def start(self) -> None: ...

    def has_work(self) -> bool:
        """True if an epoch would bring something new: records, or the end of the source."""

    def plan(self) -> dict[int, SourceAssignment]:
        """The next epoch's part of each subtask that has one; moves the position on."""

    @property
    def position(self) -> Any: ...

    def rewind(self, position: Any) -> None:
        """Go back to a position, after a failure."""

    def checkpoint_complete(self, position: Any) -> None:
        """Nothing before `position` will be asked for again."""

    @property
    def is_exhausted(self) -> bool:
        """True once the end was planned."""

    def check(self) -> None:
        """Raise if the source has failed."""

    def stop(self) -> None: ...


class FixedSourceCoordinator:
    """A bounded source whose parts (lists or ranges) are known from the start, one for each subtask.

    The position is how far into its part every subtask is, and whether the end was planned.
    """

    def __init__(self, parts: Sequence[Sequence[Any]], max_records: int) -> None:
        self._parts = parts
        self._max_records = max_records
        self.position: tuple[int, bool] = (0, False)

    def start(self) -> None:
        """Nothing to wait for."""

    def has_work(self) -> bool:
        return not self.is_exhausted

    def plan(self) -> dict[int, SourceAssignment]:
        start, has_ended = self.position
        if has_ended:
            return {}
        end = start + self._max_records
        self.position = (end, all(len(part) <= end for part in self._parts))
        return {
            subtask: SourceAssignment(part[start:end], is_last=len(part) <= end)
            for subtask, part in enumerate(self._parts)
            if start == 0 or start < len(part)
        }

    def rewind(self, position: Any) -> None:
        self.position = position

    def checkpoint_complete(self, position: Any) -> None:
        """The parts are in memory; there is nothing to free."""

    @property
    def is_exhausted(self) -> bool:
        return self.position[1]

    def check(self) -> None:
        """Cannot fail."""

    def stop(self) -> None:
        """Nothing runs."""


class SocketSourceCoordinator:
    """Records come from a receiver through a spool; the position is the number of the next record."""

    def __init__(
        self, description: SocketSourceDescription, folder: Path, on_change: Callable[[], None], max_records: int
    ) -> None:
        self._spool = Spool(folder)
        self._max_records = max_records
        self._receiver = SocketReceiver(description, self._spool, on_change)
        self.position: tuple[int, bool] = (0, False)
        """Next record, and whether the end was planned."""

    def start(self) -> None:
        self._receiver.start()

    def has_work(self) -> bool:
        number, has_ended = self.position
        return not has_ended and (self._spool.end > number or self._receiver.has_ended)

    def plan(self) -> dict[int, SourceAssignment]:
        number, has_ended = self.position
        if has_ended:
            return {}
        # Asked before reading: records that come in between are then not lost behind the end.
        receiver_ended = self._receiver.has_ended
        lines = [record.decode("utf-8", "replace") for record in self._spool.read(number, self._max_records)]
        number += len(lines)
        is_last = receiver_ended and number == self._spool.end
        self.position = (number, is_last)
        return {0: SourceAssignment(lines, is_last)} if lines or is_last else {}

    def rewind(self, position: Any) -> None:
        self.position = position
        self._receiver.resume()

    def checkpoint_complete(self, position: Any) -> None:
        self._spool.forget_before(position[0])

    @property
    def is_exhausted(self) -> bool:
        return self.position[1]

    def check(self) -> None:
        if self._receiver.failure is not None:
            raise self._receiver.failure

    def stop(self) -> None:
        self._receiver.stop()
        self._spool.close()


def build_source_coordinator(
    description: SourceDescription,
    parallelism: int,
    folder: Path,
    on_change: Callable[[], None],
    max_records: int | None = None,
) -> SourceCoordinator:
    """`max_records`: the most records a subtask gets in one epoch."""
    match description:
        case CollectionSourceDescription():
            return FixedSourceCoordinator([description.values], max_records or sys.maxsize)
        case SequenceSourceDescription():
            parts = split_sequence(description.start, description.end, parallelism)
            return FixedSourceCoordinator(parts, max_records or sys.maxsize)
        case SocketSourceDescription():
            return SocketSourceCoordinator(description, folder, on_change, max_records or MOST_SPOOLED_RECORDS)
    raise UnsupportedFeatureError(f"there is no reader for {type(description).__name__}")


def split_sequence(first: int, last: int, parts: int) -> list[range]:
    """The numbers from `first` to `last` in ranges of almost the same length; a range may be empty."""
    count = last - first + 1
    bounds = [first + count * part // parts for part in range(parts + 1)]
    return [range(start, end) for start, end in itertools.pairwise(bounds)]
