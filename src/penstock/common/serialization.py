"""How records become bytes for other systems, and bytes become records."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.formatting import format_value
from penstock.common.offered_names import offered
from penstock.common.typeinfo import PrimitiveArrayTypeInfo, TypeInformation, Types
from penstock.common.types import Row

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringEncoder",
    "SimpleStringSchema",
]


class SerializationSchema:
    """Turns an element into bytes. Subclasses write `serialize`.

    >>> class Upper(SerializationSchema):
    ...     def serialize(self, value):
    ...         return value.upper().encode()
    >>> Upper().serialize("river")
    b'RIVER'
    """

    def __init__(self) -> None:
        pass

    def serialize(self, element: Any) -> bytes | None:
        """The bytes of an element; None for an element without any."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} cannot serialize; use a schema that can, or override serialize(element)"
        )


class DeserializationSchema:
    """Turns bytes into an element. Subclasses write `deserialize`.

    >>> class Number(DeserializationSchema):
    ...     def deserialize(self, message):
    ...         return int(message)
    >>> Number().deserialize(b"42")
    42
    """

    def __init__(self) -> None:
        pass

    def deserialize(self, message: bytes) -> Any:
        """The element in these bytes; None for a message to skip."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} cannot deserialize; use a schema that can, or override deserialize(message)"
        )

    def is_end_of_stream(self, next_element: Any) -> bool:
        """True if this element means that no more will come."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the elements; any Python object unless a subclass says more."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings as bytes in a character set. Invalid bytes become replacement characters, as in Java.

    >>> SimpleStringSchema().deserialize(b"hello")
    'hello'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        super().__init__()
        self._charset = _known_charset(charset)

    def __repr__(self) -> str:
        return f"SimpleStringSchema({self._charset!r})"

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, str):
            raise TypeError(f"SimpleStringSchema serializes strings, got {element!r}; map the elements to str first")
        return element.encode(self._charset)

    def serialize_all(self, elements: Sequence[Any]) -> list[bytes]:
        """What `serialize` makes of each; raises if it would refuse one of them, and does not say which."""
        if self._is_utf_8:
            return list(map(str.encode, elements))
        return [str.encode(element, self._charset) for element in elements]

    def deserialize(self, message: bytes) -> str:
        return bytes(message).decode(self._charset, errors="replace")

    def deserialize_all(self, messages: Sequence[bytes]) -> list[str]:
        """What `deserialize` makes of each."""
        if self._is_utf_8:
            try:
                return list(map(bytes.decode, messages))
            except UnicodeDecodeError:
                pass  # One at least needs a replacement.
        return [self.deserialize(message) for message in messages]

    @property
    def _is_utf_8(self) -> bool:
        """True if it is the character set that Python uses by default to encode and decode."""
        return codecs.lookup(self._charset).name == "utf-8"

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


def serializer_of_many(schema: SerializationSchema) -> Callable[[Sequence[Any]], list[bytes]] | None:
    """What makes of many elements exactly what `schema.serialize` makes of each, in less time; None if nothing does."""
    if isinstance(schema, SimpleStringSchema) and type(schema).serialize is SimpleStringSchema.serialize:
        return schema.serialize_all
    return None


