"""Tables that are read: each connector makes a stream of rows."""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.time import Duration
from penstock.datastream.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from penstock.datastream.connectors.file_system.formats import FileBatch, FileToRead, StreamFormat, TextLineFormat
from penstock.datastream.connectors.file_system.source import FileSource
from penstock.datastream.connectors.jdbc.databases import database_of
from penstock.datastream.connectors.jdbc.sink import JdbcConnectionOptions
from penstock.datastream.connectors.jdbc.writer import connect
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.graph import descriptions as d
from penstock.table import types as t
from penstock.table.connectors import formats
from penstock.table.connectors.options import Options
from penstock.table.connectors.tables import SourceTable
from penstock.table.durations import duration_ms
from penstock.table.logical_types import internal_converter
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType
from penstock.table.values import times
from penstock.table.values.numbers import decimal_of_type, to_float32

Rows = list[RowTuple]


def flattened(batches: list[Rows]) -> Rows:
    return [row for rows in batches for row in rows]


def rows_of(stream: Any) -> Any:
    """The rows of a stream whose elements are lists of them, as one message may hold several."""
    return stream._then("Rows of messages", d.ListFunctionDescription(flattened), None)


# --- filesystem ----------------------------------------------------------------------------------------------------


class _RowLines(StreamFormat):
    """A list of rows for each line of a file."""

    def __init__(self, decoder: formats.RowDecoder) -> None:
        self.decoder = decoder
        self.lines = TextLineFormat("ISO-8859-1")
        """Which leaves every byte as it is."""

    @property
    def can_start_anywhere(self) -> bool:
        return self.lines.can_start_anywhere

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        rows = self.decoder.rows
        for batch in self.lines.read_file(file, offset):
            yield replace(batch, records=[rows(line.encode("ISO-8859-1")) for line in batch.records])


def filesystem(table: SourceTable) -> Any:
    table.refuse_metadata()
    name = formats.format_name(table.options)
    if table.schema.partition_keys:
        raise UnsupportedFeatureError(f"{table.options.owner}: reading partitioned folders is not supported")
    decoder = formats.decoder(name, table.options, table.columns, table.time_zone)
    builder = FileSource.for_record_stream_format(_RowLines(decoder), table.options.required("path"))
    interval = table.options.get("source.monitor-interval")
    if interval is not None:
        builder = builder.monitor_continuously(Duration.of_millis(duration_ms(interval)))
    return rows_of(table.env.from_source(builder.build(), table.watermarks, table.name))


# --- datagen -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sequence:
    start: int
    convert: Callable[[Any], Any] | None

    def __call__(self, number: int) -> Any:
        value = self.start + number
        return value if self.convert is None else self.convert(value)


@dataclass(frozen=True)
class _Random:
    make: Callable[[], Any]
    null_rate: float

    def __call__(self, number: int) -> Any:
        return None if self.null_rate and random.random() < self.null_rate else self.make()


@dataclass(frozen=True)
class _GeneratedRow:
    columns: tuple[Callable[[int], Any], ...]

    def __call__(self, number: int) -> Rows:
        return [tuple([column(number) for column in self.columns])]


def datagen(table: SourceTable) -> Any:
    """Random or sequential values; `number-of-rows` and sequences end the table."""
    table.refuse_metadata()
    options = table.options
    counts = [] if (most := options.whole("number-of-rows")) is None else [most]
    columns: list[Callable[[int], Any]] = []
    for name, data_type in zip(table.columns.field_names(), table.columns.field_types(), strict=True):
        field = Options(options.below(f"fields.{name}."), f"{options.owner}, fields.{name}")
        if field.choice("kind", ("random", "sequence"), "random") == "sequence":
            start, end = field.whole("start"), field.whole("end")
            if start is None or end is None:
                raise InvalidProgramError(f"{field.owner}: a sequence needs 'start' and 'end'")
            counts.append(end - start + 1)
            columns.append(_Sequence(start, internal_converter(data_type)))
        else:
            columns.append(_Random(random_maker(data_type, field), float(field.get("null-rate") or 0)))
    rate = float(options.get("rows-per-second") or 10_000)
    count = min(counts) if counts else None
    source = DataGeneratorSource(_GeneratedRow(tuple(columns)), count, RateLimiterStrategy.per_second(rate))
    return rows_of(table.env.from_source(source, table.watermarks, table.name))


