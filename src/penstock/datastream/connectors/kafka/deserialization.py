"""How Kafka's records become elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.serialization import DeserializationSchema, deserializer_of_many
from penstock.common.typeinfo import TypeInformation

__all__ = ["KafkaConsumerRecord", "KafkaRecordDeserializationSchema"]


@dataclass(frozen=True)
class KafkaConsumerRecord:
    """A record as it was read from Kafka.

    `KafkaRecordDeserializationSchema` has an example.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds; None if the record has none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaRecordDeserializationSchema(DeserializationSchema):
    """Turns whole records into elements. Subclasses override `deserialize_record`.

    >>> class WithKey(KafkaRecordDeserializationSchema):
    ...     def deserialize_record(self, record):
    ...         return record.key.decode(), record.value.decode()
    """

    def of_value(self) -> Callable[[bytes], Any] | None:
        """A function that makes the element from a record's value alone; None if it takes the whole record."""
        return None

    def of_values(self) -> Callable[[Sequence[bytes]], list[Any]] | None:
        """What makes the elements from many records' values at once, one from each; None if each is made alone."""
        return None

    def deserialize_record(self, record: KafkaConsumerRecord) -> Any:
        """The element in a record; None for a record to skip."""
        return self.deserialize(record.value or b"")

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Read records' values with another schema; records without a value are skipped."""
        return _ValueOnly(deserialization_schema)


class _ValueOnly(KafkaRecordDeserializationSchema):
    def __init__(self, schema: DeserializationSchema) -> None:
        super().__init__()
        if not isinstance(schema, DeserializationSchema):
            raise TypeError(
                f"KafkaSource: a deserializer is a DeserializationSchema such as SimpleStringSchema(), got {schema!r}"
            )
        self._schema = schema

    def __repr__(self) -> str:
        return f"KafkaRecordDeserializationSchema.value_only({self._schema!r})"

    def of_value(self) -> Callable[[bytes], Any]:
        return self._schema.deserialize

    def of_values(self) -> Callable[[Sequence[bytes]], list[Any]] | None:
        return deserializer_of_many(self._schema)

    def deserialize(self, message: bytes) -> Any:
        return self._schema.deserialize(message)

    def deserialize_record(self, record: KafkaConsumerRecord) -> Any:
        return None if record.value is None else self._schema.deserialize(record.value)

    def get_produced_type(self) -> TypeInformation:
        return self._schema.get_produced_type()
