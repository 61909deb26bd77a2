"""How a stream gets event time: which timestamp an element has, and which watermarks follow from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from penstock.common.clocks import monotonic_ms
from penstock.common.time import Duration, to_milliseconds
from penstock.common.watermark_generator import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
)

__all__ = [
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "AssignerWithPunctuatedWatermarks",
    "TimestampAssigner",
    "WatermarkAlignment",
    "WatermarkGeneratorSupplier",
    "WatermarkStrategy",
]


class TimestampAssigner(ABC):
    """Gives each element its event time.

    >>> class ByField(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["at"]
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    >>> list(env.from_collection([{"at": 1000}]).assign_timestamps_and_watermarks(strategy).execute_and_collect())
    [{'at': 1000}]
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time of `value` in milliseconds since the epoch.

        `record_timestamp` is what the element carried so far: the source's timestamp, or the smallest 64-bit number.
        """


@dataclass(frozen=True)
class _FunctionTimestampAssigner(TimestampAssigner):
    """A plain function `(value, record_timestamp) -> milliseconds` as an assigner."""

    function: Callable[[Any, int], int]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


def plain_function_of(assigner: TimestampAssigner) -> Callable[[Any, int], int]:
    """What to call for a timestamp: directly the user's function, where the user gave one."""
    return assigner.function if isinstance(assigner, _FunctionTimestampAssigner) else assigner.extract_timestamp


class RecordTimestampAssigner(TimestampAssigner):
    """Keeps the timestamp the element already has: what a strategy without an assigner does."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp


@runtime_checkable
class WatermarkGeneratorSupplier(Protocol):
    """Makes one generator for each subtask."""

    def create_watermark_generator(self) -> WatermarkGenerator: ...


@dataclass(frozen=True)
class WatermarkAlignment:
    """Sources of a group wait for each other when one is more than `max_allowed_drift_ms` ahead."""

    group: str
    max_allowed_drift_ms: int
    update_interval_ms: int = 1000


@dataclass(frozen=True)
class WatermarkStrategy:
    """A timestamp assigner and a watermark generator, with optional idleness and alignment.

    Strategies are immutable: each `with_*` returns a new one and keeps everything set before.

    >>> strategy = (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    ...             .with_timestamp_assigner(lambda event, _: event["time_ms"])
    ...             .with_idleness(Duration.of_minutes(1)))
    >>> strategy.idle_timeout_ms
    60000
    """

    _generator_factory: Callable[[], WatermarkGenerator] = NoWatermarks
    _timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None
    is_assigner_lost_in_pyflink: bool = False
    """True if idleness or alignment was added after the assigner: PyFlink's strategies forget it then."""

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that never go back within a subtask of the source."""
        return WatermarkStrategy(AscendingTimestampsWatermarks)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """For elements whose timestamps are at most this far behind the largest one seen before them."""
        bound_ms = to_milliseconds(max_out_of_orderness)
        if bound_ms < 0:
            raise ValueError(f"max_out_of_orderness cannot be negative, got {bound_ms} ms")
        return WatermarkStrategy(partial(BoundedOutOfOrdernessWatermarks, bound_ms))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks at all: event-time windows and timers fire at the end of the input only."""
        return WatermarkStrategy(NoWatermarks)

    @staticmethod
    def for_generator(
        generator_supplier: Callable[[], WatermarkGenerator] | WatermarkGeneratorSupplier,
    ) -> WatermarkStrategy:
        """Watermarks by your own generator: give its class, or a function that makes a new one for each subtask."""
        if isinstance(generator_supplier, WatermarkGenerator):
            raise TypeError(
                "for_generator needs something that makes a generator for each subtask, got one generator of type "
                f"{type(generator_supplier).__name__}; pass the class or a function that returns a new one"
            )
        if isinstance(generator_supplier, WatermarkGeneratorSupplier):
            return WatermarkStrategy(generator_supplier.create_watermark_generator)
        if not callable(generator_supplier):
            raise TypeError(
                f"for_generator needs a class or function that makes a WatermarkGenerator, got {generator_supplier!r}"
            )
        return WatermarkStrategy(generator_supplier)

    @staticmethod
    def for_assigner(
        assigner: AssignerWithPeriodicWatermarks
        | AssignerWithPunctuatedWatermarks
        | AssignerWithPeriodicWatermarksWrapper,
    ) -> WatermarkStrategy:
        """The strategy of one of Flink's older assigners, which give timestamps and watermarks in one object."""
        if isinstance(assigner, AssignerWithPeriodicWatermarksWrapper):
            assigner = assigner.assigner
        return WatermarkStrategy(partial(_AssignerWatermarks, assigner), assigner)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Use this assigner: a TimestampAssigner, or a function `(value, record_timestamp) -> milliseconds`."""
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if isinstance(timestamp_assigner, type) or not callable(timestamp_assigner):
                raise TypeError(
                    "with_timestamp_assigner needs a TimestampAssigner object or a function (value, record_timestamp) "
                    f"-> milliseconds, got {timestamp_assigner!r}"
                )
            timestamp_assigner = _FunctionTimestampAssigner(timestamp_assigner)
        return replace(self, _timestamp_assigner=timestamp_assigner, is_assigner_lost_in_pyflink=False)

    @property
    def has_assigner(self) -> bool:
        """True if the strategy gives timestamps; elements keep those that they have otherwise."""
        return self._timestamp_assigner is not None

    def without_assigner(self) -> WatermarkStrategy:
        """The same, but elements keep the timestamps that they have."""
        return replace(self, _timestamp_assigner=None, is_assigner_lost_in_pyflink=False)

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Mark a subtask idle after this long without an element, so that others' watermarks need not wait for it."""
        timeout_ms = to_milliseconds(idle_timeout)
        if timeout_ms <= 0:
            raise ValueError(f"idle_timeout must be positive, got {timeout_ms} ms")
        return replace(self, idle_timeout_ms=timeout_ms, is_assigner_lost_in_pyflink=self.has_assigner)

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
        """Make sources of the same group wait for each other; `update_interval` is one second unless given."""
        drift_ms = to_milliseconds(max_allowed_watermark_drift)
        interval_ms = 1000 if update_interval is None else to_milliseconds(update_interval)
        alignment = WatermarkAlignment(watermark_group, drift_ms, interval_ms)
        return replace(self, alignment=alignment, is_assigner_lost_in_pyflink=self.has_assigner)

    @property
    def does_nothing(self) -> bool:
        """True for `no_watermarks()` as it is: no timestamps are assigned, no watermarks made, no idleness reported."""
        return self == WatermarkStrategy.no_watermarks()

    def create_watermark_generator(self, clock: Callable[[], int] = monotonic_ms) -> WatermarkGenerator:
        """A new generator for one subtask, with idleness if the strategy has it; `clock` gives milliseconds."""
        generator = self._generator_factory()
        if self.idle_timeout_ms is None:
            return generator
        return WatermarksWithIdleness(generator, self.idle_timeout_ms, clock)

    def create_timestamp_assigner(self) -> TimestampAssigner:
        """The assigner; one that keeps the record's timestamp if none was given."""
        return self._timestamp_assigner or RecordTimestampAssigner()


class AssignerWithPeriodicWatermarks(TimestampAssigner):
    """Flink's older interface: timestamps, and a watermark asked for from time to time."""

    @abstractmethod
    def get_current_watermark(self) -> int | None:
        """The current watermark; None as long as there is none."""


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """Flink's older interface: timestamps, and a watermark after certain elements."""

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> int | None:
        """The watermark that follows this element; None if none does."""


@dataclass(frozen=True)
class AssignerWithPeriodicWatermarksWrapper:
    """Holds an AssignerWithPeriodicWatermarks; there is nothing to wrap in Python, the name is for compatibility."""

    assigner: AssignerWithPeriodicWatermarks


@dataclass
class _AssignerWatermarks(WatermarkGenerator):
    """The watermarks of an older assigner, as a generator."""

    assigner: AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if isinstance(self.assigner, AssignerWithPunctuatedWatermarks):
            self._emit(self.assigner.check_and_get_next_watermark(event, event_timestamp), output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if isinstance(self.assigner, AssignerWithPeriodicWatermarks):
            self._emit(self.assigner.get_current_watermark(), output)

    @staticmethod
    def _emit(timestamp: int | None, output: WatermarkOutput) -> None:
        if timestamp is not None:
            output.emit_watermark(timestamp)


def connect_with_assigner(generator: WatermarkGenerator, assigner: TimestampAssigner) -> None:
    """Let the restored generator of an older assigner ask the assigner that gets the elements from now on."""
    older = (AssignerWithPeriodicWatermarks, AssignerWithPunctuatedWatermarks)
    if isinstance(generator, _AssignerWatermarks) and isinstance(assigner, older):
        generator.assigner = assigner
