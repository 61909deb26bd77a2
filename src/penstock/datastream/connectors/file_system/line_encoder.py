"""Files with a message on each line."""

from __future__ import annotations

from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.common.serialization import Encoder, SerializationSchema

__all__ = ["LineEncoder"]


@dataclass(frozen=True)
class LineEncoder(Encoder):
    """Writes the message that a schema makes of each element as a line, for instance JSON objects.

    `StreamFormat.line_format(schema)` reads such files. Elements for which the schema returns None are left out; a
    message that already ends with a line break gets no second one. Messages that would be read differently are refused:
    those with a line break inside, and empty ones.
    """

    schema: SerializationSchema

    def __post_init__(self) -> None:
        if not isinstance(self.schema, SerializationSchema):
            raise TypeError(f"LineEncoder needs a SerializationSchema, got {self.schema!r}")

    def encode(self, element: Any, stream: BinaryIO) -> None:
        message = self.schema.serialize(element)
        if message is None:
            return
        line = message.removesuffix(b"\n").removesuffix(b"\r") if message.endswith(b"\n") else message
        if b"\n" in line or b"\r" in line:
            raise ValueError(f"LineEncoder: {message!r} has a line break, so it would be read as several messages")
        if not line or line.startswith(BOM_UTF8):
            raise ValueError(
                f"LineEncoder: {message!r} is empty or begins with a byte order mark, which readers of lines leave out"
            )
        stream.write(line + b"\n")
