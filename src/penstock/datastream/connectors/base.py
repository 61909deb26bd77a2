"""What all connectors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.refused_names import RefusedName
from penstock.datastream.functions.sinks import SinkFunction
from penstock.datastream.functions.sources import SourceContext, SourceFunction

if TYPE_CHECKING:
    from penstock.common.typeinfo import TypeInformation
    from penstock.datastream.connectors.sink_v2 import SinkWriter, WriterInitContext
    from penstock.datastream.data_stream import DataStream

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]


class Source:
    """Describes where a stream comes from; given to `env.from_source(...)`."""

    def __init__(self, source: object = None) -> None:
        _refuse_java("Source", source, "env.from_source(...) with a connector of penstock.datastream.connectors")

    @property
    def is_bounded(self) -> bool:
        """True if the source ends by itself."""
        return False


class Sink:
    """Describes where a stream goes; given to `stream.sink_to(...)`.

    It travels to the subtasks, so it must be picklable. A sink of your own is a subclass with `create_writer`; see
    `penstock.datastream.connectors.sink_v2` for the rest.

    >>> from penstock.datastream.connectors import SinkWriter
    >>> class ShoutingWriter(SinkWriter):
    ...     def write(self, element, context):
    ...         print(element.upper())
    ...     def flush(self, end_of_input):
    ...         pass  # Nothing is buffered.
    >>> class ShoutingSink(Sink):
    ...     def create_writer(self, context):
    ...         return ShoutingWriter()
    >>> _ = env.from_collection(["a", "b"]).sink_to(ShoutingSink())
    >>> _ = env.execute("shouting")
    A
    B
    """

    def __init__(self, sink: object = None) -> None:
        _refuse_java("Sink", sink, "stream.sink_to(...) with a connector of penstock.datastream.connectors")

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """The writer of one subtask, on a fresh start."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} can be described but not run: it has no create_writer(context)"
        )

    def of_type(self, type_info: TypeInformation) -> Sink:
        """The sink for elements of a declared type: this one, unless it depends on the type."""
        return self


class DeliveryGuarantee(Enum):
    """How often a sink may deliver a record.

    `KafkaSink` has an example.
    """

    EXACTLY_ONCE = 0
    """Once, also after a failure; records show up when their checkpoint is complete."""

    AT_LEAST_ONCE = 1
    """Once or, after a failure, more often."""

    NONE = 2
    """Records may be lost or delivered twice after a failure."""


class StreamTransformer(ABC):
    """Changes a stream before it reaches a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """The stream as the sink takes it."""


class SupportsPreprocessing(ABC):
    """A sink that may want its stream changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What to apply to the stream before the sink; None for nothing."""


class DescribedSourceFunction(SourceFunction):
    """A source that programs add as a source function, but that is read as a Source."""

    @abstractmethod
    def to_source(self) -> Source:
        """The source that is read."""

    def run(self, ctx: SourceContext) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{type(self).__name__} has no loop of its own; give it to env.add_source(...), which reads it as a Source"
        )

    def cancel(self) -> None:
        """Does nothing: it never runs as a function."""


class DescribedSinkFunction(SinkFunction):
    """A sink that programs add as a sink function, but that is written as a Sink."""

    @abstractmethod
    def to_sink(self) -> Sink:
        """The sink that is written."""

    def invoke(self, value: Any, context: SinkFunction.Context) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{type(self).__name__} writes no single element; give it to stream.add_sink(...), which uses it as a Sink"
        )


class UnavailableConnector(RefusedName):
    """The type of connectors that have nothing to run on. Their docstring says what to use instead."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        if "instead" in namespace:
            cls.__doc__ = f"Not available on Spark; {namespace['instead']}."

    def _refuse(cls) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{cls.__qualname__} is not available on Spark; {cls.instead}. docs/connectors/wrapping.md shows a sink "
            f"and a source of 30 lines over any client"
        )


def _refuse_java(kind: str, given: object, instead: str) -> None:
    if given is not None:
        raise UnsupportedFeatureError(f"{kind}({given!r}): a Java {kind.lower()} cannot run here; use {instead}")
