"""The sources that a HybridSource consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import Boundedness, Source, SplitEnumerator


@dataclass(frozen=True)
class SourceSwitchContext:
    """What a factory of a source can ask."""

    previous_enumerator: SplitEnumerator[Any, Any] | None

    def get_previous_enumerator(self) -> SplitEnumerator[Any, Any] | None:
        """The enumerator of the previous source, which has been read to its end; it is closed afterwards."""
        return self.previous_enumerator


SourceFactory = Callable[[SourceSwitchContext], "Source[Any, Any, Any]"]


@dataclass(frozen=True)
class SourceEntry:
    """One of the sources: as it is, or the function that makes it when its turn comes."""

    boundedness: Boundedness
    source: Source[Any, Any, Any] | None = None
    factory: SourceFactory | None = None

    def made(self, previous: SplitEnumerator[Any, Any] | None) -> Source[Any, Any, Any]:
        if self.source is not None:
            return self.source
        assert self.factory is not None
        made = split_source(self.factory(SourceSwitchContext(previous)))
        if made.is_bounded != (self.boundedness is Boundedness.BOUNDED):
            raise InvalidProgramError(
                f"HybridSource: the factory made a {type(made).__name__} that is {made.get_boundedness().value}, but "
                f"add_source(...) said {self.boundedness.value}"
            )
        return made


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


def split_source(source: Any) -> Source[Any, Any, Any]:
    if isinstance(source, NumberSequenceSource):
        return _Numbers(source.start, source.end)
    if isinstance(source, Source):
        return source
    raise InvalidProgramError(
        f"HybridSource: {source!r} is not a source that is read in splits; use FileSource, KafkaSource, a SimpleSource "
        f"or another Source"
    )
