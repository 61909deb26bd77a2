"""Kafka as source and sink."""

from __future__ import annotations

from penstock.datastream.connectors.kafka_records import (
    KafkaPartitioner,
    KafkaRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from penstock.datastream.connectors.kafka_sink import (
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    KafkaSink,
    KafkaSinkBuilder,
    Semantic,
)
from penstock.datastream.connectors.kafka_source import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)

__all__ = [
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaPartitioner",
    "KafkaRecord",
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
