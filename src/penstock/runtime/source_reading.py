"""Runs the reader of a Source in a subtask, in each epoch as far as the driver allows."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.source_v2 import (
    InputStatus,
    ReaderOutput,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ListStateDescriptor
from penstock.graph.descriptions import SplitSourceDescription
from penstock.metrics import MetricGroup
from penstock.runtime.batch import Batch, Output
from penstock.runtime.element_copies import copied
from penstock.runtime.operators.base import OperatorContext
from penstock.runtime.sources import READ_BATCH_RECORDS, SourceOperator, SourceReport
from penstock.runtime.split_watermarks import SplitWatermark, SplitWatermarks, WatermarkEmitter
from penstock.runtime.state.codec import encode_state

READER_STATE = "SourceReaderState"
"""Flink's name for the state that holds the splits."""

_NO_SPLIT = ""
"""The split of records that a reader emits without naming a split."""
_LONGEST_WAIT_S = 0.1
_UNLIMITED = sys.maxsize


@dataclass(frozen=True)
class ReadOrder:
    """What the driver wants of a reader in this epoch."""

    splits: tuple[Any, ...] = ()
    has_all_splits: bool = False
    """True if the reader will get no more splits."""
    events: tuple[Any, ...] = ()
    max_records: int | None = None
    """About how many records to read; None to read to the end of the input."""
    max_ms: int = 0
    idle_poll_ms: int = 100
    reads: bool = True
    """False if the order only announces that the source ends."""
    max_watermark: int | None = None
    """Splits whose watermark is beyond this are paused until the other sources of the same group have caught up."""
    aligned_every_ms: int = 1000
    """How soon to check again if all splits are paused."""


