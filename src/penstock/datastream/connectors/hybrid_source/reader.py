"""A HybridSource in a subtask: the reader of the source that is being read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.datastream.connectors.hybrid_source.protocol import (
    HybridSourceSplit,
    OfSource,
    ReaderFinished,
    SwitchSource,
    prefixed_id,
)
from penstock.datastream.connectors.source_v2 import (
    InputStatus,
    ReaderOutput,
    Source,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from penstock.datastream.output_tag import OutputTag
from penstock.metrics import MetricGroup


@dataclass
class _Progress:
    """What a reader has received from one enumerator, and how far it is: its memory."""

    run: str = ""
    last_allowed: int = -1
    made_sources: dict[int, Source[Any, Any, Any]] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    """Sources of which all splits are here."""
    index: int = -1
    has_ended: bool = False
    """True if the current source has, for this reader."""


class HybridSourceReader(SourceReader[Any, HybridSourceSplit]):
    """Wraps the reader of the source that is being read, and keeps what it has received about later ones."""

    def __init__(self, context: SourceReaderContext, sources: Sequence[Source[Any, Any, Any] | None]) -> None:
        self._context = context
        self._sources = sources
        """None where a factory makes the source: it comes with the order to switch to it."""
        self._progress = _Progress()
        self._reader: SourceReader[Any, Any] | None = None
        self._reader_memory: Any = None
        self._waiting: defaultdict[int, list[SourceSplit]] = defaultdict(list)
        """Splits of sources that were not begun, by the source's number."""

    # --- reading ---------------------------------------------------------------------------------------------------

    def poll_next(self, output: ReaderOutput) -> InputStatus:
        self._begin_again()
        if self._reader is None:
            return InputStatus.NOTHING_AVAILABLE
        if not self._progress.has_ended:
            status = self._reader.poll_next(_InnerOutput(output, self._progress.index))
            if status is not InputStatus.END_OF_INPUT:
                return status
            self._progress.has_ended = True
            if not self._is_last():
                self._context.send_source_event_to_coordinator(ReaderFinished(self._progress.index))
        if self._is_last():
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE if self._switch() else InputStatus.NOTHING_AVAILABLE

    def _begin_again(self) -> None:
        """Begin where the reader in the former process was, if there was one."""
        if self._reader is None and self._progress.index >= 0:
            self._begin()

    def _is_last(self) -> bool:
        return self._progress.index == len(self._sources) - 1

    def _switch(self) -> bool:
        """Begin with the next source, if that is allowed and the current one has ended."""
        progress = self._progress
        if progress.last_allowed <= progress.index or not (progress.has_ended or progress.index < 0):
            return False
        # The first source of a reader that is new need not be the first of all.
        progress.index = progress.last_allowed if progress.index < 0 else progress.index + 1
        progress.has_ended = False
        self.close()
        self._begin()
        return True

    def _begin(self) -> None:
        index = self._progress.index
        source = self._sources[index] or self._progress.made_sources[index]
        self._reader = reader = source.create_reader(_InnerReaderContext(self._context, index))
        if self._reader_memory is not None:
            reader.restore_memory(self._reader_memory)
            self._reader_memory = None
        if index in self._waiting:
            reader.add_splits(self._waiting.pop(index))
        reader.start()
        if index in self._progress.complete:
            reader.notify_no_more_splits()

    def next_poll_time(self, now_ms: int, idle_poll_interval_ms: int) -> int | None:
        if self._reader is None or self._progress.has_ended:
            return None  # Until the enumerator says to switch.
        return self._reader.next_poll_time(now_ms, idle_poll_interval_ms)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    # --- what the enumerator says ----------------------------------------------------------------------------------

    def add_splits(self, splits: list[HybridSourceSplit]) -> None:
        now = []
        for each in splits:
            if self._reader is not None and each.source_index == self._progress.index:
                now.append(each.split)
            else:
                self._waiting[each.source_index].append(each.split)
        if now and self._reader is not None:
            self._reader.add_splits(now)

    def pause_or_resume_splits(self, splits_to_pause: list[str], splits_to_resume: list[str]) -> None:
        self._begin_again()
        if self._reader is not None:
            prefix = prefixed_id(self._progress.index, "")
            pause, resume = (
                [split_id.removeprefix(prefix) for split_id in split_ids if split_id.startswith(prefix)]
                for split_ids in (splits_to_pause, splits_to_resume)
            )
            self._reader.pause_or_resume_splits(pause, resume)

    def notify_no_more_splits(self) -> None:
        """Does nothing: events say so for each source."""

    def handle_source_events(self, source_event: Any) -> None:
        index = source_event.source_index
        if isinstance(source_event, SwitchSource):
            self._allow(source_event)
            return
        self._begin_again()
        if isinstance(source_event, OfSource):
            if self._reader is not None and index == self._progress.index:
                self._reader.handle_source_events(source_event.event)
        elif index not in self._progress.complete:
            self._progress.complete.add(index)
            if self._reader is not None and index == self._progress.index:
                self._reader.notify_no_more_splits()

    def _allow(self, order: SwitchSource) -> None:
        if order.run != self._progress.run:
            # Another enumerator: it has sent this reader nothing yet, and what came before is void.
            self._progress = _Progress(order.run)
            self._reader_memory = None
        self._progress.last_allowed = order.source_index
        if order.made_source is not None:
            self._progress.made_sources[order.source_index] = order.made_source
        self._begin_again()
        self._switch()

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> list[HybridSourceSplit]:
        found = [HybridSourceSplit(index, split) for index, splits in self._waiting.items() for split in splits]
        if self._reader is not None:
            index = self._progress.index
            found += [HybridSourceSplit(index, split) for split in self._reader.snapshot_state(checkpoint_id)]
        return found

    def memory(self) -> Any:
        inner = self._reader_memory if self._reader is None else self._reader.memory()
        return replace(self._progress, complete=set(self._progress.complete)), inner

    def restore_memory(self, memory: Any) -> None:
        self._progress, self._reader_memory = memory

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._reader.notify_checkpoint_aborted(checkpoint_id)