def random_maker(data_type: DataType, field: Options) -> Callable[[], Any]:
    """Random values of a type within the column's bounds."""
    match data_type:
        case t.BooleanType():
            return lambda: random.random() < 0.5
        case t.IntegralType(bits=bits):
            low = field.whole("min", -(2 ** (bits - 1)))
            high = field.whole("max", 2 ** (bits - 1) - 1)
            assert low is not None and high is not None
            return lambda: random.randint(low, high)
        case t.FloatType() | t.DoubleType():
            smallest, largest = float(field.get("min") or -1e30), float(field.get("max") or 1e30)
            is_float = isinstance(data_type, t.FloatType)
            return lambda: (to_float32 if is_float else float)(random.uniform(smallest, largest))
        case t.DecimalType(precision=precision, scale=scale):
            most = 10.0 ** (precision - scale) - 1
            below, above = float(field.get("min") or -most), float(field.get("max") or most)
            return lambda: decimal_of_type(Decimal(repr(random.uniform(below, above))), precision, scale)
        case t.CharType() | t.VarCharType():
            length = _length(data_type, field)
            return lambda: "".join(random.choices("0123456789abcdef", k=length))
        case t.BinaryType() | t.VarBinaryType():
            size = _length(data_type, field)
            return lambda: random.randbytes(size)
        case t.DateType():
            return lambda: datetime.date.today().toordinal() - 719_163
        case t.TimeType():
            return lambda: random.randrange(86_400_000)
        case t.TimestampType() | t.LocalZonedTimestampType():
            past = duration_ms(field.get("max-past") or "0 ms")
            return lambda: (_now_ms() - (random.randrange(past + 1) if past else 0)) * 1_000_000
        case t.YearMonthIntervalType():
            return lambda: random.randrange(120_000)
        case t.DayTimeIntervalType():
            return lambda: random.randrange(2**31)
        case t.ArrayType(element_type=element):
            items = field.whole("length", 3) or 0
            make = random_maker(element, Options(field.below("element."), field.owner))
            return lambda: [make() for _ in range(items)]
        case t.MapType(key_type=key, value_type=value):
            entries = field.whole("length", 3) or 0
            make_key = random_maker(key, Options(field.below("key."), field.owner))
            make_value = random_maker(value, Options(field.below("value."), field.owner))
            return lambda: {make_key(): make_value() for _ in range(entries)}
        case t.MultisetType(element_type=element):
            many = field.whole("length", 3) or 0
            make_element = random_maker(element, Options(field.below("element."), field.owner))
            return lambda: {make_element(): 1 for _ in range(many)}
        case RowType():
            makers = [
                random_maker(one, Options(field.below(f"{name}."), field.owner))
                for name, one in zip(data_type.field_names(), data_type.field_types(), strict=True)
            ]
            return lambda: tuple([one() for one in makers])
    raise UnsupportedFeatureError(f"{field.owner}: values of type {data_type.as_sql()} are not generated")


def _length(data_type: Any, field: Options) -> int:
    is_fixed = isinstance(data_type, (t.CharType, t.BinaryType))
    length: int = data_type.length if is_fixed else (field.whole("length", 100) or 0)
    return length if is_fixed else min(length, data_type.length)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- socket --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Decoded:
    decoder: formats.RowDecoder

    def __call__(self, lines: list[str]) -> Rows:
        rows = self.decoder.rows
        return [row for line in lines for row in rows(line.encode("utf-8"))]


