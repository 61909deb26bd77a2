"""The short way to a source of your own: what its parts are, and how one part is read from an offset on."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.connectors.support.split_dealing import DealtSplits, SplitsEnumerator
from penstock.datastream.connectors.support.split_reading import NOTHING_NOW, OffsetSplit, ReadBatch, SplitsReader

__all__ = ["SimpleSource"]

_RECORDS_AT_ONCE = 1024
_LONGEST_S = 0.05


class SimpleSource(Source[Any, OffsetSplit, DealtSplits]):
    """A source that is read exactly once, in parallel, from two methods.

    >>> class Countdown(SimpleSource):
    ...     def splits(self):
    ...         return ["ten", "twenty"]
    ...
    ...     def read(self, split, offset):
    ...         length = {"ten": 10, "twenty": 20}[split]
    ...         for number in range(offset or 0, length):
    ...             yield number + 1, f"{split} {length - number}"

    `splits` is called in the driver and `read` in the subtasks, where the source arrives as a copy: it must be
    picklable, and connections are made in `read`.

    A source is bounded unless `get_boundedness` says otherwise. Where the `read` of an unbounded source ends, it is
    called again a little later, with the last offset.
    """

    reads_in_turns: bool | None = None
    """Whether a subtask reads all its splits in turns, or one to its end before it begins the next; None for in turns
    if the source is unbounded. In turns, no split gets far ahead of another in event time, so no record comes late for
    that reason; one by one, few splits are open at a time, and quick subtasks read more of them. The splits of an
    unbounded source have no end: False makes a subtask stay with one until it has nothing for now."""

    discovery_interval_ms: int | None = None
    """For unbounded sources: how often to call `splits` again, to read what it did not name before."""

    @abstractmethod
    def splits(self) -> Iterable[Any]:
        """The parts that can be read independently: file names, partitions, ranges. Must be picklable.

        The text of a part, `str(part)`, is its name, and must be the same whenever the program runs.
        """

    @abstractmethod
    def read(self, split: Any, offset: Any) -> Iterator[Any]:
        """The records of a part from `offset` on, which is None at its beginning.

        Yields `(offset, record)` or `(offset, record, timestamp)`: the offset is what `read` would need to continue
        *behind* that record, a number or anything else that is picklable. Yield None to say that there is nothing for
        now, instead of waiting.
        """

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit]
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return self._enumerator(context, None)

    def restore_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], checkpoint: DealtSplits
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return self._enumerator(context, checkpoint)

    def _enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], former: DealtSplits | None
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        if self.is_bounded and self.discovery_interval_ms is not None:
            raise InvalidProgramError(
                f"{type(self).__name__}: a bounded source ends when the splits it began with are read, so "
                f"discovery_interval_ms makes no sense; let get_boundedness return CONTINUOUS_UNBOUNDED"
            )
        return SplitsEnumerator(
            context,
            self._named_splits,
            self.discovery_interval_ms,
            deals_at_once=self._takes_turns() or not self.is_bounded,
            splits_end=self.is_bounded,
            former=former,
        )

    def _takes_turns(self) -> bool:
        return not self.is_bounded if self.reads_in_turns is None else self.reads_in_turns

    def _named_splits(self) -> list[OffsetSplit]:
        named = [OffsetSplit(str(split), split) for split in self.splits()]
        name, count = Counter(split.name for split in named).most_common(1)[0] if named else ("", 0)
        if count > 1:
            raise InvalidProgramError(
                f"{type(self).__name__}.splits: {name!r} came {count} times; a split is known by its str()"
            )
        return named

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, OffsetSplit]:
        return SplitsReader(context, self._read_split, self._takes_turns(), splits_end=self.is_bounded)

    def _read_split(self, split: OffsetSplit, output: ReaderOutput) -> Iterator[ReadBatch]:
        """What `read` yields, in batches."""
        batch = _Batch(split.offset, output)
        for item in self.read(split.content, split.offset):
            if item is None:
                if batch.records:
                    yield batch.take()
                yield NOTHING_NOW
                batch = _Batch(batch.offset, output)
                continue
            if not batch.add(item):
                raise InvalidProgramError(
                    f"{type(self).__name__}.read yielded {item!r}; it must yield (offset, record), (offset, record, "
                    f"timestamp), or None for nothing now"
                )
            if batch.is_full():
                yield batch.take()
                batch = _Batch(batch.offset, output)
        if batch.records:
            yield batch.take()


class _Batch:
    """Gathers what `read` yields, until there are enough records, or it takes too long to get more."""

    def __init__(self, offset: Any, output: ReaderOutput) -> None:
        self.offset = offset
        self.records: list[Any] = []
        self._timestamps: list[int | None] | None = None
        self._most = min(_RECORDS_AT_ONCE, output.room())
        self._deadline = time.monotonic() + _LONGEST_S

    def add(self, item: Any) -> bool:
        """Add an item; False if `read` must not yield such a thing."""
        if not isinstance(item, tuple) or not 2 <= len(item) <= 3:
            return False
        if len(item) == 3:
            if self._timestamps is None:
                self._timestamps = [None] * len(self.records)
            self._timestamps.append(item[2])
        elif self._timestamps is not None:
            self._timestamps.append(None)
        self.offset = item[0]
        self.records.append(item[1])
        return True

    def is_full(self) -> bool:
        return len(self.records) >= self._most or time.monotonic() >= self._deadline

    def take(self) -> ReadBatch:
        return ReadBatch(self.records, self.offset, self._timestamps)
