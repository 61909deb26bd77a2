"""Sink V2 in a subtask: the writer, its state, and its committables, which the driver commits."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from penstock.datastream.connectors.sink_v2 import (
    BatchSinkWriter,
    JobInfo,
    ProcessingTimeService,
    SinkWriter,
    SinkWriterContext,
    SupportsWriterState,
    TaskInfo,
    WriterInitContext,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.graph.descriptions import SinkWriterDescription
from penstock.metrics import MetricGroup
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import OperatorContext, StreamOperator

WRITER_STATE = "writer_raw_states"
"""The state has this name in Flink, too."""


class _WriterContext(SinkWriterContext):
    def __init__(self, operator: SinkWriterOperator) -> None:
        self._operator = operator
        self.element_timestamp: int | None = None

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def timestamp(self) -> int | None:
        return self.element_timestamp


class _WriterTimers(ProcessingTimeService):
    """The processing-time timers of a writer. They fire between batches, in the order of their times."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._waiting: list[tuple[int, int, Callable[[int], None]]] = []
        self._registered = itertools.count()

    def get_current_processing_time(self) -> int:
        return self._clock()

    def register_timer(self, timestamp: int, callback: Callable[[int], None]) -> None:
        heapq.heappush(self._waiting, (timestamp, next(self._registered), callback))

    def next_timestamp(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def advance(self, now_ms: int) -> None:
        # A timer that a callback sets for a past time fires at the next call. Otherwise a callback that always sets one
        # would keep this loop running forever.
        due = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            due.append(heapq.heappop(self._waiting))
        for timestamp, _, callback in due:
            callback(timestamp)


class _InitContext(WriterInitContext):
    def __init__(self, context: OperatorContext, timers: _WriterTimers) -> None:
        self._context = context
        self._timers = timers

    def get_job_info(self) -> JobInfo:
        return JobInfo(self._context.task.job_id, self._context.task.job_name)

    def get_task_info(self) -> TaskInfo:
        task = self._context.task
        return TaskInfo(task.task_name, task.subtask, task.parallelism, task.max_parallelism, task.attempt)

    def get_restored_checkpoint_id(self) -> int | None:
        return self._context.restored_checkpoint_id

    def get_processing_time_service(self) -> ProcessingTimeService:
        return self._timers

    def metric_group(self) -> MetricGroup:
        return self._context.metric_group

    def takes_checkpoints(self) -> bool:
        return self._context.takes_checkpoints


class SinkWriterOperator(StreamOperator):
    """Writes with the sink's writer. The driver commits its committables, see `jobmaster.sinks.sink_commits`."""

    def __init__(self, description: SinkWriterDescription) -> None:
        self._sink = description.sink
        self._has_committer = description.has_committer
        self._writer: SinkWriter[Any] | None = None
        self._is_finished = False

    def open(self) -> None:
        self._writer_context = _WriterContext(self)
        self._timers = _WriterTimers(self.context.clock)
        context = _InitContext(self.context, self._timers)
        if isinstance(self._sink, SupportsWriterState) and self.context.restored_checkpoint_id is not None:
            self._writer = self._sink.restore_writer(context, list(self._state().get()))
        else:
            self._writer = self._sink.create_writer(context)

    @property
    def writer(self) -> SinkWriter[Any]:
        assert self._writer is not None, "the operator is not open"
        return self._writer

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        writer, context = self.writer, self._writer_context
        if isinstance(writer, BatchSinkWriter):
            writer.write_batch(batch.values, batch.timestamps)
        else:
            for at, value in enumerate(batch.values):
                context.element_timestamp = None if batch.timestamps is None else batch.timestamps[at]
                writer.write(value, context)
        self.context.increment("numRecordsSend", len(batch.values))

    def process_watermark(self, watermark: int) -> None:
        super().process_watermark(watermark)
        self.writer.write_watermark(watermark)

    def advance_processing_time(self, now_ms: int) -> None:
        super().advance_processing_time(now_ms)
        self._timers.advance(now_ms)

    def next_processing_time(self) -> int | None:
        return self._timers.next_timestamp()

    def finish(self) -> None:
        self.writer.flush(True)
        self._is_finished = True

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        if not self._is_finished:
            self.writer.flush(False)
        return list(self.writer.prepare_commit()) if self._has_committer else []

    def snapshot_state(self, checkpoint_id: int) -> None:
        super().snapshot_state(checkpoint_id)
        if isinstance(self._sink, SupportsWriterState):
            self._state().update(list(self.writer.snapshot_state(checkpoint_id)))

    def waits_for_checkpoint(self) -> bool:
        return self._has_committer or super().waits_for_checkpoint()

    def _state(self) -> Any:
        return self.context.operator_state.get_list_state(ListStateDescriptor(WRITER_STATE))
