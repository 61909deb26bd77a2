"""Kafka sources whose clusters change while the job runs: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]

_INSTEAD = "use KafkaSource with set_topics(...) or set_topic_pattern(...)"


class DynamicKafkaSource(metaclass=UnavailableConnector):
    instead = _INSTEAD


class DynamicKafkaSourceBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KafkaMetadataService(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KafkaRecordDeserializationSchema(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KafkaStreamSetSubscriber(metaclass=UnavailableConnector):
    instead = _INSTEAD


class KafkaStreamSubscriber(metaclass=UnavailableConnector):
    instead = _INSTEAD


class SingleClusterTopicMetadataService(metaclass=UnavailableConnector):
    instead = _INSTEAD


class StreamPatternSubscriber(metaclass=UnavailableConnector):
    instead = _INSTEAD
