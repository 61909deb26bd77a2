"""Writing to Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.common.redaction import redacted_repr
from penstock.common.serialization import SerializationSchema
from penstock.datastream.connectors.base import (
    DeliveryGuarantee,
    DescribedSinkFunction,
    Sink,
    StreamTransformer,
    SupportsPreprocessing,
)
from penstock.datastream.connectors.kafka.records import FixedTopic, KafkaRecordSerializationSchema
from penstock.datastream.connectors.kafka.settings import BOOTSTRAP_SERVERS, TRANSACTION_TIMEOUT, client_settings
from penstock.datastream.connectors.sink_v2 import (
    CommitterInitContext,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from penstock.datastream.connectors.support.refused_records import OnRefused

if TYPE_CHECKING:  # What runs is imported when a job with Kafka runs.
    from penstock.datastream.connectors.kafka.committer import KafkaCommitter
    from penstock.datastream.connectors.kafka.writer import KafkaWriter, KafkaWriterState

DEFAULT_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""The most that Kafka's brokers accept by default."""


class KafkaSinkBuilder:
    """Collects how to write to Kafka. Servers and a record serializer are needed.

    `KafkaSink` has an example.
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._record_serializer: KafkaRecordSerializationSchema | None = None
        self._delivery_guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._transactional_id_prefix: str | None = None
        self._on_refused = OnRefused.FAIL

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Some servers of the Kafka cluster, such as `host1:9092,host2:9092`."""
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
        """Turn elements into Kafka records."""
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

    def set_on_refused(self, on_refused: OnRefused) -> KafkaSinkBuilder:
        """What becomes of elements that the record serializer refuses: they fail the job, unless set."""
        self._on_refused = OnRefused(on_refused)
        return self

    def build(self) -> KafkaSink:
        """The sink; ValueError if something is missing."""
        if not self._properties.get(BOOTSTRAP_SERVERS):
            raise ValueError("KafkaSink: Kafka's servers are missing; call set_bootstrap_servers('host:9092')")
        if self._record_serializer is None:
            raise ValueError("KafkaSink: no record serializer; call set_record_serializer(...)")
        return KafkaSink(
            self._record_serializer,
            self._delivery_guarantee,
            self._transactional_id_prefix,
            self._properties,
            self._on_refused,
        )


@dataclass(frozen=True)
class KafkaSink(Sink, SupportsWriterState[Any], SupportsCommitter[Any], SupportsPreprocessing):
    """Writes elements to Kafka topics; made by `KafkaSink.builder()`. Needs `penstock[kafka]`.

    EXACTLY_ONCE: records are written in transactions, which are committed when their checkpoint is complete; readers
    must set `isolation.level` to `read_committed`. AT_LEAST_ONCE: a checkpoint waits until Kafka has everything that
    was written before. NONE: it does not.

    >>> from penstock.common import SimpleStringSchema
    >>> from penstock.datastream.connectors.kafka import DeliveryGuarantee, KafkaRecordSerializationSchema
    >>> records = KafkaRecordSerializationSchema.builder().set_topic("orders")
    >>> records = records.set_value_serialization_schema(SimpleStringSchema()).build()
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(records)
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("orders-job")
    ...     .build()
    ... )
    >>> sink.is_transactional
    True
    """

    record_serializer: KafkaRecordSerializationSchema
    delivery_guarantee: DeliveryGuarantee
    transactional_id_prefix: str | None
    properties: Mapping[str, str] = field(hash=False)
    on_refused: OnRefused = OnRefused.FAIL
    writes_timestamps: bool = True
    """Give records the event time of their elements."""
    ignores_lost_transactions: bool = False
    """Continue when a transaction has timed out before it was committed; its records are lost."""
    logs_failures_only: bool = False
    """Log records that Kafka does not take instead of failing."""

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", dict(self.properties))
        if self.is_transactional:
            if not self.transactional_id_prefix:
                raise ValueError(
                    "KafkaSink: EXACTLY_ONCE needs transactions; call set_transactional_id_prefix('name-of-this-job')"
                )
            from penstock.datastream.connectors.kafka.protocol import Security

            Security.of(client_settings(self.properties))

    @property
    def is_transactional(self) -> bool:
        """True if records are written in transactions."""
        return self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE

    @property
    def flushes_on_checkpoint(self) -> bool:
        """True if a checkpoint waits until Kafka has all records."""
        return self.delivery_guarantee is not DeliveryGuarantee.NONE

    @property
    def transaction_timeout_ms(self) -> int:
        """After this time without a commit Kafka aborts a transaction: a job must not be down for longer."""
        return int(self.properties.get(TRANSACTION_TIMEOUT, DEFAULT_TRANSACTION_TIMEOUT_MS))

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin to describe a sink."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> StreamTransformer | None:
        """Always None: topics are chosen while writing."""
        return None

    def create_writer(self, context: WriterInitContext) -> KafkaWriter:
        return self.restore_writer(context, [])

    def restore_writer(self, context: WriterInitContext, recovered_state: list[KafkaWriterState]) -> KafkaWriter:
        from penstock.datastream.connectors.kafka.writer import KafkaWriter, TransactionalKafkaWriter

        if self.is_transactional:
            return TransactionalKafkaWriter(self, context, recovered_state)
        return KafkaWriter(self, context)

    def create_committer(self, context: CommitterInitContext) -> KafkaCommitter:
        from penstock.datastream.connectors.kafka.committer import KafkaCommitter

        return KafkaCommitter(self.properties, self.ignores_lost_transactions)


