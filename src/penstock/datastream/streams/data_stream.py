"""DataStream: a stream of elements, and what can be done to it. Every method only adds a node to the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from penstock.common import config_keys as keys
from penstock.common.exceptions import ConfigurationError, InvalidProgramError, UnsupportedFeatureError
from penstock.common.execution_config import ExecutionConfig
from penstock.common.serialization import SerializationSchema
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors.base import DescribedSinkFunction, Sink, SupportsPreprocessing
from penstock.datastream.connectors.sink_v2 import SupportsCommitter
from penstock.datastream.connectors.socket_sink import SocketSink
from penstock.datastream.fields import Field, Projection, as_key_selector, with_key_type
from penstock.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    TwoPhaseCommitSinkFunction,
)
from penstock.datastream.java_handles import JavaStream, stream_behind
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.streams.closeable_iterator import CloseableIterator
from penstock.datastream.streams.data_stream_sink import DataStreamSink
from penstock.datastream.streams.element_types import T
from penstock.datastream.streams.function_checks import check_function
from penstock.datastream.streams.operator_settings import StreamSettings
from penstock.datastream.users_frames import users_line
from penstock.graph import descriptions as d
from penstock.graph import partitioners as p
from penstock.graph.transformations import (
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.streams.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from penstock.datastream.streams.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.streams.keyed_stream import KeyedStream
    from penstock.datastream.streams.windowed_stream import AllWindowedStream
    from penstock.datastream.window import WindowAssigner


class DataStream(StreamSettings, Generic[T]):
    """A stream of elements. Each method adds an operator and returns its output; nothing runs before `execute`.

    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> lengths = env.from_collection(["a", "bb"]).map(len)
    >>> lengths.get_name()
    'Map'
    >>> list(lengths.execute_and_collect())
    [1, 2]
    """

    def __init__(
        self, environment: StreamExecutionEnvironment | JavaStream, transformation: Transformation | None = None
    ) -> None:
        if transformation is None:
            environment, transformation = stream_behind(environment)
        self._environment = cast("StreamExecutionEnvironment", environment)
        self.transformation = transformation

    # --- about the stream --------------------------------------------------------------------------------------------

    def get_name(self) -> str:
        """The name of the operator before. Plans show a source's name as `Source: name`."""
        return self.transformation.name.removeprefix("Source: ")

    def get_type(self) -> TypeInformation:
        """The declared type of the elements; pickled objects if none was declared."""
        return self.transformation.output_type or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """The settings of the job."""
        return self._environment.get_config()

    def name(self, name: str) -> DataStream[T]:
        """Name the operator before: plans, the dashboard and errors show the name.

        >>> env.from_collection([1]).map(str).name("to text").get_name()
        'to text'
        """
        operator = self._operator("name()")
        is_source = isinstance(operator.operator, d.SourceDescription) and not name.startswith("Source: ")
        operator.name = f"Source: {name}" if is_source else name
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> DataStream[T]:
        """The group of operators that may share a slot with the one before; operators behind it inherit the group."""
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._environment.register_slot_sharing_group(slot_sharing_group)
        return super().slot_sharing_group(slot_sharing_group)

    # --- element by element ------------------------------------------------------------------------------------------

    def map(self, func: Callable[[T], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One element for each element.

        >>> list(env.from_collection([1, 2]).map(lambda number: number * 10).execute_and_collect())
        [10, 20]
        """
        function = check_function(func, MapFunction, "map")
        return self._then("Map", d.MapDescription(function, self._key_selector_for(function)), output_type)

    def flat_map(
        self, func: Callable[[T], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of elements for each element: `func` returns an iterable, yields, or returns None for nothing.

        >>> list(env.from_collection(["to be", "or not"]).flat_map(str.split).execute_and_collect())
        ['to', 'be', 'or', 'not']
        """
        function = check_function(func, FlatMapFunction, "flat_map")
        return self._then("Flat Map", d.FlatMapDescription(function, self._key_selector_for(function)), output_type)

    def filter(self, func: Callable[[T], object] | FilterFunction) -> DataStream[T]:
        """The elements for which `func` is true.

        >>> list(env.from_collection([1, 2, 3, 4]).filter(lambda number: number % 2 == 0).execute_and_collect())
        [2, 4]
        """
        function = check_function(func, FilterFunction, "filter")
        description = d.FilterDescription(function, self._key_selector_for(function))
        return self._then("Filter", description, self.transformation.output_type)

    def process(self, func: ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of elements for each element, with access to its timestamp, to side outputs and the clock.

        >>> from penstock.datastream import ProcessFunction
        >>> class Twice(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value
        ...         yield value
        >>> list(env.from_collection(["a", "b"]).process(Twice()).execute_and_collect())
        ['a', 'a', 'b', 'b']
        """
        if not isinstance(func, ProcessFunction):
            raise TypeError(
                f"process needs a ProcessFunction on a stream without keys, got {type(func).__name__}; a "
                f"KeyedProcessFunction needs key_by(...) before it"
            )
        return self._then("PROCESS", d.ProcessDescription(func), output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """The chosen fields of each element, by position, as a tuple.

        >>> list(env.from_collection([(1, "a", True)]).project(2, 0).execute_and_collect())
        [(True, 1)]
        """
        if not field_indexes or any(not isinstance(each, int) for each in field_indexes):
            raise TypeError(f"project needs the positions of fields, got {field_indexes!r}")
        return self._then("Projection", d.MapDescription(Projection(field_indexes)), None)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T]:
        """Give the elements timestamps, which replace the source's, and emit watermarks as the strategy says.

        >>> from penstock.common import WatermarkStrategy
        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
        >>> readings = env.from_collection([("a", 1000)]).assign_timestamps_and_watermarks(strategy)
        >>> list(readings.execute_and_collect())
        [('a', 1000)]
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise TypeError(
                f"assign_timestamps_and_watermarks needs a WatermarkStrategy, got {type(watermark_strategy).__name__}"
            )
        description = d.WatermarksDescription(
            self._environment._strategy_as_configured(watermark_strategy, "assign_timestamps_and_watermarks"),
            self._environment.get_config().get_auto_watermark_interval(),
        )
        return self._then("Timestamps/Watermarks", description, self.transformation.output_type)

    # --- exchange ----------------------------------------------------------------------------------------------------

    def key_by(
        self,
        key_selector: Callable[[T], Any] | KeySelector | Field,
        key_type: TypeInformation | Field | None = None,
        *more_fields: Field,
    ) -> KeyedStream[T]:
        """Elements with the same key go to the same subtask, and functions there have state and timers for each key.

        `key_selector` is a function, a KeySelector, or a field by position or name; further fields may follow. A key
        must be the same in every process: strings, numbers, tuples and frozen dataclasses are; objects that compare by
        identity are refused. Keys get the form of their declared `key_type`: as `Types.LONG()`, 1.0 and 1.5 are 1.

        >>> pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
        >>> list(pairs.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
        [('a', 1), ('b', 2), ('a', 4)]
        """
        from penstock.datastream.streams.keyed_stream import KeyedStream

        fields = more_fields if key_type is None or isinstance(key_type, TypeInformation) else (key_type, *more_fields)
        declared = key_type if isinstance(key_type, TypeInformation) else None
        selector = with_key_type(as_key_selector(key_selector, *fields), declared)
        partition = self._partition("key_by", p.KeyGroupStreamPartitioner(selector, users_line()))
        return KeyedStream(self._environment, partition, selector, declared)

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Any
    ) -> DataStream[T]:
        """`partitioner(key, number of subtasks)` says which subtask an element goes to, counted from 0.

        >>> numbers = env.from_collection([1, 2, 3])
        >>> spread = numbers.partition_custom(lambda key, subtasks: key % subtasks, lambda number: number)
        """
        function = check_function(partitioner, Partitioner, "partition_custom")
        choose = function.partition if isinstance(function, Partitioner) else function
        return self._partitioned("partition_custom", p.CustomPartitioner(choose, as_key_selector(key_selector)))

    def shuffle(self) -> DataStream[T]:
        """Elements go to random subtasks."""
        return self._partitioned("shuffle", p.ShufflePartitioner())

    def rebalance(self) -> DataStream[T]:
        """Elements go to all subtasks in turn.

        >>> spread = env.from_collection([1, 2, 3]).rebalance().map(lambda number: number * 10).set_parallelism(2)
        >>> sorted(spread.execute_and_collect())
        [10, 20, 30]
        """
        return self._partitioned("rebalance", p.RebalancePartitioner())

    def rescale(self) -> DataStream[T]:
        """Elements go in turn to a subset of the subtasks near their own."""
        return self._partitioned("rescale", p.RescalePartitioner())

    def forward(self) -> DataStream[T]:
        """Elements stay in the subtask of the same number; needs the same parallelism on both sides."""
        return self._partitioned("forward", p.ForwardPartitioner())

    def global_(self) -> DataStream[T]:
        """All elements go to the first subtask."""
        return self._partitioned("global", p.GlobalPartitioner())

    @overload
    def broadcast(self) -> DataStream[T]: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream[T] | BroadcastStream:
        """Every element goes to every subtask; with state descriptors, a BroadcastStream to connect with.

        >>> from penstock.datastream.state import MapStateDescriptor
        >>> type(env.from_collection([("limit", 5)]).broadcast(MapStateDescriptor("rules"))).__name__
        'BroadcastStream'
        """
        from penstock.datastream.streams.connected_streams import BroadcastStream

        stream = self._partitioned("broadcast", p.BroadcastPartitioner())
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    # --- several streams ---------------------------------------------------------------------------------------------

    def union(self, *streams: DataStream[T]) -> DataStream[T]:
        """The elements of all these streams, which should have the same type, in no defined order among each other.

        >>> evens, odds = env.from_collection([2, 4]), env.from_collection([1, 3])
        >>> sorted(evens.union(odds).execute_and_collect())
        [1, 2, 3, 4]
        """
        for stream in streams:
            self._check_same_environment(stream, "union")
        transformation = UnionTransformation(
            self._environment._next_id(),
            "union",
            self.transformation.parallelism,
            [stream.transformation for stream in (self, *streams)],  # Keyed ones stay partitioned by their keys.
            output_type=self.transformation.output_type,
        )
        return DataStream(self._environment, transformation)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Two streams of different types, to be handled by one function; or a stream and a broadcast one.

        >>> from penstock.datastream import CoMapFunction
        >>> class ToText(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"number {value}"
        ...     def map2(self, value):
        ...         return f"word {value}"
        >>> both = env.from_collection([1]).connect(env.from_collection(["a"])).map(ToText())
        >>> sorted(both.execute_and_collect())
        ['number 1', 'word a']
        """
        from penstock.datastream.streams.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            self._check_same_environment(ds.input_stream, "connect")
            return BroadcastConnectedStream(self, ds)
        self._check_same_environment(ds, "connect")
        return ConnectedStreams(self, ds)

    def join(self, other: DataStream) -> JoinedStreams:
        """Pairs of elements with the same key in the same window; an element without a partner is dropped.

        Write `a.join(b).where(key of a).equal_to(key of b).window(...).apply(function)`.
        """
        from penstock.datastream.streams.joined_streams import JoinedStreams

        self._check_same_environment(other, "join")
        return JoinedStreams(self, other)

    def co_group(self, other: DataStream) -> CoGroupedStreams:
        """The elements of both streams with the same key in the same window, as two lists, of which one may be empty.

        Write `a.co_group(b).where(key of a).equal_to(key of b).window(...).apply(function)`.
        """
        from penstock.datastream.streams.joined_streams import CoGroupedStreams

        self._check_same_environment(other, "co_group")
        return CoGroupedStreams(self, other)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator before emitted to `output_tag`.

        >>> from penstock.datastream import OutputTag, ProcessFunction
        >>> ODD = OutputTag("odd")
        >>> class Sort(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield (ODD, value) if value % 2 else value
        >>> evens = env.from_collection([1, 2, 3]).process(Sort())
        >>> list(evens.get_side_output(ODD).execute_and_collect())
        [1, 3]
        """
        operator = self._operator("get_side_output()")
        transformation = SideOutputTransformation(
            self._environment._next_id(),
            "side output",
            operator.parallelism,
            [operator],
            output_type=output_tag.type_info,
            tag_id=output_tag.tag_id,
        )
        return DataStream(self._environment, transformation)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream[T]:
        """Windows over all elements, whatever their key. They are handled in one subtask.

        >>> from penstock.datastream.window import GlobalWindows
        >>> numbers = env.from_collection([1, 2, 3])
        >>> list(numbers.window_all(GlobalWindows.create_with_end_of_stream_trigger()).sum().execute_and_collect())
        [6]
        """
        from penstock.datastream.streams.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def time_window_all(self, size: Any, slide: Any = None) -> AllWindowedStream[T]:
        """Tumbling windows of `size`, or sliding ones; processing time unless the environment says event time."""
        from penstock.datastream.streams.windowed_stream import AllWindowedStream, time_windows

        return AllWindowedStream(self, time_windows(self._environment, size, slide))

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[T]:
        """Windows of `size` elements, a new one every `slide` elements; an incomplete one never fires.

        >>> list(env.from_collection([1, 2, 3, 4, 5]).count_window_all(2).sum().execute_and_collect())
        [3, 7]
        """
        from penstock.datastream.streams.windowed_stream import AllWindowedStream, count_windows

        return AllWindowedStream(self, count_windows(size, slide))

    # --- sinks -------------------------------------------------------------------------------------------------------

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print every element to standard output, as `identifier:subtask> element`; lines may repeat after a failure.

        The subtask is left out when there is only one, and the identifier when none is given.

        >>> env.from_collection([("lamp", 2)]).print("orders")
        <DataStreamSink 'Sink: Print to Std. Out', id 2, parallelism 1>
        """
        return self._print("stdout", sink_identifier)

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print every element to standard error; like `print`."""
        return self._print("stderr", sink_identifier)

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Call `sink_func.invoke(value, context)` with every element; exactly once for a TwoPhaseCommitSinkFunction."""
        if not isinstance(sink_func, SinkFunction):
            raise TypeError(
                f"add_sink needs a SinkFunction with invoke(value, context), got {type(sink_func).__name__}"
            )
        if isinstance(sink_func, DescribedSinkFunction):
            return self.sink_to(sink_func.to_sink())
        if isinstance(sink_func, TwoPhaseCommitSinkFunction):
            return self._sink("Unnamed", d.TwoPhaseCommitDescription(sink_func))
        return self._sink("Unnamed", d.SinkFunctionDescription(sink_func))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write every element with a connector's sink, or with one of your own (`penstock.datastream.connectors`).

        >>> from penstock.datastream.connectors import DiscardingSink
        >>> sink = env.from_collection([1, 2]).sink_to(DiscardingSink()).name("nowhere")
        """
        if not isinstance(sink, Sink):
            what_to_do = "call build() on it" if hasattr(sink, "build") else "a SinkFunction goes to add_sink"
            raise TypeError(f"sink_to needs a Sink such as FileSink, got {type(sink).__name__}; {what_to_do}")
        if type(sink).create_writer is Sink.create_writer:
            raise UnsupportedFeatureError(
                f"sink_to({type(sink).__name__}): it can be described but not run, because it has no "
                f"create_writer(context); write to files with FileSink, or write a Sink of your own"
            )
        transformer = sink.get_transformer() if isinstance(sink, SupportsPreprocessing) else None
        stream = self if transformer is None else transformer.apply(self)
        if stream.transformation.output_type is not None:
            sink = sink.of_type(stream.transformation.output_type)
        return stream._sink("Writer", d.SinkWriterDescription(sink, isinstance(sink, SupportsCommitter)))

    def write_to_socket(self, host_name: str, port: int, schema: SerializationSchema) -> DataStreamSink:
        """Send the bytes of every element to a server, from one subtask. They may be lost, or arrive twice.

        Nothing is put between elements: a schema that makes lines must add the line breaks.
        """
        return self.sink_to(SocketSink(host_name, port, schema)).set_parallelism(1)

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Run the job now and get the elements of this stream: an iterator, or a list of at most `limit` elements.

        >>> env.from_collection(["a", "b", "c"]).execute_and_collect(limit=2)
        ['a', 'b']
        """
        if limit is not None and limit <= 0:
            raise ValueError(f"limit must be positive, got {limit}")
        collect_id = f"collect-{self._environment._next_id()}"
        # As in Flink, one subtask collects: so what one subtask has emitted stays in order.
        self._sink("Data stream collect sink", d.CollectSinkDescription(collect_id)).set_parallelism(1)
        values, close = self._environment._submit_and_collect(job_execution_name, collect_id)
        iterator = CloseableIterator[T](values, close)
        if limit is None:
            return iterator
        with iterator:
            return list(itertools.islice(iterator, limit))

    def to_pandas(self, limit: int | None = None, job_execution_name: str | None = None) -> Any:
        """Run the job now and get its elements, at most `limit` of them, as a pandas DataFrame.

        Rows, dicts, dataclasses and objects have a column for each field; tuples have numbered ones, and other elements
        a column `value`. All of them pass through this process: for much data use `to_data_frame`.
        """
        from penstock.datastream.pandas_frames import pandas_frame

        return pandas_frame(list(self.execute_and_collect(job_execution_name, limit)), self.transformation.output_type)

    def to_data_frame(self, type_info: TypeInformation | None = None, job_execution_name: str | None = None) -> Any:
        """Run the job now and get the elements of this bounded stream as a Spark DataFrame.

        Its columns are those of the stream's row type, or of `type_info`. The subtasks write the rows, and Spark reads
        them, so they do not pass through the driver; they are in a temporary folder until the program ends.
        """
        from penstock.datastream.data_frames import to_data_frame

        return to_data_frame(self, type_info, job_execution_name)

    def sink_to_spark(
        self,
        format: str | Callable[[Any, int], object],
        options: Mapping[str, str] | None = None,
        type_info: TypeInformation | None = None,
        mode: str = "append",
        partition_by: str | Sequence[str] | None = None,
        staging_dir: str | None = None,
    ) -> DataStreamSink:
        """Write the rows of this stream with one of Spark's writers, when the checkpoint they belong to is complete.

        Files (`parquet`, `orc`, `csv`, `json`, `text`, `avro`, `xml`, with `options={"path": ...}`) are written exactly
        once, and so is everything in mode `overwrite`, where each checkpoint's rows replace those before. Other formats
        append at least once: rows come twice only if the process dies while Spark writes them. A function
        instead of a format gets the rows of each checkpoint as a DataFrame, and a number that is the same when they
        come again: `lambda data_frame, batch_id: ...`.

        :param type_info: The columns; those of the stream's row type, unless given.
        :param partition_by: Columns whose values become folders.
        :param staging_dir: Where rows are kept until then, which the driver and all executors must reach; the folder
            of the checkpoints or the working folder, unless given.
        """
        from penstock.datastream.connectors.spark.sink import SparkTarget
        from penstock.datastream.data_frames import spark_sink

        columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by or ())
        target = SparkTarget(format, dict(options or {}), mode, columns)
        return self.sink_to(spark_sink(self, target, type_info, staging_dir))

    def cache(self) -> CachedDataStream:
        """Refused with UnsupportedFeatureError: it keeps a batch result on Flink's TaskManagers."""
        raise UnsupportedFeatureError(
            "cache() keeps a batch result on Flink's TaskManagers and has no counterpart here; use "
            "execute_and_collect() and from_collection(), or write to a file"
        )

    # --- building ----------------------------------------------------------------------------------------------------

    def _values(self) -> DataStream[T]:
        """This stream as one without keys."""
        return self

    def _key_selector_for(self, function: Any) -> Any:
        """None here: only a keyed stream gives its functions a key."""
        return None

    def _then(
        self, name: str, operator: d.OperatorDescription, output_type: TypeInformation | None, **settings: Any
    ) -> DataStream:
        """This stream, followed by one operator."""
        return self._environment._add_operator(name, operator, [self.transformation], output_type, **settings)

    def _sink(self, name: str, operator: d.SinkDescription) -> DataStreamSink:
        stream = self._then(f"Sink: {name}", operator, None)
        return DataStreamSink(cast(PhysicalTransformation, stream.transformation))

    def _print(self, stream: Any, identifier: str | None) -> DataStreamSink:
        name = "Print to Std. Err" if stream == "stderr" else "Print to Std. Out"
        look: Any = self._environment.get_configuration().get(keys.PRINT_LOOK).lower()
        if look not in ("flink", "pyflink"):
            raise ConfigurationError(f"{keys.PRINT_LOOK.key}: {look!r} is not one of flink, pyflink")
        return self._sink(name, d.PrintSinkDescription(identifier or "", stream, self.transformation.output_type, look))

    def _partition(self, name: str, partitioner: p.StreamPartitioner) -> PartitionTransformation:
        return PartitionTransformation(
            self._environment._next_id(),
            name,
            self.transformation.parallelism,
            [self.transformation],
            output_type=self.transformation.output_type,
            partitioner=partitioner,
        )

    def _partitioned(self, name: str, partitioner: p.StreamPartitioner) -> DataStream[T]:
        return DataStream(self._environment, self._values()._partition(name, partitioner))

    def _check_same_environment(self, other: DataStream, method: str) -> None:
        if not isinstance(other, DataStream):
            raise TypeError(f"{method} needs a DataStream, got {type(other).__name__}")
        if other._environment is not self._environment:
            raise InvalidProgramError(
                f"{method}: the streams belong to different environments; build both with the same "
                f"StreamExecutionEnvironment"
            )


class CachedDataStream(DataStream[T]):
    """Exists for its name: see `DataStream.cache`."""

    def invalidate(self) -> None:
        """Does nothing: nothing is ever cached."""
