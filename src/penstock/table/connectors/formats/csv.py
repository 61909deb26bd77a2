"""CSV: a line for each row."""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.connectors.formats.base import RowDecoder, RowEncoder
from penstock.table.connectors.options import Options
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType
from penstock.table.values import times
from penstock.table.values.numbers import (
    EXACT,
    decimal_of_type,
    integer_of_text,
    text_of_double,
    text_of_float,
    to_float32,
)

_QUOTED_FROM = 24
"""The number of characters up to which a text is looked at."""
_ESCAPES = {"\\t": "\t", "\\\\": "\\", "\\u0001": "\u0001", "\\|": "|"}


class _Dialect:
    """How lines are written: delimiters and quotes, from the options."""

    def __init__(self, options: Options) -> None:
        delimiter = options.get("field-delimiter") or ","
        self.delimiter = _ESCAPES.get(delimiter, delimiter)
        self.quote = None if options.flag("disable-quote-character") else (options.get("quote-character") or '"')
        self.escape = options.get("escape-character")
        self.null = options.get("null-literal")
        self.array = options.get("array-element-delimiter") or ";"
        if len(self.delimiter) != 1:
            raise InvalidProgramError(f"{options.owner}: 'field-delimiter' is one character, got {delimiter!r}")

    def settings(self) -> dict[str, Any]:
        quoting = csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote,
            "escapechar": self.escape,
            "doublequote": self.escape is None,
            "quoting": quoting,
        }


class CsvDecoder(RowDecoder):
    """Reads a line; what cannot be read as its column's type fails, or is NULL with `ignore-parse-errors`."""

    def prepare(self) -> None:
        self.dialect = _Dialect(self.options)
        self.has_comments = self.options.flag("allow-comments")
        self.readers = [self.reader(each) for each in self.row_type.field_types()]

    def decode(self, message: bytes) -> list[RowTuple]:
        text = message.decode("utf-8").rstrip("\r\n")
        if self.has_comments and text.startswith("#"):
            return []
        if not text:
            return []
        (values,) = csv.reader([text], **self.dialect.settings())
        missing = len(self.readers) - len(values)
        if missing and not self.skips_errors:
            raise ValueError(f"{len(self.readers)} fields are needed, got {len(values)}")
        values += [None] * missing  # type: ignore[list-item]
        return [tuple([read(value) for read, value in zip(self.readers, values, strict=False)])]

    def reader(self, data_type: DataType) -> Callable[[str | None], Any]:
        read, is_text = self._reader(data_type), isinstance(data_type, (t.CharType, t.VarCharType))

        def read_field(text: str | None) -> Any:
            if text is None or text == self.dialect.null or (not text.strip() and not is_text):
                return None
            if not self.skips_errors:
                return read(text)
            try:
                return read(text)
            except (ValueError, ArithmeticError):
                return None

        return read_field

    def _reader(self, data_type: DataType) -> Callable[[str], Any]:
        match data_type:
            case t.BooleanType():
                return lambda text: text.strip().lower() == "true"
            case t.IntegralType(bits=bits):
                return lambda text: integer_of_text(text, bits)
            case t.FloatType():
                return lambda text: to_float32(float(text))
            case t.DoubleType():
                return float
            case t.DecimalType(precision=precision, scale=scale):
                return lambda text: decimal_of_type(Decimal(text.strip()), precision, scale)
            case t.CharType() | t.VarCharType():
                return str
            case t.BinaryType() | t.VarBinaryType():
                return base64.b64decode
            case t.DateType():
                return _needed(times.date_of_text)
            case t.TimeType():
                return _needed(times.time_of_text)
            case t.TimestampType():
                return _needed(lambda text: times.timestamp_of_text(text.replace("T", " ")))
            case t.LocalZonedTimestampType():
                return _needed(lambda text: times.timestamp_of_text(text.replace("T", " ").removesuffix("Z")))
            case t.ArrayType(element_type=element):
                each, delimiter = self.reader(element), self.dialect.array
                return lambda text: [each(part) for part in text.split(delimiter)]
            case RowType():
                fields, delimiter = [self.reader(one) for one in data_type.field_types()], self.dialect.array
                return lambda text: tuple([f(part) for f, part in zip(fields, text.split(delimiter), strict=True)])
        raise UnsupportedFeatureError(f"{self.options.owner}: columns of type {data_type.as_sql()} are not supported")


def _needed(read: Callable[[str], int | None]) -> Callable[[str], int]:
    def needed(text: str) -> int:
        found = read(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is not a date or time")
        return found

    return needed


class CsvEncoder(RowEncoder):
    """Writes a line for each row, without a line break; texts are quoted as Flink's writer does it."""

    def prepare(self) -> None:
        self.dialect = _Dialect(self.options)
        quote = self.dialect.quote or ""
        self.last_unsafe = max(self.dialect.delimiter, quote, self.dialect.escape or "")
        self.writers = [self.writer(each) for each in self.row_type.field_types()]

    def encode(self, row: RowTuple, kind: int = 0) -> bytes:
        fields = [write(value) for write, value in zip(self.writers, row, strict=False)]
        return self.dialect.delimiter.join(fields).encode("utf-8")

    def writer(self, data_type: DataType) -> Callable[[Any], str]:
        """The whole field, with quotes."""
        write, null = self.plain(data_type), self.dialect.null or ""
        if isinstance(data_type, (t.BooleanType, t.NumericType)):
            return lambda value: null if value is None else write(value)
        return lambda value: null if value is None else self.quoted(write(value))

    def nested(self, data_type: DataType) -> Callable[[Any], str]:
        """A part of a field, whose quotes are around all of it."""
        write, null = self.plain(data_type), self.dialect.null or ""
        return lambda value: null if value is None else write(value)

    def plain(self, data_type: DataType) -> Callable[[Any], str]:
        match data_type:
            case t.BooleanType():
                return lambda value: "true" if value else "false"
            case t.IntegralType() | t.CharType() | t.VarCharType():
                return str
            case t.FloatType():
                return text_of_float
            case t.DoubleType():
                return text_of_double
            case t.DecimalType():
                return lambda value: str(value.normalize(EXACT))
            case t.BinaryType() | t.VarBinaryType():
                return lambda value: base64.b64encode(value).decode("ascii")
            case t.DateType():
                return times.text_of_date
            case t.TimeType():
                return times.text_of_time
            case t.TimestampType():
                return _timestamp
            case t.LocalZonedTimestampType():
                return lambda value: _timestamp(value) + "Z"
            case t.ArrayType(element_type=element):
                each = self.nested(element)
                return lambda values: self.dialect.array.join([each(value) for value in values])
            case RowType():
                fields = [self.nested(one) for one in data_type.field_types()]
                return lambda values: self.dialect.array.join([f(v) for f, v in zip(fields, values, strict=True)])
        raise UnsupportedFeatureError(f"{self.options.owner}: columns of type {data_type.as_sql()} are not supported")

    def quoted(self, text: str) -> str:
        """As Jackson does it: long texts, and those with a character up to the delimiter or quote."""
        quote = self.dialect.quote
        if quote is None or not text or (len(text) <= _QUOTED_FROM and min(text) > self.last_unsafe):
            return text
        escape = self.dialect.escape
        inner = text.replace(quote, quote * 2) if escape is None else text.replace(quote, escape + quote)
        return f"{quote}{inner}{quote}"


def _timestamp(nanos: int) -> str:
    if nanos % 10**9 == 0:
        return times.text_of_timestamp(nanos, 0)
    return times.text_of_timestamp(nanos, 9).rstrip("0")


__all__ = ["CsvDecoder", "CsvEncoder"]
