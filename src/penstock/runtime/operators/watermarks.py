"""Timestamps and watermarks that are assigned in the middle of a stream."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.split_watermarks import SplitWatermarks, WatermarkEmitter

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

_STREAM = ""
"""The id of the only split, which is the operator's whole input."""


class TimestampsAndWatermarksOperator(StreamOperator):
    """Gives each element its timestamp and lets the strategy's generator emit watermarks, as for a source's only split.

    Watermarks from upstream end here, except the last one, which means that the input has ended. The generator's
    periodic emission happens after a batch if the interval has passed, and at the end of every epoch; with interval 0,
    after every element.
    """

    def __init__(self, description: WatermarksDescription) -> None:
        self._description = description
        self._emitter = WatermarkEmitter(self)
        self._opened: SplitWatermarks | None = None
        """None in a task that had already finished when it was restored: such a task is not opened again."""
        self._memory: Any = None

    def open(self) -> None:
        self._opened = SplitWatermarks(self._description, self.context.clock, self.context.inlines_functions)
        if isinstance(self._memory, tuple):
            self._opened.restore(self._memory)
        elif self._memory is not None:  # Version 0.1 saved only the generator.
            self._opened.restore_generator(_STREAM, self._memory)
        self._opened.add(_STREAM)

    @property
    def _watermarks(self) -> SplitWatermarks:
        assert self._opened is not None, "the operator is not open"
        return self._opened

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        for values, timestamps, _ in self._watermarks.stamped(_STREAM, batch.values, batch.timestamps):
            self.output.collect_batch(values, timestamps)
            self._watermarks.settle(self._emitter)
        self.advance_processing_time(self.context.clock())

    def takes_columns(self) -> bool:
        return self._is_on_columns and self.output.takes_columns()

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        timestamps = self._watermarks.stamped_columns(_STREAM, columns) if self._is_on_columns else None
        if timestamps is None:
            super().process_columns(columns, input_index)
            return
        self.output.collect_columns(replace(columns, timestamps=timestamps))
        self.advance_processing_time(self.context.clock())

    @cached_property
    def _is_on_columns(self) -> bool:
        return self.context.inlines_functions and self._watermarks.takes_columns(_STREAM)

    def process_watermark(self, watermark: int) -> None:
        if watermark == MAX_LONG_VALUE:
            self._emitter.emit_watermark(watermark)

    def process_status(self, idle: bool) -> None:
        """Ignore the status of the input: as in Flink, only the generator decides about idleness."""

    def advance_processing_time(self, now_ms: int) -> None:
        self._watermarks.advance()
        self._watermarks.settle(self._emitter)

    def end_epoch(self) -> None:
        self._watermarks.emit_periodic()
        self._watermarks.settle(self._emitter)

    def next_processing_time(self) -> int | None:
        if self._opened is None or self.current_watermark == MAX_LONG_VALUE:
            return None
        return self._opened.next_time()

    def task_memory(self) -> Any:
        return self._memory if self._opened is None else self._opened.memory(), self._emitter.is_idle

    def restore_task_memory(self, memory: Any) -> None:
        self._memory, _ = memory  # Whether it was idle does not count: idleness starts anew.
