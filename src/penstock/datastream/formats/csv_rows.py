"""Rows as CSV messages."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.types import Row, make_row
from penstock.datastream.formats.csv_values import CsvDialect, csv_reader, csv_writer


class CsvDeserializationBuilder:
    """Collects how CSV lines become rows."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._row_type = _row_type("CsvRowDeserializationSchema", type_info)
        self._dialect = CsvDialect()
        self._allow_comments = False
        self._ignore_parse_errors = False

    def set_field_delimiter(self, delimiter: str) -> CsvDeserializationBuilder:
        """A comma, unless set."""
        return self._with(field_delimiter=delimiter)

    def set_allow_comments(self, allow_comments: bool) -> CsvDeserializationBuilder:
        """Treat lines that begin with `#` as comments, not as rows."""
        self._allow_comments = allow_comments
        return self

    def set_array_element_delimiter(self, delimiter: str) -> CsvDeserializationBuilder:
        """A semicolon, unless set; also separates the fields of nested rows."""
        return self._with(array_element_delimiter=delimiter)

    def set_quote_character(self, c: str) -> CsvDeserializationBuilder:
        """A double quote, unless set."""
        return self._with(quote_character=c)

    def set_escape_character(self, c: str) -> CsvDeserializationBuilder:
        """None, unless set."""
        return self._with(escape_character=c)

    def set_null_literal(self, null_literal: str) -> CsvDeserializationBuilder:
        """Read this text as None; nothing is None, unless set."""
        return self._with(null_literal=null_literal)

    def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvDeserializationBuilder:
        """Make a field that cannot be read or is missing None, and skip a line that is not a row."""
        self._ignore_parse_errors = ignore_parse_errors
        return self

    def build(self) -> CsvRowDeserializationSchema:
        """The finished schema."""
        return CsvRowDeserializationSchema(
            self._row_type, self._dialect, self._allow_comments, self._ignore_parse_errors
        )

    def _with(self, **changes: str) -> CsvDeserializationBuilder:
        self._dialect = replace(self._dialect, **changes)  # type: ignore[arg-type]
        return self


class CsvRowDeserializationSchema(DeserializationSchema):
    """Reads a row from a line; made by `CsvRowDeserializationSchema.Builder(type_info)`.

    >>> from penstock.common import Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowDeserializationSchema.Builder(people).build().deserialize(b"Alice,11")
    Row(name='Alice', age=11)
    """

    Builder = CsvDeserializationBuilder

    def __init__(
        self, row_type: RowTypeInfo, dialect: CsvDialect, allow_comments: bool, ignore_parse_errors: bool
    ) -> None:
        super().__init__()
        self._row_type = row_type
        self._dialect = dialect
        self._allow_comments = allow_comments
        self._ignore_parse_errors = ignore_parse_errors
        self._names = row_type.get_field_names()
        self._readers = [csv_reader(field, dialect) for field in row_type.get_field_types()]

    def __repr__(self) -> str:
        return f"CsvRowDeserializationSchema({self._row_type!r})"

    def deserialize(self, message: bytes) -> Row | None:
        try:
            return make_row(self._names, self._read_fields(self._split(bytes(message).decode())))
        except (ValueError, ArithmeticError, csv.Error) as exc:
            if self._ignore_parse_errors:
                return None
            raise ValueError(
                f"CsvRowDeserializationSchema: cannot read {bytes(message)!r}: {exc}; "
                "call set_ignore_parse_errors(True) on the builder to skip such lines"
            ) from exc

    def get_produced_type(self) -> TypeInformation:
        return self._row_type

    def __reduce__(self) -> tuple[Any, ...]:
        # The readers are closures, which do not pickle; they are built again instead.
        return type(self), (self._row_type, self._dialect, self._allow_comments, self._ignore_parse_errors)

    def _split(self, line: str) -> list[str]:
        if not line.strip("\r\n") or (self._allow_comments and line.startswith("#")):
            raise ValueError("there is no row in it")
        dialect = self._dialect
        lines = csv.reader(
            io.StringIO(line, newline=""),
            delimiter=dialect.field_delimiter,
            quotechar=dialect.quote_character,
            escapechar=dialect.escape_character,
            quoting=csv.QUOTE_MINIMAL if dialect.quote_character else csv.QUOTE_NONE,
            strict=True,
        )
        row = next(lines)
        if any(lines):
            raise ValueError("there is more than one row in it")
        return row

    def _read_fields(self, texts: list[str]) -> list[Any]:
        expected = len(self._readers)
        if len(texts) > expected or (len(texts) < expected and not self._ignore_parse_errors):
            raise ValueError(f"{expected} fields expected, got {len(texts)}")
        missing = [None] * (expected - len(texts))
        return [self._read_field(i, text) for i, text in enumerate(texts)] + missing

    def _read_field(self, position: int, text: str) -> Any:
        try:
            return self._readers[position](text)
        except (ValueError, ArithmeticError) as exc:
            if self._ignore_parse_errors:
                return None
            raise ValueError(f"field {self._names[position]!r}: {exc}") from exc