class Semantic(Enum):
    """The old name of DeliveryGuarantee.

    `KafkaSink` has an example.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducerBase(DescribedSinkFunction):
    """The old Kafka sink's settings.

    `KafkaSink` has an example of today's sink.
    """

    log_failures_only = False
    flushes_on_checkpoint = True
    write_timestamp_to_kafka = False

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducerBase:
        """Log records that could not be written instead of failing."""
        self.log_failures_only = log_failures_only
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducerBase:
        """False: checkpoints do not wait until Kafka has all records. Transactions always do."""
        self.flushes_on_checkpoint = flush_on_checkpoint
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducerBase:
        """Give Kafka's records the elements' event time."""
        self.write_timestamp_to_kafka = write_timestamp_to_kafka
        return self


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """The old name of KafkaSink.

    With EXACTLY_ONCE, transactions are named `<topic>-producer-...`; where several jobs write to one topic, set
    `transactional.id` in `producer_config` to a prefix of their own.

    `KafkaSink` has an example of today's sink.
    """

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

    def __repr__(self) -> str:
        return f"FlinkKafkaProducer({self._topic!r}, {self._serialization_schema!r}, semantic={self._semantic})"

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """On recovery, continue if a transaction has timed out meanwhile; its records are lost."""
        self.ignores_failures_after_transaction_timeout = True
        return self

    def to_sink(self) -> Sink:
        if not self._producer_config.get(BOOTSTRAP_SERVERS):
            raise ValueError("FlinkKafkaProducer: producer_config has no 'bootstrap.servers'")
        config = dict(self._producer_config)
        prefix = config.pop("transactional.id", f"{self._topic}-producer")
        guarantee = DeliveryGuarantee[self._semantic.name]
        if guarantee is DeliveryGuarantee.AT_LEAST_ONCE and not self.flushes_on_checkpoint:
            guarantee = DeliveryGuarantee.NONE
        return KafkaSink(
            KafkaRecordSerializationSchema(FixedTopic(self._topic), self._serialization_schema),
            guarantee,
            prefix if guarantee is DeliveryGuarantee.EXACTLY_ONCE else None,
            config,
            writes_timestamps=self.write_timestamp_to_kafka,
            ignores_lost_transactions=self.ignores_failures_after_transaction_timeout,
            logs_failures_only=self.log_failures_only,
        )