class _InnerReaderContext(SourceReaderContext):
    """What the reader of one of the sources gets."""

    def __init__(self, context: SourceReaderContext, source_index: int) -> None:
        self._context = context
        self._index = source_index

    def get_index_of_subtask(self) -> int:
        return self._context.get_index_of_subtask()

    def current_parallelism(self) -> int:
        return self._context.current_parallelism()

    def send_split_request(self) -> None:
        self._context.send_split_request()

    def send_source_event_to_coordinator(self, source_event: Any) -> None:
        self._context.send_source_event_to_coordinator(OfSource(self._index, source_event))

    def get_current_processing_time(self) -> int:
        return self._context.get_current_processing_time()

    def metric_group(self) -> MetricGroup:
        return self._context.metric_group()


class _InnerOutput(ReaderOutput):
    """An output that knows splits by their names in the whole hybrid source."""

    def __init__(self, output: ReaderOutput, source_index: int) -> None:
        self._output = output
        self._index = source_index

    def create_output_for_split(self, split_id: str) -> SourceOutput:
        return self._output.create_output_for_split(prefixed_id(self._index, split_id))

    def release_output_for_split(self, split_id: str) -> None:
        self._output.release_output_for_split(prefixed_id(self._index, split_id))

    def room(self) -> int:
        return self._output.room()

    def output(self, tag: OutputTag, value: Any) -> None:
        self._output.output(tag, value)

    def collect(self, record: Any, timestamp: int | None = None) -> None:
        self._output.collect(record, timestamp)

    def collect_batch(self, records: Sequence[Any], timestamps: Sequence[int | None] | None = None) -> None:
        self._output.collect_batch(records, timestamps)

    def emit_watermark(self, timestamp: int) -> None:
        self._output.emit_watermark(timestamp)

    def mark_idle(self) -> None:
        self._output.mark_idle()

    def mark_active(self) -> None:
        self._output.mark_active()