def socket(table: SourceTable) -> Any:
    """Lines of a server: the connector of Flink's documentation on user-defined sources."""
    table.refuse_metadata()
    options = table.options
    port = options.whole("port")
    if port is None:
        options.required("port")
    decoder = formats.decoder(formats.format_name(options), options, table.columns, table.time_zone)
    delimiter = chr(options.whole("byte-delimiter", 10) or 10)
    stream: Any = table.env.socket_text_stream(options.required("hostname"), port or 0, delimiter).name(table.name)
    stream = stream._then("Rows of lines", d.ListFunctionDescription(_Decoded(decoder)), None)
    return stream if table.strategy is None else stream.assign_timestamps_and_watermarks(table.strategy)


# --- jdbc ----------------------------------------------------------------------------------------------------------


def connection_options(options: Options) -> JdbcConnectionOptions:
    return JdbcConnectionOptions(
        options.required("url"), options.get("driver"), options.get("username"), options.get("password")
    )


class JdbcRows(SimpleSource):
    """The rows of a query, read once, in the order in which the database gives them."""

    def __init__(
        self, connection: JdbcConnectionOptions, query: str, row_type: RowType, zone: str, ranges: list[str]
    ) -> None:
        super().__init__()
        self.connection = connection
        self.query = query
        self.row_type = row_type
        self.zone = zone
        self.ranges = ranges

    def splits(self) -> list[str]:
        """Conditions that part the table; a single empty one reads it whole."""
        return self.ranges

    def read(self, split: str, offset: Any) -> Iterator[Any]:
        convert = database_converter(self.row_type, self.zone)
        connection = connect(self.connection)
        try:
            cursor = connection.cursor()
            cursor.execute(self.query + (f" WHERE {split}" if split else ""))
            for number, values in enumerate(cursor, start=1):
                if number > (offset or 0):
                    yield number, [convert(values)]
        finally:
            connection.close()


def database_converter(row_type: RowType, zone: str) -> Callable[[Any], RowTuple]:
    """From what a database's client gives to values inside rows; SQLite gives texts for times and decimals."""
    each = [_of_database(data_type, zone) for data_type in row_type.field_types()]
    return lambda values: tuple([f(value) for f, value in zip(each, values, strict=True)])


def _of_database(data_type: DataType, zone: str) -> Callable[[Any], Any]:
    convert = internal_converter(data_type, zone) or (lambda value: value)
    of_text: dict[type, Callable[[str], Any]] = {
        t.DateType: times.date_of_text,
        t.TimeType: times.time_of_text,
        t.TimestampType: lambda text: times.timestamp_of_text(text.replace("T", " ")),
    }
    read_text = of_text.get(type(data_type))

    def read(value: Any) -> Any:
        if isinstance(value, str) and read_text is not None:
            return read_text(value)
        return None if value is None else convert(value)

    return read


def jdbc(table: SourceTable) -> Any:
    """A table of a database, read once; in parts if `scan.partition.*` says how."""
    table.refuse_metadata()
    options = table.options
    connection = connection_options(options)
    database_of(connection.db_url).check(connection)
    names = ", ".join(table.columns.field_names()) or "1"
    query = f"SELECT {names} FROM {options.required('table-name')}"
    source = JdbcRows(connection, query, table.columns, table.time_zone, _partitions(options))
    return rows_of(table.env.from_source(source, table.watermarks, table.name))


def _partitions(options: Options) -> list[str]:
    column, parts = options.get("scan.partition.column"), options.whole("scan.partition.num")
    low, high = options.whole("scan.partition.lower-bound"), options.whole("scan.partition.upper-bound")
    given = [column, parts, low, high]
    if all(each is None for each in given):
        return [""]
    if column is None or parts is None or low is None or high is None:
        raise InvalidProgramError(
            f"{options.owner}: 'scan.partition.column', 'num', 'lower-bound' and 'upper-bound' are given together"
        )
    bounds = [low + (high - low + 1) * part // parts for part in range(parts + 1)]
    return [f"{column} BETWEEN {begin} AND {end - 1}" for begin, end in pairwise(bounds) if begin < end]
