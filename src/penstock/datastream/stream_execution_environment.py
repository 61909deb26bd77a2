"""StreamExecutionEnvironment: where a program begins and where it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from penstock.common import config_keys as keys
from penstock.common.config_checks import check_keys
from penstock.common.configuration import Configuration
from penstock.common.cores import machine_cores
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.execution_config import ExecutionConfig
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.time import to_milliseconds
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import submission
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.connectors.base import DescribedSourceFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.source_v2 import Source as SplitSource
from penstock.datastream.declared_types import collection_as
from penstock.datastream.default_parallelism import default_parallelism
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.functions import ParallelSourceFunction, SourceFunction
from penstock.datastream.launch import starting_configuration
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.operator_settings import check_parallelism
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.datastream.users_frames import ShowingUsersFrames, users_line
from penstock.graph import descriptions as d
from penstock.graph.batch import RuntimeMode
from penstock.graph.stream_graph import StreamGraph, StreamGraphGenerator
from penstock.graph.transformations import ChainingStrategy, PhysicalTransformation, Transformation

DEFAULT_JOB_NAME = "Penstock Streaming Job"


class StreamExecutionEnvironment:
    """Where a program begins: sources come from here, and `execute` runs what was built from them.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> numbers = env.from_collection([1, 2, 3]).map(lambda number: number * 10)
    >>> list(numbers.execute_and_collect())
    [10, 20, 30]
    """

    _default_local_parallelism: int | None = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration.from_dict(starting_configuration())
        if configuration is not None:
            self._configuration.add_all(configuration)
        check_keys(self._configuration)
        self._transformations: list[PhysicalTransformation] = []
        self._last_id = 0
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._dependencies = JobDependencies()
        self._spark: Any = None
        self._local_parallelism = StreamExecutionEnvironment._default_local_parallelism

    def __repr__(self) -> str:
        return f"<StreamExecutionEnvironment of {len(self._transformations)} operators, {self._configuration}>"

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """An environment with the settings that the program was started with, and `configuration` on top.

        Those settings are the flags of `penstock run`, or, for a program started by plain Python, the `config.yaml` in
        the folder that `PENSTOCK_CONF_DIR` names.

        >>> from penstock.common import Configuration
        >>> settings = Configuration.from_dict({"parallelism.default": "4"})
        >>> StreamExecutionEnvironment.get_execution_environment(settings).get_parallelism()
        4
        """
        return StreamExecutionEnvironment(configuration)

    @staticmethod
    def create_local_environment(
        parallelism: int | None = None, configuration: Configuration | None = None
    ) -> StreamExecutionEnvironment:
        """An environment whose default parallelism is `parallelism`, or the number of cores of this machine.

        >>> StreamExecutionEnvironment.create_local_environment(2).get_parallelism()
        2
        """
        environment = StreamExecutionEnvironment(configuration)
        return environment if parallelism is None else environment.set_parallelism(parallelism)

    # --- settings ----------------------------------------------------------------------------------------------------

    def get_configuration(self) -> Configuration:
        """The live configuration: a change to it takes effect in this environment."""
        return self._configuration

    def get_config(self) -> ExecutionConfig:
        """The settings of the job as methods; a live view of the configuration."""
        return ExecutionConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Add these settings to the configuration; they replace those with the same keys.

        >>> from penstock.common import Configuration
        >>> env.configure(Configuration().set_string("pipeline.max-parallelism", "720"))
        >>> env.get_max_parallelism()
        720
        """
        self._configuration.add_all(configuration)
        check_keys(self._configuration)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """How many subtasks each operator has, unless it sets its own; 1 unless set.

        >>> env.set_parallelism(2).from_collection(["a"]).map(str.upper).transformation.parallelism
        2
        """
        self._configuration.set(keys.PARALLELISM, check_parallelism(parallelism, "set_parallelism"))
        return self

    def get_parallelism(self) -> int:
        """The default parallelism of operators: what was set, else the number of cores, and 1 on a cluster."""
        given = self._configuration.get_optional(keys.PARALLELISM)
        if given is not None:
            return check_parallelism(given, keys.PARALLELISM.key)
        return default_parallelism(self._configuration, self._spark, self._local_parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups, and so the largest parallelism that the job's state can ever be spread over.

        It cannot change any more once a savepoint has been taken. Unless set, it follows from the parallelism: at least
        128.
        """
        self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The max parallelism that was set; -1 if it follows from the parallelism."""
        return self.get_config().get_max_parallelism()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """For environments that are made from now on, where nothing else is set and the job runs on this machine."""
        StreamExecutionEnvironment._default_local_parallelism = check_parallelism(
            parallelism, "set_default_local_parallelism"
        )

    def get_default_local_parallelism(self) -> int:
        """The number of cores of this machine, unless another number was set."""
        return StreamExecutionEnvironment._default_local_parallelism or machine_cores()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING, which is the default; BATCH, for bounded sources only; or AUTOMATIC, which is BATCH if all of them
        are.

        In BATCH mode keyed operators get their input key by key and emit final results only.

        >>> from penstock.datastream import RuntimeExecutionMode
        >>> batch = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> pairs = batch.from_collection([("a", 1), ("a", 2)])
        >>> list(pairs.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
        [('a', 3)]
        """
        self._configuration.set(keys.RUNTIME_MODE, execution_mode.name)
        return self

    def runtime_mode(self) -> RuntimeExecutionMode:
        """The runtime mode that was set; STREAMING unless one was."""
        name = self._configuration.get(keys.RUNTIME_MODE).upper()
        try:
            return RuntimeExecutionMode[name]
        except KeyError:
            known = ", ".join(mode.name for mode in RuntimeExecutionMode)
            raise InvalidProgramError(f"{keys.RUNTIME_MODE.key}: {name!r} is not one of {known}") from None

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> StreamExecutionEnvironment:
        """Whether `time_window` makes windows of event or processing time; nothing else asks for it."""
        self._configuration.set(keys.TIME_CHARACTERISTIC, characteristic.value)
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The time characteristic that was set; event time unless one was, as in Flink."""
        return TimeCharacteristic(self._configuration.get(keys.TIME_CHARACTERISTIC))

    def uses_event_time_windows(self) -> bool:
        """True if `time_window` makes event-time windows: only when event time was asked for by name."""
        asked = self._configuration.get_optional(keys.TIME_CHARACTERISTIC)
        return asked is not None and TimeCharacteristic(asked) is not TimeCharacteristic.PROCESSING_TIME

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """The least time between the starts of two epochs, in milliseconds; so the longest that a record waits for its
        own.

        0 starts an epoch as soon as the last one is done; -1 waits for 100 ms; 5 ms unless set. A longer timeout costs
        less CPU time where few records come.
        """
        if timeout_millis < -1:
            raise ValueError(f"the buffer timeout must be -1 or more, got {timeout_millis}")
        self._configuration.set_integer(keys.BUFFER_TIMEOUT.key, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """The buffer timeout in milliseconds; -1 if it was turned off, 100 if it was not set."""
        is_off = self._configuration.get_string(keys.BUFFER_TIMEOUT.key, "").strip() == "-1"
        return -1 if is_off else self._configuration.get(keys.BUFFER_TIMEOUT)

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run every operator by itself. For measurements; it makes jobs slower."""
        self._configuration.set(keys.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """True unless `disable_operator_chaining` was called, or configured."""
        return self._configuration.get(keys.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """The setting of that name, which has no effect: operators are chained by Flink's other rules alone."""
        return self._configuration.get(keys.CHAIN_DIFFERENT_MAX_PARALLELISM)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Make a group with resources known, for operators that name it by `slot_sharing_group(name)`."""
        self._slot_sharing_groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    # --- checkpoints, state, restarts --------------------------------------------------------------------------------

    def enable_checkpointing(
        self, interval: int | None = None, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Take a checkpoint every `interval` milliseconds.

        A job without end then also restarts after a failure, with a growing delay as in Flink, and gives up when it
        fails again and again at the same record; docs/reliability.md has the rules. Where checkpoints go is set by
        `execution.checkpointing.dir`; without it they are gone when the job ends.

        >>> env.enable_checkpointing(10_000).get_checkpoint_interval()
        10000
        """
        if interval is not None:
            self._configuration.set(keys.CHECKPOINT_INTERVAL, to_milliseconds(interval))
        if mode is not None:
            self.get_checkpoint_config().set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint settings as methods; a live view of the configuration."""
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between the starts of two checkpoints; -1 if checkpoints are off."""
        interval_ms = self._configuration.get_optional(keys.CHECKPOINT_INTERVAL)
        return -1 if interval_ms is None else interval_ms

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE or AT_LEAST_ONCE; see `CheckpointConfig.get_checkpointing_mode`."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The newer name of `get_checkpointing_mode`."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go when the command that asks for one names no folder."""
        self._configuration.set(keys.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go by default; None if no folder was set."""
        return self._configuration.get_optional(keys.SAVEPOINT_DIR)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """True if unaligned checkpoints were asked for; epochs have nothing to align, so nothing changes."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """True if unaligned checkpoints were forced; that has no effect."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted without effect: every checkpoint writes only what changed anyway."""
        self._configuration.set_boolean(_CHANGELOG_KEY, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """The setting of `enable_changelog_state_backend`; None if it was not called."""
        return self._configuration.get_boolean(_CHANGELOG_KEY, False) if _CHANGELOG_KEY in self._configuration else None

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Where keyed state is kept while the job runs: in memory, which is the default, or on local disk.

        >>> from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend
        >>> _ = env.set_state_backend(EmbeddedRocksDBStateBackend())
        >>> type(env.get_state_backend()).__name__
        'EmbeddedRocksDBStateBackend'
        """
        self._configuration.add_all(Configuration.from_dict(state_backend.configuration()))
        return self

    def get_state_backend(self) -> StateBackend | None:
        """The state backend that was set; None if none was."""
        match self._configuration.get_optional(keys.STATE_BACKEND):
            case None:
                return None
            case "hashmap" | "filesystem" | "jobmanager":
                return HashMapStateBackend()
        return EmbeddedRocksDBStateBackend()

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        """What the job does after a failure.

        >>> from penstock.common import RestartStrategies
        >>> _ = env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))  # three times, a second apart
        """
        self._configuration.add_all(Configuration.from_dict(restart_strategy_configuration.to_configuration()))
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy that was set, or the one that says that none was."""
        return self.get_config().get_restart_strategy()

    # Flink 1.x: there is no Kryo here that wants to know about types.

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""

    def register_type(self, type_class_name: str) -> None:
        """Accepted without effect: elements are pickled."""

    # --- what a job needs --------------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """A file or folder that user functions can import from."""
        self._dependencies.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Packages that functions need: a file as `pip install -r` reads it, installed on the machines where functions
        run.

        :param requirements_cache_dir: A folder with the packages, for machines that cannot download them.
        """
        self._dependencies.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive (zip, tar) that is unpacked where functions run, in a folder called `target_dir` or like the
        archive.
        """
        self._dependencies.add_python_archive(archive_path, target_dir)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs functions, before the first job of a program; an absolute path, or a name on the
        PATH.
        """
        self._configuration.set(keys.PYTHON_EXECUTABLE, python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Jars for Spark, before the first job of a program. Connectors need none."""
        self._dependencies.add_jars(*jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """The same as `add_jars`."""
        self._dependencies.add_jars(*classpaths)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """A file that functions find by `runtime_context.get_distributed_cache().get_file(name)`."""
        self._dependencies.register_cached_file(file_path, name, executable)

    def use_spark_session(self, spark: Any) -> StreamExecutionEnvironment:
        """Run on this SparkSession instead of one made on demand. It keeps its settings."""
        self._spark = spark
        return self

    def get_spark_session(self) -> Any:
        """The SparkSession given to `use_spark_session`; None if there was none."""
        return self._spark

    # --- sources -----------------------------------------------------------------------------------------------------

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """The elements of a collection, in one subtask and in order; then the stream ends.

        >>> list(env.from_collection(["a", "b"]).execute_and_collect())
        ['a', 'b']
        """
        if isinstance(collection, (str, bytes)):
            raise TypeError(f"from_collection needs a collection of elements, got {collection!r}; put it into a list")
        values = collection_as(collection, type_info)
        return self._add_source("Collection Source", d.CollectionSourceDescription(values), type_info)

    def from_elements(self, *elements: Any) -> DataStream:
        """These elements, in order; then the stream ends.

        >>> list(env.from_elements(1, 2).execute_and_collect())
        [1, 2]
        """
        return self.from_collection(elements)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers from `start` to `end`, both included, split among the subtasks; then the stream ends.

        >>> sorted(env.from_sequence(1, 4).execute_and_collect())
        [1, 2, 3, 4]
        """
        if start > end:
            raise InvalidProgramError(f"from_sequence: the start {start} must not be larger than the end {end}")
        return self._add_source("Sequence Source", d.SequenceSourceDescription(start, end), None)

    def generate_sequence(self, start: int, end: int) -> DataStream:
        """The older name of `from_sequence`."""
        return self.from_sequence(start, end)

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0, retry_delay: Any = 500
    ) -> DataStream:
        r"""Text from a server, cut at `delimiter`; for "\n" a "\r" before it is dropped too.

        The end of the connection ends the stream, unless `max_retry` attempts to connect again are allowed (negative:
        for ever), `retry_delay` milliseconds apart. What was received is on disk before it counts as received.
        """
        if not isinstance(port, int) or not 0 < port < 65536:
            raise InvalidProgramError(f"socket_text_stream: the port must be between 1 and 65535, got {port!r}")
        if not delimiter:
            raise InvalidProgramError("socket_text_stream: the delimiter must not be empty")
        description = d.SocketSourceDescription(hostname, port, delimiter, max_retry, to_milliseconds(retry_delay))
        return self._add_source("Socket Stream", description, None)

    def from_source(
        self,
        source: Any,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The elements of a source, with timestamps and watermarks by the strategy.

        A source that is read in splits has a watermark for each split, and a subtask's watermark is the smallest of
        those that are not idle. See docs/connectors/sources.md.
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise TypeError(
                f"from_source needs a WatermarkStrategy, got {watermark_strategy!r}; for a job without event time "
                f"write WatermarkStrategy.no_watermarks()"
            )
        watermarks = self._source_watermarks(watermark_strategy)
        if isinstance(source, NumberSequenceSource):
            if watermark_strategy.alignment is not None:
                raise UnsupportedFeatureError(
                    f"with_watermark_alignment({watermark_strategy.alignment.group!r}, ...): a NumberSequenceSource "
                    f"does not wait for others; use a DataGeneratorSource"
                )
            numbers = d.SequenceSourceDescription(source.start, source.end, watermarks=watermarks)
            return self._add_source(source_name, numbers, type_info)
        if not isinstance(source, SplitSource):
            if hasattr(source, "build"):
                raise TypeError(f"from_source needs a source, got a {type(source).__name__}; call build() on it")
            raise UnsupportedFeatureError(
                f"from_source({type(source).__name__}): this source cannot be read yet; write a SimpleSource, or use "
                f"FileSource, NumberSequenceSource or DataGeneratorSource"
            )
        description = d.SplitSourceDescription(source, watermarks=watermarks)
        return self._add_source(source_name, description, type_info or source.get_produced_type())

    def _source_watermarks(self, strategy: WatermarkStrategy) -> d.WatermarksDescription | None:
        if strategy.does_nothing:
            return None
        return d.WatermarksDescription(strategy, self.get_config().get_auto_watermark_interval())

    def add_source(
        self, source_func: Any, source_name: str = "Custom Source", type_info: TypeInformation | None = None
    ) -> DataStream:
        """The elements that a SourceFunction emits.

        It runs in the driver, with parallelism 1 unless it is a ParallelSourceFunction, and is slowed down where the
        job cannot keep up.
        """
        if isinstance(source_func, DescribedSourceFunction):
            return self.from_source(source_func.to_source(), WatermarkStrategy.no_watermarks(), source_name, type_info)
        if not isinstance(source_func, SourceFunction):
            raise TypeError(
                f"add_source needs a SourceFunction with run(ctx) and cancel(), got {source_func!r}; a Source goes to "
                f"from_source"
            )
        is_parallel = isinstance(source_func, ParallelSourceFunction)
        return self._add_source(source_name, d.FunctionSourceDescription(source_func, is_parallel), type_info)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a file, or of all files in and below a folder; then the stream ends."""
        from penstock.datastream.connectors.file_system.source import FileSource, StreamFormat

        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), f"Text File {file_path}")

    def from_data_frame(
        self, data_frame: Any, source_name: str = "DataFrame", trigger: Mapping[str, Any] | None = None
    ) -> DataStream:
        """The rows of a DataFrame of Spark's, with its column names. If it is a batch one the stream ends with them.

        Rows are computed once, and written to where the job's checkpoints are. A streaming DataFrame's query runs while
        the job does.

        :param trigger: When the query of a streaming DataFrame looks for new rows, as Spark's `trigger(...)` takes it:
            `{"processingTime": "10 seconds"}`, or `{"availableNow": True}` for what is there, then the stream ends.
        """
        from penstock.datastream.connectors.spark.data_frame_stream import source_of

        return self.from_source(source_of(data_frame, trigger), WatermarkStrategy.no_watermarks(), source_name)

    def create_input(self, input_format: Any, type_info: TypeInformation | None = None) -> DataStream:
        """The elements of an input format such as AvroInputFormat; then the stream ends."""
        if not hasattr(input_format, "to_source"):
            raise UnsupportedFeatureError(
                f"create_input({type(input_format).__name__}): Flink's input formats are Java classes; use from_source"
            )
        name = type(input_format).__name__
        return self.from_source(input_format.to_source(), WatermarkStrategy.no_watermarks(), name, type_info)

    # --- execution ---------------------------------------------------------------------------------------------------

    def get_execution_plan(self) -> str:
        """The plan as JSON, as Flink's plan visualizer reads it. The program stays as it is and can still be
        executed.
        """
        return self.get_stream_graph(clear_transformations=False).get_streaming_plan_as_json()

    def get_stream_graph(self, clear_transformations: bool = False, job_name: str | None = None) -> StreamGraph:
        """The job as a graph of operators; with `clear_transformations` the environment begins anew."""
        max_parallelism = self.get_max_parallelism()
        generator = StreamGraphGenerator(
            job_name or self._configuration.get_optional(keys.JOB_NAME) or DEFAULT_JOB_NAME,
            default_max_parallelism=max_parallelism if max_parallelism > 0 else None,
            is_chaining_enabled=self.is_chaining_enabled() and self._configuration.get(keys.PYTHON_CHAINING),
            runtime_mode=cast(RuntimeMode, self.runtime_mode().name),
            reuses_objects=self._configuration.get(keys.OBJECT_REUSE),
            inlines_functions=self._configuration.get(keys.INLINE_FUNCTIONS),
            exchanges_columns=self._configuration.get(keys.COLUMNAR_EXCHANGE),
            generates_uids=self._configuration.get(keys.AUTO_GENERATE_UIDS),
        )
        graph = generator.generate(self._transformations)
        if self._configuration.get(keys.LOWERING):
            from penstock.datastream.lowering.rules import lower

            graph = lower(graph)
        if clear_transformations:
            self._transformations.clear()
        return graph

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait for its end. Ctrl-C cancels it. What was built is used up: the environment begins anew.

        Raises `JobExecutionError` if the job fails; if a function of yours raised, `UserFunctionError`, which names the
        operator, the subtask and the record.
        """
        __tracebackhide__ = True
        with ShowingUsersFrames():
            return self._submit(job_name).wait()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the job and return at once, with a client that cancels it, takes savepoints and waits for its end."""
        client: JobClient = self._submit(job_name).client
        return client

    def submit_and_collect(self, job_name: str | None, collect_id: str) -> tuple[Iterator[Any], Callable[[], None]]:
        """Start the job; the values of one collect sink, and a function that ends the job. For the streams."""
        __tracebackhide__ = True
        with ShowingUsersFrames():
            return self._submit(job_name).collect(collect_id)

    def _submit(self, job_name: str | None) -> submission.Submission:
        graph = self.get_stream_graph(clear_transformations=True, job_name=job_name)
        submission.notify_of_results_that_go_nowhere(graph)
        settled = Configuration(self._configuration).set(keys.PARALLELISM, self.get_parallelism())
        return submission.submit(graph, settled, self._dependencies, self._spark)

    def close(self) -> None:
        """Nothing is held open: the Spark session lives until the program ends."""

    # --- building ----------------------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """The next number for an operator or exchange. For the streams."""
        self._last_id += 1
        return self._last_id

    def add_operator(
        self,
        name: str,
        operator: d.OperatorDescription,
        inputs: Sequence[Transformation],
        output_type: TypeInformation | None,
        **settings: Any,
    ) -> DataStream:
        """Add an operator behind `inputs`. For the streams."""
        transformation = PhysicalTransformation(
            self.next_id(),
            name,
            self.get_parallelism(),
            inputs,
            output_type=output_type,
            operator=operator,
            made_at=users_line(),
            **settings,
        )
        self._transformations.append(transformation)
        return DataStream(self, transformation)

    def _add_source(self, name: str, description: d.SourceDescription, type_info: TypeInformation | None) -> DataStream:
        """Sources alone make no job, so they are not in the list: an operator behind them brings them in."""
        fixed = description.max_source_parallelism
        transformation = PhysicalTransformation(
            self.next_id(),
            f"Source: {name}",
            fixed or self.get_parallelism(),
            (),
            output_type=type_info,
            operator=description,
            chaining=ChainingStrategy.ALWAYS,
            is_parallelism_fixed=fixed is not None,
            made_at=users_line(),
        )
        return DataStream(self, transformation)


_CHANGELOG_KEY = "state.changelog.enabled"
