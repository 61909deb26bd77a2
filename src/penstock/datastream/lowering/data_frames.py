"""A lowered program on a DataFrame: the columns are added before it is written, and read instead of rows.

Files keep the DataFrame's own columns, so a job that continues from a checkpoint with other functions, or with lowering
turned off, reads them as if they had never been lowered. Where no job can continue (in batch mode there are no
checkpoints), dropped rows and unneeded columns are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.datastream.connectors.file_system.formats import BulkFormat, FileBatch, FileToRead
from penstock.datastream.formats.arrow_reading import ArrowRowReader, parquet_batches
from penstock.datastream.formats.arrow_rows import ROWS_AT_ONCE
from penstock.datastream.lowering.aggregation import Aggregation
from penstock.datastream.lowering.expressions import KIND_OF_TYPE, Column
from penstock.datastream.lowering.left_to_python import LeftToPython
from penstock.datastream.lowering.program import DROPPED, IN_PYTHON, LOWERED, ComputedColumn, LoweredProgram

_TYPES_OF_KINDS = {"int": Types.LONG, "float": Types.DOUBLE, "string": Types.STRING, "boolean": Types.BOOLEAN}


def columns_of(schema: dict[str, Any]) -> list[Column]:
    """The columns of a DataFrame, from its schema as JSON."""
    return [_column(at, field) for at, field in enumerate(schema["fields"])]


def _column(at: int, field: dict[str, Any]) -> Column:
    spark_type = field["type"] if isinstance(field["type"], str) else repr(field["type"])
    # Spark notes there what is special about a type: a collation, by which text compares differently, or padding.
    is_special = any(key.startswith("__") for key in field.get("metadata") or {})
    kind = "other" if is_special else KIND_OF_TYPE.get(spark_type, "other")
    return Column(at, spark_type, kind, bool(field["nullable"]))


def with_program(data_frame: Any, program: LoweredProgram, keeps_all: bool) -> Any:
    """The DataFrame with the program's columns; without `keeps_all`, only what is needed of it."""
    if program.aggregation is not None:
        return _with_aggregation(data_frame, program, program.aggregation)
    names = data_frame.columns
    added = data_frame.toDF(*(f"c{at}" for at in range(len(names)))).selectExpr(
        "*",
        f"CAST({program.verdict_sql} AS TINYINT) AS {program.verdict_name}",
        *(f"{each.sql} AS {each.name}" for each in program.computed),
    )
    if not keeps_all:
        added = added.where(f"{program.verdict_name} <> {DROPPED}")
    own = [f"{_own(at, program, keeps_all)} AS {_quoted(name)}" for at, name in enumerate(names)]
    return added.selectExpr(*own, program.verdict_name, *(each.name for each in program.computed))


def _with_aggregation(data_frame: Any, program: LoweredProgram, aggregation: Aggregation) -> Any:
    """One row for each key, and the rows that are left to Python, each for itself."""
    before, verdict, names = aggregation.before, program.verdict_name, data_frame.columns
    added = data_frame.toDF(*(f"c{at}" for at in range(len(names)))).selectExpr(
        "*",
        f"CAST({before.verdict_sql} AS TINYINT) AS {before.verdict_name}",
        *(f"{each.sql} AS {each.name}" for each in before.computed),
    )
    is_left = f"{before.verdict_name} = {IN_PYTHON}"
    if aggregation.needed is not None:
        is_left = f"({is_left} OR {aggregation.needed} IS NULL)"
    rows = added.where(f"{before.verdict_name} <> {DROPPED}").selectExpr(
        "*",
        f"CAST(CASE WHEN {is_left} THEN {IN_PYTHON} ELSE {LOWERED} END AS TINYINT) AS {verdict}",
        f"CASE WHEN {is_left} THEN monotonically_increasing_id() END AS {verdict}_row",
    )
    total = program.computed[-1]
    own = [_own_or_first(at, program, name) for at, name in enumerate(names)]
    chosen = ", ".join([*own, verdict, *(each.name for each in program.computed[:-1]), f"{total.sql} AS {total.name}"])
    groups = ", ".join([verdict, f"{verdict}_row", *aggregation.keys])
    # Braces are the query's own, except for the pair that stands for the rows.
    chosen = chosen.replace("{", "{{").replace("}", "}}")
    return data_frame.sparkSession.sql(f"SELECT {chosen} FROM {{rows}} GROUP BY {groups}", rows=rows)


