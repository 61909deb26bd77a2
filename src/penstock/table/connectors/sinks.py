"""Tables that are written: each connector takes a stream of rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.serialization import Encoder
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.discarding_sink import DiscardingSink
from penstock.datastream.connectors.file_system.bucketing import BucketAssigner
from penstock.datastream.connectors.file_system.sink import FileSink
from penstock.datastream.connectors.jdbc.databases import database_of
from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions
from penstock.datastream.connectors.jdbc.writer import connect
from penstock.datastream.connectors.sink_v2 import SinkWriter, SinkWriterContext, WriterInitContext
from penstock.datastream.connectors.support.batch_buffer import BatchBuffer
from penstock.graph import descriptions as d
from penstock.table.connectors import formats
from penstock.table.connectors.java_text import java_text, row_text
from penstock.table.connectors.sources import connection_options
from penstock.table.connectors.tables import SinkTable
from penstock.table.durations import duration_ms
from penstock.table.logical_types import external_converter
from penstock.table.rows import ROW_KINDS, RowTuple, is_accumulate
from penstock.table.types import RowType

# --- print, blackhole ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrintedLines:
    row_type: RowType
    is_changelog: bool

    def __call__(self, rows: list[RowTuple]) -> list[str]:
        write = row_text(self.row_type)
        return [write(row, ROW_KINDS[row[-1]] if self.is_changelog else "+I") for row in rows]


def print_rows(table: SinkTable, stream: Any) -> Any:
    """A line for each row: `+I[1, abc]`."""
    lines = stream._then("Lines", d.ListFunctionDescription(PrintedLines(table.row_type, table.is_changelog)), None)
    identifier = table.options.get("print-identifier")
    return lines._print("stderr" if table.options.flag("standard-error") else "stdout", identifier)


def blackhole(table: SinkTable, stream: Any) -> Any:
    return stream.sink_to(DiscardingSink())


# --- filesystem ----------------------------------------------------------------------------------------------------


class _RowLineEncoder(Encoder):
    """A line for each row, without the columns of its partition."""

    def __init__(self, encoder: formats.RowEncoder, columns: tuple[int, ...], is_changelog: bool) -> None:
        self.encoder = encoder
        self.columns = columns
        self.is_changelog = is_changelog

    def encode(self, element: RowTuple, stream: BinaryIO) -> None:
        kind = element[-1] if self.is_changelog else 0
        stream.write(self.encoder.encode(tuple([element[i] for i in self.columns]), kind) + b"\n")


class _PartitionFolders(BucketAssigner):
    """Hive's folders: `day=2024-01-01/hour=5`."""

    def __init__(self, row_type: RowType, columns: tuple[int, ...], default: str) -> None:
        self.row_type = row_type
        self.columns = columns
        self.default = default

    def get_bucket_id(self, element: RowTuple, context: Any) -> str:
        parts = []
        for column in self.columns:
            field = self.row_type.fields[column]
            value = element[column]
            text = self.default if value is None or value == "" else java_text(field.data_type)(value)
            parts.append(f"{field.name}={_escaped(text)}")
        return "/".join(parts)


def _escaped(text: str) -> str:
    return "".join(f"%{ord(each):02X}" if each in "\"#%'*/:=?\\{[]^" or ord(each) < 32 else each for each in text)


def filesystem(table: SinkTable, stream: Any) -> Any:
    options = table.options
    name = formats.format_name(options)
    if not formats.has_changes(name):
        table.refuse_changes()
    if table.overwrites:
        raise UnsupportedFeatureError(f"{options.owner}: INSERT OVERWRITE is not supported in streaming mode")
    if options.get("sink.partition-commit.policy.kind"):
        raise UnsupportedFeatureError(f"{options.owner}: 'sink.partition-commit.policy.kind' is not supported")
    names = table.columns.field_names()
    partitions = tuple(names.index(each) for each in table.schema.partition_keys)
    kept = tuple(i for i in range(len(names)) if i not in partitions)
    row_type = RowType([table.columns.fields[i] for i in kept])
    encoder = formats.encoder(name, options, row_type, table.time_zone)
    builder = FileSink.for_row_format(options.required("path"), _RowLineEncoder(encoder, kept, table.is_changelog))
    if partitions:
        default = options.get("partition.default-name") or "__HIVE_DEFAULT_PARTITION__"
        builder = builder.with_bucket_assigner(_PartitionFolders(table.columns, partitions, default))
    else:
        builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return stream.sink_to(_rolled(builder, table).build())


