"""Timestamps and watermarks, assigned at a source or in the middle of a stream."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.timestamps import are_whole, whole_milliseconds
from penstock.common.watermark_generator import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
    time_of,
)
from penstock.common.watermark_strategy import RecordTimestampAssigner, TimestampAssigner, plain_function_of
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.batch import Batch
from penstock.runtime.generated_loop import EachLoop
from penstock.runtime.operators.base import StreamOperator

if TYPE_CHECKING:
    from penstock.runtime.column_functions import ColumnFunction
    from penstock.runtime.columns import Array, Columns

# The generators that only look at the largest timestamp: one call for a whole batch gives what a call for each gives.
BY_LARGEST_TIMESTAMP = (BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks, NoWatermarks)


class _Emitter(WatermarkOutput):
    """Flink's WatermarkEmitter: watermarks only rise, and a watermark ends idleness."""

    def __init__(self, operator: TimestampsAndWatermarksOperator) -> None:
        self._operator = operator

    def emit_watermark(self, watermark: Any) -> None:
        timestamp = time_of(watermark)
        if timestamp > self._operator.current_watermark:
            self.mark_active()
            self._operator.send_watermark(timestamp)

    def mark_idle(self) -> None:
        self._operator.send_status(True)

    def mark_active(self) -> None:
        self._operator.send_status(False)


class TimestampsAndWatermarksOperator(StreamOperator):
    """Gives each element its timestamp and lets the strategy's generator emit watermarks.

    Watermarks from upstream end here, except the last one, which says that the input has ended. Periodic emission
    happens at the end of a batch once the interval has passed, and at the end of every epoch; interval 0 means after
    every element.
    """

    def __init__(self, description: WatermarksDescription) -> None:
        self._strategy = description.strategy
        self._interval_ms = description.auto_watermark_interval_ms
        self._only_final = description.only_final
        self._generator: WatermarkGenerator | None = None
        self._is_idle = False

    def open(self) -> None:
        self._extraction = TimestampExtraction(self._strategy.create_timestamp_assigner())
        if self._generator is None:
            self._generator = (
                NoWatermarks() if self._only_final else self._strategy.create_watermark_generator(self.context.clock)
            )
        elif isinstance(self._generator, WatermarksWithIdleness):
            self._generator.clock = self.context.clock
        self._emitter = _Emitter(self)
        self._last_emit_ms = self.context.clock()
        self._emits_by_largest = isinstance(self._generator, BY_LARGEST_TIMESTAMP) and self._interval_ms > 0

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        timestamps = self._extraction.timestamps_of(batch)
        if self._emits_by_largest:
            self.output.collect_batch(batch.values, timestamps)
            self._generator_call(batch.values[-1], largest_of(timestamps))
        else:
            self._process_one_by_one(batch.values, timestamps)
        if self.context.clock() - self._last_emit_ms >= self._interval_ms:
            self._emit_periodic()

    def takes_columns(self) -> bool:
        return self._is_on_columns and self.output.takes_columns()

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        timestamps = self._extraction.column_of(columns) if self._is_on_columns else None
        if timestamps is None:
            super().process_columns(columns, input_index)
            return
        self.output.collect_columns(replace(columns, timestamps=timestamps))
        self._generator_call(columns.taken(slice(-1, None)).batch().values[0], int(timestamps.max()))
        if self.context.clock() - self._last_emit_ms >= self._interval_ms:
            self._emit_periodic()

    @cached_property
    def _is_on_columns(self) -> bool:
        is_allowed = self._emits_by_largest and self.context.inlines_functions
        return is_allowed and self._extraction.on_columns is not None

    def _process_one_by_one(self, values: list[Any], timestamps: list[int | None]) -> None:
        collect = self.output.collect
        for value, timestamp in zip(values, timestamps, strict=True):
            collect(value, timestamp)
            self._generator_call(value, MIN_LONG_VALUE if timestamp is None else timestamp)
            if self._interval_ms == 0:
                self._emit_periodic()

    def _generator_call(self, value: Any, timestamp: int) -> None:
        assert self._generator is not None
        self._generator.on_event(value, timestamp, self._emitter)

    def _emit_periodic(self) -> None:
        assert self._generator is not None
        self._generator.on_periodic_emit(self._emitter)
        self._last_emit_ms = self.context.clock()

    def send_watermark(self, watermark: int) -> None:
        self.current_watermark = watermark
        self.output.emit_watermark(watermark)

    def send_status(self, idle: bool) -> None:
        if idle != self._is_idle:
            self._is_idle = idle
            self.output.emit_status(idle)

    def process_watermark(self, watermark: int) -> None:
        if watermark == MAX_LONG_VALUE and self.current_watermark != MAX_LONG_VALUE:
            self.send_status(False)
            self.send_watermark(watermark)

    def process_status(self, idle: bool) -> None:
        """The generator alone decides about idleness, as in Flink."""

    def advance_processing_time(self, now_ms: int) -> None:
        if now_ms - self._last_emit_ms >= self._interval_ms:
            self._emit_periodic()

    def end_epoch(self) -> None:
        if self.current_watermark != MAX_LONG_VALUE:
            self._emit_periodic()

    def next_processing_time(self) -> int | None:
        if self.current_watermark == MAX_LONG_VALUE or isinstance(self._generator, BY_LARGEST_TIMESTAMP):
            return None
        if isinstance(self._generator, WatermarksWithIdleness) and self._is_idle:
            return None
        return self.context.clock() + max(self._interval_ms, 1)

    def task_memory(self) -> Any:
        generator = copy.copy(self._generator)
        if isinstance(generator, WatermarksWithIdleness):
            generator.clock = int  # The clock belongs to the process; `open` puts the new one in.
        return generator, self._is_idle

    def restore_task_memory(self, memory: Any) -> None:
        self._generator, self._is_idle = memory


