"""Rows from Arrow columns: how Parquet and ORC files are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from penstock.common.exceptions import ConnectorError
from penstock.common.typeinfo import RowTypeInfo
from penstock.common.types import Row, make_row, make_rows
from penstock.datastream.connectors.file_system.formats import FileBatch
from penstock.datastream.formats.arrow_columns import ColumnReader, ColumnReaders
from penstock.datastream.formats.arrow_rows import wall_time

ColumnsIn = Callable[[list[str]], "list[str | None]"]
"""From the columns of a file to those that are read, one for each field."""
Read = Callable[[Any, "list[str | None]"], "list[Any]"]
"""From a batch of those columns to records."""
Batches = Iterator[FileBatch]


class ArrowRowReader:
    """Turns batches of Arrow columns into rows of a type. Columns that a file lacks are None."""

    def __init__(self, row_type: RowTypeInfo, is_utc_timestamp: bool = True, is_case_sensitive: bool = True) -> None:
        self._names = row_type.get_field_names()
        self._types = row_type.get_field_types()
        self._readers = ColumnReaders(make_row, lambda moment: wall_time(moment, is_utc_timestamp))
        self._opened: dict[int, tuple[Any, ColumnReader]] = {}
        self._is_case_sensitive = is_case_sensitive

    def columns_in(self, file_columns: list[str]) -> list[str | None]:
        """For each field, what its column is called in a file."""
        if self._is_case_sensitive:
            return [name if name in file_columns else None for name in self._names]
        by_lower = {name.lower(): name for name in file_columns}
        return [by_lower.get(name.lower()) for name in self._names]

    def rows(self, batch: Any, columns: list[str | None]) -> list[Row]:
        return make_rows(self._names, self.fields(batch, columns))

    def dicts(self, batch: Any, columns: list[str | None]) -> list[dict[str, Any]]:
        fields = self.fields(batch, columns)
        return [dict(zip(self._names, values, strict=True)) for values in zip(*fields, strict=True)]

    def fields(self, batch: Any, columns: list[str | None]) -> list[list[Any]]:
        """The values of each field, one list for each."""
        return [
            [None] * batch.num_rows if column is None else self._values(batch.column(column), at)
            for at, column in enumerate(columns)
        ]

    def _values(self, column: Any, at: int) -> list[Any]:
        import pyarrow as pa

        try:
            opened = self._opened.get(at)
            if opened is None or opened[0] != column.type:
                self._opened[at] = opened = column.type, self._readers.reader_for(self._types[at], column.type)
            return opened[1](column)
        except (pa.ArrowException, ValueError, ArithmeticError) as failure:
            raise ValueError(
                f"column {self._names[at]!r} is {column.type} in the file and declared as {self._types[at]}: "
                f"{failure}; declare a type that holds its values"
            ) from failure


class ArrowDictReader(ArrowRowReader):
    """Turns batches of Arrow columns into dicts, with rows as dicts in them. Times with a zone keep it."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        super().__init__(row_type)
        self._readers = ColumnReaders(
            lambda names, values: dict(zip(names, values, strict=True)), lambda moment: moment
        )


# --- files -----------------------------------------------------------------------------------------------------------


class NamingTheFile:
    """A context in which errors of Arrow, or of a declared type, name the file that cannot be read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, failure: BaseException | None, frames: object) -> None:
        import pyarrow as pa

        # Arrow raises OSError for a file that is not ORC; the system's own errors have a number, and name the file.
        is_of_arrow = isinstance(failure, OSError) and failure.errno is None
        if is_of_arrow or isinstance(failure, (pa.ArrowException, ValueError)):
            raise ConnectorError(f"file {self._path}: {failure}") from failure


def parquet_batches(stream: BinaryIO, offset: int, batch_size: int, columns_in: ColumnsIn, read: Read) -> Batches:
    """The rows of a Parquet file after the first `offset`; row groups before that are not read."""
    from pyarrow import PythonFile
    from pyarrow.parquet import ParquetFile

    source = PythonFile(stream, mode="r")
    file = ParquetFile(source)
    columns = columns_in(file.schema_arrow.names)
    wanted = [column for column in columns if column is not None]
    number, groups = 0, list(range(file.num_row_groups))
    while groups and number + file.metadata.row_group(groups[0]).num_rows <= offset:
        number += file.metadata.row_group(groups.pop(0)).num_rows
    if not groups:
        return
    batches = file.iter_batches(batch_size, row_groups=groups, columns=wanted)
    if old_times := _columns_with_int96(file, wanted):
        in_micros = ParquetFile(source, coerce_int96_timestamp_unit="us")
        batches = _with_far_times(batches, in_micros.iter_batches(batch_size, row_groups=groups, columns=old_times))
    for batch in batches:
        yield from _behind(batch, number, offset, columns, read)
        number += batch.num_rows


def _columns_with_int96(file: Any, wanted: list[str]) -> list[str]:
    """The columns with timestamps in Parquet's old form, which Spark still writes; also within lists and structs."""
    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    old = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [name for name in wanted if any(path == name or path.startswith(f"{name}.") for path in old)]


def _with_far_times(batches: Iterator[Any], in_micros: Iterator[Any]) -> Iterator[Any]:
    """The batches, with columns of `in_micros` where nanoseconds do not reach.

    Arrow reads old timestamps as nanoseconds, in 64 bits. Those before 1677 and after 2262 become other times, without
    an error. Programs often write 9999-12-31 for a date that is not known.
    """
    import pyarrow as pa

    for batch, micros in zip(batches, in_micros, strict=True):
        for name in micros.schema.names:
            at = batch.schema.get_field_index(name)
            try:
                micros.column(name).cast(batch.column(at).type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                batch = batch.set_column(at, name, micros.column(name))
        yield batch


def orc_batches(stream: BinaryIO, offset: int, batch_size: int, columns_in: ColumnsIn, read: Read) -> Batches:
    """The rows of an ORC file after the first `offset`."""
    from pyarrow import PythonFile
    from pyarrow.orc import ORCFile

    file = ORCFile(PythonFile(stream, mode="r"))
    columns = columns_in(file.schema.names)
    # Without any column, the number of rows would be unknown.
    wanted = [column for column in columns if column is not None] or file.schema.names[:1]
    number = 0
    for stripe in range(file.nstripes):
        rows = file.read_stripe(stripe, wanted)
        for start in range(0, rows.num_rows, batch_size):
            batch = rows.slice(start, batch_size)
            yield from _behind(batch, number, offset, columns, read)
            number += batch.num_rows


def _behind(batch: Any, number: int, offset: int, columns: list[str | None], read: Read) -> Batches:
    """The part of a batch, whose first row has this number, that is after `offset`."""
    if number + batch.num_rows > offset:
        rest = batch.slice(max(0, offset - number))
        yield FileBatch(read(rest, columns), number + batch.num_rows)
