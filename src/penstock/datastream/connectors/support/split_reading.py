"""What the sources here have in common: a reader that reads its splits one after the other, or in turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.datastream.connectors.source_v2 import (
    InputStatus,
    ReaderOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)

_MOST_IN_HAND = 64


@dataclass(frozen=True)
class OffsetSplit(SourceSplit):
    """A split, and how far it was read: `offset` is None at its beginning."""

    name: str
    content: Any
    offset: Any = None

    def split_id(self) -> str:
        return self.name


@dataclass(frozen=True)
class ReadBatch:
    """Records of one split, and the offset behind them."""

    records: list[Any]
    offset: Any
    timestamps: list[int | None] | None = None


NOTHING_NOW = ReadBatch([], None)
"""Stands for a pause: the split has no end yet, and nothing to read now."""


ReadSplit = Callable[[OffsetSplit, ReaderOutput], Iterator[ReadBatch]]
"""Reads a split from its offset on, to its end or until there is nothing for now."""


class OpenSplit:
    """A split that is being read."""

    def __init__(self, split: OffsetSplit) -> None:
        self.split = split
        self.batches: Iterator[ReadBatch] | None = None

    def close(self) -> None:
        """Let the generator release what it holds."""
        batches, self.batches = self.batches, None
        if batches is not None and hasattr(batches, "close"):
            batches.close()


class SplitsReader(SourceReader[Any, OffsetSplit]):
    """Reads each split with `read`, one to its end before it begins the next, and asks for more as it proceeds.

    With `takes_turns` it reads all splits that it is given in turns, and does not ask. Neither does it where splits
    have no end: there `read` begins again later, from the last offset, and the next split is read when one has nothing.
    """

    def __init__(
        self, context: SourceReaderContext, read: ReadSplit, takes_turns: bool = False, splits_end: bool = True
    ) -> None:
        self._context = context
        self._read = read
        self._takes_turns = takes_turns
        self._asks = splits_end and not takes_turns
        self._splits_end = splits_end
        self._open: deque[OpenSplit] = deque()
        self._asked = 0
        self._has_all = False
        self._paused: set[str] = set()
        self._resting = 0
        """How many splits in a row had nothing."""

    def start(self) -> None:
        if not self._open:
            self._ask(1)

    def add_splits(self, splits: list[OffsetSplit]) -> None:
        self._asked = 0
        self._resting = 0
        self._open.extend(map(OpenSplit, splits))

    def notify_no_more_splits(self) -> None:
        self._has_all = True

    def _ask(self, splits: int) -> None:
        for _ in range(splits):
            if self._asks and not self._has_all and len(self._open) + self._asked < _MOST_IN_HAND:
                self._asked += 1
                self._context.send_split_request()

    def pause_or_resume_splits(self, splits_to_pause: list[str], splits_to_resume: list[str]) -> None:
        self._paused = self._paused.union(splits_to_pause).difference(splits_to_resume)
        self._resting = 0

    def _to_be_read(self) -> int:
        """How many splits are not paused."""
        return sum(each.split.name not in self._paused for each in self._open) if self._paused else len(self._open)

    def poll_next(self, output: ReaderOutput) -> InputStatus:
        if not self._open:
            return self._status_without_splits()
        if not self._to_be_read():
            return InputStatus.NOTHING_AVAILABLE
        while self._open[0].split.name in self._paused:
            self._open.rotate(-1)
        current = self._open[0]
        if current.batches is None:
            current.batches = self._read(current.split, output)
        batch = next(current.batches, None)
        if batch is None:
            self._end(current, output)
        elif batch is NOTHING_NOW:
            self._turn()
        else:
            self._emit(current, batch, output)
        return self._status()

    def _emit(self, current: OpenSplit, batch: ReadBatch, output: ReaderOutput) -> None:
        output.create_output_for_split(current.split.name).collect_batch(batch.records, batch.timestamps)
        current.split = replace(current.split, offset=batch.offset)
        self._resting = 0
        if self._takes_turns:
            self._open.rotate(-1)

    def _end(self, current: OpenSplit, output: ReaderOutput) -> None:
        current.close()
        if not self._splits_end:
            self._turn()
            return
        self._open.popleft()
        output.release_output_for_split(current.split.name)
        # A reader that finishes one in an epoch may finish two in the next: small splits come by the dozen.
        self._ask(2)

    def _turn(self) -> None:
        self._resting += 1
        self._open.rotate(-1)

    def _status(self) -> InputStatus:
        if not self._open:
            return self._status_without_splits()
        if self._resting >= self._to_be_read():
            self._resting = 0
            return InputStatus.NOTHING_AVAILABLE
        return InputStatus.MORE_AVAILABLE

    def _status_without_splits(self) -> InputStatus:
        return InputStatus.END_OF_INPUT if self._has_all else InputStatus.NOTHING_AVAILABLE

    def next_poll_time(self, now_ms: int, idle_poll_interval_ms: int) -> int | None:
        return now_ms + idle_poll_interval_ms if self._open else None

    def snapshot_state(self, checkpoint_id: int) -> list[OffsetSplit]:
        return [each.split for each in self._open]

    def close(self) -> None:
        for each in self._open:
            each.close()
