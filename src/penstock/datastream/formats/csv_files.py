"""Reading CSV files as rows."""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO

from penstock.common.types import Row, make_row
from penstock.datastream.connectors.file_system.formats import FileBatch
from penstock.datastream.connectors.file_system.text_lines import BLOCK_BYTES
from penstock.datastream.formats.csv_schema import CsvColumn, CsvSchema
from penstock.datastream.formats.csv_values import CsvDialect, csv_reader

_ROWS_AT_ONCE = 1024


csv.field_size_limit(2**31 - 1)  # Python's own limit is meant for spreadsheets.


class _Lines:
    r"""The lines of a file for Python's CSV reader, with the place behind what it has taken.

    Lines end with `\n`, `\r\n` or `\r`, and keep their ends, as they may be within quotes.
    """

    def __init__(self, stream: BinaryIO, has_comments: bool) -> None:
        self._stream = stream
        self._has_comments = has_comments
        self._ready: deque[bytes] = deque()
        self._rest = b""
        self.place = 0
        self.taken: list[bytes] = []
        """The lines of the row that is being read."""

    def go_to(self, place: int) -> None:
        """Move to the end of a row, which is not before what was read so far."""
        if self._stream.seekable():
            self._stream.seek(place)
            self._ready.clear()
            self._rest = b""
            self.place = place
        else:
            while self.place < place and self._next_line() is not None:
                pass

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while (line := self._next_line()) is not None:
            # Only here: the reader would continue past a quote that a comment does not close.
            if not self.taken and self._has_comments and line.startswith(b"#"):
                continue
            self.taken.append(line)
            return line.decode("utf-8", "replace")
        raise StopIteration

    def _next_line(self) -> bytes | None:
        while not self._ready:
            data = self._stream.read(max(BLOCK_BYTES, len(self._rest)))
            self._ready.extend((self._rest + data).splitlines(keepends=True))
            # What comes next may belong to the last line, or be the second half of its end.
            self._rest = self._ready.pop() if data else b""
            if not data and not self._ready:
                return None
        line = self._ready.popleft()
        is_first, self.place = self.place == 0, self.place + len(line)
        return line.removeprefix(BOM_UTF8) if is_first else line


class CsvFile:
    """Reads one file from its beginning, or from an offset that is the end of a row."""

    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._schema = schema
        self._lines = _Lines(stream, schema.allows_comments)
        self._names = [column.name for column in schema.columns]
        self._readers = [csv_reader(column.type_info, column_dialect(schema, column)) for column in schema.columns]
        self._rows = csv.reader(
            self._lines,
            delimiter=schema.column_separator,
            quotechar=schema.quote_char,
            escapechar=schema.escape_char,
            quoting=csv.QUOTE_MINIMAL if schema.quote_char else csv.QUOTE_NONE,
            strict=True,
        )
        self._order: list[int] | None = None
        """Where each column is in this file; None for the order of the schema."""

    def batches(self, offset: int | None) -> Iterator[FileBatch]:
        if self._schema.uses_header:
            self._read_header()
        if offset is not None:
            self._lines.go_to(offset)
        elif self._schema.skips_first_data_row:
            next(self._texts(), None)
        batch = FileBatch([], 0)
        for texts, raw in self._texts():
            self._add(texts, raw, batch)
            if len(batch.records) + len(batch.bad) >= _ROWS_AT_ONCE:
                yield FileBatch(batch.records, self._lines.place, batch.bad)
                batch = FileBatch([], 0)
        if batch.records or batch.bad:
            yield FileBatch(batch.records, self._lines.place, batch.bad)

    def _read_header(self) -> None:
        header, _ = next(self._texts(), (self._names, b""))
        if self._schema.has_strict_headers and header != self._names:
            raise ValueError(f"the header is {header}, but the schema's columns are {self._names}")
        missing = [name for name in self._names if name not in header]
        if missing:
            raise ValueError(f"the header {header} has no column {missing[0]!r}; the schema has {self._names}")
        self._order = [header.index(name) for name in self._names]

    def _texts(self) -> Iterator[tuple[list[str] | str, bytes]]:
        """The fields of each row, or why there are none, and the lines they were in."""
        while True:
            self._lines.taken.clear()
            try:
                texts: list[str] | str = next(self._rows)
            except StopIteration:
                return
            except csv.Error as failure:
                texts = str(failure)
            if texts:  # An empty line is no row.
                yield texts, b"".join(self._lines.taken)

    def _add(self, texts: list[str] | str, raw: bytes, batch: FileBatch) -> None:
        if isinstance(texts, str):
            batch.bad.append((raw, texts))
            return
        try:
            batch.records.append(self._row(texts))
        except (ValueError, ArithmeticError) as failure:
            batch.bad.append((raw, str(failure)))

    def _row(self, texts: list[str]) -> Row:
        takes_more = self._order is not None or self._schema.any_property_name is not None
        if len(texts) > len(self._readers) and not takes_more:
            raise ValueError(f"{len(self._readers)} fields expected, got {len(texts)}")
        return make_row(self._names, [self._field(at, texts) for at in range(len(self._readers))])

    def _field(self, at: int, texts: list[str]) -> Any:
        place = at if self._order is None else self._order[at]
        if place >= len(texts):
            return None  # Fields that a short row lacks, as in Flink.
        try:
            return self._readers[at](texts[place])
        except (ValueError, ArithmeticError) as failure:
            raise ValueError(f"column {self._names[at]!r}: {failure}") from failure


def column_dialect(schema: CsvSchema, column: CsvColumn) -> CsvDialect:
    return CsvDialect(
        field_delimiter=schema.column_separator,
        array_element_delimiter=column.array_separator or schema.array_element_separator or ";",
        quote_character=schema.quote_char,
        escape_character=schema.escape_char,
        null_literal=schema.null_value,
        line_delimiter=schema.line_separator,
        has_comments=schema.allows_comments,
        empty_is_none=True,
    )
