"""Kafka as source and sink."""

from __future__ import annotations

from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka.deserialization import (
    KafkaConsumerRecord,
    KafkaRecordDeserializationSchema,
)
from penstock.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.kafka.records import (
    KafkaPartitioner,
    KafkaRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from penstock.datastream.connectors.kafka.sink import (
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    KafkaSink,
    KafkaSinkBuilder,
    Semantic,
)
from penstock.datastream.connectors.kafka.source import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    KafkaSource,
    KafkaSourceBuilder,
)

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "KafkaConsumerRecord",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaPartitioner",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