class TimestampExtraction:
    """What an assigner says of each element; an element without a timestamp shows it the smallest number."""

    def __init__(self, assigner: TimestampAssigner) -> None:
        self.keeps_timestamps = isinstance(assigner, RecordTimestampAssigner)
        self._giver = f"timestamp assigner {type(assigner).__name__}"
        self._extract = plain_function_of(assigner)
        self._extract_all = EachLoop(self._extract, "timestamp extraction", MIN_LONG_VALUE)

    @cached_property
    def on_columns(self) -> ColumnFunction | None:
        """The assigner on columns; None if it must have the elements one by one."""
        from penstock.runtime.column_functions import column_function

        return None if self.keeps_timestamps else column_function(self._extract, parameters=2)

    def column_of(self, columns: Columns) -> Array | None:
        """The new timestamps; None if the assigner must have the elements one by one."""
        if self.on_columns is None or columns.timestamps is not None:
            return None
        return self.on_columns.integers(columns, MIN_LONG_VALUE)

    def timestamps_of(self, batch: Batch) -> list[int | None]:
        if self.keeps_timestamps:
            return list(batch.timestamps) if batch.timestamps is not None else [None] * len(batch.values)
        extracted = self._extracted(batch)
        return extracted if are_whole(extracted) else self._whole(batch.values, extracted)

    def _extracted(self, batch: Batch) -> list[int | None]:
        if batch.timestamps is None:
            return self._extract_all(batch.values)
        extracted: list[int | None] = []
        append, extract = extracted.append, self._extract
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            append(extract(value, MIN_LONG_VALUE if timestamp is None else timestamp))
        return extracted

    def _whole(self, values: list[Any], timestamps: list[Any]) -> list[int | None]:
        whole: list[int | None] = []
        # An error shows the record, found as `value` in this frame.
        for value, timestamp in zip(values, timestamps, strict=True):  # noqa: B007
            whole.append(whole_milliseconds(timestamp, self._giver))
        return whole


def largest_of(timestamps: list[int | None]) -> int:
    try:
        largest = max(timestamps)  # type: ignore[type-var]
    except TypeError:  # Some elements have a timestamp and some have none.
        return max(MIN_LONG_VALUE if timestamp is None else timestamp for timestamp in timestamps)
    return MIN_LONG_VALUE if largest is None else largest
