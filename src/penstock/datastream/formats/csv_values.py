"""Fields of CSV lines as typed values and back."""

from __future__ import annotations

import base64
import codecs
import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.formatting import format_value
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types, element_type_of
from penstock.common.types import make_row
from penstock.datastream.formats import exact_values
from penstock.datastream.formats.exact_values import WHOLE_TYPES
from penstock.datastream.formats.iso_times import (
    format_instant,
    format_time,
    format_timestamp,
    parse_instant,
    parse_time,
    parse_timestamp,
)
from penstock.datastream.formats.json_values import BYTES

FieldReader = Callable[[str], Any]
FieldWriter = Callable[[Any], str]

#: Longer text is quoted without looking at it, as Jackson does for Flink.
_LONGEST_CHECKED = 24
_BYTE_ORDER_MARK = codecs.BOM_UTF8.decode()
LINE_DELIMITERS = ("\n", "\r", "\r\n")

csv.field_size_limit(2**31 - 1)  # Python's own limit is meant for spreadsheets.


@dataclass(frozen=True)
class CsvDialect:
    """How lines are written: which characters separate, quote and escape."""

    field_delimiter: str = ","
    line_delimiter: str = "\n"
    array_element_delimiter: str = ";"
    quote_character: str | None = '"'
    escape_character: str | None = None
    null_literal: str | None = None
    has_comments: bool = False
    empty_is_none: bool = False
    """True if an empty field is None where it is not a value: in fields that are not text, bytes or arrays."""

    def __post_init__(self) -> None:
        for name in ("field_delimiter", "quote_character", "escape_character"):
            value = getattr(self, name)
            if value is not None and len(value) != 1:
                raise ValueError(f"CSV: {name} must be a single character, got {value!r}")
        if self.line_delimiter not in (*LINE_DELIMITERS, ""):
            raise ValueError(f"CSV: line_delimiter must be \\n, \\r, \\r\\n or empty, got {self.line_delimiter!r}")
        if len(set(self._special)) != len(self._special):
            raise ValueError(f"CSV: delimiter, quote and escape character must differ, got {self._special}")

    def quote(self, text: str) -> str:
        """The text as it stands in a line, quoted if it may contain anything special."""
        quote = self.quote_character
        if quote is None:
            return self._unquoted(text)
        if not self._may_need_quotes(text, quote):
            return text
        if self.escape_character is not None:
            text = text.replace(self.escape_character, self.escape_character * 2)
        return quote + text.replace(quote, quote * 2) + quote

    @property
    def separates_numbers(self) -> bool:
        """True if a number may need quotes."""
        return any(each.isalnum() or each in "+-." for each in self._special)

    @property
    def _special(self) -> list[str]:
        return [each for each in (self.field_delimiter, self.quote_character, self.escape_character) if each]

    def quote_plain(self, text: str) -> str:
        """The same for text that seldom needs quotes: it gets them only if it contains something special."""
        is_special = self._begins_specially(text) or any(each in text for each in (*self._special, "\n", "\r"))
        return self.quote(text) if is_special else text

    def _may_need_quotes(self, text: str, quote: str) -> bool:
        last_special = max(self.field_delimiter, quote, "\r", *self.line_delimiter)
        is_special = len(text) > _LONGEST_CHECKED or any(c <= last_special for c in text)
        return (
            is_special
            or self._begins_specially(text)
            or (self.escape_character is not None and self.escape_character in text)
        )

    def _begins_specially(self, text: str) -> bool:
        return text.startswith(("#", _BYTE_ORDER_MARK))

    def _unquoted(self, text: str) -> str:
        special = [self.field_delimiter, "\n", "\r", *([self.escape_character] if self.escape_character else [])]
        begins_badly = self._begins_specially(text) and (self.has_comments or not text.startswith("#"))
        if not begins_badly and not any(each in text for each in special):
            return text
        escape = self.escape_character
        if escape is None:
            raise ValueError(
                f"CSV: {text!r} cannot be written without quotes: it has a delimiter or a line break in it, or begins "
                f"like a comment or a byte order mark; set a quote or an escape character"
            )
        escaped = "".join(f"{escape}{each}" if each in special else each for each in text)
        return f"{escape}{escaped}" if begins_badly else escaped

    def line(self, texts: list[str]) -> str:
        """Fields as a line with its end. Readers do not take an empty line for a row, so it gets quotes."""
        line = self.field_delimiter.join(texts)
        if not line:
            if self.quote_character is None:
                raise ValueError(
                    "CSV: an empty text or None in a single column cannot be written without quotes, as an empty line "
                    "is not a row; set a quote character or a null literal"
                )
            line = self.quote_character * 2
        return line + self.line_delimiter


def csv_reader(type_info: TypeInformation, dialect: CsvDialect) -> FieldReader:
    """Turns the text of a field into a value of the type; the null literal becomes None."""
    read = _plain_reader(type_info, dialect)
    null = dialect.null_literal
    if null is None and dialect.empty_is_none and not _has_empty_text(type_info):
        null = ""
    return lambda text: None if text == null else read(text)


