"""Sources read one after the other as one: history from files, then what goes on from Kafka."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    InputStatus,
    ReaderOutput,
    Source,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.output_tag import OutputTag
from penstock.metrics import MetricGroup

__all__ = [
    "HybridSource",
    "HybridSourceBuilder",
    "SourceSwitchContext",
]


@dataclass(frozen=True)
class HybridSourceSplit(SourceSplit):
    """A split of the source with number `source_index`."""

    source_index: int
    split: SourceSplit

    def split_id(self) -> str:
        return _split_id(self.source_index, self.split.split_id())


def _split_id(source_index: int, split_id: str) -> str:
    return f"{source_index}-{split_id}"


@dataclass(frozen=True)
class SourceSwitchContext:
    """What a factory of a source may ask."""

    previous_enumerator: SplitEnumerator[Any, Any] | None

    def get_previous_enumerator(self) -> SplitEnumerator[Any, Any] | None:
        """The enumerator of the source before, which has been read to its end; it is closed afterwards."""
        return self.previous_enumerator


SourceFactory = Callable[[SourceSwitchContext], "Source[Any, Any, Any]"]


@dataclass(frozen=True)
class _Entry:
    """One of the sources: as it is, or what makes it when its turn comes."""

    boundedness: Boundedness
    source: Source[Any, Any, Any] | None = None
    factory: SourceFactory | None = None

    def made(self, previous: SplitEnumerator[Any, Any] | None) -> Source[Any, Any, Any]:
        if self.source is not None:
            return self.source
        assert self.factory is not None
        made = _split_source(self.factory(SourceSwitchContext(previous)))
        if made.is_bounded != (self.boundedness is Boundedness.BOUNDED):
            raise InvalidProgramError(
                f"HybridSource: the factory made a {type(made).__name__} that is {made.get_boundedness().value}, but "
                f"add_source(...) said {self.boundedness.value}"
            )
        return made


@dataclass(frozen=True)
class HybridEnumeratorState:
    """Which source is being read, the source itself if a factory made it, and what its enumerator knows."""

    source_index: int
    made_source: Source[Any, Any, Any] | None
    enumerator: Any


# --- what enumerator and readers tell each other -------------------------------------------------------------------


@dataclass(frozen=True)
class _SwitchSource:
    """To a reader: the source with this number may be read."""

    source_index: int
    made_source: Source[Any, Any, Any] | None
    run: str
    """Tells enumerators apart: after a failure there is another one, which does not know what readers were told."""


@dataclass(frozen=True)
class _NoMoreSplits:
    """To a reader: it has all splits of this source that it will get."""

    source_index: int


@dataclass(frozen=True)
class _ReaderFinished:
    """From a reader: it is through with this source."""

    source_index: int


@dataclass(frozen=True)
class _OfSource:
    """Either way: an event of the source itself."""

    source_index: int
    event: Any


# --- the source ----------------------------------------------------------------------------------------------------


class HybridSource(Source[Any, HybridSourceSplit, HybridEnumeratorState]):
    """Reads sources one after the other; made by `HybridSource.builder(first).add_source(second).build()`.

    All but the last must be bounded. A source begins when all subtasks are through with the one before.
    """

    def __init__(self, entries: Sequence[_Entry]) -> None:
        super().__init__()
        self._entries = tuple(entries)

    @staticmethod
    def builder(first_source: Any) -> HybridSourceBuilder:
        return HybridSourceBuilder().add_source(first_source)

    def get_boundedness(self) -> Boundedness:
        return self._entries[-1].boundedness

    def get_produced_type(self) -> TypeInformation | None:
        types = [entry.source.get_produced_type() for entry in self._entries if entry.source is not None]
        return next((each for each in types if each is not None), None)

    def create_enumerator(self, context: SplitEnumeratorContext[HybridSourceSplit]) -> HybridSourceEnumerator:
        return HybridSourceEnumerator(context, self._entries, None)

    def restore_enumerator(
        self, context: SplitEnumeratorContext[HybridSourceSplit], checkpoint: HybridEnumeratorState
    ) -> HybridSourceEnumerator:
        if checkpoint.source_index >= len(self._entries):
            raise InvalidProgramError(
                f"HybridSource: the checkpoint was taken while source number {checkpoint.source_index} was read, but "
                f"the program has only {len(self._entries)}; sources that were read may not be removed"
            )
        return HybridSourceEnumerator(context, self._entries, checkpoint)

    def create_reader(self, context: SourceReaderContext) -> HybridSourceReader:
        return HybridSourceReader(context, [entry.source for entry in self._entries])


class HybridSourceBuilder:
    """Collects sources in the order in which they are to be read."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add_source(self, source: Any, boundedness: Boundedness | None = None) -> HybridSourceBuilder:
        """One more source, to be read when those before it have ended.

        :param source: A source as `from_source` takes it, or a function that makes it when its turn comes, from a
            `SourceSwitchContext`: where to begin may depend on where the source before has ended.
        :param boundedness: Needed for a function.
        """
        if self._entries and self._entries[-1].boundedness is not Boundedness.BOUNDED:
            raise InvalidProgramError(
                "HybridSource: all sources but the last one must be bounded, or the next one would never begin; the "
                "one before this is not"
            )
        if callable(source) and not isinstance(source, Source):
            if boundedness is None:
                raise InvalidProgramError(
                    "HybridSource: add_source(function) needs to know if the source will be bounded; write "
                    "add_source(function, Boundedness.BOUNDED) or Boundedness.CONTINUOUS_UNBOUNDED"
                )
            self._entries.append(_Entry(boundedness, factory=source))
        else:
            made = _split_source(source)
            self._entries.append(_Entry(made.get_boundedness(), source=made))
        return self

    def build(self) -> HybridSource:
        return HybridSource(self._entries)


