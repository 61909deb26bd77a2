"""Fields of CSV lines as typed values and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.formatting import format_value
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.common.types import Row
from penstock.datastream.formats.iso_times import format_timestamp, parse_time, parse_timestamp
from penstock.datastream.formats.json_values import element_type_of

FieldReader = Callable[[str], Any]
FieldWriter = Callable[[Any], str]

#: Longer text is quoted without looking at it, as Jackson does for Flink.
_LONGEST_CHECKED = 24


@dataclass(frozen=True)
class CsvDialect:
    """How lines are written: which characters separate, quote and escape."""

    field_delimiter: str = ","
    line_delimiter: str = "\n"
    array_element_delimiter: str = ";"
    quote_character: str | None = '"'
    escape_character: str | None = None
    null_literal: str | None = None

    def __post_init__(self) -> None:
        for name in ("field_delimiter", "quote_character", "escape_character"):
            value = getattr(self, name)
            if value is not None and len(value) != 1:
                raise ValueError(f"CSV: {name} must be a single character, got {value!r}")
        if self.line_delimiter not in ("\n", "\r", "\r\n", ""):
            raise ValueError(f"CSV: line_delimiter must be \\n, \\r, \\r\\n or empty, got {self.line_delimiter!r}")

    def quote(self, text: str) -> str:
        """The text as it stands in a line, quoted if it may contain anything special."""
        quote = self.quote_character
        if quote is None or not self._may_need_quotes(text, quote):
            return text
        if self.escape_character is not None:
            text = text.replace(self.escape_character, self.escape_character * 2)
        return quote + text.replace(quote, quote * 2) + quote

    def _may_need_quotes(self, text: str, quote: str) -> bool:
        last_special = max(self.field_delimiter, quote, *self.line_delimiter)
        is_special = len(text) > _LONGEST_CHECKED or any(c <= last_special for c in text)
        return is_special or (self.escape_character is not None and self.escape_character in text)


def csv_reader(type_info: TypeInformation, dialect: CsvDialect) -> FieldReader:
    """Turns the text of a field into a value of the type; the null literal becomes None."""
    read = _plain_reader(type_info, dialect)
    return lambda text: None if text == dialect.null_literal else read(text)


def csv_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    """Turns a value of the type into a field, quoted where needed."""
    null = dialect.null_literal or ""
    if type_info in _UNQUOTED_WRITERS:
        write = _UNQUOTED_WRITERS[type_info]
        return lambda value: null if value is None else write(value)
    write_text = _text_writer(type_info, dialect)
    return lambda value: null if value is None else dialect.quote(write_text(value))


def _plain_reader(type_info: TypeInformation, dialect: CsvDialect) -> FieldReader:
    if type_info in _READERS:
        return _READERS[type_info]
    delimiter = dialect.array_element_delimiter
    if isinstance(type_info, RowTypeInfo):
        readers = [csv_reader(field, dialect) for field in type_info.get_field_types()]
        names = type_info.get_field_names()
        return lambda text: make_row(names, [r(part) for r, part in zip(readers, text.split(delimiter), strict=True)])
    if (element := element_type_of(type_info)) is not None:
        read = csv_reader(element, dialect)
        return lambda text: [read(part) for part in text.split(delimiter)] if text else []
    raise UnsupportedFeatureError(f"a CSV field cannot be a {type_info}; use basic types, arrays and rows")


def _text_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    if type_info in _TEXT_WRITERS:
        return _TEXT_WRITERS[type_info]
    delimiter = dialect.array_element_delimiter
    if isinstance(type_info, RowTypeInfo):
        writers = [_nested_writer(field, dialect) for field in type_info.get_field_types()]
        return lambda value: delimiter.join(w(item) for w, item in zip(writers, value, strict=True))
    if (element := element_type_of(type_info)) is not None:
        write = _nested_writer(element, dialect)
        return lambda value: delimiter.join(map(write, value))
    raise UnsupportedFeatureError(f"a {type_info} cannot be a CSV field; use basic types, arrays and rows")


def _nested_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    write = _UNQUOTED_WRITERS.get(type_info) or _text_writer(type_info, dialect)
    return lambda value: dialect.null_literal or "" if value is None else write(value)


def make_row(names: list[str], values: list[Any]) -> Row:
    row = Row(*values)
    row.set_field_names(names)
    return row


_WHOLE_TYPES = (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT())

_READERS: dict[TypeInformation, FieldReader] = {
    Types.STRING(): lambda text: text,
    Types.CHAR(): lambda text: text,
    Types.PICKLED_BYTE_ARRAY(): lambda text: text,
    Types.BOOLEAN(): lambda text: text.strip().lower() == "true",
    Types.FLOAT(): float,
    Types.DOUBLE(): float,
    Types.BIG_DEC(): lambda text: Decimal(text.strip()),
    Types.SQL_DATE(): lambda text: date.fromisoformat(text.strip()),
    Types.SQL_TIME(): parse_time,
    Types.SQL_TIMESTAMP(): parse_timestamp,
    **dict.fromkeys(_WHOLE_TYPES, int),
}
_UNQUOTED_WRITERS: dict[TypeInformation, FieldWriter] = {
    Types.BOOLEAN(): lambda value: "true" if value else "false",
    Types.FLOAT(): lambda value: format_value(float(value), Types.FLOAT()),
    Types.DOUBLE(): lambda value: format_value(float(value), Types.DOUBLE()),
    Types.BIG_DEC(): lambda value: format(value, "f"),
    **dict.fromkeys(_WHOLE_TYPES, lambda value: str(int(value))),
}
_TEXT_WRITERS: dict[TypeInformation, FieldWriter] = {
    Types.STRING(): str,
    Types.CHAR(): str,
    Types.PICKLED_BYTE_ARRAY(): str,
    Types.SQL_DATE(): lambda value: str(value.isoformat()),
    Types.SQL_TIME(): lambda value: f"{value:%H:%M:%S}",
    Types.SQL_TIMESTAMP(): lambda value: format_timestamp(value, " "),
}
