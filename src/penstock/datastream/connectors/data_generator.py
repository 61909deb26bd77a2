"""Elements made up from numbers, at a rate of your choice: for trying jobs out, and for measuring them."""

from __future__ import annotations

import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.common.own_copies import own_copy
from penstock.common.typeinfo import TypeInformation
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
from penstock.datastream.connectors.support.split_reading import (
    NOTHING_NOW,
    OffsetSplit,
    OpenSplit,
    ReadBatch,
    SplitsReader,
)

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy"]

_RECORDS_AT_ONCE = 1024


class GeneratorFunction(ABC):
    """Makes an element from a number, where a plain function is not enough.

    >>> from penstock.common import WatermarkStrategy
    >>> class Words(GeneratorFunction):
    ...     def open(self, context):
    ...         self.words = ["to", "be"]
    ...     def map(self, value):
    ...         return self.words[value % 2]
    >>> words = env.from_source(DataGeneratorSource(Words(), count=3), WatermarkStrategy.no_watermarks(), "words")
    >>> list(words.execute_and_collect())
    ['to', 'be', 'to']
    """

    def open(self, reader_context: SourceReaderContext) -> None:
        """Called once in every subtask before the first element."""

    @abstractmethod
    def map(self, value: int) -> Any:
        """The element made from a number."""

    def close(self) -> None:
        """Called once in every subtask after the last element."""


class RateLimiter:
    """Says how many elements of one split may be emitted now. This one sets no limit."""

    def permits(self, now_ms: int, wanted: int) -> int:
        """How many of the wanted elements may be emitted now; they then count as emitted."""
        return wanted

    def next_time(self, now_ms: int, idle_poll_interval_ms: int) -> int:
        """When to ask again."""
        return now_ms + idle_poll_interval_ms

    def checkpoint_completed(self) -> None:
        """Called when a checkpoint is complete."""

    def memory(self) -> Any:
        """What a limiter in another process continues with."""
        return None

    def restore(self, memory: Any) -> None:
        """Continue with the memory of another limiter."""


