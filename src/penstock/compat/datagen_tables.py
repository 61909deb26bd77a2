"""The part of PyFlink's tables that generates data: a descriptor with the connector `datagen`, read as a stream.

Most DataStream programs that touch tables do it for this only. Everything else about tables is refused by name.
"""

from __future__ import annotations

import datetime
import decimal
import random
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.typeinfo import Types
from penstock.common.types import Row, make_row
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.compat.data_types import DataType, DataTypes
from penstock.datastream.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy

__all__ = ["DataType", "DataTypes", "Schema", "StreamTableEnvironment", "Table", "TableDescriptor"]

if TYPE_CHECKING:
    from penstock.datastream import DataStream, StreamExecutionEnvironment

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXTS = ("STRING", "VARCHAR", "CHAR")
_ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class Schema:
    """Names and types of the columns."""

    columns: tuple[tuple[str, DataType], ...] = ()

    @staticmethod
    def new_builder() -> _SchemaBuilder:
        return _SchemaBuilder()


class _SchemaBuilder:
    def __init__(self) -> None:
        self._columns: list[tuple[str, DataType]] = []

    def column(self, column_name: str, data_type: DataType) -> _SchemaBuilder:
        if not isinstance(data_type, DataType):
            raise TypeError(f"column {column_name!r} needs a type such as DataTypes.INT(), got {data_type!r}")
        if data_type.values is not None:
            raise UnsupportedFeatureError(f"column {column_name!r}: values of type {data_type.name} are not generated")
        self._columns.append((column_name, data_type))
        return self

    def build(self) -> Schema:
        return Schema(tuple(self._columns))

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedFeatureError(f"Schema.{name}(...): generated data has plain columns only, see column(...)")


@dataclass(frozen=True)
class TableDescriptor:
    """A table by connector, schema and options."""

    connector: str
    table_schema: Schema = field(default_factory=Schema)
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_connector(connector: str) -> _DescriptorBuilder:
        if connector != "datagen":
            raise UnsupportedFeatureError(
                f"TableDescriptor.for_connector({connector!r}): of PyFlink's tables there is only 'datagen'; read with "
                f"a source of penstock.datastream.connectors, or a DataFrame: env.from_data_frame(...)"
            )
        return _DescriptorBuilder(TableDescriptor(connector))


class _DescriptorBuilder:
    def __init__(self, descriptor: TableDescriptor) -> None:
        self._descriptor = descriptor

    def schema(self, schema: Schema) -> _DescriptorBuilder:
        self._descriptor = replace(self._descriptor, table_schema=schema)
        return self

    def option(self, key: Any, value: Any) -> _DescriptorBuilder:
        options = {**self._descriptor.options, str(getattr(key, "key", key)): str(value)}
        self._descriptor = replace(self._descriptor, options=options)
        return self

    def comment(self, comment: str) -> _DescriptorBuilder:
        return self

    def build(self) -> TableDescriptor:
        return self._descriptor


@dataclass(frozen=True)
class Table:
    """A table that can only become a stream: `t_env.to_data_stream(table)`."""

    descriptor: TableDescriptor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        _refuse(f"Table.{name}")