class _Numbers(SimpleSource):
    """A NumberSequenceSource in splits, as other sources are."""

    _PARTS = 16

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self._first, self._last = first, last

    def splits(self) -> list[range]:
        bounds = [self._first + (self._last + 1 - self._first) * part // self._PARTS for part in range(self._PARTS + 1)]
        parts = [range(start, end) for start, end in pairwise(bounds)]
        return [part for part in parts if part]

    def read(self, split: range, offset: int | None) -> Any:
        return ((number + 1, number) for number in range(split.start if offset is None else offset, split.stop))


def _split_source(source: Any) -> Source[Any, Any, Any]:
    if isinstance(source, NumberSequenceSource):
        return _Numbers(source.start, source.end)
    if isinstance(source, Source):
        return source
    raise InvalidProgramError(
        f"HybridSource: {source!r} is no source that is read in splits; use FileSource, KafkaSource, a SimpleSource or "
        f"another Source"
    )


# --- in the driver -------------------------------------------------------------------------------------------------


class HybridSourceEnumerator(SplitEnumerator[HybridSourceSplit, HybridEnumeratorState]):
    """Has the enumerator of the source that is being read."""

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSourceSplit],
        entries: tuple[_Entry, ...],
        former: HybridEnumeratorState | None,
    ) -> None:
        self._context = context
        self._entries = entries
        self._run = secrets.token_hex(8)
        self._index = 0 if former is None else former.source_index
        self._forget_readers()
        if former is None:
            self._source = self._entry.made(None)
            self._inner = self._source.create_enumerator(self._inner_context())
        else:
            self._source = former.made_source or self._entry.made(None)
            self._inner = self._source.restore_enumerator(self._inner_context(), former.enumerator)

    def _forget_readers(self) -> None:
        self._told: set[int] = set()
        """Readers that will get no more splits of the current source."""
        self._finished: set[int] = set()
        """Readers that are through with it. After a failure they say so again."""

    @property
    def _entry(self) -> _Entry:
        return self._entries[self._index]

    @property
    def _is_last(self) -> bool:
        return self._index == len(self._entries) - 1

    def _inner_context(self) -> _InnerEnumeratorContext:
        return _InnerEnumeratorContext(self._context, self, self._index)

    def is_current(self, source_index: int) -> bool:
        return self._index == source_index

    def start(self) -> None:
        self._inner.start()

    def close(self) -> None:
        self._inner.close()

    # --- readers ---------------------------------------------------------------------------------------------------

    def add_reader(self, subtask_id: int) -> None:
        self._tell_source(subtask_id)
        self._inner.add_reader(subtask_id)

    def _tell_source(self, subtask: int) -> None:
        made = self._source if self._entry.source is None else None
        self._context.send_event_to_source_reader(subtask, _SwitchSource(self._index, made, self._run))

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self._inner.handle_split_request(subtask_id, requester_hostname)
        # In batch mode the driver asks, before there are readers that could say that they are through.
        while requester_hostname is None and self._all_readers_in(self._told) and not self._is_last:
            self._switch()
            self._inner.handle_split_request(subtask_id, None)

    def add_splits_back(self, splits: list[HybridSourceSplit], subtask_id: int) -> None:
        self._inner.add_splits_back([each.split for each in splits], subtask_id)

    def handle_source_event(self, subtask_id: int, source_event: Any) -> None:
        if not self.is_current(source_event.source_index):
            return  # Of a source that has ended.
        if isinstance(source_event, _OfSource):
            self._inner.handle_source_event(subtask_id, source_event.event)
            return
        self._finished.add(subtask_id)
        if self._all_readers_in(self._finished):
            self._switch()

    def _all_readers_in(self, readers: set[int]) -> bool:
        return readers.issuperset(self._context.registered_readers())

    def _switch(self) -> None:
        """Go on with the next source."""
        former = self._inner
        self._index += 1
        self._forget_readers()
        self._source = self._entry.made(former)
        former.close()
        self._inner = self._source.create_enumerator(self._inner_context())
        self._inner.start()
        for subtask in sorted(self._context.registered_readers()):
            self.add_reader(subtask)

    def reader_has_all(self, subtask: int) -> None:
        """The reader gets no more splits of the current source."""
        self._told.add(subtask)
        self._context.send_event_to_source_reader(subtask, _NoMoreSplits(self._index))
        if self._is_last:
            self._context.signal_no_more_splits(subtask)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> HybridEnumeratorState:
        made = self._source if self._entry.source is None else None
        return HybridEnumeratorState(self._index, made, self._inner.snapshot_state(checkpoint_id))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._inner.notify_checkpoint_complete(checkpoint_id)


