"""Writing to Kafka."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.datastream.connectors.base import (
    DeliveryGuarantee,
    DescribedSinkFunction,
    Sink,
    StreamTransformer,
    SupportsPreprocessing,
)
from penstock.datastream.connectors.kafka_source import BOOTSTRAP_SERVERS


class KafkaTopicSelector(ABC):
    """Chooses a topic for each element."""

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


@dataclass(frozen=True)
class KafkaRecord:
    """What is written to Kafka for one element."""

    topic: str
    key: bytes | None
    value: bytes | None


class KafkaRecordSerializationSchemaBuilder:
    """Collects how elements become Kafka records. A topic and a schema for the value are needed."""

    def __init__(self) -> None:
        self._topic_selector: KafkaTopicSelector | None = None
        self._key_schema: SerializationSchema | None = None
        self._value_schema: SerializationSchema | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
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
        self._value_schema = _fresh("value", self._value_schema, value_serialization_schema)
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        if self._topic_selector is None:
            raise ValueError(
                "KafkaRecordSerializationSchema: no topic; call set_topic('name') or set_topic_selector(...)"
            )
        if self._value_schema is None:
            raise ValueError(
                "KafkaRecordSerializationSchema: no schema for the value; "
                "call set_value_serialization_schema(SimpleStringSchema()) or another schema"
            )
        return KafkaRecordSerializationSchema(self._topic_selector, self._value_schema, self._key_schema)

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
    """Turns elements into Kafka records; made by `KafkaRecordSerializationSchema.builder()`."""

    topic_selector: KafkaTopicSelector
    value_schema: SerializationSchema
    key_schema: SerializationSchema | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        return KafkaRecordSerializationSchemaBuilder()

    def serialize(self, element: Any) -> bytes | None:
        """The record's value."""
        return self.value_schema.serialize(element)

    def to_record(self, element: Any) -> KafkaRecord:
        """Topic, key and value for an element."""
        key = None if self.key_schema is None else self.key_schema.serialize(element)
        return KafkaRecord(self.topic_selector.apply(element), key, self.value_schema.serialize(element))


class KafkaSinkBuilder:
    """Collects how to write to Kafka. Servers and a record serializer are needed."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._record_serializer: KafkaRecordSerializationSchema | None = None
        self._delivery_guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._transactional_id_prefix: str | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        return self.set_property(BOOTSTRAP_SERVERS, bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """At least once, unless set. Exactly once also needs `set_transactional_id_prefix`."""
        self._delivery_guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Name this job's transactions; no two jobs of a Kafka cluster may share a prefix."""
        self._transactional_id_prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(
                f"KafkaSink: record_serializer must be a KafkaRecordSerializationSchema, got {record_serializer!r}; "
                "make one with KafkaRecordSerializationSchema.builder()"
            )
        self._record_serializer = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Pass a setting on to the Kafka producer."""
        self._properties[key] = value
        return self

    def build(self) -> KafkaSink:
        if not self._properties.get(BOOTSTRAP_SERVERS):
            raise ValueError("KafkaSink: Kafka's servers are missing; call set_bootstrap_servers('host:9092')")
        if self._record_serializer is None:
            raise ValueError("KafkaSink: no record serializer; call set_record_serializer(...)")
        return KafkaSink(
            self._record_serializer, self._delivery_guarantee, self._transactional_id_prefix, self._properties
        )


@dataclass(frozen=True)
class KafkaSink(Sink, SupportsPreprocessing):
    """Writes elements to Kafka topics; made by `KafkaSink.builder()`."""

    record_serializer: KafkaRecordSerializationSchema
    delivery_guarantee: DeliveryGuarantee
    transactional_id_prefix: str | None
    properties: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", dict(self.properties))
        if self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self.transactional_id_prefix:
            raise ValueError(
                "KafkaSink: EXACTLY_ONCE needs transactions; call set_transactional_id_prefix('name-of-this-job')"
            )

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        return KafkaSinkBuilder()

    def get_transformer(self) -> StreamTransformer | None:
        """Always None: topics are chosen while writing."""
        return None


class Semantic(Enum):
    """The old name of DeliveryGuarantee."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducerBase(DescribedSinkFunction):
    """The old Kafka sink's settings."""

    log_failures_only = False
    write_timestamp_to_kafka = False

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducerBase:
        """Log records that could not be written instead of failing."""
        self.log_failures_only = log_failures_only
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducerBase:
        """Accepted as in Flink; an epoch's records are always flushed at its end."""
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducerBase:
        """Give Kafka's records the elements' event time."""
        self.write_timestamp_to_kafka = write_timestamp_to_kafka
        return self


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """The old name of KafkaSink."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        self._topic = topic
        self._serialization_schema = serialization_schema
        self._producer_config = dict(producer_config)
        self._kafka_producer_pool_size = kafka_producer_pool_size
        self._semantic = semantic
        self.ignores_failures_after_transaction_timeout = False

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """On recovery, go on if a transaction has timed out meanwhile; its records are lost."""
        self.ignores_failures_after_transaction_timeout = True
        return self

    def to_sink(self) -> Sink:
        schema = KafkaRecordSerializationSchema(FixedTopic(self._topic), self._serialization_schema)
        guarantee = DeliveryGuarantee[self._semantic.name]
        prefix = f"{self._topic}-producer" if guarantee is DeliveryGuarantee.EXACTLY_ONCE else None
        if not self._producer_config.get(BOOTSTRAP_SERVERS):
            raise ValueError("FlinkKafkaProducer: producer_config has no 'bootstrap.servers'")
        return KafkaSink(schema, guarantee, prefix, self._producer_config)


def _fresh(what: str, present: SerializationSchema | None, given: SerializationSchema) -> SerializationSchema:
    if present is not None:
        raise ValueError(f"KafkaRecordSerializationSchema: the {what}'s schema is set already")
    if not isinstance(given, SerializationSchema):
        raise TypeError(f"KafkaRecordSerializationSchema: {what} needs a SerializationSchema, got {given!r}")
    return given