class CsvSerializationBuilder:
    """Collects how rows become CSV lines."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._row_type = _row_type("CsvRowSerializationSchema", type_info)
        self._dialect = CsvDialect()

    def set_field_delimiter(self, c: str) -> CsvSerializationBuilder:
        """A comma, unless set."""
        return self._with(field_delimiter=c)

    def set_line_delimiter(self, delimiter: str) -> CsvSerializationBuilder:
        r"""What ends a line: `\n`, unless set to `\r`, `\r\n` or nothing."""
        return self._with(line_delimiter=delimiter)

    def set_array_element_delimiter(self, delimiter: str) -> CsvSerializationBuilder:
        """A semicolon, unless set; also separates the fields of nested rows."""
        return self._with(array_element_delimiter=delimiter)

    def disable_quote_character(self) -> CsvSerializationBuilder:
        """Never quote; what would need it is refused, unless an escape character is set."""
        return self._with(quote_character=None)

    def set_quote_character(self, c: str) -> CsvSerializationBuilder:
        """A double quote, unless set."""
        return self._with(quote_character=c)

    def set_escape_character(self, c: str) -> CsvSerializationBuilder:
        """None, unless set."""
        return self._with(escape_character=c)

    def set_null_literal(self, s: str) -> CsvSerializationBuilder:
        """Write None as this text; as nothing, unless set."""
        return self._with(null_literal=s)

    def build(self) -> CsvRowSerializationSchema:
        """The finished schema."""
        return CsvRowSerializationSchema(self._row_type, self._dialect)

    def _with(self, **changes: str | None) -> CsvSerializationBuilder:
        self._dialect = replace(self._dialect, **changes)  # type: ignore[arg-type]
        return self


class CsvRowSerializationSchema(SerializationSchema):
    """Writes a row as a line; made by `CsvRowSerializationSchema.Builder(type_info)`.

    >>> from penstock.common import Row, Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowSerializationSchema.Builder(people).build().serialize(Row("Alice", 11)).strip()
    b'Alice,11'
    """

    Builder = CsvSerializationBuilder

    def __init__(self, row_type: RowTypeInfo, dialect: CsvDialect) -> None:
        super().__init__()
        self._row_type = row_type
        self._dialect = dialect
        self._writers = [csv_writer(field, dialect) for field in row_type.get_field_types()]

    def __repr__(self) -> str:
        return f"CsvRowSerializationSchema({self._row_type!r})"

    def serialize(self, element: Any) -> bytes:
        values = self._row_type._values_of(element)
        if len(values) != len(self._writers):
            raise ValueError(
                f"CsvRowSerializationSchema: {element!r} has {len(values)} fields, the type has {len(self._writers)}"
            )
        try:
            fields = [write(value) for write, value in zip(self._writers, values, strict=True)]
            return self._dialect.line(fields).encode()
        except (ValueError, TypeError, AttributeError, ArithmeticError) as failure:
            raise ValueError(
                f"CsvRowSerializationSchema: {element!r} does not fit {self._row_type}: {failure}"
            ) from failure

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._row_type, self._dialect)


def _row_type(where: str, type_info: TypeInformation) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        raise TypeError(f"{where}: type_info must be a row type such as Types.ROW([Types.STRING()]), got {type_info!r}")
    return type_info
