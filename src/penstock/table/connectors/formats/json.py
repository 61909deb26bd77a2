"""JSON: an object for each row."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.connectors.formats.base import RowDecoder, RowEncoder
from penstock.table.connectors.formats.plain_json import plain_reader
from penstock.table.connectors.options import Options
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType
from penstock.table.values import times
from penstock.table.values.numbers import EXACT, decimal_of_type, text_of_double, text_of_float, to_float32, wrap

Reader = Callable[[Any], Any]
_STANDARDS = ("SQL", "ISO-8601")


def _timestamp_standard(options: Options) -> str:
    return options.choice("timestamp-format.standard", _STANDARDS, "SQL")


def _null_safe(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


class JsonDecoder(RowDecoder):
    """Reads an object; a field that is missing is NULL."""

    def prepare(self) -> None:
        self.fails_on_missing = self.options.flag("fail-on-missing-field")
        self.standard = _timestamp_standard(self.options)
        self.read_row = self.row_reader(self.row_type)
        self.read_plain = None if self.fails_on_missing else plain_reader(self.row_type, self.standard == "ISO-8601")

    def decode(self, message: bytes) -> list[RowTuple]:
        if self.read_plain is not None:
            row = self.read_plain(message)
            if row is not None:
                return [row]
        return self.decode_any(message)

    def decode_any(self, message: bytes) -> list[RowTuple]:
        """By all rules of the format."""
        parsed = json.loads(message, parse_float=Decimal)
        if isinstance(parsed, list):
            return [self.read_row(each) for each in parsed]
        return [self.read_row(parsed)]

    def row_reader(self, row_type: RowType) -> Callable[[Any], RowTuple]:
        fields = [
            (name, self.reader(each)) for name, each in zip(row_type.field_names(), row_type.field_types(), strict=True)
        ]

        def read(value: Any) -> RowTuple:
            if not isinstance(value, dict):
                raise ValueError(f"an object is needed, got {value!r}")
            if self.fails_on_missing:
                for name, _ in fields:
                    if name not in value:
                        raise ValueError(f"field {name!r} is missing")
            if not self.skips_errors:
                return tuple([each(value.get(name)) for name, each in fields])
            return tuple([_or_null(each, value.get(name)) for name, each in fields])

        return read

    def reader(self, data_type: DataType) -> Reader:
        return _null_safe(self._reader(data_type))

    def _reader(self, data_type: DataType) -> Reader:
        match data_type:
            case t.BooleanType():
                return _boolean
            case t.IntegralType(bits=bits):
                return lambda value: _whole(value, bits)
            case t.FloatType():
                return lambda value: to_float32(float(value))
            case t.DoubleType():
                return float
            case t.DecimalType(precision=precision, scale=scale):
                return lambda value: decimal_of_type(Decimal(str(value)), precision, scale)
            case t.CharType() | t.VarCharType():
                return _text
            case t.BinaryType() | t.VarBinaryType():
                return base64.b64decode
            case t.DateType():
                return _checked(times.date_of_text, "a date")
            case t.TimeType():
                return _checked(times.time_of_text, "a time")
            case t.TimestampType(precision=precision):
                return self._timestamp_reader(precision, is_instant=False)
            case t.LocalZonedTimestampType(precision=precision):
                return self._timestamp_reader(precision, is_instant=True)
            case t.ArrayType(element_type=element):
                each = self.reader(element)
                return lambda values: [each(value) for value in _expect(values, list)]
            case t.MapType(key_type=key_type, value_type=value_type):
                read_key, read_value = self.reader(key_type), self.reader(value_type)
                return lambda entries: {read_key(k): read_value(v) for k, v in _expect(entries, dict).items()}
            case t.MultisetType(element_type=element):
                read_element = self.reader(element)
                return lambda entries: {read_element(k): int(v) for k, v in _expect(entries, dict).items()}
            case RowType():
                return self.row_reader(data_type)
        raise UnsupportedFeatureError(f"{self.options.owner}: columns of type {data_type.as_sql()} are not supported")

    def _timestamp_reader(self, precision: int, is_instant: bool) -> Reader:
        separator, ending = ("T" if self.standard == "ISO-8601" else " "), ("Z" if is_instant else "")

        def read(value: Any) -> int:
            text = _text(value)
            if separator not in text or not text.endswith(ending):
                raise ValueError(f"{text!r} is not a timestamp in the format {self.standard}")
            nanos = times.timestamp_of_text(text.removesuffix(ending).replace("T", " "), precision)
            if nanos is None:
                raise ValueError(f"{text!r} is not a timestamp")
            return nanos

        return read


def _or_null(read: Reader, value: Any) -> Any:
    try:
        return read(value)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not {'an array' if kind is list else 'an object'}")
    return value


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() == "true"


def _whole(value: Any, bits: int) -> int:
    number = int(value.strip()) if isinstance(value, str) else int(value)
    if wrap(number, bits) != number:
        raise ValueError(f"{number} has more than {bits} bits")
    return number


def _text(value: Any) -> str:
    """Whatever is no text is written as JSON, as Flink does it."""
    return value if isinstance(value, str) else json.dumps(value, default=_plain, separators=(",", ":"))


def _plain(value: Any) -> Any:
    return float(value)


def _checked(read: Callable[[str], int | None], what: str) -> Reader:
    def checked(value: Any) -> int:
        found = read(_text(value))
        if found is None:
            raise ValueError(f"{value!r} is not {what}")
        return found

    return checked


class JsonEncoder(RowEncoder):
    """Writes an object for each row, in the order of the columns."""

    def prepare(self) -> None:
        self.standard = _timestamp_standard(self.options)
        self.leaves_out_nulls = self.options.flag("encode.ignore-null-fields")
        self.is_decimal_plain = self.options.flag("encode.decimal-as-plain-number")
        mode = self.options.get("map-null-key.mode") or "FAIL"
        self.null_key = {"FAIL": None, "DROP": None, "LITERAL": self.options.get("map-null-key.literal", "null")}.get(
            mode
        )
        self.null_key_mode = mode
        self.write_row = self.row_writer(self.row_type)

    def encode(self, row: RowTuple, kind: int = 0) -> bytes:
        return self.write_row(row).encode("utf-8")

    def row_writer(self, row_type: RowType) -> Callable[[Any], str]:
        fields = [
            (json.dumps(name, ensure_ascii=False) + ":", self.writer(data_type))
            for name, data_type in zip(row_type.field_names(), row_type.field_types(), strict=True)
        ]
        if self.leaves_out_nulls:
            return lambda row: (
                "{"
                + ",".join([n + write(v) for (n, write), v in zip(fields, row, strict=False) if v is not None])
                + "}"
            )
        return lambda row: "{" + ",".join([n + write(v) for (n, write), v in zip(fields, row, strict=False)]) + "}"

    def writer(self, data_type: DataType) -> Callable[[Any], str]:
        write = self._writer(data_type)
        return lambda value: "null" if value is None else write(value)

    def _writer(self, data_type: DataType) -> Callable[[Any], str]:
        match data_type:
            case t.BooleanType():
                return lambda value: "true" if value else "false"
            case t.IntegralType() | t.YearMonthIntervalType() | t.DayTimeIntervalType():
                return str
            case t.FloatType():
                return text_of_float
            case t.DoubleType():
                return text_of_double
            case t.DecimalType():
                return self._decimal
            case t.CharType() | t.VarCharType():
                return _quoted
            case t.BinaryType() | t.VarBinaryType():
                return lambda value: _quoted(base64.b64encode(value).decode("ascii"))
            case t.DateType():
                return lambda value: _quoted(times.text_of_date(value))
            case t.TimeType():
                return lambda value: _quoted(times.text_of_time(value))
            case t.TimestampType():
                return lambda value: _quoted(self.timestamp(value))
            case t.LocalZonedTimestampType():
                return lambda value: _quoted(self.timestamp(value) + "Z")
            case t.ArrayType(element_type=element):
                each = self.writer(element)
                return lambda values: "[" + ",".join([each(value) for value in values]) + "]"
            case t.MapType(value_type=value_type):
                return self._entries(self.writer(value_type))
            case t.MultisetType():
                return self._entries(str)
            case RowType():
                return self.row_writer(data_type)
        raise UnsupportedFeatureError(f"{self.options.owner}: columns of type {data_type.as_sql()} are not supported")

    def _entries(self, write: Callable[[Any], str]) -> Callable[[Any], str]:
        def entries(value: dict[Any, Any]) -> str:
            parts = []
            for key, item in value.items():
                name = key
                if key is None:
                    if self.null_key_mode == "DROP":
                        continue
                    if self.null_key_mode != "LITERAL":
                        raise ValueError("a map with NULL as a key cannot be written; set 'map-null-key.mode'")
                    name = self.null_key
                parts.append(f"{_quoted(str(name))}:{write(item)}")
            return "{" + ",".join(parts) + "}"

        return entries

    def _decimal(self, value: Decimal) -> str:
        if self.is_decimal_plain:
            return format(value, "f")
        return str(value.normalize(EXACT))  # As Java writes a BigDecimal without its trailing zeros.

    def timestamp(self, nanos: int) -> str:
        text = times.text_of_timestamp(nanos, 9).rstrip("0").rstrip(".") if nanos % 10**9 else None
        text = text or times.text_of_timestamp(nanos, 0)
        return text.replace(" ", "T") if self.standard == "ISO-8601" else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
