"""How elements become Kafka's records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common.serialization import SerializationSchema


class KafkaTopicSelector(ABC):
    """Chooses a topic for each element.

    >>> class ByCountry(KafkaTopicSelector):
    ...     def apply(self, data):
    ...         return f"orders-{data['country']}"
    >>> ByCountry().apply({"country": "it"})
    'orders-it'
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic that `data` goes to."""


@dataclass(frozen=True)
class FixedTopic(KafkaTopicSelector):
    """Sends all elements to one topic."""

    topic: str

    def apply(self, data: Any) -> str:
        return self.topic


@dataclass(frozen=True)
class CallableTopicSelector(KafkaTopicSelector):
    """Asks a plain callable."""

    select: Callable[[Any], str]

    def apply(self, data: Any) -> str:
        return self.select(data)


class KafkaPartitioner(ABC):
    """Chooses a partition for each element; without one, Kafka's client chooses by the record's key.

    >>> class BySize(KafkaPartitioner):
    ...     def partition(self, record, key, value, target_topic, partitions):
    ...         return partitions[0] if len(value) < 1000 else partitions[-1]
    """

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        """Called before the first element, with the number of the subtask and how many there are."""

    @abstractmethod
    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: list[int]
    ) -> int:
        """One of `partitions`, for the element `record`."""


@dataclass(frozen=True)
class CallablePartitioner(KafkaPartitioner):
    """Asks a plain callable, which gets an element and the number of partitions."""

    choose: Callable[[Any, int], int]

    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: list[int]
    ) -> int:
        return partitions[self.choose(record, len(partitions))]


@dataclass(frozen=True)
class KafkaRecord:
    """What is written to Kafka for one element.

    `KafkaRecordSerializationSchema` has an example.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    """None: the partitioner chooses."""
    timestamp: int | None = None
    """Milliseconds; None: the element's event time, or else the time of writing."""


HeaderProvider = Callable[[Any], Mapping[str, "bytes | None"] | Iterable[tuple[str, "bytes | None"]]]


class KafkaRecordSerializationSchemaBuilder:
    """Collects how elements become Kafka records. A topic and a schema for the value are needed.

    `KafkaRecordSerializationSchema` has an example.
    """

    def __init__(self) -> None:
        self._topic_selector: KafkaTopicSelector | None = None
        self._key_schema: SerializationSchema | None = None
        self._value_schema: SerializationSchema | None = None
        self._header_provider: HeaderProvider | None = None
        self._partitioner: KafkaPartitioner | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Send all elements to one topic."""
        if not isinstance(topic, str) or not topic:
            raise ValueError(f"KafkaRecordSerializationSchema: topic must be a non-empty string, got {topic!r}")
        return self._select_by(FixedTopic(topic))

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the topic element by element."""
        if isinstance(topic_selector, KafkaTopicSelector):
            return self._select_by(topic_selector)
        if callable(topic_selector):
            return self._select_by(CallableTopicSelector(topic_selector))
        raise TypeError(
            f"KafkaRecordSerializationSchema: topic_selector must be a KafkaTopicSelector or a callable, "
            f"got {topic_selector!r}"
        )

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Make the record's key from the element; records have no key, unless set."""
        self._key_schema = _fresh("key", self._key_schema, key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Make the record's value from the element."""
        self._value_schema = _fresh("value", self._value_schema, value_serialization_schema)
        return self

    def set_header_provider(self, header_provider: HeaderProvider) -> KafkaRecordSerializationSchemaBuilder:
        """Make the record's headers from the element: a dict, or pairs, of names and bytes."""
        if not callable(header_provider):
            raise TypeError(
                f"KafkaRecordSerializationSchema: header_provider must be callable, got {header_provider!r}"
            )
        self._header_provider = header_provider
        return self

    def set_partitioner(
        self, partitioner: KafkaPartitioner | Callable[[Any, int], int]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the partition element by element; a plain callable gets the element and the number of partitions."""
        if not isinstance(partitioner, KafkaPartitioner):
            if not callable(partitioner):
                raise TypeError(
                    f"KafkaRecordSerializationSchema: partitioner must be a KafkaPartitioner or a callable, "
                    f"got {partitioner!r}"
                )
            partitioner = CallablePartitioner(partitioner)
        self._partitioner = partitioner
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema; ValueError if something is missing."""
        if self._topic_selector is None:
            raise ValueError(
                "KafkaRecordSerializationSchema: no topic; call set_topic('name') or set_topic_selector(...)"
            )
        if self._value_schema is None:
            raise ValueError(
                "KafkaRecordSerializationSchema: no schema for the value; "
                "call set_value_serialization_schema(SimpleStringSchema()) or another schema"
            )
        return KafkaRecordSerializationSchema(
            self._topic_selector, self._value_schema, self._key_schema, self._header_provider, self._partitioner
        )

    def _select_by(self, selector: KafkaTopicSelector) -> KafkaRecordSerializationSchemaBuilder:
        if self._topic_selector is not None:
            raise ValueError(
                "KafkaRecordSerializationSchema: the topic is set already; call one of set_topic and "
                "set_topic_selector, once"
            )
        self._topic_selector = selector
        return self


@dataclass(frozen=True)
class KafkaRecordSerializationSchema(SerializationSchema):
    """Turns elements into Kafka records; made by `KafkaRecordSerializationSchema.builder()`.

    A subclass may override `to_record` to decide everything itself.

    >>> from penstock.common import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("orders")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema.to_record("pencil").value
    b'pencil'
    """

    topic_selector: KafkaTopicSelector
    value_schema: SerializationSchema
    key_schema: SerializationSchema | None = None
    header_provider: HeaderProvider | None = None
    partitioner: KafkaPartitioner | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin to describe a schema."""
        return KafkaRecordSerializationSchemaBuilder()

    def serialize(self, element: Any) -> bytes | None:
        """The record's value."""
        return self.value_schema.serialize(element)

    def only_topic(self) -> str | None:
        """The topic of all elements, if each is just a key and a value there; None if `to_record` decides."""
        overrides = type(self).to_record is not KafkaRecordSerializationSchema.to_record
        if overrides or self.header_provider is not None or not isinstance(self.topic_selector, FixedTopic):
            return None
        return self.topic_selector.topic

    def to_record(self, element: Any) -> KafkaRecord:
        """Topic, key, value and headers for an element."""
        key = None if self.key_schema is None else self.key_schema.serialize(element)
        topic, value = self.topic_selector.apply(element), self.value_schema.serialize(element)
        if self.header_provider is None:
            return KafkaRecord(topic, key, value)
        headers = self.header_provider(element)
        return KafkaRecord(topic, key, value, tuple(headers.items() if isinstance(headers, Mapping) else headers))


def _fresh(what: str, present: SerializationSchema | None, given: SerializationSchema) -> SerializationSchema:
    if present is not None:
        raise ValueError(f"KafkaRecordSerializationSchema: the {what}'s schema is set already")
    if not isinstance(given, SerializationSchema):
        raise TypeError(f"KafkaRecordSerializationSchema: {what} needs a SerializationSchema, got {given!r}")
    return given
