"""A sink that drops its elements."""

from __future__ import annotations

from typing import Any

from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext

__all__ = ["DiscardingSink"]


class DiscardingSink(Sink):
    """Takes elements and does nothing with them: for streams that only need an end.

    >>> env.from_collection([1, 2]).sink_to(DiscardingSink()).name("nowhere")
    <DataStreamSink 'Sink: nowhere', id 2, parallelism 1>
    """

    def __repr__(self) -> str:
        return "DiscardingSink()"

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        return _Nowhere()


class _Nowhere(SinkWriter[Any]):
    def write(self, element: Any, context: SinkWriterContext) -> None:
        """Drop the element."""

    def flush(self, end_of_input: bool) -> None:
        """Does nothing: no element is held."""
