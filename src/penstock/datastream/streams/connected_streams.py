"""Two streams for one function: ConnectedStreams, BroadcastStream, BroadcastConnectedStream."""

from __future__ import annotations

from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.keyed_stream import KeyedStream
from penstock.graph import descriptions as d


class ConnectedStreams:
    """Two streams of possibly different types, for one function. If both are keyed, it has state by their common key.

    >>> from penstock.datastream import KeyedCoProcessFunction
    >>> from penstock.datastream.state import ValueStateDescriptor
    >>> class WithPrice(KeyedCoProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.price = runtime_context.get_state(ValueStateDescriptor("price"))
    ...     def process_element1(self, value, ctx):  # an order: (item, count)
    ...         yield value[0], value[1] * (self.price.value() or 0)
    ...     def process_element2(self, value, ctx):  # a price: (item, price)
    ...         self.price.update(value[1])
    >>> orders, prices = env.from_collection([("lamp", 2)]), env.from_collection([("lamp", 20)])
    >>> priced = orders.connect(prices).key_by(lambda order: order[0], lambda price: price[0]).process(WithPrice())
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def __repr__(self) -> str:
        return f"<ConnectedStreams of {self.stream1!r} and {self.stream2!r}>"

    def key_by(
        self, key_selector1: Any, key_selector2: Any, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Key both streams, each by its own selector; elements with equal keys meet in one subtask and share state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One element for each element: `map1` for those of the first stream, `map2` for those of the second."""
        _check(func, CoMapFunction, "map on connected streams")
        return self._then("Co-Map", d.CoMapDescription(func, self._key_selectors()), output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of elements for each element, by `flat_map1` and `flat_map2`."""
        _check(func, CoFlatMapFunction, "flat_map on connected streams")
        return self._then("Co-Flat Map", d.CoFlatMapDescription(func, self._key_selectors()), output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of elements for each element, by `process_element1` and `process_element2`.

        A KeyedCoProcessFunction, on keyed streams, has state and timers by the common key. The order of elements of
        different streams is not defined.
        """
        selectors = self._key_selectors()
        if isinstance(func, KeyedCoProcessFunction) and selectors[0] is None:
            raise InvalidProgramError(
                "a KeyedCoProcessFunction needs keys: call key_by on both streams before connect, or "
                "connect(...).key_by(selector1, selector2)"
            )
        _check(func, (CoProcessFunction, KeyedCoProcessFunction), "process on connected streams")
        name = "Co-Process" if selectors[0] is None else "Co-Keyed-Process"
        return self._then(name, d.CoProcessDescription(func, selectors), output_type)

    def _key_selectors(self) -> tuple[Any, Any]:
        keyed = [stream for stream in (self.stream1, self.stream2) if isinstance(stream, KeyedStream)]
        if len(keyed) == 1:
            raise InvalidProgramError(
                "connect: one of the two streams is keyed and the other is not; key both, or neither"
            )
        return (keyed[0].key_selector, keyed[1].key_selector) if keyed else (None, None)

    def _then(self, name: str, operator: d.OperatorDescription, output_type: TypeInformation | None) -> DataStream:
        inputs = [self.stream1.transformation, self.stream2.transformation]
        return self.stream1.get_execution_environment()._add_operator(name, operator, inputs, output_type)


class BroadcastStream:
    """A stream whose elements every subtask gets, to be kept in broadcast state; see `DataStream.broadcast`.

    `BroadcastConnectedStream` has an example.
    """

    def __init__(self, input_stream: DataStream, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise TypeError(f"broadcast needs MapStateDescriptors, got {type(descriptor).__name__}")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = descriptors

    def __repr__(self) -> str:
        names = ", ".join(repr(each.name) for each in self.broadcast_state_descriptors)
        return f"<BroadcastStream of {self.input_stream!r} with state {names}>"


class BroadcastConnectedStream:
    """A stream and a broadcast stream, for one function.

    >>> from penstock.datastream import BroadcastProcessFunction, RuntimeExecutionMode
    >>> from penstock.datastream.state import MapStateDescriptor
    >>> LIMITS = MapStateDescriptor("limits")
    >>> class Above(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value > ctx.get_broadcast_state(LIMITS).get("limit"):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(LIMITS).put("limit", value)
    >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)  # reads the broadcast stream first
    >>> limits = env.from_collection([3]).broadcast(LIMITS)
    >>> list(env.from_collection([1, 5, 4]).connect(limits).process(Above()).execute_and_collect())
    [5, 4]
    """

    def __init__(self, non_broadcast_stream: DataStream, broadcast_stream: BroadcastStream) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream

    def __repr__(self) -> str:
        return f"<BroadcastConnectedStream of {self.non_broadcast_stream!r} and {self.broadcast_stream!r}>"

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Any number of elements for each element of both streams.

        Only the broadcast side may change the broadcast state. A keyed stream needs a KeyedBroadcastProcessFunction,
        one without keys a BroadcastProcessFunction.
        """
        stream = self.non_broadcast_stream
        is_keyed = isinstance(stream, KeyedStream)
        wanted = KeyedBroadcastProcessFunction if is_keyed else BroadcastProcessFunction
        if not isinstance(func, wanted):
            kind = "keyed" if is_keyed else "not keyed"
            raise InvalidProgramError(
                f"process: the stream is {kind} and needs a {wanted.__name__}, got {type(func).__name__}"
            )
        selector = stream.key_selector if isinstance(stream, KeyedStream) else None
        description = d.BroadcastProcessDescription(
            func, (selector, None), self.broadcast_stream.broadcast_state_descriptors
        )
        name = "Co-Process-Broadcast-Keyed" if is_keyed else "Co-Process-Broadcast"
        inputs = [stream.transformation, self.broadcast_stream.input_stream.transformation]
        return stream.get_execution_environment()._add_operator(name, description, inputs, output_type)


def _check(function: Any, kind: Any, method: str) -> None:
    if not isinstance(function, kind):
        names = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"{method} needs a {names}, got {type(function).__name__}")
