"""Time and timers as process functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """Gives the time and registers timers for the current key.

    A timer is identified by key and timestamp: registering it twice fires it once. All times are in milliseconds.

    `KeyedProcessFunction` has an example.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The current processing time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current event-time watermark; the smallest 64-bit integer before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once processing time reaches `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the watermark reaches `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Remove the current key's processing-time timer at `timestamp`; no effect if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Remove the current key's event-time timer at `timestamp`; no effect if there is none."""