def deserializer_of_many(schema: DeserializationSchema) -> Callable[[Sequence[bytes]], list[Any]] | None:
    """The same for messages, of which it refuses none."""
    if isinstance(schema, SimpleStringSchema) and type(schema).deserialize is SimpleStringSchema.deserialize:
        return schema.deserialize_all
    return None


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    >>> ByteArraySchema().deserialize(b"river")
    b'river'
    """

    def __repr__(self) -> str:
        return "ByteArraySchema()"

    def serialize(self, element: Any) -> bytes:
        return _bytes_only(element, "ByteArraySchema")

    def deserialize(self, message: bytes) -> bytes:
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        return PrimitiveArrayTypeInfo(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Takes one field of a row, which must be bytes: for instance the key of a Kafka record.

    >>> RowFieldExtractorSchema(1).serialize(Row("ignored", b"key"))
    b'key'
    """

    def __init__(self, field_index: int) -> None:
        super().__init__()
        if field_index < 0:
            raise ValueError(f"field_index cannot be negative, got {field_index}")
        self._field_index = field_index

    def __repr__(self) -> str:
        return f"RowFieldExtractorSchema({self._field_index})"

    def serialize(self, element: Any) -> bytes | None:
        if not isinstance(element, (Row, tuple, list)):
            raise TypeError(f"RowFieldExtractorSchema takes fields of rows, got {element!r}")
        if self._field_index >= len(element):
            raise ValueError(f"RowFieldExtractorSchema: {element!r} has no field {self._field_index}")
        value = element[self._field_index]
        return None if value is None else _bytes_only(value, f"RowFieldExtractorSchema, field {self._field_index}")


class Encoder:
    """Writes elements of a file sink into a file, one after the other. Subclasses write `encode`.

    >>> class Lengths(Encoder):
    ...     def encode(self, element, stream):
    ...         stream.write(b"%d " % len(element))
    """

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write one element to the file."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} cannot encode; use Encoder.simple_string_encoder() or override encode"
        )

    def of_type(self, type_info: TypeInformation) -> Encoder:
        """The encoder for elements of a declared type: this one, unless it depends on the type."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line for each element, in the form in which `print()` shows it."""
        return SimpleStringEncoder(charset_name)


class SimpleStringEncoder(Encoder):
    """What `Encoder.simple_string_encoder()` gives; programs for PyFlink 1.12 and before make it themselves.

    `Encoder` has an example.
    """

    def __init__(self, charset_name: str = "UTF-8", type_info: TypeInformation | None = None) -> None:
        self._charset = _known_charset(charset_name)
        self._type_info = type_info

    def __repr__(self) -> str:
        return f"Encoder.simple_string_encoder({self._charset!r})"

    def of_type(self, type_info: TypeInformation) -> Encoder:
        return SimpleStringEncoder(self._charset, type_info)

    def encode(self, element: Any, stream: BinaryIO) -> None:
        stream.write(f"{format_value(element, self._type_info)}\n".encode(self._charset))


class BulkWriter:
    """Writes the elements of one file that is encoded as a whole, such as Parquet.

    `BulkWriterFactory` has an example.
    """

    def add_element(self, element: Any) -> None:
        """Write one element, now or when there are enough of them."""
        raise UnsupportedFeatureError(f"{type(self).__name__} cannot write; override add_element(element)")

    def flush(self) -> None:
        """Write buffered elements to the file where the format allows it."""

    def finish(self) -> None:
        """Write everything that is left, and the end of the file."""


class BulkWriterFactory:
    """Makes the writer of each file of a bulk sink. Subclasses write `create`.

    >>> class Joined(BulkWriter):
    ...     def __init__(self, stream):
    ...         self.stream, self.elements = stream, []
    ...     def add_element(self, element):
    ...         self.elements.append(element)
    ...     def finish(self):
    ...         self.stream.write(",".join(self.elements).encode())
    >>> class JoinedFactory(BulkWriterFactory):
    ...     def create(self, stream):
    ...         return Joined(stream)
    """

    def create(self, stream: BinaryIO) -> BulkWriter:
        """The writer of a new file."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} makes no writer; use the factories of penstock.datastream.formats"
        )


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A factory of writers for rows of one type.

    `ParquetColumnarRowInputFormat` has an example.
    """

    def __init__(self, row_type: Any = None) -> None:
        self._row_type = row_type

    def get_row_type(self) -> Any:
        """The type of the rows."""
        return self._row_type


def __getattr__(name: str) -> Any:
    return offered(name, __name__)  # PyFlink 1.x has the row schemas here.


def _known_charset(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(f"unknown character set {name!r}; use a name such as 'UTF-8' or 'ISO-8859-1'") from None


def _bytes_only(value: Any, where: str) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{where} takes bytes, got {value!r}; convert the value to bytes first")
    return bytes(value)
