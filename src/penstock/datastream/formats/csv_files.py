"""Reading CSV files as rows."""

from __future__ import annotations

import csv
import functools
import itertools
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from penstock.common.types import Row, make_row, make_rows
from penstock.datastream.connectors.file_system.formats import FileBatch
from penstock.datastream.connectors.file_system.text_lines import BLOCK_BYTES
from penstock.datastream.formats.csv_schema import CsvColumn, CsvSchema
from penstock.datastream.formats.csv_values import CsvDialect, csv_reader

_ROWS_AT_ONCE = 1024


class _Lines:
    r"""The lines of a file for Python's CSV reader, and the place after those it has taken.

    Lines end with `\n`, `\r\n` or `\r`, and keep their ends, as they may be within quotes.
    """

    def __init__(self, stream: BinaryIO, has_comments: bool, special: str) -> None:
        self._stream = stream
        self._has_comments = has_comments
        self._special = [each.encode() for each in (special + "#" if has_comments else special)]
        self._are_plain = False
        """True if none of the lines that are ready has a special character: each is a row, or empty."""
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

    def take_plain(self, most: int) -> list[bytes]:
        """The next lines, if each is certainly a row of its own, or empty; none otherwise, and at the end."""
        if not self._make_ready() or not self._are_plain or (self.place == 0 and self._ready[0].startswith(BOM_UTF8)):
            return []
        lines = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        self.place += sum(map(len, lines))
        return lines

    def put_back(self, lines: list[bytes]) -> None:
        """Put lines back that were taken as plain ones, to be taken one by one."""
        self._ready.extendleft(reversed(lines))
        self.place -= sum(map(len, lines))
        self._are_plain = False

    def _make_ready(self) -> bool:
        """False at the end of the file."""
        while not self._ready:
            data = self._stream.read(max(BLOCK_BYTES, len(self._rest)))
            block = self._rest + data
            self._ready.extend(block.splitlines(keepends=True))
            self._are_plain = not any(each in block for each in self._special)
            # The next block may continue the last line, or hold the second half of its line break.
            self._rest = self._ready.pop() if data else b""
            if not data and not self._ready:
                return False
        return True

    def _next_line(self) -> bytes | None:
        if not self._make_ready():
            return None
        line = self._ready.popleft()
        is_first, self.place = self.place == 0, self.place + len(line)
        return line.removeprefix(BOM_UTF8) if is_first else line


class CsvFile:
    """Reads one file from its beginning, or from an offset that is the end of a row."""

    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._schema = schema
        special = (schema.quote_char or "") + (schema.escape_char or "")
        self._lines = _Lines(stream, schema.allows_comments, special)
        self._names = [column.name for column in schema.columns]
        self._readers = [csv_reader(column.type_info, column_dialect(schema, column)) for column in schema.columns]
        self._reader = functools.partial(
            csv.reader,
            delimiter=schema.column_separator,
            quotechar=schema.quote_char,
            escapechar=schema.escape_char,
            quoting=csv.QUOTE_MINIMAL if schema.quote_char else csv.QUOTE_NONE,
            strict=True,
        )
        self._rows = self._reader(self._lines)
        self._order: list[int] | None = None
        """Where each column is in this file; None for the order of the schema."""

    def batches(self, offset: int | None) -> Iterator[FileBatch]:
        if self._schema.uses_header:
            self._read_header()
        if offset is not None:
            self._lines.go_to(offset)
        elif self._schema.skips_first_data_row:
            next(self._texts(), None)
        while (batch := self._plain_batch() or self._batch()) is not None:
            yield batch

    def _plain_batch(self) -> FileBatch | None:
        """Many rows at once; None if the next ones must be read one by one."""
        lines = self._lines.take_plain(_ROWS_AT_ONCE)
        try:
            texts = self._reader([line.decode("utf-8", "replace") for line in lines])
            rows = self._all_rows([fields for fields in texts if fields])
        except (ValueError, ArithmeticError, csv.Error):
            self._lines.put_back(lines)  # One by one, the error can name the row.
            return None
        return FileBatch(rows, self._lines.place) if rows else None

    def _batch(self) -> FileBatch | None:
        """The next rows; None at the end of the file."""
        batch = FileBatch([], 0)
        for texts in itertools.islice(self._texts(), _ROWS_AT_ONCE):
            self._add(texts, batch)
        return replace(batch, offset=self._lines.place) if batch.records or batch.bad else None

    def _read_header(self) -> None:
        header = next(self._texts(), self._names)
        if self._schema.has_strict_headers and header != self._names:
            raise ValueError(f"the header is {header}, but the schema's columns are {self._names}")
        missing = [name for name in self._names if name not in header]
        if missing:
            raise ValueError(f"the header {header} has no column {missing[0]!r}; the schema has {self._names}")
        self._order = [header.index(name) for name in self._names]

    def _texts(self) -> Iterator[list[str] | str]:
        """The fields of each row, or why there are none; the lines they were in are those that were taken."""
        while True:
            self._lines.taken.clear()
            try:
                texts: list[str] | str = next(self._rows)
            except StopIteration:
                return
            except csv.Error as failure:
                texts = str(failure)
            if texts:  # An empty line is not a row.
                yield texts

    def _add(self, texts: list[str] | str, batch: FileBatch) -> None:
        if isinstance(texts, str):
            batch.bad.append((b"".join(self._lines.taken), texts))
            return
        try:
            batch.records.append(self._row(texts))
        except (ValueError, ArithmeticError) as failure:
            batch.bad.append((b"".join(self._lines.taken), str(failure)))

    def _all_rows(self, texts: list[list[str]]) -> list[Row]:
        if self._order is not None or set(map(len, texts)) != {len(self._readers)}:
            return list(map(self._row, texts))
        columns = zip(*texts, strict=True)
        fields = ([read(text) for text in column] for read, column in zip(self._readers, columns, strict=True))
        return make_rows(self._names, fields)

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
