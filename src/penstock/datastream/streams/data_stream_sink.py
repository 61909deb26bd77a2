"""DataStreamSink: the end of a stream."""

from __future__ import annotations

from penstock.datastream.streams.operator_settings import OperatorSettings
from penstock.graph.transformations import PhysicalTransformation


class DataStreamSink(OperatorSettings):
    """The end of a stream. Every method changes the sink and returns it.

    >>> env.from_collection(["a"]).print().name("console").uid("console")
    <DataStreamSink 'Sink: console', id 2, uid 'console', parallelism 1>
    """

    def __init__(self, transformation: PhysicalTransformation) -> None:
        self.transformation = transformation

    def name(self, name: str) -> DataStreamSink:
        """The name that plans, the dashboard and errors show."""
        self._operator("name()").name = name if name.startswith("Sink: ") else f"Sink: {name}"
        return self
