"""What makes watermarks of events: Flink's generators, and the interface that users implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.timestamps import whole_milliseconds

__all__ = [
    "AscendingTimestampsWatermarks",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarks",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarksWithIdleness",
]


@dataclass(order=True, unsafe_hash=True)
class Watermark:
    """States that no element with a timestamp up to and including this one will follow.

    >>> str(Watermark(5000)), Watermark(5000) < Watermark.max_watermark()
    ('Watermark @ 5000', True)
    """

    timestamp: int

    def get_timestamp(self) -> int:
        """The time that the watermark has reached, in milliseconds."""
        return self.timestamp

    @staticmethod
    def max_watermark() -> Watermark:
        """The end of event time: every window and timer fires."""
        return Watermark(MAX_LONG_VALUE)

    def __str__(self) -> str:
        return f"Watermark @ {self.timestamp}"


def time_of(watermark: Any) -> int:
    """The time of a watermark that a user's code emits: a `Watermark`, or a number."""
    time = watermark.timestamp if isinstance(watermark, Watermark) else watermark
    return whole_milliseconds(time, "the code that emits a watermark")


class WatermarkOutput(ABC):
    """Where a generator or a source sends its watermarks. Watermarks never go back: a smaller one is ignored.

    `WatermarkGenerator` has an example.
    """

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """State that nothing at or before `timestamp` will follow here; this also ends idleness."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark the stream idle: operators downstream do not wait for its watermarks."""

    @abstractmethod
    def mark_active(self) -> None:
        """Undo `mark_idle` without a new watermark."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the events it sees, on events (punctuated) or from time to time (periodic).

    >>> from penstock.common import WatermarkStrategy
    >>> class AtMarkers(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "end of hour":
    ...             output.emit_watermark(Watermark(event_timestamp))
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> strategy = WatermarkStrategy.for_generator(lambda context: AtMarkers())
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every event, after its timestamp has been assigned."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every `pipeline.auto-watermark-interval`."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Watermarks that stay a fixed bound behind the largest timestamp seen.

    >>> generator = BoundedOutOfOrdernessWatermarks(200)
    >>> generator.on_event("a", 1000, None)
    >>> generator.current_watermark()
    799
    """

    def __init__(self, max_out_of_orderness_ms: int) -> None:
        if max_out_of_orderness_ms < 0:
            raise ValueError(f"the bound of out-of-orderness cannot be negative, got {max_out_of_orderness_ms} ms")
        self.max_out_of_orderness_ms = max_out_of_orderness_ms
        # So that the first watermark, before any event, is exactly the smallest.
        self.max_timestamp = MIN_LONG_VALUE + max_out_of_orderness_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self.max_timestamp:
            self.max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.current_watermark())

    def current_watermark(self) -> int:
        """The watermark that would be emitted now."""
        return self.max_timestamp - self.max_out_of_orderness_ms - 1


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Watermarks right behind the largest timestamp, for timestamps that never go back.

    >>> generator = AscendingTimestampsWatermarks()
    >>> generator.on_event("a", 1000, None)
    >>> generator.current_watermark()
    999
    """

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarks(WatermarkGenerator):
    """Never emits a watermark: for jobs in processing time only.

    `WatermarkStrategy` has an example with another generator.
    """

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class WatermarksWithIdleness(WatermarkGenerator):
    """Adds idleness to a generator: after `timeout_ms` without an event the output is marked idle, once.

    Time is measured between periodic calls only, so the first call without an event starts the count, as in Flink.

    `WatermarkStrategy` has an example.
    """

    def __init__(self, generator: WatermarkGenerator, timeout_ms: int, clock: Callable[[], int]) -> None:
        if timeout_ms <= 0:
            raise ValueError(f"the idle timeout must be positive, got {timeout_ms} ms")
        self.generator = generator
        self.timeout_ms = timeout_ms
        self.clock = clock
        self.is_idle = False
        self._had_event = True
        self._quiet_since_ms: int | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.generator.on_event(event, event_timestamp, output)
        self._had_event = True
        self.is_idle = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if not self._check_if_idle():
            self.generator.on_periodic_emit(output)
        elif not self.is_idle:
            output.mark_idle()
            self.is_idle = True

    def restart(self) -> None:
        """Start the count over: there was a reason for the lack of events."""
        self._had_event = True
        self.is_idle = False

    def _check_if_idle(self) -> bool:
        if self._had_event:
            self._had_event = False
            self._quiet_since_ms = None
        elif self._quiet_since_ms is None:
            self._quiet_since_ms = self.clock()
        else:
            return self.clock() - self._quiet_since_ms > self.timeout_ms
        return False
