"""The messages between the enumerator and the readers of a HybridSource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.datastream.connectors.source_v2 import Source, SourceSplit


@dataclass(frozen=True)
class HybridSourceSplit(SourceSplit):
    """A split of the source with number `source_index`."""

    source_index: int
    split: SourceSplit

    def split_id(self) -> str:
        return prefixed_id(self.source_index, self.split.split_id())


def prefixed_id(source_index: int, split_id: str) -> str:
    return f"{source_index}-{split_id}"


@dataclass(frozen=True)
class SwitchSource:
    """To a reader: the source with this number may be read."""

    source_index: int
    made_source: Source[Any, Any, Any] | None
    run: str
    """Identifies an enumerator: after a failure there is another one, which does not know what readers have got."""


@dataclass(frozen=True)
class NoMoreSplits:
    """To a reader: it has all splits of this source that it will get."""

    source_index: int


@dataclass(frozen=True)
class ReaderFinished:
    """From a reader: it has finished this source."""

    source_index: int


@dataclass(frozen=True)
class OfSource:
    """Either way: an event of the source itself."""

    source_index: int
    event: Any
