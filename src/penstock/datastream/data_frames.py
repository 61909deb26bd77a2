"""The elements of a stream as Spark DataFrames: written by the subtasks, read by Spark."""

from __future__ import annotations

import atexit
import importlib
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.local_folders import new_local_folder
from penstock.common.serialization import RowDataBulkWriterFactory
from penstock.common.typeinfo import (
    ExternalTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
    element_type_of,
)
from penstock.datastream.connectors.file_system.bucketing import BucketAssigner
from penstock.datastream.connectors.file_system.sink import FileSink
from penstock.datastream.connectors.spark.sink import SparkSink, SparkTarget
from penstock.datastream.formats.arrow_rows import ArrowRowWriter
from penstock.graph.descriptions import SourceDescription
from penstock.graph.transformations import PhysicalTransformation, Transformation

if TYPE_CHECKING:
    from penstock.datastream.streams.data_stream import DataStream

# Looked up by name: only the package `spark` knows PySpark.
_SESSIONS = "penstock.spark.session"

_SPARK_TYPES = {
    Types.STRING(): "STRING",
    Types.CHAR(): "STRING",
    Types.BOOLEAN(): "BOOLEAN",
    Types.BYTE(): "TINYINT",
    Types.SHORT(): "SMALLINT",
    Types.INT(): "INT",
    Types.LONG(): "BIGINT",
    Types.FLOAT(): "FLOAT",
    Types.DOUBLE(): "DOUBLE",
    Types.BIG_INT(): "DECIMAL(38,0)",
    Types.BIG_DEC(): "DECIMAL(38,18)",
    Types.SQL_DATE(): "DATE",
    Types.SQL_TIMESTAMP(): "TIMESTAMP_NTZ",
    Types.INSTANT(): "TIMESTAMP",
}


class _SparkRowWriter(ArrowRowWriter):
    """Parquet as Spark reads it, which knows microseconds but no nanoseconds."""

    def __init__(self, stream: BinaryIO, row_type: RowTypeInfo) -> None:
        from pyarrow.parquet import ParquetWriter

        super().__init__(row_type)
        self._writer = ParquetWriter(
            stream, self.schema, coerce_timestamps="us", allow_truncated_timestamps=True, compression="snappy"
        )

    def write_table(self, table: Any) -> None:
        self._writer.write_table(table)

    def end_file(self) -> None:
        self._writer.close()


class _SparkRowFactory(RowDataBulkWriterFactory):
    def create(self, stream: BinaryIO) -> _SparkRowWriter:
        return _SparkRowWriter(stream, self.get_row_type())


def to_data_frame(stream: DataStream, type_info: TypeInformation | None, job_name: str | None) -> Any:
    """Run the job now and return its rows as a DataFrame; they are in files until the program ends."""
    row_type = _row_type("to_data_frame", stream, type_info)
    schema = _schema(row_type)
    _check_bounded(stream.transformation)
    environment = stream.get_execution_environment()
    config = environment.get_configuration()
    folder = tempfile.mkdtemp(prefix="penstock-data-frame-", dir=config.get_optional(keys.WORKING_DIR))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sink = FileSink.for_bulk_format(folder, _SparkRowFactory(row_type))
    stream.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()).name("DataFrame")
    environment.execute(job_name)
    spark = environment.get_spark_session() or importlib.import_module(_SESSIONS).get_session(config)
    return spark.read.schema(schema).parquet(folder)


def spark_sink(
    stream: DataStream, target: SparkTarget, type_info: TypeInformation | None, staging_dir: str | None
) -> SparkSink:
    """The sink of `stream.sink_to_spark(...)`."""
    row_type = _row_type("sink_to_spark", stream, type_info)
    missing = set(target.partition_by) - set(row_type.get_field_names())
    if missing:
        raise ValueError(f"sink_to_spark: partition_by names {sorted(missing)}, but the rows are {row_type}")
    environment = stream.get_execution_environment()
    staging = _staging_folder(environment.get_configuration(), staging_dir)
    return SparkSink(target, _SparkRowFactory(row_type), _schema(row_type), staging, environment.get_spark_session())


def _staging_folder(config: Configuration, given: str | None) -> str:
    """Where staged rows are safe as long as checkpoints refer to them."""
    kept = given or config.get_optional(keys.CHECKPOINT_DIR) or config.get_optional(keys.WORKING_DIR)
    if kept is not None:
        return f"{kept.rstrip('/')}/spark-sink-{secrets.token_hex(8)}"
    # Without a folder of its own the job's checkpoints end with the program, too.
    return str(new_local_folder(Path(tempfile.gettempdir()), "spark-sink"))


def _schema(row_type: RowTypeInfo) -> str:
    return ", ".join(_columns(row_type))


def _row_type(where: str, stream: DataStream, type_info: TypeInformation | None) -> RowTypeInfo:
    found = type_info or stream.transformation.output_type
    if not isinstance(found, RowTypeInfo):
        raise InvalidProgramError(
            f"{where}: the columns are not known, because the stream's type is {found}; give a row type, such as "
            f"type_info=Types.ROW_NAMED(['name', 'count'], [Types.STRING(), Types.LONG()])"
        )
    return found


def _check_bounded(transformation: Transformation) -> None:
    waiting, seen = [transformation], set()
    while waiting:
        each = waiting.pop()
        if each.id in seen:
            continue
        seen.add(each.id)
        waiting.extend(each.inputs)
        operator = each.operator if isinstance(each, PhysicalTransformation) else None
        if isinstance(operator, SourceDescription) and not operator.is_bounded:
            raise InvalidProgramError(
                f"to_data_frame: '{each.name}' never ends, and a DataFrame is complete only at the end; write to files "
                f"with a FileSink and read those with Spark"
            )


def _columns(row_type: RowTypeInfo) -> list[str]:
    pairs = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return [f"`{name.replace('`', '``')}` {_spark_type(each)}" for name, each in pairs]


def _spark_type(type_info: TypeInformation) -> str:
    match type_info:
        case ExternalTypeInfo():
            return _spark_type(type_info._type_info)
        case RowTypeInfo():
            return f"STRUCT<{', '.join(_columns(type_info))}>"
        case MapTypeInfo():
            return f"MAP<{_spark_type(type_info._key_type_info)}, {_spark_type(type_info._value_type_info)}>"
        case PrimitiveArrayTypeInfo() if type_info._element_type == Types.BYTE():
            return "BINARY"
    if (element := element_type_of(type_info)) is not None:
        return f"ARRAY<{_spark_type(element)}>"
    if type_info not in _SPARK_TYPES:
        raise UnsupportedFeatureError(
            f"a {type_info} cannot be a column of a DataFrame; use basic types, arrays, maps and rows"
        )
    return _SPARK_TYPES[type_info]