def _own_or_first(at: int, program: LoweredProgram, name: str) -> str:
    if at in program.passed_on:
        return f"c{at} AS {_quoted(name)}"
    return f"first(CASE WHEN {program.verdict_name} = {IN_PYTHON} THEN c{at} END) AS {_quoted(name)}"


def _own(at: int, program: LoweredProgram, keeps_all: bool) -> str:
    if keeps_all or at in program.passed_on:
        return f"c{at}"
    return f"CASE WHEN {program.verdict_name} = {IN_PYTHON} THEN c{at} END"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class LoweredRowFormat(BulkFormat):
    """Reads what `with_program` has written: elements, and a `LeftToPython` for each row that was left to Python.

    In files of another program every row is left to Python.
    """

    def __init__(self, row_type: RowTypeInfo, program: LoweredProgram) -> None:
        self.row_type = row_type
        self.program = program

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        with file.open_raw() as stream:
            reader = _Reader(self.row_type, self.program, _verdicts(stream, self.program))
            yield from parquet_batches(stream, offset or 0, ROWS_AT_ONCE, reader.columns_in, reader.records)

    def get_produced_type(self) -> TypeInformation | None:
        return None


def _verdicts(stream: BinaryIO, program: LoweredProgram) -> set[int]:
    """Which verdicts there are in a file; it is a small column."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    if program.verdict_name not in file.schema_arrow.names:
        return {IN_PYTHON}
    return set(file.read(columns=[program.verdict_name]).column(0).unique().to_pylist())


class _Reader:
    """Turns batches of a file's columns into records."""

    def __init__(self, row_type: RowTypeInfo, program: LoweredProgram, verdicts: set[int]) -> None:
        self._program = program
        self._verdicts = verdicts
        self._fields = ArrowRowReader(_fields_type(row_type, program), is_utc_timestamp=False)
        self._rows = ArrowRowReader(row_type, is_utc_timestamp=False)

    def columns_in(self, file_columns: list[str]) -> list[str | None]:
        wanted: list[str | None] = [self._program.verdict_name] if self._is_lowered(file_columns) else []
        if LOWERED in self._verdicts:
            wanted += self._fields.columns_in(file_columns)
        if IN_PYTHON in self._verdicts:
            wanted += self._rows.columns_in(file_columns)
        return list(dict.fromkeys(wanted))

    def records(self, batch: Any, columns: list[str | None]) -> list[Any]:
        names = batch.schema.names
        if not self._is_lowered(names):
            return self._left(batch)
        if self._verdicts == {LOWERED}:
            return self._elements(batch)
        elements = iter(self._elements(self._with_verdict(batch, LOWERED)))
        if IN_PYTHON not in self._verdicts:
            return list(elements)
        rows = iter(self._left(self._with_verdict(batch, IN_PYTHON)))
        verdicts = batch.column(self._program.verdict_name).to_pylist()
        return [next(elements) if verdict == LOWERED else next(rows) for verdict in verdicts if verdict != DROPPED]

    def _is_lowered(self, file_columns: list[str]) -> bool:
        return self._program.verdict_name in file_columns

    def _with_verdict(self, batch: Any, verdict: int) -> Any:
        import pyarrow.compute as pc

        return batch.filter(pc.equal(batch.column(self._program.verdict_name), verdict))

    def _left(self, batch: Any) -> list[Any]:
        rows = self._rows.rows(batch, self._rows.columns_in(batch.schema.names))
        return list(map(LeftToPython, rows)) if self._program.has_functions else list(rows)

    def _elements(self, batch: Any) -> list[Any]:
        if LOWERED not in self._verdicts:
            return []
        fields = self._fields.fields(batch, self._fields.columns_in(batch.schema.names))
        return self._program.shape.elements(fields, batch.num_rows)


def _fields_type(row_type: RowTypeInfo, program: LoweredProgram) -> RowTypeInfo:
    """The columns that elements are made of: those passed on, then the computed ones."""
    names, types = row_type.get_field_names(), row_type.get_field_types()
    return Types.ROW_NAMED(
        [*(names[at] for at in program.passed_on), *(each.name for each in program.computed)],
        [*(types[at] for at in program.passed_on), *(_type_of(each, types) for each in program.computed)],
    )


def _type_of(computed: ComputedColumn, types: list[TypeInformation]) -> TypeInformation:
    if computed.is_decimal:
        return Types.BIG_INT()
    return types[computed.like] if computed.like is not None else _TYPES_OF_KINDS[computed.kind]()
