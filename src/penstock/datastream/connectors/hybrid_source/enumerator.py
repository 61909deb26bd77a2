"""A HybridSource in the driver: which source is being read, and when the next one begins."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.datastream.connectors.hybrid_source.entries import SourceEntry
from penstock.datastream.connectors.hybrid_source.protocol import (
    HybridSourceSplit,
    NoMoreSplits,
    OfSource,
    SwitchSource,
)
from penstock.datastream.connectors.source_v2 import Source, SplitEnumerator, SplitEnumeratorContext


@dataclass(frozen=True)
class HybridEnumeratorState:
    """Which source is being read, the source itself if a factory made it, and what its enumerator knows."""

    source_index: int
    made_source: Source[Any, Any, Any] | None
    enumerator: Any


class HybridSourceEnumerator(SplitEnumerator[HybridSourceSplit, HybridEnumeratorState]):
    """Wraps the enumerator of the source that is being read."""

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSourceSplit],
        entries: tuple[SourceEntry, ...],
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
        self._have_all: set[int] = set()
        """Readers that will get no more splits of the current source."""
        self._finished: set[int] = set()
        """Readers that have finished the current source. After a failure they report it again."""

    @property
    def _entry(self) -> SourceEntry:
        return self._entries[self._index]

    @property
    def _made_source(self) -> Source[Any, Any, Any] | None:
        """The current source, if readers cannot know it: a factory has made it."""
        return self._source if self._entry.source is None else None

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
        self._context.send_event_to_source_reader(subtask_id, SwitchSource(self._index, self._made_source, self._run))
        self._inner.add_reader(subtask_id)

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self._inner.handle_split_request(subtask_id, requester_hostname)
        # In batch mode the driver asks, before there are readers that could report that they have finished.
        while requester_hostname is None and self._all_readers_in(self._have_all) and not self._is_last:
            self._switch()
            self._inner.handle_split_request(subtask_id, None)

    def add_splits_back(self, splits: list[HybridSourceSplit], subtask_id: int) -> None:
        self._inner.add_splits_back([each.split for each in splits], subtask_id)

    def handle_source_event(self, subtask_id: int, source_event: Any) -> None:
        if not self.is_current(source_event.source_index):
            return  # Of a source that has ended.
        if isinstance(source_event, OfSource):
            self._inner.handle_source_event(subtask_id, source_event.event)
            return
        self._finished.add(subtask_id)
        if self._all_readers_in(self._finished):
            self._switch()

    def _all_readers_in(self, readers: set[int]) -> bool:
        return readers.issuperset(self._context.registered_readers())

    def _switch(self) -> None:
        """Continue with the next source."""
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
        self._have_all.add(subtask)
        self._context.send_event_to_source_reader(subtask, NoMoreSplits(self._index))
        if self._is_last:
            self._context.signal_no_more_splits(subtask)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> HybridEnumeratorState:
        return HybridEnumeratorState(self._index, self._made_source, self._inner.snapshot_state(checkpoint_id))

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
        self._context.send_event_to_source_reader(subtask_id, OfSource(self._index, event))

    def call_async(
        self,
        callable: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        def handle(result: Any, error: BaseException | None) -> None:
            if self._enumerator.is_current(self._index):  # Otherwise the enumerator that asked is gone.
                handler(result, error)

        self._context.call_async(callable, handle, initial_delay_ms, period_ms)

    def get_storage_folder(self) -> str:
        return self._context.get_storage_folder()
