"""Rows as JSON messages."""

from __future__ import annotations

from typing import Any

from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.datastream.formats.json_schema import type_of_json_schema
from penstock.datastream.formats.json_values import Reader, Writer, json_reader, json_writer, load_json

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


class JsonDeserializationBuilder:
    """Collects how JSON becomes rows. A type or a JSON Schema is needed."""

    def __init__(self) -> None:
        self._type_info: TypeInformation | None = None
        self._fail_on_missing_field = False
        self._ignore_parse_errors = False

    def type_info(self, type_info: TypeInformation) -> JsonDeserializationBuilder:
        """The rows' type, a `Types.ROW_NAMED(...)` with the names of the JSON fields."""
        self._type_info = type_info
        return self

    def json_schema(self, json_schema: str) -> JsonDeserializationBuilder:
        """Derive the rows' type from a JSON Schema."""
        if json_schema is None:
            raise TypeError("JsonRowDeserializationSchema: json_schema must not be None")
        self._type_info = type_of_json_schema(json_schema)
        return self

    def fail_on_missing_field(self) -> JsonDeserializationBuilder:
        """Fail if a field is missing; it is None otherwise."""
        self._fail_on_missing_field = True
        return self

    def ignore_parse_errors(self) -> JsonDeserializationBuilder:
        """Make a field that cannot be read None, and skip a message that is not a JSON object."""
        self._ignore_parse_errors = True
        return self

    def build(self) -> JsonRowDeserializationSchema:
        """The schema; TypeError if no row type is set."""
        if self._fail_on_missing_field and self._ignore_parse_errors:
            raise ValueError(
                "JsonRowDeserializationSchema: fail_on_missing_field() and ignore_parse_errors() exclude each other; "
                "call one of them"
            )
        row_type = _row_type("JsonRowDeserializationSchema", "type_info", self._type_info)
        return JsonRowDeserializationSchema(row_type, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonRowDeserializationSchema(DeserializationSchema):
    """Reads a row from a JSON object; made by `JsonRowDeserializationSchema.builder()`. `null` is skipped.

    >>> from penstock.common import Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonRowDeserializationSchema.builder().type_info(people).build().deserialize(b'{"name": "Alice", "age": 11}')
    Row(name='Alice', age=11)
    """

    Builder = JsonDeserializationBuilder

    def __init__(
        self, row_type: RowTypeInfo, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        super().__init__()
        self._row_type = row_type
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._read: Reader = json_reader(row_type, fail_on_missing_field, ignore_parse_errors)

    def __repr__(self) -> str:
        return f"JsonRowDeserializationSchema({self._row_type!r})"

    @staticmethod
    def builder() -> JsonDeserializationBuilder:
        """Begin to describe a schema."""
        return JsonDeserializationBuilder()

    def deserialize(self, message: bytes) -> Row | None:
        try:
            row: Row | None = self._read(load_json(message))
            return row
        except (ValueError, TypeError, ArithmeticError, RecursionError) as exc:
            if self._ignore_parse_errors:
                return None
            raise ValueError(
                f"JsonRowDeserializationSchema: cannot read {bytes(message)!r}: {exc}; "
                "call ignore_parse_errors() on the builder to skip such messages"
            ) from exc

    def get_produced_type(self) -> TypeInformation:
        return self._row_type

    def __reduce__(self) -> tuple[Any, ...]:
        # The reader is made of closures, which do not pickle; it is built again instead.
        return type(self), (self._row_type, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonSerializationBuilder:
    """Collects how rows become JSON. A type is needed."""

    def __init__(self) -> None:
        self._type_info: TypeInformation | None = None

    def with_type_info(self, type_info: TypeInformation) -> JsonSerializationBuilder:
        """The rows' type, a `Types.ROW_NAMED(...)` with the names of the JSON fields."""
        self._type_info = type_info
        return self

    def build(self) -> JsonRowSerializationSchema:
        """The schema; TypeError if no row type is set."""
        return JsonRowSerializationSchema(_row_type("JsonRowSerializationSchema", "with_type_info", self._type_info))


class JsonRowSerializationSchema(SerializationSchema):
    """Writes a row as a JSON object; made by `JsonRowSerializationSchema.builder()`.

    >>> from penstock.common import Row, Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonRowSerializationSchema.builder().with_type_info(people).build().serialize(Row("Alice", 11))
    b'{"name":"Alice","age":11}'
    """

    Builder = JsonSerializationBuilder

    def __init__(self, row_type: RowTypeInfo) -> None:
        super().__init__()
        self._row_type = row_type
        self._write: Writer = json_writer(row_type)

    def __repr__(self) -> str:
        return f"JsonRowSerializationSchema({self._row_type!r})"

    @staticmethod
    def builder() -> JsonSerializationBuilder:
        """Begin to describe a schema."""
        return JsonSerializationBuilder()

    def serialize(self, element: Any) -> bytes:
        return self._write(element).encode()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._row_type,)


def _row_type(where: str, method: str, type_info: TypeInformation | None) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        given = "nothing" if type_info is None else repr(type_info)
        raise TypeError(f"{where}: a row type is needed, got {given}; call {method}(Types.ROW_NAMED([...], [...]))")
    return type_info
