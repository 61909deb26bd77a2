"""Python's own objects as messages and in files.

What is read this way can run any code: read only what your own programs have written.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from penstock.common.serialization import DeserializationSchema, Encoder, SerializationSchema
from penstock.datastream.connectors.file_system.formats import StreamFormat

__all__ = ["PickleEncoder", "PickleFormat", "PickleSchema"]


class PickleSchema(SerializationSchema, DeserializationSchema):
    """Messages that hold any Python object that can be pickled, for instance as values in Kafka.

    >>> PickleSchema().deserialize(PickleSchema().serialize({"a": (1, None)}))
    {'a': (1, None)}
    """

    def __repr__(self) -> str:
        return "PickleSchema()"

    def serialize(self, element: Any) -> bytes:
        return pickle.dumps(element, pickle.HIGHEST_PROTOCOL)

    def deserialize(self, message: bytes) -> Any:
        return pickle.loads(message)


class PickleEncoder(Encoder):
    """Writes any Python objects, for `FileSink.for_row_format`; `PickleFormat` reads them.

    `PickleSchema` has an example.
    """

    def __repr__(self) -> str:
        return "PickleEncoder()"

    def encode(self, element: Any, stream: BinaryIO) -> None:
        stream.write(pickle.dumps(element, pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class PickleFormat(StreamFormat):
    """Files of Python objects, for `FileSource.for_record_stream_format`.

    `PickleSchema` has an example.
    """

    def read(self, stream: BinaryIO) -> Iterator[Any]:
        # Buffered, so that the end is seen before a read that would fail there.
        buffered = io.BufferedReader(cast(io.RawIOBase, stream))
        while buffered.peek(1):
            yield pickle.load(buffered)
