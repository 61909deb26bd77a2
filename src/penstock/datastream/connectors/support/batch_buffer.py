"""Items that a sink's writer collects and writes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.datastream.connectors.sink_v2 import ProcessingTimeService

T = TypeVar("T")


class BatchBuffer(Generic[T]):
    """Hands items over when there are enough, when the first of them has waited long enough, or when asked to.

    :param size: How many are enough; 0 for no limit.
    :param interval_ms: How long an item may wait; 0 for no limit.
    """

    def __init__(
        self, size: int, interval_ms: int, time: ProcessingTimeService, write: Callable[[list[T]], None]
    ) -> None:
        self._size = size
        self._interval_ms = interval_ms
        self._time = time
        self._write = write
        self._items: list[T] = []
        self._has_timer = False

    def add(self, item: T) -> None:
        self._items.append(item)
        if 0 < self._size <= len(self._items):
            self.write()
        elif self._interval_ms > 0 and not self._has_timer:
            self._has_timer = True
            self._time.register_timer(self._time.get_current_processing_time() + self._interval_ms, self._on_timer)

    def write(self) -> None:
        items, self._items = self._items, []
        if items:
            self._write(items)

    def _on_timer(self, timestamp: int) -> None:
        self._has_timer = False
        self.write()