def csv_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    """Turns a value of the type into a field, quoted where needed."""
    null = "" if not dialect.null_literal else dialect.quote_plain(dialect.null_literal)
    write = _checked_writer(type_info, dialect)
    if type_info in _NUMBER_WRITERS and not dialect.separates_numbers:
        return lambda value: null if value is None else write(value)
    quote = dialect.quote_plain if type_info in _NUMBER_WRITERS else dialect.quote
    return lambda value: null if value is None else quote(write(value))


def _has_empty_text(type_info: TypeInformation) -> bool:
    """True if an empty field is a value of the type."""
    return type_info in _TEXT_TYPES or type_info == BYTES or element_type_of(type_info) is not None


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


def _checked_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    write = _text_writer(type_info, dialect)
    if not dialect.null_literal:
        return write

    def checked(value: Any) -> str:
        text = write(value)
        if text == dialect.null_literal:
            raise ValueError(f"CSV: {value!r} would be read as None, for which {text!r} stands; choose another literal")
        return text

    return checked


def _text_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    if type_info in _WRITERS:
        return _WRITERS[type_info]
    if isinstance(type_info, RowTypeInfo):
        writers = [_nested_writer(field, dialect) for field in type_info.get_field_types()]
        return lambda value: _joined(
            value, [w(item) for w, item in zip(writers, type_info._values_of(value), strict=True)], dialect
        )
    if (element := element_type_of(type_info)) is not None:
        write = _nested_writer(element, dialect)
        return lambda value: _joined(value, list(map(write, value)), dialect)
    raise UnsupportedFeatureError(f"a {type_info} cannot be a CSV field; use basic types, arrays and rows")


def _nested_writer(type_info: TypeInformation, dialect: CsvDialect) -> FieldWriter:
    write = _checked_writer(type_info, dialect)
    return lambda value: dialect.null_literal or "" if value is None else write(value)


def _joined(value: Any, parts: list[str], dialect: CsvDialect) -> str:
    """The parts of an array or row in one field, which has no quotes of its own."""
    delimiter = dialect.array_element_delimiter
    if any(delimiter in part for part in parts):
        raise ValueError(
            f"CSV: {value!r} has {delimiter!r} in it, which separates the elements of arrays and the fields of rows; "
            f"choose another separator"
        )
    if parts == [""]:
        raise ValueError(f"CSV: {value!r}, with nothing in it, cannot be distinguished from one without elements")
    return delimiter.join(parts)


def _number_writers() -> dict[TypeInformation, FieldWriter]:
    def whole(type_info: TypeInformation) -> FieldWriter:
        exact = exact_values.whole_number(type_info)
        return lambda value: str(exact(value))

    def real(type_info: TypeInformation) -> FieldWriter:
        exact = exact_values.real_number(type_info)
        return lambda value: format_value(exact(value), type_info)

    return {
        Types.BOOLEAN(): lambda value: "true" if exact_values.boolean(value) else "false",
        Types.FLOAT(): real(Types.FLOAT()),
        Types.DOUBLE(): real(Types.DOUBLE()),
        Types.BIG_DEC(): lambda value: format(exact_values.decimal_number(value), "f"),
        **{each: whole(each) for each in WHOLE_TYPES},
    }


_TEXT_TYPES = (Types.STRING(), Types.CHAR(), Types.PICKLED_BYTE_ARRAY())
_READERS: dict[TypeInformation, FieldReader] = {
    **dict.fromkeys(_TEXT_TYPES, lambda text: text),
    Types.BOOLEAN(): exact_values.read_boolean,
    Types.FLOAT(): exact_values.read_real_number(Types.FLOAT()),
    Types.DOUBLE(): exact_values.read_real_number(Types.DOUBLE()),
    Types.BIG_DEC(): exact_values.read_decimal_number,
    Types.SQL_DATE(): lambda text: date.fromisoformat(text.strip()),
    Types.SQL_TIME(): parse_time,
    Types.SQL_TIMESTAMP(): parse_timestamp,
    Types.INSTANT(): parse_instant,
    BYTES: lambda text: base64.b64decode(text, validate=True),
    **{each: exact_values.read_whole_number(each) for each in WHOLE_TYPES},
}
_NUMBER_WRITERS = _number_writers()
_WRITERS: dict[TypeInformation, FieldWriter] = {
    **_NUMBER_WRITERS,
    **dict.fromkeys(_TEXT_TYPES, exact_values.text),
    Types.SQL_DATE(): lambda value: exact_values.calendar_day(value).isoformat(),
    Types.SQL_TIME(): format_time,
    Types.SQL_TIMESTAMP(): lambda value: format_timestamp(value, " "),
    Types.INSTANT(): format_instant,
    BYTES: lambda value: base64.b64encode(exact_values.raw_bytes(value)).decode("ascii"),
}
