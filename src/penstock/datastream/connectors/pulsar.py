"""Pulsar: the names exist, and each use says what to use instead."""

from __future__ import annotations

from penstock.datastream.connectors.base import UnavailableConnector

__all__ = [
    "MessageDelayer",
    "PulsarDeserializationSchema",
    "PulsarSink",
    "PulsarSinkBuilder",
    "PulsarSource",
    "PulsarSourceBuilder",
    "RangeGenerator",
    "StartCursor",
    "StopCursor",
    "SubscriptionType",
    "TopicRoutingMode",
]

_INSTEAD = (
    "read and write with a SourceFunction and a SinkFunction over Pulsar's Python client, or through "
    "Pulsar's Kafka protocol with KafkaSource and KafkaSink"
)


class MessageDelayer(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PulsarDeserializationSchema(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PulsarSink(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PulsarSinkBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PulsarSource(metaclass=UnavailableConnector):
    instead = _INSTEAD


class PulsarSourceBuilder(metaclass=UnavailableConnector):
    instead = _INSTEAD


class RangeGenerator(metaclass=UnavailableConnector):
    instead = _INSTEAD


class StartCursor(metaclass=UnavailableConnector):
    instead = _INSTEAD


class StopCursor(metaclass=UnavailableConnector):
    instead = _INSTEAD


class SubscriptionType(metaclass=UnavailableConnector):
    instead = _INSTEAD


class TopicRoutingMode(metaclass=UnavailableConnector):
    instead = _INSTEAD