class StreamTableEnvironment:
    """Where generated tables are named and become streams."""

    def __init__(self, environment: StreamExecutionEnvironment) -> None:
        self._environment = environment
        self._tables: dict[str, TableDescriptor] = {}

    @staticmethod
    def create(stream_execution_environment: Any = None, *settings: Any, **more: Any) -> StreamTableEnvironment:
        from penstock.datastream import StreamExecutionEnvironment

        if not isinstance(stream_execution_environment, StreamExecutionEnvironment):
            stream_execution_environment = StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(stream_execution_environment)

    def create_temporary_table(self, path: str, descriptor: TableDescriptor) -> None:
        if path in self._tables:
            raise InvalidProgramError(f"there is a table {path!r} already; choose another name")
        self._tables[path] = descriptor

    def create_table(self, path: str, descriptor: TableDescriptor) -> None:
        self.create_temporary_table(path, descriptor)

    def from_path(self, path: str) -> Table:
        if path not in self._tables:
            known = ", ".join(map(repr, self._tables)) or "none"
            raise InvalidProgramError(f"there is no table {path!r}; known: {known}")
        return Table(self._tables[path])

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        return Table(descriptor)

    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of the table, with the names of its columns."""
        descriptor = table.descriptor
        columns, options = descriptor.table_schema.columns, dict(descriptor.options)
        if not columns:
            raise InvalidProgramError("a table of generated data needs a schema with at least one column")
        makers = [_maker(name, data_type, options) for name, data_type in columns]
        rate, count = options.pop("rows-per-second", "10000"), options.pop("number-of-rows", None)
        ends = [maker.count for maker in makers if maker.count is not None]
        limit = min([*ends, _ENDLESS if count is None else int(count)])
        source = DataGeneratorSource(
            _RowMaker([name for name, _ in columns], [maker.make for maker in makers]),
            limit,
            RateLimiterStrategy.per_second(float(rate)),
        )
        row_type = Types.ROW_NAMED([name for name, _ in columns], [each.type_info() for _, each in columns])
        return self._environment.from_source(source, WatermarkStrategy.no_watermarks(), "datagen", row_type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        _refuse(f"StreamTableEnvironment.{name}")


def _refuse(what: str) -> NoReturn:
    raise UnsupportedFeatureError(
        f"{what}: of PyFlink's tables there is only what generates data (connector 'datagen', to_data_stream); use "
        f"Spark's own SQL and DataFrames: env.from_data_frame(...), stream.to_data_frame()"
    )


@dataclass(frozen=True)
class _RowMaker:
    names: list[str]
    makers: list[Callable[[int], Any]]

    def __call__(self, number: int) -> Row:
        return make_row(self.names, [make(number) for make in self.makers])


@dataclass(frozen=True)
class _FieldMaker:
    make: Callable[[int], Any]
    count: int | None = None
    """How many values there are, for a sequence."""


def _maker(name: str, data_type: DataType, options: dict[str, str]) -> _FieldMaker:
    prefix = f"fields.{name}."
    own = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
    if own.pop("kind", "random") == "sequence":
        if not {"start", "end"} <= own.keys():
            raise InvalidProgramError(f"column {name!r}: a sequence needs {prefix}start and {prefix}end")
        start, end = int(own["start"]), int(own["end"])
        convert = str if data_type.name in _TEXTS else int
        return _FieldMaker(lambda number: convert(start + number), end - start + 1)
    value = _random_value(data_type, own)
    null_rate = float(own.get("null-rate", "0"))
    return _FieldMaker(lambda number: None if null_rate and random.random() < null_rate else value())


def _random_value(data_type: DataType, own: Mapping[str, str]) -> Callable[[], Any]:
    """Random values of a column, from Flink's options `min`, `max`, `length` and `max-past`."""
    name = data_type.name
    if name in _INTEGERS:
        bound = 2 ** (_INTEGERS[name] - 1)
        low, high = int(own.get("min", -bound)), int(own.get("max", bound - 1))
        return lambda: random.randint(low, high)
    if name in ("FLOAT", "DOUBLE", "DECIMAL"):
        least, most = float(own.get("min", -1e9)), float(own.get("max", 1e9))
        if name != "DECIMAL":
            return lambda: random.uniform(least, most)
        digits = decimal.Decimal(1).scaleb(-(data_type.parameters[1] if len(data_type.parameters) > 1 else 0))
        return lambda: decimal.Decimal(random.uniform(least, most)).quantize(digits)
    if name == "BOOLEAN":
        return lambda: random.random() < 0.5
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return datetime.datetime.now
    if name in ("DATE", "TIME"):
        return lambda: getattr(datetime.datetime.now(), name.lower())()
    length = int(own.get("length", data_type.parameters[0] if data_type.parameters else 100))
    if name in ("BYTES", "BINARY", "VARBINARY"):
        return lambda: random.randbytes(length)
    return lambda: "".join(random.choices(string.hexdigits[:16], k=length))
