"""Sources read one after the other as one: history from files, then the continuation from Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.hybrid_source.entries import SourceEntry, SourceSwitchContext, split_source
from penstock.datastream.connectors.hybrid_source.enumerator import HybridEnumeratorState, HybridSourceEnumerator
from penstock.datastream.connectors.hybrid_source.protocol import HybridSourceSplit
from penstock.datastream.connectors.hybrid_source.reader import HybridSourceReader
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    Source,
    SourceReaderContext,
    SplitEnumeratorContext,
)

__all__ = [
    "HybridSource",
    "HybridSourceBuilder",
    "SourceSwitchContext",
]


class HybridSource(Source[Any, HybridSourceSplit, HybridEnumeratorState]):
    """Reads sources one after the other; made by `HybridSource.builder(first).add_source(second).build()`.

    All but the last must be bounded. A source begins when all subtasks have finished the one before.

    >>> from penstock.common import WatermarkStrategy
    >>> from penstock.datastream.connectors import NumberSequenceSource
    >>> both = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(NumberSequenceSource(10, 11)).build()
    >>> list(env.from_source(both, WatermarkStrategy.no_watermarks(), "history, then live").execute_and_collect())
    [1, 2, 10, 11]
    """

    def __init__(self, entries: Sequence[SourceEntry]) -> None:
        super().__init__()
        self._entries = tuple(entries)

    def __repr__(self) -> str:
        return f"HybridSource({[entry.source or entry.factory for entry in self._entries]!r})"

    @staticmethod
    def builder(first_source: Any) -> HybridSourceBuilder:
        """Begin to describe a source with the one that is read first."""
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
    """Collects sources in the order in which the job reads them.

    `HybridSource` has an example.
    """

    def __init__(self) -> None:
        self._entries: list[SourceEntry] = []

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
            self._entries.append(SourceEntry(boundedness, factory=source))
        else:
            made = split_source(source)
            self._entries.append(SourceEntry(made.get_boundedness(), source=made))
        return self

    def build(self) -> HybridSource:
        """The finished source."""
        return HybridSource(self._entries)
