"""Raw: the message is the value of the only column."""

from __future__ import annotations

import struct
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.connectors.formats.base import RowDecoder, RowEncoder
from penstock.table.connectors.options import Options
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType

_NUMBERS = {"TINYINT": "b", "SMALLINT": "h", "INT": "i", "BIGINT": "q", "FLOAT": "f", "DOUBLE": "d", "BOOLEAN": "?"}


def _only(row_type: RowType, options: Options) -> DataType:
    if len(row_type) != 1:
        raise InvalidProgramError(f"{options.owner} takes a single physical column, got {row_type.as_sql()}")
    return row_type.field_types()[0]


def _layout(data_type: DataType, options: Options) -> struct.Struct | None:
    """How a number is packed; None for texts and binaries."""
    if isinstance(data_type, (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType)):
        return None
    name = data_type.not_null().as_sql().removesuffix(" NOT NULL")
    if name not in _NUMBERS:
        raise UnsupportedFeatureError(f"{options.owner}: a column of type {data_type.as_sql()} is not supported")
    endianness = options.choice("endianness", ("big-endian", "little-endian"), "big-endian")
    return struct.Struct((">" if endianness == "big-endian" else "<") + _NUMBERS[name])


class RawDecoder(RowDecoder):
    def prepare(self) -> None:
        data_type = _only(self.row_type, self.options)
        self.layout = _layout(data_type, self.options)
        self.is_text = isinstance(data_type, (t.CharType, t.VarCharType))
        self.charset = self.options.get("charset") or "UTF-8"

    def decode(self, message: bytes) -> list[RowTuple]:
        value: Any = message
        if self.layout is not None:
            try:
                (value,) = self.layout.unpack(message)
            except struct.error as failure:
                raise ValueError(str(failure)) from failure
        elif self.is_text:
            value = message.decode(self.charset)
        return [(value,)]


class RawEncoder(RowEncoder):
    def prepare(self) -> None:
        data_type = _only(self.row_type, self.options)
        self.layout = _layout(data_type, self.options)
        self.charset = self.options.get("charset") or "UTF-8"

    def encode(self, row: RowTuple, kind: int = 0) -> bytes:
        value = row[0]
        if value is None:
            return b""
        if self.layout is not None:
            return self.layout.pack(value)
        return value.encode(self.charset) if isinstance(value, str) else bytes(value)