class _InnerEnumeratorContext(SplitEnumeratorContext[Any]):
    """What the enumerator of one of the sources gets."""

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSourceSplit],
        enumerator: HybridSourceEnumerator,
        source_index: int,
    ) -> None:
        self._context = context
        self._enumerator = enumerator
        self._index = source_index

    def current_parallelism(self) -> int:
        return self._context.current_parallelism()

    def registered_readers(self) -> frozenset[int]:
        return self._context.registered_readers()

    def assign_split(self, split: Any, subtask_id: int) -> None:
        self._context.assign_split(HybridSourceSplit(self._index, split), subtask_id)

    def assign_splits(self, assignment: dict[int, list[Any]]) -> None:
        for subtask, splits in assignment.items():
            for split in splits:
                self.assign_split(split, subtask)

    def signal_no_more_splits(self, subtask_id: int) -> None:
        self._enumerator.reader_has_all(subtask_id)

    def send_event_to_source_reader(self, subtask_id: int, event: Any) -> None:
        self._context.send_event_to_source_reader(subtask_id, _OfSource(self._index, event))

    def call_async(
        self,
        callable: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        def handle(result: Any, error: BaseException | None) -> None:
            if self._enumerator.is_current(self._index):  # Else it was asked for by an enumerator that is gone.
                handler(result, error)

        self._context.call_async(callable, handle, initial_delay_ms, period_ms)

    def get_storage_folder(self) -> str:
        return self._context.get_storage_folder()


# --- in the subtasks -----------------------------------------------------------------------------------------------


@dataclass
class _Told:
    """What a reader was told by one enumerator, and how far it is: its memory."""

    run: str = ""
    last_allowed: int = -1
    made_sources: dict[int, Source[Any, Any, Any]] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    """Sources of which all splits are here."""
    index: int = -1
    has_ended: bool = False
    """True if the current source has, for this reader."""


class HybridSourceReader(SourceReader[Any, HybridSourceSplit]):
    """Has the reader of the source that is being read, and what it was told of later ones already."""

    def __init__(self, context: SourceReaderContext, sources: Sequence[Source[Any, Any, Any] | None]) -> None:
        self._context = context
        self._sources = sources
        """None where a factory makes the source: it comes with the order to switch to it."""
        self._told = _Told()
        self._reader: SourceReader[Any, Any] | None = None
        self._reader_memory: Any = None
        self._waiting: defaultdict[int, list[SourceSplit]] = defaultdict(list)
        """Splits of sources that were not begun, by the source's number."""

    # --- reading ---------------------------------------------------------------------------------------------------

    def poll_next(self, output: ReaderOutput) -> InputStatus:
        self._go_on()
        if self._reader is None:
            return InputStatus.NOTHING_AVAILABLE
        if not self._told.has_ended:
            status = self._reader.poll_next(_InnerOutput(output, self._told.index))
            if status is not InputStatus.END_OF_INPUT:
                return status
            self._told.has_ended = True
            self._say_finished()
        if self._is_last():
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE if self._switch() else InputStatus.NOTHING_AVAILABLE

    def _go_on(self) -> None:
        """Begin where the reader in the former process was, if there was one."""
        if self._reader is None and self._told.index >= 0:
            self._begin()

    def _is_last(self) -> bool:
        return self._told.index == len(self._sources) - 1

    def _say_finished(self) -> None:
        if not self._is_last():
            self._context.send_source_event_to_coordinator(_ReaderFinished(self._told.index))

    def _switch(self) -> bool:
        """Begin with the next source, if that is allowed and the current one has ended."""
        told = self._told
        if told.last_allowed <= told.index or not (told.has_ended or told.index < 0):
            return False
        # The first source of a reader that is new need not be the first of all.
        told.index = told.last_allowed if told.index < 0 else told.index + 1
        told.has_ended = False
        self.close()
        self._begin()
        return True

    def _begin(self) -> None:
        index = self._told.index
        source = self._sources[index] or self._told.made_sources[index]
        self._reader = reader = source.create_reader(_InnerReaderContext(self._context, index))
        if self._reader_memory is not None:
            reader.restore_memory(self._reader_memory)
            self._reader_memory = None
        if index in self._waiting:
            reader.add_splits(self._waiting.pop(index))
        reader.start()
        if index in self._told.complete:
            reader.notify_no_more_splits()

    def next_poll_time(self, now_ms: int, idle_poll_interval_ms: int) -> int | None:
        if self._reader is None or self._told.has_ended:
            return None  # Until it is told to switch.
        return self._reader.next_poll_time(now_ms, idle_poll_interval_ms)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    # --- what the enumerator says ----------------------------------------------------------------------------------

    def add_splits(self, splits: list[HybridSourceSplit]) -> None:
        now = []
        for each in splits:
            if self._reader is not None and each.source_index == self._told.index:
                now.append(each.split)
            else:
                self._waiting[each.source_index].append(each.split)
        if now and self._reader is not None:
            self._reader.add_splits(now)

    def pause_or_resume_splits(self, splits_to_pause: list[str], splits_to_resume: list[str]) -> None:
        if self._reader is not None:
            prefix = _split_id(self._told.index, "")
            pause, resume = (
                [split_id.removeprefix(prefix) for split_id in split_ids if split_id.startswith(prefix)]
                for split_ids in (splits_to_pause, splits_to_resume)
            )
            self._reader.pause_or_resume_splits(pause, resume)

    def notify_no_more_splits(self) -> None:
        """It is told so for each source, by events."""

    def handle_source_events(self, source_event: Any) -> None:
        index = source_event.source_index
        if isinstance(source_event, _SwitchSource):
            self._allow(source_event)
            return
        self._go_on()
        if isinstance(source_event, _OfSource):
            if self._reader is not None and index == self._told.index:
                self._reader.handle_source_events(source_event.event)
        elif index not in self._told.complete:
            self._told.complete.add(index)
            if self._reader is not None and index == self._told.index:
                self._reader.notify_no_more_splits()

    def _allow(self, order: _SwitchSource) -> None:
        if order.run != self._told.run:
            # Another enumerator: it has not told this reader anything yet, and what was told before is void.
            self._told = _Told(order.run)
            self._reader_memory = None
        self._told.last_allowed = order.source_index
        if order.made_source is not None:
            self._told.made_sources[order.source_index] = order.made_source
        self._go_on()
        self._switch()

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> list[HybridSourceSplit]:
        found = [HybridSourceSplit(index, split) for index, splits in self._waiting.items() for split in splits]
        if self._reader is not None:
            index = self._told.index
            found += [HybridSourceSplit(index, split) for split in self._reader.snapshot_state(checkpoint_id)]
        return found

    def memory(self) -> Any:
        inner = self._reader_memory if self._reader is None else self._reader.memory()
        return replace(self._told, complete=set(self._told.complete)), inner

    def restore_memory(self, memory: Any) -> None:
        self._told, self._reader_memory = memory

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
        self._context.send_source_event_to_coordinator(_OfSource(self._index, source_event))

    def get_current_processing_time(self) -> int:
        return self._context.get_current_processing_time()

    def metric_group(self) -> MetricGroup:
        return self._context.metric_group()


class _InnerOutput(ReaderOutput):
    """An output that knows splits by the names that they have in all of the hybrid source."""

    def __init__(self, output: ReaderOutput, source_index: int) -> None:
        self._output = output
        self._index = source_index

    def create_output_for_split(self, split_id: str) -> SourceOutput:
        return self._output.create_output_for_split(_split_id(self._index, split_id))

    def release_output_for_split(self, split_id: str) -> None:
        self._output.release_output_for_split(_split_id(self._index, split_id))

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