class PerSecond(RateLimiter):
    """Elements are earned as time passes; at most those of one second can be saved up."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._earned = 0.0
        self._since_ms: int | None = None

    def permits(self, now_ms: int, wanted: int) -> int:
        if self._since_ms is not None:
            self._earned += max(0, now_ms - self._since_ms) * self._rate / 1000
        self._earned = min(self._earned, max(self._rate, 1.0))
        self._since_ms = now_ms
        granted = min(wanted, int(self._earned + 1e-9))
        self._earned -= granted
        return granted

    def next_time(self, now_ms: int, idle_poll_interval_ms: int) -> int:
        missing = max(0.0, 1 - self._earned)
        return now_ms + max(1, round(missing * 1000 / self._rate))

    def memory(self) -> Any:
        return self._earned, self._since_ms

    def restore(self, memory: Any) -> None:
        self._earned, self._since_ms = memory


class PerCheckpoint(RateLimiter):
    """A number of elements, then none until a checkpoint is complete."""

    def __init__(self, elements: int) -> None:
        self._elements = elements
        self._left = elements

    def permits(self, now_ms: int, wanted: int) -> int:
        granted = min(wanted, self._left)
        self._left -= granted
        return granted

    def checkpoint_completed(self) -> None:
        self._left = self._elements

    def memory(self) -> Any:
        return self._left

    def restore(self, memory: Any) -> None:
        self._left = memory


@dataclass(frozen=True)
class RateLimiterStrategy:
    """How quickly elements are made: by all subtasks together.

    >>> thousand = DataGeneratorSource(lambda number: number, 10, RateLimiterStrategy.per_second(1000))
    """

    make: Callable[[int], RateLimiter]
    """Makes the limiter of one split, from the number of all splits."""

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """As quickly as the job takes them."""
        return RateLimiterStrategy(lambda splits: RateLimiter())

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """At most this many elements a second, by the clock of the job."""
        if records_per_second <= 0:
            raise ValueError(f"RateLimiterStrategy.per_second: the rate must be positive, got {records_per_second}")
        return RateLimiterStrategy(lambda splits: PerSecond(records_per_second / splits))

    @staticmethod
    def per_checkpoint(records_per_checkpoint: int) -> RateLimiterStrategy:
        """This many elements between two checkpoints; at least one of every split."""
        if records_per_checkpoint <= 0:
            raise ValueError(
                f"RateLimiterStrategy.per_checkpoint: the number must be positive, got {records_per_checkpoint}"
            )
        return RateLimiterStrategy(lambda splits: PerCheckpoint(max(1, records_per_checkpoint // splits)))


class _GeneratingReader(SplitsReader):
    """Every split has a limiter of its own, with its share of the rate: where splits are read does not change it."""

    def __init__(self, context: SourceReaderContext, source: DataGeneratorSource) -> None:
        self._make_limiter = source.rate_limiter_strategy.make
        self._limiters: dict[str, RateLimiter] = {}
        self._is_endless = source.count is None
        function = source.generator_function
        # Subtasks may run in one process, and each opens and closes its own function.
        self._function = own_copy(function) if isinstance(function, GeneratorFunction) else function
        generate = self._function.map if isinstance(self._function, GeneratorFunction) else self._function
        super().__init__(context, partial(self._generate, generate))

    def start(self) -> None:
        if isinstance(self._function, GeneratorFunction):
            self._function.open(self._context)
        super().start()

    def _generate(self, make: Callable[[int], Any], split: OffsetSplit, output: ReaderOutput) -> Iterator[ReadBatch]:
        numbers: range = split.content
        at = split.offset or 0
        limiter = self._limiters[split.name]
        while at < len(numbers):
            wanted = min(_RECORDS_AT_ONCE, len(numbers) - at, output.room())
            granted = limiter.permits(self._context.get_current_processing_time(), wanted)
            if not granted:
                yield NOTHING_NOW
                continue
            batch = []
            for value in numbers[at : at + granted]:  # Called `value`, because errors name it.
                batch.append(make(value))
            at += granted
            yield ReadBatch(batch, at)

    def _emit(self, current: OpenSplit, batch: ReadBatch, output: ReaderOutput) -> None:
        super()._emit(current, batch, output)
        if self._is_endless:  # Otherwise the others would never be read where there are fewer subtasks than splits.
            self._open.rotate(-1)

    # A reader may continue in another process with every epoch, and must not begin to wait anew each time: therefore
    # the offset of a split in a checkpoint also holds what its limiter remembers.

    def snapshot_state(self, checkpoint_id: int) -> list[OffsetSplit]:
        return [
            replace(split, offset=(split.offset, self._limiters[split.name].memory()))
            for split in super().snapshot_state(checkpoint_id)
        ]

    def add_splits(self, splits: list[OffsetSplit]) -> None:
        for split in splits:
            limiter = self._limiters[split.name] = self._make_limiter(_number_of_splits(split))
            if split.offset is not None:
                limiter.restore(split.offset[1])
        super().add_splits(
            [split if split.offset is None else replace(split, offset=split.offset[0]) for split in splits]
        )

    def _end(self, current: OpenSplit, output: ReaderOutput) -> None:
        super()._end(current, output)
        del self._limiters[current.split.name]

    def next_poll_time(self, now_ms: int, idle_poll_interval_ms: int) -> int | None:
        times = [limiter.next_time(now_ms, idle_poll_interval_ms) for limiter in self._limiters.values()]
        return min(times, default=None)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for limiter in self._limiters.values():
            limiter.checkpoint_completed()

    def close(self) -> None:
        super().close()
        if isinstance(self._function, GeneratorFunction):
            self._function.close()


def _name(numbers: range, splits: int) -> str:
    return f"{numbers.start} in {splits}"


def _number_of_splits(split: OffsetSplit) -> int:
    """How many splits there were when this one was made: its name says so, also after a restart."""
    return int(split.name.rpartition(" ")[2])


class DataGeneratorSource(Source[Any, OffsetSplit, DealtSplits]):
    """Elements made from the numbers 0, 1, 2 and so on.

    :param generator_function: From a number to an element: a function, or a GeneratorFunction.
    :param count: How many elements; None for a source that never ends.
    :param rate_limiter_strategy: How quickly; as quickly as the job takes them, unless given.

    There are as many splits as the job had subtasks when it began; each has its numbers in order. A split is not
    divided: if the job continues with more subtasks, some have nothing to read. The total rate stays the same. A slow
    job does not make up later for elements that it missed.

    >>> from penstock.common import WatermarkStrategy
    >>> squares = DataGeneratorSource(lambda number: number * number, count=4)
    >>> list(env.from_source(squares, WatermarkStrategy.no_watermarks(), "squares").execute_and_collect())
    [0, 1, 4, 9]
    """

    def __init__(
        self,
        generator_function: Callable[[int], Any] | GeneratorFunction,
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(generator_function, GeneratorFunction) and not callable(generator_function):
            raise TypeError(
                f"DataGeneratorSource needs a function from a number to an element, got {generator_function!r}"
            )
        if count is not None and count < 0:
            raise ValueError(f"DataGeneratorSource: count cannot be negative, got {count}")
        self.generator_function = generator_function
        self.count = count
        self.rate_limiter_strategy = rate_limiter_strategy or RateLimiterStrategy.no_op()
        self._type_info = type_info

    def __repr__(self) -> str:
        return f"DataGeneratorSource({self.generator_function!r}, count={self.count})"

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        return self._type_info

    def create_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit]
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        ranges = self._ranges(context.current_parallelism())
        return self.restore_enumerator(context, DealtSplits(tuple(ranges), has_looked=True))

    def restore_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], checkpoint: DealtSplits
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return SplitsEnumerator(context, find=list, former=checkpoint)

    def _ranges(self, parts: int) -> list[OffsetSplit]:
        """One for each subtask: neighbouring numbers if there is an end, every `parts`-th number if there is none."""
        if self.count is None:
            ranges = [range(start, sys.maxsize, parts) for start in range(parts)]
        else:
            bounds = [self.count * part // parts for part in range(parts + 1)]
            ranges = [range(*pair) for pair in itertools.pairwise(bounds)]
        ranges = [numbers for numbers in ranges if numbers]
        return [OffsetSplit(_name(numbers, len(ranges)), numbers) for numbers in ranges]

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, OffsetSplit]:
        return _GeneratingReader(context, self)
