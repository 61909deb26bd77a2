"""StreamExecutionEnvironment: where a program begins and where it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from penstock.common import config_keys as keys
from penstock.common.config_checks import check_keys
from penstock.common.configuration import Configuration
from penstock.common.cores import machine_cores
from penstock.common.exceptions import ConfigurationError, InvalidProgramError, UnsupportedFeatureError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.notices import notify
from penstock.common.time import to_milliseconds
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import submission
from penstock.datastream.connectors.base import DescribedSourceFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.source_v2 import Source as SplitSource
from penstock.datastream.declared_types import collection_as
from penstock.datastream.default_parallelism import default_parallelism
from penstock.datastream.dependencies import JobDependencies
from penstock.datastream.environment_settings import EnvironmentSettings
from penstock.datastream.functions import ParallelSourceFunction, SourceFunction
from penstock.datastream.java_handles import JavaEnvironment
from penstock.datastream.launch import starting_configuration
from penstock.datastream.on_error import FailedElement, OnError, on_error_of
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.operator_settings import check_parallelism
from penstock.datastream.users_frames import ShowingUsersFrames, users_line
from penstock.graph import descriptions as d
from penstock.graph.batch import RuntimeMode
from penstock.graph.stream_graph import StreamGraph, StreamGraphGenerator
from penstock.graph.transformations import (
    ChainingStrategy,
    PhysicalTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

DEFAULT_JOB_NAME = "Penstock Streaming Job"


class StreamExecutionEnvironment(EnvironmentSettings):
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
        self._on_error: OnError | None = None
        self._failed_elements: list[UnionTransformation] = []
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

    # --- parallelism and slots ---------------------------------------------------------------------------------------

    def get_parallelism(self) -> int:
        """The default parallelism of operators: what was set, else the number of cores, and 1 on a cluster."""
        given = self._configuration.get_optional(keys.PARALLELISM)
        if given is not None:
            return check_parallelism(given, keys.PARALLELISM.key)
        return default_parallelism(self._configuration, self._spark, self._local_parallelism)

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """The default parallelism of environments made from now on, for jobs that run on this machine."""
        StreamExecutionEnvironment._default_local_parallelism = check_parallelism(
            parallelism, "set_default_local_parallelism"
        )

    def get_default_local_parallelism(self) -> int:
        """The number of cores of this machine, unless another number was set."""
        return StreamExecutionEnvironment._default_local_parallelism or machine_cores()

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Make a group with resources known, for operators that name it by `slot_sharing_group(name)`."""
        self._slot_sharing_groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    # --- what a job needs --------------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """A file or folder that user functions can import from."""
        self._dependencies.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Packages that functions need: a file for `pip install -r`. The driver installs and sends them to workers.

        :param requirements_cache_dir: A folder with the packages; nothing is downloaded then.
        """
        self._dependencies.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive (zip, tar) to unpack where functions run: into `target_dir`, else a folder named after it."""
        self._dependencies.add_python_archive(archive_path, target_dir)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs functions: an absolute path, or a name on the PATH. Call it before the first job."""
        self._configuration.set(keys.PYTHON_EXECUTABLE, python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Jars for Spark; connectors need none. Call it before the first job."""
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
        without limit), `retry_delay` milliseconds apart. Text counts as received when it is on disk.
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

        >>> from penstock.common import WatermarkStrategy
        >>> from penstock.datastream.connectors import NumberSequenceSource
        >>> numbers = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers")
        >>> list(numbers.execute_and_collect())
        [1, 2, 3]
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise TypeError(
                f"from_source needs a WatermarkStrategy, got {watermark_strategy!r}; for a job without event time "
                f"write WatermarkStrategy.no_watermarks()"
            )
        watermark_strategy = self._strategy_as_configured(watermark_strategy, "from_source")
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
        """The lines of a file, or of all files in and below a folder; then the stream ends.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "words.txt").write_text("to be")
        ...     list(env.read_text_file(folder).execute_and_collect())
        ['to be']
        """
        from penstock.datastream.connectors.file_system.source import FileSource, StreamFormat

        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), f"Text File {file_path}")

    def from_data_frame(
        self, data_frame: Any, source_name: str = "DataFrame", trigger: Mapping[str, Any] | None = None
    ) -> DataStream:
        """The rows of a Spark DataFrame, with its column names. After the rows of a batch DataFrame the stream ends.

        Rows are computed once, and written next to the job's checkpoints. The query of a streaming DataFrame runs as
        long as the job.

        :param trigger: When the query of a streaming DataFrame looks for new rows, as Spark's `trigger(...)` takes it:
            `{"processingTime": "10 seconds"}`, or `{"availableNow": True}` for a stream that ends with today's rows.
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

    # --- elements that fail ------------------------------------------------------------------------------------------

    def set_on_error(self, on_error: OnError) -> StreamExecutionEnvironment:
        """What happens to an element for which a function raises, unless its operator has an `on_error` of its own.

        It replaces the setting `penstock.on-error`. Operators that cannot leave single elements out, such as windows,
        still fail the job.
        """
        if not isinstance(on_error, OnError):
            raise TypeError(f"set_on_error() needs an OnError, got {on_error!r}; write set_on_error(OnError.skip())")
        self._on_error = on_error
        return self

    def get_failed_elements(self) -> DataStream[FailedElement]:
        """All elements that `set_on_error(OnError.to_side_output(tag))` keeps apart, of all operators of the job.

        Operators that read this stream fail the job: what they cannot take has nowhere else to go.

        >>> from penstock.datastream import OnError, OutputTag
        >>> _ = env.set_on_error(OnError.to_side_output(OutputTag("failed")))
        >>> numbers = env.from_collection(["1", "two", "0"]).map(int).name("parse").map(lambda n: 1 // n).name("invert")
        >>> failed = env.get_failed_elements().map(lambda each: (each.operator, each.value, each.error))
        >>> sorted(failed.execute_and_collect())
        [('invert', 0, 'ZeroDivisionError'), ('parse', 'two', 'ValueError')]
        """
        if self._on_error is None or self._on_error.tag is None:
            raise InvalidProgramError(
                "get_failed_elements() needs set_on_error(OnError.to_side_output(tag)) before it: without a side "
                "output failed elements are not kept"
            )
        union = UnionTransformation(
            self._next_id(), "failed elements", self.get_parallelism(), [], output_type=self._on_error.tag.type_info
        )
        self._failed_elements.append(union)
        return DataStream(self, union)

    def _outputs_of_failures(self, failed: UnionTransformation) -> list[Transformation]:
        """The side outputs of all operators whose failed elements belong to `failed`."""
        after = {failed.id}
        found: list[Transformation] = []
        for each in self._transformations:  # Each comes after its inputs.
            if after & set(_ids_above(each)):
                after.add(each.id)
                each.on_error = each.on_error or OnError.fail()
            elif (
                each.operator.takes_on_error
                and each.on_error is None
                and not isinstance(each.operator, d.SinkDescription)
            ):
                assert self._on_error is not None and self._on_error.tag is not None
                tag = self._on_error.tag
                found.append(
                    SideOutputTransformation(
                        -each.id, "side output", each.parallelism, [each], tag.type_info, tag_id=tag.tag_id
                    )
                )
        if not found:
            raise InvalidProgramError("get_failed_elements(): the job has no function whose elements could fail")
        return found

    # --- execution ---------------------------------------------------------------------------------------------------

    def get_execution_plan(self) -> str:
        """The plan as JSON, as Flink's plan visualizer reads it. The program can still be executed.

        >>> import json
        >>> _ = env.from_collection([1]).map(str).print()
        >>> [node["type"] for node in json.loads(env.get_execution_plan())["nodes"]]
        ['Source: Collection Source', 'Map', 'Sink: Print to Std. Out']
        """
        return self.get_stream_graph(clear_transformations=False).get_streaming_plan_as_json()

    def get_stream_graph(self, clear_transformations: bool = False, job_name: str | None = None) -> StreamGraph:
        """The job as a graph of operators; with `clear_transformations` the environment is empty afterwards."""
        max_parallelism = self.get_max_parallelism()
        generator = StreamGraphGenerator(
            job_name or self._configuration.get_optional(keys.JOB_NAME) or DEFAULT_JOB_NAME,
            default_max_parallelism=max_parallelism if max_parallelism > 0 else None,
            is_chaining_enabled=self.is_chaining_enabled() and self._configuration.get(keys.PYTHON_CHAINING),
            runtime_mode=cast(RuntimeMode, self.runtime_mode().name),
            reuses_objects=self._configuration.get(keys.OBJECT_REUSE),
            inlines_functions=self._configuration.get(keys.INLINE_FUNCTIONS),
            exchanges_columns=self._configuration.get(keys.COLUMNAR_EXCHANGE),
            takes_checkpoints=self.get_checkpoint_config().is_checkpointing_enabled(),
            on_error=self._on_error or on_error_of(self._configuration),
            generates_uids=self._configuration.get(keys.AUTO_GENERATE_UIDS),
        )
        for failed in self._failed_elements:
            failed.inputs = self._outputs_of_failures(failed)
        graph = generator.generate(self._transformations)
        if self._configuration.get(keys.LOWERING):
            from penstock.datastream.lowering.rules import lower

            graph = lower(graph)
        if clear_transformations:
            self._transformations.clear()
            self._failed_elements.clear()
        return graph

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait for its end. Ctrl-C cancels it. The environment is empty afterwards.

        Raises `JobExecutionError` if the job fails; if a function of yours raised, `UserFunctionError`, which names the
        operator, the subtask and the record.

        >>> from penstock.datastream.connectors import DiscardingSink
        >>> _ = env.from_collection([1, 2]).sink_to(DiscardingSink())
        >>> env.execute("nothing").get_all_accumulator_results()
        {}
        """
        __tracebackhide__ = True
        with ShowingUsersFrames():
            return self._submit(job_name).wait()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the job and return at once, with a client that cancels it, takes savepoints and waits for its end.

        >>> from penstock.datastream.connectors import DiscardingSink
        >>> _ = env.from_collection([1, 2]).sink_to(DiscardingSink())
        >>> client = env.execute_async("in the background")
        >>> _ = client.get_job_execution_result().result()
        >>> client.get_job_status().result().name
        'FINISHED'
        """
        client: JobClient = self._submit(job_name).client
        return client

    def _submit_and_collect(self, job_name: str | None, collect_id: str) -> tuple[Iterator[Any], Callable[[], None]]:
        """Start the job; returns the values of one collect sink, and a function that ends the job. For the streams."""
        __tracebackhide__ = True
        with ShowingUsersFrames():
            return self._submit(job_name).collect(collect_id)

    def _submit(self, job_name: str | None) -> submission.Submission:
        graph = self.get_stream_graph(clear_transformations=True, job_name=job_name)
        submission.notify_of_results_that_go_nowhere(graph)
        settled = Configuration(self._configuration).set(keys.PARALLELISM, self.get_parallelism())
        return submission.submit(graph, settled, self._dependencies, self._spark)

    def close(self) -> None:
        """Does nothing: the Spark session lives until the program ends."""

    @property
    def _j_stream_execution_environment(self) -> JavaEnvironment:
        """For PyFlink programs, some of which use its Java handle."""
        return JavaEnvironment(self)

    def _strategy_as_configured(self, strategy: WatermarkStrategy, where: str) -> WatermarkStrategy:
        """The strategy, without its assigner if the job runs as on PyFlink and PyFlink would not use it.

        For the streams.
        """
        way = self._configuration.get(keys.TIMESTAMP_ASSIGNERS).lower()
        if way not in ("flink", "pyflink"):
            raise ConfigurationError(f"{keys.TIMESTAMP_ASSIGNERS.key}: {way!r} is not one of flink, pyflink")
        is_unused = where == "from_source" or strategy.is_assigner_lost_in_pyflink
        if way == "flink" or not strategy.has_assigner or not is_unused:
            return strategy
        notify(
            f"{where}: elements keep the timestamps of their source. The strategy's timestamp assigner is not used, as "
            f"in PyFlink, which uses one in assign_timestamps_and_watermarks only, given after idleness and alignment; "
            f"with -D {keys.TIMESTAMP_ASSIGNERS.key}=flink it is used"
        )
        return strategy.without_assigner()

    # --- building ----------------------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        """The next number for an operator or exchange. For the streams."""
        self._last_id += 1
        return self._last_id

    def _add_operator(
        self,
        name: str,
        operator: d.OperatorDescription,
        inputs: Sequence[Transformation],
        output_type: TypeInformation | None,
        **settings: Any,
    ) -> DataStream:
        """Add an operator behind `inputs`. For the streams."""
        transformation = PhysicalTransformation(
            self._next_id(),
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
        """Add a source. Sources alone are not a job, so they are not in the list: an operator behind them adds them."""
        fixed = description.max_source_parallelism
        transformation = PhysicalTransformation(
            self._next_id(),
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


def _ids_above(transformation: Transformation) -> Iterator[int]:
    """The ids of the operators, unions and partitions that a transformation reads, up to the next operators."""
    waiting = list(transformation.inputs)
    while waiting:
        each = waiting.pop()
        yield each.id
        if not isinstance(each, PhysicalTransformation):
            waiting.extend(each.inputs)