class _Run:
    """Consecutive records of one split."""

    def __init__(self, split_id: str) -> None:
        self.split_id = split_id
        self.values: list[Any] = []
        self.timestamps: list[int | None] | None = None

    def add(self, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if timestamps is not None and self.timestamps is None:
            self.timestamps = [None] * len(self.values)
        self.values.extend(records)
        if self.timestamps is not None:
            self.timestamps.extend([None] * len(records) if timestamps is None else timestamps)


class _SplitOutput(SourceOutput):
    def __init__(self, reader_output: _ReaderOutput, split_id: str, watermark: SplitWatermark) -> None:
        self._reader_output = reader_output
        self._split_id = split_id
        self._watermark = watermark

    def collect(self, record: Any, timestamp: int | None = None) -> None:
        self._reader_output.add(self._split_id, (copied(record),), None if timestamp is None else (timestamp,))

    def collect_batch(self, records: Sequence[Any], timestamps: Sequence[int | None] | None = None) -> None:
        self._reader_output.add(self._split_id, records, timestamps)

    def emit_watermark(self, timestamp: int) -> None:
        self._watermark.emit_watermark(timestamp)

    def mark_idle(self) -> None:
        self._watermark.mark_idle()

    def mark_active(self) -> None:
        self._watermark.mark_active()


class _ReaderOutput(ReaderOutput):
    """Gathers the records that a reader emits until the operator takes them."""

    def __init__(self, watermarks: SplitWatermarks, output: Output) -> None:
        self._watermarks = watermarks
        self._output = output
        self._outputs: dict[str, _SplitOutput] = {}
        self.released: list[str] = []
        """Splits that have ended, but whose watermarks still count."""
        self._runs: list[_Run] = []
        self.size = 0
        self.most = _UNLIMITED
        """How many records the epoch may still take, counted from the last `take`."""

    def create_output_for_split(self, split_id: str) -> SourceOutput:
        if split_id not in self._outputs:
            self._outputs[split_id] = _SplitOutput(self, split_id, self._watermarks.add(split_id))
        return self._outputs[split_id]

    def release_output_for_split(self, split_id: str) -> None:
        self._outputs.pop(split_id, None)
        self.released.append(split_id)

    def add(self, split_id: str, records: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if not records:
            return
        if not self._runs or self._runs[-1].split_id != split_id:
            self._runs.append(_Run(split_id))
        self._runs[-1].add(records, timestamps)
        self.size += len(records)

    def take(self) -> Iterator[Batch]:
        """The gathered records, in batches that end where the watermark may rise."""
        runs, self._runs = self._runs, []
        self.most, self.size = self.most - self.size, 0
        for run in runs:
            yield from self._watermarks.stamped(run.split_id, run.values, run.timestamps)

    # Records, watermarks and idleness that belong to no split.

    def collect(self, record: Any, timestamp: int | None = None) -> None:
        self.create_output_for_split(_NO_SPLIT).collect(record, timestamp)

    def collect_batch(self, records: Sequence[Any], timestamps: Sequence[int | None] | None = None) -> None:
        self.create_output_for_split(_NO_SPLIT).collect_batch(records, timestamps)

    def emit_watermark(self, timestamp: int) -> None:
        self.create_output_for_split(_NO_SPLIT).emit_watermark(timestamp)

    def mark_idle(self) -> None:
        self.create_output_for_split(_NO_SPLIT).mark_idle()

    def mark_active(self) -> None:
        self.create_output_for_split(_NO_SPLIT).mark_active()

    def room(self) -> int:
        return max(self.most - self.size, 1)

    def output(self, tag: OutputTag, value: Any) -> None:
        self._output.collect_side(tag.tag_id, value, None)


class _ReaderContext(SourceReaderContext):
    """Keeps the reader's requests and events for the driver until the epoch ends."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self.requests = 0
        self.events: list[Any] = []

    def get_index_of_subtask(self) -> int:
        return self._context.task.subtask

    def current_parallelism(self) -> int:
        return self._context.task.parallelism

    def send_split_request(self) -> None:
        self.requests += 1

    def send_source_event_to_coordinator(self, source_event: Any) -> None:
        self.events.append(source_event)

    def get_current_processing_time(self) -> int:
        return self._context.clock()

    def metric_group(self) -> MetricGroup:
        return self._context.metric_group


class SourceReaderOperator(SourceOperator):
    """Polls the reader in every epoch. The reader's splits, with their offsets, are operator state."""

    def __init__(self, description: SplitSourceDescription) -> None:
        self._source = description.source
        self._description = description.watermarks
        self._reader: SourceReader[Any, Any] | None = None
        self._reader_context: _ReaderContext | None = None
        self._watermarks: SplitWatermarks | None = None
        """None in a task that had finished before it was restored, and so is not opened again."""
        self._memory: Any = None
        self._reader_memory: Any = None
        self._emitter = WatermarkEmitter(self)
        self._knows_all_splits = False
        self._is_drained = False
        self._status = InputStatus.NOTHING_AVAILABLE
        self._records = 0
        self._idle_poll_ms = ReadOrder.idle_poll_ms
        self._paused: set[str] = set()
        """Splits that the reader was asked to pause."""
        self._aligned_again_ms: int | None = None
        """When to check again whether other sources have caught up; None unless all splits are paused."""

    def open(self) -> None:
        self._watermarks = SplitWatermarks(self._description, self.context.clock, self.context.inlines_functions)
        if self._memory is not None:
            self._watermarks.restore(self._memory)
        self._output = _ReaderOutput(self._watermarks, self.output)
        self._reader_context = _ReaderContext(self.context)
        self._reader = self._source.create_reader(self._reader_context)
        if self._reader_memory is not None:
            self._reader.restore_memory(self._reader_memory)
        restored = list(self._state().get())
        if restored:
            self._add_splits(restored)
        self.reader.start()

    @property
    def reader(self) -> SourceReader[Any, Any]:
        assert self._reader is not None, "the operator is not open"
        return self._reader

    @property
    def watermarks(self) -> SplitWatermarks:
        assert self._watermarks is not None, "the operator is not open"
        return self._watermarks

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self, payload: ReadOrder) -> Iterator[Batch]:
        self._take_order(payload)
        if not payload.reads:
            self._is_drained = True
            self._status = InputStatus.END_OF_INPUT
        elif self._status is InputStatus.END_OF_INPUT:
            return  # As in Flink, a reader that has ended is not polled again, also not in the last epoch.
        elif self._is_too_far_ahead(payload):
            self._status = InputStatus.NOTHING_AVAILABLE
        else:
            yield from self._poll(payload)

    def end_reading(self) -> None:
        self._emitter.send_status(False)

    def _take_order(self, order: ReadOrder) -> None:
        self._idle_poll_ms = order.idle_poll_ms
        if order.splits:
            self._add_splits(list(order.splits))
        if order.has_all_splits and not self._knows_all_splits:
            self._knows_all_splits = True
            self.reader.notify_no_more_splits()
        for event in order.events:
            self.reader.handle_source_events(event)

    def _add_splits(self, splits: list[Any]) -> None:
        for split in splits:
            # A split holds the watermark back from now on, even before its first record.
            self._output.create_output_for_split(split.split_id())
        self.reader.add_splits(splits)

    def _is_too_far_ahead(self, order: ReadOrder) -> bool:
        """Pause and resume splits for watermark alignment; True if all are paused."""
        ahead = set() if order.max_watermark is None else self.watermarks.ahead_of(order.max_watermark)
        is_all = bool(ahead) and ahead == self.watermarks.split_ids()
        if type(self.reader).pause_or_resume_splits is SourceReader.pause_or_resume_splits:
            # This reader cannot pause single splits, so all of them are read as long as one is not ahead.
            ahead = ahead if is_all else set()
        if ahead != self._paused:
            self.reader.pause_or_resume_splits(sorted(ahead - self._paused), sorted(self._paused - ahead))
            self._paused = ahead
        self.watermarks.pause(ahead)
        self._aligned_again_ms = self.context.clock() + order.aligned_every_ms if is_all else None
        return is_all

    def _poll(self, order: ReadOrder) -> Iterator[Batch]:
        deadline = time.monotonic() + order.max_ms / 1000
        self._output.most = _UNLIMITED if order.max_records is None else order.max_records
        while True:
            self._status = self.reader.poll_next(self._output)
            has_more = self._status is InputStatus.MORE_AVAILABLE
            if self._output.size >= READ_BATCH_RECORDS or not has_more:
                yield from self._taken()
            if order.max_records is None:
                if self._status is InputStatus.END_OF_INPUT:
                    return
                if not has_more:
                    self._wait()
            elif not has_more or self._output.size >= self._output.most or time.monotonic() >= deadline:
                break
        yield from self._taken()

    def _taken(self) -> Iterator[Batch]:
        for batch in self._output.take():
            self._records += len(batch.values)
            yield batch
            self.watermarks.settle(self._emitter)
        if self._output.released:
            self._forget_released()
        self.watermarks.advance()
        self.watermarks.settle(self._emitter)

    def _forget_released(self) -> None:
        # The last records of the splits that have ended still count for the watermark.
        self.watermarks.emit_periodic()
        self.watermarks.settle(self._emitter)
        for split_id in self._output.released:
            self.watermarks.remove(split_id)
        self._output.released.clear()

    def _wait(self) -> None:
        """Wait until the reader may have records again: in batch mode, the epoch lasts until the end of the input."""
        now_ms = self.context.clock()
        due_ms = self.reader.next_poll_time(now_ms, self._idle_poll_ms)
        if due_ms is None:
            raise JobExecutionError(
                f"{type(self.reader).__name__}.poll_next returned NOTHING_AVAILABLE although the reader has all its "
                f"splits; a bounded reader must return END_OF_INPUT then"
            )
        time.sleep(min(max(due_ms - now_ms, 1) / 1000, _LONGEST_WAIT_S))

    # --- watermarks ------------------------------------------------------------------------------------------------

    def advance_processing_time(self, now_ms: int) -> None:
        self.watermarks.advance()
        self.watermarks.settle(self._emitter)

    def end_epoch(self) -> None:
        self.watermarks.emit_periodic()
        self.watermarks.settle(self._emitter)

    def next_processing_time(self) -> int | None:
        if self._reader is None:
            return None
        times = [self.watermarks.next_time(), self._next_poll_time()]
        return min((each for each in times if each is not None), default=None)

    def _next_poll_time(self) -> int | None:
        now_ms = self.context.clock()
        if self._aligned_again_ms is not None:
            return self._aligned_again_ms
        match self._status:
            case InputStatus.MORE_AVAILABLE:
                return now_ms
            case InputStatus.NOTHING_AVAILABLE:
                return self.reader.next_poll_time(now_ms, self._idle_poll_ms)
        return None

    # --- checkpoints, and reports to the driver --------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> None:
        super().snapshot_state(checkpoint_id)
        self._state().update(list(self.reader.snapshot_state(checkpoint_id)))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_aborted(checkpoint_id)
        if self._reader is not None:
            self._reader.notify_checkpoint_aborted(checkpoint_id)

    def waits_for_checkpoint(self) -> bool:
        heard = SourceReader.notify_checkpoint_complete
        listens = self._reader is not None and type(self._reader).notify_checkpoint_complete is not heard
        return listens or super().waits_for_checkpoint()

    def finish(self) -> None:
        # After the end of the input, no splits are left to restore. The task may be closed before the next checkpoint,
        # so they are dropped here. If the job is drained, this epoch ends with a savepoint, which holds the splits.
        if not self._is_drained:
            self._state().clear()

    def take_report(self) -> SourceReport | None:
        context, records, self._records = self._reader_context, self._records, 0
        if context is None:
            return None
        requests, context.requests = context.requests, 0
        events, context.events = context.events, []
        return SourceReport(
            requests,
            socket.gethostname() if requests else "",
            encode_state(events) if events else None,
            self._status is InputStatus.END_OF_INPUT,
            self._status is InputStatus.MORE_AVAILABLE,
            records,
            None if self._emitter.is_idle or self.current_watermark == MIN_LONG_VALUE else self.current_watermark,
        )

    def task_memory(self) -> Any:
        watermarks = self._memory if self._watermarks is None else self._watermarks.memory()
        reader = self._reader_memory if self._reader is None else self._reader.memory()
        return watermarks, self._emitter.is_idle, reader

    def restore_task_memory(self, memory: Any) -> None:
        self._memory, _, *more = memory  # Whether it was idle does not count: idleness starts anew.
        self._reader_memory = more[0] if more else None  # Earlier versions did not save the reader's memory.

    def _state(self) -> Any:
        return self.context.operator_state.get_list_state(ListStateDescriptor(READER_STATE))
