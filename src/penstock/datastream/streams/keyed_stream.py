"""KeyedStream: elements grouped by key, with state and timers for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.fields import AggregationKind, Field, FieldAggregation
from penstock.datastream.functions import Function, KeyedProcessFunction, ProcessFunction, ReduceFunction
from penstock.datastream.streams.data_stream import DataStream, check_function
from penstock.graph import descriptions as d
from penstock.graph.transformations import PartitionTransformation

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.streams.interval_join import IntervalJoin
    from penstock.datastream.streams.windowed_stream import WindowedStream
    from penstock.datastream.window import WindowAssigner


class KeyedStream(DataStream):
    """What `key_by` gives. Map, filter and the like keep working; functions in them may use keyed state."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        transformation: PartitionTransformation,
        key_selector: Callable[[Any], Any],
        key_type: TypeInformation | None,
    ) -> None:
        super().__init__(environment, transformation)
        self.key_selector = key_selector
        self.key_type = key_type

    def get_key_type(self) -> TypeInformation | None:
        return self.key_type

    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of elements for each element, with keyed state and timers."""
        if not isinstance(func, (KeyedProcessFunction, ProcessFunction)):
            raise TypeError(f"process needs a KeyedProcessFunction on a keyed stream, got {type(func).__name__}")
        return self._then("KEYED PROCESS", d.KeyedProcessDescription(self.key_selector, func), output_type)

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """A rolling reduce: each element gives the new value of its key; in BATCH mode only the last one is emitted."""
        return self._reduced("Keyed Reduce", check_function(func, ReduceFunction, "reduce"))

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        """The rolling sum of a field; the other fields stay those of the first element."""
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: Field = 0) -> DataStream:
        """The rolling minimum of a field; the other fields stay those of the first element."""
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: Field = 0) -> DataStream:
        """The rolling maximum of a field; the other fields stay those of the first element."""
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream:
        """The element with the smallest field so far; the first of equals."""
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream:
        """The element with the largest field so far; the first of equals."""
        return self._aggregated("max_by", position_to_max_by)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        from penstock.datastream.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def time_window(self, size: Any, slide: Any = None) -> WindowedStream:
        """Tumbling windows of `size`, or sliding ones; processing time unless the environment says event time."""
        from penstock.datastream.streams.windowed_stream import WindowedStream, time_windows

        return WindowedStream(self, time_windows(self._environment, size, slide))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of `size` elements of a key, a new one every `slide` elements."""
        from penstock.datastream.streams.windowed_stream import WindowedStream, count_windows

        return WindowedStream(self, count_windows(size, slide))

    def interval_join(self, other: KeyedStream) -> IntervalJoin:
        """Pairs of elements with the same key whose timestamps are near: `.between(lower, upper).process(...)`."""
        from penstock.datastream.streams.interval_join import IntervalJoin

        self._check_same_environment(other, "interval_join")
        return IntervalJoin(self, other)

    def _aggregated(self, kind: AggregationKind, field: Field) -> DataStream:
        return self._reduced("Keyed Aggregation", FieldAggregation(kind, field))

    def _reduced(self, name: str, function: Any) -> DataStream:
        return self._then(name, d.ReduceDescription(self.key_selector, function), self.transformation.output_type)

    # --- a keyed stream is partitioned already -----------------------------------------------------------------------

    def key_by(self, key_selector: Any, key_type: Any = None, *more_fields: Field) -> KeyedStream:
        return self._values().key_by(key_selector, key_type, *more_fields)

    def _values(self) -> DataStream:
        """The elements as they were before key_by."""
        return DataStream(self._environment, self.transformation.inputs[0])

    def _key_selector_for(self, function: Any) -> Any:
        # A plain callable cannot ask for state, so it needs no key; and without one it can be fused.
        return self.key_selector if isinstance(function, Function) else None

    def _refused(self, method: str) -> Any:
        raise UnsupportedFeatureError(
            f"{method}() on a keyed stream: it is partitioned by its key already; call {method}() before key_by(), or "
            f"after the operator that follows it"
        )

    def shuffle(self) -> DataStream:
        return cast(DataStream, self._refused("shuffle"))

    def rebalance(self) -> DataStream:
        return cast(DataStream, self._refused("rebalance"))

    def rescale(self) -> DataStream:
        return cast(DataStream, self._refused("rescale"))

    def forward(self) -> DataStream:
        return cast(DataStream, self._refused("forward"))

    def broadcast(self, *args: Any) -> Any:
        return self._refused("broadcast")

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        return cast(DataStream, self._refused("partition_custom"))
