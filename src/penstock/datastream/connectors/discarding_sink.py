"""A sink for streams that nobody wants."""

from __future__ import annotations

from typing import Any

from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext

__all__ = ["DiscardingSink"]


class DiscardingSink(Sink):
    """Takes elements and does nothing with them: a stream must end somewhere."""

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        return _Nowhere()


class _Nowhere(SinkWriter[Any]):
    def write(self, element: Any, context: SinkWriterContext) -> None:
        """Nothing."""

    def flush(self, end_of_input: bool) -> None:
        """Nothing is held."""
