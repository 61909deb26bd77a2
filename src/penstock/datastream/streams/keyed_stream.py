"""KeyedStream: elements grouped by key, with state and timers for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.fields import AggregationKind, Field, FieldAggregation
from penstock.datastream.functions import Function, KeyedProcessFunction, ProcessFunction, ReduceFunction
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.element_types import K, T
from penstock.datastream.streams.function_checks import check_function
from penstock.graph import descriptions as d
from penstock.graph.transformations import PartitionTransformation

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.streams.interval_join import IntervalJoin
    from penstock.datastream.streams.windowed_stream import WindowedStream
    from penstock.datastream.window import WindowAssigner


class KeyedStream(DataStream[T], Generic[T, K]):
    """A stream whose elements are grouped by key: what `key_by` returns.

    Map, filter and the like work as on other streams; functions in them may use keyed state.

    >>> orders = env.from_collection([("lamp", 2), ("desk", 1), ("lamp", 3)])
    >>> list(orders.key_by(lambda order: order[0]).max_by(1).execute_and_collect())
    [('lamp', 2), ('desk', 1), ('lamp', 3)]
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        transformation: PartitionTransformation,
        key_selector: Callable[[T], K],
        key_type: TypeInformation | None,
    ) -> None:
        super().__init__(environment, transformation)
        self.key_selector = key_selector
        self.key_type = key_type

    def get_key_type(self) -> TypeInformation | None:
        """The declared type of the key; None if none was declared."""
        return self.key_type

    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of elements for each element, with state and timers of its key.

        >>> from penstock.datastream import KeyedProcessFunction
        >>> from penstock.datastream.state import ValueStateDescriptor
        >>> class Count(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        ...     def process_element(self, value, ctx):
        ...         self.count.update((self.count.value() or 0) + 1)
        ...         yield ctx.get_current_key(), self.count.value()
        >>> words = env.from_collection(["a", "b", "a"])
        >>> list(words.key_by(lambda word: word).process(Count()).execute_and_collect())
        [('a', 1), ('b', 1), ('a', 2)]
        """
        if not isinstance(func, (KeyedProcessFunction, ProcessFunction)):
            raise TypeError(f"process needs a KeyedProcessFunction on a keyed stream, got {type(func).__name__}")
        return self._then("KEYED PROCESS", d.KeyedProcessDescription(self.key_selector, func), output_type)

    def reduce(self, func: Callable[[T, T], Any] | ReduceFunction) -> DataStream[T]:
        """A rolling reduce: each element emits the new value of its key; in BATCH mode only the last one is emitted.

        >>> pairs = env.from_collection([("a", 1), ("a", 2), ("b", 5)])
        >>> keyed = pairs.key_by(lambda pair: pair[0])
        >>> list(keyed.reduce(lambda total, pair: (total[0], total[1] + pair[1])).execute_and_collect())
        [('a', 1), ('a', 3), ('b', 5)]
        """
        return self._reduced("Keyed Reduce", check_function(func, ReduceFunction, "reduce"))

    def sum(self, position_to_sum: Field = 0) -> DataStream[T]:
        """The rolling sum of a field; the other fields stay those of the first element.

        >>> orders = env.from_collection([("lamp", 2), ("desk", 1), ("lamp", 3)])
        >>> list(orders.key_by(lambda order: order[0]).sum(1).execute_and_collect())
        [('lamp', 2), ('desk', 1), ('lamp', 5)]
        """
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: Field = 0) -> DataStream[T]:
        """The rolling minimum of a field; the other fields stay those of the first element.

        >>> bids = env.from_collection([("lamp", "ann", 3), ("lamp", "bob", 2)])
        >>> list(bids.key_by(lambda bid: bid[0]).min(2).execute_and_collect())
        [('lamp', 'ann', 3), ('lamp', 'ann', 2)]
        """
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: Field = 0) -> DataStream[T]:
        """The rolling maximum of a field; the other fields stay those of the first element.

        >>> bids = env.from_collection([("lamp", "ann", 3), ("lamp", "bob", 5), ("lamp", "eve", 4)])
        >>> list(bids.key_by(lambda bid: bid[0]).max(2).execute_and_collect())
        [('lamp', 'ann', 3), ('lamp', 'ann', 5), ('lamp', 'ann', 5)]
        """
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream[T]:
        """The element with the smallest field so far; the first of equals.

        >>> bids = env.from_collection([("lamp", "ann", 3), ("lamp", "bob", 2)])
        >>> list(bids.key_by(lambda bid: bid[0]).min_by(2).execute_and_collect())
        [('lamp', 'ann', 3), ('lamp', 'bob', 2)]
        """
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream[T]:
        """The element with the largest field so far; the first of equals.

        >>> bids = env.from_collection([("lamp", "ann", 3), ("lamp", "bob", 5), ("lamp", "eve", 4)])
        >>> list(bids.key_by(lambda bid: bid[0]).max_by(2).execute_and_collect())
        [('lamp', 'ann', 3), ('lamp', 'bob', 5), ('lamp', 'bob', 5)]
        """
        return self._aggregated("max_by", position_to_max_by)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream[T, K]:
        """Group the elements of each key by the windows of the assigner.

        >>> from penstock.datastream.window import CountTumblingWindowAssigner
        >>> pairs = env.from_collection([("a", 1), ("b", 5), ("a", 2)])
        >>> windows = pairs.key_by(lambda pair: pair[0]).window(CountTumblingWindowAssigner.of(2))
        >>> list(windows.sum(1).execute_and_collect())
        [('a', 3)]
        """
        from penstock.datastream.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def time_window(self, size: Any, slide: Any = None) -> WindowedStream[T, K]:
        """Tumbling windows of `size`, or sliding ones; processing time unless the environment says event time.

        >>> from penstock.common import Time
        >>> env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).time_window(Time.seconds(5)).sum(1).get_name()
        'TumblingProcessingTimeWindows'
        """
        from penstock.datastream.streams.windowed_stream import WindowedStream, time_windows

        return WindowedStream(self, time_windows(self._environment, size, slide))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[T, K]:
        """Windows of `size` elements of a key, a new one every `slide` elements; an incomplete one never fires.

        >>> pairs = env.from_collection([("a", 1), ("a", 2), ("a", 3)])
        >>> list(pairs.key_by(lambda pair: pair[0]).count_window(2).sum(1).execute_and_collect())
        [('a', 3)]
        """
        from penstock.datastream.streams.windowed_stream import WindowedStream, count_windows

        return WindowedStream(self, count_windows(size, slide))

    def interval_join(self, other: KeyedStream[Any, K]) -> IntervalJoin:
        """Pairs of elements with the same key and near timestamps: `.between(lower, upper).process(function)`.

        >>> from penstock.common import Time, WatermarkStrategy
        >>> from penstock.datastream import ProcessJoinFunction
        >>> class Pair(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left[0], right[1] - left[1]
        >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
        >>> clicks = env.from_collection([("ann", 1000), ("bob", 2000)]).assign_timestamps_and_watermarks(timed)
        >>> orders = env.from_collection([("ann", 4000), ("bob", 9000)]).assign_timestamps_and_watermarks(timed)
        >>> joined = clicks.key_by(lambda event: event[0]).interval_join(orders.key_by(lambda event: event[0]))
        >>> list(joined.between(Time.seconds(0), Time.seconds(5)).process(Pair()).execute_and_collect())
        [('ann', 3000)]
        """
        from penstock.datastream.streams.interval_join import IntervalJoin

        self._check_same_environment(other, "interval_join")
        return IntervalJoin(self, other)

    def _aggregated(self, kind: AggregationKind, field: Field) -> DataStream[T]:
        return self._reduced("Keyed Aggregation", FieldAggregation(kind, field))

    def _reduced(self, name: str, function: Any) -> DataStream[T]:
        return self._then(name, d.ReduceDescription(self.key_selector, function), self.transformation.output_type)

    # --- a keyed stream is partitioned already -----------------------------------------------------------------------

    def key_by(self, key_selector: Any, key_type: Any = None, *more_fields: Field) -> KeyedStream[T]:
        """Key the elements by another key, which replaces this one."""
        return self._values().key_by(key_selector, key_type, *more_fields)

    def _values(self) -> DataStream[T]:
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

    def shuffle(self) -> DataStream[T]:
        """Refused: a keyed stream is partitioned by its key."""
        return cast(DataStream[T], self._refused("shuffle"))

    def rebalance(self) -> DataStream[T]:
        """Refused: a keyed stream is partitioned by its key."""
        return cast(DataStream[T], self._refused("rebalance"))

    def rescale(self) -> DataStream[T]:
        """Refused: a keyed stream is partitioned by its key."""
        return cast(DataStream[T], self._refused("rescale"))

    def forward(self) -> DataStream[T]:
        """Refused: a keyed stream is partitioned by its key."""
        return cast(DataStream[T], self._refused("forward"))

    def broadcast(self, *args: Any) -> Any:
        """Refused: a keyed stream is partitioned by its key."""
        return self._refused("broadcast")

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream[T]:
        """Refused: a keyed stream is partitioned by its key."""
        return cast(DataStream[T], self._refused("partition_custom"))
