"""What a statement gives: rows, which may come as long as a job runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.job_client import JobClient
from penstock.common.types import Row, RowKind
from penstock.datastream.streams.closeable_iterator import CloseableIterator
from penstock.table.logical_types import external_converter
from penstock.table.materialized import MaterializedTable
from penstock.table.printed_rows import printed_table, texts_of_rows, widths_of_rows
from penstock.table.result_kind import ResultKind
from penstock.table.table_schema import TableSchema
from penstock.table.types import RowType

__all__ = ["CloseableIterator", "TableResult"]

_LINES_AROUND = 5
"""The frame of a table, its header and the line below."""
_KINDS = (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
InternalRows = Iterable[tuple[int, Sequence[Any]]]


@dataclass(frozen=True)
class Content:
    """The rows of a result: their columns, and how they look when they are printed."""

    row_type: RowType
    zone: str = "UTC"
    look: str = "fitted"
    """fitted: columns as wide as the rows need; typed: as wide as their types; raw: without a frame; ok: just OK."""
    with_kind: bool = False


class TableResult:
    """What a statement gives. Statements that start a job return at once: `wait` waits for its end.

    >>> from penstock.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> t_env.from_elements([(1, "a")], ["n", "t"]).execute().print()
    +----+----------------------+--------------------------------+
    | op |                    n |                              t |
    +----+----------------------+--------------------------------+
    | +I |                    1 |                              a |
    +----+----------------------+--------------------------------+
    1 row in set
    """

    def __init__(
        self,
        rows: InternalRows,
        content: Content,
        job_client: JobClient | None = None,
        end: Callable[[], None] | None = None,
    ) -> None:
        self._rows = _Rows(rows)
        self._content = content
        self._client = job_client
        self._end = end

    @property
    def is_query(self) -> bool:
        """True if a job gives the rows, as long as it runs."""
        return self._end is not None

    def live(self) -> LiveTable:
        """The table that the changes make. They can be read once, here or by `collect` or `print`."""
        return LiveTable(self._rows.take(), self._content)

    def get_job_client(self) -> JobClient | None:
        """The handle of the job; None if the statement has started none."""
        return self._client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the end of the job that inserts; of a query, for its first row."""
        if timeout_ms is not None and timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative, got {timeout_ms}")
        if self._client is None:
            return
        if self._end is not None:
            self._rows.wait_for_first(timeout_ms)
            return
        self._client.get_job_execution_result().result(None if timeout_ms is None else timeout_ms / 1000)

    def get_table_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return TableSchema(self._content.row_type.field_names(), self._content.row_type.field_types())

    def get_resolved_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return self.get_table_schema()

    def get_result_kind(self) -> int:
        """`ResultKind.SUCCESS` if the statement has just succeeded, `SUCCESS_WITH_CONTENT` if there are rows."""
        return ResultKind.SUCCESS if self._content.look == "ok" else ResultKind.SUCCESS_WITH_CONTENT

    def collect(self) -> CloseableIterator[Row]:
        """The rows, each with its kind of change, as they come. They can be read once."""
        convert = external_converter(self._content.row_type, self._content.zone)

        def rows() -> Iterator[Row]:
            for kind, values in self._rows.take():
                row = Row(*[_as_collected(value) for value in (values if convert is None else convert(tuple(values)))])
                row.set_row_kind(_KINDS[kind])
                yield row

        return CloseableIterator(rows(), self._end or _nothing)

    def print(self) -> None:
        """Print the rows as they come, as Flink does."""
        write = sys.stdout.write
        for line in self._lines():
            write(line + "\n")

    def _lines(self) -> Iterator[str]:
        content = self._content
        rows = self._rows.take()
        if content.look == "ok":
            yield "OK"
        elif content.look == "raw":
            texts = texts_of_rows(content.row_type, content.zone)
            yield from (", ".join(texts(row)) for _, row in rows)
        elif content.look == "typed":
            yield from printed_table(rows, content.row_type, content.zone, content.with_kind)
        else:
            kept = list(rows)
            widths = widths_of_rows([row for _, row in kept], content.row_type)
            yield from printed_table(kept, content.row_type, content.zone, False, widths, null="")


class LiveTable:
    """A table that changes. One thread reads the changes, another one may look at it meanwhile."""

    def __init__(self, rows: InternalRows, content: Content) -> None:
        self._rows = rows
        self._content = content
        self._lock = threading.Lock()
        self._table = MaterializedTable()
        self.changes = 0
        """How many have come."""

    def read(self) -> None:
        """Read changes until no more come."""
        for kind, row in self._rows:
            with self._lock:
                self._table.change(kind, row)
                self.changes += 1

    def lines(self, most: int) -> list[str]:
        """The table as it is now, in at most so many lines; of more rows, the last ones."""
        with self._lock:
            rows = self._table.rows()
        left = max(most - _LINES_AROUND, 1)
        content = self._content
        shown = rows[-left:]
        widths = widths_of_rows(shown, content.row_type)
        lines = list(printed_table(((0, row) for row in shown), content.row_type, content.zone, False, widths))
        if len(shown) < len(rows):
            lines[-1] = f"the last {len(shown)} of {len(rows)} rows"
        return lines


class _Rows:
    """Rows that are read once, and may be waited for."""

    def __init__(self, rows: InternalRows) -> None:
        self._iterator = iter(rows)
        self._first: list[tuple[int, Sequence[Any]]] = []
        self._is_begun = False
        self._is_taken = False

    def take(self) -> Iterator[tuple[int, Sequence[Any]]]:
        if self._is_taken:
            raise InvalidProgramError("the rows of a result can be read once; execute the query again")
        self._is_taken = True
        while self._first:
            yield self._first.pop()
        yield from self._iterator

    def wait_for_first(self, timeout_ms: int | None) -> None:
        if self._is_begun or self._is_taken:
            return
        self._is_begun = True
        failures: list[Exception] = []
        reader = threading.Thread(target=self._read_first, args=(failures,), name="penstock-first-row", daemon=True)
        reader.start()
        reader.join(None if timeout_ms is None else timeout_ms / 1000)
        if reader.is_alive():
            raise TimeoutError(f"no row has come within {timeout_ms} ms")
        if failures:
            raise failures[0]

    def _read_first(self, failures: list[Exception]) -> None:
        try:
            self._first = [row for row in [next(self._iterator, None)] if row is not None]
        except Exception as error:  # Raised by the thread that waits.
            failures.append(error)


def _as_collected(value: Any) -> Any:
    """A value as PyFlink collects it: rows by position only, bytes as a bytearray."""
    match value:
        case Row():
            return Row(*map(_as_collected, value))
        case list():
            return [_as_collected(item) for item in value]
        case dict():
            return {_as_collected(key): _as_collected(item) for key, item in value.items()}
        case bytes():
            return bytearray(value)
    return value


def _nothing() -> None:
    """There is no job to end."""