def _rolled(builder: Any, table: SinkTable) -> Any:
    from penstock.datastream.connectors.file_system import RollingPolicy

    interval = duration_ms(table.options.get("sink.rolling-policy.rollover-interval") or "30 min")
    size = _bytes(table.options.get("sink.rolling-policy.file-size") or "128 mb")
    idle = table.options.get("sink.rolling-policy.inactivity-interval") or "30 min"
    policy = RollingPolicy.default_rolling_policy(
        part_size=size, rollover_interval=interval, inactivity_interval=duration_ms(idle)
    )
    return builder.with_rolling_policy(policy)


def _bytes(text: str) -> int:
    number = text.lower().strip().rstrip("bytes").rstrip("kmgi ").strip()
    unit = text.lower().strip()[len(number) :].strip()
    return int(number) * {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[unit[:1]]


# --- jdbc ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JdbcTableSink(Sink):
    """Inserts rows; with a primary key it replaces and deletes them by it."""

    connection: JdbcConnectionOptions
    table: str
    row_type: RowType
    keys: tuple[int, ...]
    is_changelog: bool
    time_zone: str
    batch_size: int
    batch_interval_ms: int
    max_retries: int

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        return _JdbcTableWriter(self, context)


class _JdbcTableWriter(SinkWriter[Any]):
    """Gathers rows; of the changes of one key only the last is carried out."""

    def __init__(self, sink: JdbcTableSink, context: WriterInitContext) -> None:
        self._sink = sink
        self._database = database_of(sink.connection.db_url)
        self._library = self._database.library()
        names = sink.row_type.field_names()
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {sink.table} ({', '.join(names)}) VALUES ({marks})"
        key_names = [names[i] for i in sink.keys]
        write = self._database.upsert(sink.table, names, key_names) if key_names else insert
        self._write = self._database.statement(write)
        where = " AND ".join(f"{each} = ?" for each in key_names)
        self._delete = self._database.statement(f"DELETE FROM {sink.table} WHERE {where}") if key_names else ""
        self._converters = [
            external_converter(each, sink.time_zone) or (lambda value: value) for each in sink.row_type.field_types()
        ]
        service = context.get_processing_time_service()
        self._buffer: BatchBuffer[RowTuple] = BatchBuffer(sink.batch_size, sink.batch_interval_ms, service, self._run)
        self._connection: Any = None

    def write(self, element: RowTuple, context: SinkWriterContext) -> None:
        self._buffer.add(element)

    def flush(self, end_of_input: bool) -> None:
        self._buffer.write()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _run(self, rows: list[RowTuple]) -> None:
        sink = self._sink
        if not sink.keys:
            self._attempts(self._write, [self._values(row) for row in rows])
            return
        last = {tuple([row[i] for i in sink.keys]): row for row in rows}
        gone = [row for row in last.values() if sink.is_changelog and not is_accumulate(row[-1])]
        there = [row for row in last.values() if not sink.is_changelog or is_accumulate(row[-1])]
        self._attempts(self._delete, [[self._values(row)[i] for i in sink.keys] for row in gone])
        self._attempts(self._write, [self._values(row) for row in there])

    def _values(self, row: RowTuple) -> list[Any]:
        return [convert(value) for convert, value in zip(self._converters, row, strict=False)]

    def _attempts(self, statement: str, rows: list[Any]) -> None:
        """As Flink: tries again after a pause that grows, with a new connection."""
        for attempt in range(self._sink.max_retries + 1):
            if not rows:
                return
            try:
                if self._connection is None:
                    self._connection = connect(self._sink.connection)
                self._database.run(self._connection, statement, rows)
                return
            except (self._library.OperationalError, self._library.InterfaceError):
                self.close()
                if attempt == self._sink.max_retries:
                    raise
                time.sleep(attempt + 1)


def jdbc(table: SinkTable, stream: Any) -> Any:
    options = table.options
    connection = connection_options(options)
    database_of(connection.db_url).check(connection)
    names = table.columns.field_names()
    keys = tuple(names.index(each) for each in table.schema.primary_key)
    if table.is_changelog and not keys:
        raise InvalidProgramError(f"{options.owner}: a query with updates needs a PRIMARY KEY in the table's DDL")
    size, retries = options.whole("sink.buffer-flush.max-rows", 100), options.whole("sink.max-retries", 3)
    interval = duration_ms(options.get("sink.buffer-flush.interval") or "1 s")
    sink = JdbcTableSink(
        connection,
        options.required("table-name"),
        table.columns,
        keys,
        table.is_changelog,
        table.time_zone,
        size or 0,
        interval,
        retries or 0,
    )
    return stream.sink_to(sink)


SinkMaker = Callable[[SinkTable, Any], Any]
